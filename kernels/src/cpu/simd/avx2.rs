//! Sixteen floats as two AVX2 registers.
#![expect(unsafe_code, reason = "instructions that not every machine has")]

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Proof that this machine has AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if it holds.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c"))
        .then_some(Self(()))
    }
}

/// Calls intrinsics on values.
macro_rules! have {
    ($call:expr) => {
        // SAFETY: an `Avx2` exists only where `Avx2::new` found the instructions; memory operands are references to whole arrays.
        unsafe { $call }
    };
}

#[target_feature(enable = "avx2,fma,f16c")]
fn with_avx2<K: Kernel>(s: Avx2, kernel: K) -> K::Output {
    kernel.run(s)
}

/// Lanes 0..8 and 8..16.
#[derive(Clone, Copy)]
pub(crate) struct Pair(__m256, __m256);

/// Columns 0..32 and 32..64.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(__m256i, __m256i);

#[inline(always)]
fn codes(x: &[i8; 64], half: usize) -> __m256i {
    have!(_mm256_loadu_si256(x.as_ptr().cast::<__m256i>().add(half)))
}

/// Sixteen bytes as floats.
#[inline(always)]
fn widen(x: __m128i) -> Pair {
    have!(Pair(
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(x)))
    ))
}

/// Bits from `from` on of each byte.
#[inline(always)]
fn field(x: &[u8; 32], from: u8, mask: u8) -> __m256i {
    let x = have!(_mm256_loadu_si256(x.as_ptr().cast()));
    let count = have!(_mm_cvtsi32_si128(i32::from(from)));
    have!(_mm256_and_si256(
        _mm256_srl_epi16(x, count),
        _mm256_set1_epi8(mask.cast_signed())
    ))
}

/// The low four bits of sixteen bytes, then the high ones.
#[inline(always)]
fn nibbles(x: &[u8; 16]) -> __m256i {
    let x = have!(_mm_loadu_si128(x.as_ptr().cast()));
    let both = have!(_mm256_set_m128i(_mm_srli_epi16::<4>(x), x));
    have!(_mm256_and_si256(both, _mm256_set1_epi8(15)))
}

/// `value` where a bit is set.
#[inline(always)]
fn where_set(bits: u32, value: i8) -> __m256i {
    let bits = have!(_mm256_set1_epi32(bits.cast_signed()));
    // Each byte of the bits eight times over, then a different bit of each.
    let bytes = have!(_mm256_shuffle_epi8(
        bits,
        _mm256_setr_epi64x(
            0,
            0x0101_0101_0101_0101,
            0x0202_0202_0202_0202,
            0x0303_0303_0303_0303
        )
    ));
    let one = have!(_mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed()));
    let set = have!(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, one), one));
    have!(_mm256_and_si256(set, _mm256_set1_epi8(value)))
}

