//! Addition of two arrays.

use super::simd::{Kernel, Simd};
use super::{Cpu, split};
use crate::ops::{self, ShapeError};

impl Cpu {
    /// x += y.
    ///
    /// # Errors
    /// [`ShapeError`] when the lengths differ.
    pub fn add(&self, x: &mut [f32], y: &[f32]) -> Result<(), ShapeError> {
        ops::check("add", "y", x.len(), y.len())?;
        let piece = split::piece(self.threads, x.len(), 1);
        split::over_items(x, 1, piece, 0, &|first, x| {
            let y = &y[first..][..x.len()];
            self.level.run(Add { x, y });
        });
        Ok(())
    }
}

struct Add<'a> {
    x: &'a mut [f32],
    y: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (x, y) in self.x.iter_mut().zip(self.y) {
            *x += y;
        }
    }
}
