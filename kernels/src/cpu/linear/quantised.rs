//! Quantised weights times 8-bit activations.
//!
//! 256 columns of a row are unpacked once, and then meet each token: bytes times bytes in exact integers, four columns to a
//! lane, and one float multiply-add for each sixteen lanes (rules: `ops`).

use super::super::input::CHUNK;
use super::super::simd::Simd;
use super::{Rows, TOGETHER};

/// An encoding whose weights are multiplied as integers: value = scale · code + least.
///
/// `blocks` are always those of 256 columns. Blocks of zero bytes are zeros in every layout: they stand for what a row lacks.
pub(crate) trait Quantised {
    /// Bytes of 256 columns.
    const CHUNK_BYTES: usize;
    /// Whether codes can be negative.
    const SIGNED: bool = false;
    /// Whether the least is used.
    const LEAST: bool = true;
    /// Whether each sixteen columns have a scale of their own; otherwise each 32.
    const FINE: bool = false;
    /// Scale and least of each sixteen columns.
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F);
    /// Codes of columns `64 * part ..`.
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes;
}

/// The most bytes that 256 columns take.
const MOST_BYTES: usize = 8 * 34;

#[inline(always)]
pub(super) fn rows<S: Simd, Q: Quantised>(s: S, job: Rows) {
    if job.y.len() == 1 {
        some_tokens::<S, Q, 1>(s, job);
    } else {
        some_tokens::<S, Q, TOGETHER>(s, job);
    }
}

/// A token's codes, and its scales and sums, in chunks of 256 columns.
type Token<'a> = (&'a [[i8; CHUNK]], &'a [[f32; 32]]);

#[inline(always)]
fn some_tokens<S: Simd, Q: Quantised, const TOKENS: usize>(s: S, job: Rows) {
    let row_bytes = job.w.encoding.row_bytes(job.w.columns);
    let count = if TOKENS == 1 { 1 } else { job.y.len() };
    let rows = job.y[0].len();
    let mut tokens: [Token; TOKENS] = [(&[], &[]); TOKENS];
    for (i, token) in tokens.iter_mut().enumerate().take(count) {
        let number = job.which.token(i);
        *token = (job.input.codes(number), job.input.scales(number));
    }
    let tokens = &tokens[..count];
    let zero = s.splat(0.0);
    for row in 0..rows {
        let bytes = &job.w.bytes[(job.first_row + row) * row_bytes..][..row_bytes];
        let mut sums = [(zero, zero); TOKENS];
        let mut chunks = bytes.chunks_exact(Q::CHUNK_BYTES);
        let mut chunk = 0;
        for blocks in chunks.by_ref() {
            meet::<S, Q>(s, blocks, chunk, tokens, &mut sums[..count]);
            chunk += 1;
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut padded = [0; MOST_BYTES];
            padded[..rest.len()].copy_from_slice(rest);
            let blocks = &padded[..Q::CHUNK_BYTES];
            meet::<S, Q>(s, blocks, chunk, tokens, &mut sums[..count]);
        }
        for (y, (products, leasts)) in job.y.iter_mut().zip(&sums) {
            y[row] = s.sum(s.add(*products, *leasts));
        }
    }
}

/// 256 columns of a row and each token.
#[inline(always)]
fn meet<S: Simd, Q: Quantised>(
    s: S,
    blocks: &[u8],
    chunk: usize,
    tokens: &[Token],
    sums: &mut [(S::F, S::F)],
) {
    let (scale, least) = Q::scales(s, blocks);
    let w = [
        Q::codes(s, blocks, 0),
        Q::codes(s, blocks, 1),
        Q::codes(s, blocks, 2),
        Q::codes(s, blocks, 3),
    ];
    for ((codes, scales), (products, leasts)) in tokens.iter().zip(sums) {
        let codes = codes[chunk].as_chunks::<64>().0;
        let scales = scales[chunk].as_chunks::<16>().0;
        let mut factors = [0.0; 16];
        s.store(s.mul(scale, s.load(&scales[0])), &mut factors);
        let factors = factors.as_chunks::<4>().0;
        for part in 0..4 {
            let quads = if Q::SIGNED {
                s.quads_signed(w[part], &codes[part])
            } else {
                s.quads(w[part], &codes[part])
            };
            let factor = if Q::FINE {
                s.quarters(&factors[part])
            } else {
                s.halves(factors[part][0], factors[part][2])
            };
            *products = s.mul_add(quads, factor, *products);
        }
        if Q::LEAST {
            *leasts = s.mul_add(least, s.load(&scales[1]), *leasts);
        }
    }
}
