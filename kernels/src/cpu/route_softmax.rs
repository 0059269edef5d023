//! Choice of experts by softmax.

use super::Cpu;
use super::simd::{Kernel, Simd};
use crate::math;
use crate::ops::{self, ShapeError};

impl Cpu {
    /// softmax over `experts` logits in f32, the `k` largest (ties: the lower id first), descending; optionally divided by their sum.
    /// `logits` `[tokens, experts]`; `scratch` `[experts]`; `ids`, `weights` `[tokens, k]`.
    ///
    /// A NaN or infinite logit makes all of its token's weights NaN.
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, or `k` is more than `experts`.
    #[expect(clippy::too_many_arguments, reason = "an operation's operands")]
    pub fn route_softmax(
        &self,
        logits: &[f32],
        experts: usize,
        k: usize,
        normalise: bool,
        scratch: &mut [f32],
        ids: &mut [u32],
        weights: &mut [f32],
    ) -> Result<(), ShapeError> {
        ops::check_route(
            logits.len(),
            experts,
            k,
            scratch.len(),
            ids.len(),
            weights.len(),
        )?;
        if k == 0 {
            return Ok(());
        }
        let chosen = ids.chunks_exact_mut(k).zip(weights.chunks_exact_mut(k));
        for (logits, (ids, weights)) in logits.chunks_exact(experts).zip(chosen) {
            let probabilities = &mut scratch[..experts];
            self.level.run(Softmax {
                logits,
                y: probabilities,
            });
            choose(probabilities, ids, weights);
            if normalise {
                let mut sum = 0.0;
                for w in &*weights {
                    sum += w;
                }
                for w in weights {
                    *w /= sum;
                }
            }
        }
        Ok(())
    }
}

/// The largest values, descending; taken ones are marked with −1.
fn choose(probabilities: &mut [f32], ids: &mut [u32], weights: &mut [f32]) {
    for (id, weight) in ids.iter_mut().zip(weights) {
        let mut best = 0;
        for i in 1..probabilities.len() {
            // False for NaN, and for equal values: the first stays.
            if probabilities[i] > probabilities[best] {
                best = i;
            }
        }
        *id = best as u32;
        *weight = probabilities[best];
        if !weight.is_nan() {
            probabilities[best] = -1.0;
        }
    }
}

struct Softmax<'a> {
    logits: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut largest = f32::NEG_INFINITY;
        for x in self.logits {
            largest = if *x > largest { *x } else { largest };
        }
        let mut sum = s.splat(0.0);
        for (y, x) in self.y.chunks_mut(16).zip(self.logits.chunks(16)) {
            // Lanes after the last logit would be e^(0 − largest): they must not enter the sum.
            let mut padded = [f32::NEG_INFINITY; 16];
            padded[..x.len()].copy_from_slice(x);
            let e = math::exp_sixteen(s, s.sub(s.load(&padded), s.splat(largest)));
            s.store_some(e, y);
            sum = s.add(sum, e);
        }
        let sum = s.sum(sum);
        for y in self.y {
            *y /= sum;
        }
    }
}
