//! The operations, computed on the CPU by `qpx_kernels`.

use crate::{
    Error,
    needs::Needs,
    ops::{Cache, Experts, Matrix, Ops, Rope, Routes, Vector},
    pager::Pager,
    planner::{ExpertTensors, Scratch, same},
    pool::{Pool, Tensor},
    resident::Resident,
};
use qpx_kernels::{Cpu, cpu::AttentionShape, cpu::Input, math};
use std::{ops::Range, sync::Arc};

/// Weights, caches and scratch of a run.
pub struct CpuOps {
    cpu: Cpu,
    resident: Resident,
    pager: Pager,
    pool: Arc<Pool>,
    context: usize,
    caches: Vec<Stored>,
    ropes: Vec<Table>,
    /// The input of linear maps, and the number of the tensor that it was made from.
    input: Input,
    prepared: u64,
    /// The input of experts' second matrices.
    inner: Input,
    routing: Routing,
}

/// Keys and values of a layer. [heads, context, head_dim]
struct Stored {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// [context, pairs]
struct Table {
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// What a router chose. [tokens, per token]
struct Routing {
    scratch: Vec<f32>,
    ids: Vec<u32>,
    weights: Vec<f32>,
    /// The token of each entry.
    owners: Vec<u32>,
    /// The distinct experts of a call, in the order in which they run.
    chosen: Vec<u32>,
    seen: Vec<bool>,
    /// Tokens of one expert, and their entries.
    tokens: Vec<u32>,
    entries: Vec<u32>,
    record: Option<Vec<Choice>>,
}

impl Routing {
    /// Lists the distinct experts of the first `count` entries: those at hand first, since a read for another may take their slots.
    fn list(&mut self, pager: &Pager, experts: Experts, count: usize) {
        self.chosen.clear();
        for held in [true, false] {
            self.seen.fill(false);
            for id in &self.ids[..count] {
                let seen = &mut self.seen[*id as usize];
                if !*seen && pager.holds(experts, *id as usize) == held {
                    self.chosen.push(*id);
                }
                *seen = true;
            }
        }
    }
}

/// What the router of one layer chose for some tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Number of the layer among those with experts.
    pub layer: usize,
    /// Experts of each token, the most probable first. [tokens, per token]
    pub ids: Vec<u32>,
    /// Their weights.
    pub weights: Vec<f32>,
}

/// Bytes of keys, values and rotary tables for `context` positions.
pub fn context_bytes(needs: &Needs, context: usize) -> (u64, u64) {
    let float = size_of::<f32>() as u64;
    let context = context as u64;
    let widths = needs.caches.iter().map(|c| (c.heads * c.head_dim) as u64);
    let pairs = needs.ropes.iter().map(|r| r.len() as u64);
    (
        2 * float * context * widths.sum::<u64>(),
        2 * float * context * pairs.sum::<u64>(),
    )
}

/// Bytes of activations and inputs for chunks of `chunk` tokens.
pub fn scratch_bytes(scratch: &Scratch, chunk: usize) -> u64 {
    let floats: usize = scratch.rooms.iter().sum();
    let routing = chunk * scratch.per_token * 4 + 2 * scratch.router_experts + 2 * chunk;
    let inputs =
        Input::bytes(chunk, scratch.input_columns) + Input::bytes(chunk, scratch.inner_columns);
    (size_of::<f32>() * (floats + routing) + inputs) as u64
}

impl CpuOps {
    /// Makes everything that a run will need.
    pub fn new(
        cpu: Cpu,
        resident: Resident,
        pager: Pager,
        needs: &Needs,
        scratch: &Scratch,
        chunk: usize,
        context: usize,
    ) -> Self {
        let floats = |n: usize| vec![0.0_f32; n];
        let caches = needs.caches.iter().map(|c| c.heads * c.head_dim * context);
        let entries = chunk * scratch.per_token;
        Self {
            cpu,
            resident,
            pager,
            pool: Pool::with_rooms(chunk, &scratch.rooms),
            context,
            caches: caches
                .map(|n| Stored {
                    keys: floats(n),
                    values: floats(n),
                })
                .collect(),
            ropes: needs.ropes.iter().map(|f| table(f, context)).collect(),
            input: Input::with_capacity(chunk, scratch.input_columns),
            prepared: 0,
            inner: Input::with_capacity(chunk, scratch.inner_columns),
            routing: Routing {
                scratch: floats(scratch.router_experts),
                ids: vec![0; entries],
                weights: floats(entries),
                owners: vec![0; entries],
                chosen: Vec::with_capacity(scratch.router_experts),
                seen: vec![false; scratch.router_experts],
                tokens: Vec::with_capacity(chunk),
                entries: Vec::with_capacity(chunk),
                record: None,
            },
        }
    }

