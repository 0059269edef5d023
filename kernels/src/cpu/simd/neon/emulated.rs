//! The Advanced SIMD intrinsics that the level uses, as plain arrays: lets tests on any machine check its lane orders.
//!
//! Named and typed as in `std::arch::aarch64`; semantics from Arm's "Intrinsics" reference.
#![expect(non_camel_case_types, reason = "the names of the originals")]

macro_rules! registers {
    ($($name:ident $element:ty, $lanes:literal;)*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $name([$element; $lanes]);
    )*};
}

registers! {
    float32x4_t f32, 4;
    float32x2_t f32, 2;
    int32x4_t i32, 4;
    uint32x4_t u32, 4;
    int16x8_t i16, 8;
    uint16x8_t u16, 8;
    uint16x4_t u16, 4;
    int8x16_t i8, 16;
    int8x8_t i8, 8;
    uint8x16_t u8, 16;
    uint8x8_t u8, 8;
    uint64x2_t u64, 2;
}

use std::array::from_fn;

/// Lane by lane.
macro_rules! lanes {
    ($($name:ident($($arg:ident: $from:ident),+) -> $to:ident = |$i:ident| $lane:expr;)*) => {$(
        pub(crate) unsafe fn $name($($arg: $from),+) -> $to {
            $(let $arg = $arg.0;)+
            $to(from_fn(|$i| $lane))
        }
    )*};
}

lanes! {
    vaddq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t = |i| a[i] + b[i];
    vsubq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t = |i| a[i] - b[i];
    vmulq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t = |i| a[i] * b[i];
    vdivq_f32(a: float32x4_t, b: float32x4_t) -> float32x4_t = |i| a[i] / b[i];
    vfmaq_f32(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = |i| b[i].mul_add(c[i], a[i]);
    vcgtq_f32(a: float32x4_t, b: float32x4_t) -> uint32x4_t = |i| if a[i] > b[i] { u32::MAX } else { 0 };
    vcltq_f32(a: float32x4_t, b: float32x4_t) -> uint32x4_t = |i| if a[i] < b[i] { u32::MAX } else { 0 };
    vbslq_f32(a: uint32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t =
        |i| f32::from_bits(a[i] & b[i].to_bits() | !a[i] & c[i].to_bits());
    vadd_f32(a: float32x2_t, b: float32x2_t) -> float32x2_t = |i| a[i] + b[i];
    vget_low_f32(a: float32x4_t) -> float32x2_t = |i| a[i];
    vget_high_f32(a: float32x4_t) -> float32x2_t = |i| a[i + 2];
    vaddq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t = |i| a[i].wrapping_add(b[i]);
    vreinterpretq_s32_f32(a: float32x4_t) -> int32x4_t = |i| a[i].to_bits().cast_signed();
    vreinterpretq_f32_s32(a: int32x4_t) -> float32x4_t = |i| f32::from_bits(a[i].cast_unsigned());
    vreinterpretq_f32_u32(a: uint32x4_t) -> float32x4_t = |i| f32::from_bits(a[i]);
    vcvtq_f32_s32(a: int32x4_t) -> float32x4_t = |i| a[i] as f32;
    vmovl_u16(a: uint16x4_t) -> uint32x4_t = |i| u32::from(a[i]);
    vget_low_u16(a: uint16x8_t) -> uint16x4_t = |i| a[i];
    vget_high_u16(a: uint16x8_t) -> uint16x4_t = |i| a[i + 4];
    vreinterpretq_u16_u8(a: uint8x16_t) -> uint16x8_t = |i| u16::from_le_bytes([a[2 * i], a[2 * i + 1]]);
    vreinterpretq_s8_u8(a: uint8x16_t) -> int8x16_t = |i| a[i].cast_signed();
    vreinterpretq_u8_u64(a: uint64x2_t) -> uint8x16_t = |i| a[i / 8].to_le_bytes()[i % 8];
    vget_low_s8(a: int8x16_t) -> int8x8_t = |i| a[i];
    vget_high_s8(a: int8x16_t) -> int8x8_t = |i| a[i + 8];
    vmull_s8(a: int8x8_t, b: int8x8_t) -> int16x8_t = |i| i16::from(a[i]) * i16::from(b[i]);
    vpaddlq_s16(a: int16x8_t) -> int32x4_t = |i| i32::from(a[2 * i]) + i32::from(a[2 * i + 1]);
    vpaddq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t =
        |i| if i < 2 { a[2 * i] + a[2 * i + 1] } else { b[2 * i - 4] + b[2 * i - 3] };
    vcombine_u8(a: uint8x8_t, b: uint8x8_t) -> uint8x16_t = |i| if i < 8 { a[i] } else { b[i - 8] };
    vtstq_u8(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t = |i| if a[i] & b[i] != 0 { 0xff } else { 0 };
    vandq_u8(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t = |i| a[i] & b[i];
    vandq_s8(a: int8x16_t, b: int8x16_t) -> int8x16_t = |i| a[i] & b[i];
    vorrq_s8(a: int8x16_t, b: int8x16_t) -> int8x16_t = |i| a[i] | b[i];
    vshlq_u8(a: uint8x16_t, b: int8x16_t) -> uint8x16_t =
        |i| if b[i] < 0 { a[i] >> -b[i] } else { a[i] << b[i] };
    vshlq_s8(a: int8x16_t, b: int8x16_t) -> int8x16_t =
        |i| if b[i] < 0 { a[i] >> -b[i] } else { a[i] << b[i] };
}

pub(crate) unsafe fn vshlq_n_s32<const N: i32>(a: int32x4_t) -> int32x4_t {
    int32x4_t(a.0.map(|x| x << N))
}
pub(crate) unsafe fn vshlq_n_u32<const N: i32>(a: uint32x4_t) -> uint32x4_t {
    uint32x4_t(a.0.map(|x| x << N))
}
pub(crate) unsafe fn vget_lane_f32<const LANE: i32>(a: float32x2_t) -> f32 {
    a.0[LANE as usize]
}

/// The same value in all lanes, memory to lanes, lanes to memory.
macro_rules! memory {
    ($($register:ident, $element:ty, $lanes:literal: $same:ident $($load:ident)?;)*) => {$(
        pub(crate) unsafe fn $same(x: $element) -> $register {
            $register([x; $lanes])
        }
        $(pub(crate) unsafe fn $load(x: *const $element) -> $register {
            // SAFETY: the caller's pointer reaches as many elements as the register has lanes.
            $register(unsafe { x.cast::<[$element; $lanes]>().read_unaligned() })
        })?
    )*};
}

memory! {
    float32x4_t, f32, 4: vdupq_n_f32 vld1q_f32;
    int32x4_t, i32, 4: vdupq_n_s32;
    int8x16_t, i8, 16: vdupq_n_s8 vld1q_s8;
    uint8x16_t, u8, 16: vdupq_n_u8 vld1q_u8;
    uint8x8_t, u8, 8: vdup_n_u8;
    uint64x2_t, u64, 2: vdupq_n_u64;
}

pub(crate) unsafe fn vst1q_f32(to: *mut f32, x: float32x4_t) {
    // SAFETY: the caller's pointer reaches four elements.
    unsafe { to.cast::<[f32; 4]>().write_unaligned(x.0) }
}
