//! The settings that plain decoders share: sizes, attention heads, rotary positions, sliding windows.
//!
//! A setting that would change the mathematics and that no lane here computes is refused by name.

use super::fields::Fields;
use serde_json::{Map, Value, json};

const MOST_LAYERS: u64 = 1024;
const MOST_ROWS: u64 = 1 << 24;
const WIDEST: u64 = 1 << 20;
const MOST_HEADS: u64 = 1 << 12;

/// Sizes and switches of a plain decoder.
pub(crate) struct Common {
    pub hidden_size: u64,
    pub layers: u64,
    pub vocabulary: u64,
    pub attention_heads: u64,
    pub key_value_heads: u64,
    pub head_dim: u64,
    pub attention_bias: bool,
    pub tied: bool,
    context_length: u64,
    norm_epsilon: f64,
    rope: Value,
    end_tokens: Vec<u64>,
}

impl Common {
    /// Reads them; `class` is what `architectures` must name, `theta` the rotary base of a file that states none.
    pub(crate) fn read(fields: &mut Fields<'_>, class: &str, theta: Option<f64>) -> Option<Self> {
        check_class(fields, class);
        check_foreign(fields);
        check_activation(fields);
        let hidden_size = fields.count("hidden_size", WIDEST);
        let attention_heads = fields.count("num_attention_heads", MOST_HEADS);
        let key_value_heads = fields.count_if("num_key_value_heads", MOST_HEADS);
        let layers = fields.count("num_hidden_layers", MOST_LAYERS);
        let vocabulary = fields.count("vocab_size", MOST_ROWS);
        let context_length = fields.count("max_position_embeddings", 1 << 40);
        let norm_epsilon = fields.positive("rms_norm_eps");
        let rope = rope(fields, theta);
        let attention_bias = fields.flag_or("attention_bias", false);
        let tied = fields.flag_or("tie_word_embeddings", false);
        let end_tokens = fields.end_tokens();
        let stated = fields.count_if("head_dim", WIDEST);
        let (hidden_size, attention_heads) = (hidden_size?, attention_heads?);
        let head_dim = match stated {
            Some(dim) => dim,
            None if hidden_size.is_multiple_of(attention_heads) => hidden_size / attention_heads,
            None => {
                let expected =
                    format!("a multiple of num_attention_heads ({attention_heads}), or a head_dim");
                fields.problem("hidden_size", &expected, hidden_size.to_string());
                return None;
            }
        };
        if !head_dim.is_multiple_of(2) {
            fields.problem(
                "head_dim",
                "an even number, since rotation works on pairs",
                head_dim.to_string(),
            );
        }
        let key_value_heads = key_value_heads.unwrap_or(attention_heads);
        if !attention_heads.is_multiple_of(key_value_heads) {
            let expected = format!("a divisor of num_attention_heads ({attention_heads})");
            fields.problem(
                "num_key_value_heads",
                &expected,
                key_value_heads.to_string(),
            );
        }
        Some(Self {
            hidden_size,
            layers: layers?,
            vocabulary: vocabulary?,
            attention_heads,
            key_value_heads,
            head_dim,
            attention_bias,
            tied,
            context_length: context_length?,
            norm_epsilon: norm_epsilon?,
            rope: rope?,
            end_tokens,
        })
    }

