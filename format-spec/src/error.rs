//! What can be wrong with a bundle, said so that a user can act on it.
//!
//! Each error has a headline, facts (file, bytes, rule) and a way out. [`fmt::Display`] prints headline and facts; programs
//! add the word `error:` in front and the hint behind.

use crate::{Digest, digest::hex, rule};
use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
};

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
    pub bytes: Range<u64>,
    /// Leaf number in the digest table, where there is one.
    pub leaf: Option<u64>,
}

/// Why a bundle could not be read, written or trusted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    Io {
        /// The file or folder.
        file: PathBuf,
        /// What was being done, as in "cannot … FILE".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no bundle.
    NotABundle {
        /// The file.
        file: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// The file was written by a newer format than this reader knows.
    Newer {
        /// The file.
        file: PathBuf,
        /// The version or the features that are missing here.
        needs: String,
    },
    /// The file ends too early.
    CutShort {
        /// The file.
        file: PathBuf,
        /// Bytes that its content takes.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Bytes differ from what was sealed.
    Altered {
        /// Where.
        place: Box<Place>,
        /// The rule's number in SPEC.md.
        rule: &'static str,
        /// What was sealed.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The bundle breaks a rule of SPEC.md.
    Broken {
        /// Where.
        place: Box<Place>,
        /// The rule's number in SPEC.md.
        rule: &'static str,
        /// How.
        reason: String,
    },
    /// A bundle already bears the final name.
    Exists {
        /// The final name.
        file: PathBuf,
    },
    /// Another process holds the file's lock.
    Busy {
        /// The locked file.
        file: PathBuf,
    },
    /// What stands under the output's name or its partial name is nothing that may be written over.
    NotOurs {
        /// The name.
        file: PathBuf,
        /// What stands there.
        found: &'static str,
    },
    /// The disk has too little room.
    NoSpace {
        /// The file that was to be written.
        file: PathBuf,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free, where that is known.
        available: Option<u64>,
    },
    /// A write that lies in no slot of the layout: a fault of the writing program.
    OutsideSlot {
        /// The file.
        file: PathBuf,
        /// The bytes that were to be written.
        bytes: Range<u64>,
    },
    /// Sealing before everything was written: a fault of the writing program.
    Unfinished {
        /// The file.
        file: PathBuf,
        /// What is missing first.
        first: Missing,
        /// How many things are missing.
        count: u64,
    },
}

/// Something that a writer has not been given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The digest of a leaf.
    Leaf {
        /// Its number.
        leaf: u64,
        /// What it is a leaf of.
        subject: String,
    },
    /// The digest of a source piece.
    Source {
        /// Its number.
        source: u64,
    },
    /// The SHA-256 of a source file.
    Sha256 {
        /// The file's name.
        name: String,
    },
    /// A digest was given for something the layout does not have.
    Stray {
        /// What was given.
        what: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf { leaf, subject } => write!(f, "the digest of leaf {leaf} of {subject}"),
            Self::Source { source } => write!(f, "the digest of source piece {source}"),
            Self::Sha256 { name } => write!(f, "the SHA-256 of {name}"),
            Self::Stray { what } => write!(f, "a place for {what}, which the layout does not have"),
        }
    }
}

/// The kinds of errors that programs answer differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The operating system, or a fault of the program itself.
    Io,
    /// No bundle.
    NotABundle,
    /// Needs a newer reader.
    Newer,
    /// Ends too early.
    CutShort,
    /// Bytes differ from what was sealed.
    Altered,
    /// Sealed like that, but against the rules: not to be used, like an altered one.
    Broken,
    /// The output exists or is in use.
    OutputRefused,
    /// The disk is full.
    NoSpace,
}

