//! qwen3: the dense Qwen3 models, class `Qwen3ForCausalLM`.
//!
//! Source: the published configuration class and checkpoints. Queries and keys are normed per head before rotation; a bias
//! exists only where `attention_bias` says so. Layers from `max_window_layers` on slide if `use_sliding_window` is set.

use super::{
    Family, Form,
    common::{self, Common},
    decoder::List,
    fields::Fields,
};

pub(crate) const FAMILY: Family = Family {
    name: "qwen3",
    resolve,
};

fn resolve(fields: &mut Fields<'_>) -> Option<Form> {
    let common = Common::read(fields, "Qwen3ForCausalLM", None);
    let inner = fields.count("intermediate_size", 1 << 24);
    let layers = common.as_ref().map_or(0, |c| c.layers);
    // The class's default is 28, whatever the number of layers; files that slide state it.
    let first_sliding = match fields.get("max_window_layers") {
        Some(value) => value.as_u64().unwrap_or_else(|| {
            fields.wrong("max_window_layers", "a whole number", value);
            0
        }),
        None => 28,
    };
    let window = common::window(fields, layers, first_sliding);
    let (c, inner, window) = (common?, inner?, window?);
    let mut list = List::new();
    for layer in 0..c.layers {
        list.attention(layer, &c, true);
        list.mlp(layer, c.hidden_size, inner, false);
    }
    list.ends(&c);
    let mut architecture = c.architecture("qwen3");
    architecture.insert("mlp_size".to_owned(), inner.into());
    architecture.insert("window".to_owned(), window);
    Some(Form {
        architecture,
        layers: c.layers,
        rows: c.vocabulary,
        tied: c.tied,
        tensors: list.tensors,
        experts: Vec::new(),
    })
}
