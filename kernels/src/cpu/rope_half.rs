//! Rotary position embedding, halves rotated against each other.

use super::{Cpu, split};
use crate::ops::{self, ShapeError};

impl Cpu {
    /// Rotates each head's first `2 * pairs` dims in place (pair i with i + pairs):
    /// (a, b) → (a·cos − b·sin, b·cos + a·sin). `x` [tokens, heads, head_dim]; `cos`, `sin` [tokens, pairs].
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, or `2 * pairs` is more than `head_dim`.
    ///
    /// Source: arXiv 2104.09864, in the arrangement of the published checkpoints.
    pub fn rope_half(
        &self,
        x: &mut [f32],
        heads: usize,
        head_dim: usize,
        cos: &[f32],
        sin: &[f32],
    ) -> Result<(), ShapeError> {
        let pairs = ops::check_rope(x.len(), heads, head_dim, cos.len(), sin.len())?;
        let width = heads * head_dim;
        let piece = split::piece(self.threads, x.len() / width.max(1), width);
        split::over_items(x, width, piece, 0, &|first, x| {
            for (t, token) in x.chunks_exact_mut(width).enumerate() {
                let cos = &cos[(first + t) * pairs..][..pairs];
                let sin = &sin[(first + t) * pairs..][..pairs];
                for head in token.chunks_exact_mut(head_dim) {
                    let (low, high) = head.split_at_mut(pairs);
                    for (((a, b), c), s) in low.iter_mut().zip(high).zip(cos).zip(sin) {
                        (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
                    }
                }
            }
        });
        Ok(())
    }
}
