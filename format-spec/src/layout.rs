//! From what a bundle shall hold to where every byte of it lies.

use crate::{Error, manifest::*, role::Part};

/// What a bundle shall hold. [`Draft::layout`] gives every piece its place.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Features a reader must know.
    pub requires: Vec<String>,
    /// The lane's configuration.
    pub architecture: serde_json::Map<String, serde_json::Value>,
    /// What the writer vouches for; SHA-256 fields hold 64 zeros until they are known.
    pub claimed: Claimed,
    /// Files to attach, in this order. Their content is compressed here.
    pub attached: Vec<DraftFile>,
    /// Tensors outside expert records; within a segment they are laid in this order.
    pub tensors: Vec<DraftTensor>,
    /// Expert records: one item per layer.
    pub experts: Vec<DraftExperts>,
    /// Roles without bytes of their own.
    pub aliases: Vec<Alias>,
}

/// A file to attach.
#[derive(Clone, Debug)]
pub struct DraftFile {
    pub name: String,
    pub purpose: Purpose,
    pub content: Vec<u8>,
}

/// A tensor to place.
#[derive(Clone, Debug)]
pub struct DraftTensor {
    pub role: String,
    pub encoding: String,
    pub shape: Vec<u64>,
    pub segment: SegmentKind,
    pub source: Source,
}

/// All experts of one layer.
#[derive(Clone, Debug)]
pub struct DraftExperts {
    pub layer: u64,
    pub segment: SegmentKind,
    pub count: u64,
    pub parts: Vec<DraftPart>,
}

/// One matrix of every expert of a layer.
#[derive(Clone, Debug)]
pub struct DraftPart {
    pub part: Part,
    pub encoding: String,
    pub shape: Vec<u64>,
    pub source: Source,
}

/// A bundle's layout: the manifest (digests still zero) and the place of everything.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The manifest with every offset set.
    pub manifest: Manifest,
    /// Length of the content, up to where stamps begin.
    pub content_length: u64,
    /// Number of leaves, hence of the digest table's first part.
    pub leaves: u64,
    /// Number of source digests, the digest table's second part: one per tensor, then one per expert and part in leaf order.
    pub sources: u64,
}

/// A stored piece that a writer must fill: a tensor, or one expert's part.
#[derive(Clone, Debug)]
pub struct Slot {
    /// First byte in the file.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Number of its first leaf.
    pub first_leaf: u64,
    /// Largest leaf.
    pub leaf_bytes: u64,
    /// Number of its source digest.
    pub source: u64,
}

impl Draft {
    /// Checks the draft against every rule a reader checks, and gives each piece its place.
    pub fn layout(self) -> Result<Layout, Error> {
        todo!()
    }
}

impl Layout {
    /// The slot of the tensor at `index` of `manifest.checked.tensors`.
    pub fn tensor_slot(&self, index: usize) -> Slot {
        let _ = index;
        todo!()
    }
    /// The slot of `expert` in row `row` of `manifest.checked.experts`.
    pub fn expert_slot(&self, row: usize, expert: u64) -> Slot {
        let _ = (row, expert);
        todo!()
    }
}
