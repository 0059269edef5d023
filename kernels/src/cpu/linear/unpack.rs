//! Block layouts as codes, scales and leasts. Plain integer loops over fixed lengths, which compilers turn into vectors.
//!
//! The layouts are GGML's published ones; `encoding/` documents each. Every value is `scale · code + least`, `code` an integer
//! below 128: where a layout centres its codes (6 bits minus 32), the offset goes into `least`, which costs one multiply-add
//! for 256 columns.
#![expect(
    clippy::needless_range_loop,
    reason = "an index names a column or a token in several arrays"
)]

use super::quantised::{Quantised, Unpacked};
use crate::cpu::simd::Simd;

/// Up to sixteen halves that stand `step` bytes apart.
#[inline(always)]
fn halves<S: Simd>(s: S, from: &[u8], step: usize) -> [f32; 16] {
    let mut bytes = [0; 32];
    for (to, from) in bytes
        .as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(from.chunks(step))
    {
        *to = [from[0], from[1]];
    }
    let mut out = [0.0; 16];
    s.store(s.load_f16(&bytes), &mut out);
    out
}

/// `N` bytes from `at`.
#[inline(always)]
fn field<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    match block[at..].first_chunk() {
        Some(field) => field,
        None => unreachable!("a block holds all its fields"),
    }
}

/// `N` codes from `at`.
#[inline(always)]
fn part<const N: usize>(codes: &mut [i8; 256], at: usize) -> &mut [i8; N] {
    match codes[at..].first_chunk_mut() {
        Some(part) => part,
        None => unreachable!("parts lie in the chunk"),
    }
}

/// The low bits of a byte as a code.
#[inline(always)]
fn code(byte: u8) -> i8 {
    byte as i8
}

/// d (half), 32 signed codes.
pub(super) struct Q8_0;

impl Quantised for Q8_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 34;
    const SIGNED: bool = true;
    const LEAST: bool = false;
    const FINE: bool = false;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, blocks: &[u8], to: &mut Unpacked) {
        let d = halves(s, blocks, Self::BYTES);
        for (b, block) in blocks.chunks_exact(Self::BYTES).enumerate() {
            let from: &[u8; 32] = field(block, 2);
            let codes: &mut [i8; 32] = part(&mut to.codes, 32 * b);
            for j in 0..32 {
                codes[j] = code(from[j]);
            }
            to.scale[2 * b] = d[b];
            to.scale[2 * b + 1] = d[b];
        }
    }
}

/// d, m (halves), 16 bytes of two codes: columns j and j + 16.
pub(super) struct Q4_1;

impl Quantised for Q4_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 20;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = false;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, blocks: &[u8], to: &mut Unpacked) {
        let d = halves(s, blocks, Self::BYTES);
        let m = halves(s, &blocks[2..], Self::BYTES);
        for (b, block) in blocks.chunks_exact(Self::BYTES).enumerate() {
            let from: &[u8; 16] = field(block, 4);
            let codes: &mut [i8; 32] = part(&mut to.codes, 32 * b);
            for j in 0..16 {
                codes[j] = code(from[j] & 15);
                codes[j + 16] = code(from[j] >> 4);
            }
            for half in 0..2 {
                to.scale[2 * b + half] = d[b];
                to.least[2 * b + half] = m[b];
            }
        }
    }
}

/// d, m (halves), 32 fifth bits, 16 bytes of two codes' low bits: columns j and j + 16.
pub(super) struct Q5_1;

impl Quantised for Q5_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 24;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = false;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, blocks: &[u8], to: &mut Unpacked) {
        let d = halves(s, blocks, Self::BYTES);
        let m = halves(s, &blocks[2..], Self::BYTES);
        for (b, block) in blocks.chunks_exact(Self::BYTES).enumerate() {
            let fifth: &[u8; 4] = field(block, 4);
            let from: &[u8; 16] = field(block, 8);
            let codes: &mut [i8; 32] = part(&mut to.codes, 32 * b);
            for j in 0..16 {
                codes[j] = code(from[j] & 15 | ((fifth[j / 8] >> (j % 8)) & 1) << 4);
                codes[j + 16] = code(from[j] >> 4 | ((fifth[2 + j / 8] >> (j % 8)) & 1) << 4);
            }
            for half in 0..2 {
                to.scale[2 * b + half] = d[b];
                to.least[2 * b + half] = m[b];
            }
        }
    }
}

/// Eight 6-bit scales and eight 6-bit leasts in twelve bytes.
#[inline(always)]
fn six_bit_pairs(b: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let mut scales = [0; 8];
    let mut leasts = [0; 8];
    for j in 0..4 {
        scales[j] = b[j] & 63;
        leasts[j] = b[j + 4] & 63;
        scales[j + 4] = b[j + 8] & 15 | (b[j] >> 6) << 4;
        leasts[j + 4] = b[j + 8] >> 4 | (b[j + 4] >> 6) << 4;
    }
    (scales, leasts)
}

/// Scales and leasts of q4_k and q5_k, whose blocks begin alike.
#[inline(always)]
fn paired_scales<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
    let [d, d_least, ..] = halves(s, &block[..4], 2);
    let (scales, leasts) = six_bit_pairs(field(block, 4));
    for i in 0..16 {
        to.scale[i] = d * f32::from(scales[i / 2]);
        to.least[i] = -(d_least * f32::from(leasts[i / 2]));
    }
}

