//! What can stop a run, said so that a user can act on it.

use crate::budget::Plan;
use qpx_console::{Exit, Failure};
use qpx_kernels::{cpu::LevelError, ops::ShapeError};
use std::{fmt, io, path::PathBuf};

/// Why a bundle did not run.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Error {
    Format(qpx_format::Error),
    /// Flags that don't go together, or a value that means nothing.
    Usage {
        flag: &'static str,
        reason: String,
    },
    Level(LevelError),
    UnknownFamily {
        bundle: PathBuf,
        family: String,
        known: Vec<&'static str>,
    },
    /// The manifest's architecture is not what the lane reads.
    Architecture {
        bundle: PathBuf,
        reason: String,
    },
    MissingTensor {
        bundle: PathBuf,
        role: String,
        shape: Vec<u64>,
    },
    WrongShape {
        bundle: PathBuf,
        role: String,
        expected: Vec<u64>,
        found: Vec<u64>,
    },
    /// A tensor that every token would touch and that the lane has no use for.
    UnusedTensor {
        bundle: PathBuf,
        role: String,
        family: String,
    },
    /// An encoding without real numbers where weights are needed.
    NoNumbers {
        bundle: PathBuf,
        role: String,
        encoding: String,
    },
    Memory {
        limit: u64,
        what: &'static str,
        least: u64,
        plan: Box<Plan>,
    },
    /// The system did not give the memory that the plan asks for.
    NoMemory {
        what: &'static str,
        bytes: u64,
    },
    Context {
        context: usize,
        needed: usize,
        most: u64,
    },
    Token {
        id: u64,
        vocabulary: usize,
    },
    NoTokens,
    /// A file that the user named.
    File {
        file: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    Tokens {
        file: PathBuf,
        reason: String,
    },
    /// An attached file that can't be used.
    Attached {
        bundle: PathBuf,
        name: String,
        reason: String,
    },
    NoTokenizer {
        bundle: PathBuf,
    },
    NoTemplate {
        bundle: PathBuf,
    },
    Template {
        bundle: PathBuf,
        name: String,
        reason: String,
    },
    Sampling {
        bundle: PathBuf,
        field: String,
        value: String,
    },
    /// Logits that are no numbers: the weights or the arithmetic are broken.
    NotFinite {
        position: usize,
    },
    Threads {
        reason: String,
    },
    Output {
        reason: io::Error,
    },
    /// Recorded proofs can't be relied on.
    Stamps {
        bundle: PathBuf,
        reason: String,
    },
    /// A lane and the operations disagree: a fault of this program.
    Shape(ShapeError),
    Fault {
        reason: &'static str,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Format(error) => return error.hint(),
            Self::UnknownFamily { .. } => "a newer qpx-run may know it".to_owned(),
            Self::Architecture { .. }
            | Self::MissingTensor { .. }
            | Self::WrongShape { .. }
            | Self::UnusedTensor { .. }
            | Self::NoNumbers { .. } => {
                "pack the checkpoint again with the qpx-pack of this version".to_owned()
            }
            Self::Memory { least, .. } => format!(
                "give `--memory {}` or more, or a shorter `--context`",
                crate::budget::flag_size(*least)
            ),
            Self::NoMemory { .. } => {
                "close other programs, or give a smaller `--memory`".to_owned()
            }
            Self::Context { needed, most, .. } if *needed as u64 <= *most => {
                format!("give `--context {needed}`, or a smaller `--max-tokens`")
            }
            Self::Context { most, .. } => format!(
                "this model has room for {most} tokens: shorten the prompt or give a smaller `--max-tokens`"
            ),
            Self::NoTemplate { .. } => "`--raw` runs the prompt as it stands".to_owned(),
            Self::Template { .. } => "`--raw` runs the prompt without the template".to_owned(),
            Self::Sampling { .. } => "`--temperature 0` decodes greedily".to_owned(),
            Self::NotFinite { .. } => {
                "`qpx-inspect verify` tells whether the bundle is what was sealed".to_owned()
            }
            Self::Stamps { .. } => "`qpx-inspect verify` names the place".to_owned(),
            _ => return None,
        })
    }

    /// The exit code of a program that ends with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Format(error) => qpx_console::exit_of(error),
            Self::Usage { .. } | Self::Level(_) => Exit::Usage,
            Self::Stamps { .. } => Exit::Altered,
            Self::UnknownFamily { .. } => Exit::Newer,
            _ => Exit::Failure,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::Usage { flag, reason } => write!(f, "{flag} {reason}"),
            Self::Level(error) => error.fmt(f),
            Self::UnknownFamily {
                bundle,
                family,
                known,
            } => write!(
                f,
                "the model family {family} is not known here; known are {}\n  file  {}",
                known.join(", "),
                bundle.display()
            ),
            Self::Architecture { bundle, reason } => write!(
                f,
                "the manifest's architecture can't be used: {reason}\n  file  {}",
                bundle.display()
            ),
            Self::MissingTensor {
                bundle,
                role,
                shape,
            } => write!(
                f,
                "{role} is missing: the architecture needs it with shape {shape:?}\n  file  {}",
                bundle.display()
            ),
            Self::WrongShape {
                bundle,
                role,
                expected,
                found,
            } => write!(
                f,
                "{role} has shape {found:?}, the architecture needs {expected:?}\n  file  {}",
                bundle.display()
            ),
            Self::UnusedTensor {
                bundle,
                role,
                family,
            } => write!(
                f,
                "{role} has no place in a {family} model of this architecture; leaving it out would change every answer\n  file  {}",
                bundle.display()
            ),
            Self::NoNumbers {
                bundle,
                role,
                encoding,
            } => write!(
                f,
                "{role} is stored as {encoding}, which can't be multiplied\n  file  {}",
                bundle.display()
            ),
            Self::Memory {
                limit,
                what,
                least,
                plan,
            } => write!(
                f,
                "not enough memory: the least that works is {least} bytes, {what} {limit}\n{plan}"
            ),
            Self::NoMemory { what, bytes } => {
                write!(f, "the system gave no memory for {what} ({bytes} bytes)")
            }
            Self::Context {
                context, needed, ..
            } => write!(
                f,
                "the context is too small: {needed} tokens asked for (prompt and answer), room for {context}"
            ),
            Self::Token { id, vocabulary } => write!(
                f,
                "token id {id} is not in the vocabulary (0 to {})",
                vocabulary.saturating_sub(1)
            ),
            Self::NoTokens => write!(f, "there is no token to begin with"),
            Self::File {
                file,
                doing,
                source,
            } => {
                write!(f, "cannot {doing} {}: {source}", file.display())
            }
            Self::Tokens { file, reason } => {
                write!(f, "{} holds no token ids: {reason}", file.display())
            }
            Self::Attached {
                bundle,
                name,
                reason,
            } => write!(
                f,
                "the attached {name} can't be used: {reason}\n  file  {}",
                bundle.display()
            ),
            Self::NoTokenizer { bundle } => write!(
                f,
                "no tokenizer.json is attached: text can't be turned into tokens\n  file  {}",
                bundle.display()
            ),
            Self::NoTemplate { bundle } => write!(
                f,
                "no chat template is attached, and none is guessed\n  file  {}",
                bundle.display()
            ),
            Self::Template {
                bundle,
                name,
                reason,
            } => write!(
                f,
                "the chat template ({name}) failed: {reason}\n  file  {}",
                bundle.display()
            ),
            Self::Sampling {
                bundle,
                field,
                value,
            } => write!(
                f,
                "generation_config.json asks for {field} = {value}, which qpx-run does not do\n  file  {}",
                bundle.display()
            ),
            Self::NotFinite { position } => write!(
                f,
                "the logits at position {position} hold NaN or infinities"
            ),
            Self::Threads { reason } => write!(f, "worker threads can't be started: {reason}"),
            Self::Output { reason } => write!(f, "the output can't be written: {reason}"),
            Self::Stamps { bundle, reason } => write!(
                f,
                "the stamps can't be relied on: {reason}\n  file  {}",
                bundle.display()
            ),
            Self::Shape(error) => write!(f, "fault in the lane: {error}"),
            Self::Fault { reason } => write!(f, "fault in qpx-run: {reason}"),
        }
    }
}

impl Failure for Error {
    fn hint(&self) -> Option<String> {
        self.hint()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Format(error) => Failure::facts(error),
            _ => Vec::new(),
        }
    }

    fn exit(&self) -> Exit {
        self.exit()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Format(error) => Some(error),
            Self::Level(error) => Some(error),
            Self::File { source, .. } => Some(source),
            Self::Output { reason } => Some(reason),
            Self::Shape(error) => Some(error),
            _ => None,
        }
    }
}

impl From<qpx_format::Error> for Error {
    fn from(error: qpx_format::Error) -> Self {
        Self::Format(error)
    }
}

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

impl From<LevelError> for Error {
    fn from(error: LevelError) -> Self {
        Self::Level(error)
    }
}
