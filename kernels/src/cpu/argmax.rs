//! The likeliest id.

use super::Cpu;

impl Cpu {
    /// The index of the largest value, the lowest of equals. `None` when a value is NaN or there is none.
    pub fn argmax(&self, logits: &[f32]) -> Option<usize> {
        let mut best = 0;
        let mut nan = false;
        for (i, x) in logits.iter().enumerate() {
            nan |= x.is_nan();
            if *x > logits[best] {
                best = i;
            }
        }
        (!nan && !logits.is_empty()).then_some(best)
    }
}
