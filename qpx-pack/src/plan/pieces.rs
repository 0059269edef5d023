//! The data of each shard from front to back: which bytes become which tensor.

use crate::{
    family::map::{Mapping, Range},
    source::{Checkpoint, dtype::Dtype},
};
use qpx_format::{Layout, layout::Slot};
use qpx_kernels::Encoding;
use std::collections::BTreeMap;

/// Bytes of a shard that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// First byte in the shard.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// The tensor's name in the checkpoint.
    pub name: String,
    /// How many of the tensor's values stand before these.
    pub first_index: u64,
    pub dtype: Dtype,
    pub target: Target,
}

/// What becomes of a piece.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Nothing: it equals another one, which the plan has checked.
    Copy,
    /// Stored byte for byte.
    Same { slot: Slot },
    /// Stored in another encoding, row by row.
    Encoded {
        slot: Slot,
        encoding: &'static Encoding,
        columns: u64,
    },
}

/// The pieces of every shard, in the order of their data.
pub(crate) fn of_shards(
    checkpoint: &Checkpoint,
    mapping: &Mapping,
    layout: &Layout,
) -> Vec<Vec<Piece>> {
    let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); checkpoint.shards.len()];
    let mut add = |range: &Range, name: String, start: u64, dtype: Dtype, target: Target| {
        if let Some(list) = pieces.get_mut(range.shard) {
            list.push(Piece {
                offset: range.offset,
                length: range.length,
                name,
                first_index: start / dtype.width(),
                dtype,
                target,
            });
        }
    };
    let checked = &layout.manifest.checked;
    let places: BTreeMap<_, _> = checked
        .tensors
        .iter()
        .enumerate()
        .map(|(i, t)| (t.role.as_str(), (i, t)))
        .collect();
    for tensor in &mapping.tensors {
        let Some((index, placed)) = places.get(tensor.role.as_str()) else {
            continue;
        };
        let slot = layout.tensor_slot(*index);
        let target = target(slot, tensor.dtype, &placed.encoding, &tensor.shape);
        add(&tensor.range, tensor.name.clone(), 0, tensor.dtype, target);
    }
    let rows: BTreeMap<_, _> = checked
        .experts
        .iter()
        .enumerate()
        .map(|(i, r)| ((r.layer, r.part), (i, r)))
        .collect();
    for layer in &mapping.experts {
        for part in &layer.parts {
            let Some((row, placed)) = rows.get(&(layer.layer, part.part)) else {
                continue;
            };
            for (expert, range) in (0_u64..).zip(&part.ranges) {
                let slot = layout.expert_slot(*row, expert);
                let name = part.source.name.replace("{expert}", &expert.to_string());
                let start = part.source.start + part.source.stride * expert;
                let target = target(slot, part.dtype, &placed.encoding, &part.shape);
                add(range, name, start, part.dtype, target);
            }
        }
    }
    if let Some((_, head)) = &mapping.head_copy {
        add(&head.range, head.name.clone(), 0, head.dtype, Target::Copy);
    }
    for list in &mut pieces {
        list.sort_by_key(|piece| (piece.offset, piece.length));
    }
    pieces
}

fn target(slot: Slot, dtype: Dtype, encoding: &str, shape: &[u64]) -> Target {
    match qpx_kernels::encoding::by_name(encoding) {
        Some(encoding) if !encoding.name.eq_ignore_ascii_case(dtype.name) => Target::Encoded {
            slot,
            encoding,
            columns: shape.last().copied().unwrap_or(1),
        },
        _ => Target::Same { slot },
    }
}
