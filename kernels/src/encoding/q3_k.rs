//! `q3_k`: 256 values in 110 bytes; 16 sub-blocks of 16 with a signed 6-bit scale each, numbers of 3 bits.
//!
//! Layout as GGML publishes it: `high[32]`, `quants[64]`, `scales[12]`, `d` binary16. In half h (128 values), the low two
//! bits of value `128h + 32s + l` (l < 32) are bits 2s and 2s+1 of `quants[32h + l]`; bit b of `high[l]` belongs to value
//! `32b + l`, and where it is 0 the number is 4 less. Of scale j the low four bits are nibble j / 8 of `scales[j % 8]`, the upper
//! two are bits 2(j / 4) and 2(j / 4) + 1 of `scales[8 + j % 4]`; the scale is the six bits less 32.
//! Value i is `(d · scale[i / 16]) · q[i]`.

use super::Encoding;
use super::block::{each_block, f16_at, scaled};
use super::dispatch::{self, Encoder};
use super::signed::{Search, store};
use super::tile::Tile;

/// Values in a block.
pub const VALUES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 110;
/// Offset of the third bits, 32 bytes.
pub const HIGH: usize = 0;
/// Offset of the low two bits, 64 bytes.
pub const QUANTS: usize = 32;
/// Offset of the packed scales, 12 bytes.
pub const SCALES: usize = 96;
/// Offset of the block's scale, binary16.
pub const D: usize = 108;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q3_k",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q3K>),
};

/// Splits a block into its numbers, -4 to 3, and scales, -32 to 31; gives `d`.
#[inline(always)]
pub fn unpack(block: &[u8; BYTES], quants: &mut [i8; VALUES], scales: &mut [i8; 16]) -> f32 {
    let high = &block[HIGH..][..32];
    for half in 0..2 {
        let low = &block[QUANTS + 32 * half..][..32];
        for s in 0..4 {
            let quants = &mut quants[128 * half + 32 * s..][..32];
            for ((q, &l), &h) in quants.iter_mut().zip(low).zip(high) {
                let bits = ((l >> (2 * s)) & 3) | (((h >> (4 * half + s)) & 1) << 2);
                *q = bits.cast_signed() - 4;
            }
        }
    }
    for (j, scale) in scales.iter_mut().enumerate() {
        let low = (block[SCALES + j % 8] >> (4 * (j / 8))) & 15;
        let high = (block[SCALES + 8 + j % 4] >> (2 * (j / 4))) & 3;
        *scale = (low | (high << 4)).cast_signed() - 32;
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

const SEARCH: Search = Search {
    numbers: (-4.0, 3.0),
    scales: (-32.0, 31.0),
    ends: &[
        -4.9, -4.5, -4.2, -4.0, -3.7, -3.3, -3.0, 3.0, 3.4, 2.6, -2.6,
    ],
    rounds: 2,
    refits: 2,
};

struct Q3K;

impl Encoder for Q3K {
    const BYTES: usize = BYTES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], block: &mut [u8]) {
        let tile = Tile::<16, 16>::load::<PADDED>(values);
        let stored = store(&tile, &SEARCH);
        let numbers = stored.numbers(&tile, SEARCH.numbers);
        block[D..][..2].copy_from_slice(&stored.d.half.to_le_bytes());
        block[HIGH..][..BYTES - 2].fill(0);
        for (b, numbers) in numbers.as_chunks::<32>().0.iter().enumerate() {
            let low = QUANTS + 32 * (b / 4);
            for (l, &q) in numbers.iter().enumerate() {
                block[low + l] |= (q & 3) << (2 * (b % 4));
                block[HIGH + l] |= (q >> 2) << b;
            }
        }
        for (j, scale) in stored.whole(32.0).into_iter().enumerate() {
            block[SCALES + j % 8] |= (scale & 15) << (4 * (j / 8));
            block[SCALES + 8 + j % 4] |= (scale >> 4) << (2 * (j / 4));
        }
    }
}