impl Simd for Avx2 {
    type F = Pair;
    type Codes = Bytes;

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        have!(with_avx2(self, kernel))
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Pair {
        let v = have!(_mm256_set1_ps(x));
        Pair(v, v)
    }
    #[inline(always)]
    fn halves(self, low: f32, high: f32) -> Pair {
        Pair(have!(_mm256_set1_ps(low)), have!(_mm256_set1_ps(high)))
    }
    #[inline(always)]
    fn quarters(self, x: &[f32; 4]) -> Pair {
        Pair(
            have!(_mm256_set_m128(_mm_set1_ps(x[1]), _mm_set1_ps(x[0]))),
            have!(_mm256_set_m128(_mm_set1_ps(x[3]), _mm_set1_ps(x[2]))),
        )
    }
    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> Pair {
        have!(Pair(
            _mm256_loadu_ps(x.as_ptr()),
            _mm256_loadu_ps(x.as_ptr().add(8))
        ))
    }
    #[inline(always)]
    fn store(self, v: Pair, out: &mut [f32; 16]) {
        have!(_mm256_storeu_ps(out.as_mut_ptr(), v.0));
        have!(_mm256_storeu_ps(out.as_mut_ptr().add(8), v.1));
    }
    #[inline(always)]
    fn load_f32_bytes(self, x: &[u8; 64]) -> Pair {
        have!(Pair(
            _mm256_loadu_ps(x.as_ptr().cast()),
            _mm256_loadu_ps(x.as_ptr().cast::<f32>().add(8))
        ))
    }
    #[inline(always)]
    fn load_bf16(self, x: &[u8; 32]) -> Pair {
        let low = have!(_mm_loadu_si128(x.as_ptr().cast()));
        let high = have!(_mm_loadu_si128(x.as_ptr().cast::<__m128i>().add(1)));
        have!(Pair(
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(low))),
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(high)))
        ))
    }
    #[inline(always)]
    fn load_f16(self, x: &[u8; 32]) -> Pair {
        let low = have!(_mm_loadu_si128(x.as_ptr().cast()));
        let high = have!(_mm_loadu_si128(x.as_ptr().cast::<__m128i>().add(1)));
        have!(Pair(_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)))
    }

    #[inline(always)]
    fn load_i8(self, x: &[i8; 16]) -> Pair {
        widen(have!(_mm_loadu_si128(x.as_ptr().cast())))
    }
    #[inline(always)]
    fn load_i8_twice(self, x: &[i8; 8]) -> Pair {
        let x = have!(_mm_loadl_epi64(x.as_ptr().cast()));
        widen(have!(_mm_unpacklo_epi8(x, x)))
    }

    #[inline(always)]
    fn add(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_add_ps(a.0, b.0), _mm256_add_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn sub(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_sub_ps(a.0, b.0), _mm256_sub_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn mul(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn div(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_div_ps(a.0, b.0), _mm256_div_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn mul_add(self, a: Pair, b: Pair, c: Pair) -> Pair {
        have!(Pair(
            _mm256_fmadd_ps(a.0, b.0, c.0),
            _mm256_fmadd_ps(a.1, b.1, c.1)
        ))
    }
    // The instructions are defined as `a > b ? a : b` and `a < b ? a : b`.
    #[inline(always)]
    fn larger(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_max_ps(a.0, b.0), _mm256_max_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn smaller(self, a: Pair, b: Pair) -> Pair {
        have!(Pair(_mm256_min_ps(a.0, b.0), _mm256_min_ps(a.1, b.1)))
    }
    #[inline(always)]
    fn power_of_two(self, shifted: Pair) -> Pair {
        let bias = have!(_mm256_set1_epi32(127));
        let low = have!(_mm256_add_epi32(_mm256_castps_si256(shifted.0), bias));
        let high = have!(_mm256_add_epi32(_mm256_castps_si256(shifted.1), bias));
        have!(Pair(
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(low)),
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(high))
        ))
    }
    #[inline(always)]
    fn sum(self, v: Pair) -> f32 {
        let eight = have!(_mm256_add_ps(v.0, v.1));
        let four = have!(_mm_add_ps(
            _mm256_castps256_ps128(eight),
            _mm256_extractf128_ps::<1>(eight)
        ));
        let two = have!(_mm_add_ps(four, _mm_movehl_ps(four, four)));
        have!(_mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))))
    }

    #[inline(always)]
    fn fields(self, a: &[u8; 32], from_a: u8, b: &[u8; 32], from_b: u8, mask: u8) -> Bytes {
        Bytes(field(a, from_a, mask), field(b, from_b, mask))
    }
    #[inline(always)]
    fn nibbles(self, a: &[u8; 16], b: &[u8; 16]) -> Bytes {
        Bytes(nibbles(a), nibbles(b))
    }
    #[inline(always)]
    fn where_set(self, bits: u64, value: i8) -> Bytes {
        Bytes(
            where_set(bits as u32, value),
            where_set((bits >> 32) as u32, value),
        )
    }
    #[inline(always)]
    fn join(self, low: Bytes, high: Bytes, shift: u8) -> Bytes {
        let count = have!(_mm_cvtsi32_si128(i32::from(shift)));
        have!(Bytes(
            _mm256_or_si256(low.0, _mm256_sll_epi16(high.0, count)),
            _mm256_or_si256(low.1, _mm256_sll_epi16(high.1, count))
        ))
    }
    #[inline(always)]
    fn quads(self, w: Bytes, a: &[i8; 64]) -> Pair {
        let one = have!(_mm256_set1_epi16(1));
        // Pairs reach at most 2 · 127 · 127: no saturation.
        let low = have!(_mm256_maddubs_epi16(w.0, codes(a, 0)));
        let high = have!(_mm256_maddubs_epi16(w.1, codes(a, 1)));
        have!(Pair(
            _mm256_cvtepi32_ps(_mm256_madd_epi16(low, one)),
            _mm256_cvtepi32_ps(_mm256_madd_epi16(high, one))
        ))
    }
    #[inline(always)]
    fn quads_signed(self, w: Bytes, a: &[i8; 64]) -> Pair {
        let one = have!(_mm256_set1_epi16(1));
        let low = signed_pairs(w.0, codes(a, 0));
        let high = signed_pairs(w.1, codes(a, 1));
        have!(Pair(
            _mm256_cvtepi32_ps(_mm256_madd_epi16(low, one)),
            _mm256_cvtepi32_ps(_mm256_madd_epi16(high, one))
        ))
    }
}

/// |w| · (a with the sign of w), pairs summed: at most 2 · 128 · 127, no saturation.
#[inline(always)]
fn signed_pairs(w: __m256i, a: __m256i) -> __m256i {
    have!(_mm256_maddubs_epi16(
        _mm256_abs_epi8(w),
        _mm256_sign_epi8(a, w)
    ))
}
