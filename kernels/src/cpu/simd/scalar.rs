//! Sixteen floats as an array, for machines and tests without vectors. Says in plain loops what the other levels do.

use super::{Kernel, Simd};
use crate::encoding::half::f16_to_f32;
use crate::math;

/// Portable code.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Simd for Scalar {
    type F = [f32; 16];
    type Codes = [i8; 64];

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; 16]
    }
    #[inline(always)]
    fn halves(self, low: f32, high: f32) -> Self::F {
        std::array::from_fn(|i| if i < 8 { low } else { high })
    }
    #[inline(always)]
    fn quarters(self, x: &[f32; 4]) -> Self::F {
        std::array::from_fn(|i| x[i / 4])
    }
    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> Self::F {
        *x
    }
    #[inline(always)]
    fn store(self, v: Self::F, out: &mut [f32; 16]) {
        *out = v;
    }
    #[inline(always)]
    fn load_f32_bytes(self, x: &[u8; 64]) -> Self::F {
        std::array::from_fn(|i| {
            f32::from_le_bytes([x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]])
        })
    }
    #[inline(always)]
    fn load_bf16(self, x: &[u8; 32]) -> Self::F {
        std::array::from_fn(|i| f32::from_le_bytes([0, 0, x[2 * i], x[2 * i + 1]]))
    }
    #[inline(always)]
    fn load_f16(self, x: &[u8; 32]) -> Self::F {
        std::array::from_fn(|i| f16_to_f32(u16::from_le_bytes([x[2 * i], x[2 * i + 1]])))
    }

    #[inline(always)]
    fn load_i8(self, x: &[i8; 16]) -> Self::F {
        x.map(f32::from)
    }
    #[inline(always)]
    fn load_i8_twice(self, x: &[i8; 8]) -> Self::F {
        std::array::from_fn(|i| f32::from(x[i / 2]))
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] / b[i])
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn larger(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn smaller(self, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn power_of_two(self, shifted: Self::F) -> Self::F {
        std::array::from_fn(|i| math::power_of_two(shifted[i]))
    }
    #[inline(always)]
    fn sum(self, mut v: Self::F) -> f32 {
        for i in 0..8 {
            v[i] += v[i + 8];
        }
        for i in 0..4 {
            v[i] += v[i + 4];
        }
        (v[0] + v[2]) + (v[1] + v[3])
    }

    #[inline(always)]
    fn fields(self, a: &[u8; 32], from_a: u8, b: &[u8; 32], from_b: u8, mask: u8) -> Self::Codes {
        std::array::from_fn(|i| {
            let field = if i < 32 {
                a[i] >> from_a
            } else {
                b[i - 32] >> from_b
            };
            (field & mask).cast_signed()
        })
    }
    #[inline(always)]
    fn nibbles(self, a: &[u8; 16], b: &[u8; 16]) -> Self::Codes {
        std::array::from_fn(|i| {
            let from = if i < 32 { a } else { b };
            let byte = from[i % 16];
            (if i % 32 < 16 { byte & 15 } else { byte >> 4 }).cast_signed()
        })
    }
    #[inline(always)]
    fn where_set(self, bits: u64, value: i8) -> Self::Codes {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { value } else { 0 })
    }
    #[inline(always)]
    fn join(self, low: Self::Codes, high: Self::Codes, shift: u8) -> Self::Codes {
        std::array::from_fn(|i| low[i] | high[i] << shift)
    }
    #[inline(always)]
    fn quads(self, w: Self::Codes, a: &[i8; 64]) -> Self::F {
        self.quads_signed(w, a)
    }
    #[inline(always)]
    fn quads_signed(self, w: Self::Codes, a: &[i8; 64]) -> Self::F {
        std::array::from_fn(|c| {
            let mut sum = 0;
            for j in 4 * c..4 * c + 4 {
                sum += i32::from(w[j]) * i32::from(a[j]);
            }
            sum as f32
        })
    }
}
