//! `q5_k`: 256 values in 176 bytes; 8 sub-blocks of 32 with a 6-bit scale and minimum each, numbers of 5 bits.
//!
//! Layout as GGML publishes it: `d`, `dmin` binary16, `scales` [12] (packed as [`scales6`] says), `high` [32], `quants` [128].
//! Byte `32g + l` (l < 32) of `quants` holds the low four bits of value `64g + l` in its low half and those of value `64g + 32 + l`
//! in its high half; bit j of `high[l]` is the fifth bit of value `32j + l`.
//! Value i of sub-block j is `(d · scale[j]) · q[i] - (dmin · minimum[j])`.

use super::block::{each_block, f16_at, scaled_above};
use super::{Encoding, scales6};

/// Values in a block.
pub const VALUES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 176;
/// Offset of the scale of scales, binary16.
pub const D: usize = 0;
/// Offset of the scale of minimums, binary16.
pub const DMIN: usize = 2;
/// Offset of the packed scales and minimums, 12 bytes.
pub const SCALES: usize = 4;
/// Offset of the fifth bits, 32 bytes.
pub const HIGH: usize = 16;
/// Offset of the 128 bytes of low bits.
pub const QUANTS: usize = 48;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q5_k",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: None,
};

/// Splits a block into its numbers, 0 to 31, scales and minimums; gives `d` and `dmin`.
#[inline(always)]
pub fn unpack(
    block: &[u8; BYTES],
    quants: &mut [i8; VALUES],
    scales: &mut [u8; 8],
    minimums: &mut [u8; 8],
) -> [f32; 2] {
    let fifth = &block[HIGH..][..32];
    for g in 0..4 {
        let bytes = &block[QUANTS + 32 * g..][..32];
        let (low, high) = quants[64 * g..][..64].split_at_mut(32);
        for (((l, h), &b), &f) in low.iter_mut().zip(high).zip(bytes).zip(fifth) {
            *l = ((b & 15) | (((f >> (2 * g)) & 1) << 4)).cast_signed();
            *h = ((b >> 4) | (((f >> (2 * g + 1)) & 1) << 4)).cast_signed();
        }
    }
    scales6::unpack(packed_scales(block), scales, minimums);
    [f16_at(block, D), f16_at(block, DMIN)]
}

#[inline(always)]
fn packed_scales(block: &[u8; BYTES]) -> &[u8; scales6::BYTES] {
    block[SCALES..]
        .first_chunk()
        .expect("a block is longer than its scales")
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    each_block(bytes, out, |block, out| {
        let (mut quants, mut scales, mut minimums) = ([0; VALUES], [0; 8], [0; 8]);
        let d = unpack(block, &mut quants, &mut scales, &mut minimums);
        scaled_above::<32>(d, &scales, &minimums, &quants, out);
    });
}
