//! qwen3_moe: Qwen3's mixture-of-experts models (Qwen3-30B-A3B, Qwen3-Coder), class `Qwen3MoeForCausalLM`.
//!
//! Source: the published configuration class and checkpoints. Attention as in qwen3, but a window, if used, holds for all
//! layers. A layer is dense when `mlp_only_layers` lists it or its number plus one is no multiple of `decoder_sparse_step`.

use super::{
    ExpertGroup, Family, Form,
    common::{self, Common},
    decoder::List,
    fields::Fields,
};

pub(crate) const FAMILY: Family = Family {
    name: "qwen3_moe",
    resolve,
};

fn resolve(fields: &mut Fields<'_>) -> Option<Form> {
    let common = Common::read(fields, "Qwen3MoeForCausalLM", None);
    let experts = fields.count("num_experts", 1 << 14);
    let chosen = fields.count("num_experts_per_tok", 1 << 14);
    let inner = fields.count("moe_intermediate_size", 1 << 24);
    let normalise = fields.flag_or("norm_topk_prob", false);
    let step = match fields.get("decoder_sparse_step") {
        Some(_) => fields.count("decoder_sparse_step", 1 << 20),
        None => Some(1),
    };
    let listed = fields.numbers("mlp_only_layers");
    let layers = common.as_ref().map_or(0, |c| c.layers);
    let window = common::window(fields, layers, 0);
    let step = step?;
    let dense: Vec<u64> = (0..layers)
        .filter(|layer| listed.contains(layer) || !(layer + 1).is_multiple_of(step))
        .collect();
    // Files without dense layers state this size all the same; it is nobody's then.
    let dense_inner = if dense.is_empty() {
        fields.count_if("intermediate_size", 1 << 24).or(Some(1))
    } else {
        fields.count("intermediate_size", 1 << 24)
    };
    let (c, experts, chosen) = (common?, experts?, chosen?);
    let (inner, dense_inner, window) = (inner?, dense_inner?, window?);
    if chosen > experts {
        fields.problem(
            "num_experts_per_tok",
            &format!("at most num_experts ({experts})"),
            chosen.to_string(),
        );
    }
    let mut list = List::new();
    let mut groups = Vec::new();
    for layer in 0..c.layers {
        list.attention(layer, &c, true);
        if dense.contains(&layer) {
            list.mlp(layer, c.hidden_size, dense_inner, false);
        } else {
            list.layer(
                layer,
                "mlp.gate.weight",
                "router",
                &[experts, c.hidden_size],
            );
            groups.push(ExpertGroup {
                layer,
                count: experts,
                prefix: format!("model.layers.{layer}.mlp.experts."),
                inner,
                hidden: c.hidden_size,
            });
        }
    }
    list.ends(&c);
    let mut architecture = c.architecture("qwen3_moe");
    architecture.insert("experts".to_owned(), experts.into());
    architecture.insert("experts_per_token".to_owned(), chosen.into());
    architecture.insert("expert_size".to_owned(), inner.into());
    architecture.insert("normalise_weights".to_owned(), normalise.into());
    architecture.insert("dense_layers".to_owned(), dense.into());
    architecture.insert("mlp_size".to_owned(), dense_inner.into());
    architecture.insert("window".to_owned(), window);
    Some(Form {
        architecture,
        layers: c.layers,
        rows: c.vocabulary,
        tied: c.tied,
        tensors: list.tensors,
        experts: groups,
    })
}
