//! Reading config.json strictly: a setting of the wrong type is a problem, never a default.

use crate::problem::Problem;
use serde_json::{Map, Value};

/// The settings of a configuration file, and the problems found while reading them. `null` counts as absent.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    generation: Option<&'a Map<String, Value>>,
    prefix: &'static str,
    pub problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        config: &'a Map<String, Value>,
        generation: Option<&'a Map<String, Value>>,
    ) -> Self {
        Self {
            map: config,
            generation,
            prefix: "config.json",
            problems: Vec::new(),
        }
    }

    /// A nested object as fields of their own; its problems must be taken back with [`Fields::absorb`].
    pub(crate) fn nested(&mut self, key: &'static str) -> Option<Fields<'a>> {
        let value = self.get(key)?;
        match value.as_object() {
            Some(map) => Some(Fields {
                map,
                generation: None,
                prefix: key,
                problems: Vec::new(),
            }),
            None => {
                self.wrong(key, "an object", value);
                None
            }
        }
    }

    pub(crate) fn absorb(&mut self, nested: Fields<'_>) {
        let prefix = self.prefix;
        self.problems
            .extend(nested.problems.into_iter().map(|problem| match problem {
                Problem::Setting {
                    key,
                    expected,
                    found,
                } => Problem::Setting {
                    key: format!("{prefix}: {key}"),
                    expected,
                    found,
                },
                other => other,
            }));
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        let map = self.map;
        map.iter().filter(|(_, v)| !v.is_null()).map(|(k, _)| k)
    }

    /// Reports that `key` is not as `expected`.
    pub(crate) fn wrong(&mut self, key: &str, expected: &str, found: &Value) {
        self.problem(key, expected, found.to_string());
    }

    pub(crate) fn problem(&mut self, key: &str, expected: &str, found: String) {
        self.problems.push(Problem::Setting {
            key: format!("{}: {key}", self.prefix),
            expected: expected.to_owned(),
            found,
        });
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&mut self, key: &str, most: u64) -> Option<u64> {
        let found = self.count_if(key, most);
        if found.is_none() && self.get(key).is_none() {
            self.problem(
                key,
                &format!("a whole number from 1 to {most}"),
                "nothing".to_owned(),
            );
        }
        found
    }

    /// As [`Fields::count`], for a setting that may be absent.
    pub(crate) fn count_if(&mut self, key: &str, most: u64) -> Option<u64> {
        let value = self.get(key)?;
        match value.as_u64() {
            Some(number) if (1..=most).contains(&number) => Some(number),
            _ => {
                self.wrong(key, &format!("a whole number from 1 to {most}"), value);
                None
            }
        }
    }

    /// A positive, finite number.
    pub(crate) fn positive(&mut self, key: &str) -> Option<f64> {
        let Some(value) = self.get(key) else {
            self.problem(key, "a positive number", "nothing".to_owned());
            return None;
        };
        match value.as_f64() {
            Some(number) if number.is_finite() && number > 0.0 => Some(number),
            _ => {
                self.wrong(key, "a positive number", value);
                None
            }
        }
    }

    pub(crate) fn flag_or(&mut self, key: &str, default: bool) -> bool {
        let Some(value) = self.get(key) else {
            return default;
        };
        value.as_bool().unwrap_or_else(|| {
            self.wrong(key, "true or false", value);
            default
        })
    }

    /// Whole numbers in a list; absent is empty.
    pub(crate) fn numbers(&mut self, key: &str) -> Vec<u64> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let numbers = value
            .as_array()
            .and_then(|list| list.iter().map(Value::as_u64).collect());
        numbers.unwrap_or_else(|| {
            self.wrong(key, "a list of whole numbers", value);
            Vec::new()
        })
    }

    /// The ids that end a generation: the union of both configuration files, this one's first.
    pub(crate) fn end_tokens(&mut self) -> Vec<u64> {
        let mut ids = Vec::new();
        let sources = [
            (Some(self.map), "config.json"),
            (self.generation, "generation_config.json"),
        ];
        for (map, file) in sources {
            let Some(value) = map
                .and_then(|m| m.get("eos_token_id"))
                .filter(|v| !v.is_null())
            else {
                continue;
            };
            let found: Option<Vec<u64>> = match value {
                Value::Array(list) => list.iter().map(Value::as_u64).collect(),
                one => one.as_u64().map(|id| vec![id]),
            };
            match found {
                Some(found) => {
                    for id in found {
                        if !ids.contains(&id) {
                            ids.push(id);
                        }
                    }
                }
                None => self.problems.push(Problem::Setting {
                    key: format!("{file}: eos_token_id"),
                    expected: "an id or a list of ids".to_owned(),
                    found: value.to_string(),
                }),
            }
        }
        ids
    }
}
