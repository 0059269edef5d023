//! Where every stored item lies, in file order, without a list of all experts: a layer of experts is one run.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{
    manifest::{Manifest, SegmentKind},
    role::Role,
};
use std::ops::Range;

/// Who a run's bytes belong to.
#[derive(Clone, Debug)]
pub(crate) enum Owner {
    /// Number in the list of attached files.
    Attached(usize),
    /// Number in the list of tensors.
    Tensor(usize),
    /// All experts of one layer.
    Experts {
        count: u64,
        stride: u64,
        /// Leaves of one record.
        record_leaves: u64,
        parts: Vec<PartRun>,
    },
}

/// One part of the records of a layer.
#[derive(Clone, Debug)]
pub(crate) struct PartRun {
    /// Number in the list of expert rows.
    pub row: usize,
    /// Where in the record.
    pub delta: u64,
    pub length: u64,
    /// Number of its first leaf within the record's.
    pub leaf: u64,
    pub leaves: u64,
}

/// A tensor, an attached file, or a layer of experts.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub owner: Owner,
    pub segment: SegmentKind,
    pub offset: u64,
    pub length: u64,
    pub leaf_bytes: u64,
    pub first_leaf: u64,
    pub leaves: u64,
    pub first_source: u64,
    pub sources: u64,
}

/// One stored item: what leaves are cut from.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub what: What,
    pub segment: SegmentKind,
    pub offset: u64,
    pub length: u64,
    pub leaf_bytes: u64,
    pub first_leaf: u64,
    pub leaves: u64,
    /// Number of its source digest; attached files have none.
    pub source: Option<u64>,
}

/// What an item is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Attached(usize),
    Tensor(usize),
    Expert { row: usize, expert: u64 },
}

/// All runs in file order, and what is counted over them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    runs: Vec<Run>,
    /// Run of each tensor of the list.
    tensors: Vec<usize>,
    /// Run, and part within the record, of each expert row of the list.
    rows: Vec<(usize, usize)>,
    leaves: u64,
    sources: u64,
}

impl Index {
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Number of source pieces.
    pub fn sources(&self) -> u64 {
        self.sources
    }

    /// Adds the next run in file order and numbers its leaves and sources.
    pub fn push(&mut self, mut run: Run) {
        run.first_leaf = self.leaves;
        run.first_source = self.sources;
        self.leaves = self.leaves.saturating_add(run.leaves);
        self.sources = self.sources.saturating_add(run.sources);
        let at = self.runs.len();
        match &run.owner {
            Owner::Attached(_) => {}
            Owner::Tensor(_) => self.tensors.push(at),
            Owner::Experts { parts, .. } => {
                self.rows.extend((0..parts.len()).map(|part| (at, part)));
            }
        }
        self.runs.push(run);
    }

    /// Moves everything `by` bytes back.
    pub fn shift(&mut self, by: u64) {
        for run in &mut self.runs {
            run.offset = run.offset.saturating_add(by);
        }
    }

    /// Every item in file order.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.runs
            .iter()
            .flat_map(|run| (0..run.items()).filter_map(|n| run.item(n)))
    }

    /// The item that leaf `number` is cut from.
    pub fn item_of_leaf(&self, number: u64) -> Option<Item> {
        let i = self
            .runs
            .partition_point(|r| r.first_leaf.saturating_add(r.leaves) <= number);
        let run = self.runs.get(i)?;
        let within = number.checked_sub(run.first_leaf)?;
        match &run.owner {
            Owner::Experts {
                record_leaves,
                parts,
                ..
            } => {
                let expert = within.checked_div(*record_leaves)?;
                let leaf = within.checked_rem(*record_leaves)?;
                let part = parts
                    .iter()
                    .position(|p| leaf < p.leaf.saturating_add(p.leaves))?;
                run.expert(expert, part)
            }
            _ => run.item(0),
        }
    }

    /// The item that all of `bytes` belong to.
    pub fn item_of_bytes(&self, bytes: &Range<u64>) -> Option<Item> {
        let i = self
            .runs
            .partition_point(|r| r.offset.saturating_add(r.length) <= bytes.start);
        let run = self.runs.get(i)?;
        let within = bytes.start.checked_sub(run.offset)?;
        let item = match &run.owner {
            Owner::Experts { stride, parts, .. } => {
                let expert = within.checked_div(*stride)?;
                let at = within.checked_rem(*stride)?;
                let part = parts
                    .iter()
                    .position(|p| at < p.delta.saturating_add(p.length))?;
                run.expert(expert, part)?
            }
            _ => run.item(0)?,
        };
        (item.offset <= bytes.start && bytes.end <= item.end()).then_some(item)
    }

    /// The attached file at `number` of the list.
    pub fn attached(&self, number: usize) -> Option<Item> {
        // Attached files are the first runs.
        self.runs
            .get(number)
            .filter(|r| matches!(r.owner, Owner::Attached(n) if n == number))
            .and_then(|r| r.item(0))
    }

    /// The tensor at `number` of the list.
    pub fn tensor(&self, number: usize) -> Option<Item> {
        self.runs.get(*self.tensors.get(number)?)?.item(0)
    }

    /// Expert `expert` of the row at `number` of the list.
    pub fn expert(&self, number: usize, expert: u64) -> Option<Item> {
        let (run, part) = self.rows.get(number)?;
        self.runs.get(*run)?.expert(expert, *part)
    }
}

