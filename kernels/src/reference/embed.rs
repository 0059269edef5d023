//! Rows of a table.

use super::linear::decode;
use crate::ops::Matrix;

/// Decodes rows `ids` of `w` into `y` [ids.len(), columns].
pub fn embed(w: &Matrix, ids: &[u32], y: &mut [f32]) {
    for (id, y) in ids.iter().zip(y.chunks_mut(w.columns)) {
        y.copy_from_slice(&decode(w, *id as usize)[..w.columns]);
    }
}
