//! Where things are: the repository's folders and the programs under test.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// A folder under `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// The path of a program that this build made, such as `qpx-pack`.
///
/// # Panics
/// When the program has not been built: `cargo test --workspace` builds it, `cargo test -p qpx-tests` alone does not.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let folder = test
        .ancestors()
        .nth(2)
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "{} is not there: run `cargo test --workspace`, which builds the programs",
        path.display()
    );
    path
}

/// Says on the terminal, past the test runner's capture, what a test did not do and why.
pub fn skipped(what: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}
