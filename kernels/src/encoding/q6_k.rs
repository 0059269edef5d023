//! `q6_k`: 256 values in 210 bytes; 16 sub-blocks of 16 with a signed 8-bit scale each, numbers of 6 bits.
//!
//! Layout as GGML publishes it: `low` [128], `high` [64], `scales` i8 [16], `d` binary16. In half h (128 values), the low four
//! bits of value `128h + 64n + l` (l < 64) are nibble n of `low[64h + l]`; the upper two bits of value `128h + 32s + l` (l < 32)
//! are bits 2s and 2s+1 of `high[32h + l]`; the number is the six bits less 32. Value i is `(d · scales[i / 16]) · q[i]`.

use super::Encoding;
use super::block::{each_block, f16_at, scaled};

/// Values in a block.
pub const VALUES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 210;
/// Offset of the low four bits, 128 bytes.
pub const LOW: usize = 0;
/// Offset of the upper two bits, 64 bytes.
pub const HIGH: usize = 128;
/// Offset of the 16 signed scales.
pub const SCALES: usize = 192;
/// Offset of the block's scale, binary16.
pub const D: usize = 208;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q6_k",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: None,
};

/// Splits a block into its numbers, -32 to 31, and scales; gives `d`.
#[inline(always)]
pub fn unpack(block: &[u8; BYTES], quants: &mut [i8; VALUES], scales: &mut [i8; 16]) -> f32 {
    for half in 0..2 {
        let low = &block[LOW + 64 * half..][..64];
        let high = &block[HIGH + 32 * half..][..32];
        for s in 0..4 {
            let quants = &mut quants[128 * half + 32 * s..][..32];
            let low = &low[32 * (s % 2)..][..32];
            for ((q, &l), &h) in quants.iter_mut().zip(low).zip(high) {
                let bits = ((l >> (4 * (s / 2))) & 15) | (((h >> (2 * s)) & 3) << 4);
                *q = bits.cast_signed() - 32;
            }
        }
    }
    for (s, &b) in scales.iter_mut().zip(&block[SCALES..]) {
        *s = b.cast_signed();
    }
    f16_at(block, D)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    each_block(bytes, out, |block, out| {
        let (mut quants, mut scales) = ([0; VALUES], [0; 16]);
        let d = unpack(block, &mut quants, &mut scales);
        scaled::<16>(d, &scales, &quants, out);
    });
}
