//! Addition of two arrays.

/// x += y.
pub fn add(x: &mut [f32], y: &[f32]) {
    for i in 0..x.len() {
        x[i] += y[i];
    }
}
