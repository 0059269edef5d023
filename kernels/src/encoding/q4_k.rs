//! `q4_k`: 256 values in 144 bytes; 8 sub-blocks of 32 with a 6-bit scale and minimum each, numbers of 4 bits.
//!
//! Layout as GGML publishes it: `d`, `dmin` binary16, `scales[12]` (packed as [`scales6`] says), `quants[128]`. Byte
//! `32g + l` (l < 32) holds value `64g + l` in its low half and value `64g + 32 + l` in its high half.
//! Value i of sub-block j is `(d · scale[j]) · q[i] - (dmin · minimum[j])`.

use super::affine::GRIDS_15;
use super::affine_block::{Search, store};
use super::block::{each_block, f16_at, scaled_above};
use super::dispatch::{self, Encoder};
use super::tile::Tile;
use super::{Encoding, scales6};

/// Values in a block.
pub const VALUES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 144;
/// Offset of the scale of scales, binary16.
pub const D: usize = 0;
/// Offset of the scale of minimums, binary16.
pub const DMIN: usize = 2;
/// Offset of the packed scales and minimums, 12 bytes.
pub const SCALES: usize = 4;
/// Offset of the 128 bytes of numbers.
pub const QUANTS: usize = 16;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q4_k",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q4K>),
};

/// Splits a block into its numbers, 0 to 15, scales and minimums; gives `d` and `dmin`.
#[inline(always)]
pub fn unpack(
    block: &[u8; BYTES],
    quants: &mut [i8; VALUES],
    scales: &mut [u8; 8],
    minimums: &mut [u8; 8],
) -> [f32; 2] {
    for g in 0..4 {
        let bytes = &block[QUANTS + 32 * g..][..32];
        let (low, high) = quants[64 * g..][..64].split_at_mut(32);
        for ((l, h), &b) in low.iter_mut().zip(high).zip(bytes) {
            *l = (b & 15).cast_signed();
            *h = (b >> 4).cast_signed();
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

const SEARCH: Search = Search {
    top: 15.0,
    top_scale: 63.0,
    grids: GRIDS_15,
    rounds: 2,
    refits: 1,
};

struct Q4K;

impl Encoder for Q4K {
    const BYTES: usize = BYTES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], block: &mut [u8]) {
        let tile = Tile::<8, 32>::load::<PADDED>(values);
        let stored = store::<8, 32, PADDED>(&tile, &SEARCH);
        let numbers = stored.numbers::<32, PADDED>(&tile, SEARCH.top);
        let (scales, minimums) = stored.whole();
        block[D..][..2].copy_from_slice(&stored.d.half.to_le_bytes());
        block[DMIN..][..2].copy_from_slice(&stored.dmin.half.to_le_bytes());
        block[SCALES..][..12].copy_from_slice(&scales6::pack(&scales, &minimums));
        for g in 0..4 {
            let bytes = &mut block[QUANTS + 32 * g..][..32];
            let (low, high) = numbers[64 * g..][..64].split_at(32);
            for ((b, &l), &h) in bytes.iter_mut().zip(low).zip(high) {
                *b = l | (h << 4);
            }
        }
    }
}
