//! `q8_0`: 32 values in 34 bytes; a scale and 32 signed bytes.
//!
//! Layout as GGML publishes it: `d` binary16, then `q[32]` signed. Value i is `q[i] · d`.

use super::Encoding;
use super::block::{each_block, f16_at};
use super::dispatch::{self, Encoder, GROUP};
use super::signed::{Search, fit, numbers};
use super::tile::{Lanes, Step, Tile, apart, inverse, lanes};

/// Values in a block.
pub const VALUES: usize = 32;
/// Bytes of a block.
pub const BYTES: usize = 34;
/// Offset of the scale, binary16.
pub const D: usize = 0;
/// Offset of the 32 signed bytes.
pub const QUANTS: usize = 2;

/// The encoding.
pub static ENCODING: Encoding = Encoding {
    name: "q8_0",
    block: VALUES,
    bytes: BYTES,
    decode: Some(decode),
    encode: Some(dispatch::encode::<Q80>),
};

/// Splits a block into its whole numbers; gives the scale.
#[inline(always)]
pub fn unpack(block: &[u8; BYTES], quants: &mut [i8; VALUES]) -> f32 {
    for (q, &b) in quants.iter_mut().zip(&block[QUANTS..]) {
        *q = b.cast_signed();
    }
    f16_at(block, D)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    each_block(
        bytes,
        out,
        |block: &[u8; BYTES], out: &mut [f32; VALUES]| {
            let d = f16_at(block, D);
            for (x, &b) in out.iter_mut().zip(&block[QUANTS..]) {
                *x = f32::from(b.cast_signed()) * d;
            }
        },
    );
}

/// -128 is read but not written: kernels that take magnitudes of signed bytes are spared the case.
const SEARCH: Search = Search {
    numbers: (-127.0, 127.0),
    scales: (0.0, 0.0),
    ends: &[127.0, 126.5, 126.0, 125.5, 127.49],
    rounds: 1,
    refits: 0,
};

struct Q80;

impl Encoder for Q80 {
    const BYTES: usize = BYTES * GROUP / VALUES;

    #[inline(always)]
    fn group<const PADDED: bool>(values: &[f32], out: &mut [u8]) {
        let tile = Tile::<8, 32>::load::<PADDED>(values);
        let best = apart(&fit(&tile, &SEARCH));
        let steps: [Step; 8] = std::array::from_fn(|l| tile.step(best[l]));
        let by: Lanes<8> = lanes(|l| inverse(steps[l].value));
        let numbers = numbers(&tile, SEARCH.numbers, &by);
        let blocks = out.as_chunks_mut::<BYTES>().0;
        for ((block, step), numbers) in blocks
            .iter_mut()
            .zip(steps)
            .zip(numbers.as_chunks::<VALUES>().0)
        {
            block[D..][..2].copy_from_slice(&step.half.to_le_bytes());
            for (b, &q) in block[QUANTS..].iter_mut().zip(numbers) {
                *b = q.wrapping_sub(127);
            }
        }
    }
}
