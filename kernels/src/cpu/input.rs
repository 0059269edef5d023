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

/// Lengths of a row in memory. Each is a cache line longer than its contents: rows whose distance is a power of two would
/// otherwise compete for the same lines when a block of tokens meets a weight.
#[derive(Clone, Copy, Debug)]
struct Stride {
    values: usize,
    codes: usize,
    scales: usize,
}

impl Stride {
    fn of(columns: usize) -> Self {
        let padded = columns.next_multiple_of(CHUNK);
        Self {
            values: padded + 16,
            codes: padded + 64,
            scales: padded / FINE * 2 + 16,
        }
    }
}

/// A matrix's input, prepared once for all matrices that share it: f32 rows and, for encodings that want them, 8-bit rows.
#[derive(Debug)]
pub struct Input {
    tokens: usize,
    columns: usize,
    /// Columns with padding.
    padded: usize,
    stride: Stride,
    /// Rows of `padded` values.
    values: Vec<f32>,
    /// Rows of `padded` codes: values / scale, rounded.
    codes: Vec<i8>,
    /// For each 256 columns of a row sixteen scales, then sixteen sums: the scale of each sixteen columns, and that scale times
    /// the sum of their codes.
    scales: Vec<f32>,
}

impl Input {
    /// Room for `tokens` rows of up to `columns` values.
    pub fn with_capacity(tokens: usize, columns: usize) -> Self {
        let stride = Stride::of(columns);
        Self {
            tokens: 0,
            columns: 0,
            padded: 0,
            stride,
            values: vec![0.0; tokens * stride.values],
            codes: vec![0; tokens * stride.codes],
            scales: vec![0.0; tokens * stride.scales],
        }
    }

    /// Bytes it holds.
    pub fn bytes(tokens: usize, columns: usize) -> usize {
        let stride = Stride::of(columns);
        tokens * (size_of::<f32>() * (stride.values + stride.scales) + stride.codes)
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
        &self.values[token * self.stride.values..][..self.padded]
    }

    /// Row `token` in 8 bits, in chunks of 256 columns.
    #[inline(always)]
    pub(crate) fn codes(&self, token: usize) -> &[[i8; CHUNK]] {
        let row = &self.codes[token * self.stride.codes..];
        row[..self.padded].as_chunks().0
    }

    /// Row `token`'s scales and sums, for each chunk of 256 columns.
    #[inline(always)]
    pub(crate) fn scales(&self, token: usize) -> &[[f32; 32]] {
        let row = &self.scales[token * self.stride.scales..];
        row[..self.padded / FINE * 2].as_chunks().0
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
        let stride = Stride::of(columns);
        // Values stand for all: with shorter rows more tokens may fit, but never one array and not another.
        let room = (input.values.len() / stride.values)
            .min(input.codes.len() / stride.codes)
            .min(input.scales.len() / stride.scales);
        ops::check_most("prepare", "x", room * columns, tokens * columns)?;
        input.tokens = tokens;
        input.columns = columns;
        input.padded = columns.next_multiple_of(CHUNK);
        input.stride = stride;
        if tokens > 0 {
            let job = Prepare {
                x,
                columns,
                padded: input.padded,
                stride,
                encoded: self.activations == Activations::Encoded,
                values: &mut input.values[..tokens * stride.values],
                codes: &mut input.codes[..tokens * stride.codes],
                scales: &mut input.scales[..tokens * stride.scales],
            };
            self.spread_prepare(job, split::piece(self.threads, tokens, columns));
        }
        Ok(())
    }

    /// Halves the tokens until a piece is small enough.
    fn spread_prepare(&self, job: Prepare, piece: usize) {
        let tokens = job.x.len() / job.columns;
        if tokens <= piece {
            return self.level.run(job);
        }
        let half = tokens / 2;
        let (x, more_x) = job.x.split_at(half * job.columns);
        let (values, more_values) = job.values.split_at_mut(half * job.stride.values);
        let (codes, more_codes) = job.codes.split_at_mut(half * job.stride.codes);
        let (scales, more_scales) = job.scales.split_at_mut(half * job.stride.scales);
        let low = Prepare {
            x,
            values,
            codes,
            scales,
            ..job
        };
        let high = Prepare {
            x: more_x,
            values: more_values,
            codes: more_codes,
            scales: more_scales,
            ..job
        };
        rayon::join(
            || self.spread_prepare(low, piece),
            || self.spread_prepare(high, piece),
        );
    }
}

/// Rows to load.
struct Prepare<'a> {
    x: &'a [f32],
    columns: usize,
    padded: usize,
    stride: Stride,
    encoded: bool,
    values: &'a mut [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
}

impl Kernel for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let outputs = self
            .values
            .chunks_exact_mut(self.stride.values)
            .zip(self.codes.chunks_exact_mut(self.stride.codes))
            .zip(self.scales.chunks_exact_mut(self.stride.scales));
        for (x, ((values, codes), scales)) in self.x.chunks_exact(self.columns).zip(outputs) {
            let values = &mut values[..self.padded];
            values[..self.columns].copy_from_slice(x);
            values[self.columns..].fill(0.0);
            if self.encoded {
                encode_row(values, &mut codes[..self.padded], scales);
            }
        }
    }
}

/// Encodes whole chunks of 256 values.
#[inline(always)]
fn encode_row(values: &[f32], codes: &mut [i8], scales: &mut [f32]) {
    let chunks = values
        .as_chunks::<CHUNK>()
        .0
        .iter()
        .zip(codes.as_chunks_mut::<CHUNK>().0);
    for ((values, codes), scales) in chunks.zip(scales.as_chunks_mut::<32>().0) {
        let blocks = values
            .as_chunks::<BLOCK>()
            .0
            .iter()
            .zip(codes.as_chunks_mut::<BLOCK>().0);
        for (block, (values, codes)) in blocks.enumerate() {
            let (scale, sums) = encode_block(values, codes);
            for half in 0..2 {
                scales[2 * block + half] = scale;
                scales[16 + 2 * block + half] = sums[half];
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
