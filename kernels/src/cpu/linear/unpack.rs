//! Block layouts as codes, scales and leasts.
//!
//! The layouts are GGML's published ones; `encoding/` documents each. Every value is `scale · code + least`, `code` an integer
//! below 128: where a layout centres its codes (6 bits minus 32), the offset goes into `least`, which costs one multiply-add
//! for 256 columns.

use super::quantised::Quantised;
use crate::cpu::simd::Simd;

/// `N` bytes from `at`.
#[inline(always)]
fn field<const N: usize>(blocks: &[u8], at: usize) -> &[u8; N] {
    match blocks[at..].first_chunk() {
        Some(field) => field,
        None => unreachable!("blocks hold all their fields"),
    }
}

/// The four bytes from `at` as one number, to treat them alike.
#[inline(always)]
fn four(blocks: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*field(blocks, at))
}

/// The half at `at`, in all lanes.
#[inline(always)]
fn half<S: Simd>(s: S, blocks: &[u8], at: usize) -> S::F {
    let half: [u8; 2] = *field(blocks, at);
    let mut bytes = [0; 32];
    for to in bytes.as_chunks_mut().0 {
        *to = half;
    }
    s.load_f16(&bytes)
}

/// The halves that stand at `at` in eight blocks of `step` bytes, each twice.
#[inline(always)]
fn halves<S: Simd>(s: S, blocks: &[u8], at: usize, step: usize) -> S::F {
    let mut bytes = [0; 32];
    let to = bytes.as_chunks_mut::<2>().0;
    for b in 0..8 {
        let half = *field(blocks, b * step + at);
        to[2 * b] = half;
        to[2 * b + 1] = half;
    }
    s.load_f16(&bytes)
}

/// Bytes that were treated four at a time.
#[inline(always)]
fn bytes<const N: usize>(fours: &[u32]) -> [i8; N] {
    let mut all = [0; N];
    for (to, from) in all.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
        *to = from.to_le_bytes().map(u8::cast_signed);
    }
    all
}

/// −x.
#[inline(always)]
fn negative<S: Simd>(s: S, x: S::F) -> S::F {
    s.mul(x, s.splat(-1.0))
}

/// d (half), 32 signed codes.
pub(super) struct Q8_0;

impl Quantised for Q8_0 {
    const CHUNK_BYTES: usize = 8 * 34;
    const SIGNED: bool = true;
    const LEAST: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        (halves(s, blocks, 0, 34), s.splat(0.0))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let at = 68 * part + 2;
        s.fields(field(blocks, at), 0, field(blocks, at + 34), 0, 0xff)
    }
}

/// d, m (halves), 16 bytes of two codes: columns j and j + 16.
pub(super) struct Q4_1;

impl Quantised for Q4_1 {
    const CHUNK_BYTES: usize = 8 * 20;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        (halves(s, blocks, 0, 20), halves(s, blocks, 2, 20))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let at = 40 * part + 4;
        s.nibbles(field(blocks, at), field(blocks, at + 20))
    }
}

/// d, m (halves), 32 fifth bits, 16 bytes of two codes' low bits: columns j and j + 16.
pub(super) struct Q5_1;

impl Quantised for Q5_1 {
    const CHUNK_BYTES: usize = 8 * 24;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        (halves(s, blocks, 0, 24), halves(s, blocks, 2, 24))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let at = 48 * part + 4;
        let fifth = u64::from(four(blocks, at)) | u64::from(four(blocks, at + 24)) << 32;
        let low = s.nibbles(field(blocks, at + 4), field(blocks, at + 28));
        s.join(low, s.where_set(fifth, 16), 0)
    }
}

/// Scales and leasts of q4_k and q5_k, whose blocks begin alike: d, d_least (halves), then eight 6-bit scales and leasts in
/// twelve bytes. The first eight bytes hold four scales and four leasts in their lower six bits; the others have their lower
/// four bits in the last four bytes and their upper two where the first eight bytes have room.
#[inline(always)]
fn paired_scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
    const SIX: u32 = 0x3f3f_3f3f;
    const FOUR: u32 = 0x0f0f_0f0f;
    const TWO_UP: u32 = 0x3030_3030;
    let (first, second, last) = (four(blocks, 4), four(blocks, 8), four(blocks, 12));
    let scales = [first & SIX, last & FOUR | first >> 2 & TWO_UP];
    let leasts = [second & SIX, last >> 4 & FOUR | second >> 2 & TWO_UP];
    let d_least = negative(s, half(s, blocks, 2));
    (
        s.mul(half(s, blocks, 0), s.load_i8_twice(&bytes(&scales))),
        s.mul(d_least, s.load_i8_twice(&bytes(&leasts))),
    )
}

