//! Fast versions of all operations for the CPU, the same bits at every level and thread count.

use crate::ops::{Activations, Matrix, ShapeError};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable code.
    Scalar,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F, BW, VL, DQ, VNNI.
    Avx512,
    /// ARM Advanced SIMD.
    Neon,
}

impl Level {
    /// The best level of this machine.
    pub fn detect() -> Self {
        Self::Scalar
    }
    /// Every level this machine can run, worst first.
    pub fn available() -> Vec<Self> {
        vec![Self::Scalar]
    }
}

/// The CPU backend: a level, a number of threads, and how activations meet quantised weights.
///
/// Operations split work over outputs (never along a sum) on the rayon pool they are called in; with one thread they run inline.
/// None allocates: scratch memory is handed in.
pub struct Cpu {
    pub level: Level,
    pub threads: usize,
    pub activations: Activations,
}

/// A matrix's input, prepared once for all matrices that share it: f32 rows and, if any encoding wants them, 8-bit rows.
pub struct Input {
    _p: (),
}

impl Input {
    /// Room for `tokens` rows of up to `columns` values.
    pub fn with_capacity(tokens: usize, columns: usize) -> Self {
        let _ = (tokens, columns);
        todo!()
    }
    /// Bytes it holds.
    pub fn bytes(tokens: usize, columns: usize) -> usize {
        let _ = (tokens, columns);
        todo!()
    }
}

impl Cpu {
    /// A backend on `level`, which the machine must have.
    pub fn new(level: Level, threads: usize, activations: Activations) -> Self {
        Self {
            level,
            threads,
            activations,
        }
    }
    /// Loads `x` [tokens, columns] into `input`.
    pub fn prepare(&self, x: &[f32], columns: usize, input: &mut Input) -> Result<(), ShapeError> {
        let _ = (x, columns, input);
        todo!()
    }
    /// y = x Wᵀ for all tokens of `input`. `y` [tokens, W.rows].
    pub fn linear(&self, w: &Matrix, input: &Input, y: &mut [f32]) -> Result<(), ShapeError> {
        let _ = (w, input, y);
        todo!()
    }
    /// The same for some tokens only: row `i` of `y` is token `tokens[i]` of `input` (an expert's batch).
    pub fn linear_some(
        &self,
        w: &Matrix,
        input: &Input,
        tokens: &[u32],
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        let _ = (w, input, tokens, y);
        todo!()
    }
    /// Decodes rows `ids` of `w` into `y` [ids.len(), columns].
    pub fn embed(&self, w: &Matrix, ids: &[u32], y: &mut [f32]) -> Result<(), ShapeError> {
        let _ = (w, ids, y);
        todo!()
    }
    /// y = x / sqrt(mean(x²) + eps) · weight, per row of `weight.len()` values. Per-head norms are the same call with head-wide rows.
    pub fn rms_norm(
        &self,
        x: &[f32],
        weight: &[f32],
        eps: f32,
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        let _ = (x, weight, eps, y);
        todo!()
    }
    /// x += y.
    pub fn add(&self, x: &mut [f32], y: &[f32]) -> Result<(), ShapeError> {
        let _ = (x, y);
        todo!()
    }
    /// Adds `bias` to each row of `x`.
    pub fn add_bias(&self, x: &mut [f32], bias: &[f32]) -> Result<(), ShapeError> {
        let _ = (x, bias);
        todo!()
    }
    /// y = silu(gate) · up.
    pub fn silu_mul(&self, gate: &[f32], up: &[f32], y: &mut [f32]) -> Result<(), ShapeError> {
        let _ = (gate, up, y);
        todo!()
    }
    /// Rotates each head's first `2 * pairs` dims in place (pair i with i + pairs). `x` [tokens, heads, head_dim]; `cos`, `sin` [tokens, pairs].
    pub fn rope_half(
        &self,
        x: &mut [f32],
        heads: usize,
        head_dim: usize,
        cos: &[f32],
        sin: &[f32],
    ) -> Result<(), ShapeError> {
        let _ = (x, heads, head_dim, cos, sin);
        todo!()
    }
    /// Causal grouped-query attention over a cache. See the reference for shapes: q [tokens, heads, head_dim]; k, v caches
    /// [kv_heads, capacity, head_dim] already holding these tokens; token t of the call is at position `start + t`; sees keys
    /// `max(0, start + t + 1 - window) ..= start + t` (`window` None: all). y [tokens, heads, head_dim]. `scratch` as `attention_scratch` says.
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
        let _ = (q, k, v, shape, start, window, scratch, y);
        todo!()
    }
    /// softmax over `experts` logits in f32, the `k` largest (ties: the lower id first), descending; optionally divided by their sum.
    /// `ids`, `weights` [tokens, k].
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
        let _ = (logits, experts, k, normalise, scratch, ids, weights);
        todo!()
    }
    /// y[row] += scale[i] · x[i] for the rows in `rows`; x [rows.len(), width], y [.., width].
    pub fn add_scaled_rows(
        &self,
        x: &[f32],
        rows: &[u32],
        scale: &[f32],
        width: usize,
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        let _ = (x, rows, scale, width, y);
        todo!()
    }
}

/// Sizes of an attention call.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; head a uses a / (heads / kv_heads).
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Positions the caches have room for.
    pub capacity: usize,
    /// Multiplied with the scores.
    pub scale: f32,
}

impl AttentionShape {
    /// Floats of scratch for a call of `tokens` on `threads`.
    pub fn scratch(&self, tokens: usize, threads: usize) -> usize {
        let _ = (tokens, threads);
        todo!()
    }
}
