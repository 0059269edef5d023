//! llama: Llama 2 and 3, SmolLM and other checkpoints of the class `LlamaForCausalLM`.
//!
//! Source: the published configuration class (defaults) and checkpoints. Grouped attention, rotary positions with or without
//! the llama3 scaling, SwiGLU; biases only where `attention_bias` or `mlp_bias` say so, and then on all four attention matrices.

use super::{Family, Form, common::Common, decoder::List, fields::Fields};
use serde_json::Value;

pub(crate) const FAMILY: Family = Family {
    name: "llama",
    resolve,
};

/// Early files state no rotary base; theirs is this one.
const FIRST_THETA: f64 = 10_000.0;

fn resolve(fields: &mut Fields<'_>) -> Option<Form> {
    let common = Common::read(fields, "LlamaForCausalLM", Some(FIRST_THETA));
    let inner = fields.count("intermediate_size", 1 << 24);
    let mlp_bias = fields.flag_or("mlp_bias", false);
    // The class has no window. A file that sets one was derived from a network that has.
    if let Some(value) = fields.get("sliding_window") {
        fields.wrong(
            "sliding_window",
            "nothing, since this family has none",
            value,
        );
    }
    let (c, inner) = (common?, inner?);
    let mut list = List::new();
    for layer in 0..c.layers {
        list.attention(layer, &c, false);
        list.mlp(layer, c.hidden_size, inner, mlp_bias);
    }
    list.ends(&c);
    let mut architecture = c.architecture("llama");
    architecture.insert("mlp_size".to_owned(), inner.into());
    architecture.insert("mlp_bias".to_owned(), mlp_bias.into());
    architecture.insert("window".to_owned(), Value::Null);
    Some(Form {
        architecture,
        layers: c.layers,
        rows: c.vocabulary,
        tied: c.tied,
        tensors: list.tensors,
        experts: Vec::new(),
    })
}
