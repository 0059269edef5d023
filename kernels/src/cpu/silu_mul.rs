//! The gated unit of an MLP.

use super::simd::{Kernel, Simd};
use super::{Cpu, split};
use crate::math;
use crate::ops::{self, ShapeError};

impl Cpu {
    /// y = silu(gate) · up, with silu(x) = x / (1 + e^−x).
    ///
    /// # Errors
    /// [`ShapeError`] when the lengths differ.
    ///
    /// Source: arXiv 2002.05202.
    pub fn silu_mul(&self, gate: &[f32], up: &[f32], y: &mut [f32]) -> Result<(), ShapeError> {
        ops::check("silu_mul", "up", gate.len(), up.len())?;
        ops::check("silu_mul", "y", gate.len(), y.len())?;
        let piece = split::piece(self.threads, y.len(), 4);
        split::over_items(y, 1, piece, 0, &|first, y| {
            let gate = &gate[first..][..y.len()];
            let up = &up[first..][..y.len()];
            self.level.run(SiluMul { gate, up, y });
        });
        Ok(())
    }
}

struct SiluMul<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for SiluMul<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let inputs = self.gate.chunks(16).zip(self.up.chunks(16));
        for (y, (gate, up)) in self.y.chunks_mut(16).zip(inputs) {
            let gate = math::silu_sixteen(s, s.load_some(gate));
            s.store_some(s.mul(gate, s.load_some(up)), y);
        }
    }
}
