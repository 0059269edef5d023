//! A plan in figures: what a user sees before anything is written.

use crate::{Request, source::Checkpoint};
use qpx_console::{count, counted, exact};
use qpx_format::{Layout, encoding};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// What a packing comes to.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Model family.
    pub family: String,
    /// The recipe's name.
    pub recipe: String,
    /// Whether the original files can be restored from the bundle.
    pub lossless: bool,
    /// Weights of the model.
    pub parameters: u64,
    /// Weights that a token touches.
    pub active_parameters: u64,
    /// Shards of the checkpoint.
    pub shards: usize,
    /// Tensors of the checkpoint.
    pub source_tensors: u64,
    /// Bytes of the shards.
    pub source_bytes: u64,
    /// Bytes of the bundle.
    pub bundle_bytes: u64,
    /// Bytes that are free where the output goes, if that is known.
    pub free_bytes: Option<u64>,
    /// Stored bits per weight, over all of them.
    pub bits_per_weight: f64,
    /// The same by group and encoding.
    pub groups: Vec<Group>,
    /// Attached files.
    pub attached: Vec<String>,
    /// Files of the folder that don't travel.
    pub left_out: Vec<LeftOut>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Tensors of one kind in one encoding.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// `experts`, `attention`, …
    pub group: String,
    /// The encoding's name.
    pub encoding: String,
    /// How many tensors.
    pub tensors: u64,
    /// Their weights.
    pub weights: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Stored bits per weight; more than the encoding's own where rows are padded.
    pub bits_per_weight: f64,
}

/// A file that does not travel.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// In the order in which groups are printed.
const GROUPS: &[&str] = &[
    "experts",
    "feed-forward",
    "attention",
    "router",
    "norms and biases",
    "embedding",
    "output",
    "kept",
];

fn group_of(role: &str) -> usize {
    let ends = |end: &str| role.ends_with(end);
    match role {
        "embedding" => 5,
        "output" => 6,
        _ if role.starts_with("kept.") => 7,
        _ if ends("norm") || ends(".bias") => 4,
        _ if ends(".router") => 3,
        _ if role.contains(".attention.") => 2,
        _ => 1,
    }
}

impl Summary {
    pub(super) fn new(
        request: &Request,
        family: &str,
        checkpoint: &Checkpoint,
        layout: &Layout,
        left_out: &[(String, u64)],
    ) -> Self {
        let checked = &layout.manifest.checked;
        let mut found: BTreeMap<(usize, &str), (u64, u64, u64)> = BTreeMap::new();
        let mut add = |group: usize, name, tensors: u64, shape: &[u64], bytes: u64| {
            let sum = found.entry((group, name)).or_default();
            let weights = encoding::elements(shape).unwrap_or(0);
            sum.0 += tensors;
            sum.1 += weights * tensors;
            sum.2 += bytes * tensors;
        };
        for tensor in &checked.tensors {
            add(
                group_of(&tensor.role),
                tensor.encoding.as_str(),
                1,
                &tensor.shape,
                tensor.length,
            );
        }
        for row in &checked.experts {
            add(0, row.encoding.as_str(), row.count, &row.shape, row.length);
        }
        let (mut weights, mut bytes) = (0, 0);
        for ((group, _), (_, w, b)) in &found {
            if GROUPS.get(*group) != Some(&"kept") {
                weights += w;
                bytes += b;
            }
        }
        let groups = found
            .into_iter()
            .map(|((group, encoding), (tensors, weights, bytes))| Group {
                group: (*GROUPS.get(group).unwrap_or(&"")).to_owned(),
                encoding: encoding.to_owned(),
                tensors,
                weights,
                bytes,
                bits_per_weight: bits(bytes, weights),
            });
        let mut notes: Vec<_> = checkpoint
            .notes
            .iter()
            .filter(|n| !n.is_left_out())
            .collect();
        notes.dedup();
        Self {
            family: family.to_owned(),
            recipe: request.recipe.name.clone(),
            lossless: request.recipe.is_lossless(),
            parameters: checked.parameters.total,
            active_parameters: checked.parameters.active,
            shards: checkpoint.shards.len(),
            source_tensors: checkpoint
                .shards
                .iter()
                .map(|s| s.entries.len() as u64)
                .sum(),
            source_bytes: checkpoint.shards.iter().map(|s| s.state.bytes).sum(),
            bundle_bytes: layout.content_length,
            free_bytes: request
                .output
                .as_deref()
                .and_then(crate::output::free_bytes),
            bits_per_weight: bits(bytes, weights),
            groups: groups.collect(),
            attached: checked
                .attached
                .iter()
                .filter(|file| !file.name.starts_with("source/"))
                .map(|file| file.name.clone())
                .collect(),
            left_out: left_out
                .iter()
                .map(|(name, bytes)| LeftOut {
                    name: name.clone(),
                    bytes: *bytes,
                })
                .collect(),
            notes: notes.into_iter().map(ToString::to_string).collect(),
        }
    }

    /// The plan for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let line = &mut text;
        // Writing to a String can't fail.
        let _ = writeln!(
            line,
            "{}, {} weights ({} active per token), recipe {}",
            self.family,
            count(self.parameters),
            count(self.active_parameters),
            self.recipe
        );
        let _ = writeln!(
            line,
            "  source  {} in {}, {}",
            exact(self.source_bytes),
            counted(self.shards as u64, "shard"),
            counted(self.source_tensors, "tensor")
        );
        let _ = writeln!(
            line,
            "  bundle  {}, {:.3} bits per weight{}",
            exact(self.bundle_bytes),
            self.bits_per_weight,
            if self.lossless {
                ", the original files can be restored"
            } else {
                ""
            }
        );
        if let Some(free) = self.free_bytes {
            let short = if free < self.bundle_bytes {
                ": too few"
            } else {
                ""
            };
            let _ = writeln!(line, "  free    {}{short}", exact(free));
        }
        let _ = writeln!(
            line,
            "\n  {:<17} {:<9} {:>8} {:>15} {:>15} {:>7}",
            "group", "encoding", "tensors", "weights", "bytes", "bits"
        );
        for group in &self.groups {
            let _ = writeln!(
                line,
                "  {:<17} {:<9} {:>8} {:>15} {:>15} {:>7.3}",
                group.group,
                group.encoding,
                group.tensors,
                group.weights,
                group.bytes,
                group.bits_per_weight
            );
        }
        let _ = writeln!(line, "\n  attached: {}", self.attached.join(", "));
        for file in &self.left_out {
            let _ = writeln!(line, "  left out: {} ({} bytes)", file.name, file.bytes);
        }
        for note in &self.notes {
            let _ = writeln!(line, "  note: {note}");
        }
        text
    }
}

fn bits(bytes: u64, weights: u64) -> f64 {
    if weights == 0 {
        return 0.0;
    }
    bytes as f64 * 8.0 / weights as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_fall_into_groups() {
        for (role, group) in [
            ("layer.0.attention.query", "attention"),
            ("layer.0.attention.query_norm", "norms and biases"),
            ("layer.0.attention.query.bias", "norms and biases"),
            ("layer.0.mlp.norm", "norms and biases"),
            ("layer.0.mlp.down", "feed-forward"),
            ("layer.0.router", "router"),
            ("norm", "norms and biases"),
            ("output", "output"),
            ("kept.model.layers.0.self_attn.rotary_emb.inv_freq", "kept"),
        ] {
            assert_eq!(GROUPS[group_of(role)], group, "{role}");
        }
    }
}
