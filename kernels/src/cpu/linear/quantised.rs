//! Quantised weights times 8-bit activations.
//!
//! 256 columns of a row are unpacked once, and then meet each token: bytes times bytes in exact integers, four columns to a
//! lane, and one float multiply-add for each sixteen lanes (rules: `ops`).

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

#[inline(always)]
fn some_tokens<S: Simd, Q: Quantised, const TOKENS: usize>(s: S, job: Rows) {
    let row_bytes = job.w.encoding.row_bytes(job.w.columns);
    let count = if TOKENS == 1 { 1 } else { job.y.len() };
    let rows = job.y[0].len();
    let zero = s.splat(0.0);
    for row in 0..rows {
        let bytes = &job.w.bytes[(job.first_row + row) * row_bytes..][..row_bytes];
        let mut products = [zero; TOKENS];
        let mut leasts = [zero; TOKENS];
        let mut chunks = bytes.chunks_exact(Q::CHUNK_BYTES);
        let mut chunk = 0;
        for blocks in chunks.by_ref() {
            meet::<S, Q, TOKENS>(s, &job, blocks, chunk, count, &mut products, &mut leasts);
            chunk += 1;
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut padded = [0; MOST_BYTES];
            padded[..rest.len()].copy_from_slice(rest);
            let blocks = &padded[..Q::CHUNK_BYTES];
            meet::<S, Q, TOKENS>(s, &job, blocks, chunk, count, &mut products, &mut leasts);
        }
        for i in 0..count {
            job.y[i][row] = s.sum(s.add(products[i], leasts[i]));
        }
    }
}

/// 256 columns of a row and each token.
#[inline(always)]
fn meet<S: Simd, Q: Quantised, const TOKENS: usize>(
    s: S,
    job: &Rows,
    blocks: &[u8],
    chunk: usize,
    count: usize,
    products: &mut [S::F; TOKENS],
    leasts: &mut [S::F; TOKENS],
) {
    let (scale, least) = Q::scales(s, blocks);
    let w = [
        Q::codes(s, blocks, 0),
        Q::codes(s, blocks, 1),
        Q::codes(s, blocks, 2),
        Q::codes(s, blocks, 3),
    ];
    for i in 0..count {
        let token = job.which.token(i);
        let codes = job.input.codes(token)[chunk].as_chunks::<64>().0;
        let scales = job.input.scales(token)[chunk].as_chunks::<16>().0;
        let mut factors = [0.0; 16];
        s.store(s.mul(scale, s.load(&scales[0])), &mut factors);
        let factors = factors.as_chunks::<4>().0;
        let mut sum = products[i];
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
            sum = s.mul_add(quads, factor, sum);
        }
        products[i] = sum;
        if Q::LEAST {
            leasts[i] = s.mul_add(least, s.load(&scales[1]), leasts[i]);
        }
    }
}
