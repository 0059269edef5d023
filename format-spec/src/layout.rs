//! From what a bundle shall hold to where every byte of it lies.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{
    Error,
    check::{self, Plan},
    encoding,
    error::Fault,
    index::{Index, Item, Owner},
    json,
    manifest::*,
    preamble::{MAX_MANIFEST_BYTES, data_offset, table_offset_after},
    role::Part,
};
use std::path::Path;

/// How hard attached files are compressed. Part of what makes the same input give the same bytes.
const ZSTD_LEVEL: i32 = 9;

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
    /// Name as in the source folder, or `source/NAME.header`.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// A tensor to place.
#[derive(Clone, Debug)]
pub struct DraftTensor {
    /// What it is.
    pub role: String,
    /// The name of its encoding.
    pub encoding: String,
    /// Its shape, rows first.
    pub shape: Vec<u64>,
    /// Where it goes.
    pub segment: SegmentKind,
    /// Where its values come from.
    pub source: Source,
}

/// All experts of one layer.
#[derive(Clone, Debug)]
pub struct DraftExperts {
    /// The layer.
    pub layer: u64,
    /// `experts`, or `draft` for a prediction layer's.
    pub segment: SegmentKind,
    /// How many experts there are.
    pub count: u64,
    /// The matrices of a record, in the order gate, up, down.
    pub parts: Vec<DraftPart>,
}

/// One matrix of every expert of a layer.
#[derive(Clone, Debug)]
pub struct DraftPart {
    /// Which.
    pub part: Part,
    /// The name of its encoding.
    pub encoding: String,
    /// One expert's shape. [rows, columns]
    pub shape: Vec<u64>,
    /// Where the values come from; in `name`, `{expert}` stands for the expert's number.
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
    /// Number of source digests, the digest table's second part: one per tensor and per expert's part, in the order of the file.
    pub sources: u64,
    /// Bytes of the manifest.
    pub(crate) manifest_length: u64,
    pub(crate) table_offset: u64,
    pub(crate) table_length: u64,
    pub(crate) index: Index,
    /// Stored bytes of each attached file.
    pub(crate) attached: Vec<Vec<u8>>,
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
    ///
    /// Tensors may be given in any order of segments; within one they are laid as given.
    ///
    /// # Errors
    /// [`Error::Broken`] with the rule that the draft breaks.
    pub fn layout(self) -> Result<Layout, Error> {
        let in_no_file = |fault: Fault| fault.in_file(Path::new(""));
        if let Some(feature) = self.requires.first() {
            return Err(in_no_file(Fault::new(
                "3.6",
                "manifest",
                format!("version 1 has no feature `{feature}`"),
            )));
        }
        let (mut manifest, attached) = self.manifest()?;
        let mut plan = check::plan(&manifest).map_err(in_no_file)?;
        manifest.checked.parameters = plan.parameters;
        manifest.checked.census = plan.census.clone();
        manifest.checked.segments = plan.segments.clone();

        // Offsets are written in the manifest, and its length moves them: start small and grow until it fits. Larger
        // offsets never make a shorter manifest, so this ends.
        let mut data = 0;
        loop {
            set_offsets(&mut manifest, &plan, data);
            let text = text(&manifest)?;
            if !json::surely_few_values(&text) {
                // In rare cases the marks are those in strings.
                json::parse(&text)
                    .map_err(|(rule, reason)| in_no_file(Fault::new(rule, "manifest", reason)))?;
            }
            let manifest_length = u64::try_from(text.len()).unwrap_or(u64::MAX);
            if manifest_length > MAX_MANIFEST_BYTES {
                return Err(in_no_file(Fault::new(
                    "2.8",
                    "manifest",
                    format!(
                        "it would have {manifest_length} bytes, more than {MAX_MANIFEST_BYTES}"
                    ),
                )));
            }
            let table_offset = table_offset_after(manifest_length);
            let table_length = plan.table_length();
            let needed = data_offset(table_offset, table_length);
            if needed != data {
                data = needed;
                continue;
            }
            plan.index.shift(data);
            return Ok(Layout {
                content_length: data.saturating_add(plan.length),
                leaves: plan.index.leaves(),
                sources: plan.index.sources(),
                manifest,
                manifest_length,
                table_offset,
                table_length,
                index: plan.index,
                attached,
            });
        }
    }

