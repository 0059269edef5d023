//! What the tests of packing share.
#![allow(dead_code, reason = "each test takes what it needs")]

use qpx_pack::{Packed, Recipe, Request, Silent};
use sha2::Digest as _;
use std::path::{Path, PathBuf};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name)
}

pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub fn pack_to(name: &str, output: &Path, recipe: &str) -> Packed {
    let mut request = Request::new(fixture(name), output);
    request.recipe = Recipe::named(recipe).unwrap();
    request.force = true;
    qpx_pack::run(&request, &Silent).unwrap_or_else(|e| panic!("{name}, {recipe}: {e}"))
}

pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
