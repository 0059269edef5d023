//! The operations that lanes are written over, and the handles of what they work on.
//!
//! Two things carry them out: [`crate::cpu::CpuOps`] computes; [`crate::planner::Planner`] only checks shapes and notes how much
//! memory it would take. The arithmetic is defined in `qpx_kernels::ops`.

use crate::{Error, pool::Tensor};
use std::ops::Range;

/// A matrix of weights. [rows, columns] = [out, in]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    pub(crate) number: usize,
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub columns: usize,
}

/// A vector of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    pub(crate) number: usize,
    /// Its length.
    pub width: usize,
}

/// All experts of a layer: gate and up [inner, hidden], down [hidden, inner].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    pub(crate) number: usize,
    /// How many there are.
    pub count: usize,
    /// Width between the two projections.
    pub inner: usize,
    /// Width of the model.
    pub hidden: usize,
}

/// The keys and values of a layer. [key-value heads, context, head width] each
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    pub(crate) number: usize,
    /// Heads of keys and values.
    pub heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// Cosines and sines of all positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rope {
    pub(crate) number: usize,
    /// Pairs of dims that are rotated.
    pub pairs: usize,
}

/// The experts that a router chose for the tokens of this call; they lie with the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes {
    /// Experts of a token.
    pub per_token: usize,
    /// Tokens.
    pub tokens: usize,
}

/// What a lane can do. `x` and `y` are [tokens, width]; `at` is the position of the first token.
pub trait Ops {
    /// Rows `ids` of `w`. [T, columns]
    fn embed(&mut self, w: Matrix, ids: &[u32]) -> Result<Tensor, Error>;
    /// x / rms(x) · w, over each run of `w.width` values: a whole row, or each head of it. [as x]
    fn rms_norm(&mut self, x: &Tensor, w: Vector, epsilon: f32) -> Result<Tensor, Error>;
    /// x Wᵀ. [T, w.rows]
    fn linear(&mut self, w: Matrix, x: &Tensor) -> Result<Tensor, Error>;
    /// x += b in each row.
    fn add_bias(&mut self, x: &mut Tensor, b: Vector) -> Result<(), Error>;
    /// x += y.
    fn add(&mut self, x: &mut Tensor, y: &Tensor) -> Result<(), Error>;
    /// silu(gate) · up. [as gate]
    fn silu_mul(&mut self, gate: &Tensor, up: &Tensor) -> Result<Tensor, Error>;
    /// Turns the first 2 · pairs dims of each head by its position's angles, pair i with i + pairs.
    fn rope(&mut self, x: &mut Tensor, rope: Rope, head_dim: usize, at: usize)
    -> Result<(), Error>;
    /// Stores keys and values of these positions.
    fn remember(&mut self, cache: Cache, k: &Tensor, v: &Tensor, at: usize) -> Result<(), Error>;
    /// Causal attention of all query heads over the cache, scores · head_dim^-1/2, the last `window` keys or all. [as q]
    fn attention(
        &mut self,
        cache: Cache,
        q: &Tensor,
        window: Option<usize>,
        at: usize,
    ) -> Result<Tensor, Error>;
    /// The `per_token` most probable experts of each token, softmax over all of them; weights divided by their sum if `normalise`.
    fn route_softmax(
        &mut self,
        experts: Experts,
        logits: &Tensor,
        per_token: usize,
        normalise: bool,
    ) -> Result<Routes, Error>;
    /// Σ weight · down(silu(gate(x)) · up(x)) over a token's experts, the most probable first. [T, hidden]
    fn experts(&mut self, experts: Experts, x: &Tensor, routes: Routes) -> Result<Tensor, Error>;
    /// Rows `rows` of x times Wᵀ, into `y` [rows, w.rows]: the output layer of the positions that are asked for.
    fn project(
        &mut self,
        w: Matrix,
        x: &Tensor,
        rows: Range<usize>,
        y: &mut [f32],
    ) -> Result<(), Error>;
}
