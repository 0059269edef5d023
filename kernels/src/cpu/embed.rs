//! Rows of a table.

use super::Cpu;
use crate::ops::{self, Matrix, ShapeError};

impl Cpu {
    /// Decodes rows `ids` of `w` into `y` [ids.len(), columns].
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, an id is not a row of `w`, or the encoding holds no real numbers.
    pub fn embed(&self, w: &Matrix, ids: &[u32], y: &mut [f32]) -> Result<(), ShapeError> {
        ops::check_matrix("embed", w)?;
        ops::check("embed", "y", ids.len() * w.columns, y.len())?;
        for id in ids {
            ops::check_below("embed", "an id of a row", w.rows, *id as usize)?;
        }
        let row_bytes = w.encoding.row_bytes(w.columns);
        for (id, y) in ids.iter().zip(y.chunks_exact_mut(w.columns.max(1))) {
            let row = &w.bytes[*id as usize * row_bytes..][..row_bytes];
            w.encoding.decode_rows(row, w.columns, y);
        }
        Ok(())
    }
}
