//! The committed bundle `vectors/sample.qpx`: every later version must read it and list the same.
//!
//! It is `fixtures/oracle/llama`, packed with the recipe `lossless`, with one stamp. What it lists stands in
//! `vectors/sample.txt`. Nothing writes either file anew: a difference is a change of the format, or a mistake.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use qpx_format::{Bundle, digest::hex, stamp, verify};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const PAYLOAD: &[u8] = br#"{"sample":"a stamp of the kind proof, with a payload that proves nothing","numbers":[1,-2,0.5]}"#;

fn vectors(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name)
}

/// A word as the manifest has it.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap();
    value.as_str().unwrap().to_owned()
}

/// Everything that a reader finds, one thing a line.
fn listing(bundle: &Bundle) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments| writeln!(text, "{words}").unwrap();
    let (major, minor) = bundle.version();
    line(format_args!("id {}", hex(&bundle.id())));
    line(format_args!("version {major}.{minor}"));
    line(format_args!(
        "content {} bytes, {} leaves",
        bundle.content_length(),
        bundle.leaves()
    ));
    let checked = &bundle.manifest().checked;
    for s in &checked.segments {
        let kind = s.kind.as_str();
        line(format_args!(
            "segment {kind} at {} + {}, leaves of {}",
            s.offset, s.length, s.leaf_bytes
        ));
    }
    for a in &checked.attached {
        let content = hex(blake3::hash(&bundle.attached(a).unwrap()).as_bytes());
        line(format_args!(
            "attached {} {} at {} + {}, {} bytes, {content}",
            a.name,
            word(&a.purpose),
            a.offset,
            a.stored,
            a.length
        ));
    }
    for e in bundle.extents() {
        let leaf = match bundle.leaf(e.first_leaf).filter(|_| e.leaves > 0) {
            Some(leaf) => hex(&leaf.digest),
            None => "no leaf".to_owned(),
        };
        line(format_args!(
            "extent {} {} {:?} at {} + {}, leaf {} {leaf}, source {}",
            e.role,
            e.encoding.name,
            e.shape,
            e.offset,
            e.length,
            e.first_leaf,
            hex(&bundle.source_digest(&e))
        ));
    }
    for a in &checked.aliases {
        line(format_args!("alias {} of {}", a.role, a.of));
    }
    for s in bundle.stamps().unwrap().records {
        let payload = String::from_utf8(s.payload).unwrap();
        line(format_args!(
            "stamp {} at {} + {}, {}: {payload}",
            s.kind,
            s.offset,
            s.length,
            hex(&s.digest)
        ));
    }
    text
}

fn read(path: &Path) -> Bundle {
    let bundle = Bundle::open(path).unwrap();
    let report = verify::full(&bundle, 2, &|_| {}).unwrap();
    assert!(report.is_intact(), "{:?}", report.faults);
    assert_eq!((report.stamps, report.torn), (1, None));
    assert_eq!(report.leaves, bundle.leaves());
    bundle
}

#[test]
fn the_sample_is_read_and_listed_as_ever() {
    let found = listing(&read(&vectors("sample.qpx")));
    let expected = fs::read_to_string(vectors("sample.txt")).unwrap();
    for (n, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of sample.txt", n + 1);
    }
    assert_eq!(found, expected);
}

/// How the sample was made, once: `QPX_SAMPLE_FROM` names the packed bundle. Nothing that is there is replaced.
#[test]
#[ignore = "the sample is made once"]
fn make_the_sample() {
    let from = std::env::var_os("QPX_SAMPLE_FROM").expect("QPX_SAMPLE_FROM names a packed bundle");
    let (bundle, list) = (vectors("sample.qpx"), vectors("sample.txt"));
    assert!(!bundle.exists() && !list.exists(), "the sample is there");
    fs::copy(from, &bundle).unwrap();
    stamp::append(&bundle, "proof", PAYLOAD).unwrap();
    fs::write(list, listing(&read(&bundle))).unwrap();
}
