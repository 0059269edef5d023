//! One bundle for each way to keep or break a rule.

use super::{draft, raw::Raw, write};
use qpx_format::error::Kind;
use serde_json::{Value, json};

mod stamps;

/// What a reader has to say about a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Intact.
    Good,
    /// Intact, with a torn stamp behind it.
    Torn,
    /// Refused or found at fault.
    Bad(Kind),
}

pub struct Case {
    pub name: String,
    /// The rules that a good bundle shows, or those that a bad one breaks: first the one that this reader names.
    pub rules: Vec<&'static str>,
    pub verdict: Verdict,
    pub bytes: Vec<u8>,
}

/// The sample bundle with every segment.
pub fn sample() -> Raw {
    static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    Raw::of(SAMPLE.get_or_init(|| {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("sample.qpx");
        write(&path, draft()).unwrap();
        std::fs::read(path).unwrap()
    }))
}

struct Cases(Vec<Case>);

impl Cases {
    fn bad(&mut self, rule: &'static str, what: &str, kind: Kind, bytes: Vec<u8>) {
        self.0.push(Case {
            name: format!("{rule}-{what}"),
            rules: vec![rule],
            verdict: Verdict::Bad(kind),
            bytes,
        });
    }

    fn broken(&mut self, rule: &'static str, what: &str, raw: Raw) {
        self.bad(rule, what, Kind::Broken, raw.bytes());
    }

