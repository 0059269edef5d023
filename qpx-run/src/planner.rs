//! A rehearsal: runs a lane without arithmetic, checks its shapes, and notes what memory the real run will take.

use crate::{
    Error,
    ops::{Cache, Experts, Matrix, Ops, Rope, Routes, Vector},
    pool::{Pool, Tensor},
};
use qpx_kernels::ops::ShapeError;
use std::{ops::Range, sync::Arc};

/// Everything a chunk of tokens takes beside weights and caches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scratch {
    /// Floats of each activation buffer.
    pub rooms: Vec<usize>,
    /// Widest input of a resident matrix or of experts.
    pub input_columns: usize,
    /// Widest input of experts' second matrices; 0 without experts.
    pub inner_columns: usize,
    /// Most experts that a router chooses from.
    pub router_experts: usize,
    /// Most experts of a token.
    pub per_token: usize,
}

/// The operations, rehearsed.
pub struct Planner {
    pool: Arc<Pool>,
    scratch: Scratch,
}

impl Planner {
    /// For chunks of `chunk` tokens.
    pub fn new(chunk: usize) -> Self {
        Self {
            pool: Pool::rehearsal(chunk),
            scratch: Scratch::default(),
        }
    }

    /// What was needed.
    pub fn finish(self) -> Scratch {
        Scratch {
            rooms: self.pool.rooms(),
            ..self.scratch
        }
    }

    fn like(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.pool.take(x.rows(), x.columns())
    }
}

/// Expected and found must be equal.
pub(crate) fn same(
    operation: &'static str,
    argument: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape(ShapeError {
        operation,
        argument,
        expected,
        found,
    }))
}

/// `found` must be a multiple of `unit`.
pub(crate) fn whole(
    operation: &'static str,
    argument: &'static str,
    unit: usize,
    found: usize,
) -> Result<(), Error> {
    let rest = found.checked_rem(unit).unwrap_or(1);
    same(operation, argument, found - rest.min(found), found)
}

impl Ops for Planner {
    fn embed(&mut self, w: Matrix, ids: &[u32]) -> Result<Tensor, Error> {
        self.pool.take(ids.len(), w.columns)
    }

    fn rms_norm(&mut self, x: &Tensor, w: Vector, _epsilon: f32) -> Result<Tensor, Error> {
        whole("rms_norm", "a row of x", w.width, x.columns())?;
        self.like(x)
    }

    fn linear(&mut self, w: Matrix, x: &Tensor) -> Result<Tensor, Error> {
        same("linear", "a row of x", w.columns, x.columns())?;
        self.scratch.input_columns = self.scratch.input_columns.max(w.columns);
        self.pool.take(x.rows(), w.rows)
    }

    fn add_bias(&mut self, x: &mut Tensor, b: Vector) -> Result<(), Error> {
        same("add_bias", "a row of x", b.width, x.columns())
    }

    fn add(&mut self, x: &mut Tensor, y: &Tensor) -> Result<(), Error> {
        same("add", "rows of y", x.rows(), y.rows())?;
        same("add", "a row of y", x.columns(), y.columns())
    }

    fn silu_mul(&mut self, gate: &Tensor, up: &Tensor) -> Result<Tensor, Error> {
        same("silu_mul", "a row of up", gate.columns(), up.columns())?;
        self.like(gate)
    }

    fn rope(
        &mut self,
        x: &mut Tensor,
        rope: Rope,
        head_dim: usize,
        _at: usize,
    ) -> Result<(), Error> {
        whole("rope", "a row of x", head_dim, x.columns())?;
        if 2 * rope.pairs > head_dim {
            return same("rope", "rotated dims", head_dim, 2 * rope.pairs);
        }
        Ok(())
    }

    fn remember(&mut self, cache: Cache, k: &Tensor, v: &Tensor, _at: usize) -> Result<(), Error> {
        let width = cache.heads * cache.head_dim;
        same("remember", "a row of k", width, k.columns())?;
        same("remember", "a row of v", width, v.columns())
    }

    fn attention(
        &mut self,
        cache: Cache,
        q: &Tensor,
        _window: Option<usize>,
        _at: usize,
    ) -> Result<Tensor, Error> {
        whole(
            "attention",
            "a row of q",
            cache.heads * cache.head_dim,
            q.columns(),
        )?;
        self.like(q)
    }

    fn route_softmax(
        &mut self,
        experts: Experts,
        logits: &Tensor,
        per_token: usize,
        _normalise: bool,
    ) -> Result<Routes, Error> {
        same(
            "route_softmax",
            "a row of logits",
            experts.count,
            logits.columns(),
        )?;
        self.scratch.router_experts = self.scratch.router_experts.max(experts.count);
        self.scratch.per_token = self.scratch.per_token.max(per_token);
        Ok(Routes {
            per_token,
            tokens: logits.rows(),
        })
    }

    fn experts(&mut self, experts: Experts, x: &Tensor, routes: Routes) -> Result<Tensor, Error> {
        same("experts", "a row of x", experts.hidden, x.columns())?;
        same("experts", "tokens routed", x.rows(), routes.tokens)?;
        self.scratch.input_columns = self.scratch.input_columns.max(experts.hidden);
        self.scratch.inner_columns = self.scratch.inner_columns.max(experts.inner);
        let tensors = ExpertTensors::take(&self.pool, experts, routes)?;
        Ok(tensors.sum)
    }

    fn project(
        &mut self,
        w: Matrix,
        x: &Tensor,
        _rows: Range<usize>,
        _y: &mut [f32],
    ) -> Result<(), Error> {
        same("project", "a row of x", w.columns, x.columns())?;
        self.scratch.input_columns = self.scratch.input_columns.max(w.columns);
        Ok(())
    }
}

/// The buffers of an experts' call: taken alike in rehearsal and run.
pub(crate) struct ExpertTensors {
    /// The result. [T, hidden]
    pub sum: Tensor,
    /// Every expert's answer to every token that chose it, in the token's order of choice. [T, per token · hidden]
    pub answers: Tensor,
    /// One expert's batch. [T, inner]
    pub gate: Tensor,
    pub up: Tensor,
    pub product: Tensor,
    /// [T, hidden]
    pub down: Tensor,
}

impl ExpertTensors {
    pub(crate) fn take(pool: &Arc<Pool>, experts: Experts, routes: Routes) -> Result<Self, Error> {
        let tokens = routes.tokens;
        Ok(Self {
            sum: pool.take(tokens, experts.hidden)?,
            answers: pool.take(tokens, routes.per_token * experts.hidden)?,
            gate: pool.take(tokens, experts.inner)?,
            up: pool.take(tokens, experts.inner)?,
            product: pool.take(tokens, experts.inner)?,
            down: pool.take(tokens, experts.hidden)?,
        })
    }
}
