//! Rotary position embedding, halves rotated against each other.

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
