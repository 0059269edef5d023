//! Adding experts' outputs to their tokens.

use super::Cpu;
use super::simd::{Kernel, Simd};
use crate::ops::{self, ShapeError};

impl Cpu {
    /// `y[rows[i]] += scale[i] · x[i]`, i ascending, each a multiply-add; x `[rows.len(), width]`, y `[.., width]`.
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, or a row is not in `y`.
    pub fn add_scaled_rows(
        &self,
        x: &[f32],
        rows: &[u32],
        scale: &[f32],
        width: usize,
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        ops::check_scaled_rows(x.len(), rows, scale.len(), width, y.len())?;
        self.level.run(AddScaledRows {
            x,
            rows,
            scale,
            width,
            y,
        });
        Ok(())
    }
}

struct AddScaledRows<'a> {
    x: &'a [f32],
    rows: &'a [u32],
    scale: &'a [f32],
    width: usize,
    y: &'a mut [f32],
}

impl Kernel for AddScaledRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = self.width.max(1);
        for ((x, row), scale) in self.x.chunks_exact(width).zip(self.rows).zip(self.scale) {
            let y = &mut self.y[*row as usize * width..][..width];
            let scale = s.splat(*scale);
            for (y, x) in y.chunks_mut(16).zip(x.chunks(16)) {
                s.store_some(s.mul_add(s.load_some(x), scale, s.load_some(y)), y);
            }
        }
    }
}
