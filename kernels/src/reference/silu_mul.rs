//! The gated unit of an MLP.

use crate::math;

/// y = silu(gate) · up.
pub fn silu_mul(gate: &[f32], up: &[f32], y: &mut [f32]) {
    for i in 0..y.len() {
        y[i] = math::silu(gate[i]) * up[i];
    }
}
