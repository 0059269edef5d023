//! Operations of a few lines each.

use super::sum::dot;
use crate::math;

/// y = x / sqrt(mean(x²) + eps) · weight, per row of `weight.len()` values.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    let width = weight.len();
    for (x, y) in x.chunks(width).zip(y.chunks_mut(width)) {
        let scale = 1.0 / (dot(x, x) / width as f32 + eps).sqrt();
        for i in 0..width {
            y[i] = x[i] * scale * weight[i];
        }
    }
}

/// x += y.
pub fn add(x: &mut [f32], y: &[f32]) {
    for i in 0..x.len() {
        x[i] += y[i];
    }
}

/// Adds `bias` to each row of `x`.
pub fn add_bias(x: &mut [f32], bias: &[f32]) {
    for (i, x) in x.iter_mut().enumerate() {
        *x += bias[i % bias.len()];
    }
}

/// y = silu(gate) · up.
pub fn silu_mul(gate: &[f32], up: &[f32], y: &mut [f32]) {
    for i in 0..y.len() {
        y[i] = math::silu(gate[i]) * up[i];
    }
}

/// Rotates dims i and i + pairs of each head. `x` [tokens, heads, head_dim]; `cos`, `sin` [tokens, pairs].
pub fn rope_half(x: &mut [f32], heads: usize, head_dim: usize, cos: &[f32], sin: &[f32]) {
    let tokens = x.len() / (heads * head_dim);
    let pairs = cos.len() / tokens;
    for t in 0..tokens {
        for h in 0..heads {
            let head = (t * heads + h) * head_dim;
            for i in 0..pairs {
                let (c, s) = (cos[t * pairs + i], sin[t * pairs + i]);
                let (a, b) = (x[head + i], x[head + i + pairs]);
                x[head + i] = a * c - b * s;
                x[head + i + pairs] = b * c + a * s;
            }
        }
    }
}

/// y[rows[i]] += scale[i] · x[i].
pub fn add_scaled_rows(x: &[f32], rows: &[u32], scale: &[f32], width: usize, y: &mut [f32]) {
    for (i, row) in rows.iter().enumerate() {
        for j in 0..width {
            let y = &mut y[*row as usize * width + j];
            *y = x[i * width + j].mul_add(scale[i], *y);
        }
    }
}

/// The index of the largest value, the lowest of equals; none with a NaN.
pub fn argmax(logits: &[f32]) -> Option<usize> {
    if logits.iter().any(|x| x.is_nan()) {
        return None;
    }
    (0..logits.len())
        .rev()
        .max_by(|a, b| logits[*a].total_cmp(&(logits[*b])))
}