/// d, d_least (halves), eight 6-bit scales and leasts, 128 bytes: of each 32 the low halves are 32 columns, the high halves the next 32.
pub(super) struct Q4K;

impl Quantised for Q4K {
    const BLOCK: usize = 256;
    const BYTES: usize = 144;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = false;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
        paired_scales(s, block, to);
        for c in 0..4 {
            let from: &[u8; 32] = field(block, 16 + 32 * c);
            let codes: &mut [i8; 64] = part(&mut to.codes, 64 * c);
            for j in 0..32 {
                codes[j] = code(from[j] & 15);
                codes[j + 32] = code(from[j] >> 4);
            }
        }
    }
}

/// As q4_k, with 32 bytes of fifth bits before the codes: bit i of byte j belongs to column 32i + j.
pub(super) struct Q5K;

impl Quantised for Q5K {
    const BLOCK: usize = 256;
    const BYTES: usize = 176;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = false;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
        paired_scales(s, block, to);
        let fifth: &[u8; 32] = field(block, 16);
        for c in 0..4 {
            let from: &[u8; 32] = field(block, 48 + 32 * c);
            let codes: &mut [i8; 64] = part(&mut to.codes, 64 * c);
            for j in 0..32 {
                codes[j] = code(from[j] & 15 | ((fifth[j] >> (2 * c)) & 1) << 4);
                codes[j + 32] = code(from[j] >> 4 | ((fifth[j] >> (2 * c + 1)) & 1) << 4);
            }
        }
    }
}

/// 128 bytes of low bits, 64 of two high bits, sixteen signed scales, d (half); codes are centred on 32.
pub(super) struct Q6K;

impl Quantised for Q6K {
    const BLOCK: usize = 256;
    const BYTES: usize = 210;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = true;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
        let [d, ..] = halves(s, &block[208..210], 2);
        let scales: &[u8; 16] = field(block, 192);
        for i in 0..16 {
            to.scale[i] = d * f32::from(code(scales[i]));
            to.least[i] = -32.0 * to.scale[i];
        }
        for c in 0..2 {
            let low: &[u8; 64] = field(block, 64 * c);
            let high: &[u8; 32] = field(block, 128 + 32 * c);
            let codes: &mut [i8; 128] = part(&mut to.codes, 128 * c);
            for j in 0..32 {
                codes[j] = code(low[j] & 15 | (high[j] & 3) << 4);
                codes[j + 32] = code(low[j + 32] & 15 | (high[j] >> 2 & 3) << 4);
                codes[j + 64] = code(low[j] >> 4 | (high[j] >> 4 & 3) << 4);
                codes[j + 96] = code(low[j + 32] >> 4 | (high[j] >> 6) << 4);
            }
        }
    }
}

/// 32 bytes of third bits, 64 of two low bits, sixteen 6-bit scales centred on 32, d (half); codes are centred on 4.
pub(super) struct Q3K;

impl Quantised for Q3K {
    const BLOCK: usize = 256;
    const BYTES: usize = 110;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = true;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
        let [d, ..] = halves(s, &block[108..110], 2);
        let b: &[u8; 12] = field(block, 96);
        for i in 0..16 {
            let low = if i < 8 { b[i] & 15 } else { b[i - 8] >> 4 };
            let scale = low | ((b[8 + i % 4] >> (2 * (i / 4))) & 3) << 4;
            to.scale[i] = d * (f32::from(scale) - 32.0);
            to.least[i] = -4.0 * to.scale[i];
        }
        let third: &[u8; 32] = field(block, 0);
        for c in 0..2 {
            let low: &[u8; 32] = field(block, 32 + 32 * c);
            for i in 0..4 {
                let codes: &mut [i8; 32] = part(&mut to.codes, 128 * c + 32 * i);
                for j in 0..32 {
                    codes[j] = code((low[j] >> (2 * i)) & 3 | ((third[j] >> (4 * c + i)) & 1) << 2);
                }
            }
        }
    }
}

/// Sixteen 4-bit scales and leasts, 64 bytes of two bits, d, d_least (halves).
pub(super) struct Q2K;

impl Quantised for Q2K {
    const BLOCK: usize = 256;
    const BYTES: usize = 84;
    const SIGNED: bool = false;
    const LEAST: bool = true;
    const FINE: bool = true;

    #[inline(always)]
    fn unpack<S: Simd>(s: S, block: &[u8], to: &mut Unpacked) {
        let [d, d_least, ..] = halves(s, &block[80..84], 2);
        let scales: &[u8; 16] = field(block, 0);
        for i in 0..16 {
            to.scale[i] = d * f32::from(scales[i] & 15);
            to.least[i] = -(d_least * f32::from(scales[i] >> 4));
        }
        for c in 0..2 {
            let from: &[u8; 32] = field(block, 16 + 32 * c);
            for i in 0..4 {
                let codes: &mut [i8; 32] = part(&mut to.codes, 128 * c + 32 * i);
                for j in 0..32 {
                    codes[j] = code((from[j] >> (2 * i)) & 3);
                }
            }
        }
    }
}
