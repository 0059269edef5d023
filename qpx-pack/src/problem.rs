//! What can make a checkpoint unfit. A plan gathers all problems and reports them at once.

use crate::source::fault::Fault;
use std::{collections::BTreeMap, fmt};

/// One reason why a checkpoint can't become a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Problem {
    Shard {
        file: String,
        fault: Fault,
    },
    Unreadable {
        file: String,
        reason: String,
    },
    Json {
        file: String,
        reason: String,
    },
    /// The index does not have the form of an index.
    Index {
        file: String,
        reason: String,
    },
    NoWeights {
        others: Vec<String>,
    },
    NoIndex {
        files: Vec<String>,
    },
    MissingShard {
        index: String,
        file: String,
        tensors: u64,
    },
    StaleIndex {
        index: String,
        named: u64,
        absent: u64,
        unnamed: Vec<String>,
    },
    AbsentTensor {
        index: String,
        tensor: String,
        shard: String,
        holder: Option<String>,
    },
    OmittedTensors {
        index: String,
        shard: String,
        tensors: Vec<String>,
    },
    Stray {
        file: String,
        tensors: Vec<String>,
    },
    StoredTwice {
        tensor: String,
        first: String,
        second: String,
    },
    MissingFile {
        file: &'static str,
        need: &'static str,
    },
    UnknownFamily {
        found: Option<String>,
        known: Vec<&'static str>,
    },
    Setting {
        key: String,
        expected: String,
        found: String,
    },
    Quantised {
        scheme: String,
        evidence: String,
    },
    MissingTensors {
        tensors: Vec<String>,
    },
    Unmapped {
        family: &'static str,
        tensors: Vec<String>,
    },
    BeyondLayers {
        layers: u64,
        tensors: Vec<String>,
    },
    BeyondExperts {
        experts: u64,
        tensors: Vec<String>,
    },
    Prefix {
        found: String,
        expected: &'static str,
    },
    Shape {
        tensor: String,
        shard: String,
        expected: Vec<u64>,
        found: Vec<u64>,
        more: u64,
    },
    Dtype {
        tensor: String,
        shard: String,
        found: &'static str,
    },
    MixedExperts {
        layer: u64,
        part: &'static str,
        first: &'static str,
        other: &'static str,
        tensor: String,
    },
    BothForms {
        layer: u64,
        fused: String,
        single: String,
    },
    HeadDiffers {
        embedding: String,
        head: String,
        reason: String,
    },
    Recipe {
        role: String,
        reason: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard { file, fault } => write!(f, "{file} {fault}"),
            Self::Unreadable { file, reason } => write!(f, "{file} can't be read: {reason}"),
            Self::Json { file, reason } => write!(f, "{file} is no valid JSON: {reason}"),
            Self::Index { file, reason } => write!(f, "{file} is no weight index: {reason}"),
            Self::NoWeights { others } => {
                f.write_str("no safetensors file with weights is in the folder")?;
                if others.is_empty() {
                    return Ok(());
                }
                write!(f, "; {} can't be read as such", others.join(", "))
            }
            Self::NoIndex { files } => write!(
                f,
                "several weight files and no index that says which belong together: {}",
                files.join(", ")
            ),
            Self::MissingShard {
                index,
                file,
                tensors,
            } => write!(
                f,
                "{file} is missing: {index} places {tensors} {} in it",
                plural(*tensors, "tensor")
            ),
            Self::StaleIndex {
                index,
                named,
                absent,
                unnamed,
            } => write!(
                f,
                "{index} looks stale: {absent} of the {named} shards it names are absent, while it does not name {}",
                unnamed.join(", ")
            ),
            Self::AbsentTensor {
                index,
                tensor,
                shard,
                holder,
            } => {
                write!(
                    f,
                    "{index} places {tensor} in {shard}, which does not hold it"
                )?;
                match holder {
                    Some(holder) => write!(f, " ({holder} does)"),
                    None => Ok(()),
                }
            }
            Self::OmittedTensors {
                index,
                shard,
                tensors,
            } => write!(
                f,
                "{shard} holds {} that the index {index} omits: {}",
                counted(tensors, "tensor"),
                list(tensors)
            ),
            Self::Stray { file, tensors } => write!(
                f,
                "{file} stands beside the indexed shards and holds {} that the index omits: {}",
                counted(tensors, "tensor"),
                list(tensors)
            ),
            Self::StoredTwice {
                tensor,
                first,
                second,
            } => {
                write!(f, "{tensor} is stored twice, in {first} and in {second}")
            }
            Self::MissingFile { file, need } => write!(f, "{file} is missing: {need}"),
            Self::UnknownFamily { found, known } => {
                match found {
                    Some(found) => write!(f, "config.json: the model_type `{found}` is unknown")?,
                    None => f.write_str("config.json has no model_type")?,
                }
                write!(f, " (known: {})", known.join(", "))
            }
            Self::Setting {
                key,
                expected,
                found,
            } => {
                write!(f, "{key}: expected {expected}, found {found}")
            }
            Self::Quantised { scheme, evidence } => write!(
                f,
                "the checkpoint is quantised already, by a scheme that this version can't read: {scheme} ({evidence})"
            ),
            Self::MissingTensors { tensors } => write!(
                f,
                "{} missing: {}",
                match tensors.len() {
                    1 => "1 tensor is".to_owned(),
                    n => format!("{n} tensors are"),
                },
                list(tensors)
            ),
            Self::Unmapped { family, tensors } => write!(
                f,
                "{} without a place in the family {family}: {}",
                counted(tensors, "tensor"),
                list(tensors)
            ),
            Self::BeyondLayers { layers, tensors } => write!(
                f,
                "config.json says {layers} layers, but the shards hold {} of later ones: {}",
                counted(tensors, "tensor"),
                list(tensors)
            ),
            Self::BeyondExperts { experts, tensors } => write!(
                f,
                "config.json says {experts} experts, but the shards hold {} of later ones: {}",
                counted(tensors, "tensor"),
                list(tensors)
            ),
            Self::Prefix { found, expected } => write!(
                f,
                "tensor names begin with `{found}` where `{expected}` is expected: extract the language model, or merge the adapter, first"
            ),
            Self::Shape {
                tensor,
                shard,
                expected,
                found,
                more,
            } => {
                write!(
                    f,
                    "{tensor} has the shape {found:?} in {shard}, config.json asks for {expected:?}"
                )?;
                if *more > 0 {
                    write!(f, "; the same for {more} more of its kind")?;
                }
                Ok(())
            }
            Self::Dtype {
                tensor,
                shard,
                found,
            } => write!(
                f,
                "{tensor} is stored as {found} in {shard}; weights must be F32, F16 or BF16"
            ),
            Self::MixedExperts {
                layer,
                part,
                first,
                other,
                tensor,
            } => write!(
                f,
                "the {part} matrices of layer {layer}'s experts differ in dtype: expert 0 has {first}, {tensor} has {other}"
            ),
            Self::BothForms {
                layer,
                fused,
                single,
            } => write!(
                f,
                "layer {layer} has its experts twice, fused ({fused}) and single ({single})"
            ),
            Self::HeadDiffers {
                embedding,
                head,
                reason,
            } => write!(
                f,
                "config.json ties the output layer to the embedding, but {head} differs from {embedding}: {reason}"
            ),
            Self::Recipe { role, reason } => write!(f, "the recipe can't encode {role}: {reason}"),
        }
    }
}

/// `tensor` or `tensors`.
pub(crate) fn plural(count: u64, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

fn counted(items: &[String], word: &str) -> String {
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    format!("{count} {}", plural(count, word))
}

/// Names that are told one by one; of more, those that differ in numbers alone are told together.
const TOLD_SINGLY: usize = 24;

/// All of `names`, each once: singly, or by kind with the numbers replaced by `*` and the first as an example.
fn list(names: &[String]) -> String {
    if names.len() <= TOLD_SINGLY {
        return names.join(", ");
    }
    let mut kinds: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for name in names {
        let kind = kinds.entry(kind(name)).or_insert((0, name));
        kind.0 += 1;
    }
    let told: Vec<_> = kinds
        .into_iter()
        .map(|(kind, (count, first))| match count {
            1 => first.to_owned(),
            _ => format!("{kind} ({count}, such as {first})"),
        })
        .collect();
    told.join(", ")
}

/// A name with each whole number between dots replaced by `*`.
pub(crate) fn kind(name: &str) -> String {
    let words: Vec<_> = name
        .split('.')
        .map(|word| {
            let number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
            if number { "*" } else { word }
        })
        .collect();
    words.join(".")
}
