//! The tensors that plain decoders have in common: embedding, attention with its norms, closing norm, output layer.
//!
//! Families put them together and say what they add; each states its own list.

use super::{Expected, common::Common};
use qpx_format::manifest::SegmentKind;

/// Collects a family's tensors in the order in which a token meets them.
pub(crate) struct List {
    /// In execution order; the embedding and the output layer stand last, since they lie in a segment of their own.
    pub tensors: Vec<Expected>,
}

impl List {
    pub(crate) fn new() -> Self {
        Self {
            tensors: Vec::new(),
        }
    }

    fn add(&mut self, name: String, role: String, shape: &[u64], segment: SegmentKind) {
        self.tensors.push(Expected {
            name,
            role,
            shape: shape.to_vec(),
            segment,
        });
    }

    /// A tensor of layer `layer`: vendor name and role without their beginnings.
    pub(crate) fn layer(&mut self, layer: u64, name: &str, role: &str, shape: &[u64]) {
        self.add(
            format!("model.layers.{layer}.{name}"),
            format!("layer.{layer}.{role}"),
            shape,
            SegmentKind::Core,
        );
    }

    /// A matrix of layer `layer` and, where it has one, its bias.
    pub(crate) fn linear(
        &mut self,
        layer: u64,
        name: &str,
        role: &str,
        shape: [u64; 2],
        bias: bool,
    ) {
        self.layer(layer, &format!("{name}.weight"), role, &shape);
        if bias {
            self.layer(
                layer,
                &format!("{name}.bias"),
                &format!("{role}.bias"),
                &shape[..1],
            );
        }
    }

    /// Attention with its norm; `head_norms` are norms of queries and keys per head.
    pub(crate) fn attention(&mut self, layer: u64, c: &Common, head_norms: bool) {
        let (hidden, bias) = (c.hidden_size, c.attention_bias);
        let (queries, keys) = (
            c.attention_heads * c.head_dim,
            c.key_value_heads * c.head_dim,
        );
        self.layer(layer, "input_layernorm.weight", "attention.norm", &[hidden]);
        self.linear(
            layer,
            "self_attn.q_proj",
            "attention.query",
            [queries, hidden],
            bias,
        );
        self.linear(
            layer,
            "self_attn.k_proj",
            "attention.key",
            [keys, hidden],
            bias,
        );
        self.linear(
            layer,
            "self_attn.v_proj",
            "attention.value",
            [keys, hidden],
            bias,
        );
        if head_norms {
            self.layer(
                layer,
                "self_attn.q_norm.weight",
                "attention.query_norm",
                &[c.head_dim],
            );
            self.layer(
                layer,
                "self_attn.k_norm.weight",
                "attention.key_norm",
                &[c.head_dim],
            );
        }
        self.linear(
            layer,
            "self_attn.o_proj",
            "attention.output",
            [hidden, queries],
            bias,
        );
        self.layer(
            layer,
            "post_attention_layernorm.weight",
            "mlp.norm",
            &[hidden],
        );
    }

    /// A dense feed-forward block.
    pub(crate) fn mlp(&mut self, layer: u64, hidden: u64, inner: u64, bias: bool) {
        self.linear(layer, "mlp.gate_proj", "mlp.gate", [inner, hidden], bias);
        self.linear(layer, "mlp.up_proj", "mlp.up", [inner, hidden], bias);
        self.linear(layer, "mlp.down_proj", "mlp.down", [hidden, inner], bias);
    }

    /// What stands around the layers.
    pub(crate) fn ends(&mut self, c: &Common) {
        let rows = [c.vocabulary, c.hidden_size];
        self.add(
            "model.norm.weight".to_owned(),
            "norm".to_owned(),
            &rows[1..],
            SegmentKind::Core,
        );
        self.add(
            "model.embed_tokens.weight".to_owned(),
            "embedding".to_owned(),
            &rows,
            SegmentKind::Head,
        );
        self.add(
            "lm_head.weight".to_owned(),
            "output".to_owned(),
            &rows,
            SegmentKind::Head,
        );
    }
}
