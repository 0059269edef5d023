//! Recipes: which encoding a tensor gets, by its role.
//!
//! A recipe is a TOML file of rules, read from the top; the first rule whose `role` fits decides. `*` in a pattern stands for
//! any text, dots included; `role` may also be a list of patterns. `encoding` is an encoding's name, or `source` for the
//! checkpoint's own dtype. `narrow` is taken instead when the padding of a row's last block would be more than an eighth of the
//! row. A tensor that no rule fits, one with fewer than two dimensions, and one that is only kept, stay as they are.
//!
//! ```toml
//! [[rule]]
//! role = "layer.*.expert.*"
//! encoding = "q4_k"
//! narrow = "q4_1"
//! ```

mod error;

pub use error::RecipeError;

use qpx_format::encoding::{self, Encoding};
use serde::Deserialize;
use std::{fs, path::Path};

/// The recipes that need no file.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("lossless", include_str!("lossless.toml")),
    ("q8", include_str!("q8.toml")),
    ("q4", include_str!("q4.toml")),
    ("q3", include_str!("q3.toml")),
    ("q2", include_str!("q2.toml")),
];

/// A checked recipe.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name: a built-in's, or the file's stem.
    pub name: String,
    /// Its text, which travels in the manifest.
    pub text: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    patterns: Vec<String>,
    encoding: Option<&'static Encoding>,
    narrow: Option<&'static Encoding>,
}

/// What a recipe says of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The encoding; `None` for the checkpoint's own dtype.
    pub encoding: Option<&'static Encoding>,
    /// The wide encoding that would have wasted too much.
    pub instead_of: Option<&'static Encoding>,
    /// The rule that decided, counted from 0.
    pub rule: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<FileRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRule {
    role: Patterns,
    encoding: String,
    narrow: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Many(Vec<String>),
}

impl Recipe {
    /// The recipe that keeps every tensor as it is.
    pub fn lossless() -> Self {
        Self {
            name: "lossless".to_owned(),
            text: include_str!("lossless.toml").to_owned(),
            rules: Vec::new(),
        }
    }

    /// The recipe that a user named: a built-in, or a path that ends in `.toml`.
    ///
    /// # Errors
    /// When it is neither, can't be read, or breaks a rule of recipes.
    pub fn named(name: &str) -> Result<Self, RecipeError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|end| end != "toml") {
            return Err(RecipeError::Unknown {
                name: name.to_owned(),
            });
        }
        let text = fs::read_to_string(path).map_err(|source| RecipeError::Unreadable {
            file: path.to_owned(),
            source,
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        // A reader of the manifest must be able to tell a built-in recipe from a file of the same name.
        if BUILT_IN
            .iter()
            .any(|(known, built_in)| *known == stem && *built_in != text)
        {
            return Err(RecipeError::NameTaken {
                file: path.to_owned(),
            });
        }
        Self::parse(&stem, &text)
    }

    /// The recipe written in `text`.
    ///
    /// # Errors
    /// When the text is no recipe.
    pub fn parse(name: &str, text: &str) -> Result<Self, RecipeError> {
        let file: File = toml::from_str(text).map_err(|error| RecipeError::Syntax {
            name: name.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        let mut rules = Vec::new();
        for (number, rule) in file.rule.into_iter().enumerate() {
            let wrong = |reason: String| RecipeError::Rule {
                name: name.to_owned(),
                number: number + 1,
                reason,
            };
            let patterns = match rule.role {
                Patterns::One(one) => vec![one],
                Patterns::Many(many) => many,
            };
            if patterns.is_empty() || patterns.iter().any(String::is_empty) {
                return Err(wrong("its `role` is empty".to_owned()));
            }
            let encoding = target(&rule.encoding).map_err(wrong)?;
            let narrow = match rule.narrow {
                Some(narrow) => target(&narrow).map_err(wrong)?,
                None => None,
            };
            if let Some(narrow) = narrow
                && encoding.is_none_or(|wide| wide.block <= narrow.block)
            {
                let reason = format!(
                    "`narrow` ({}) must have smaller blocks than `encoding` ({})",
                    narrow.name, rule.encoding
                );
                return Err(wrong(reason));
            }
            rules.push(Rule {
                patterns,
                encoding,
                narrow,
            });
        }
        Ok(Self {
            name: name.to_owned(),
            text: text.to_owned(),
            rules,
        })
    }

    /// Whether it keeps every tensor as it is, whatever the model.
    pub fn is_lossless(&self) -> bool {
        self.rules.iter().all(|rule| rule.encoding.is_none())
    }

    /// What it says of a tensor whose rows have `columns` values.
    pub fn choose(&self, role: &str, dimensions: usize, columns: u64) -> Choice {
        let fits = |rule: &Rule| rule.patterns.iter().any(|pattern| matches(pattern, role));
        let Some(number) = self.rules.iter().position(fits) else {
            return Choice {
                encoding: None,
                instead_of: None,
                rule: None,
            };
        };
        let rule = self.rules.get(number);
        let wide = rule
            .and_then(|rule| rule.encoding)
            .filter(|_| dimensions >= 2);
        let narrow = rule.and_then(|rule| rule.narrow);
        let (encoding, instead_of) = match (wide, narrow) {
            (Some(wide), Some(narrow)) if wastes(wide, columns) => (Some(narrow), Some(wide)),
            (wide, _) => (wide, None),
        };
        Choice {
            encoding,
            instead_of,
            rule: Some(number),
        }
    }

    /// The patterns of rule `number`, as a user wrote them.
    pub fn patterns(&self, number: usize) -> String {
        self.rules
            .get(number)
            .map_or_else(String::new, |rule| rule.patterns.join(", "))
    }

    /// How many rules it has.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }
}

/// The encoding a rule names; `None` is the checkpoint's own dtype.
fn target(name: &str) -> Result<Option<&'static Encoding>, String> {
    if name == "source" {
        return Ok(None);
    }
    let known: Vec<_> = encoding::ENCODINGS
        .iter()
        .filter(|e| e.block > 1 || matches!(e.name, "f32" | "f16" | "bf16"))
        .collect();
    match known.iter().find(|e| e.name == name) {
        Some(found) => Ok(Some(found)),
        None => {
            let names: Vec<_> = known.iter().map(|e| e.name).collect();
            Err(format!(
                "there is no encoding `{name}` for weights (known: source, {})",
                names.join(", ")
            ))
        }
    }
}

/// Whether the padding of a row's last block is more than an eighth of the row.
fn wastes(encoding: &Encoding, columns: u64) -> bool {
    let padded = columns
        .div_ceil(encoding.block)
        .saturating_mul(encoding.block);
    padded.saturating_sub(columns).saturating_mul(8) > columns
}

/// Whether `text` fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<_> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
