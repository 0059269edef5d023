//! Bundles of the fixtures, and the program run on them as a user runs it.
#![allow(dead_code, reason = "each test takes what it needs")]

use qpx_pack::{Recipe, Request, Silent};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub const FIXTURES: &[&str] = &[
    "tiny-coder",
    "oracle/llama",
    "oracle/qwen3",
    "oracle/qwen3_moe",
];

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(name)
}

/// A folder with the fixture's bundle in it, called `NAME.qpx`.
pub fn packed(name: &str, recipe: &str, file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut request = Request::new(fixture(name), folder.path().join(file));
    request.recipe = Recipe::named(recipe).unwrap();
    request.origin = Some(format!("hf:example/{name}"));
    qpx_pack::run(&request, &Silent).unwrap_or_else(|e| panic!("{name}, {recipe}: {e}"));
    folder
}

/// What the program did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in `folder`.
#[track_caller]
pub fn inspect(folder: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_qpx-inspect"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

pub fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}
