//! A flipped byte anywhere, a cut anywhere: `verify` names the place and ends with the right code.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::{inspect, json, packed};
use qpx_format::{Bundle, Error, Role, stamp};
use std::{fs, path::Path, time::Duration};

/// Where a byte is flipped, and what `verify` must say.
struct Case {
    what: &'static str,
    offset: u64,
    region: &'static str,
    words: Vec<String>,
}

/// Appends a stamp. A child that another test is just starting holds this process's locks until it runs its program.
fn append(path: &Path, text: &str) {
    for _ in 0..500 {
        match stamp::append(path, "note", text.as_bytes()) {
            Err(Error::Busy { .. }) => std::thread::sleep(Duration::from_millis(10)),
            other => return drop(other.unwrap()),
        }
    }
    panic!("{} stays locked", path.display());
}

#[test]
fn a_flipped_byte_in_each_region_is_named() {
    let folder = packed("oracle/qwen3_moe", "lossless", "m.qpx");
    let path = folder.path().join("m.qpx");
    for text in [r#"{"a":1}"#, r#"{"b":2}"#] {
        append(&path, text);
    }
    let bundle = Bundle::open(&path).unwrap();
    let checked = &bundle.manifest().checked;
    let extent = |role: &str| bundle.extent(&Role::parse(role).unwrap()).unwrap();
    let attached = &checked.attached[0];
    let row = &checked.experts[0];
    let case = |what, offset, region, words: &[&str]| Case {
        what,
        offset,
        region,
        words: words.iter().map(|w| (*w).to_owned()).collect(),
    };
    let core = extent("layer.1.attention.key");
    let part = extent("layer.1.expert.2.up");
    let cases = [
        case("magic", 1, "page 0", &["page 0"]),
        case("content length", 17, "page 0", &["page 0"]),
        case("zeros of page 0", 9000, "page 0", &["page 0"]),
        case("manifest", 16384 + 99, "manifest", &["manifest"]),
        case(
            "digest table",
            bundle.table_bytes().start + 40,
            "digest table",
            &["digest table"],
        ),
        case(
            "attached",
            attached.offset + 3,
            "attached",
            &[&attached.name],
        ),
        case(
            "core",
            core.offset,
            "core",
            &["layer.1.attention.key", "leaf"],
        ),
        case(
            "head",
            extent("embedding").offset + 9,
            "head",
            &["embedding"],
        ),
        case(
            "expert",
            part.offset + part.length - 1,
            "experts",
            &["layer.1.expert.2.up"],
        ),
        case(
            "padding of a record",
            row.base + row.stride - 1,
            "padding",
            &["padding"],
        ),
        case(
            "padding of the table",
            bundle.table_bytes().end,
            "padding",
            &["padding"],
        ),
        case("stamp", bundle.content_length() + 110, "stamps", &["stamp"]),
    ];
    let whole = fs::read(&path).unwrap();
    for case in &cases {
        let mut bytes = whole.clone();
        bytes[usize::try_from(case.offset).unwrap()] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let ran = inspect(folder.path(), &["verify", "m.qpx"]);
        assert_eq!(ran.code, 10, "{}: {ran:?}", case.what);
        assert!(
            ran.stdout.starts_with("altered: m.qpx\n"),
            "{}: {ran:?}",
            case.what
        );
        for word in &case.words {
            assert!(
                ran.stdout.contains(word),
                "{}: no `{word}`: {}",
                case.what,
                ran.stdout
            );
        }
        let value = json(&inspect(folder.path(), &["verify", "m.qpx", "--json"]));
        schema::check("verify.json", &value);
        let faults = value["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{}: {faults:#?}", case.what);
        assert_eq!(faults[0]["region"], case.region, "{}", case.what);
        let (start, end) = (&faults[0]["bytes"]["start"], &faults[0]["bytes"]["end"]);
        let range = start.as_u64().unwrap()..end.as_u64().unwrap();
        assert!(range.contains(&case.offset), "{}: {range:?}", case.what);
        assert!(faults[0]["found"].is_string(), "{}", case.what);
    }
    // All at once: the reader stops at page 0, but of the places behind the table every one is named.
    let mut bytes = whole.clone();
    let behind = &cases[5..];
    for case in behind {
        bytes[usize::try_from(case.offset).unwrap()] ^= 0x10;
    }
    fs::write(&path, bytes).unwrap();
    let value = json(&inspect(folder.path(), &["verify", "m.qpx", "--json"]));
    assert_eq!(
        value["faults"].as_array().unwrap().len(),
        behind.len(),
        "{value:#}"
    );
    fs::write(&path, &whole).unwrap();
    assert_eq!(inspect(folder.path(), &["verify", "m.qpx"]).code, 0);
}

#[test]
fn cut_bundles_are_cut_short_and_torn_stamps_are_told() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let path = folder.path().join("m.qpx");
    append(&path, "{}");
    let content = usize::try_from(Bundle::open(&path).unwrap().content_length()).unwrap();
    let whole = fs::read(&path).unwrap();
    let cases = [
        (content - 1, 11),
        (content / 2, 11),
        (16384, 11),
        (100, 11),
        (4, 12),
        (0, 12),
    ];
    for (length, code) in cases {
        fs::write(&path, &whole[..length]).unwrap();
        let ran = inspect(folder.path(), &["verify", "m.qpx"]);
        assert_eq!(ran.code, code, "cut at {length}: {ran:?}");
        let value = json(&inspect(folder.path(), &["verify", "m.qpx", "--json"]));
        schema::check("verify.json", &value);
        assert_eq!(value["exit"]["code"], code);
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let ran = inspect(folder.path(), &["verify", "m.qpx"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.contains("was cut short and is ignored"),
        "{ran:?}"
    );
    let show = inspect(folder.path(), &["m.qpx"]);
    assert!(show.stdout.contains("was cut short and"), "{show:?}");
}

#[test]
fn an_id_from_elsewhere_is_demanded() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let id = qpx_console::hex(&Bundle::open(&folder.path().join("m.qpx")).unwrap().id());
    let ran = inspect(
        folder.path(),
        &["verify", "m.qpx", "--expect-id", &id.to_uppercase()],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.starts_with("intact and as expected: m.qpx\n"),
        "{ran:?}"
    );
    let other = "0".repeat(64);
    for quick in [&[][..], &["--quick"]] {
        let arguments = [&["verify", "m.qpx", "--expect-id", &other][..], quick].concat();
        let ran = inspect(folder.path(), &arguments);
        assert_eq!(ran.code, 14, "{ran:?}");
        assert!(ran.stdout.starts_with("refused by policy: "), "{ran:?}");
        assert!(
            ran.stdout.contains(&id) && ran.stdout.contains(&other),
            "{ran:?}"
        );
    }
}

#[test]
fn a_quick_look_finds_what_it_samples() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let path = folder.path().join("m.qpx");
    let bundle = Bundle::open(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The first leaf of a segment is always in the sample.
    let core = bundle
        .manifest()
        .checked
        .segments
        .iter()
        .find(|s| s.kind.as_str() == "core");
    bytes[usize::try_from(core.unwrap().offset).unwrap()] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ran = inspect(folder.path(), &["verify", "m.qpx", "--quick"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    assert!(ran.stdout.contains("layer.0.attention.norm"), "{ran:?}");
}
