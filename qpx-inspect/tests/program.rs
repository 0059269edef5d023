//! What the program prints, as a user sees it at 80 columns, and as JSON against its schemas.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::{FIXTURES, inspect, json, packed};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Digests out of text: a bundle's id changes with every byte of the tool's output, which is not what is tested here.
fn without_digests(text: &str) -> String {
    let mut out = String::new();
    for piece in text.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let end = piece.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        match end.len() {
            64 => out += &piece.replace(end, "<64 digits>"),
            16 if piece.contains('…') => out += &piece.replace(end, "<16 digits>"),
            _ => out += piece,
        }
    }
    out
}

#[track_caller]
fn shown(folder: &Path, arguments: &[&str]) -> String {
    let ran = inspect(folder, arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stderr, "");
    without_digests(&ran.stdout)
}

#[test]
fn help() {
    let here = Path::new(".");
    insta::assert_snapshot!("help", shown(here, &["--help"]));
    for command in ["show", "tensors", "verify", "map", "extract"] {
        let text = shown(here, &[command, "--help"]);
        insta::assert_snapshot!(format!("help_{command}"), text);
    }
    let ran = inspect(here, &[]);
    assert_eq!(ran.code, 2);
    let ran = inspect(here, &["verify", "x.qpx", "--expect-id", "abc"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("64 hex digits"), "{}", ran.stderr);
    let ran = inspect(here, &["extract", "x.qpx", "-o", "y"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn a_screen_for_each_command() {
    let folder = packed("tiny-coder", "lossless", "tiny-coder.qpx");
    let at = folder.path();
    let show = shown(at, &["tiny-coder.qpx"]);
    assert_eq!(show, shown(at, &["show", "tiny-coder.qpx"]));
    // Taken as it is: a row of a picture may look like a digest.
    let map = inspect(at, &["map", "tiny-coder.qpx"]).stdout;
    for text in [&show, &map] {
        assert!(
            text.lines().all(|l| l.chars().count() <= 80),
            "wider than a screen:\n{text}"
        );
        assert!(text.lines().count() <= 40, "longer than a screen:\n{text}");
    }
    insta::assert_snapshot!("show", show);
    insta::assert_snapshot!("map", map);
    insta::assert_snapshot!("tensors", shown(at, &["tensors", "tiny-coder.qpx"]));
    insta::assert_snapshot!("verify", shown(at, &["verify", "tiny-coder.qpx"]));
    insta::assert_snapshot!(
        "verify_quick",
        shown(at, &["verify", "--quick", "tiny-coder.qpx"])
    );
    insta::assert_snapshot!(
        "extract",
        shown(
            at,
            &["extract", "tiny-coder.qpx", "--checkpoint", "-o", "back"]
        )
    );
    // Every expert on its own row.
    let rows = shown(at, &["tensors", "--experts", "tiny-coder.qpx"]);
    assert!(rows.contains("layer.3.expert.31.down"));
    assert_eq!(rows.lines().count(), 1 + 423);
}

#[test]
fn a_name_that_promises_something_else_is_told() {
    let folder = packed("oracle/llama", "q8", "qwen3-7b-q4.qpx");
    let show = shown(folder.path(), &["qwen3-7b-q4.qpx"]);
    for word in [
        "says q4, the recipe is q8",
        "says qwen3, the family is llama",
        "says 7B parameters",
    ] {
        assert!(show.contains(word), "no `{word}` in\n{show}");
    }
}

#[test]
fn json_keeps_to_its_schemas() {
    for (fixture, recipe) in FIXTURES.iter().zip(["lossless", "q4", "lossless", "q8"]) {
        let folder = packed(fixture, recipe, "m.qpx");
        let at = folder.path();
        let of = |arguments: &[&str]| json(&inspect(at, arguments));
        let show = of(&["m.qpx", "--json"]);
        schema::check("show.json", &show);
        schema::check("tensors.json", &of(&["tensors", "m.qpx", "--json"]));
        let all = of(&["tensors", "m.qpx", "--json", "--experts"]);
        schema::check("tensors.json", &all);
        schema::check("map.json", &of(&["map", "m.qpx", "--json"]));
        let verify = of(&["verify", "m.qpx", "--json"]);
        schema::check("verify.json", &verify);
        assert_eq!(verify["verdict"], "intact and unsigned");
        schema::check(
            "extract.json",
            &of(&["extract", "m.qpx", "--attached", "-o", "files", "--json"]),
        );
        let failed = inspect(
            at,
            &["extract", "m.qpx", "--attached", "-o", "files", "--json"],
        );
        assert_eq!((failed.code, failed.stderr.as_str()), (4, ""));
        let failed = json(&failed);
        schema::check("error.json", &failed);
        assert_eq!(failed["exit"]["word"], "output refused");

        // The numbers agree with each other.
        let sum = |rows: &serde_json::Value, key: &str| -> u64 {
            rows.as_array()
                .unwrap()
                .iter()
                .filter_map(|r| r[key].as_u64())
                .sum()
        };
        let tensors = all["tensors"].as_array().unwrap();
        assert_eq!(
            sum(&show["encodings"], "bytes"),
            sum(&all["tensors"], "bytes"),
            "{fixture}"
        );
        assert_eq!(
            sum(&show["encodings"], "tensors"),
            tensors.len() as u64,
            "{fixture}"
        );
        assert_eq!(
            sum(&show["segments"], "weights"),
            show["parameters"]["total"].as_u64().unwrap()
        );
    }
}

#[test]
fn bytes_per_token_are_counted_by_hand() {
    let folder = packed("tiny-coder", "lossless", "m.qpx");
    let show = json(&inspect(folder.path(), &["m.qpx", "--json"]));
    // bf16; a record of three 48 × 128 matrices, 12,288 bytes each, takes three pages of 16 KiB.
    let layer = 2 * 128 + 2 * 128 * 128 + 2 * 64 * 128 + 2 * 32 + 32 * 128;
    assert_eq!(show["per_token"]["core"], 2 * (4 * layer + 128));
    assert_eq!(show["per_token"]["output"], 2 * 941 * 128);
    assert_eq!(show["per_token"]["embedding_row"], 2 * 128);
    assert_eq!(show["per_token"]["experts"], 4 * 4 * 3 * 16384);
    assert_eq!(show["layout"]["records"][0]["pages"], 3);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = packed("oracle/qwen3_moe", "lossless", "m.qpx");
    let mut child = Command::new(env!("CARGO_BIN_EXE_qpx-inspect"))
        .args(["tensors", "m.qpx", "--experts"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_is_no_bundle_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.qpx"), b"GGUF....").unwrap();
    for command in [&["a.qpx"][..], &["tensors", "a.qpx"], &["map", "a.qpx"]] {
        let ran = inspect(folder.path(), command);
        assert_eq!(ran.code, 12, "{ran:?}");
        assert!(
            ran.stderr
                .starts_with("error: not a bundle: it is a GGUF file\n"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("\n\nhint: "), "{ran:?}");
    }
    let ran = inspect(folder.path(), &["absent.qpx"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("cannot open absent.qpx"), "{ran:?}");
}
