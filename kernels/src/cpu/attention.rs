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
    let (fours, rest) = out.as_chunks_mut::<4>();
    let (k, last_k) = k.split_at(fours.len() * 4 * q.len());
    for (out, k) in fours.iter_mut().zip(k.chunks_exact(4 * q.len())) {
        *out = some_scores(s, q, k, scale);
    }
    for (out, k) in rest.iter_mut().zip(last_k.chunks_exact(q.len())) {
        [*out] = some_scores(s, q, k, scale);
    }
}

/// Products of a query with `N` keys: several at once, since one sum would wait for itself.
#[inline(always)]
fn some_scores<S: Simd, const N: usize>(s: S, q: &[f32], k: &[f32], scale: f32) -> [f32; N] {
    let dim = q.len();
    let (q, last_q) = q.as_chunks::<16>();
    let mut keys: [&[[f32; 16]]; N] = [&[]; N];
    for (key, row) in keys.iter_mut().zip(k.chunks_exact(dim)) {
        *key = &row.as_chunks().0[..q.len()];
    }
    let mut sums = [s.splat(0.0); N];
    for (i, q) in q.iter().enumerate() {
        let q = s.load(q);
        for (sum, key) in sums.iter_mut().zip(&keys) {
            *sum = s.mul_add(q, s.load(&key[i]), *sum);
        }
    }
    if !last_q.is_empty() {
        let last = s.load_some(last_q);
        for (sum, row) in sums.iter_mut().zip(k.chunks_exact(dim)) {
            *sum = s.mul_add(last, s.load_some(&row[16 * q.len()..]), *sum);
        }
    }
    let mut out = [0.0; N];
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = s.sum(sum) * scale;
    }
    out
}

/// y = y · kept + Σ weight · value, keys in ascending order.
#[inline(always)]
fn add_values<S: Simd>(s: S, v: &[f32], weights: &[f32], kept: f32, y: &mut [f32]) {
    let dim = y.len();
    let mut at = 0;
    while at + 64 <= dim {
        add_some::<S, 4>(s, v, weights, kept, dim, at, &mut y[at..]);
        at += 64;
    }
    while at + 16 <= dim {
        add_some::<S, 1>(s, v, weights, kept, dim, at, &mut y[at..]);
        at += 16;
    }
    if at < dim {
        let y = &mut y[at..];
        let mut sum = s.mul(s.load_some(y), s.splat(kept));
        for (w, v) in weights.iter().zip(v.chunks_exact(dim)) {
            sum = s.mul_add(s.splat(*w), s.load_some(&v[at..]), sum);
        }
        s.store_some(sum, y);
    }
}

/// The same for `16 * N` dims from `at`, kept in registers.
#[inline(always)]
fn add_some<S: Simd, const N: usize>(
    s: S,
    v: &[f32],
    weights: &[f32],
    kept: f32,
    dim: usize,
    at: usize,
    y: &mut [f32],
) {
    let Some(y) = y.as_chunks_mut::<16>().0.first_chunk_mut::<N>() else {
        return;
    };
    let kept = s.splat(kept);
    let mut sums = [s.splat(0.0); N];
    for (sum, y) in sums.iter_mut().zip(&*y) {
        *sum = s.mul(s.load(y), kept);
    }
    for (w, v) in weights.iter().zip(v.chunks_exact(dim)) {
        let w = s.splat(*w);
        let v = v[at..at + 16 * N].as_chunks::<16>().0;
        for (sum, v) in sums.iter_mut().zip(v) {
            *sum = s.mul_add(w, s.load(v), *sum);
        }
    }
    for (sum, y) in sums.iter().zip(y) {
        s.store(*sum, y);
    }
}