impl Error {
    pub(crate) fn io(file: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace {
                file,
                needed: 0,
                available: None,
            },
            _ => Self::Io {
                file,
                doing,
                source,
            },
        }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Io { .. } | Self::OutsideSlot { .. } | Self::Unfinished { .. } => Kind::Io,
            Self::NotABundle { .. } => Kind::NotABundle,
            Self::Newer { .. } => Kind::Newer,
            Self::CutShort { .. } => Kind::CutShort,
            Self::Altered { .. } => Kind::Altered,
            Self::Broken { .. } => Kind::Broken,
            Self::Exists { .. } | Self::Busy { .. } | Self::NotOurs { .. } => Kind::OutputRefused,
            Self::NoSpace { .. } => Kind::NoSpace,
        }
    }

    /// Where in a bundle the error is, where it is in one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Altered { place, .. } | Self::Broken { place, .. } => Some(place),
            _ => None,
        }
    }

    /// The number of the broken rule in SPEC.md.
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Self::NotABundle { .. } => Some("2.1"),
            Self::CutShort { .. } => Some("2.7"),
            Self::Altered { rule, .. } | Self::Broken { rule, .. } => Some(rule),
            _ => None,
        }
    }

    /// One line: what is wrong.
    pub fn headline(&self) -> String {
        match self {
            Self::Io {
                file,
                doing,
                source,
            } => {
                format!("cannot {doing} {}: {}", file.display(), plain(source))
            }
            Self::NotABundle { reason, .. } => format!("not a bundle: {reason}"),
            Self::Newer { needs, .. } => {
                format!("newer than this reader: the bundle needs {needs}")
            }
            Self::CutShort {
                expected, found, ..
            } => format!(
                "cut short: {} of {expected} bytes are missing",
                expected.saturating_sub(*found)
            ),
            Self::Altered { place, .. } => {
                format!("altered: {} is not what was sealed", place.what())
            }
            Self::Broken { place, reason, .. } => format!("broken: {}: {reason}", place.what()),
            Self::Exists { file } => format!("{} already exists", file.display()),
            Self::Busy { file } => {
                format!("{} is being written by another process", file.display())
            }
            Self::NotOurs { file, found } => {
                format!("{} is {found}: it is not written over", file.display())
            }
            Self::NoSpace {
                needed: 0, file, ..
            } => format!("the disk is full: cannot write {}", file.display()),
            Self::NoSpace { needed, .. } => {
                format!("not enough room on the disk: the bundle takes {needed} bytes")
            }
            Self::OutsideSlot { bytes, .. } => format!(
                "fault in the writer: bytes {}..{} lie in no slot of the layout",
                bytes.start, bytes.end
            ),
            Self::Unfinished { first, count, .. } => {
                format!("fault in the writer: sealing lacks {first} ({count} missing in all)")
            }
        }
    }

    /// What belongs to the headline: name and value of each fact.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        match self {
            Self::Io { .. } | Self::Exists { .. } | Self::Busy { .. } | Self::NotOurs { .. } => {}
            Self::NotABundle { file, .. } | Self::Newer { file, .. } => {
                facts.push(("file", file.display().to_string()));
            }
            Self::CutShort {
                file,
                expected,
                found,
            } => {
                facts.push(("file", file.display().to_string()));
                facts.push(("size", format!("{found} bytes, should be {expected}")));
            }
            Self::Altered {
                place,
                rule,
                expected,
                found,
            } => {
                place.fact(&mut facts);
                let title = rule::title(rule);
                facts.push((
                    "rule",
                    format!("{rule}: {title} (sealed {expected}, found {found})"),
                ));
            }
            Self::Broken { place, rule, .. } => {
                place.fact(&mut facts);
                facts.push(("rule", format!("{rule}: {}", rule::title(rule))));
            }
            Self::NoSpace {
                file, available, ..
            } => {
                facts.push(("file", file.display().to_string()));
                if let Some(available) = available {
                    facts.push(("free", format!("{available} bytes")));
                }
            }
            Self::OutsideSlot { file, .. } | Self::Unfinished { file, .. } => {
                facts.push(("file", file.display().to_string()));
            }
        }
        facts
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        let file = |path: &PathBuf| path.display().to_string();
        Some(match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    "check the permissions of the file and of its folder".to_owned()
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "the folder is on a read-only file system: choose another one".to_owned()
                }
                _ => return None,
            },
            Self::NotABundle { .. } => {
                "`qpx-pack DIR -o NAME.qpx` makes a bundle of a checkpoint".to_owned()
            }
            Self::Newer { .. } => "update the qpx programs".to_owned(),
            Self::CutShort { file: path, .. } => format!(
                "copy or download the file again; only the first part of {} is there",
                file(path)
            ),
            Self::Altered { place, .. } => format!(
                "copy or download the file again; `qpx-inspect verify {}` lists every altered place",
                file(&place.file)
            ),
            Self::Broken { place, .. } if place.file.as_os_str().is_empty() => {
                "what was to be written is against the format's rules: see SPEC.md".to_owned()
            }
            Self::Broken { .. } => {
                "the file was sealed by a faulty or hostile program: do not use it".to_owned()
            }
            Self::Exists { .. } => {
                "choose another name, or say that it may be replaced (`--force`)".to_owned()
            }
            Self::Busy { .. } => "wait until the other process is done, or stop it".to_owned(),
            Self::NotOurs { file: path, .. } => {
                format!("give another name, or move {} away", file(path))
            }
            Self::NoSpace { .. } => "free some room, or write to another disk".to_owned(),
            Self::OutsideSlot { .. } | Self::Unfinished { .. } => {
                "nothing is wrong with your files: please report this".to_owned()
            }
        })
    }
}