    /// Other rules that the last bundle breaks, and that a reader may name instead.
    fn or(&mut self, rules: &[&'static str]) {
        self.0.last_mut().unwrap().rules.extend(rules);
    }

    fn good(&mut self, what: &str, verdict: Verdict, rules: &[&'static str], bytes: Vec<u8>) {
        self.0.push(Case {
            name: format!("good-{what}"),
            rules: rules.to_vec(),
            verdict,
            bytes,
        });
    }
}

pub fn all() -> Vec<Case> {
    let mut cases = Cases(vec![]);
    good(&mut cases);
    page_0(&mut cases);
    manifest(&mut cases);
    placement(&mut cases);
    tensors(&mut cases);
    attached(&mut cases);
    stamps::stamps(&mut cases);
    cases.0
}

/// The sample with a list in its architecture that brings the manifest to `count` values, and everything moved behind it.
fn with_values(count: usize) -> Raw {
    fn values(value: &Value) -> usize {
        1 + match value {
            Value::Array(list) => list.iter().map(values).sum(),
            Value::Object(map) => map.values().map(values).sum(),
            _ => 0,
        }
    }
    let there = values(&sample().json()) + 1;
    let list = vec![0; count - there];
    let raw = sample().edit(|m| m["checked"]["architecture"]["list"] = json!(list));
    let moved = raw.data_offset();
    let further = (moved - sample().data_offset()) as u64;
    let raw = raw.edit(|m| {
        for list in ["segments", "attached", "tensors", "experts"] {
            let key = if list == "experts" { "base" } else { "offset" };
            for entry in m["checked"][list].as_array_mut().unwrap() {
                entry[key] = json!(entry[key].as_u64().unwrap() + further);
            }
        }
    });
    assert_eq!(
        raw.data_offset(),
        moved,
        "longer numbers fit in the same page"
    );
    raw
}

fn good(cases: &mut Cases) {
    let every: Vec<&str> = qpx_format::rule::RULES
        .iter()
        .map(|(number, _)| *number)
        .filter(|number| !number.starts_with('8'))
        .collect();
    cases.good("every-segment", Verdict::Good, &every, sample().bytes());
    let later = sample().field("minor", &[7, 0]).edit(|m| {
        m["news"] = json!({"anything": 1});
        m["checked"]["tensors"][0]["colour"] = json!("red");
    });
    let rules = ["2.3", "3.5"];
    cases.good("later-minor-version", Verdict::Good, &rules, later.bytes());
    let mut empty = draft();
    empty.attached.clear();
    empty.tensors.clear();
    empty.experts.clear();
    empty.aliases.clear();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("empty.qpx");
    write(&path, empty).unwrap();
    let bytes = std::fs::read(path).unwrap();
    cases.good("no-segments", Verdict::Good, &["2.6", "4.1", "4.2"], bytes);

    // A segment of no bytes starts where the next one does.
    let mut nothing = draft();
    nothing.tensors[0].shape = vec![0];
    nothing.tensors.drain(1..5);
    let path = scratch.path().join("nothing.qpx");
    write(&path, nothing).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let rules = ["4.1", "4.2", "4.3", "4.5", "4.7"];
    cases.good("segment-of-an-empty-tensor", Verdict::Good, &rules, bytes);
    // A frame that states its size and no window may be as long as the file is declared: here 129 MiB, in runs of one byte.
    let length = 129_u32 << 20;
    let mut frame = b"\x28\xb5\x2f\xfd\xa0".to_vec();
    frame.extend_from_slice(&length.to_le_bytes());
    for left in (0..length >> 17).rev() {
        let last = u32::from(left == 0);
        let header = (1_u32 << 17) << 3 | 1 << 1 | last;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b'a');
    }
    let long = sample().attach(1, &frame, length.into());
    let rules = ["7.3", "7.4"];
    cases.good(
        "single-segment-of-129-mib",
        Verdict::Good,
        &rules,
        long.bytes(),
    );
    // `expert` is a word like any other outside of layers.
    let alias = sample().edit(|m| {
        let alias = json!({"role": "adapter.0.expert", "of": "norm", "source": null});
        m["checked"]["aliases"].as_array_mut().unwrap().push(alias);
    });
    cases.good(
        "alias-called-expert",
        Verdict::Good,
        &["6.4"],
        alias.bytes(),
    );
    let most = with_values(1 << 20);
    cases.good(
        "as-many-values-as-there-may-be",
        Verdict::Good,
        &["3.3"],
        most.bytes(),
    );
    let close = sample().replace("\"layers\":2", "\"layers\":2,\"a\":9007199254740991.4");
    cases.good(
        "fraction-within-the-limit",
        Verdict::Good,
        &["3.3"],
        close.bytes(),
    );
}

fn page_0(cases: &mut Cases) {
    let sample = sample();
    let bytes = sample.bytes();
    let flip = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let n = |n: u64| n.to_le_bytes();
    let with = |name, value: &[u8]| sample.clone().field(name, value);
    let wrong = with("magic", b"\x89QPY\r\n\x1a\n").bytes();
    cases.bad("2.1", "another-magic", Kind::NotABundle, wrong);
    cases.bad("2.1", "altered-magic", Kind::Altered, flip(3));
    cases.bad("2.2", "altered-length", Kind::Altered, flip(17));
    cases.bad("2.2", "altered-digest", Kind::Altered, flip(16360));
    let newer = with("major", &[2, 0]).bytes();
    cases.bad("2.3", "major-2", Kind::Newer, newer);
    cases.broken("2.3", "major-0", with("major", &[0, 0]));
    cases.broken("2.4", "pages-of-4096", with("page bytes", &[0, 16, 0, 0]));
    cases.broken("2.5", "reserved-byte", with("reserved", &[0, 0, 1]));
    let content = bytes.len() as u64;
    let name = "content length";
    cases.broken("2.6", "no-whole-page", with(name, &n(content - 1)));
    cases.broken("2.6", "huge", with(name, &n(1 << 60)));
    cases.broken("2.6", "within-the-table", with(name, &n(32768)));
    let cut = bytes[..bytes.len() - 1].to_vec();
    cases.bad("2.7", "one-byte-missing", Kind::CutShort, cut);
    cases.bad("2.7", "page-0-cut", Kind::CutShort, bytes[..9000].to_vec());
    cases.broken(
        "2.8",
        "manifest-elsewhere",
        with("manifest offset", &n(32768)),
    );
    cases.broken("2.8", "no-manifest", with("manifest length", &n(0)));
    cases.broken(
        "2.8",
        "huge-manifest",
        with("manifest length", &n((64 << 20) + 1)),
    );
    cases.broken("2.9", "table-elsewhere", with("table offset", &n(49152)));
    let odd = sample.table.len() as u64 + 1;
    cases.broken("2.9", "no-whole-digest", with("table length", &n(odd)));
    cases.broken(
        "2.9",
        "huge-table",
        with("table length", &n((256 << 20) + 32)),
    );
    cases.bad("2.10", "altered-manifest", Kind::Altered, flip(16384 + 90));
    cases.bad("2.11", "altered-table", Kind::Altered, flip(32768 + 40));
}

fn manifest(cases: &mut Cases) {
    let text = |text: &[u8]| {
        let mut raw = sample();
        raw.manifest = text.to_vec();
        raw
    };
    let edit = |change: &dyn Fn(&mut Value)| sample().edit(change);
    let whole = sample().manifest;
    cases.broken("3.1", "not-json", text(b"{requires: []}"));
    cases.broken("3.1", "an-array", text(b"[1, 2]"));
    cases.broken("3.1", "cut", text(&whole[..whole.len() - 1]));
    cases.broken("3.1", "two-values", text(&[&whole[..], b"{}"].concat()));
    let not_utf8 = whole.iter().map(|b| if *b == b'#' { 0xff } else { *b });
    cases.broken("3.1", "not-utf8", text(&not_utf8.collect::<Vec<_>>()));
    let marked = [b"\xef\xbb\xbf", &whole[..]].concat();
    cases.broken("3.1", "byte-order-mark", text(&marked));
    let surrogate = |text: &str| sample().replace("\"layers\":2", text);
    let lone = surrogate("\"layers\":2,\"a\":\"\\ud800\"");
    cases.broken("3.1", "lone-surrogate", lone);
    let lone = surrogate("\"layers\":2,\"\\udc00\":1");
    cases.broken("3.1", "lone-surrogate-in-a-key", lone);
    let twice = sample().replace("{\"requires\":[]", "{\"requires\":[],\"requires\":[]");
    cases.broken("3.2", "key-twice", twice);
    let deep = sample().replace("\"layers\":2", "\"layers\":2,\"a\":[{\"b\":1,\"b\":1}]");
    cases.broken("3.2", "deep-key-twice", deep);
    let nest = format!("\"layers\":{}2{}", "[".repeat(62), "]".repeat(62));
    cases.broken("3.3", "too-deep", sample().replace("\"layers\":2", &nest));
    for (what, number) in [
        ("large-integer", "9007199254740992"),
        ("beyond-64-bits", "18446744073709551616"),
        ("no-double", "1e400"),
        ("large-negative", "-9007199254740992"),
        ("rounds-to-a-large-one", "9007199254740991.5"),
    ] {
        let raw = sample().replace("\"layers\":2", &format!("\"layers\":{number}"));
        cases.broken("3.3", what, raw);
    }
    cases.broken("3.3", "too-many-values", with_values((1 << 20) + 1));
    let missing = edit(&|m| {
        m["checked"].as_object_mut().unwrap().remove("aliases");
    });
    cases.broken("3.4", "key-missing", missing);
    let as_text = edit(&|m| m["checked"]["tensors"][0]["offset"] = json!("65536"));
    cases.broken("3.4", "text-for-a-count", as_text);
    let fraction = sample().replace("\"start\":0", "\"start\":0.0");
    cases.broken("3.4", "fraction", fraction);
    let negative = sample().replace("\"start\":0", "\"start\":-1");
    cases.broken("3.4", "negative", negative);
    let minus = sample().replace("\"start\":0", "\"start\":-0");
    cases.broken("3.4", "minus-zero", minus);
    let purpose = edit(&|m| m["checked"]["attached"][0]["purpose"] = json!("poem"));
    cases.broken("3.4", "unknown-purpose", purpose.clone());
    let later = purpose.field("minor", &[7, 0]);
    cases.broken("3.4", "unknown-purpose-in-a-later-minor-version", later);
    let array = edit(&|m| m["checked"]["parameters"] = json!([1, 2]));
    cases.broken("3.4", "array-for-an-object", array);
    let object = edit(&|m| m["checked"]["segments"][0]["kind"] = json!({"attached": null}));
    cases.broken("3.4", "object-for-a-word", object);
    let kind = edit(&|m| m["checked"]["segments"][0]["kind"] = json!("attic"));
    cases.broken("3.4", "unknown-word", kind);
    cases.broken("3.5", "unknown-key", edit(&|m| m["news"] = json!(1)));
    let deep = edit(&|m| m["claimed"]["origin"]["files"][1]["owner"] = json!("me"));
    cases.broken("3.5", "deep-unknown-key", deep);
    let needs = edit(&|m| {
        m["requires"] = json!(["teleport", "levitation"]);
        m["news"] = json!(1);
    });
    cases.bad("3.6", "unknown-feature", Kind::Newer, needs.bytes());
    let set = |key: &'static str, value: Value| {
        edit(&move |m| m["checked"]["architecture"][key] = value.clone())
    };
    cases.broken("3.7", "family-not-a-word", set("family", json!("Qwen 3")));
    cases.broken("3.7", "family-a-number", set("family", json!(3)));
    cases.broken(
        "3.7",
        "no-experts-chosen",
        set("experts_per_token", json!(0)),
    );
    cases.broken("3.7", "too-many-chosen", set("experts_per_token", json!(4)));
    let total = edit(&|m| m["checked"]["parameters"]["total"] = json!(1));
    cases.broken("3.8", "total", total);
    let active = edit(&|m| m["checked"]["parameters"]["active"] = json!(1));
    cases.broken("3.8", "active", active);
    let bytes = edit(&|m| m["checked"]["census"]["f32"]["bytes"] = json!(1));
    cases.broken("3.9", "bytes", bytes);
    let absent = edit(&|m| {
        m["checked"]["census"]["q2_k"] = json!({"tensors": 0, "weights": 0, "bytes": 0});
    });
    cases.broken("3.9", "encoding-not-used", absent);
    let file = |key: &'static str, value: Value| {
        edit(&move |m| m["claimed"]["origin"]["files"][1][key] = value.clone())
    };
    cases.broken("3.10", "upper-case", file("sha256", json!("A".repeat(64))));
    cases.broken("3.10", "too-short", file("sha256", json!("ab")));
    cases.broken("3.10", "missing", file("sha256", Value::Null));
    cases.broken("3.11", "escaping", file("name", json!("../../etc/passwd")));
    cases.broken("3.11", "not-ascending", file("name", json!("config.json")));
    let source = |list: &'static str, key: &'static str, value: Value| {
        edit(&move |m| m["checked"][list][0]["source"][key] = value.clone())
    };
    cases.broken("3.12", "empty-name", source("tensors", "name", json!("")));
    cases.broken(
        "3.12",
        "control-character",
        source("tensors", "name", json!("a\u{7}")),
    );
    cases.broken("3.12", "dtype", source("tensors", "dtype", json!("f32")));
    cases.broken(
        "3.12",
        "stride-of-a-tensor",
        source("tensors", "stride", json!(4)),
    );
    cases.broken(
        "3.12",
        "name-and-stride",
        source("experts", "stride", json!(4)),
    );
    cases.broken(
        "3.12",
        "neither-name-nor-stride",
        source("experts", "name", json!("w")),
    );
}

