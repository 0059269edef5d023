//! Recognising checkpoints that are quantised already, so that they are refused by the scheme's name before anything else.

use crate::problem::Problem;
use serde_json::{Map, Value};

/// Endings of tensor names that only quantised checkpoints have, and whose they are.
const MARKS: &[(&str, &str)] = &[
    (".qweight", "GPTQ or AWQ"),
    (".qzeros", "GPTQ or AWQ"),
    (".g_idx", "GPTQ"),
    (".weight_scale_inv", "FP8 with block scales"),
    (".weight_packed", "compressed-tensors"),
    (".weight_scale_2", "NVFP4"),
    (".weight_scale", "compressed-tensors or FP8"),
    (".input_scale", "FP8 with static activations"),
    (".SCB", "bitsandbytes int8"),
    (".weight.absmax", "bitsandbytes 4-bit"),
    (".weight.quant_map", "bitsandbytes 4-bit"),
    ("_proj_blocks", "MXFP4"),
    ("_proj_scales", "MXFP4"),
    (".scales", "affine groups (MLX)"),
];

/// The scheme that a configuration or tensor names show.
pub(crate) fn scheme<'a>(
    config: &Map<String, Value>,
    names: impl Iterator<Item = &'a str>,
) -> Option<Problem> {
    for key in ["quantization_config", "compression_config", "quantization"] {
        let Some(value) = config.get(key).filter(|v| !v.is_null()) else {
            continue;
        };
        let word = |name: &str| value.get(name).filter(|v| !v.is_null()).map(plain);
        let method = word("quant_method")
            .or_else(|| word("format"))
            .or_else(|| word("mode"));
        let mut scheme = method.unwrap_or_else(|| "unnamed".to_owned());
        for (name, unit) in [
            ("bits", "bits"),
            ("fmt", "format"),
            ("weight_block_size", "blocks"),
            ("group_size", "group"),
        ] {
            if let Some(found) = word(name) {
                scheme.push_str(&format!(", {unit} {found}"));
            }
        }
        return Some(Problem::Quantised {
            scheme,
            evidence: format!("config.json has `{key}`"),
        });
    }
    let (mut found, mut count): (Option<(&str, &str)>, u64) = (None, 0);
    for name in names {
        if let Some((_, scheme)) = MARKS.iter().find(|(end, _)| name.ends_with(end)) {
            found.get_or_insert((name, scheme));
            count += 1;
        }
    }
    found.map(|(name, scheme)| Problem::Quantised {
        scheme: scheme.to_owned(),
        evidence: format!("{count} tensors such as {name}"),
    })
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
