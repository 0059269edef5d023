//! The manifest: everything that a bundle says about itself, as JSON.

use crate::role::{Part, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A bundle's manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Features that a reader must know to read the bundle; a name it does not know is refused.
    pub requires: Vec<String>,
    /// Facts that can be recomputed from the bundle's bytes; a reader checks them.
    pub checked: Checked,
    /// Facts that the writer vouches for: origin, licence, tool.
    pub claimed: Claimed,
}

/// Facts that a reader recomputes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The resolved configuration that a lane needs, with `family` in it (SPEC.md: architecture).
    pub architecture: serde_json::Map<String, serde_json::Value>,
    /// How many weights there are.
    pub parameters: Parameters,
    /// Tensors, weights and bytes by encoding.
    pub census: BTreeMap<String, Census>,
    /// The segments, in file order; empty ones are left out.
    pub segments: Vec<Segment>,
    /// Attached files, in file order.
    pub attached: Vec<Attached>,
    /// Tensors outside expert records, in file order.
    pub tensors: Vec<Tensor>,
    /// Expert tensors: one row per layer and part, in file order (layer, then part).
    pub experts: Vec<ExpertRow>,
    /// Roles that share another role's bytes (a tied output layer).
    pub aliases: Vec<Alias>,
}

/// How many weights a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Weights of all tensors but kept ones, padding not counted; an alias counts nothing.
    pub total: u64,
    /// Weights that one token touches: all of `core`, the output layer, one row of the embedding, and the chosen experts.
    pub active: u64,
}

/// What is stored in one encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Tensors; each expert's part is one.
    pub tensors: u64,
    /// Weights, padding not counted.
    pub weights: u64,
    /// Stored bytes.
    pub bytes: u64,
}

/// The segments that a bundle may have, in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "SPEC.md has a chapter on them")]
pub enum SegmentKind {
    Attached,
    Core,
    Head,
    Experts,
    Draft,
    Rows,
    Kept,
}

impl SegmentKind {
    /// The word in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Core => "core",
            Self::Head => "head",
            Self::Experts => "experts",
            Self::Draft => "draft",
            Self::Rows => "rows",
            Self::Kept => "kept",
        }
    }

    /// The leaf size that the writer takes: small where a reader wants a few rows at a time.
    pub(crate) fn leaf_bytes(self) -> u64 {
        match self {
            Self::Rows => 64 << 10,
            _ => 4 << 20,
        }
    }
}

/// One segment: a page-aligned range of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segment {
    /// Which.
    pub kind: SegmentKind,
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes, a multiple of the page.
    pub length: u64,
    /// Largest leaf, in bytes.
    pub leaf_bytes: u64,
}

/// An attached file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attached {
    /// Name as in the source folder (`tokenizer.json`), or `source/NAME.header` for a shard's header.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// First stored byte in the file.
    pub offset: u64,
    /// Stored (compressed) bytes.
    pub stored: u64,
    /// Bytes after decompression.
    pub length: u64,
    /// How it is stored.
    pub compression: Compression,
}

/// What an attached file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it; SPEC.md lists them")]
pub enum Purpose {
    Tokenizer,
    Config,
    GenerationConfig,
    ChatTemplate,
    Licence,
    Card,
    SourceHeader,
    SourceIndex,
    Other,
}

/// How an attached file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Compression {
    None,
    Zstd,
}

/// One tensor outside expert records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tensor {
    /// What it is.
    pub role: String,
    /// The name of its encoding.
    pub encoding: String,
    /// Its shape, rows first; padding of encoded rows is not in it.
    pub shape: Vec<u64>,
    /// The segment it lies in.
    pub segment: SegmentKind,
    /// First byte in the file.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Where its values came from.
    pub source: Source,
}

/// One part of all experts of one layer. Expert `e` has it at `base + e * stride`, `length` bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExpertRow {
    /// The layer.
    pub layer: u64,
    /// Which matrix.
    pub part: Part,
    /// `experts`, or `draft` for a prediction layer's.
    pub segment: SegmentKind,
    /// The name of its encoding.
    pub encoding: String,
    /// One expert's shape. [rows, columns]
    pub shape: Vec<u64>,
    /// Offset in the file of expert 0's part.
    pub base: u64,
    /// Bytes from one expert's record to the next, a multiple of the page.
    pub stride: u64,
    /// Number of experts.
    pub count: u64,
    /// Stored bytes of one expert's part.
    pub length: u64,
    /// Where the values came from; in `name`, `{expert}` stands for the expert's number.
    pub source: Source,
}

/// Which bytes of the checkpoint a tensor was made from.
///
/// Expert `e` of an [`ExpertRow`] was made from the bytes `start + e * stride ..` of the tensor `name` (its data, row-major).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The tensor's name in the checkpoint.
    pub name: String,
    /// Its dtype there, as safetensors writes it (`BF16`).
    pub dtype: String,
    /// First byte within the source tensor's data (0 unless a fused tensor was split).
    pub start: u64,
    /// Bytes from one expert's piece to the next within the source tensor (0 when each expert has its own tensor).
    pub stride: u64,
}

/// A role whose bytes are another role's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Alias {
    /// The role that has no bytes of its own.
    pub role: String,
    /// The role whose bytes it shares.
    pub of: String,
    /// The checkpoint's tensor that held an equal copy, where there was one.
    pub source: Option<Source>,
}

/// What the writer vouches for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claimed {
    /// The program that wrote the bundle.
    pub tool: Tool,
    /// Where the checkpoint came from.
    pub origin: Origin,
    /// The licence as the model card names it.
    pub licence: Option<String>,
    /// How tensors were encoded.
    pub recipe: Recipe,
}

/// A program and its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `qpx-pack`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Where a checkpoint came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// As stated by the user (`hf:owner/name`), if stated.
    pub stated: Option<String>,
    /// Every file of the checkpoint, in the order of their names.
    pub files: Vec<SourceFile>,
    /// Tensors that were left out, and why. A `lossless` bundle has none.
    pub dropped: Vec<Dropped>,
}

/// One file of the checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its name within the folder, `/` between parts.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 in hex (64 digits); of a file left out it is absent.
    pub sha256: Option<String>,
    /// What became of it.
    pub became: Became,
}

/// What became of a file of the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it; SPEC.md lists them")]
pub enum Became {
    Weights,
    Attached,
    LeftOut,
}

/// A tensor that is not in the bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dropped {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

/// The recipe a bundle was made by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// `lossless`, `q4`, or a file's stem.
    pub name: String,
    /// The recipe's whole text (TOML).
    pub text: String,
}

impl Manifest {
    /// The tensor, alias resolved, that has `role`.
    pub fn tensor(&self, role: &Role) -> Option<&Tensor> {
        let name = self
            .checked
            .aliases
            .iter()
            .find(|a| a.role == role.as_str())
            .map_or(role.as_str(), |a| a.of.as_str());
        self.checked.tensors.iter().find(|t| t.role == name)
    }
}