    /// The architecture object of the manifest, as far as it is the same for all plain decoders.
    pub(crate) fn architecture(&self, family: &str) -> Map<String, Value> {
        let value = json!({
            "family": family,
            "hidden_size": self.hidden_size,
            "layers": self.layers,
            "vocabulary": self.vocabulary,
            "context_length": self.context_length,
            "attention_heads": self.attention_heads,
            "key_value_heads": self.key_value_heads,
            "head_dim": self.head_dim,
            "norm_epsilon": self.norm_epsilon,
            "activation": "silu",
            "tied_output": self.tied,
            "rope": self.rope,
            "attention_bias": self.attention_bias,
            "end_tokens": self.end_tokens,
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

fn check_class(fields: &mut Fields<'_>, class: &str) {
    let Some(value) = fields.get("architectures") else {
        return;
    };
    let named = value
        .as_array()
        .is_some_and(|list| list.iter().any(|item| item.as_str() == Some(class)));
    if !named {
        fields.wrong("architectures", &format!("[\"{class}\"]"), value);
    }
}

/// Settings of other networks, each with the number that means "none". Where one is set otherwise, this is not the network that
/// the model_type promises.
const FOREIGN: &[(&str, f64)] = &[
    ("attention_multiplier", f64::NAN),
    ("attn_logit_softcapping", 0.0),
    ("clip_qkv", f64::NAN),
    ("dim_model_base", f64::NAN),
    ("embedding_multiplier", 1.0),
    ("final_logit_softcapping", 0.0),
    ("full_attention_interval", 1.0),
    ("kv_lora_rank", f64::NAN),
    ("linear_num_key_heads", 0.0),
    ("logit_scale", 1.0),
    ("logits_scaling", 1.0),
    ("n_group", 1.0),
    ("n_shared_experts", 0.0),
    ("no_rope_layers", f64::NAN),
    ("q_lora_rank", f64::NAN),
    ("qk_layernorm", f64::NAN),
    ("query_pre_attn_scalar", f64::NAN),
    ("residual_multiplier", 1.0),
    ("routed_scaling_factor", 1.0),
    ("scale_depth", f64::NAN),
    ("scale_emb", 1.0),
    ("scoring_func", f64::NAN),
    ("shared_expert_intermediate_size", 0.0),
    ("text_config", f64::NAN),
    ("topk_group", 1.0),
    ("use_qk_norm", f64::NAN),
];

fn check_foreign(fields: &mut Fields<'_>) {
    for (key, none) in FOREIGN {
        let Some(value) = fields.get(key) else {
            continue;
        };
        let neutral = matches!(value, Value::Bool(false)) || value.as_f64() == Some(*none);
        if !neutral {
            fields.wrong(key, "nothing, since this family has no such setting", value);
        }
    }
    let rotated = fields.get("partial_rotary_factor");
    if let Some(value) = rotated.filter(|v| v.as_f64() != Some(1.0)) {
        fields.wrong("partial_rotary_factor", "1", value);
    }
}

fn check_activation(fields: &mut Fields<'_>) {
    match fields.get("hidden_act") {
        Some(value) if !matches!(value.as_str(), Some("silu" | "swish")) => {
            fields.wrong("hidden_act", "\"silu\"", value);
        }
        Some(_) => {}
        None => fields.problem("hidden_act", "\"silu\"", "nothing".to_owned()),
    }
}

/// Rotary positions, from `rope_parameters` (new) or `rope_theta` with `rope_scaling` (old).
fn rope(fields: &mut Fields<'_>, default_theta: Option<f64>) -> Option<Value> {
    let outer = match fields.get("rope_theta") {
        Some(_) => Some(fields.positive("rope_theta")?),
        None => None,
    };
    let (new, old) = (fields.get("rope_parameters"), fields.get("rope_scaling"));
    let key = match (new, old) {
        (Some(new), Some(old)) if new != old => {
            fields.wrong(
                "rope_scaling",
                "the same as rope_parameters, or nothing",
                old,
            );
            return None;
        }
        (Some(_), _) => "rope_parameters",
        (None, Some(_)) => "rope_scaling",
        (None, None) => {
            let theta = theta(fields, outer, None, default_theta)?;
            return Some(json!({"kind": "default", "theta": theta}));
        }
    };
    let mut inner = fields.nested(key)?;
    let scaling = scaling(&mut inner);
    fields.absorb(inner);
    let (inner_theta, mut scaling) = scaling?;
    let theta = theta(fields, outer, inner_theta, default_theta)?;
    scaling.insert("theta".to_owned(), json!(theta));
    Some(Value::Object(scaling))
}

fn theta(
    fields: &mut Fields<'_>,
    outer: Option<f64>,
    inner: Option<f64>,
    default: Option<f64>,
) -> Option<f64> {
    match (outer, inner) {
        (Some(outer), Some(inner)) if outer != inner => {
            let expected = format!("{inner}, as in rope_parameters");
            fields.problem("rope_theta", &expected, outer.to_string());
            None
        }
        (Some(theta), _) | (None, Some(theta)) => Some(theta),
        (None, None) => {
            if default.is_none() {
                fields.problem("rope_theta", "a positive number", "nothing".to_owned());
            }
            default
        }
    }
}

/// The base (if stated here) and the kind of scaling with its numbers.
fn scaling(inner: &mut Fields<'_>) -> Option<(Option<f64>, Map<String, Value>)> {
    let kinds = [inner.get("rope_type"), inner.get("type")];
    let kind = match kinds {
        [Some(new), Some(old)] if new != old => {
            inner.wrong("type", "the same as rope_type, or nothing", old);
            return None;
        }
        [Some(kind), _] | [None, Some(kind)] => kind,
        [None, None] => {
            inner.problem(
                "rope_type",
                "\"default\" or \"llama3\"",
                "nothing".to_owned(),
            );
            return None;
        }
    };
    let numbers: &[(&str, &str)] = match kind.as_str() {
        Some("default") => &[],
        Some("llama3") => &[
            ("factor", "factor"),
            ("low_freq_factor", "low_frequency"),
            ("high_freq_factor", "high_frequency"),
        ],
        _ => {
            inner.wrong("rope_type", "\"default\" or \"llama3\"", kind);
            return None;
        }
    };
    let mut map = Map::new();
    map.insert("kind".to_owned(), kind.clone());
    map.insert("theta".to_owned(), Value::Null);
    let mut known = vec!["rope_type", "type", "rope_theta", "partial_rotary_factor"];
    let mut whole = true;
    for (vendor, ours) in numbers {
        known.push(vendor);
        match inner.positive(vendor) {
            Some(number) => {
                map.insert((*ours).to_owned(), json!(number));
            }
            None => whole = false,
        }
    }
    if !numbers.is_empty() {
        let vendor = "original_max_position_embeddings";
        known.push(vendor);
        match inner.count(vendor, 1 << 40) {
            Some(number) => {
                map.insert("original_context".to_owned(), json!(number));
            }
            None => whole = false,
        }
        if let (Some(low), Some(high)) = (map.get("low_frequency"), map.get("high_frequency"))
            && low.as_f64() >= high.as_f64()
        {
            inner.problem(
                "high_freq_factor",
                &format!("more than low_freq_factor ({low})"),
                high.to_string(),
            );
            whole = false;
        }
    }
    let unknown: Vec<_> = inner
        .keys()
        .filter(|k| !known.contains(&k.as_str()))
        .cloned()
        .collect();
    for key in unknown {
        let value = inner.get(&key).cloned().unwrap_or_default();
        inner.wrong(
            &key,
            "nothing, since this kind of rotation has no such setting",
            &value,
        );
        whole = false;
    }
    if let Some(value) = inner
        .get("partial_rotary_factor")
        .filter(|v| v.as_f64() != Some(1.0))
    {
        inner.wrong("partial_rotary_factor", "1", value);
        whole = false;
    }
    let theta = match inner.get("rope_theta") {
        Some(_) => Some(inner.positive("rope_theta")?),
        None => None,
    };
    whole.then_some((theta, map))
}

/// The sliding window of a family that knows one: its length, or null when no layer uses it.
///
/// `first_sliding` is the first layer that slides where `layer_types` doesn't say; a mixture of kinds is refused.
pub(crate) fn window(fields: &mut Fields<'_>, layers: u64, first_sliding: u64) -> Option<Value> {
    let on = fields.flag_or("use_sliding_window", false);
    let length = fields.count_if("sliding_window", 1 << 40);
    let sliding: Vec<bool> = match fields.get("layer_types") {
        Some(value) => {
            let kinds = value.as_array().map(|list| {
                list.iter()
                    .map(|kind| match kind.as_str() {
                        Some("full_attention") => Some(false),
                        Some("sliding_attention") => Some(true),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
            });
            match kinds.flatten() {
                Some(kinds) if kinds.len() as u64 == layers => kinds,
                _ => {
                    let expected =
                        format!("{layers} times \"full_attention\" or \"sliding_attention\"");
                    fields.wrong("layer_types", &expected, value);
                    return None;
                }
            }
        }
        None => (0..layers)
            .map(|layer| on && length.is_some() && layer >= first_sliding)
            .collect(),
    };
    let count = sliding.iter().filter(|s| **s).count() as u64;
    match (count, length) {
        (0, _) => Some(Value::Null),
        (n, Some(length)) if n == layers => Some(json!(length)),
        (_, None) => {
            fields.problem(
                "sliding_window",
                "a whole number, since layers slide",
                "nothing".to_owned(),
            );
            None
        }
        (n, Some(_)) => {
            let found = format!("{n} of {layers} sliding");
            fields.problem(
                "layer_types",
                "all layers of one kind (a mixture is not supported yet)",
                found,
            );
            None
        }
    }
}
