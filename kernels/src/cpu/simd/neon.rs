//! Sixteen floats as four Advanced SIMD registers.
//!
//! On other machines tests compile it over an emulation of the intrinsics.
#![expect(unsafe_code, reason = "instructions that not every machine has")]

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;

#[cfg(not(target_arch = "aarch64"))]
mod emulated;
#[cfg(not(target_arch = "aarch64"))]
use emulated::*;

use super::{Kernel, Simd};
use crate::encoding::half::f16_to_f32;

/// Proof that this machine has Advanced SIMD.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// The proof, if it holds.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        #[cfg(target_arch = "aarch64")]
        let found = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(target_arch = "aarch64"))]
        let found = true;
        found.then_some(Self(()))
    }
}

/// Calls intrinsics on values.
macro_rules! have {
    ($call:expr) => {
        // SAFETY: a `Neon` exists only where `Neon::new` found the instructions; memory operands are references to whole arrays.
        unsafe { $call }
    };
}

#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
unsafe fn with_neon<K: Kernel>(s: Neon, kernel: K) -> K::Output {
    kernel.run(s)
}

/// Lanes 0..4, 4..8, 8..12 and 12..16.
#[derive(Clone, Copy)]
pub(crate) struct Four(float32x4_t, float32x4_t, float32x4_t, float32x4_t);

/// One instruction on each register of two values.
macro_rules! each {
    ($f:ident, $a:expr, $b:expr) => {
        have!(Four(
            $f($a.0, $b.0),
            $f($a.1, $b.1),
            $f($a.2, $b.2),
            $f($a.3, $b.3)
        ))
    };
}

/// a > b ? a : b; the maximum instruction treats NaN in another way.
#[inline(always)]
fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    have!(vbslq_f32(vcgtq_f32(a, b), a, b))
}

/// a < b ? a : b.
#[inline(always)]
fn smaller(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    have!(vbslq_f32(vcltq_f32(a, b), a, b))
}

/// a · b + c; the instruction wants the addend first.
#[inline(always)]
fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    have!(vfmaq_f32(c, a, b))
}

#[inline(always)]
fn power_of_two(shifted: float32x4_t) -> float32x4_t {
    let biased = have!(vaddq_s32(vreinterpretq_s32_f32(shifted), vdupq_n_s32(127)));
    have!(vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased)))
}

/// Columns 0..16, 16..32, 32..48 and 48..64.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(int8x16_t, int8x16_t, int8x16_t, int8x16_t);

/// Four quads out of sixteen columns: products of two bytes fit 16 bits.
#[inline(always)]
fn four_quads(w: int8x16_t, a: &[i8; 64], at: usize) -> float32x4_t {
    let a = have!(vld1q_s8(a.as_ptr().add(16 * at)));
    let low = have!(vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a))));
    let high = have!(vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(a))));
    have!(vcvtq_f32_s32(vpaddq_s32(low, high)))
}

/// Bits from `from` on of sixteen bytes.
#[inline(always)]
fn field(x: uint8x16_t, from: u8, mask: u8) -> int8x16_t {
    // A negative shift to the left is one to the right.
    let shifted = have!(vshlq_u8(x, vdupq_n_s8(-from.cast_signed())));
    have!(vreinterpretq_s8_u8(vandq_u8(shifted, vdupq_n_u8(mask))))
}

/// Half of 32 bytes.
#[inline(always)]
fn half(x: &[u8; 32], at: usize) -> uint8x16_t {
    have!(vld1q_u8(x.as_ptr().add(16 * at)))
}

/// `value` where a bit is set.
#[inline(always)]
fn where_set(bits: u16, value: i8) -> int8x16_t {
    let [low, high] = bits.to_le_bytes();
    let bytes = have!(vcombine_u8(vdup_n_u8(low), vdup_n_u8(high)));
    let one = have!(vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201)));
    let set = have!(vtstq_u8(bytes, one));
    have!(vandq_s8(vreinterpretq_s8_u8(set), vdupq_n_s8(value)))
}

/// `low | high << shift`.
#[inline(always)]
fn join(low: int8x16_t, high: int8x16_t, shift: u8) -> int8x16_t {
    have!(vorrq_s8(
        low,
        vshlq_s8(high, vdupq_n_s8(shift.cast_signed()))
    ))
}

/// Four bfloat16 widened.
#[inline(always)]
fn widen(x: uint16x4_t) -> float32x4_t {
    have!(vreinterpretq_f32_u32(vshlq_n_u32::<16>(vmovl_u16(x))))
}