fn placement(cases: &mut Cases) {
    let edit = |change: &dyn Fn(&mut Value)| sample().edit(|m| change(&mut m["checked"]));
    let set = |list: &'static str, n: usize, key: &'static str, change: &dyn Fn(u64) -> u64| {
        edit(&|c| c[list][n][key] = json!(change(c[list][n][key].as_u64().unwrap())))
    };
    let list = |c: &mut Value, name: &str| c[name].as_array().unwrap().clone();
    let swapped = edit(&|c| c["segments"].as_array_mut().unwrap().swap(1, 2));
    cases.broken("4.1", "swapped", swapped);
    let twice = edit(&|c| {
        let mut segments = list(c, "segments");
        segments.insert(1, segments[0].clone());
        c["segments"] = segments.into();
    });
    cases.broken("4.1", "twice", twice);
    let missing = edit(&|c| drop(c["segments"].as_array_mut().unwrap().pop()));
    cases.broken("4.1", "not-listed", missing);
    let unused = edit(&|c| c["attached"] = json!([]));
    cases.broken("4.1", "holds-nothing", unused);
    cases.broken("4.2", "gap", set("segments", 2, "offset", &|n| n + 16384));
    cases.broken(
        "4.2",
        "overlap",
        set("segments", 2, "offset", &|n| n - 16384),
    );
    let mut longer = sample();
    longer.data.extend_from_slice(&[0; 16384]);
    cases.broken("4.2", "content-behind-the-last", longer);
    cases.broken(
        "4.3",
        "longer",
        set("segments", 1, "length", &|n| n + 16384),
    );
    cases.broken(
        "4.4",
        "no-power-of-two",
        set("segments", 1, "leaf_bytes", &|_| 12288),
    );
    cases.broken(
        "4.4",
        "too-large",
        set("segments", 1, "leaf_bytes", &|_| 8 << 20),
    );
    cases.broken(
        "4.4",
        "too-small",
        set("segments", 1, "leaf_bytes", &|_| 256),
    );
    cases.broken("4.4", "zero", set("segments", 1, "leaf_bytes", &|_| 0));
    cases.broken(
        "4.5",
        "tensor-moved",
        set("tensors", 1, "offset", &|n| n + 256),
    );
    cases.broken(
        "4.5",
        "tensors-overlap",
        set("tensors", 1, "offset", &|n| n - 256),
    );
    cases.broken(
        "4.5",
        "file-moved",
        set("attached", 1, "offset", &|n| n + 1),
    );
    cases.broken("4.6", "base", set("experts", 1, "base", &|n| n + 256));
    cases.broken("4.6", "stride", set("experts", 0, "stride", &|n| n + 16384));
    cases.broken(
        "4.6",
        "counts-differ",
        set("experts", 1, "count", &|n| n - 1),
    );
    cases.broken("4.6", "no-experts", set("experts", 0, "count", &|_| 0));
    cases.or(&["3.7"]);
    let layer = set("experts", 5, "layer", &|_| 1_000_000_000);
    cases.broken("4.6", "layer-of-ten-digits", layer);
    cases.or(&["6.1"]);
    cases.broken("4.6", "too-many", set("experts", 0, "count", &|_| 65_537));

    let raw = sample();
    let manifest = raw.json();
    let offset = |list: &str, n: usize, key: &str| {
        manifest["checked"][list][n][key].as_u64().unwrap() as usize
    };
    let flip = |at: usize| {
        let mut bytes = raw.bytes();
        bytes[at] ^= 1;
        bytes
    };
    let mut altered = |rule, what: &str, at: usize| {
        cases.bad(rule, what, Kind::Altered, flip(at));
    };
    altered("4.7", "attached", offset("attached", 1, "offset") + 9);
    altered("4.7", "core", offset("tensors", 1, "offset"));
    altered("4.7", "head", offset("tensors", 5, "offset") + 3);
    let expert = offset("experts", 1, "base") + 2 * offset("experts", 1, "stride");
    altered("4.7", "expert", expert);
    altered(
        "4.7",
        "second-leaf-of-rows",
        offset("tensors", 7, "offset") + 65536,
    );
    altered("4.7", "kept", offset("tensors", 8, "offset") + 23);
    altered("4.8", "behind-the-manifest", 16384 + raw.manifest.len());
    altered("4.8", "behind-the-table", 32768 + raw.table.len());
    altered("4.8", "between-tensors", offset("tensors", 1, "offset") - 1);
    let record = offset("experts", 0, "base") + offset("experts", 0, "stride") - 1;
    altered("4.8", "behind-a-record", record);
    altered("4.8", "at-the-end", raw.bytes().len() - 1);

    let mut longer = sample();
    longer.table.extend_from_slice(&[0; 32]);
    cases.broken("4.9", "digest-too-many", longer);
    let mut shorter = sample();
    shorter.table.truncate(shorter.table.len() - 32);
    cases.broken("4.9", "digest-missing", shorter);
    let swapped = edit(&|c| c["tensors"].as_array_mut().unwrap().swap(4, 5));
    cases.broken("4.10", "tensors", swapped);
    let swapped = edit(&|c| c["experts"].as_array_mut().unwrap().swap(0, 1));
    cases.broken("4.10", "rows", swapped);
    let twice = edit(&|c| c["experts"][1] = c["experts"][0].clone());
    cases.broken("4.10", "row-twice", twice);
}

