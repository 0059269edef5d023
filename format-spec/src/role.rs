//! Canonical roles of tensors: what a tensor is for, in words that are the same for every vendor.
//!
//! The grammar is SPEC.md's chapter 6. It is wider than the list of roles in use: a new family may need a new word, and a
//! bundle with it must still be readable. Whether a family knows a role is for its lane to say.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::error::{Error, Fault};
use std::{fmt, path::Path};

/// Longest role, in bytes: room for `kept.` and a source name.
pub const MAX_ROLE_BYTES: usize = 1100;
/// Largest number in a role: nine digits.
pub(crate) const MAX_NUMBER: u64 = 999_999_999;

/// A tensor's role, such as `layer.3.attention.query`.
///
/// Grammar and the list of words: SPEC.md, chapter on roles. Kept tensors have the role `kept.` + source name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(String);

impl Role {
    /// The role written in `text`; refuses what the grammar does not allow.
    ///
    /// # Errors
    /// [`Error::Broken`] by rule 6.1.
    pub fn parse(text: &str) -> Result<Self, Error> {
        check(text)
            .map(|()| Self(text.to_owned()))
            .map_err(|reason| {
                Fault::new("6.1", "manifest", reason)
                    .of(text)
                    .in_file(Path::new(""))
            })
    }

    /// The role of one expert's part; `segment_word` is `layer` or `draft`.
    pub(crate) fn expert(segment_word: &str, layer: u64, expert: u64, part: Part) -> String {
        format!("{segment_word}.{layer}.expert.{expert}.{part}")
    }

    /// The role as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Layer, expert and part of an expert's role, and whether it is a prediction layer's (`draft.…`).
    pub fn as_expert(&self) -> Option<(bool, u64, u64, Part)> {
        let mut words = self.0.split('.');
        let draft = match words.next()? {
            "layer" => false,
            "draft" => true,
            _ => return None,
        };
        let layer = words.next()?.parse().ok()?;
        if words.next()? != "expert" {
            return None;
        }
        let expert = words.next()?.parse().ok()?;
        let part = Part::ALL
            .into_iter()
            .find(|p| Some(p.as_str()) == words.clone().next())?;
        words
            .nth(1)
            .is_none()
            .then_some((draft, layer, expert, part))
    }
}

/// Says what is wrong with `text` as a role.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_ROLE_BYTES {
        return Err(format!(
            "a role has at most {MAX_ROLE_BYTES} bytes, this one {}",
            text.len()
        ));
    }
    if let Some(name) = text.strip_prefix("kept.") {
        return if name.is_empty() || name.chars().any(char::is_control) {
            Err("`kept.` is followed by the source name, without control characters".to_owned())
        } else {
            Ok(())
        };
    }
    let mut words = text.split('.');
    let first = words.next().unwrap_or_default();
    if !is_word(first) || first == "kept" {
        return Err("a role starts with a lower-case word".to_owned());
    }
    if matches!(first, "layer" | "draft") {
        if !words.next().is_some_and(is_number) {
            return Err(format!("`{first}` is followed by a number"));
        }
        if !words.next().is_some_and(is_word) {
            return Err(format!("`{first}.N` is followed by a word"));
        }
    }
    match words.find(|w| !is_word(w) && !is_number(w)) {
        Some(bad) => Err(format!("`{bad}` is neither a lower-case word nor a number")),
        None => Ok(()),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn is_number(text: &str) -> bool {
    text == "0"
        || (text.len() <= 9
            && text.starts_with(|c: char| ('1'..='9').contains(&c))
            && text.bytes().all(|b| b.is_ascii_digit()))
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

impl Part {
    /// In the order of a record.
    pub const ALL: [Self; 3] = [Self::Gate, Self::Up, Self::Down];

    /// The word in a role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
