//! Addition of one row to every row.

use super::Cpu;
use crate::ops::{self, ShapeError};

impl Cpu {
    /// Adds `bias` to each row of `x`.
    ///
    /// # Errors
    /// [`ShapeError`] when `x` holds no whole number of rows.
    pub fn add_bias(&self, x: &mut [f32], bias: &[f32]) -> Result<(), ShapeError> {
        ops::check_rows("add_bias", "x", bias.len(), x.len())?;
        for row in x.chunks_exact_mut(bias.len().max(1)) {
            for (x, b) in row.iter_mut().zip(bias) {
                *x += b;
            }
        }
        Ok(())
    }
}
