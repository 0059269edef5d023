//! Model families: what config.json means, which tensors it asks for, and what each is for.
//!
//! Only this module knows what vendors call things. A family is one file and one line in [`FAMILIES`]; it names settings and
//! tensors, and does no arithmetic on weights. How experts are stored is found out per group of tensors, never by family.

mod common;
mod decoder;
mod fields;
mod llama;
pub(crate) mod map;
mod quantised;
mod qwen3;
mod qwen3_moe;

use crate::problem::Problem;
use fields::Fields;
use qpx_format::manifest::SegmentKind;
use serde_json::{Map, Value};

/// A family: its `model_type` and how its configuration is read.
pub(crate) struct Family {
    pub name: &'static str,
    resolve: fn(&mut Fields<'_>) -> Option<Form>,
}

/// Every family that can be packed.
pub(crate) const FAMILIES: &[Family] = &[llama::FAMILY, qwen3::FAMILY, qwen3_moe::FAMILY];

/// What a configuration asks for.
#[derive(Debug)]
pub(crate) struct Form {
    /// The lane's configuration.
    pub architecture: Map<String, Value>,
    /// How many layers.
    pub layers: u64,
    /// Rows of the embedding.
    pub rows: u64,
    /// Whether the output layer is the embedding.
    pub tied: bool,
    /// Tensors outside experts, in execution order.
    pub tensors: Vec<Expected>,
    /// Groups of experts, by layer.
    pub experts: Vec<ExpertGroup>,
}

/// A tensor that must be there.
#[derive(Debug)]
pub(crate) struct Expected {
    pub name: String,
    pub role: String,
    pub shape: Vec<u64>,
    pub segment: SegmentKind,
}

/// The experts of one layer.
#[derive(Debug)]
pub(crate) struct ExpertGroup {
    pub layer: u64,
    pub count: u64,
    /// What their names begin with.
    pub prefix: String,
    pub inner: u64,
    pub hidden: u64,
}

/// Resolves a configuration; what is wrong with it goes to `problems`.
pub(crate) fn resolve(
    config: &Map<String, Value>,
    generation: Option<&Map<String, Value>>,
    problems: &mut Vec<Problem>,
) -> Option<(&'static Family, Form)> {
    let found = config.get("model_type").and_then(Value::as_str);
    let Some(family) = FAMILIES.iter().find(|family| found == Some(family.name)) else {
        problems.push(Problem::UnknownFamily {
            found: found.map(str::to_owned),
            known: FAMILIES.iter().map(|family| family.name).collect(),
        });
        return None;
    };
    let mut fields = Fields::new(config, generation);
    let form = (family.resolve)(&mut fields);
    let sound = fields.problems.is_empty();
    problems.append(&mut fields.problems);
    form.filter(|_| sound).map(|form| (family, form))
}

pub(crate) use quantised::scheme;

#[cfg(test)]
mod tests;
