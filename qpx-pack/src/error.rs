//! What can stop a packing, said so that a user can act on it.

use crate::{output::OutputError, problem::Problem, recipe::RecipeError};
use qpx_console::{Exit, Failure};
use std::{fmt, io, path::PathBuf};

/// Why no bundle came out.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Error {
    /// All that is wrong with the checkpoint.
    Checkpoint {
        folder: PathBuf,
        problems: Vec<Problem>,
    },
    Recipe(RecipeError),
    Output(OutputError),
    /// Flags that don't go together.
    Usage {
        flag: &'static str,
        reason: &'static str,
    },
    Read {
        file: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    /// A source file is not what it was when the plan was made.
    Changed {
        file: PathBuf,
        how: String,
    },
    NonFinite {
        file: String,
        tensor: String,
        index: u64,
        value: f64,
        offset: u64,
    },
    /// A weight that the chosen encoding can't hold.
    TooLarge {
        file: String,
        tensor: String,
        index: u64,
        value: f64,
        encoding: &'static str,
    },
    Format(qpx_format::Error),
    /// The operating system gave no threads.
    Threads {
        reason: String,
    },
}

impl Failure for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Checkpoint { .. } => Some("nothing was written; all problems are listed above".to_owned()),
            Self::Recipe(_) => Some("the README explains recipes".to_owned()),
            Self::Output(error) => error.hint(),
            Self::Usage { .. } => None,
            Self::Read { .. } => None,
            Self::Changed { .. } => Some("wait until nobody writes to the checkpoint, then pack again".to_owned()),
            Self::NonFinite { .. } => Some(
                "the checkpoint may be damaged: fetch the file again; `--allow-nonfinite` packs it as it is, with the recipe lossless only".to_owned(),
            ),
            Self::TooLarge { .. } => Some("give this tensor `encoding = \"source\"` in a recipe of your own".to_owned()),
            Self::Format(error) => Failure::hint(error),
            Self::Threads { .. } => None,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Checkpoint { .. }
            | Self::Changed { .. }
            | Self::NonFinite { .. }
            | Self::TooLarge { .. } => Exit::BadSource,
            Self::Recipe(_) | Self::Usage { .. } => Exit::Usage,
            Self::Output(error) => error.exit(),
            Self::Read { .. } | Self::Threads { .. } => Exit::Failure,
            Self::Format(error) => exit_of_format(error),
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Checkpoint { problems, .. } => problems
                .iter()
                .map(|p| ("problem", p.to_string()))
                .collect(),
            Self::NonFinite {
                file,
                tensor,
                index,
                offset,
                ..
            } => vec![
                ("file", file.clone()),
                ("tensor", tensor.clone()),
                ("index", index.to_string()),
                ("byte", offset.to_string()),
            ],
            Self::Format(error) => Failure::facts(error),
            _ => Vec::new(),
        }
    }
}

/// While a bundle is written, whatever the disk gives back wrong is a failure of the work, not a verdict on a bundle.
fn exit_of_format(error: &qpx_format::Error) -> Exit {
    match error.kind() {
        qpx_format::error::Kind::OutputRefused => Exit::OutputRefused,
        _ => Exit::Failure,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint { folder, problems } => {
                match problems.len() {
                    1 => write!(f, "the checkpoint {} is unfit", folder.display())?,
                    n => write!(
                        f,
                        "the checkpoint {} is unfit: {n} problems",
                        folder.display()
                    )?,
                }
                for problem in problems {
                    write!(f, "\n  - {problem}")?;
                }
                Ok(())
            }
            Self::Recipe(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
            Self::Usage { flag, reason } => write!(f, "{flag} {reason}"),
            Self::Read {
                file,
                doing,
                source,
            } => write!(f, "{doing} {} failed: {source}", file.display()),
            Self::Changed { file, how } => {
                write!(f, "{} changed while it was read: {how}", file.display())
            }
            Self::NonFinite {
                file,
                tensor,
                index,
                value,
                offset,
            } => write!(
                f,
                "{tensor} holds {value} at index {index}\n  file  {file}, byte {offset}"
            ),
            Self::TooLarge {
                file,
                tensor,
                index,
                value,
                encoding,
            } => write!(
                f,
                "{tensor} holds {value:e} at index {index}, which is beyond what {encoding} can hold\n  file  {file}"
            ),
            Self::Format(error) => error.fmt(f),
            Self::Threads { reason } => write!(f, "worker threads can't be started: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Recipe(error) => Some(error),
            Self::Output(error) => Some(error),
            Self::Read { source, .. } => Some(source),
            Self::Format(error) => Some(error),
            _ => None,
        }
    }
}

impl From<qpx_format::Error> for Error {
    fn from(error: qpx_format::Error) -> Self {
        Self::Format(error)
    }
}

impl From<RecipeError> for Error {
    fn from(error: RecipeError) -> Self {
        Self::Recipe(error)
    }
}

impl From<OutputError> for Error {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}
