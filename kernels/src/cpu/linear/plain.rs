//! Weights stored as floats, widened to f32 as they are read.

use super::super::input::CHUNK;
use super::super::simd::Simd;
use super::decoded::{self, Source};
use super::{Matrix, Rows};

/// A float type of two or four bytes.
pub(super) trait Plain {
    /// The bytes of sixteen values.
    type Sixteen: Copy;
    /// Bytes of one value.
    const BYTES: usize;
    /// The whole sixteens of a row, and the bytes after them.
    fn sixteens(row: &[u8]) -> (&[Self::Sixteen], &[u8]);
    /// Sixteen values.
    fn widen<S: Simd>(s: S, from: &Self::Sixteen) -> S::F;
    /// Fewer than sixteen values, then zeros.
    fn widen_some<S: Simd>(s: S, from: &[u8]) -> S::F;
}

macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $load:ident) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl Plain for $name {
            type Sixteen = [u8; 16 * $bytes];
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn sixteens(row: &[u8]) -> (&[Self::Sixteen], &[u8]) {
                row.as_chunks()
            }
            #[inline(always)]
            fn widen<S: Simd>(s: S, from: &Self::Sixteen) -> S::F {
                s.$load(from)
            }
            #[inline(always)]
            fn widen_some<S: Simd>(s: S, from: &[u8]) -> S::F {
                let mut padded = [0; 16 * $bytes];
                padded[..from.len()].copy_from_slice(from);
                s.$load(&padded)
            }
        }
    };
}

plain!(
    /// f32.
    Float,
    4,
    load_f32_bytes
);
plain!(
    /// bf16.
    Brain,
    2,
    load_bf16
);
plain!(
    /// f16.
    Half,
    2,
    load_f16
);

#[inline(always)]
pub(super) fn rows<S: Simd, P: Plain>(s: S, job: Rows) {
    if job.y.len() > 1 {
        return decoded::shared::<S, Widened<P>>(s, job);
    }
    let rows = job.y[0].len();
    let mut row = 0;
    // Several rows at once: one row's chain of multiply-adds would wait for itself.
    while row + 4 <= rows {
        let sums = one_token::<S, P, 4>(s, &job, row);
        job.y[0][row..row + 4].copy_from_slice(&sums);
        row += 4;
    }
    while row < rows {
        [job.y[0][row]] = one_token::<S, P, 1>(s, &job, row);
        row += 1;
    }
}

#[inline(always)]
fn one_token<S: Simd, P: Plain, const R: usize>(s: S, job: &Rows, row: usize) -> [f32; R] {
    let x = job.input.values(job.which.token(0)).as_chunks::<16>().0;
    let row_bytes = job.w.columns * P::BYTES;
    let first = job.first_row + row;
    let whole = job.w.columns / 16;
    let parts: [(&[P::Sixteen], &[u8]); R] = std::array::from_fn(|r| {
        let (sixteens, rest) = P::sixteens(&job.w.bytes[(first + r) * row_bytes..][..row_bytes]);
        (&sixteens[..whole], rest)
    });
    let mut sums = [s.splat(0.0); R];
    for (i, x) in x[..whole].iter().enumerate() {
        let x = s.load(x);
        for r in 0..R {
            sums[r] = s.mul_add(P::widen(s, &parts[r].0[i]), x, sums[r]);
        }
    }
    let mut out = [0.0; R];
    for r in 0..R {
        if !parts[r].1.is_empty() {
            sums[r] = s.mul_add(P::widen_some(s, parts[r].1), s.load(&x[whole]), sums[r]);
        }
        out[r] = s.sum(sums[r]);
    }
    out
}

/// Float weights as a source of f32 chunks.
struct Widened<P>(std::marker::PhantomData<P>);

impl<P: Plain> Source for Widened<P> {
    #[inline(always)]
    fn chunk<S: Simd>(s: S, w: &Matrix, row: &[u8], chunk: usize, out: &mut [f32; CHUNK]) -> usize {
        let from = &row[chunk * CHUNK * P::BYTES..];
        let columns = (w.columns - chunk * CHUNK).min(CHUNK);
        let (sixteens, rest) = P::sixteens(&from[..columns * P::BYTES]);
        let out = out.as_chunks_mut::<16>().0;
        for (out, from) in out.iter_mut().zip(sixteens) {
            s.store(P::widen(s, from), out);
        }
        if !rest.is_empty() {
            s.store(P::widen_some(s, rest), &mut out[sixteens.len()]);
        }
        columns.div_ceil(16)
    }
}
