//! The vectors under `vectors/`: bundles that keep or break one rule, compressed, with a list of what a reader must say.
//!
//! `QPX_BLESS=1` writes them from `support/cases.rs`; otherwise the files are read, so that other readers are tested on the
//! same bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{
    Bundle, Error,
    error::Kind,
    rule::RULES,
    verify::{self, Report},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use support::cases::{Verdict, all};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The vectors that lie in the folder.
fn packed() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(folder()).unwrap();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "zst"))
}

fn examine(path: &Path) -> Result<Report, Error> {
    let bundle = Bundle::open(path)?;
    verify::full(&bundle, 2, &|_| {})
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "intact",
        Verdict::Torn => "torn stamp",
        Verdict::Bad(Kind::NotABundle) => "not a bundle",
        Verdict::Bad(Kind::Newer) => "newer",
        Verdict::Bad(Kind::CutShort) => "cut short",
        Verdict::Bad(Kind::Altered) => "altered",
        Verdict::Bad(_) => "broken",
    }
}

#[test]
fn each_gets_its_verdict() {
    let cases = all();
    let index: BTreeMap<_, _> = (cases.iter())
        .map(|case| {
            let entry = json!({"verdict": verdict_word(case.verdict), "rules": case.rules});
            (format!("{}.qpx.zst", case.name), entry)
        })
        .collect();
    assert_eq!(index.len(), cases.len(), "names are distinct");
    let index = serde_json::to_string_pretty(&index).unwrap() + "\n";
    if std::env::var_os("QPX_BLESS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        // The sample bundle lies there too, and is never made again.
        packed().for_each(|path| fs::remove_file(path).unwrap());
        for case in &cases {
            let path = folder().join(format!("{}.qpx.zst", case.name));
            fs::write(path, zstd::bulk::compress(&case.bytes, 19).unwrap()).unwrap();
        }
        fs::write(folder().join("index.json"), &index).unwrap();
    }
    assert_eq!(
        fs::read_to_string(folder().join("index.json")).unwrap(),
        index,
        "run with QPX_BLESS=1"
    );
    assert_eq!(packed().count(), cases.len());

    let scratch = tempfile::tempdir().unwrap();
    let mut wrong = vec![];
    for case in &cases {
        let packed = fs::read(folder().join(format!("{}.qpx.zst", case.name))).unwrap();
        let bytes = zstd::bulk::decompress(&packed, 16 << 20).unwrap();
        assert!(
            bytes == case.bytes,
            "{}: the file is not what the cases make: run with QPX_BLESS=1",
            case.name
        );
        let path = scratch.path().join(format!("{}.qpx", case.name));
        fs::write(&path, &bytes).unwrap();
        let found = match examine(&path) {
            Ok(report) => match report.faults.first() {
                Some(fault) => (Verdict::Bad(fault.kind()), fault.rule()),
                None if report.torn.is_some() => (Verdict::Torn, None),
                None => (Verdict::Good, None),
            },
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains("{ "), "no debug output for people: {text}");
                (Verdict::Bad(error.kind()), error.rule())
            }
        };
        let rule_matters = matches!(case.verdict, Verdict::Bad(kind) if kind != Kind::Newer);
        let expected = rule_matters.then(|| case.rules[0]);
        if found.0 != case.verdict || rule_matters && found.1 != expected {
            wrong.push(format!(
                "{}: {found:?} {:?}",
                case.name,
                examine(&path).err()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every rule has a vector that keeps it and one that breaks it.
#[test]
fn every_rule_has_its_vectors() {
    let cases = all();
    let (good, bad): (Vec<_>, Vec<_>) = cases
        .iter()
        .partition(|c| !matches!(c.verdict, Verdict::Bad(_)));
    let rules = |cases: &[&support::cases::Case]| -> BTreeSet<&'static str> {
        cases.iter().flat_map(|c| c.rules.iter().copied()).collect()
    };
    let first: BTreeSet<&str> = bad
        .iter()
        .filter_map(|c| c.rules.first().copied())
        .collect();
    let all: BTreeSet<&str> = RULES.iter().map(|(number, _)| *number).collect();
    assert_eq!(rules(&good), all, "good vectors");
    assert_eq!(first, all, "broken vectors");
    let accepted = rules(&bad);
    assert!(accepted.is_subset(&all), "accepted rules");
}
