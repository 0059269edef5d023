//! llama: Llama 2 and 3, SmolLM.
//!
//! Source: arXiv 2302.13971 and 2407.21783; grouped heads arXiv 2305.13245. Pre-normed attention and SwiGLU:
//! x += attention(norm(x)), x += down(silu(gate(n)) · up(n)) with n = norm(x). Biases where the configuration says so.

use super::{Family, Lane, MOST_LAYERS, Outline, first_problem};
use crate::{
    Error,
    blocks::rope::Scaling,
    needs::Needs,
    ops::{Cache, Matrix, Ops, Rope, Vector},
    pool::Tensor,
};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) const FAMILY: Family = Family {
    name: "llama",
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
    mlp_size: usize,
    mlp_bias: bool,
    window: Option<usize>,
}

struct Llama {
    outline: Outline,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vector,
    rope: Rope,
    head_dim: usize,
    epsilon: f32,
    window: Option<usize>,
}

struct Layer {
    attention_norm: Vector,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Projection,
    cache: Cache,
    mlp_norm: Vector,
    gate: Projection,
    up: Projection,
    down: Projection,
}

/// x Wᵀ, and a bias if the model has any.
struct Projection {
    weight: Matrix,
    bias: Option<Vector>,
}

impl Projection {
    fn new(needs: &mut Needs, role: String, rows: usize, columns: usize, bias: bool) -> Self {
        Self {
            weight: needs.matrix(role.clone(), rows, columns),
            bias: bias.then(|| needs.vector(format!("{role}.bias"), rows)),
        }
    }

    fn of(&self, ops: &mut dyn Ops, x: &Tensor) -> Result<Tensor, Error> {
        let mut y = ops.linear(self.weight, x)?;
        if let Some(bias) = self.bias {
            ops.add_bias(&mut y, bias)?;
        }
        Ok(y)
    }
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
    ])?;
    c.rope.problem().map_or(Ok(()), Err)?;

    let (hidden, queries) = (c.hidden_size, c.attention_heads * c.head_dim);
    let keys = c.key_value_heads * c.head_dim;
    let embedding = needs.matrix("embedding", c.vocabulary, hidden);
    let rope = needs.rope(c.rope.frequencies(c.head_dim));
    let layers = (0..c.layers)
        .map(|n| {
            let attention = |part: &str| format!("layer.{n}.attention.{part}");
            let mlp = |part: &str| format!("layer.{n}.mlp.{part}");
            let bias = c.attention_bias;
            Layer {
                attention_norm: needs.vector(attention("norm"), hidden),
                query: Projection::new(needs, attention("query"), queries, hidden, bias),
                key: Projection::new(needs, attention("key"), keys, hidden, bias),
                value: Projection::new(needs, attention("value"), keys, hidden, bias),
                output: Projection::new(needs, attention("output"), hidden, queries, bias),
                cache: needs.cache(c.key_value_heads, c.head_dim),
                mlp_norm: needs.vector(mlp("norm"), hidden),
                gate: Projection::new(needs, mlp("gate"), c.mlp_size, hidden, c.mlp_bias),
                up: Projection::new(needs, mlp("up"), c.mlp_size, hidden, c.mlp_bias),
                down: Projection::new(needs, mlp("down"), hidden, c.mlp_size, c.mlp_bias),
            }
        })
        .collect();
    Ok(Box::new(Llama {
        embedding,
        layers,
        norm: needs.vector("norm", hidden),
        rope,
        head_dim: c.head_dim,
        epsilon: c.norm_epsilon,
        window: c.window,
        outline: Outline {
            vocabulary: c.vocabulary,
            context_length: c.context_length,
            end_tokens: c.end_tokens,
            output: needs.matrix("output", c.vocabulary, hidden),
            experts_per_token: 0,
        },
    }))
}

impl Lane for Llama {
    fn outline(&self) -> Outline {
        self.outline.clone()
    }

    fn forward(&self, ops: &mut dyn Ops, ids: &[u32], at: usize) -> Result<Tensor, Error> {
        let mut x = ops.embed(self.embedding, ids)?; // [T, H]
        for layer in &self.layers {
            let y = self.attention(layer, ops, &x, at)?;
            ops.add(&mut x, &y)?;
            drop(y);
            let y = self.mlp(layer, ops, &x)?;
            ops.add(&mut x, &y)?;
        }
        ops.rms_norm(&x, self.norm, self.epsilon)
    }
}

impl Llama {
    fn attention(
        &self,
        w: &Layer,
        ops: &mut dyn Ops,
        x: &Tensor,
        at: usize,
    ) -> Result<Tensor, Error> {
        let n = ops.rms_norm(x, w.attention_norm, self.epsilon)?; // [T, H]
        let mut q = w.query.of(ops, &n)?; // [T, A·D]
        let mut k = w.key.of(ops, &n)?; // [T, K·D]
        let v = w.value.of(ops, &n)?;
        drop(n);
        ops.rope(&mut q, self.rope, self.head_dim, at)?;
        ops.rope(&mut k, self.rope, self.head_dim, at)?;
        ops.remember(w.cache, &k, &v, at)?;
        drop((k, v));
        let y = ops.attention(w.cache, &q, self.window, at)?; // [T, A·D]
        drop(q);
        w.output.of(ops, &y)
    }

    fn mlp(&self, w: &Layer, ops: &mut dyn Ops, x: &Tensor) -> Result<Tensor, Error> {
        let n = ops.rms_norm(x, w.mlp_norm, self.epsilon)?;
        let gate = w.gate.of(ops, &n)?; // [T, I]
        let up = w.up.of(ops, &n)?;
        drop(n);
        let y = ops.silu_mul(&gate, &up)?;
        drop((gate, up));
        w.down.of(ops, &y)
    }
}
