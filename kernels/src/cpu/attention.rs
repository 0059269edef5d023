//! Causal grouped-query attention over a cache.

use super::simd::{Kernel, Simd};
use super::{AttentionShape, Cpu, split};
use crate::math;
use crate::ops::{self, ATTENTION_BLOCK, ShapeError};

/// Query heads of one key-value head that go through the cache together.
const HEADS: usize = 16;

impl Cpu {
    /// Causal grouped-query attention over a cache: q [tokens, heads, head_dim]; k, v caches [kv_heads, capacity, head_dim]
    /// already holding these tokens; token t of the call is at position `start + t` and sees keys
    /// `max(0, start + t + 1 - window) ..= start + t` (`window` None: all). y [tokens, heads, head_dim].
    ///
    /// `scratch` has the length that [`AttentionShape::scratch`] says.
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, `kv_heads` doesn't divide `heads`, the positions pass the capacity, or the window is 0.
    ///
    /// Source: arXiv 1706.03762, 2305.13245; the running softmax: arXiv 1805.02867.
    #[expect(clippy::too_many_arguments, reason = "an operation's operands")]
    pub fn attention(
        &self,
        q: &[f32],
        k: &[f32],
        v: &[f32],
        shape: AttentionShape,
        start: usize,
        window: Option<usize>,
        scratch: &mut [f32],
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        let tokens = shape.check(q, k, v, start, window, y)?;
        ops::check(
            "attention",
            "scratch",
            shape.scratch(tokens, self.threads),
            scratch.len(),
        )?;
        // One item is a token's heads that share a key-value head: their outputs stand together.
        let group = shape.heads / shape.kv_heads.max(1);
        let width = group * shape.head_dim;
        let seen = window.unwrap_or(usize::MAX).min(start + tokens);
        let piece = split::piece(
            self.threads,
            tokens * shape.kv_heads,
            seen.saturating_mul(width),
        );
        split::over_items(y, width, piece, 0, &|first, y| {
            self.level.run(Attention {
                q: &q[first * width..][..y.len()],
                k,
                v,
                shape,
                group,
                start,
                window,
                first,
                y,
            });
        });
        Ok(())
    }
}

struct Attention<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    shape: AttentionShape,
    group: usize,
    start: usize,
    window: Option<usize>,
    /// Number of the first (token, key-value head).
    first: usize,
    y: &'a mut [f32],
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let dim = self.shape.head_dim;
        let cache = self.shape.capacity * dim;
        let width = self.group * dim;
        let items = self
            .q
            .chunks_exact(width)
            .zip(self.y.chunks_exact_mut(width));
        for (i, (q, y)) in items.enumerate() {
            let token = (self.first + i) / self.shape.kv_heads;
            let kv_head = (self.first + i) % self.shape.kv_heads;
            let k = &self.k[kv_head * cache..][..cache];
            let v = &self.v[kv_head * cache..][..cache];
            let last = self.start + token;
            let first = self.window.map_or(0, |w| (last + 1).saturating_sub(w));
            for (q, y) in q.chunks(HEADS * dim).zip(y.chunks_mut(HEADS * dim)) {
                heads(s, q, k, v, self.shape, first, last, y);
            }
        }
    }
}

/// Up to [`HEADS`] heads of a token over keys `first..=last`; `y` holds the weighted values while they are summed.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "an operation's operands")]
fn heads<S: Simd>(
    s: S,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    shape: AttentionShape,
    first: usize,
    last: usize,
    y: &mut [f32],
) {
    let dim = shape.head_dim;
    let mut largest = [f32::NEG_INFINITY; HEADS];
    let mut total = [0.0f32; HEADS];
    y.fill(0.0);
    for block in first / ATTENTION_BLOCK..=last / ATTENTION_BLOCK {
        let base = block * ATTENTION_BLOCK;
        let from = first.max(base);
        let until = (last + 1).min(base + ATTENTION_BLOCK);
        let k = &k[from * dim..until * dim];
        let v = &v[from * dim..until * dim];
        for (h, (q, y)) in q.chunks_exact(dim).zip(y.chunks_exact_mut(dim)).enumerate() {
            // Keys that are not seen have score −∞, so weight 0; lanes stand for positions from the block's beginning.
            let mut weights = [f32::NEG_INFINITY; ATTENTION_BLOCK];
            let seen = &mut weights[from - base..until - base];
            scores(s, q, k, shape.scale, seen);
            let before = largest[h];
            let mut now = before;
            for score in &*seen {
                now = if *score > now { *score } else { now };
            }
            let mut sum = s.splat(0.0);
            for weights in weights.as_chunks_mut::<16>().0 {
                let e = math::exp_sixteen(s, s.sub(s.load(weights), s.splat(now)));
                s.store(e, weights);
                sum = s.add(sum, e);
            }
            let kept = math::exp(before - now);
            largest[h] = now;
            total[h] = total[h].mul_add(kept, s.sum(sum));
            add_values(s, v, &weights[from - base..until - base], kept, y);
        }
    }
    for (y, total) in y.chunks_exact_mut(dim).zip(total) {
        for y in y {
            *y /= total;
        }
    }
}

/// Scaled products of a query with keys.
#[inline(always)]
fn scores<S: Simd>(s: S, q: &[f32], k: &[f32], scale: f32, out: &mut [f32]) {
    for (out, k) in out.iter_mut().zip(k.chunks_exact(q.len())) {
        let mut sum = s.splat(0.0);
        for (q, k) in q.chunks(16).zip(k.chunks(16)) {
            sum = s.mul_add(s.load_some(q), s.load_some(k), sum);
        }
        *out = s.sum(sum) * scale;
    }
}

/// y = y · kept + Σ weight · value, keys in ascending order.
#[inline(always)]
fn add_values<S: Simd>(s: S, v: &[f32], weights: &[f32], kept: f32, y: &mut [f32]) {
    let dim = y.len();
    for (i, y) in y.chunks_mut(16).enumerate() {
        let mut sum = s.mul(s.load_some(y), s.splat(kept));
        for (w, v) in weights.iter().zip(v.chunks_exact(dim)) {
            let v = &v[16 * i..][..y.len()];
            sum = s.mul_add(s.splat(*w), s.load_some(v), sum);
        }
        s.store_some(sum, y);
    }
}
