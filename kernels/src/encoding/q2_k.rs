//! `q2_k`: 256 values in 84 bytes; 16 sub-blocks of 16 with a 4-bit scale and minimum each, numbers of 2 bits.
//!
//! Layout as GGML publishes it: `scales[16]` (scale in the low half, minimum in the high half), `quants[64]`, `d`, `dmin`
//! binary16. In half h (128 values), value `128h + 32s + l` (l < 32) is bits 2s and 2s+1 of `quants[32h + l]`.
//! Value i of sub-block j is `(d · scale[j]) · q[i] - (dmin · minimum[j])`.

use super::Encoding;
use super::affine::GRIDS_3;
use super::affine_block::{Search, store};
use super::block::{each_block, f16_at, scaled_above};
use super::dispatch::{self, Encoder};
use super::tile::Tile;

/// Values in a block.
pub const VALUES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 84;
/// Offset of the 16 bytes of scales and minimums.
pub const SCALES: usize = 0;
/// Offset of the 64 bytes of numbers.
pub const QUANTS: usize = 16;
/// Offset of the scale of scales, binary16.
pub const D: usize = 80;
/// Offset of the scale of minimums, binary16.
pub const DMIN: usize = 82;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q2_k",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q2K>),
};

/// Splits a block into its numbers, 0 to 3, scales and minimums, 0 to 15; gives `d` and `dmin`.
#[inline(always)]
pub fn unpack(
    block: &[u8; BYTES],
    quants: &mut [i8; VALUES],
    scales: &mut [u8; 16],
    minimums: &mut [u8; 16],
) -> [f32; 2] {
    for half in 0..2 {
        let bytes = &block[QUANTS + 32 * half..][..32];
        for s in 0..4 {
            let quants = &mut quants[128 * half + 32 * s..][..32];
            for (q, &b) in quants.iter_mut().zip(bytes) {
                *q = ((b >> (2 * s)) & 3).cast_signed();
            }
        }
    }
    for ((s, m), &b) in scales.iter_mut().zip(minimums).zip(&block[SCALES..]) {
        *s = b & 15;
        *m = b >> 4;
    }
    [f16_at(block, D), f16_at(block, DMIN)]
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    each_block(bytes, out, |block, out| {
        let (mut quants, mut scales, mut minimums) = ([0; VALUES], [0; 16], [0; 16]);
        let d = unpack(block, &mut quants, &mut scales, &mut minimums);
        scaled_above::<16>(d, &scales, &minimums, &quants, out);
    });
}

const SEARCH: Search = Search {
    top: 3.0,
    top_scale: 15.0,
    grids: GRIDS_3,
    rounds: 2,
    refits: 1,
};

struct Q2K;

impl Encoder for Q2K {
    const BYTES: usize = BYTES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], block: &mut [u8]) {
        let tile = Tile::<16, 16>::load::<PADDED>(values);
        let stored = store::<16, 16, PADDED>(&tile, &SEARCH);
        let numbers = stored.numbers::<16, PADDED>(&tile, SEARCH.top);
        let (scales, minimums) = stored.whole();
        block[D..][..2].copy_from_slice(&stored.d.half.to_le_bytes());
        block[DMIN..][..2].copy_from_slice(&stored.dmin.half.to_le_bytes());
        for ((b, &s), &m) in block[SCALES..].iter_mut().zip(&scales).zip(&minimums) {
            *b = s | (m << 4);
        }
        for half in 0..2 {
            let bytes = &mut block[QUANTS + 32 * half..][..32];
            bytes.fill(0);
            for s in 0..4 {
                let numbers = &numbers[128 * half + 32 * s..][..32];
                for (b, &q) in bytes.iter_mut().zip(numbers) {
                    *b |= q << (2 * s);
                }
            }
        }
    }
}
