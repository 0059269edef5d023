//! `q5_1`: 32 values in 24 bytes; a scale, a minimum and 32 numbers of 5 bits.
//!
//! Layout as GGML publishes it: `d` binary16, `m` binary16, `high` u32, then 16 bytes; byte j holds the low four bits of value
//! j in its low half and those of value j + 16 in its high half; bit i of `high` is the fifth bit of value i. Value i is `(d · q[i]) + m`.

use super::Encoding;
use super::affine::{GRIDS_31, fit_plain};
use super::block::{each_block, f16_at};
use super::dispatch::{self, Encoder, GROUP};

/// Values in a block.
pub const VALUES: usize = 32;
/// Bytes of a block.
pub const BYTES: usize = 24;
/// Offset of the scale, binary16.
pub const D: usize = 0;
/// Offset of the minimum, binary16.
pub const M: usize = 2;
/// Offset of the fifth bits, u32.
pub const HIGH: usize = 4;
/// Offset of the 16 bytes of low bits.
pub const QUANTS: usize = 8;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q5_1",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q51>),
};

/// Splits a block into its whole numbers, 0 to 31; gives scale and minimum.
#[inline(always)]
pub fn unpack(block: &[u8; BYTES], quants: &mut [i8; VALUES]) -> [f32; 2] {
    let high = u32::from_le_bytes([
        block[HIGH],
        block[HIGH + 1],
        block[HIGH + 2],
        block[HIGH + 3],
    ]);
    for j in 0..16 {
        let b = block[QUANTS + j];
        quants[j] = ((b & 15) | (((high >> j) & 1) << 4) as u8).cast_signed();
        quants[j + 16] = ((b >> 4) | (((high >> (j + 16)) & 1) << 4) as u8).cast_signed();
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

struct Q51;

impl Encoder for Q51 {
    const BYTES: usize = BYTES * GROUP / VALUES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], out: &mut [u8]) {
        let (d, m, numbers) = fit_plain::<PADDED>(values, 31.0, GRIDS_31);
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
                *b = (l & 15) | ((h & 15) << 4);
            }
            let mut fifth = 0;
            for (i, &q) in numbers.iter().enumerate() {
                fifth |= u32::from(q >> 4) << i;
            }
            block[HIGH..][..4].copy_from_slice(&fifth.to_le_bytes());
        }
    }
}
