//! Choice of experts by softmax.

use super::sum::Sixteen;
use crate::math;

/// softmax over `experts` logits, the `k` largest, descending, ties by the lower id; optionally divided by their sum.
pub fn route_softmax(
    logits: &[f32],
    experts: usize,
    k: usize,
    normalise: bool,
    ids: &mut [u32],
    weights: &mut [f32],
) {
    for (t, logits) in logits.chunks(experts).enumerate() {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let e: Vec<f32> = logits.iter().map(|x| math::exp(x - largest)).collect();
        let mut sum = Sixteen::default();
        for e in &e {
            sum.number(*e);
        }
        let sum = sum.total();
        let p: Vec<f32> = e.iter().map(|e| e / sum).collect();
        let mut order: Vec<usize> = (0..experts).collect();
        // Stable, so equals stay in ascending order.
        order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
        let mut chosen = 0.0;
        for i in &order[..k] {
            chosen += p[*i];
        }
        for (j, i) in order[..k].iter().enumerate() {
            ids[t * k + j] = *i as u32;
            weights[t * k + j] = if normalise { p[*i] / chosen } else { p[*i] };
        }
    }
}
