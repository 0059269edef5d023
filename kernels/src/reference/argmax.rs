//! The likeliest id.

/// The index of the largest value, the lowest of equals; none with a NaN.
pub fn argmax(logits: &[f32]) -> Option<usize> {
    if logits.iter().any(|x| x.is_nan()) {
        return None;
    }
    (0..logits.len())
        .rev()
        .max_by(|a, b| logits[*a].total_cmp(&(logits[*b])))
}