fn tensors(cases: &mut Cases) {
    let set = |list: &'static str, n: usize, key: &'static str, value: Value| {
        sample().edit(|m| m["checked"][list][n][key] = value)
    };
    cases.broken(
        "5.1",
        "unknown",
        set("tensors", 0, "encoding", json!("f33")),
    );
    cases.broken(
        "5.1",
        "unknown-of-experts",
        set("experts", 0, "encoding", json!("F32")),
    );
    let nine = json!([1, 1, 1, 1, 1, 1, 1, 1, 8]);
    cases.broken("5.2", "nine-dimensions", set("tensors", 0, "shape", nine));
    let huge = json!([4_294_967_296_u64, 4_294_967_296_u64]);
    cases.broken("5.2", "overflow", set("tensors", 0, "shape", huge));
    let hidden = json!([0, 9_007_199_254_740_991_u64, 9_007_199_254_740_991_u64]);
    let longer = set("tensors", 4, "shape", hidden);
    cases.broken("5.2", "overflow-behind-a-zero", longer);
    cases.broken("5.3", "longer", set("tensors", 0, "length", json!(33)));
    cases.broken("5.3", "expert", set("experts", 0, "length", json!(1)));
    let flat = sample().edit(|m| {
        let tensor = &mut m["checked"]["tensors"][1];
        tensor["shape"] = json!([256]);
        tensor["length"] = json!(272);
    });
    cases.broken("5.4", "one-dimension", flat);
    let three = set("experts", 0, "shape", json!([1, 6, 8]));
    cases.broken("5.5", "three-dimensions", three);
    let none = sample().edit(|m| {
        let row = &mut m["checked"]["experts"][0];
        row["shape"] = json!([0, 8]);
        row["length"] = json!(0);
    });
    cases.broken("5.5", "no-rows", none);

    for (what, role) in [
        ("upper-case", "layer.0.Attention.norm"),
        ("empty", ""),
        ("empty-word", "layer.0..norm"),
        ("layer-without-number", "layer.attention.norm"),
        ("leading-zero", "layer.00.norm"),
        ("layer-alone", "layer.0"),
        ("number-first", "0.norm"),
        ("kept-alone", "kept"),
        ("kept-empty", "kept."),
        ("kept-control", "kept.a\nb"),
        ("space", "layer.0.attention norm"),
    ] {
        cases.broken("6.1", what, set("tensors", 0, "role", json!(role)));
    }
    let router = json!("layer.0.router");
    cases.broken("6.2", "twice", set("tensors", 0, "role", router.clone()));
    cases.broken("6.2", "alias", set("aliases", 0, "role", router));
    for (what, n, role) in [
        ("kept-in-core", 0, "kept.a"),
        ("output-in-core", 0, "output"),
        ("draft-in-core", 0, "draft.0.norm"),
        ("layer-in-head", 5, "layer.0.norm"),
        ("layer-in-draft", 6, "layer.0.norm"),
        ("core-in-kept", 8, "layer.0.norm"),
        ("expert-as-tensor", 0, "layer.0.expert.7.gate"),
    ] {
        cases.broken("6.3", what, set("tensors", n, "role", json!(role)));
    }
    let core = set("experts", 0, "segment", json!("core"));
    cases.broken("6.3", "experts-in-core", core);
    cases.or(&["3.4"]);
    cases.broken(
        "6.4",
        "of-nothing",
        set("aliases", 0, "of", json!("nothing")),
    );
    cases.broken("6.4", "of-itself", set("aliases", 0, "of", json!("output")));
    let expert = json!("layer.0.expert.9.gate");
    cases.broken("6.4", "expert", set("aliases", 0, "role", expert));
    let kept = json!("kept.output");
    cases.broken("6.4", "kept", set("aliases", 0, "role", kept));
    let kept = sample().edit(|m| m["checked"]["tensors"][8]["role"] = json!("kept.another"));
    cases.broken("6.5", "another-name", kept);
}