/// Paired scales, then 128 bytes: of each 32 the low halves are 32 columns, the high halves the next 32.
pub(super) struct Q4K;

impl Quantised for Q4K {
    const CHUNK_BYTES: usize = 144;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        paired_scales(s, blocks)
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let from = field(blocks, 16 + 32 * part);
        s.fields(from, 0, from, 4, 15)
    }
}

/// As q4_k, with 32 bytes of fifth bits before the codes: bit i of byte j belongs to column 32i + j.
pub(super) struct Q5K;

impl Quantised for Q5K {
    const CHUNK_BYTES: usize = 176;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        paired_scales(s, blocks)
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let fifth = field(blocks, 16);
        let bit = [0, 2, 4, 6][part];
        let high = s.fields(fifth, bit, fifth, bit + 1, 1);
        let from = field(blocks, 48 + 32 * part);
        s.join(s.fields(from, 0, from, 4, 15), high, 4)
    }
}

/// 128 bytes of low bits, 64 of two high bits, sixteen signed scales, d (half); codes are centred on 32.
pub(super) struct Q6K;

impl Quantised for Q6K {
    const CHUNK_BYTES: usize = 210;
    const FINE: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        let scales = s.load_i8(&field(blocks, 192).map(u8::cast_signed));
        let scales = s.mul(half(s, blocks, 208), scales);
        (scales, s.mul(scales, s.splat(-32.0)))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        // Of each 128 columns, the first 64 lie in the low halves, the others in the high halves of the same bytes.
        let low = 64 * (part / 2);
        let shift = [0, 4][part % 2];
        let (a, b) = (field(blocks, low), field(blocks, low + 32));
        let high = field(blocks, 128 + 32 * (part / 2));
        let high = s.fields(high, shift, high, shift + 2, 3);
        s.join(s.fields(a, shift, b, shift, 15), high, 4)
    }
}

/// 32 bytes of third bits, 64 of two low bits, sixteen 6-bit scales centred on 32, d (half); codes are centred on 4.
pub(super) struct Q3K;

impl Quantised for Q3K {
    const CHUNK_BYTES: usize = 110;
    const FINE: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        const FOUR: u32 = 0x0f0f_0f0f;
        const TWO: u32 = 0x0303_0303;
        let (first, second, last) = (four(blocks, 96), four(blocks, 100), four(blocks, 104));
        let scales = [
            first & FOUR | (last & TWO) << 4,
            second & FOUR | (last >> 2 & TWO) << 4,
            first >> 4 & FOUR | (last >> 4 & TWO) << 4,
            second >> 4 & FOUR | (last >> 6 & TWO) << 4,
        ];
        let scales = s.sub(s.load_i8(&bytes(&scales)), s.splat(32.0));
        let scales = s.mul(half(s, blocks, 108), scales);
        (scales, s.mul(scales, s.splat(-4.0)))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let third = field(blocks, 0);
        let bit = [0, 2, 4, 6][part];
        let high = s.fields(third, bit, third, bit + 1, 1);
        let low = field(blocks, 32 + 32 * (part / 2));
        let shift = [0, 4][part % 2];
        s.join(s.fields(low, shift, low, shift + 2, 3), high, 2)
    }
}

/// Sixteen 4-bit scales and leasts, 64 bytes of two bits, d, d_least (halves).
pub(super) struct Q2K;

impl Quantised for Q2K {
    const CHUNK_BYTES: usize = 84;
    const FINE: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, blocks: &[u8]) -> (S::F, S::F) {
        let pairs: &[u8; 16] = field(blocks, 0);
        let scales = s.load_i8(&pairs.map(|p| (p & 15).cast_signed()));
        let leasts = s.load_i8(&pairs.map(|p| (p >> 4).cast_signed()));
        let d_least = negative(s, half(s, blocks, 82));
        (s.mul(half(s, blocks, 80), scales), s.mul(d_least, leasts))
    }
    #[inline(always)]
    fn codes<S: Simd>(s: S, blocks: &[u8], part: usize) -> S::Codes {
        let from = field(blocks, 16 + 32 * (part / 2));
        let shift = [0, 4][part % 2];
        s.fields(from, shift, from, shift + 2, 3)
    }
}