    /// The pager.
    pub fn pager(&self) -> &Pager {
        &self.pager
    }

    /// From now on keeps what routers choose, or stops doing so. Keeping allocates.
    pub fn record_routing(&mut self, record: bool) {
        self.routing.record = record.then(Vec::new);
    }

    /// What routers chose since the last call.
    pub fn take_routing(&mut self) -> Vec<Choice> {
        self.routing
            .record
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    fn prepare(&mut self, x: &Tensor) -> Result<(), Error> {
        if self.prepared != x.number() {
            self.cpu.prepare(x.data(), x.columns(), &mut self.input)?;
            self.prepared = x.number();
        }
        Ok(())
    }

    /// Runs one expert on the tokens that chose it; the pool's buffers hold its batch.
    fn run_expert(
        &mut self,
        experts: Experts,
        routes: Routes,
        expert: u32,
        t: &mut ExpertTensors,
    ) -> Result<(), Error> {
        let routing = &mut self.routing;
        routing.tokens.clear();
        routing.entries.clear();
        for (i, id) in routing.ids[..routes.tokens * routes.per_token]
            .iter()
            .enumerate()
        {
            if *id == expert {
                routing.tokens.push((i / routes.per_token) as u32);
                routing.entries.push(i as u32);
            }
        }
        let (batch, inner, hidden) = (routing.tokens.len(), experts.inner, experts.hidden);
        let slot = self.pager.fetch(experts, expert as usize)?;
        let [gate, up, down] = self.pager.matrices(experts, slot);
        let some = |t: &mut Tensor, w: &_| {
            let y = &mut t.data_mut()[..batch * inner];
            self.cpu.linear_some(w, &self.input, &routing.tokens, y)
        };
        some(&mut t.gate, &gate)?;
        some(&mut t.up, &up)?;
        let product = &mut t.product.data_mut()[..batch * inner];
        self.cpu.silu_mul(
            &t.gate.data()[..batch * inner],
            &t.up.data()[..batch * inner],
            product,
        )?;
        self.cpu.prepare(product, inner, &mut self.inner)?;
        let answers = &mut t.down.data_mut()[..batch * hidden];
        self.cpu.linear(&down, &self.inner, answers)?;
        let places = t.answers.data_mut();
        for (entry, answer) in routing.entries.iter().zip(answers.chunks_exact(hidden)) {
            places[*entry as usize * hidden..][..hidden].copy_from_slice(answer);
        }
        Ok(())
    }

    fn positions(&self, rows: usize, at: usize) -> Result<(), Error> {
        match at.checked_add(rows) {
            Some(end) if end <= self.context => Ok(()),
            _ => Err(Error::Fault {
                reason: "a position is outside the context",
            }),
        }
    }
}

/// cos and sin of position · frequency, all in f32 as the published models compute it.
fn table(frequencies: &[f32], context: usize) -> Table {
    let angles = || (0..context).flat_map(|p| frequencies.iter().map(move |f| p as f32 * f));
    Table {
        cos: angles().map(math::cos).collect(),
        sin: angles().map(math::sin).collect(),
    }
}

impl Ops for CpuOps {
    fn embed(&mut self, w: Matrix, ids: &[u32]) -> Result<Tensor, Error> {
        let mut y = self.pool.take(ids.len(), w.columns)?;
        self.cpu
            .embed(&self.resident.matrix(w), ids, y.data_mut())?;
        Ok(y)
    }

    fn rms_norm(&mut self, x: &Tensor, w: Vector, epsilon: f32) -> Result<Tensor, Error> {
        let mut y = self.pool.take(x.rows(), x.columns())?;
        let weight = self.resident.vector(w);
        self.cpu.rms_norm(x.data(), weight, epsilon, y.data_mut())?;
        Ok(y)
    }

    fn linear(&mut self, w: Matrix, x: &Tensor) -> Result<Tensor, Error> {
        self.prepare(x)?;
        let mut y = self.pool.take(x.rows(), w.rows)?;
        self.cpu
            .linear(&self.resident.matrix(w), &self.input, y.data_mut())?;
        Ok(y)
    }

    fn add_bias(&mut self, x: &mut Tensor, b: Vector) -> Result<(), Error> {
        Ok(self.cpu.add_bias(x.data_mut(), self.resident.vector(b))?)
    }

    fn add(&mut self, x: &mut Tensor, y: &Tensor) -> Result<(), Error> {
        Ok(self.cpu.add(x.data_mut(), y.data())?)
    }

    fn silu_mul(&mut self, gate: &Tensor, up: &Tensor) -> Result<Tensor, Error> {
        let mut y = self.pool.take(gate.rows(), gate.columns())?;
        self.cpu.silu_mul(gate.data(), up.data(), y.data_mut())?;
        Ok(y)
    }