impl Place {
    /// The subject with its region, or the region alone.
    fn what(&self) -> String {
        match &self.subject {
            Some(subject) if self.region == "padding" => format!("padding after {subject}"),
            Some(subject) => subject.clone(),
            None => self.region.clone(),
        }
    }

    fn fact(&self, facts: &mut Vec<(&'static str, String)>) {
        if !self.file.as_os_str().is_empty() {
            let mut text = self.file.display().to_string();
            if !self.bytes.is_empty() {
                text += &format!(", bytes {}..{}", self.bytes.start, self.bytes.end);
            }
            if let Some(leaf) = self.leaf {
                text += &format!(" (leaf {leaf})");
            }
            facts.push(("file", text));
        }
        if self.subject.is_some() && !self.region.is_empty() {
            facts.push(("where", self.region.clone()));
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for (name, value) in self.facts() {
            write!(f, "\n  {name:<5} {value}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What the system said, in lower case and without its number.
fn plain(source: &io::Error) -> String {
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// A broken rule, before it is known in which file.
#[derive(Debug)]
pub(crate) struct Fault {
    rule: &'static str,
    reason: String,
    place: Box<Place>,
}

impl Fault {
    pub(crate) fn new(rule: &'static str, region: &str, reason: impl Into<String>) -> Self {
        Self {
            rule,
            reason: reason.into(),
            place: Box::new(Place {
                region: region.to_owned(),
                ..Place::default()
            }),
        }
    }

    pub(crate) fn of(mut self, subject: &str) -> Self {
        self.place.subject = Some(subject.to_owned());
        self
    }

    pub(crate) fn at(mut self, bytes: Range<u64>) -> Self {
        self.place.bytes = bytes;
        self
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Error {
        self.place.file = file.to_path_buf();
        Error::Broken {
            place: self.place,
            rule: self.rule,
            reason: self.reason,
        }
    }
}

/// An [`Error::Altered`] about two digests, shortened for people.
pub(crate) fn altered(place: Place, rule: &'static str, sealed: &Digest, found: &Digest) -> Error {
    let short = |d: &Digest| hex(d).chars().take(16).chain(['…']).collect();
    Error::Altered {
        place: Box::new(place),
        rule,
        expected: short(sealed),
        found: short(found),
    }
}
