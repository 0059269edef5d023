//! qwen3_moe: the mixture-of-experts models of the third Qwen generation (Qwen3-30B-A3B, Qwen3-Coder).
//!
//! Source: arXiv 2505.09388. A router takes the softmax over all experts and keeps the most probable few; there is no shared
//! expert. Some layers may be dense. Trap: whether the kept probabilities are divided by their sum differs between checkpoints.

use super::{Family, Lane, MOST_LAYERS, Outline, first_problem};
use crate::{
    Error,
    blocks::rope::Scaling,
    needs::Needs,
    ops::{Cache, Experts, Matrix, Ops, Rope, Vector},
    pool::Tensor,
};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) const FAMILY: Family = Family {
    name: "qwen3_moe",
    build,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(rename = "family")]
    _family: String,
    hidden_size: usize,
    layers: usize,
    vocabulary: usize,
    context_length: u64,
    attention_heads: usize,
    key_value_heads: usize,
    head_dim: usize,
    norm_epsilon: f32,
    activation: String,
    #[serde(rename = "tied_output")]
    _tied_output: bool,
    rope: Scaling,
    attention_bias: bool,
    end_tokens: Vec<u32>,
    experts: usize,
    experts_per_token: usize,
    expert_size: usize,
    normalise_weights: bool,
    dense_layers: Vec<usize>,
    mlp_size: usize,
    window: Option<usize>,
}

struct Qwen3Moe {
    outline: Outline,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vector,
    rope: Rope,
    head_dim: usize,
    epsilon: f32,
    window: Option<usize>,
    normalise: bool,
}

struct Layer {
    attention: Attention,
    mlp_norm: Vector,
    mlp: Mlp,
}

struct Attention {
    norm: Vector,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    query_norm: Vector,
    key_norm: Vector,
    cache: Cache,
    biases: Option<Biases>,
}

#[derive(Clone, Copy)]
struct Biases {
    query: Vector,
    key: Vector,
    value: Vector,
    output: Vector,
}

enum Mlp {
    Dense {
        gate: Matrix,
        up: Matrix,
        down: Matrix,
    },
    Mixture {
        router: Matrix,
        experts: Experts,
    },
}

fn build(architecture: Map<String, Value>, needs: &mut Needs) -> Result<Box<dyn Lane>, String> {
    let c: Config =
        serde_json::from_value(Value::Object(architecture)).map_err(|e| e.to_string())?;
    first_problem(&[
        (c.activation == "silu", "activation must be silu"),
        (
            (1..=MOST_LAYERS).contains(&c.layers),
            "layers must be from 1 to 1024",
        ),
        (
            c.head_dim > 0 && c.head_dim.is_multiple_of(2),
            "head_dim must be even",
        ),
        (
            c.key_value_heads > 0 && c.attention_heads.is_multiple_of(c.key_value_heads),
            "attention_heads must be a multiple of key_value_heads",
        ),
        (c.norm_epsilon > 0.0, "norm_epsilon must be positive"),
        (c.window != Some(0), "window must not be 0"),
        (
            c.experts_per_token > 0 && c.experts_per_token <= c.experts,
            "experts_per_token must be from 1 to the number of experts",
        ),
        (
            c.dense_layers.iter().all(|n| *n < c.layers),
            "dense_layers names a layer that is not there",
        ),
    ])?;
    c.rope.problem().map_or(Ok(()), Err)?;

    let embedding = needs.matrix("embedding", c.vocabulary, c.hidden_size);
    let rope = needs.rope(c.rope.frequencies(c.head_dim));
    let layers = (0..c.layers).map(|n| layer(&c, n, needs)).collect();
    Ok(Box::new(Qwen3Moe {
        embedding,
        layers,
        norm: needs.vector("norm", c.hidden_size),
        rope,
        head_dim: c.head_dim,
        epsilon: c.norm_epsilon,
        window: c.window,
        normalise: c.normalise_weights,
        outline: Outline {
            vocabulary: c.vocabulary,
            context_length: c.context_length,
            end_tokens: c.end_tokens,
            output: needs.matrix("output", c.vocabulary, c.hidden_size),
            experts_per_token: c.experts_per_token,
        },
    }))
}