impl Simd for Neon {
    type F = Four;
    type Codes = Bytes;

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        have!(with_neon(self, kernel))
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Four {
        let v = have!(vdupq_n_f32(x));
        Four(v, v, v, v)
    }
    #[inline(always)]
    fn halves(self, low: f32, high: f32) -> Four {
        let low = have!(vdupq_n_f32(low));
        let high = have!(vdupq_n_f32(high));
        Four(low, low, high, high)
    }
    #[inline(always)]
    fn quarters(self, x: &[f32; 4]) -> Four {
        have!(Four(
            vdupq_n_f32(x[0]),
            vdupq_n_f32(x[1]),
            vdupq_n_f32(x[2]),
            vdupq_n_f32(x[3])
        ))
    }
    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> Four {
        have!(Four(
            vld1q_f32(x.as_ptr()),
            vld1q_f32(x.as_ptr().add(4)),
            vld1q_f32(x.as_ptr().add(8)),
            vld1q_f32(x.as_ptr().add(12))
        ))
    }
    #[inline(always)]
    fn store(self, v: Four, out: &mut [f32; 16]) {
        have!(vst1q_f32(out.as_mut_ptr(), v.0));
        have!(vst1q_f32(out.as_mut_ptr().add(4), v.1));
        have!(vst1q_f32(out.as_mut_ptr().add(8), v.2));
        have!(vst1q_f32(out.as_mut_ptr().add(12), v.3));
    }
    #[inline(always)]
    fn load_f32_bytes(self, x: &[u8; 64]) -> Four {
        self.load(&std::array::from_fn(|i| {
            f32::from_le_bytes([x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]])
        }))
    }
    #[inline(always)]
    fn load_bf16(self, x: &[u8; 32]) -> Four {
        let low = have!(vreinterpretq_u16_u8(vld1q_u8(x.as_ptr())));
        let high = have!(vreinterpretq_u16_u8(vld1q_u8(x.as_ptr().add(16))));
        Four(
            widen(have!(vget_low_u16(low))),
            widen(have!(vget_high_u16(low))),
            widen(have!(vget_low_u16(high))),
            widen(have!(vget_high_u16(high))),
        )
    }
    #[inline(always)]
    fn load_f16(self, x: &[u8; 32]) -> Four {
        self.load(&std::array::from_fn(|i| {
            f16_to_f32(u16::from_le_bytes([x[2 * i], x[2 * i + 1]]))
        }))
    }

    #[inline(always)]
    fn load_i8(self, x: &[i8; 16]) -> Four {
        self.load(&x.map(f32::from))
    }
    #[inline(always)]
    fn load_i8_twice(self, x: &[i8; 8]) -> Four {
        self.load(&std::array::from_fn(|i| f32::from(x[i / 2])))
    }

    #[inline(always)]
    fn add(self, a: Four, b: Four) -> Four {
        each!(vaddq_f32, a, b)
    }
    #[inline(always)]
    fn sub(self, a: Four, b: Four) -> Four {
        each!(vsubq_f32, a, b)
    }
    #[inline(always)]
    fn mul(self, a: Four, b: Four) -> Four {
        each!(vmulq_f32, a, b)
    }
    #[inline(always)]
    fn div(self, a: Four, b: Four) -> Four {
        each!(vdivq_f32, a, b)
    }
    #[inline(always)]
    fn mul_add(self, a: Four, b: Four, c: Four) -> Four {
        Four(
            mul_add(a.0, b.0, c.0),
            mul_add(a.1, b.1, c.1),
            mul_add(a.2, b.2, c.2),
            mul_add(a.3, b.3, c.3),
        )
    }
    #[inline(always)]
    fn larger(self, a: Four, b: Four) -> Four {
        Four(
            larger(a.0, b.0),
            larger(a.1, b.1),
            larger(a.2, b.2),
            larger(a.3, b.3),
        )
    }
    #[inline(always)]
    fn smaller(self, a: Four, b: Four) -> Four {
        Four(
            smaller(a.0, b.0),
            smaller(a.1, b.1),
            smaller(a.2, b.2),
            smaller(a.3, b.3),
        )
    }
    #[inline(always)]
    fn power_of_two(self, shifted: Four) -> Four {
        Four(
            power_of_two(shifted.0),
            power_of_two(shifted.1),
            power_of_two(shifted.2),
            power_of_two(shifted.3),
        )
    }
    #[inline(always)]
    fn sum(self, v: Four) -> f32 {
        let low = have!(vaddq_f32(v.0, v.2));
        let high = have!(vaddq_f32(v.1, v.3));
        let four = have!(vaddq_f32(low, high));
        let two = have!(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
        have!(vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two))
    }

    #[inline(always)]
    fn fields(self, a: &[u8; 32], from_a: u8, b: &[u8; 32], from_b: u8, mask: u8) -> Bytes {
        Bytes(
            field(half(a, 0), from_a, mask),
            field(half(a, 1), from_a, mask),
            field(half(b, 0), from_b, mask),
            field(half(b, 1), from_b, mask),
        )
    }
    #[inline(always)]
    fn nibbles(self, a: &[u8; 16], b: &[u8; 16]) -> Bytes {
        let a = have!(vld1q_u8(a.as_ptr()));
        let b = have!(vld1q_u8(b.as_ptr()));
        Bytes(
            field(a, 0, 15),
            field(a, 4, 15),
            field(b, 0, 15),
            field(b, 4, 15),
        )
    }
    #[inline(always)]
    fn where_set(self, bits: u64, value: i8) -> Bytes {
        Bytes(
            where_set(bits as u16, value),
            where_set((bits >> 16) as u16, value),
            where_set((bits >> 32) as u16, value),
            where_set((bits >> 48) as u16, value),
        )
    }
    #[inline(always)]
    fn join(self, low: Bytes, high: Bytes, shift: u8) -> Bytes {
        Bytes(
            join(low.0, high.0, shift),
            join(low.1, high.1, shift),
            join(low.2, high.2, shift),
            join(low.3, high.3, shift),
        )
    }
    #[inline(always)]
    fn quads(self, w: Bytes, a: &[i8; 64]) -> Four {
        self.quads_signed(w, a)
    }
    #[inline(always)]
    fn quads_signed(self, w: Bytes, a: &[i8; 64]) -> Four {
        Four(
            four_quads(w.0, a, 0),
            four_quads(w.1, a, 1),
            four_quads(w.2, a, 2),
            four_quads(w.3, a, 3),
        )
    }
}