impl Run {
    /// Number of items.
    fn items(&self) -> u64 {
        match self.owner {
            Owner::Experts { .. } => self.sources,
            _ => 1,
        }
    }

    fn item(&self, n: u64) -> Option<Item> {
        let what = match &self.owner {
            Owner::Attached(i) => What::Attached(*i),
            Owner::Tensor(i) => What::Tensor(*i),
            Owner::Experts { parts, .. } => {
                let parts = u64::try_from(parts.len()).ok()?;
                let part = usize::try_from(n.checked_rem(parts)?).ok()?;
                return self.expert(n.checked_div(parts)?, part);
            }
        };
        Some(Item {
            what,
            segment: self.segment,
            offset: self.offset,
            length: self.length,
            leaf_bytes: self.leaf_bytes,
            first_leaf: self.first_leaf,
            leaves: self.leaves,
            source: (self.sources == 1).then_some(self.first_source),
        })
    }

    /// Part number `part` of the record of `expert`.
    fn expert(&self, expert: u64, part: usize) -> Option<Item> {
        let Owner::Experts {
            count,
            stride,
            record_leaves,
            parts,
            ..
        } = &self.owner
        else {
            return None;
        };
        if expert >= *count {
            return None;
        }
        let run = parts.get(part)?;
        let parts = u64::try_from(parts.len()).ok()?;
        Some(Item {
            what: What::Expert {
                row: run.row,
                expert,
            },
            segment: self.segment,
            offset: self
                .offset
                .checked_add(stride.checked_mul(expert)?)?
                .checked_add(run.delta)?,
            length: run.length,
            leaf_bytes: self.leaf_bytes,
            first_leaf: self
                .first_leaf
                .checked_add(record_leaves.checked_mul(expert)?)?
                .checked_add(run.leaf)?,
            leaves: run.leaves,
            source: Some(
                self.first_source
                    .checked_add(parts.checked_mul(expert)?)?
                    .checked_add(u64::try_from(part).ok()?)?,
            ),
        })
    }
}

impl Item {
    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The bytes of its leaf number `n`, counted from 0 within the item.
    pub fn leaf(&self, n: u64) -> Range<u64> {
        let start = self
            .offset
            .saturating_add(n.saturating_mul(self.leaf_bytes));
        start..start.saturating_add(self.leaf_bytes).min(self.end())
    }

    /// How a user reads it: a role, or an attached file's name.
    pub fn label(&self, manifest: &Manifest) -> String {
        let checked = &manifest.checked;
        match self.what {
            What::Attached(i) => checked.attached.get(i).map(|a| a.name.clone()),
            What::Tensor(i) => checked.tensors.get(i).map(|t| t.role.clone()),
            What::Expert { row, expert } => checked.experts.get(row).map(|r| {
                let word = if r.segment == SegmentKind::Draft {
                    "draft"
                } else {
                    "layer"
                };
                Role::expert(word, r.layer, expert, r.part)
            }),
        }
        .unwrap_or_default()
    }
}
