//! Files that travel with the weights, the list of those that don't, and what the tokenizer says about ids.

use crate::{
    note::Note,
    source::{Checkpoint, licence_of_card, purpose},
};
use qpx_format::{
    layout::DraftFile,
    manifest::{Became, Purpose, SourceFile},
    writer::UNKNOWN_SHA256,
};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// What the folder's files come to.
pub(super) struct Attachments {
    pub drafts: Vec<DraftFile>,
    pub files: Vec<SourceFile>,
    pub left_out: Vec<(String, u64)>,
    pub licence: Option<String>,
}

/// Reads the files that travel and lists the others.
pub(super) fn collect(checkpoint: &mut Checkpoint) -> Attachments {
    let mut result = Attachments {
        drafts: Vec::new(),
        files: Vec::new(),
        left_out: Vec::new(),
        licence: None,
    };
    for file in checkpoint.files.clone() {
        let weights = checkpoint
            .shards
            .iter()
            .any(|shard| shard.name == file.name);
        let is_index = checkpoint.index.as_deref() == Some(file.name.as_str());
        let purpose = if is_index {
            Some(Purpose::SourceIndex)
        } else {
            purpose(&file.name)
        };
        let (became, sha256) = if weights {
            (Became::Weights, Some(UNKNOWN_SHA256.to_owned()))
        } else if let Some(purpose) = purpose
            && let Some(content) = checkpoint.read(&file.name)
        {
            if purpose == Purpose::Card && result.licence.is_none() {
                result.licence = licence_of_card(&String::from_utf8_lossy(&content));
            }
            let sha256 = hex(&Sha256::digest(&content));
            result.drafts.push(DraftFile {
                name: file.name.clone(),
                purpose,
                content,
            });
            (Became::Attached, Some(sha256))
        } else {
            result.left_out.push((file.name.clone(), file.bytes));
            (Became::LeftOut, None)
        };
        result.files.push(SourceFile {
            name: file.name,
            size: file.bytes,
            sha256,
            became,
        });
    }
    for shard in &checkpoint.shards {
        result.drafts.push(DraftFile {
            name: format!("source/{}.header", shard.name),
            purpose: Purpose::SourceHeader,
            content: shard.header.clone(),
        });
    }
    for (name, bytes) in &result.left_out {
        checkpoint.notes.push(Note::LeftOut {
            name: name.clone(),
            bytes: *bytes,
        });
    }
    result
}

/// Lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Notes on ids that the model has no rows for, and on a missing chat template.
pub(super) fn check_tokens(
    checkpoint: &Checkpoint,
    architecture: &Map<String, Value>,
    rows: u64,
    notes: &mut Vec<Note>,
) {
    let ends = architecture.get("end_tokens").and_then(Value::as_array);
    for id in ends.into_iter().flatten().filter_map(Value::as_u64) {
        if id >= rows {
            notes.push(Note::EndTokenBeyond { id, rows });
        }
    }
    let json = |name: &str| -> Option<Value> {
        let text = std::fs::read(&checkpoint.file(name)?.path).ok()?;
        serde_json::from_slice(&text).ok()
    };
    if let Some(id) = json("tokenizer.json").as_ref().and_then(largest_id)
        && id >= rows
    {
        notes.push(Note::TokenBeyond { id, rows });
    }
    let template = json("tokenizer_config.json").is_some_and(|c| c.get("chat_template").is_some());
    let file = checkpoint
        .files
        .iter()
        .any(|f| f.name.starts_with("chat_template."));
    if !template && !file {
        notes.push(Note::NoTemplate);
    }
}

/// The largest id that a tokenizer.json gives out.
fn largest_id(tokenizer: &Value) -> Option<u64> {
    let vocabulary = tokenizer.get("model").and_then(|model| model.get("vocab"));
    let of_model = match vocabulary {
        Some(Value::Object(map)) => map.values().filter_map(Value::as_u64).max(),
        Some(Value::Array(list)) => (list.len() as u64).checked_sub(1),
        _ => None,
    };
    let added = tokenizer.get("added_tokens").and_then(Value::as_array);
    let of_added = added
        .into_iter()
        .flatten()
        .filter_map(|token| token.get("id").and_then(Value::as_u64))
        .max();
    of_model.max(of_added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_largest_id_counts_added_tokens() {
        for (tokenizer, expected) in [
            (json!({"model": {"vocab": {"a": 0, "b": 7}}}), Some(7)),
            (
                json!({"model": {"vocab": [["a", 0.0], ["b", 0.0]]}, "added_tokens": [{"id": 5}]}),
                Some(5),
            ),
            (json!({}), None),
        ] {
            assert_eq!(largest_id(&tokenizer), expected, "{tokenizer}");
        }
    }
}
