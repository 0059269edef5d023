//! exp, ln, sin, cos, tanh and kin with the same bits everywhere: on every CPU, at every level, in vectors and alone.
//!
//! `exp` is our own, because softmax and silu need it sixteen at a time; [`exp_sixteen`] takes the same steps in the same
//! order, so that it gives the same bits. The others come from the pure-Rust `libm`. The standard library's functions are
//! never used: they call the platform's, and platforms differ in the last bit.

use crate::cpu::simd::Simd;
use crate::ops::ROUNDER;

/// ln 2 in two pieces; products of the first with integers up to 2¹⁵ are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Below, e^x rounds to zero; above, to infinity.
const EXP_FLOOR: f32 = -105.0;
const EXP_CEILING: f32 = 89.0;
/// 1/7!, 1/6!, … 1/0!: on |r| ≤ ln(2)/2 the rest of the series is below 2⁻²⁷.
const EXP_SERIES: [f32; 8] = [
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// e^x, within 1 unit in the last place. Overflows to infinity, underflows gradually to zero, NaN stays NaN.
///
/// e^x = 2^n · e^r with n = round(x / ln 2); 2^n is applied in two halves so that results below the normal range are rounded once.
pub fn exp(x: f32) -> f32 {
    let x = if EXP_FLOOR > x { EXP_FLOOR } else { x };
    let x = if EXP_CEILING < x { EXP_CEILING } else { x };
    let n = x.mul_add(std::f32::consts::LOG2_E, ROUNDER) - ROUNDER;
    let r = n.mul_add(-LN_2_HIGH, x);
    let r = n.mul_add(-LN_2_LOW, r);
    let mut p = EXP_SERIES[0];
    for c in &EXP_SERIES[1..] {
        p = p.mul_add(r, *c);
    }
    let half = n.mul_add(0.5, ROUNDER);
    let rest = (n - (half - ROUNDER)) + ROUNDER;
    p * power_of_two(half) * power_of_two(rest)
}

/// 2^k for `shifted` = 1.5 · 2²³ + k, −127 < k < 128.
pub(crate) fn power_of_two(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// [`exp`] of sixteen values, the same bits.
#[inline(always)]
pub fn exp_sixteen<S: Simd>(s: S, x: S::F) -> S::F {
    let x = s.larger(s.splat(EXP_FLOOR), x);
    let x = s.smaller(s.splat(EXP_CEILING), x);
    let rounder = s.splat(ROUNDER);
    let n = s.sub(
        s.mul_add(x, s.splat(std::f32::consts::LOG2_E), rounder),
        rounder,
    );
    let r = s.mul_add(n, s.splat(-LN_2_HIGH), x);
    let r = s.mul_add(n, s.splat(-LN_2_LOW), r);
    let mut p = s.splat(EXP_SERIES[0]);
    for c in &EXP_SERIES[1..] {
        p = s.mul_add(p, r, s.splat(*c));
    }
    let half = s.mul_add(n, s.splat(0.5), rounder);
    let rest = s.add(s.sub(n, s.sub(half, rounder)), rounder);
    s.mul(s.mul(p, s.power_of_two(half)), s.power_of_two(rest))
}

/// x / (1 + e^−x).
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// [`silu`] of sixteen values, the same bits.
#[inline(always)]
pub fn silu_sixteen<S: Simd>(s: S, x: S::F) -> S::F {
    // 0 − x would turn +0 into +0, and e^±0 is 1 either way.
    let e = exp_sixteen(s, s.sub(s.splat(0.0), x));
    s.div(x, s.add(s.splat(1.0), e))
}

/// 1 / (1 + e^−x).
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Natural logarithm.
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}

/// Sine of an angle in radians.
pub fn sin(x: f32) -> f32 {
    libm::sinf(x)
}

/// Cosine of an angle in radians.
pub fn cos(x: f32) -> f32 {
    libm::cosf(x)
}

/// Hyperbolic tangent.
pub fn tanh(x: f32) -> f32 {
    libm::tanhf(x)
}

/// x^y, computed in f64 and rounded once.
pub fn pow(x: f32, y: f32) -> f32 {
    libm::pow(f64::from(x), f64::from(y)) as f32
}

#[cfg(test)]
mod tests;
