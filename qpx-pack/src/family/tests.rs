//! Configurations: what is resolved, what is refused, and what comes of names and forms that differ.

use super::{map::Mapping, *};
use crate::source::{Checkpoint, Shard, dtype::Dtype, header::Entry, shard::State};
use serde_json::json;

fn config(change: Value) -> Map<String, Value> {
    let base = json!({
        "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 10, "hidden_act": "silu",
        "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "rope_theta": 1e6, "num_experts": 2, "num_experts_per_tok": 1,
        "moe_intermediate_size": 6, "intermediate_size": 12, "norm_topk_prob": true, "eos_token_id": 3
    });
    let (Value::Object(mut map), Value::Object(change)) = (base, change) else {
        unreachable!()
    };
    map.extend(change);
    map
}

fn resolved(change: Value) -> Result<Map<String, Value>, String> {
    let mut problems = Vec::new();
    match resolve(&config(change), None, &mut problems) {
        Some((_, form)) => Ok(form.architecture),
        None => Err(problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")),
    }
}

#[test]
fn settings_are_resolved() {
    let generation = json!({"eos_token_id": [5, 3]});
    let mut problems = Vec::new();
    let found = resolve(&config(json!({})), generation.as_object(), &mut problems)
        .unwrap()
        .1
        .architecture;
    assert_eq!(
        Value::Object(found),
        json!({
            "family": "qwen3_moe", "hidden_size": 8, "layers": 2, "vocabulary": 10, "context_length": 64, "attention_heads": 2,
            "key_value_heads": 1, "head_dim": 4, "norm_epsilon": 1e-6, "activation": "silu", "tied_output": false,
            "rope": {"kind": "default", "theta": 1e6}, "attention_bias": false, "end_tokens": [3, 5], "experts": 2,
            "experts_per_token": 1, "expert_size": 6, "normalise_weights": true, "dense_layers": [], "mlp_size": 12, "window": null
        })
    );
}

#[test]
fn forms_of_the_same_setting_agree() {
    for (change, key, expected) in [
        (json!({"head_dim": null}), "head_dim", json!(4)),
        (
            json!({"num_key_value_heads": null}),
            "key_value_heads",
            json!(2),
        ),
        (json!({"mlp_only_layers": [1]}), "dense_layers", json!([1])),
        (
            json!({"decoder_sparse_step": 2}),
            "dense_layers",
            json!([0]),
        ),
        (
            json!({"rope_theta": null, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
            "rope",
            json!({"kind": "default", "theta": 5e5}),
        ),
        (
            json!({"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}}),
            "rope",
            json!({"kind": "llama3", "theta": 1e6, "factor": 8.0, "low_frequency": 1.0, "high_frequency": 4.0, "original_context": 32}),
        ),
        (
            json!({"use_sliding_window": false, "sliding_window": 32}),
            "window",
            json!(null),
        ),
        (
            json!({"use_sliding_window": true, "sliding_window": 32}),
            "window",
            json!(32),
        ),
        (
            json!({"layer_types": ["full_attention", "full_attention"]}),
            "window",
            json!(null),
        ),
        (
            json!({"tie_word_embeddings": true}),
            "tied_output",
            json!(true),
        ),
        (json!({"eos_token_id": null}), "end_tokens", json!([])),
        (json!({"hidden_act": "swish"}), "activation", json!("silu")),
        (
            json!({"attn_logit_softcapping": null, "n_shared_experts": 0}),
            "window",
            json!(null),
        ),
    ] {
        let found = resolved(change.clone()).unwrap_or_else(|e| panic!("{change}: {e}"));
        assert_eq!(found[key], expected, "{change}");
    }
}

#[test]
fn settings_that_change_the_mathematics_are_refused_by_name() {
    for (change, words) in [
        (
            json!({"hidden_act": "gelu"}),
            "config.json: hidden_act: expected \"silu\", found \"gelu\"",
        ),
        (
            json!({"rope_scaling": {"type": "yarn", "factor": 4}}),
            "rope_scaling: rope_type: expected \"default\" or \"llama3\", found \"yarn\"",
        ),
        (
            json!({"rope_scaling": {"factor": 4}}),
            "rope_type: expected \"default\" or \"llama3\", found nothing",
        ),
        (
            json!({"rope_scaling": {"type": "default", "mrope_section": [1]}}),
            "mrope_section: expected nothing",
        ),
        (
            json!({"rope_scaling": {"type": "llama3", "factor": 8}}),
            "low_freq_factor: expected a positive number, found nothing",
        ),
        (
            json!({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
            "rope_theta: expected 500000, as in rope_parameters, found 1000000",
        ),
        (
            json!({"rope_theta": null}),
            "rope_theta: expected a positive number, found nothing",
        ),
        (
            json!({"partial_rotary_factor": 0.5}),
            "partial_rotary_factor: expected 1, found 0.5",
        ),
        (
            json!({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4}),
            "all layers of one kind",
        ),
        (
            json!({"layer_types": ["full_attention"]}),
            "layer_types: expected 2 times",
        ),
        (
            json!({"layer_types": ["full_attention", "linear_attention"]}),
            "layer_types: expected 2 times",
        ),
        (
            json!({"final_logit_softcapping": 30.0}),
            "final_logit_softcapping: expected nothing",
        ),
        (
            json!({"residual_multiplier": 0.22}),
            "residual_multiplier: expected nothing",
        ),
        (
            json!({"n_shared_experts": 1}),
            "n_shared_experts: expected nothing",
        ),
        (
            json!({"architectures": ["Qwen3MoeForSequenceClassification"]}),
            "architectures: expected [\"Qwen3MoeForCausalLM\"]",
        ),
        (
            json!({"hidden_size": "8"}),
            "hidden_size: expected a whole number from 1 to 1048576, found \"8\"",
        ),
        (
            json!({"num_hidden_layers": 1e9}),
            "num_hidden_layers: expected a whole number from 1 to 1024",
        ),
        (
            json!({"num_hidden_layers": null}),
            "num_hidden_layers: expected a whole number from 1 to 1024, found nothing",
        ),
        (
            json!({"num_attention_heads": 3, "head_dim": null}),
            "a multiple of num_attention_heads (3)",
        ),
        (
            json!({"num_attention_heads": 4, "num_key_value_heads": 3}),
            "a divisor of num_attention_heads (4), found 3",
        ),
        (json!({"head_dim": 5}), "head_dim: expected an even number"),
        (
            json!({"num_experts_per_tok": 3}),
            "at most num_experts (2), found 3",
        ),
        (
            json!({"eos_token_id": "x"}),
            "eos_token_id: expected an id or a list of ids",
        ),
        (
            json!({"norm_topk_prob": 1}),
            "norm_topk_prob: expected true or false, found 1",
        ),
        (
            json!({"rms_norm_eps": -1}),
            "rms_norm_eps: expected a positive number, found -1",
        ),
        (
            json!({"model_type": "mamba"}),
            "the model_type `mamba` is unknown (known: llama, qwen3, qwen3_moe)",
        ),
        (
            json!({"model_type": null}),
            "config.json has no model_type (known:",
        ),
        (
            json!({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "sliding_window": 4096}),
            "sliding_window: expected nothing, since this family has none",
        ),
    ] {
        let error = resolved(change.clone()).expect_err(&change.to_string());
        assert!(error.contains(words), "{change}: `{error}` lacks `{words}`");
    }
    let error =
        resolved(json!({"hidden_act": "gelu", "rms_norm_eps": 0, "num_experts": 0})).unwrap_err();
    assert_eq!(error.split("; ").count(), 3, "all at once: {error}");
}

#[test]
fn quantised_checkpoints_are_refused_by_their_scheme() {
    for (change, names, words) in [
        (
            json!({"quantization_config": {"quant_method": "gptq", "bits": 4}}),
            vec![],
            "gptq, bits 4 (config.json has `quantization_config`)",
        ),
        (
            json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}),
            vec![],
            "fp8, blocks [128,128]",
        ),
        (
            json!({"quantization": {"bits": 4, "group_size": 64}}),
            vec![],
            "unnamed, bits 4, group 64",
        ),
        (
            json!({}),
            vec!["model.layers.0.mlp.up_proj.qweight"],
            "GPTQ or AWQ (1 tensors such as model.layers.0.mlp.up_proj.qweight)",
        ),
        (
            json!({}),
            vec!["a.weight_scale_inv"],
            "FP8 with block scales",
        ),
        (json!({}), vec!["a.SCB"], "bitsandbytes int8"),
        (
            json!({}),
            vec!["model.layers.0.mlp.experts.gate_up_proj_blocks"],
            "MXFP4",
        ),
    ] {
        let found = scheme(&config(change.clone()), names.iter().copied())
            .expect("a scheme")
            .to_string();
        assert!(found.contains(words), "{change}: `{found}` lacks `{words}`");
    }
    assert!(
        scheme(
            &config(json!({"quantization_config": null})),
            ["a.weight"].into_iter()
        )
        .is_none()
    );
}

type Tensors = Vec<(String, &'static str, Vec<u64>)>;

/// The tensors that the base configuration asks for.
fn tensors() -> Tensors {
    let mut all: Tensors = Vec::new();
    let mut add = |name: String, shape: &[u64]| all.push((name, "BF16", shape.to_vec()));
    for layer in 0..2 {
        let at = |name: &str| format!("model.layers.{layer}.{name}.weight");
        add(at("input_layernorm"), &[8]);
        add(at("post_attention_layernorm"), &[8]);
        add(at("self_attn.q_proj"), &[8, 8]);
        add(at("self_attn.k_proj"), &[4, 8]);
        add(at("self_attn.v_proj"), &[4, 8]);
        add(at("self_attn.o_proj"), &[8, 8]);
        add(at("self_attn.q_norm"), &[4]);
        add(at("self_attn.k_norm"), &[4]);
        add(at("mlp.gate"), &[2, 8]);
        for expert in 0..2 {
            add(at(&format!("mlp.experts.{expert}.gate_proj")), &[6, 8]);
            add(at(&format!("mlp.experts.{expert}.up_proj")), &[6, 8]);
            add(at(&format!("mlp.experts.{expert}.down_proj")), &[8, 6]);
        }
    }
    add("model.embed_tokens.weight".into(), &[10, 8]);
    add("model.norm.weight".into(), &[8]);
    add("lm_head.weight".into(), &[10, 8]);
    all
}

/// Maps tensors spread over three shards.
fn mapped(change: Value, tensors: &Tensors, metadata: &[(&str, &str)]) -> (Mapping, String) {
    let mut shards: Vec<Shard> = (0..3)
        .map(|n| Shard {
            name: format!("s{n}"),
            path: "".into(),
            state: State::default(),
            header: Vec::new(),
            entries: Vec::new(),
            metadata: metadata
                .iter()
                .map(|(a, b)| (a.to_string(), b.to_string()))
                .collect(),
            unaligned: 0,
        })
        .collect();
    for (n, (name, dtype, shape)) in tensors.iter().enumerate() {
        let dtype = Dtype::by_name(dtype).unwrap();
        let length = dtype.bytes(shape.iter().product()).unwrap();
        shards[n % 3].entries.push(Entry {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
            offset: 1000 * n as u64,
            length,
        });
    }
    let checkpoint = Checkpoint {
        shards,
        ..Checkpoint::default()
    };
    let (mut notes, mut problems) = (Vec::new(), Vec::new());
    let (family, form) = resolve(&config(change), None, &mut problems).unwrap();
    let mapping = map::map(family, &form, &checkpoint, &mut notes, &mut problems);
    let told: Vec<_> = problems
        .iter()
        .map(ToString::to_string)
        .chain(notes.iter().map(|n| format!("note: {n}")))
        .collect();
    (mapping, told.join("; "))
}

#[test]
fn a_whole_model_is_found_in_execution_order() {
    let (mapping, told) = mapped(json!({}), &tensors(), &[]);
    assert_eq!(told, "");
    let roles: Vec<_> = mapping.tensors.iter().map(|t| t.role.as_str()).collect();
    assert_eq!(
        roles[..9],
        [
            "layer.0.attention.norm",
            "layer.0.attention.query",
            "layer.0.attention.key",
            "layer.0.attention.value",
            "layer.0.attention.query_norm",
            "layer.0.attention.key_norm",
            "layer.0.attention.output",
            "layer.0.mlp.norm",
            "layer.0.router"
        ]
    );
    assert_eq!(roles[18..], ["norm", "embedding", "output"]);
    assert_eq!(mapping.experts.len(), 2);
    assert_eq!(
        mapping.experts[1].parts[2].source.name,
        "model.layers.1.mlp.experts.{expert}.down_proj.weight"
    );
}

#[test]
fn fused_experts_are_taken_apart_layer_by_layer() {
    let mut list = tensors();
    list.retain(|(name, ..)| !name.starts_with("model.layers.1.mlp.experts."));
    list.push((
        "model.layers.1.mlp.experts.gate_up_proj".into(),
        "BF16",
        vec![2, 12, 8],
    ));
    list.push((
        "model.layers.1.mlp.experts.down_proj".into(),
        "BF16",
        vec![2, 8, 6],
    ));
    let (mapping, told) = mapped(json!({}), &list, &[]);
    assert_eq!(told, "");
    let [gate, up, down] = mapping.experts[1].parts.as_slice() else {
        panic!()
    };
    let ranges = |part: &map::MappedPart| {
        part.ranges
            .iter()
            .map(|r| (r.offset % 1000, r.length))
            .collect::<Vec<_>>()
    };
    // Two experts of 12 × 8 values of two bytes: gate first, then up.
    assert_eq!(ranges(gate), [(0, 96), (192, 96)]);
    assert_eq!(ranges(up), [(96, 96), (288, 96)]);
    assert_eq!(ranges(down), [(0, 96), (96, 96)]);
    assert_eq!((up.source.start, up.source.stride), (96, 192));
    assert_eq!(mapping.experts[0].parts[0].source.stride, 0);
}

#[test]
fn whatever_does_not_fit_is_told() {
    let without = |gone: &str| {
        let mut list = tensors();
        list.retain(|(name, ..)| !name.contains(gone));
        list
    };
    let with = |name: &str, dtype, shape: &[u64]| {
        let mut list = tensors();
        list.push((name.into(), dtype, shape.to_vec()));
        list
    };
    let swap = |name: &str, dtype, shape: &[u64]| {
        let mut list = without(name);
        list.push((name.into(), dtype, shape.to_vec()));
        list
    };
    let bare = || {
        tensors()
            .into_iter()
            .map(|(n, d, s)| (n.replace("model.", ""), d, s))
            .collect::<Tensors>()
    };
    let deep = || {
        tensors()
            .into_iter()
            .map(|(n, d, s)| (n.replace("model.", "base_model.model.model."), d, s))
            .collect::<Tensors>()
    };
    let tied = json!({"tie_word_embeddings": true});
    for (change, list, words) in [
        (
            json!({}),
            without("layers.1.self_attn.q_norm"),
            "1 tensor is missing: model.layers.1.self_attn.q_norm.weight",
        ),
        (
            json!({}),
            without("lm_head"),
            "1 tensor is missing: lm_head.weight",
        ),
        (
            json!({}),
            without("experts.1.up_proj"),
            "2 tensors are missing: model.layers.0.mlp.experts.1.up_proj.weight",
        ),
        (
            json!({}),
            with("model.layers.0.mlp.extra.weight", "BF16", &[1]),
            "1 tensor without a place in the family qwen3_moe: model.layers.0.mlp.extra.weight",
        ),
        (
            json!({}),
            with("model.layers.2.input_layernorm.weight", "BF16", &[8]),
            "says 2 layers, but the shards hold 1 tensor of later ones",
        ),
        (
            json!({}),
            with(
                "model.layers.0.mlp.experts.2.up_proj.weight",
                "BF16",
                &[6, 8],
            ),
            "says 2 experts, but the shards hold 1 tensor of later ones",
        ),
        (
            json!({}),
            swap("model.norm.weight", "BF16", &[9]),
            "model.norm.weight has the shape [9] in s2, config.json asks for [8]",
        ),
        (
            json!({"vocab_size": 9}),
            tensors(),
            "model.embed_tokens.weight has the shape [10, 8]",
        ),
        (
            json!({"moe_intermediate_size": 7}),
            tensors(),
            "model.layers.0.mlp.experts.0.gate_proj.weight has the shape [6, 8] in s0, config.json asks for [7, 8]; the same for 3 more of its kind",
        ),
        (
            json!({}),
            swap("model.norm.weight", "F8_E4M3", &[8]),
            "model.norm.weight is stored as F8_E4M3",
        ),
        (
            json!({}),
            swap(
                "model.layers.0.mlp.experts.1.up_proj.weight",
                "F32",
                &[6, 8],
            ),
            "differ in dtype: expert 0 has BF16",
        ),
        (
            json!({}),
            with("model.layers.0.mlp.experts.down_proj", "BF16", &[2, 8, 6]),
            "layer 0 has its experts twice",
        ),
        (
            json!({}),
            with("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", &[2]),
            "note: kept unused: 1 tensor",
        ),
        (
            json!({}),
            bare(),
            "note: tensor names begin with `` instead of `model.`",
        ),
        (
            json!({}),
            deep(),
            "tensor names begin with `base_model.model.model.` where `model.` is expected",
        ),
        (tied.clone(), without("lm_head"), ""),
        (tied, tensors(), ""),
    ] {
        let (_, told) = mapped(change.clone(), &list, &[]);
        assert!(
            told.contains(words) && (told.is_empty() == words.is_empty()),
            "{change}: `{told}` lacks `{words}`"
        );
    }
}

#[test]
fn deduplicated_tensors_are_found_through_the_metadata() {
    let mut list = tensors();
    list.retain(|(name, ..)| name != "lm_head.weight");
    let (mapping, told) = mapped(
        json!({}),
        &list,
        &[("lm_head.weight", "model.embed_tokens.weight")],
    );
    assert!(
        mapping.tied && told.contains("lm_head.weight has no data of its own"),
        "{told}"
    );
    assert_eq!(mapping.aliases[0].of, "embedding");

    let mut list = tensors();
    list.retain(|(name, ..)| name != "model.embed_tokens.weight");
    let (mapping, _) = mapped(
        json!({}),
        &list,
        &[("model.embed_tokens.weight", "lm_head.weight")],
    );
    let embedding = mapping
        .tensors
        .iter()
        .find(|t| t.role == "embedding")
        .unwrap();
    assert_eq!(embedding.name, "lm_head.weight");
    assert!(mapping.tensors.iter().all(|t| t.role != "output"));
}

#[test]
fn many_names_are_told_by_kind() {
    let mut list = tensors();
    for n in 0..40 {
        list.push((
            format!("model.layers.0.mlp.experts.{n}.odd"),
            "BF16",
            vec![1],
        ));
    }
    let (_, told) = mapped(json!({"num_experts": 2}), &list, &[]);
    assert!(
        told.contains(
            "model.layers.*.mlp.experts.*.odd (38, such as model.layers.0.mlp.experts.10.odd)"
        ),
        "{told}"
    );
}
