//! Sixteen floats as one AVX-512 register.
#![expect(unsafe_code, reason = "instructions that not every machine has")]

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Proof that this machine has AVX-512 F, BW, VL, DQ and VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof, if it holds.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c"))
        .then_some(Self(()))
    }
}

/// Calls intrinsics on values.
macro_rules! have {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only where `Avx512::new` found the instructions; memory operands are references to whole arrays.
        unsafe { $call }
    };
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
fn with_avx512<K: Kernel>(s: Avx512, kernel: K) -> K::Output {
    kernel.run(s)
}

/// Bits from `from` on of each byte.
#[inline(always)]
fn field(x: &[u8; 32], from: u8) -> __m256i {
    let x = have!(_mm256_loadu_si256(x.as_ptr().cast()));
    let count = have!(_mm_cvtsi32_si128(i32::from(from)));
    have!(_mm256_srl_epi16(x, count))
}

/// Sixteen bytes, then the same shifted so that the high four bits come low.
#[inline(always)]
fn both_nibbles(x: &[u8; 16]) -> __m256i {
    let x = have!(_mm_loadu_si128(x.as_ptr().cast()));
    have!(_mm256_set_m128i(_mm_srli_epi16::<4>(x), x))
}

/// Columns 0..32 and 32..64, masked.
#[inline(always)]
fn masked(low: __m256i, high: __m256i, mask: u8) -> __m512i {
    let both = have!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high));
    have!(_mm512_and_si512(both, _mm512_set1_epi8(mask.cast_signed())))
}

impl Simd for Avx512 {
    type F = __m512;
    type Codes = __m512i;

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        have!(with_avx512(self, kernel))
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        have!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn halves(self, low: f32, high: f32) -> __m512 {
        have!(_mm512_mask_blend_ps(
            0xff00,
            _mm512_set1_ps(low),
            _mm512_set1_ps(high)
        ))
    }
    #[inline(always)]
    fn quarters(self, x: &[f32; 4]) -> __m512 {
        let index = have!(_mm512_setr_epi32(
            0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3
        ));
        let four = have!(_mm512_castps128_ps512(_mm_loadu_ps(x.as_ptr())));
        have!(_mm512_permutexvar_ps(index, four))
    }
    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> __m512 {
        have!(_mm512_loadu_ps(x.as_ptr()))
    }
    #[inline(always)]
    fn store(self, v: __m512, out: &mut [f32; 16]) {
        have!(_mm512_storeu_ps(out.as_mut_ptr(), v));
    }
    #[inline(always)]
    fn load_f32_bytes(self, x: &[u8; 64]) -> __m512 {
        have!(_mm512_loadu_ps(x.as_ptr().cast()))
    }
    #[inline(always)]
    fn load_bf16(self, x: &[u8; 32]) -> __m512 {
        let halves = have!(_mm256_loadu_si256(x.as_ptr().cast()));
        have!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(
            _mm512_cvtepu16_epi32(halves)
        )))
    }
    #[inline(always)]
    fn load_f16(self, x: &[u8; 32]) -> __m512 {
        have!(_mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())))
    }

    #[inline(always)]
    fn load_i8(self, x: &[i8; 16]) -> __m512 {
        let x = have!(_mm_loadu_si128(x.as_ptr().cast()));
        have!(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x)))
    }
    #[inline(always)]
    fn load_i8_twice(self, x: &[i8; 8]) -> __m512 {
        let x = have!(_mm_loadl_epi64(x.as_ptr().cast()));
        have!(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_unpacklo_epi8(
            x, x
        ))))
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        have!(_mm512_fmadd_ps(a, b, c))
    }
    // The instructions are defined as `a > b ? a : b` and `a < b ? a : b`.
    #[inline(always)]
    fn larger(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn smaller(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn power_of_two(self, shifted: __m512) -> __m512 {
        let biased = have!(_mm512_add_epi32(
            _mm512_castps_si512(shifted),
            _mm512_set1_epi32(127)
        ));
        have!(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased)))
    }
    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        let eight = have!(_mm256_add_ps(
            _mm512_castps512_ps256(v),
            _mm512_extractf32x8_ps::<1>(v)
        ));
        let four = have!(_mm_add_ps(
            _mm256_castps256_ps128(eight),
            _mm256_extractf128_ps::<1>(eight)
        ));
        let two = have!(_mm_add_ps(four, _mm_movehl_ps(four, four)));
        have!(_mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))))
    }

    #[inline(always)]
    fn fields(self, a: &[u8; 32], from_a: u8, b: &[u8; 32], from_b: u8, mask: u8) -> __m512i {
        masked(field(a, from_a), field(b, from_b), mask)
    }
    #[inline(always)]
    fn nibbles(self, a: &[u8; 16], b: &[u8; 16]) -> __m512i {
        masked(both_nibbles(a), both_nibbles(b), 15)
    }
    #[inline(always)]
    fn where_set(self, bits: u64, value: i8) -> __m512i {
        have!(_mm512_maskz_set1_epi8(bits, value))
    }
    #[inline(always)]
    fn join(self, low: __m512i, high: __m512i, shift: u8) -> __m512i {
        let count = have!(_mm_cvtsi32_si128(i32::from(shift)));
        have!(_mm512_or_si512(low, _mm512_sll_epi16(high, count)))
    }
    #[inline(always)]
    fn quads(self, w: __m512i, a: &[i8; 64]) -> __m512 {
        let a = have!(_mm512_loadu_si512(a.as_ptr().cast()));
        have!(_mm512_cvtepi32_ps(_mm512_dpbusd_epi32(
            _mm512_setzero_si512(),
            w,
            a
        )))
    }
    #[inline(always)]
    fn quads_signed(self, w: __m512i, a: &[i8; 64]) -> __m512 {
        let a = have!(_mm512_loadu_si512(a.as_ptr().cast()));
        // |w| · (a with the sign of w).
        let negative = have!(_mm512_movepi8_mask(w));
        let a = have!(_mm512_mask_sub_epi8(a, negative, _mm512_setzero_si512(), a));
        let w = have!(_mm512_abs_epi8(w));
        have!(_mm512_cvtepi32_ps(_mm512_dpbusd_epi32(
            _mm512_setzero_si512(),
            w,
            a
        )))
    }
}
