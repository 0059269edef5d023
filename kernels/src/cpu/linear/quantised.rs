//! Quantised weights times 8-bit activations.
//!
//! 256 columns of a row are unpacked once, and then meet each token: bytes times bytes in exact integers, four columns to a
//! lane, and one float multiply-add for each sixteen lanes (rules: `ops`).

use super::super::input::CHUNK;
use super::super::simd::Simd;
use super::{Rows, TOGETHER};

/// 256 columns of a row: value = scale · code + least.
pub(crate) struct Unpacked {
    /// Codes.
    pub codes: [i8; CHUNK],
    /// For each sixteen columns.
    pub scale: [f32; 16],
    /// For each sixteen columns.
    pub least: [f32; 16],
}

/// An encoding whose weights are multiplied as integers.
pub(crate) trait Quantised {
    /// Columns of a block.
    const BLOCK: usize;
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether codes can be negative.
    const SIGNED: bool;
    /// Whether `least` is used.
    const LEAST: bool;
    /// Whether each sixteen columns have a scale of their own; otherwise each 32.
    const FINE: bool;
    /// Unpacks the blocks of up to 256 columns; what they don't cover stays as it is.
    fn unpack<S: Simd>(s: S, blocks: &[u8], to: &mut Unpacked);
}

#[inline(always)]
pub(super) fn rows<S: Simd, Q: Quantised>(s: S, job: Rows) {
    if job.y.len() == 1 {
        some_tokens::<S, Q, 1>(s, job);
    } else {
        some_tokens::<S, Q, TOGETHER>(s, job);
    }
}

#[inline(always)]
fn some_tokens<S: Simd, Q: Quantised, const TOKENS: usize>(s: S, job: Rows) {
    let row_bytes = job.w.encoding.row_bytes(job.w.columns);
    let chunk_bytes = CHUNK / Q::BLOCK * Q::BYTES;
    let count = if TOKENS == 1 { 1 } else { job.y.len() };
    let rows = job.y[0].len();
    let zero = s.splat(0.0);
    for row in 0..rows {
        let bytes = &job.w.bytes[(job.first_row + row) * row_bytes..][..row_bytes];
        let mut products = [zero; TOKENS];
        let mut leasts = [zero; TOKENS];
        let mut unpacked = Unpacked {
            codes: [0; CHUNK],
            scale: [0.0; 16],
            least: [0.0; 16],
        };
        for (chunk, blocks) in bytes.chunks(chunk_bytes).enumerate() {
            if blocks.len() < chunk_bytes {
                // The rest of the row's last chunk counts as zeros.
                unpacked.codes = [0; CHUNK];
                unpacked.scale = [0.0; 16];
                unpacked.least = [0.0; 16];
            }
            Q::unpack(s, blocks, &mut unpacked);
            for i in 0..count {
                let token = job.which.token(i);
                meet::<S, Q>(
                    s,
                    &unpacked,
                    &job.input.codes(token)[chunk],
                    &job.input.scales(token)[chunk],
                    &mut products[i],
                    &mut leasts[i],
                );
            }
        }
        for i in 0..count {
            job.y[i][row] = s.sum(s.add(products[i], leasts[i]));
        }
    }
}

/// 256 columns of a row and a token.
#[inline(always)]
fn meet<S: Simd, Q: Quantised>(
    s: S,
    w: &Unpacked,
    codes: &[i8; CHUNK],
    scales: &[f32; 32],
    products: &mut S::F,
    leasts: &mut S::F,
) {
    let (scale, sums) = scales.as_chunks::<16>().0.split_at(1);
    let mut factors = [0.0; 16];
    s.store(s.mul(s.load(&w.scale), s.load(&scale[0])), &mut factors);
    let w_codes = w.codes.as_chunks::<64>().0;
    let codes = codes.as_chunks::<64>().0;
    let factors = factors.as_chunks::<4>().0;
    for i in 0..CHUNK / 64 {
        let quads = if Q::SIGNED {
            s.quads_signed(&w_codes[i], &codes[i])
        } else {
            s.quads(&w_codes[i], &codes[i])
        };
        let factor = if Q::FINE {
            s.quarters(&factors[i])
        } else {
            s.halves(factors[i][0], factors[i][2])
        };
        *products = s.mul_add(quads, factor, *products);
    }
    if Q::LEAST {
        *leasts = s.mul_add(s.load(&w.least), s.load(&sums[0]), *leasts);
    }
}
