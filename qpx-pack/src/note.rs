//! What a user should know about a checkpoint although it does not stand in the way.

use crate::problem::plural;
use std::fmt;

/// A remark of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Note {
    NotEntered {
        name: String,
    },
    LeftOut {
        name: String,
        bytes: u64,
    },
    StrayWeights {
        file: String,
        why: String,
    },
    Unaligned {
        file: String,
        tensors: u64,
    },
    TotalSize {
        index: String,
        stated: u64,
        found: u64,
    },
    Prefix {
        found: String,
    },
    Deduplicated {
        tensor: String,
        holder: String,
    },
    HeadCopy {
        head: String,
        embedding: String,
    },
    Kept {
        tensors: Vec<String>,
    },
    TokenBeyond {
        id: u64,
        rows: u64,
    },
    EndTokenBeyond {
        id: u64,
        rows: u64,
    },
    NoTemplate,
    Narrow {
        roles: Vec<String>,
        columns: u64,
        wide: String,
        narrow: String,
    },
    UnusedRule {
        pattern: String,
    },
}

impl Note {
    /// Whether it only names a file that does not travel, which summaries list by themselves.
    pub(crate) fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEntered { name } => write!(f, "the folder {name} was not entered"),
            Self::LeftOut { name, bytes } => write!(f, "left out: {name} ({bytes} bytes)"),
            Self::StrayWeights { file, why } => write!(f, "{file} is not used: {why}"),
            Self::Unaligned { file, tensors } => write!(
                f,
                "{file}: the data of {tensors} {} is not aligned (valid, slower for other readers)",
                plural(*tensors, "tensor")
            ),
            Self::TotalSize {
                index,
                stated,
                found,
            } => write!(
                f,
                "{index} states a total of {stated} bytes, the shards hold {found}"
            ),
            Self::Prefix { found } => {
                write!(f, "tensor names begin with `{found}` instead of `model.`")
            }
            Self::Deduplicated { tensor, holder } => write!(
                f,
                "{tensor} has no data of its own: the header's metadata says it is {holder}"
            ),
            Self::HeadCopy { head, embedding } => {
                write!(
                    f,
                    "{head} equals {embedding} byte for byte and is stored once"
                )
            }
            Self::Kept { tensors } => write!(
                f,
                "kept unused: {} {}, such as {}",
                tensors.len(),
                plural(tensors.len() as u64, "tensor"),
                tensors.first().map_or("", String::as_str)
            ),
            Self::TokenBeyond { id, rows } => write!(
                f,
                "tokenizer.json gives out ids up to {id}, but the embedding has {rows} rows"
            ),
            Self::EndTokenBeyond { id, rows } => write!(
                f,
                "the end token {id} can never be produced: the output layer has {rows} rows"
            ),
            Self::NoTemplate => f.write_str(
                "the checkpoint has no chat template: conversations will not be possible",
            ),
            Self::Narrow {
                roles,
                columns,
                wide,
                narrow,
            } => write!(
                f,
                "{narrow} instead of {wide}, whose blocks rows of {columns} would fill too badly: {}",
                roles.join(", ")
            ),
            Self::UnusedRule { pattern } => {
                write!(f, "the recipe's rule `{pattern}` met no tensor")
            }
        }
    }
}
