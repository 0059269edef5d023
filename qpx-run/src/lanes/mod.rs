//! The model families that run here: one file and one line in [`FAMILIES`] each.

use crate::{
    Error,
    needs::Needs,
    ops::{Matrix, Ops},
    pool::Tensor,
};
use serde_json::{Map, Value};

mod llama;
mod qwen3;
mod qwen3_moe;

/// More layers than any model has: the list of tensors needed is made before the bundle's own is looked at.
const MOST_LAYERS: usize = 1024;

/// A model family.
pub struct Family {
    /// Its name in the manifest.
    pub name: &'static str,
    /// Reads the manifest's architecture and states what the model needs; the error is what is wrong with it.
    pub build: Build,
}

/// From the manifest's architecture to a lane.
pub type Build = fn(Map<String, Value>, &mut Needs) -> Result<Box<dyn Lane>, String>;

/// Every family.
pub const FAMILIES: &[Family] = &[llama::FAMILY, qwen3::FAMILY, qwen3_moe::FAMILY];

/// A model: its sizes and its forward pass.
pub trait Lane: Send + Sync {
    /// Numbers that the engine needs.
    fn outline(&self) -> Outline;

    /// The last hidden state of tokens `ids`, the first of them at position `at`, ready for the output layer. [T, hidden]
    fn forward(&self, ops: &mut dyn Ops, ids: &[u32], at: usize) -> Result<Tensor, Error>;
}

/// What the engine needs to know of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Rows of the output layer.
    pub vocabulary: usize,
    /// Positions that the model was made for.
    pub context_length: u64,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// The output layer. [vocabulary, hidden]
    pub output: Matrix,
    /// Experts that a token goes through in a layer that has any.
    pub experts_per_token: usize,
}

/// The first of the conditions that does not hold, for a configuration's check.
fn first_problem(conditions: &[(bool, &str)]) -> Result<(), String> {
    match conditions.iter().find(|(holds, _)| !holds) {
        Some((_, text)) => Err((*text).to_owned()),
        None => Ok(()),
    }
}
