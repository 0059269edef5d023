//! Adding experts' outputs to their tokens.

/// `y[rows[i]] += scale[i] · x[i]`.
pub fn add_scaled_rows(x: &[f32], rows: &[u32], scale: &[f32], width: usize, y: &mut [f32]) {
    for (i, row) in rows.iter().enumerate() {
        for j in 0..width {
            let y = &mut y[*row as usize * width + j];
            *y = x[i * width + j].mul_add(scale[i], *y);
        }
    }
}