fn attached(cases: &mut Cases) {
    let name = |name: &str| sample().edit(|m| m["checked"]["attached"][1]["name"] = json!(name));
    for (what, bad) in [
        ("parent", "../config.json"),
        ("parent-within", "a/../../b"),
        ("absolute", "/etc/passwd"),
        ("backslash", "..\\config.json"),
        ("drive", "c:config.json"),
        ("dot", "./a"),
        ("empty", ""),
        ("folder", "a/"),
        ("zero-byte", "a\0b"),
        ("dot-at-the-end", "a."),
    ] {
        cases.broken("7.1", what, name(bad));
    }
    cases.broken("7.1", "long-part", name(&"a".repeat(256)));
    cases.broken("7.2", "twice", name("config.json"));
    cases.broken("7.2", "letter-case", name("CONFIG.json"));
    cases.broken("7.2", "file-and-folder", name("config.json/a"));
    let plain = sample().edit(|m| m["checked"]["attached"][0]["length"] = json!(9));
    cases.broken("7.3", "plain-lengths-differ", plain);
    let huge = sample().edit(|m| {
        m["checked"]["attached"][1]["length"] = json!((1_u64 << 30) + 1);
    });
    cases.broken("7.3", "too-large", huge);
    let content = draft().attached[1].content.clone();
    let frame = zstd::bulk::compress(&content, 9).unwrap();
    let length = content.len() as u64;
    cases.broken(
        "7.4",
        "longer-than-declared",
        sample().attach(1, &frame, length - 1),
    );
    cases.broken(
        "7.4",
        "shorter-than-declared",
        sample().attach(1, &frame, length + 1),
    );
    let behind = [&frame[..], b"more"].concat();
    cases.broken("7.4", "bytes-behind", sample().attach(1, &behind, length));
    let two = [&frame[..], &frame].concat();
    cases.broken("7.4", "two-frames", sample().attach(1, &two, 2 * length));
    let cut = &frame[..frame.len() - 2];
    cases.broken("7.4", "frame-cut", sample().attach(1, cut, length));
    cases.broken("7.4", "no-frame", sample().attach(1, b"plain text", 10));
    let bomb = zstd::bulk::compress(&vec![0; 10 << 20], 9).unwrap();
    let room = sample().attach(1, &bomb[..bomb.len().min(12000)], 10);
    cases.broken("7.4", "grows", room);
    let skipped = b"\x50\x2a\x4d\x18\x04\0\0\0skip";
    cases.broken(
        "7.4",
        "skippable-frame-alone",
        sample().attach(1, skipped, 0),
    );
    let in_front = [&skipped[..], &frame].concat();
    let in_front = sample().attach(1, &in_front, length);
    cases.broken("7.4", "skippable-frame-in-front", in_front);
    let behind = [&frame[..], skipped].concat();
    let behind = sample().attach(1, &behind, length);
    cases.broken("7.4", "skippable-frame-behind", behind);
    let mut nothing = sample().attach(1, b"", 0);
    nothing.table.drain(32..64);
    cases.broken("7.4", "nothing-stored", nothing);
    // As long as it says, which is not what is declared: refused before memory is taken.
    let stated = b"\x28\xb5\x2f\xfd\xa0\0\0\0\xc0\x09\0\0a".to_vec();
    cases.broken(
        "7.4",
        "single-segment-of-3-gib",
        sample().attach(1, &stated, 1),
    );
    // Descriptor 0: no content size, a window is stated, here 2 to the power of 10 + 18 (256 MiB); one raw block.
    let wide = b"\x28\xb5\x2f\xfd\0\x90\x09\0\0a".to_vec();
    let wide = sample().attach(1, &wide, 1);
    cases.broken("7.4", "window-of-256-mib", wide);
}
