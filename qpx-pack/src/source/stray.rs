//! Weight files that stand beside the chosen set: leftovers of another save, another format's copy, or a forgotten shard.

use super::{Checkpoint, shard::Shard};
use crate::{note::Note, problem::Problem};
use std::collections::BTreeSet;

/// How a language model's tensor names begin. A stray file with such names, unknown to the set, may be part of the model.
const MODEL_NAMES: &[&str] = &[
    "model.",
    "language_model.",
    "lm_head.",
    "layers.",
    "mtp.",
    "embed_tokens.",
    "base_model.",
];

/// Names under which the same weights are known to be published a second time, in another form.
fn is_known_copy(name: &str) -> bool {
    name == "model.safetensors" || name.starts_with("consolidated")
}

impl Checkpoint {
    /// Reports weight files that are not `used`; refuses those that may hold a part of the model.
    pub(super) fn judge_strays(&mut self, weights: &[String], used: &BTreeSet<String>) {
        let known: BTreeSet<String> = self
            .shards
            .iter()
            .flat_map(|shard| shard.entries.iter().map(|entry| entry.name.clone()))
            .chain(self.unavailable.iter().cloned())
            .collect();
        for name in weights.iter().filter(|name| !used.contains(*name)) {
            let Some(path) = self.file(name).map(|file| file.path.clone()) else {
                continue;
            };
            let why = match Shard::open(&path, name) {
                Err(_) => "no part of the set, and no valid safetensors file".to_owned(),
                Ok(_) if is_known_copy(name) => {
                    "another copy of the weights beside the set that the index names".to_owned()
                }
                Ok(shard) => {
                    let names = shard.entries.iter().map(|entry| &entry.name);
                    let omitted: Vec<_> = names
                        .filter(|name| !known.contains(*name))
                        .filter(|name| MODEL_NAMES.iter().any(|start| name.starts_with(start)))
                        .cloned()
                        .collect();
                    if !omitted.is_empty() {
                        self.problems.push(Problem::Stray {
                            file: name.clone(),
                            tensors: omitted,
                        });
                        continue;
                    }
                    "no part of the set".to_owned()
                }
            };
            self.notes.push(Note::StrayWeights {
                file: name.clone(),
                why,
            });
        }
    }
}
