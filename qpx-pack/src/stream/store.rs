//! The work on one unit: look for numbers that are none, encode, digest, write.

use super::{
    pool::Block,
    units::{Unit, Work},
};
use crate::Error;
use qpx_format::Writer;
use qpx_kernels::{
    Encoding, Level,
    encoding::{by_name, first_nonfinite_bytes},
};
use rayon::prelude::*;
use std::{borrow::Cow, ops::Range};

/// What all units share.
pub(super) struct Store<'a> {
    pub writer: &'a Writer,
    pub level: Level,
    pub allow_nonfinite: bool,
    /// The shard's name.
    pub file: &'a str,
}

/// Values that one thread encodes in one go.
const VALUES_AT_ONCE: usize = 1 << 15;

/// Scales are stored in half precision: a weight beyond its range can't come back.
const LARGEST_ENCODED: f32 = 65504.0;

impl Store<'_> {
    /// Does a unit whose bytes are in `block`. Says which bytes of the bundle it wrote.
    pub(super) fn unit(&self, unit: &Unit<'_>, block: &Block) -> Result<Range<u64>, Error> {
        self.look(unit, block)?;
        let (offset, leaf, slot_source, bytes) = match &unit.work {
            Work::Pass => return Ok(0..0),
            Work::Store {
                offset,
                leaf,
                slot_source,
            } => (*offset, *leaf, *slot_source, Cow::Borrowed(block.bytes())),
            Work::Encode {
                offset,
                leaf,
                slot_source,
                encoding,
                columns,
                stored,
            } => {
                let rows = self.encode(unit, block.bytes(), encoding, *columns)?;
                let range = to_usize(stored.start)..to_usize(stored.end);
                let stored = match rows.get(range.clone()) {
                    Some(part) if part.len() < rows.len() => Cow::Owned(part.to_vec()),
                    _ => Cow::Owned(rows),
                };
                (*offset, *leaf, *slot_source, stored)
            }
        };
        let digest = *blake3::hash(&bytes).as_bytes();
        self.writer.write_at(offset, &bytes)?;
        self.writer.set_leaf(leaf, digest);
        if unit.alone {
            let same = matches!(unit.work, Work::Store { .. });
            let source = if same {
                digest
            } else {
                *blake3::hash(block.bytes()).as_bytes()
            };
            self.writer.set_source(slot_source, source);
        }
        Ok(offset..offset + bytes.len() as u64)
    }

    /// NaN and infinities are refused before they are stored.
    fn look(&self, unit: &Unit<'_>, block: &Block) -> Result<(), Error> {
        if self.allow_nonfinite {
            return Ok(());
        }
        let dtype = unit.piece.dtype;
        let Some(plain) = dtype.encoding().and_then(|e| by_name(e.name)) else {
            return Ok(());
        };
        let Some(at) = first_nonfinite_bytes(plain, block.bytes()) else {
            return Ok(());
        };
        let start = unit.source.start + at as u64 * dtype.width();
        let bytes = block
            .bytes()
            .get(at * plain.bytes..(at + 1) * plain.bytes)
            .unwrap_or_default();
        let mut value = [f32::NAN];
        if let Some(decode) = plain.decode {
            decode(bytes, &mut value);
        }
        Err(Error::NonFinite {
            file: self.file.to_owned(),
            tensor: unit.piece.name.clone(),
            index: unit.piece.first_index + start / dtype.width(),
            value: f64::from(value[0]),
            offset: unit.piece.offset + start,
        })
    }

    /// The rows of a unit, encoded on all threads of the pool this runs in.
    fn encode(
        &self,
        unit: &Unit<'_>,
        source: &[u8],
        encoding: &Encoding,
        columns: u64,
    ) -> Result<Vec<u8>, Error> {
        let columns = to_usize(columns);
        let dtype = unit.piece.dtype;
        let plain = dtype.encoding().and_then(|e| by_name(e.name));
        let (Some(plain), true) = (plain, columns > 0) else {
            return Ok(Vec::new());
        };
        let (source_row, row) = (columns * plain.bytes, encoding.row_bytes(columns));
        let rows = source.len() / source_row;
        let mut encoded = vec![0; rows * row];
        let rows_at_once = (VALUES_AT_ONCE / columns).max(1);
        let level = self.level;
        let fault = encoded
            .par_chunks_mut(rows_at_once * row)
            .zip(source.par_chunks(rows_at_once * source_row))
            .enumerate()
            .map_init(Vec::new, |values: &mut Vec<f32>, (chunk, (out, bytes))| {
                values.resize(bytes.len() / plain.bytes, 0.0);
                if let Some(decode) = plain.decode {
                    decode(bytes, values);
                }
                if encoding.name != "f32"
                    && encoding.name != "bf16"
                    && let Some(at) = first_beyond(values)
                {
                    return Some((
                        chunk * rows_at_once * columns + at,
                        values.get(at).copied().unwrap_or(0.0),
                    ));
                }
                encoding.encode_rows(level, values, columns, out);
                None
            })
            .flatten()
            .min_by_key(|(at, _)| *at);
        match fault {
            None => Ok(encoded),
            Some((at, value)) => Err(Error::TooLarge {
                file: self.file.to_owned(),
                tensor: unit.piece.name.clone(),
                index: unit.piece.first_index + unit.source.start / dtype.width() + at as u64,
                value: f64::from(value),
                encoding: encoding.name,
            }),
        }
    }
}

fn first_beyond(values: &[f32]) -> Option<usize> {
    let largest = values
        .iter()
        .fold(0.0_f32, |most, value| most.max(value.abs()));
    if largest <= LARGEST_ENCODED {
        return None;
    }
    values
        .iter()
        .position(|value| value.abs() > LARGEST_ENCODED)
}

/// Lengths here are of buffers that exist.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
