//! `q6_k`: 256 values in 210 bytes; 16 sub-blocks of 16 with a signed 8-bit scale each, numbers of 6 bits.
//!
//! Layout as GGML publishes it: `low[128]`, `high[64]`, `scales[16]` signed, `d` binary16. In half h (128 values), the low four
//! bits of value `128h + 64n + l` (l < 64) are nibble n of `low[64h + l]`; the upper two bits of value `128h + 32s + l` (l < 32)
//! are bits 2s and 2s+1 of `high[32h + l]`; the number is the six bits less 32. Value i is `(d · scales[i / 16]) · q[i]`.

use super::Encoding;
use super::block::{each_block, f16_at, scaled};
use super::dispatch::{self, Encoder};
use super::signed::{Search, store};
use super::tile::Tile;

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
    encode: Some(dispatch::encode::<Q6K>),
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

const SEARCH: Search = Search {
    numbers: (-32.0, 31.0),
    scales: (-128.0, 127.0),
    ends: &[-33.0, -32.5, -32.0, -31.5, -31.0, -30.5, -30.0, 31.0],
    rounds: 1,
    refits: 1,
};

struct Q6K;

impl Encoder for Q6K {
    const BYTES: usize = BYTES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], block: &mut [u8]) {
        let tile = Tile::<16, 16>::load::<PADDED>(values);
        let stored = store(&tile, &SEARCH);
        let numbers = stored.numbers(&tile, SEARCH.numbers);
        block[D..][..2].copy_from_slice(&stored.d.half.to_le_bytes());
        block[SCALES..][..16].copy_from_slice(&stored.whole(0.0));
        for half in 0..2 {
            let numbers = &numbers[128 * half..][..128];
            for n in 0..2 {
                let low = &mut block[LOW + 64 * half + 32 * n..][..32];
                let (first, second) = (&numbers[32 * n..][..32], &numbers[64 + 32 * n..][..32]);
                for ((b, &p), &q) in low.iter_mut().zip(first).zip(second) {
                    *b = (p & 15) | ((q & 15) << 4);
                }
            }
            let high = &mut block[HIGH + 32 * half..][..32];
            high.fill(0);
            for (s, numbers) in numbers.as_chunks::<32>().0.iter().enumerate() {
                for (b, &q) in high.iter_mut().zip(numbers) {
                    *b |= (q >> 4) << (2 * s);
                }
            }
        }
    }
}
