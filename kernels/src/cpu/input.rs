//! The input of matrix multiplications: rows of f32 and the same rows in 8 bits.

use super::simd::{Kernel, Simd};
use super::{Cpu, split};
use crate::ops::{self, Activations, ShapeError};

/// Columns are padded with zeros to a multiple of this.
pub(crate) const CHUNK: usize = 256;
/// Columns that share one scale.
pub(crate) const BLOCK: usize = 32;
/// Columns that share one sum.
pub(crate) const FINE: usize = 16;

/// A matrix's input, prepared once for all matrices that share it: f32 rows and, for encodings that want them, 8-bit rows.
#[derive(Debug)]
pub struct Input {
    tokens: usize,
    columns: usize,
    /// A row's columns with padding.
    stride: usize,
    /// [tokens, stride]
    values: Vec<f32>,
    /// [tokens, stride]: values / scale, rounded.
    codes: Vec<i8>,
    /// [tokens, stride / 16, 2]: for each sixteen columns the scale of their block of 32, and that scale times their codes' sum;
    /// sixteen scales, then sixteen sums for each 256 columns.
    scales: Vec<f32>,
}

impl Input {
    /// Room for `tokens` rows of up to `columns` values.
    pub fn with_capacity(tokens: usize, columns: usize) -> Self {
        let padded = tokens * columns.next_multiple_of(CHUNK);
        Self {
            tokens: 0,
            columns: 0,
            stride: 0,
            values: vec![0.0; padded],
            codes: vec![0; padded],
            scales: vec![0.0; padded / FINE * 2],
        }
    }

    /// Bytes it holds.
    pub fn bytes(tokens: usize, columns: usize) -> usize {
        let padded = tokens * columns.next_multiple_of(CHUNK);
        padded * (size_of::<f32>() + size_of::<i8>()) + padded / FINE * 2 * size_of::<f32>()
    }

    /// Rows it holds now.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Values of a row now.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `token` with its padding.
    #[inline(always)]
    pub(crate) fn values(&self, token: usize) -> &[f32] {
        &self.values[token * self.stride..][..self.stride]
    }

    /// Row `token` in 8 bits, in chunks of 256 columns.
    #[inline(always)]
    pub(crate) fn codes(&self, token: usize) -> &[[i8; CHUNK]] {
        self.codes[token * self.stride..][..self.stride]
            .as_chunks()
            .0
    }

    /// Row `token`'s scales and sums, for each chunk of 256 columns.
    #[inline(always)]
    pub(crate) fn scales(&self, token: usize) -> &[[f32; 32]] {
        let width = self.stride / FINE * 2;
        self.scales[token * width..][..width].as_chunks().0
    }
}

impl Cpu {
    /// Loads `x` [tokens, columns] into `input`.
    ///
    /// # Errors
    /// [`ShapeError`] when `x` holds no whole number of rows, or more than `input` has room for.
    pub fn prepare(&self, x: &[f32], columns: usize, input: &mut Input) -> Result<(), ShapeError> {
        let tokens = x.len().checked_div(columns).unwrap_or(0);
        ops::check("prepare", "x", tokens * columns, x.len())?;
        let stride = columns.next_multiple_of(CHUNK);
        if tokens * stride > input.values.len() {
            return Err(ShapeError {
                operation: "prepare",
                argument: "x (with each row padded to 256 columns)",
                expected: input.values.len(),
                found: tokens * stride,
            });
        }
        input.tokens = tokens;
        input.columns = columns;
        input.stride = stride;
        for (row, from) in input
            .values
            .chunks_exact_mut(stride.max(1))
            .zip(x.chunks_exact(columns.max(1)))
        {
            row[..columns].copy_from_slice(from);
            row[columns..].fill(0.0);
        }
        if self.activations == Activations::Encoded {
            let piece = split::piece(self.threads, tokens, stride);
            encode(
                self,
                &input.values[..tokens * stride],
                &mut input.codes[..tokens * stride],
                &mut input.scales[..tokens * stride / FINE * 2],
                piece * stride,
            );
        }
        Ok(())
    }
}

/// Encodes values in pieces of at most `piece` (a multiple of 256).
fn encode(cpu: &Cpu, values: &[f32], codes: &mut [i8], scales: &mut [f32], piece: usize) {
    if values.len() <= piece.max(CHUNK) {
        cpu.level.run(Encode {
            values,
            codes,
            scales,
        });
        return;
    }
    let half = (values.len() / 2).next_multiple_of(CHUNK);
    let (values, more_values) = values.split_at(half);
    let (codes, more_codes) = codes.split_at_mut(half);
    let (scales, more_scales) = scales.split_at_mut(half / FINE * 2);
    rayon::join(
        || encode(cpu, values, codes, scales, piece),
        || encode(cpu, more_values, more_codes, more_scales, piece),
    );
}

struct Encode<'a> {
    values: &'a [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
}

impl Kernel for Encode<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let values = self.values.as_chunks::<CHUNK>().0;
        let codes = self.codes.as_chunks_mut::<CHUNK>().0;
        let scales = self.scales.as_chunks_mut::<32>().0;
        for i in 0..values.len() {
            for block in 0..CHUNK / BLOCK {
                let (scale, sums) = encode_block(
                    values[i][block * BLOCK..]
                        .first_chunk()
                        .unwrap_or(&[0.0; BLOCK]),
                    codes[i][block * BLOCK..]
                        .first_chunk_mut()
                        .unwrap_or(&mut [0; BLOCK]),
                );
                for half in 0..2 {
                    scales[i][2 * block + half] = scale;
                    scales[i][16 + 2 * block + half] = sums[half];
                }
            }
        }
    }
}

/// Encodes 32 values; gives their scale and its product with the sum of each half's codes. Plain loops: exact at any level.
#[inline(always)]
fn encode_block(values: &[f32; BLOCK], codes: &mut [i8; BLOCK]) -> (f32, [f32; 2]) {
    // As integers, magnitudes order like floats, with infinity and NaN above all numbers.
    let mut largest = 0;
    for v in values {
        largest = largest.max(v.to_bits() & 0x7fff_ffff);
    }
    if largest >= f32::INFINITY.to_bits() {
        *codes = [0; BLOCK];
        return (f32::NAN, [f32::NAN; 2]);
    }
    let largest = f32::from_bits(largest);
    if largest < ops::SMALLEST_ENCODED {
        *codes = [0; BLOCK];
        return (0.0, [0.0; 2]);
    }
    let inverse = 127.0 / largest;
    for (code, v) in codes.iter_mut().zip(values) {
        *code = (v * inverse + ops::ROUNDER).to_bits() as u8 as i8;
    }
    let scale = largest / 127.0;
    let mut sums = [0i32; 2];
    for j in 0..FINE {
        sums[0] += i32::from(codes[j]);
        sums[1] += i32::from(codes[FINE + j]);
    }
    (scale, [scale * sums[0] as f32, scale * sums[1] as f32])
}
