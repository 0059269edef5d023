//! qwen3: the dense models of the third Qwen generation.
//!
//! Source: arXiv 2505.09388. Grouped attention whose queries and keys are normed per head before they are rotated (the report
//! puts this norm in the place of the earlier generations' biases), SwiGLU, pre-normed residual branches.

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
    name: "qwen3",
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
    window: Option<usize>,
}

struct Qwen3 {
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
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    /// Of query, key, value and output, in a model that has them.
    biases: Option<[Vector; 4]>,
    query_norm: Vector,
    key_norm: Vector,
    cache: Cache,
    mlp_norm: Vector,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
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

    let (hidden, inner) = (c.hidden_size, c.mlp_size);
    let queries = c.attention_heads * c.head_dim;
    let keys = c.key_value_heads * c.head_dim;
    let embedding = needs.matrix("embedding", c.vocabulary, hidden);
    let rope = needs.rope(c.rope.frequencies(c.head_dim));
    let layers = (0..c.layers)
        .map(|n| {
            let attention = |part: &str| format!("layer.{n}.attention.{part}");
            let mlp = |part: &str| format!("layer.{n}.mlp.{part}");
            Layer {
                attention_norm: needs.vector(attention("norm"), hidden),
                query: needs.matrix(attention("query"), queries, hidden),
                key: needs.matrix(attention("key"), keys, hidden),
                value: needs.matrix(attention("value"), keys, hidden),
                output: needs.matrix(attention("output"), hidden, queries),
                biases: c.attention_bias.then(|| {
                    [
                        needs.vector(attention("query.bias"), queries),
                        needs.vector(attention("key.bias"), keys),
                        needs.vector(attention("value.bias"), keys),
                        needs.vector(attention("output.bias"), hidden),
                    ]
                }),
                query_norm: needs.vector(attention("query_norm"), c.head_dim),
                key_norm: needs.vector(attention("key_norm"), c.head_dim),
                cache: needs.cache(c.key_value_heads, c.head_dim),
                mlp_norm: needs.vector(mlp("norm"), hidden),
                gate: needs.matrix(mlp("gate"), inner, hidden),
                up: needs.matrix(mlp("up"), inner, hidden),
                down: needs.matrix(mlp("down"), hidden, inner),
            }
        })
        .collect();
    Ok(Box::new(Qwen3 {
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

impl Lane for Qwen3 {
    fn outline(&self) -> Outline {
        self.outline.clone()
    }

    fn forward(&self, ops: &mut dyn Ops, ids: &[u32], at: usize) -> Result<Tensor, Error> {
        let mut x = ops.embed(self.embedding, ids)?; // [T, H]
        for layer in &self.layers {
            let n = ops.rms_norm(&x, layer.attention_norm, self.epsilon)?;
            let y = self.attention(layer, ops, n, at)?;
            ops.add(&mut x, &y)?;
            drop(y);

            // SwiGLU: down(silu(gate) · up)
            let n = ops.rms_norm(&x, layer.mlp_norm, self.epsilon)?;
            let gate = ops.linear(layer.gate, &n)?; // [T, I]
            let up = ops.linear(layer.up, &n)?;
            drop(n);
            let y = ops.silu_mul(&gate, &up)?;
            drop((gate, up));
            let y = ops.linear(layer.down, &y)?; // [T, H]
            ops.add(&mut x, &y)?;
        }
        ops.rms_norm(&x, self.norm, self.epsilon)
    }
}

impl Qwen3 {
    /// Attention over what `n` [T, H], the normed state, and all earlier tokens say.
    fn attention(
        &self,
        w: &Layer,
        ops: &mut dyn Ops,
        n: Tensor,
        at: usize,
    ) -> Result<Tensor, Error> {
        let mut q = ops.linear(w.query, &n)?; // [T, A·D]
        let mut k = ops.linear(w.key, &n)?; // [T, K·D]
        let mut v = ops.linear(w.value, &n)?;
        drop(n);
        if let Some([query, key, value, _]) = w.biases {
            ops.add_bias(&mut q, query)?;
            ops.add_bias(&mut k, key)?;
            ops.add_bias(&mut v, value)?;
        }
        // One norm weight for all heads of a layer; the norm comes before the rotation.
        let mut q = ops.rms_norm(&q, w.query_norm, self.epsilon)?;
        let mut k = ops.rms_norm(&k, w.key_norm, self.epsilon)?;
        ops.rope(&mut q, self.rope, self.head_dim, at)?;
        ops.rope(&mut k, self.rope, self.head_dim, at)?;
        ops.remember(w.cache, &k, &v, at)?;
        drop((k, v));
        let y = ops.attention(w.cache, &q, self.window, at)?;
        drop(q);
        let mut y = ops.linear(w.output, &y)?; // [T, H]
        if let Some([_, _, _, output]) = w.biases {
            ops.add_bias(&mut y, output)?;
        }
        Ok(y)
    }
}
