//! Root-mean-square normalisation.

use super::simd::{Kernel, Simd};
use super::{Cpu, split};
use crate::ops::{self, ShapeError};

impl Cpu {
    /// y = x / sqrt(mean(x²) + eps) · weight, per row of `weight.len()` values. Per-head norms are the same call with head-wide rows.
    ///
    /// # Errors
    /// [`ShapeError`] when `x` holds no whole number of rows or `y` is not as long.
    ///
    /// Source: arXiv 1910.07467.
    pub fn rms_norm(
        &self,
        x: &[f32],
        weight: &[f32],
        eps: f32,
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        let width = weight.len();
        ops::check_rows("rms_norm", "x", width, x.len())?;
        ops::check("rms_norm", "y", x.len(), y.len())?;
        let rows = x.len() / width.max(1);
        let piece = split::piece(self.threads, rows, width);
        split::over_items(y, width, piece, 0, &|first, y| {
            let x = &x[first * width..][..y.len()];
            self.level.run(RmsNorm { x, weight, eps, y });
        });
        Ok(())
    }
}

struct RmsNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    y: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = self.weight.len();
        for (x, y) in self
            .x
            .chunks_exact(width)
            .zip(self.y.chunks_exact_mut(width))
        {
            let mut squares = s.splat(0.0);
            for x in x.chunks(16) {
                let x = s.load_some(x);
                squares = s.mul_add(x, x, squares);
            }
            let scale = 1.0 / (s.sum(squares) / width as f32 + self.eps).sqrt();
            for ((y, x), w) in y.iter_mut().zip(x).zip(self.weight) {
                *y = x * scale * w;
            }
        }
    }
}
