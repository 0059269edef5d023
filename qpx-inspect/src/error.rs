//! Why a command could not do its work, said so that a user can act on it.

use qpx_console::{Exit, Failure, exit_of};
use std::{fmt, io, path::PathBuf};

/// Why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The bundle can't be read, or an output not be written.
    Format(qpx_format::Error),
    /// A folder can't be made, or a file not be looked at.
    Io {
        /// The file or folder.
        file: PathBuf,
        /// What was being done, as in "cannot … FILE".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no attached file of that name.
    NoAttached {
        /// The bundle.
        file: PathBuf,
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// There is no tensor of that role.
    NoTensor {
        /// The bundle.
        file: PathBuf,
        /// The role.
        role: String,
    },
    /// The bundle does not hold its source bit for bit.
    NotExact {
        /// The bundle.
        file: PathBuf,
        /// The recipe's name.
        recipe: String,
        /// One line for each reason.
        reasons: Vec<String>,
    },
    /// Outputs that exist.
    Exist {
        /// All of them.
        files: Vec<PathBuf>,
    },
    /// An output is the bundle itself.
    IsBundle {
        /// The output.
        file: PathBuf,
    },
    /// A restored file is not what the bundle says it was.
    NotRestored {
        /// The bundle.
        bundle: PathBuf,
        /// The file that was to be restored.
        name: String,
        /// In which way.
        reason: String,
    },
}

impl From<qpx_format::Error> for Error {
    fn from(error: qpx_format::Error) -> Self {
        Self::Format(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => return error.fmt(f),
            Self::Io {
                file,
                doing,
                source,
            } => write!(f, "cannot {doing} {}: {source}", file.display())?,
            Self::NoAttached { name, .. } => write!(f, "no attached file is called {name}")?,
            Self::NoTensor { role, .. } => write!(f, "no tensor has the role {role}")?,
            Self::NotExact { recipe, .. } => write!(
                f,
                "the checkpoint can't be restored: the bundle (recipe {recipe}) does not hold it bit for bit"
            )?,
            Self::Exist { files } if files.len() == 1 => f.write_str("the output exists")?,
            Self::Exist { files } => write!(f, "{} outputs exist", files.len())?,
            Self::IsBundle { file } => {
                write!(f, "the output {} is the bundle itself", file.display())?;
            }
            Self::NotRestored { name, .. } => write!(f, "{name} does not come back as it was")?,
        }
        for (name, value) in self.facts() {
            write!(f, "\n  {name:<5} {value}")?;
        }
        Ok(())
    }
}

impl Failure for Error {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let path = |file: &PathBuf| ("file", file.display().to_string());
        match self {
            Self::Format(error) => error.facts(),
            Self::Io { .. } | Self::IsBundle { .. } => Vec::new(),
            Self::NoTensor { file, .. } => vec![path(file)],
            Self::NoAttached { file, known, .. } => vec![path(file), ("known", known.join(", "))],
            Self::NotExact { file, reasons, .. } => {
                let reasons = reasons.iter().map(|r| ("lossy", r.clone()));
                std::iter::once(path(file)).chain(reasons).collect()
            }
            Self::Exist { files } => files.iter().map(path).collect(),
            Self::NotRestored { bundle, reason, .. } => {
                vec![path(bundle), ("found", reason.clone())]
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Format(qpx_format::Error::Exists { .. }) | Self::Exist { .. } => {
                "choose another place, or replace what is there with `--force`".to_owned()
            }
            Self::Format(error) => return error.hint(),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    "check the permissions of the folder".to_owned()
                }
                _ => return None,
            },
            Self::NoAttached { .. } => "`--attached` without a name writes them all".to_owned(),
            Self::NoTensor { file, .. } => {
                format!("`qpx-inspect tensors {}` lists the roles", file.display())
            }
            Self::NotExact { .. } => {
                "`--tensor` gives single tensors as they are; only a bundle of the recipe lossless restores its checkpoint".to_owned()
            }
            Self::IsBundle { .. } => "choose another name for the output".to_owned(),
            Self::NotRestored { bundle, .. } => format!(
                "nothing was written under its name; `qpx-inspect verify {}` tells whether the bundle is intact",
                bundle.display()
            ),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Format(error) => exit_of(error),
            Self::Io { .. } => Exit::Failure,
            Self::NoAttached { .. } | Self::NoTensor { .. } | Self::NotExact { .. } => {
                Exit::Failure
            }
            Self::Exist { .. } | Self::IsBundle { .. } => Exit::OutputRefused,
            Self::NotRestored { .. } => Exit::Altered,
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Format(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
