//! What can be wrong with a recipe.

use super::BUILT_IN;
use std::{fmt, io, path::PathBuf};

/// Why a recipe can't be used.
#[derive(Debug)]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum RecipeError {
    Unknown {
        name: String,
    },
    Unreadable {
        file: PathBuf,
        source: io::Error,
    },
    NameTaken {
        file: PathBuf,
    },
    Syntax {
        name: String,
        reason: String,
    },
    Rule {
        name: String,
        number: usize,
        reason: String,
    },
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let known: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                write!(
                    f,
                    "there is no recipe `{name}` (known: {}, or a file that ends in .toml)",
                    known.join(", ")
                )
            }
            Self::Unreadable { file, source } => {
                write!(f, "the recipe {} can't be read: {source}", file.display())
            }
            Self::NameTaken { file } => write!(
                f,
                "the recipe {} bears the name of a built-in recipe and differs from it",
                file.display()
            ),
            Self::Syntax { name, reason } => {
                write!(f, "the recipe `{name}` is no valid TOML recipe: {reason}")
            }
            Self::Rule {
                name,
                number,
                reason,
            } => write!(f, "rule {number} of the recipe `{name}`: {reason}"),
        }
    }
}

impl std::error::Error for RecipeError {}
