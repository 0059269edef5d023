//! Running a program and looking at what it said.

use crate::workspace::program;
use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

/// What a program did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// What it printed as data.
    pub stdout: String,
    /// What it said to the user.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// The run, which must have ended with `code` and without a panic.
    ///
    /// # Panics
    /// Otherwise, with all that the program said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert!(
            !self.stderr.contains("panicked"),
            "a panic reached the user:\n{}",
            self.stderr
        );
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The run, whose error must hold each of `words`.
    ///
    /// # Panics
    /// Otherwise, with the error.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "no `{word}` in:\n{}",
                self.stderr
            );
        }
        self
    }
}

/// A program, ready for arguments, with colour and progress off.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.env("NO_COLOR", "1");
    command
}

/// Runs a program to its end.
///
/// # Panics
/// When it can't be started.
pub fn run<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Ran {
    command(name)
        .args(arguments)
        .output()
        .expect("the program starts")
        .into()
}

/// Packs `source` into `output` by `recipe`, which must succeed.
#[track_caller]
pub fn pack(source: &Path, output: &Path, recipe: &str) {
    run(
        "qpx-pack",
        [
            source.as_os_str(),
            OsStr::new("-o"),
            output.as_os_str(),
            OsStr::new("--recipe"),
            OsStr::new(recipe),
        ],
    )
    .expect(0);
}
