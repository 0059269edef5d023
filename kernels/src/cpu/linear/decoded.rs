//! Weights decoded to f32, 256 columns at a time, and multiplied in floats with all tokens of the call.
#![expect(
    clippy::needless_range_loop,
    reason = "an index names a column or a token in several arrays"
)]

use super::super::input::CHUNK;
use super::super::simd::Simd;
use super::{Matrix, Rows, TOGETHER};

/// Something that gives a row's values chunk by chunk.
pub(super) trait Source {
    /// Decodes columns `256 * chunk ..` of `row`; gives how many sixteens it wrote, the last one filled up with zeros or padding.
    fn chunk<S: Simd>(s: S, w: &Matrix, row: &[u8], chunk: usize, out: &mut [f32; CHUNK]) -> usize;
}

/// Any encoding, through its own decoder.
struct Decoder;

impl Source for Decoder {
    #[inline(always)]
    fn chunk<S: Simd>(_: S, w: &Matrix, row: &[u8], chunk: usize, out: &mut [f32; CHUNK]) -> usize {
        let encoding = w.encoding;
        let chunk_bytes = CHUNK / encoding.block * encoding.bytes;
        let from = &row[chunk * chunk_bytes..];
        let from = &from[..from.len().min(chunk_bytes)];
        let columns = from.len() / encoding.bytes * encoding.block;
        if let Some(decode) = encoding.decode {
            decode(from, &mut out[..columns]);
        }
        out[columns..].fill(0.0);
        columns.div_ceil(16)
    }
}

#[inline(always)]
pub(super) fn rows<S: Simd>(s: S, job: Rows) {
    shared::<S, Decoder>(s, job);
}

/// Rows and tokens in twos, so that each loaded value is used twice.
#[inline(always)]
pub(super) fn shared<S: Simd, D: Source>(s: S, job: Rows) {
    let w = job.w;
    let row_bytes = w.encoding.row_bytes(w.columns);
    let count = job.y.len();
    let rows = job.y[0].len();
    let mut decoded = [[0.0; CHUNK]; 2];
    for row in (0..rows).step_by(2) {
        // Where no second row or token is left, the first is computed twice.
        let both = [row, (row + 1).min(rows - 1)];
        let mut sums = [[s.splat(0.0); 2]; TOGETHER];
        for chunk in 0..w.columns.div_ceil(CHUNK) {
            let mut sixteens = 0;
            for r in 0..2 {
                let bytes = &w.bytes[(job.first_row + both[r]) * row_bytes..][..row_bytes];
                sixteens = D::chunk(s, w, bytes, chunk, &mut decoded[r]);
            }
            let rows = [
                &decoded[0].as_chunks::<16>().0[..sixteens],
                &decoded[1].as_chunks::<16>().0[..sixteens],
            ];
            for i in (0..count).step_by(2) {
                let j = (i + 1).min(count - 1);
                let tokens = [i, j].map(|i| {
                    let x = job.input.values(job.which.token(i));
                    &x[chunk * CHUNK..].as_chunks::<16>().0[..sixteens]
                });
                let [mut a, mut b] = sums[i];
                let [mut c, mut d] = sums[j];
                for k in 0..sixteens {
                    let (first, second) = (s.load(&rows[0][k]), s.load(&rows[1][k]));
                    let (x, z) = (s.load(&tokens[0][k]), s.load(&tokens[1][k]));
                    a = s.mul_add(first, x, a);
                    b = s.mul_add(second, x, b);
                    c = s.mul_add(first, z, c);
                    d = s.mul_add(second, z, d);
                }
                sums[i] = [a, b];
                sums[j] = [c, d];
            }
        }
        for i in 0..count {
            for r in 0..2 {
                job.y[i][both[r]] = s.sum(sums[i][r]);
            }
        }
    }
}
