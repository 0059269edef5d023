//! Addition of one row to every row.

/// Adds `bias` to each row of `x`.
pub fn add_bias(x: &mut [f32], bias: &[f32]) {
    for (i, x) in x.iter_mut().enumerate() {
        *x += bias[i % bias.len()];
    }
}