    fn rope(
        &mut self,
        x: &mut Tensor,
        rope: Rope,
        head_dim: usize,
        at: usize,
    ) -> Result<(), Error> {
        self.positions(x.rows(), at)?;
        let table = &self.ropes[rope.number];
        let angles = at * rope.pairs..(at + x.rows()) * rope.pairs;
        let heads = x.columns() / head_dim;
        self.cpu.rope_half(
            x.data_mut(),
            heads,
            head_dim,
            &table.cos[angles.clone()],
            &table.sin[angles],
        )?;
        Ok(())
    }

    fn remember(&mut self, cache: Cache, k: &Tensor, v: &Tensor, at: usize) -> Result<(), Error> {
        self.positions(k.rows(), at)?;
        let stored = &mut self.caches[cache.number];
        let (dim, context) = (cache.head_dim, self.context);
        for (from, to) in [(k, &mut stored.keys), (v, &mut stored.values)] {
            same("remember", "a row", cache.heads * dim, from.columns())?;
            for (token, row) in from.data().chunks_exact(from.columns()).enumerate() {
                for (head, values) in row.chunks_exact(dim).enumerate() {
                    let place = (head * context + at + token) * dim;
                    to[place..place + dim].copy_from_slice(values);
                }
            }
        }
        Ok(())
    }

    fn attention(
        &mut self,
        cache: Cache,
        q: &Tensor,
        window: Option<usize>,
        at: usize,
    ) -> Result<Tensor, Error> {
        self.positions(q.rows(), at)?;
        let mut y = self.pool.take(q.rows(), q.columns())?;
        let shape = AttentionShape {
            heads: q.columns() / cache.head_dim,
            kv_heads: cache.heads,
            head_dim: cache.head_dim,
            capacity: self.context,
            scale: 1.0 / (cache.head_dim as f32).sqrt(),
        };
        same(
            "attention",
            "scratch",
            0,
            shape.scratch(q.rows(), self.cpu.threads),
        )?;
        let stored = &self.caches[cache.number];
        self.cpu.attention(
            q.data(),
            &stored.keys,
            &stored.values,
            shape,
            at,
            window,
            &mut [],
            y.data_mut(),
        )?;
        Ok(y)
    }

    fn route_softmax(
        &mut self,
        experts: Experts,
        logits: &Tensor,
        per_token: usize,
        normalise: bool,
    ) -> Result<Routes, Error> {
        let routing = &mut self.routing;
        let entries = logits.rows() * per_token;
        self.cpu.route_softmax(
            logits.data(),
            experts.count,
            per_token,
            normalise,
            &mut routing.scratch[..experts.count],
            &mut routing.ids[..entries],
            &mut routing.weights[..entries],
        )?;
        if let Some(record) = &mut routing.record {
            record.push(Choice {
                layer: experts.number,
                ids: routing.ids[..entries].to_vec(),
                weights: routing.weights[..entries].to_vec(),
            });
        }
        Ok(Routes {
            per_token,
            tokens: logits.rows(),
        })
    }

    // Each chosen expert runs once, on all of the call's tokens that chose it. Its answers wait in the token's order of choice,
    // so that the order in which experts run, and which tokens share a call, can't change a bit of the sum.
    fn experts(&mut self, experts: Experts, x: &Tensor, routes: Routes) -> Result<Tensor, Error> {
        self.prepare(x)?;
        let mut t = ExpertTensors::take(&self.pool, experts, routes)?;
        let count = routes.tokens * routes.per_token;
        self.routing.list(&self.pager, experts, count);
        for i in 0..self.routing.chosen.len() {
            self.run_expert(experts, routes, self.routing.chosen[i], &mut t)?;
        }
        let width = experts.hidden;
        t.sum.data_mut().fill(0.0);
        for (i, owner) in self.routing.owners[..count].iter_mut().enumerate() {
            *owner = (i / routes.per_token) as u32;
        }
        self.cpu.add_scaled_rows(
            t.answers.data(),
            &self.routing.owners[..count],
            &self.routing.weights[..count],
            width,
            t.sum.data_mut(),
        )?;
        Ok(t.sum)
    }

    fn project(
        &mut self,
        w: Matrix,
        x: &Tensor,
        rows: Range<usize>,
        y: &mut [f32],
    ) -> Result<(), Error> {
        let columns = x.columns();
        let asked = &x.data()[rows.start * columns..rows.end * columns];
        self.prepared = 0;
        self.cpu.prepare(asked, columns, &mut self.input)?;
        Ok(self.cpu.linear(&self.resident.matrix(w), &self.input, y)?)
    }
}
