//! `q8_0`: 32 values in 34 bytes; a scale and 32 signed bytes.
//!
//! Layout as GGML publishes it: `d` binary16, then `q` i8 [32]. Value i is `q[i] · d`.

use super::Encoding;
use super::block::{each_block, f16_at};

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
    encode: None,
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
