//! SPEC.md tells the truth: a reader written from it alone, in Python, sees the same bundle as the Rust crate.

use qpx_tests::{
    program::pack,
    workspace::{fixture, root, skipped},
};
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Output},
};

/// The Python to use, if it has the packages that the second reader needs.
fn python() -> Option<String> {
    let python = std::env::var("QPX_PYTHON").unwrap_or_else(|_| "python3".into());
    let ready = Command::new(&python)
        .args(["-c", "import blake3, numpy, zstandard"])
        .output();
    if ready.is_ok_and(|o| o.status.success()) {
        return Some(python);
    }
    assert!(
        std::env::var_os("QPX_PYTHON").is_none(),
        "{python} lacks the packages of format-spec/requirements.txt"
    );
    skipped(&format!(
        "the second reader: {python} lacks blake3, numpy or zstandard (format-spec/requirements.txt); set QPX_PYTHON to one that has them"
    ));
    None
}

fn second_reader(python: &str, arguments: &[&str], bundle: &Path) -> Output {
    let script = root().join("format-spec/second_reader.py");
    Command::new(python)
        .arg(script)
        .args(arguments)
        .arg(bundle)
        .output()
        .expect("python starts")
}

#[test]
fn both_readers_see_the_same_bundle() {
    let Some(python) = python() else { return };
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for (name, recipe) in [
        ("oracle/llama", "lossless"),
        ("oracle/qwen3", "q8"),
        ("oracle/qwen3_moe", "lossless"),
        ("oracle/qwen3_moe", "q3"),
        ("tiny-coder", "lossless"),
        ("tiny-coder", "q4"),
        ("tiny-coder", "q2"),
    ] {
        println!("{name} {recipe}");
        let path = scratch.path().join("model.qpx");
        let _ = std::fs::remove_file(&path);
        pack(&fixture(name), &path, recipe);
        let verified = second_reader(&python, &["verify"], &path);
        assert!(
            verified.status.success(),
            "{}{}",
            String::from_utf8_lossy(&verified.stdout),
            String::from_utf8_lossy(&verified.stderr)
        );
        compare(&python, &path);
    }
}

/// Compares every extent: the second reader prints a line of JSON for each one with the BLAKE3 of its values
/// (floats as little-endian float32, integers and booleans in their own width).
fn compare(python: &str, path: &Path) {
    let output = second_reader(python, &["digests"], path);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let mut theirs: std::collections::BTreeMap<String, Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|row| (row["role"].as_str().expect("a role").to_owned(), row))
        .collect();
    let bundle = qpx_format::Bundle::open(path).expect("the bundle opens");
    let mut count = 0;
    for extent in bundle.extents() {
        let role = extent.role.clone();
        let row = theirs
            .remove(&role)
            .unwrap_or_else(|| panic!("the second reader has no {role}"));
        assert_eq!(row["shape"], serde_json::json!(extent.shape), "{role}");
        let mut stored = vec![0; usize::try_from(extent.length).expect("small")];
        bundle
            .read_verified(&extent, &mut stored)
            .expect("verified");
        let encoding = qpx_kernels::encoding::by_name(extent.encoding.name)
            .expect("an encoding that kernels know");
        let values = match encoding.decode {
            None => stored,
            Some(decode) => decoded(decode, encoding, &extent.shape, &stored),
        };
        assert_eq!(
            row["blake3"],
            blake3::hash(&values).to_hex().to_string(),
            "{role} ({})",
            encoding.name
        );
        count += 1;
    }
    assert!(
        theirs.is_empty(),
        "only the second reader sees {:?}",
        theirs.keys()
    );
    assert!(count > 0, "the bundle is empty");
}

fn decoded(
    decode: fn(&[u8], &mut [f32]),
    encoding: &qpx_kernels::Encoding,
    shape: &[u64],
    stored: &[u8],
) -> Vec<u8> {
    let columns = usize::try_from(shape.last().copied().unwrap_or(1)).expect("small");
    let mut padded = vec![0.0; columns.div_ceil(encoding.block) * encoding.block];
    let mut bytes = Vec::new();
    for row in stored.chunks(encoding.row_bytes(columns)) {
        decode(row, &mut padded);
        padded[..columns]
            .iter()
            .for_each(|v| bytes.extend(v.to_le_bytes()));
    }
    bytes
}

/// What the second reader makes of every vector: a line of name and verdict (`intact`, `newer`, or a broken rule's text).
const JUDGE: &str = r#"
import pathlib, sys, tempfile, zstandard
sys.path.insert(0, sys.argv[1])
from second_reader import Bundle, Fault
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.qpx.zst")):
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder) / "vector.qpx"
        with open(path, "rb") as packed, open(plain, "wb") as out:
            zstandard.ZstdDecompressor().copy_stream(packed, out)
        found = []
        try:
            with Bundle(plain) as bundle:
                bundle.verify(say=lambda text: None, fault=found.append)
        except Fault as fault:
            found.append("newer" if fault.newer else str(fault))
    print(path.name, *(str(f).replace("\n", " ") for f in found[:1] or ["intact"]), sep="\t")
"#;

#[test]
fn both_readers_judge_every_vector_alike() {
    let Some(python) = python() else { return };
    let folder = root().join("format-spec");
    let output = Command::new(&python)
        .args(["-c", JUDGE])
        .args([folder.clone(), folder.join("vectors")])
        .output()
        .expect("python starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let index: serde_json::Map<String, Value> = serde_json::from_slice(
        &std::fs::read(folder.join("vectors/index.json")).expect("the index"),
    )
    .expect("JSON");
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut differing = Vec::new();
    for line in theirs.lines() {
        let (name, found) = line.split_once('\t').expect("a name and a verdict");
        let ours = index[name]["verdict"].as_str().expect("a verdict");
        let alike = match ours {
            // A torn last stamp is no fault of the content.
            "intact" | "torn stamp" => found == "intact",
            "newer" => found == "newer",
            _ => !["intact", "newer"].contains(&found),
        };
        if !alike {
            differing.push(format!("{name}: {ours}, the second reader: {found}"));
        }
    }
    assert_eq!(
        theirs.lines().count(),
        index.len(),
        "not every vector was judged"
    );
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
