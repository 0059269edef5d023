//! Sixteen floats at a time: one trait, one file per instruction set, and the choice between them.
//!
//! Every method gives the same bits in all implementations (NaN payloads aside), so a kernel written once over [`Simd`] does too.
//! A value of an implementing type is the proof that the machine has the instructions: only its `new` makes one, after asking.
//! That keeps all kernels outside this folder free of `unsafe`.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(any(target_arch = "aarch64", test))]
pub(crate) mod neon;
pub(crate) mod scalar;

use super::Level;

/// Operations on sixteen f32 lanes.
pub trait Simd: Copy + Send + Sync {
    /// Sixteen floats.
    type F: Copy;
    /// 64 integers of 8 bits: the codes of 64 columns.
    type Codes: Copy;

    /// Runs `kernel` as code of this level.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// All lanes `x`.
    fn splat(self, x: f32) -> Self::F;
    /// Lanes 0..8 `low`, lanes 8..16 `high`.
    fn halves(self, low: f32, high: f32) -> Self::F;
    /// Lanes 0..4 `x[0]`, lanes 4..8 `x[1]`, and so on.
    fn quarters(self, x: &[f32; 4]) -> Self::F;
    /// From memory.
    fn load(self, x: &[f32; 16]) -> Self::F;
    /// To memory.
    fn store(self, v: Self::F, out: &mut [f32; 16]);
    /// From little-endian f32.
    fn load_f32_bytes(self, x: &[u8; 64]) -> Self::F;
    /// From little-endian bfloat16.
    fn load_bf16(self, x: &[u8; 32]) -> Self::F;
    /// From little-endian IEEE halves.
    fn load_f16(self, x: &[u8; 32]) -> Self::F;
    /// From integers.
    fn load_i8(self, x: &[i8; 16]) -> Self::F;
    /// From eight integers, each in two lanes: lanes 0 and 1 `x[0]`, lanes 2 and 3 `x[1]`, and so on.
    fn load_i8_twice(self, x: &[i8; 8]) -> Self::F;

    /// a + b.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// a − b.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// a / b.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// a where a > b, else b: with a NaN it is b.
    fn larger(self, a: Self::F, b: Self::F) -> Self::F;
    /// a where a < b, else b: with a NaN it is b.
    fn smaller(self, a: Self::F, b: Self::F) -> Self::F;
    /// 2^k for lanes 1.5 · 2²³ + k, −127 < k < 128.
    fn power_of_two(self, shifted: Self::F) -> Self::F;
    /// The sum over lanes by the fixed tree: `s[i] += s[i+8]`, `s[i] += s[i+4]`, `s[i] += s[i+2]`, `s[0] + s[1]`.
    fn sum(self, v: Self::F) -> f32;

    /// `(a[j] >> from_a) & mask` for j in 0..32, then `(b[j] >> from_b) & mask`; `mask << from` stays within eight bits.
    fn fields(self, a: &[u8; 32], from_a: u8, b: &[u8; 32], from_b: u8, mask: u8) -> Self::Codes;
    /// The low four bits of `a`'s bytes, then the high ones, then `b`'s.
    fn nibbles(self, a: &[u8; 16], b: &[u8; 16]) -> Self::Codes;
    /// `value` where a bit is set, else 0; the lowest bit is column 0.
    fn where_set(self, bits: u64, value: i8) -> Self::Codes;
    /// `low | high << shift` in each byte; no bit of `high` may leave its byte.
    fn join(self, low: Self::Codes, high: Self::Codes, shift: u8) -> Self::Codes;
    /// Lane c is `Σ w[j] · a[j]` over the four columns j = 4c..4c+4, exact; `w` has no negative value, `a` no −128.
    fn quads(self, w: Self::Codes, a: &[i8; 64]) -> Self::F;
    /// The same for any `w`.
    fn quads_signed(self, w: Self::Codes, a: &[i8; 64]) -> Self::F;

    /// The first lanes from `x`, at most 16, the others zero.
    #[inline(always)]
    fn load_some(self, x: &[f32]) -> Self::F {
        if let Some(whole) = x.first_chunk::<16>() {
            return self.load(whole);
        }
        let mut padded = [0.0; 16];
        padded[..x.len()].copy_from_slice(x);
        self.load(&padded)
    }
    /// The first lanes to `out`, at most 16.
    #[inline(always)]
    fn store_some(self, v: Self::F, out: &mut [f32]) {
        if let Some(whole) = out.first_chunk_mut::<16>() {
            return self.store(v, whole);
        }
        let mut all = [0.0; 16];
        self.store(v, &mut all);
        let n = out.len();
        out.copy_from_slice(&all[..n]);
    }
}

/// A piece of work written once for all levels. `run` must be `#[inline(always)]`, and so must all it calls per element:
/// code that is not inlined into the level's own function is compiled without the level's instructions.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Does the work with `s`.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

impl Level {
    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Avx512::new().is_some(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::Neon::new().is_some(),
            _ => false,
        }
    }

    /// Runs `kernel` at this level.
    ///
    /// # Panics
    /// When the machine lacks the level: a level read from text or from [`Level::detect`] never does.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                if let Some(s) = avx2::Avx2::new() {
                    return s.run(kernel);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                if let Some(s) = avx512::Avx512::new() {
                    return s.run(kernel);
                }
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                if let Some(s) = neon::Neon::new() {
                    return s.run(kernel);
                }
            }
            Self::Scalar => return scalar::Scalar.run(kernel),
            _ => {}
        }
        panic!("this machine has no {self}: check `Level::is_available` first")
    }
}

#[cfg(test)]
mod tests;
