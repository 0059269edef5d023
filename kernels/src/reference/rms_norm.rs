//! Root-mean-square normalisation.

use super::sum::dot;

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