fn layer(c: &Config, n: usize, needs: &mut Needs) -> Layer {
    let (hidden, queries) = (c.hidden_size, c.attention_heads * c.head_dim);
    let keys = c.key_value_heads * c.head_dim;
    let role = |part: &str| format!("layer.{n}.{part}");
    let attention = Attention {
        norm: needs.vector(role("attention.norm"), hidden),
        query: needs.matrix(role("attention.query"), queries, hidden),
        key: needs.matrix(role("attention.key"), keys, hidden),
        value: needs.matrix(role("attention.value"), keys, hidden),
        output: needs.matrix(role("attention.output"), hidden, queries),
        query_norm: needs.vector(role("attention.query_norm"), c.head_dim),
        key_norm: needs.vector(role("attention.key_norm"), c.head_dim),
        cache: needs.cache(c.key_value_heads, c.head_dim),
        biases: c.attention_bias.then(|| Biases {
            query: needs.vector(role("attention.query.bias"), queries),
            key: needs.vector(role("attention.key.bias"), keys),
            value: needs.vector(role("attention.value.bias"), keys),
            output: needs.vector(role("attention.output.bias"), hidden),
        }),
    };
    let mlp = if c.dense_layers.contains(&n) {
        Mlp::Dense {
            gate: needs.matrix(role("mlp.gate"), c.mlp_size, hidden),
            up: needs.matrix(role("mlp.up"), c.mlp_size, hidden),
            down: needs.matrix(role("mlp.down"), hidden, c.mlp_size),
        }
    } else {
        Mlp::Mixture {
            router: needs.matrix(role("router"), c.experts, hidden),
            experts: needs.experts(n as u64, c.experts, c.expert_size, hidden),
        }
    };
    Layer {
        attention,
        mlp_norm: needs.vector(role("mlp.norm"), hidden),
        mlp,
    }
}

impl Lane for Qwen3Moe {
    fn outline(&self) -> Outline {
        self.outline.clone()
    }

    fn forward(&self, ops: &mut dyn Ops, ids: &[u32], at: usize) -> Result<Tensor, Error> {
        let mut x = ops.embed(self.embedding, ids)?; // [T, H]
        for layer in &self.layers {
            let y = self.attention(&layer.attention, ops, &x, at)?;
            ops.add(&mut x, &y)?;
            drop(y);
            let n = ops.rms_norm(&x, layer.mlp_norm, self.epsilon)?;
            let y = self.mlp(&layer.mlp, ops, n)?;
            ops.add(&mut x, &y)?;
        }
        ops.rms_norm(&x, self.norm, self.epsilon)
    }
}

impl Qwen3Moe {
    fn attention(
        &self,
        w: &Attention,
        ops: &mut dyn Ops,
        x: &Tensor,
        at: usize,
    ) -> Result<Tensor, Error> {
        let n = ops.rms_norm(x, w.norm, self.epsilon)?; // [T, H]
        let mut q = ops.linear(w.query, &n)?; // [T, A·D]
        let mut k = ops.linear(w.key, &n)?; // [T, K·D]
        let mut v = ops.linear(w.value, &n)?;
        drop(n);
        if let Some(b) = w.biases {
            ops.add_bias(&mut q, b.query)?;
            ops.add_bias(&mut k, b.key)?;
            ops.add_bias(&mut v, b.value)?;
        }
        // Queries and keys are normed per head before rotation.
        let mut q = ops.rms_norm(&q, w.query_norm, self.epsilon)?;
        let mut k = ops.rms_norm(&k, w.key_norm, self.epsilon)?;
        ops.rope(&mut q, self.rope, self.head_dim, at)?;
        ops.rope(&mut k, self.rope, self.head_dim, at)?;
        ops.remember(w.cache, &k, &v, at)?;
        drop((k, v));
        let y = ops.attention(w.cache, &q, self.window, at)?;
        drop(q);
        let mut y = ops.linear(w.output, &y)?; // [T, H]
        if let Some(b) = w.biases {
            ops.add_bias(&mut y, b.output)?;
        }
        Ok(y)
    }

    /// What the layer makes of the normed state `n` [T, H].
    fn mlp(&self, w: &Mlp, ops: &mut dyn Ops, n: Tensor) -> Result<Tensor, Error> {
        match *w {
            Mlp::Dense { gate, up, down } => {
                let gate = ops.linear(gate, &n)?; // [T, I]
                let up = ops.linear(up, &n)?;
                drop(n);
                let y = ops.silu_mul(&gate, &up)?;
                drop((gate, up));
                ops.linear(down, &y)
            }
            Mlp::Mixture { router, experts } => {
                // The router's logits stay f32, and the softmax is over all experts, before any is dropped.
                let logits = ops.linear(router, &n)?; // [T, E]
                let chosen = self.outline.experts_per_token;
                let routes = ops.route_softmax(experts, &logits, chosen, self.normalise)?;
                drop(logits);
                ops.experts(experts, &n, routes) // [T, H]
            }
        }
    }
}
