//! The list of encodings. One file each: bit layout, decode formula, encoder.
//!
//! Layouts are described for readers in `format-spec/SPEC.md`; the tests compare decoding with an independent decoder
//! and the error of encoding with the reference quantiser's.

mod affine;
mod affine_block;
mod block;
#[path = "cpu/simd/dispatch_encode.rs"]
mod dispatch;
mod finite;
pub mod half;
pub mod plain;
pub mod q2_k;
pub mod q3_k;
pub mod q4_1;
pub mod q4_k;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
pub mod scales6;
mod signed;
mod tile;

pub use finite::{first_nonfinite, first_nonfinite_bytes};

use crate::Level;

/// Whole blocks of bytes to their values.
pub type Decode = fn(&[u8], &mut [f32]);
/// One row of values to its blocks.
pub type Encode = fn(Level, &[f32], &mut [u8]);

/// An encoding of rows of weights.
///
/// A row of `n` values is stored as `ceil(n / block)` blocks of `bytes` bytes; the values that fill up the last block carry
/// no weight when it is fitted, and decode to something that meets zero activations.
#[derive(Debug)]
pub struct Encoding {
    /// Published name (`q4_k`, `bf16`).
    pub name: &'static str,
    /// Values in a block.
    pub block: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// Decodes whole blocks: `out.len()` is a multiple of `block`. `None` for encodings that hold no real numbers (integers, bool, c64, f64).
    pub decode: Option<Decode>,
    /// Encodes one row; `None` for plain encodings other than f32, bf16, f16. `out.len()` = `row_bytes(row.len())`.
    pub encode: Option<Encode>,
}

impl Encoding {
    /// Stored bytes of a row of `columns` values.
    pub fn row_bytes(&self, columns: usize) -> usize {
        columns.div_ceil(self.block) * self.bytes
    }

    /// Decodes rows of `columns` values; what fills up the last block of a row is left out.
    ///
    /// `bytes` [rows, row_bytes], `out` [rows, columns].
    /// # Panics
    /// When the encoding holds no real numbers, or the lengths are not those of the same number of rows.
    pub fn decode_rows(&self, bytes: &[u8], columns: usize, out: &mut [f32]) {
        let decode = self
            .decode
            .unwrap_or_else(|| panic!("{} holds no real numbers", self.name));
        self.check_rows(columns, out.len(), bytes.len());
        if columns.is_multiple_of(self.block) {
            return decode(bytes, out);
        }
        let (whole, rest) = (columns / self.block, columns % self.block);
        let mut last = [0.0; 256];
        let last = &mut last[..self.block];
        for (bytes, row) in bytes
            .chunks_exact(self.row_bytes(columns))
            .zip(out.chunks_exact_mut(columns))
        {
            let (blocks, last_block) = bytes.split_at(whole * self.bytes);
            let (values, last_values) = row.split_at_mut(whole * self.block);
            decode(blocks, values);
            decode(last_block, last);
            last_values.copy_from_slice(&last[..rest]);
        }
    }

    /// Encodes rows of `columns` values. `rows` [rows, columns], `out` [rows, row_bytes].
    ///
    /// # Panics
    /// When the encoding has no encoder, or the lengths are not those of the same number of rows.
    pub fn encode_rows(&self, level: Level, rows: &[f32], columns: usize, out: &mut [u8]) {
        let encode = self
            .encode
            .unwrap_or_else(|| panic!("{} has no encoder", self.name));
        self.check_rows(columns, rows.len(), out.len());
        if columns > 0 {
            for (row, out) in rows
                .chunks_exact(columns)
                .zip(out.chunks_exact_mut(self.row_bytes(columns)))
            {
                encode(level, row, out);
            }
        }
    }

    fn check_rows(&self, columns: usize, values: usize, bytes: usize) {
        let rows = values.checked_div(columns).unwrap_or(0);
        assert!(
            rows * columns == values && rows * self.row_bytes(columns) == bytes,
            "{values} values in rows of {columns} do not take {bytes} bytes as {}",
            self.name,
        );
    }
}

/// Every encoding.
pub static ENCODINGS: &[&Encoding] = &[
    &plain::BOOL,
    &plain::U8,
    &plain::I8,
    &plain::F8_E4M3,
    &plain::F8_E5M2,
    &plain::F8_E8M0,
    &plain::U16,
    &plain::I16,
    &plain::F16,
    &plain::BF16,
    &plain::U32,
    &plain::I32,
    &plain::F32,
    &plain::U64,
    &plain::I64,
    &plain::F64,
    &plain::C64,
    &q8_0::ENCODING,
    &q4_1::ENCODING,
    &q5_1::ENCODING,
    &q6_k::ENCODING,
    &q5_k::ENCODING,
    &q4_k::ENCODING,
    &q3_k::ENCODING,
    &q2_k::ENCODING,
];

/// The encoding called `name`.
pub fn by_name(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().copied().find(|e| e.name == name)
}

/// Values of a source dtype as f32: `bytes` in the plain encoding `name`, exactly `out.len()` of them.
///
/// # Errors
/// `None` when `name` is no plain encoding of real numbers, or the bytes are not that many values.
pub fn decode_plain(name: &str, bytes: &[u8], out: &mut [f32]) -> Option<()> {
    let encoding = by_name(name)
        .filter(|e| e.block == 1 && out.len().checked_mul(e.bytes) == Some(bytes.len()))?;
    encoding.decode?(bytes, out);
    Some(())
}