    /// The manifest with lengths and without offsets, and the stored bytes of attached files.
    fn manifest(self) -> Result<(Manifest, Vec<Vec<u8>>), Error> {
        let stored_bytes = |encoding: &str, shape: &[u64]| {
            // What does not fit is refused with its rule by the checker.
            encoding::by_name(encoding)
                .and_then(|e| e.stored_bytes(shape))
                .unwrap_or(0)
        };
        let mut attached = Vec::new();
        let mut stored = Vec::new();
        for file in self.attached {
            let (compression, bytes) = compress(&file)?;
            attached.push(Attached {
                name: file.name,
                purpose: file.purpose,
                offset: 0,
                stored: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                length: u64::try_from(file.content.len()).unwrap_or(u64::MAX),
                compression,
            });
            stored.push(bytes);
        }
        let mut tensors: Vec<Tensor> = self
            .tensors
            .into_iter()
            .map(|t| Tensor {
                length: stored_bytes(&t.encoding, &t.shape),
                role: t.role,
                encoding: t.encoding,
                shape: t.shape,
                segment: t.segment,
                offset: 0,
                source: t.source,
            })
            .collect();
        tensors.sort_by_key(|t| t.segment);
        let mut experts = Vec::new();
        for layer in self.experts {
            experts.extend(layer.parts.into_iter().map(|p| ExpertRow {
                layer: layer.layer,
                part: p.part,
                segment: layer.segment,
                length: stored_bytes(&p.encoding, &p.shape),
                encoding: p.encoding,
                shape: p.shape,
                base: 0,
                stride: 0,
                count: layer.count,
                source: p.source,
            }));
        }
        experts.sort_by_key(|r| (r.segment, r.layer, r.part));
        let kinds = [
            SegmentKind::Attached,
            SegmentKind::Core,
            SegmentKind::Head,
            SegmentKind::Experts,
            SegmentKind::Draft,
            SegmentKind::Rows,
            SegmentKind::Kept,
        ];
        let segments = kinds
            .into_iter()
            .filter(|kind| {
                (*kind == SegmentKind::Attached && !attached.is_empty())
                    || tensors.iter().any(|t| t.segment == *kind)
                    || experts.iter().any(|r| r.segment == *kind)
            })
            .map(|kind| Segment {
                kind,
                offset: 0,
                length: 0,
                leaf_bytes: kind.leaf_bytes(),
            })
            .collect();
        let manifest = Manifest {
            requires: self.requires,
            checked: Checked {
                architecture: self.architecture,
                parameters: Parameters {
                    total: 0,
                    active: 0,
                },
                census: std::collections::BTreeMap::new(),
                segments,
                attached,
                tensors,
                experts,
                aliases: self.aliases,
            },
            claimed: self.claimed,
        };
        Ok((manifest, stored))
    }
}

/// The manifest as it is written.
pub(crate) fn text(manifest: &Manifest) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(manifest).map_err(|error| {
        Fault::new("3.1", "manifest", format!("it cannot be written: {error}"))
            .in_file(Path::new(""))
    })
}

/// Compresses where that makes a file smaller.
fn compress(file: &DraftFile) -> Result<(Compression, Vec<u8>), Error> {
    let packed = zstd::bulk::compress(&file.content, ZSTD_LEVEL)
        .map_err(Error::io(Path::new(&file.name), "compress"))?;
    Ok(if packed.len() < file.content.len() {
        (Compression::Zstd, packed)
    } else {
        (Compression::None, file.content.clone())
    })
}

/// Writes the planned places into the manifest; the first segment starts at `data`.
fn set_offsets(manifest: &mut Manifest, plan: &Plan, data: u64) {
    let checked = &mut manifest.checked;
    for (segment, planned) in checked.segments.iter_mut().zip(&plan.segments) {
        segment.offset = planned.offset.saturating_add(data);
    }
    for run in plan.index.runs() {
        let offset = run.offset.saturating_add(data);
        match &run.owner {
            Owner::Attached(i) => {
                if let Some(file) = checked.attached.get_mut(*i) {
                    file.offset = offset;
                }
            }
            Owner::Tensor(i) => {
                if let Some(tensor) = checked.tensors.get_mut(*i) {
                    tensor.offset = offset;
                }
            }
            Owner::Experts { stride, parts, .. } => {
                for part in parts {
                    if let Some(row) = checked.experts.get_mut(part.row) {
                        row.base = offset.saturating_add(part.delta);
                        row.stride = *stride;
                    }
                }
            }
        }
    }
}

impl Layout {
    /// The slot of the tensor at `index` of `manifest.checked.tensors`.
    ///
    /// # Panics
    /// When there is no such tensor.
    pub fn tensor_slot(&self, index: usize) -> Slot {
        slot(self.index.tensor(index))
    }

    /// The slot of `expert` in row `row` of `manifest.checked.experts`.
    ///
    /// # Panics
    /// When there is no such row or expert.
    pub fn expert_slot(&self, row: usize, expert: u64) -> Slot {
        slot(self.index.expert(row, expert))
    }
}

#[expect(
    clippy::expect_used,
    reason = "a wrong number is a fault of the calling program, as with an index into a slice"
)]
fn slot(item: Option<Item>) -> Slot {
    let item = item.expect("the layout has this tensor");
    Slot {
        offset: item.offset,
        length: item.length,
        first_leaf: item.first_leaf,
        leaf_bytes: item.leaf_bytes,
        source: item.source.expect("tensors have sources"),
    }
}

impl Slot {
    /// The bytes of leaf `n` of this slot within the slot, and the leaf's number in the table; `None` behind the last.
    pub fn leaf(&self, n: u64) -> Option<(std::ops::Range<u64>, u64)> {
        let start = n
            .checked_mul(self.leaf_bytes)
            .filter(|s| *s < self.length)?;
        let end = start.saturating_add(self.leaf_bytes).min(self.length);
        Some((start..end, self.first_leaf.checked_add(n)?))
    }
}
