//! The weight index of a checkpoint in several shards: which tensor is in which file.

use super::json;
use crate::problem::Problem;
use serde_json::Value;
use std::collections::BTreeMap;

/// An index that has the form of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// The index file's own name.
    pub name: String,
    /// Tensor → shard.
    pub places: BTreeMap<String, String>,
    /// The size that it states.
    pub total_bytes: Option<u64>,
}

/// Parses the index called `name`.
pub(crate) fn parse(name: &str, text: &[u8]) -> Result<Index, Problem> {
    let wrong = |reason: String| Problem::Index {
        file: name.to_owned(),
        reason,
    };
    let value = json::parse(text).map_err(|reason| Problem::Json {
        file: name.to_owned(),
        reason,
    })?;
    let Some(Value::Object(map)) = value.get("weight_map") else {
        return Err(wrong("it has no object `weight_map`".to_owned()));
    };
    if map.is_empty() {
        return Err(wrong("its `weight_map` is empty".to_owned()));
    }
    let mut places = BTreeMap::new();
    for (tensor, shard) in map {
        let Some(shard) = shard.as_str() else {
            return Err(wrong(format!("the place of {tensor} is no file name")));
        };
        let plain = !shard.is_empty()
            && !shard.contains(['\\', '\0', ':'])
            && shard
                .split('/')
                .all(|part| !matches!(part, "" | "." | ".."));
        if !plain {
            return Err(wrong(format!(
                "{tensor} is placed in {shard:?}, which is no file of the folder"
            )));
        }
        places.insert(tensor.clone(), shard.to_owned());
    }
    let total = value.get("metadata").and_then(|m| m.get("total_size"));
    let total_bytes = total.and_then(|t| match t {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    Ok(Index {
        name: name.to_owned(),
        places,
        total_bytes,
    })
}
