//! Pieces cut into units of work. A unit fills one leaf of the bundle, so units need nothing of each other: any of them may be
//! done first, by any thread. Rows that straddle two leaves are read once and encoded twice.

use crate::plan::{Piece, Target};
use qpx_format::layout::Slot;
use qpx_kernels::Encoding;
use std::ops::Range;

/// Largest read of bytes that are not stored.
const COPY_BYTES: u64 = 4 << 20;

/// One unit of work.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub piece: &'a Piece,
    /// Bytes of the piece that it needs.
    pub source: Range<u64>,
    pub work: Work,
    /// Whether it is the only unit of its piece, and whether it is the last.
    pub alone: bool,
    pub last: bool,
}

/// What is to be done with a unit's bytes.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing but digests of the file.
    Pass,
    /// Store them as they are.
    Store {
        offset: u64,
        leaf: u64,
        slot_source: u64,
    },
    /// Encode rows, and store a part of what comes out.
    Encode {
        offset: u64,
        leaf: u64,
        slot_source: u64,
        encoding: &'static Encoding,
        columns: u64,
        /// The part of the encoded rows that belongs to the leaf.
        stored: Range<u64>,
    },
}

/// The units of `piece`, in the order of its bytes.
pub(super) fn of(piece: &Piece) -> Vec<Unit<'_>> {
    let mut units = Vec::new();
    match &piece.target {
        Target::Copy => {
            let mut start = 0;
            while start < piece.length {
                let end = piece.length.min(start + COPY_BYTES);
                units.push((start..end, Work::Pass));
                start = end;
            }
        }
        Target::Same { slot } => {
            for (range, leaf) in leaves(slot) {
                let work = Work::Store {
                    offset: slot.offset + range.start,
                    leaf,
                    slot_source: slot.source,
                };
                units.push((range, work));
            }
        }
        Target::Encoded {
            slot,
            encoding,
            columns,
        } => {
            let source_row = columns * piece.dtype.width();
            let row = columns.div_ceil(encoding.block as u64) * encoding.bytes as u64;
            for (range, leaf) in leaves(slot) {
                let rows = range.start / row..range.end.div_ceil(row);
                let work = Work::Encode {
                    offset: slot.offset + range.start,
                    leaf,
                    slot_source: slot.source,
                    encoding,
                    columns: *columns,
                    stored: range.start - rows.start * row..range.end - rows.start * row,
                };
                units.push((rows.start * source_row..rows.end * source_row, work));
            }
        }
    }
    let count = units.len();
    let of_pair = |(number, (source, work))| Unit {
        piece,
        source,
        work,
        alone: count == 1,
        last: number + 1 == count,
    };
    units.into_iter().enumerate().map(of_pair).collect()
}

fn leaves(slot: &Slot) -> impl Iterator<Item = (Range<u64>, u64)> + '_ {
    (0..).map_while(|n| slot.leaf(n))
}

impl Piece {
    /// Where its source digest goes; `None` for a copy.
    pub(super) fn slot(&self) -> Option<&Slot> {
        match &self.target {
            Target::Copy => None,
            Target::Same { slot } | Target::Encoded { slot, .. } => Some(slot),
        }
    }
}
