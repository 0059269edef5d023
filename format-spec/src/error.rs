//! What can be wrong with a bundle, said so that a user can act on it.

use std::{fmt, io, path::PathBuf};

/// Where in a bundle something is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// `page 0`, `manifest`, `digest table`, `core`, `padding`, `stamps`, …
    pub region: String,
    /// The tensor's role or the attached file's name, where there is one.
    pub subject: Option<String>,
    /// Bytes in the file.
    pub bytes: std::ops::Range<u64>,
    /// Leaf number in the digest table, where there is one.
    pub leaf: Option<u64>,
}

/// Why a bundle could not be read, written or trusted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    Io {
        file: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    /// The file is no bundle.
    NotABundle { file: PathBuf, reason: String },
    /// The file was written by a newer format than this reader knows.
    Newer { file: PathBuf, needs: String },
    /// The file ends too early.
    CutShort {
        file: PathBuf,
        expected: u64,
        found: u64,
    },
    /// Bytes differ from what was sealed.
    Altered {
        place: Place,
        rule: &'static str,
        expected: String,
        found: String,
    },
    /// The bundle breaks a rule of SPEC.md.
    Broken {
        place: Place,
        rule: &'static str,
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Error {}
