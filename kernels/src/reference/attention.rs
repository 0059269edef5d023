//! Causal grouped-query attention over a cache.

use super::sum::{Sixteen, dot};
use crate::math;
use crate::ops::{ATTENTION_BLOCK, AttentionShape};

/// Shapes as for `Cpu::attention`: q, y [tokens, heads, head_dim]; k, v [kv_heads, capacity, head_dim].
pub fn attention(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    shape: AttentionShape,
    start: usize,
    window: Option<usize>,
    y: &mut [f32],
) {
    let dim = shape.head_dim;
    let tokens = q.len() / (shape.heads * dim);
    for t in 0..tokens {
        for head in 0..shape.heads {
            let at = (t * shape.heads + head) * dim;
            let kv = head / (shape.heads / shape.kv_heads) * shape.capacity * dim;
            let last = start + t;
            let first = window.map_or(0, |w| (last + 1).saturating_sub(w));
            one_head(
                &q[at..][..dim],
                &k[kv..],
                &v[kv..],
                shape.scale,
                first,
                last,
                &mut y[at..][..dim],
            );
        }
    }
}

/// One query over keys `first..=last`.
fn one_head(q: &[f32], k: &[f32], v: &[f32], scale: f32, first: usize, last: usize, y: &mut [f32]) {
    let dim = q.len();
    let mut largest = f32::NEG_INFINITY;
    let mut total = 0.0f32;
    y.fill(0.0);
    for block in first / ATTENTION_BLOCK..=last / ATTENTION_BLOCK {
        let positions = block * ATTENTION_BLOCK..(block + 1) * ATTENTION_BLOCK;
        let seen = |p: &usize| (first..=last).contains(p);
        let score = |p: usize| dot(q, &k[p * dim..][..dim]) * scale;
        let now = positions
            .clone()
            .filter(seen)
            .map(score)
            .fold(largest, f32::max);
        let kept = math::exp(largest - now);
        let mut sum = Sixteen::default();
        for y in &mut *y {
            *y *= kept;
        }
        for p in positions {
            if !seen(&p) {
                sum.number(0.0);
                continue;
            }
            let weight = math::exp(score(p) - now);
            sum.number(weight);
            for (y, v) in y.iter_mut().zip(&v[p * dim..][..dim]) {
                *y = weight.mul_add(*v, *y);
            }
        }
        total = total.mul_add(kept, sum.total());
        largest = now;
    }
    for y in y {
        *y /= total;
    }
}
