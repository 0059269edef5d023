//! `q4_1`: 32 values in 20 bytes; a scale, a minimum and 32 numbers of 4 bits.
//!
//! Layout as GGML publishes it: `d` binary16, `m` binary16, then 16 bytes; byte j holds value j in its low half and value
//! j + 16 in its high half. Value i is `(d · q[i]) + m`.

use super::Encoding;
use super::affine::{GRIDS_15, fit_plain};
use super::block::{each_block, f16_at};
use super::dispatch::{self, Encoder, GROUP};

/// Values in a block.
pub const VALUES: usize = 32;
/// Bytes of a block.
pub const BYTES: usize = 20;
/// Offset of the scale, binary16.
pub const D: usize = 0;
/// Offset of the minimum, binary16.
pub const M: usize = 2;
/// Offset of the 16 bytes of numbers.
pub const QUANTS: usize = 4;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q4_1",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q41>),
};

/// Splits a block into its whole numbers, 0 to 15; gives scale and minimum.
#[inline(always)]
pub fn unpack(block: &[u8; BYTES], quants: &mut [i8; VALUES]) -> [f32; 2] {
    for j in 0..16 {
        let b = block[QUANTS + j];
        quants[j] = (b & 15).cast_signed();
        quants[j + 16] = (b >> 4).cast_signed();
    }
    [f16_at(block, D), f16_at(block, M)]
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    each_block(bytes, out, |block, out: &mut [f32; VALUES]| {
        let mut quants = [0; VALUES];
        let [d, m] = unpack(block, &mut quants);
        for (x, q) in out.iter_mut().zip(quants) {
            *x = d * f32::from(q) + m;
        }
    });
}

struct Q41;

impl Encoder for Q41 {
    const BYTES: usize = BYTES * GROUP / VALUES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], out: &mut [u8]) {
        let (d, m, numbers) = fit_plain::<PADDED>(values, 15.0, GRIDS_15);
        let blocks = out.as_chunks_mut::<BYTES>().0;
        for (l, (block, numbers)) in blocks
            .iter_mut()
            .zip(numbers.as_chunks::<VALUES>().0)
            .enumerate()
        {
            block[D..][..2].copy_from_slice(&d[l].to_le_bytes());
            block[M..][..2].copy_from_slice(&m[l].to_le_bytes());
            let (low, high) = numbers.split_at(16);
            for ((b, &l), &h) in block[QUANTS..].iter_mut().zip(low).zip(high) {
                *b = l | (h << 4);
            }
        }
    }
}
