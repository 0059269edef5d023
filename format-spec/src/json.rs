//! JSON from a file that nobody vouches for: no duplicate keys, bounded depth, numbers that every language can hold.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::{cell::Cell, fmt};

/// Deepest nesting of arrays and objects, the outermost one counted.
pub const MAX_DEPTH: u32 = 64;
/// Largest magnitude of a number: up to it a double holds every whole number.
pub const MAX_INTEGER: u64 = 9_007_199_254_740_991;
/// Most values in one text, arrays and objects counted: as a tree, each takes far more memory than text.
pub const MAX_VALUES: u32 = 1 << 20;

/// Why a text was refused: the number of the rule and what is wrong.
pub(crate) type Refusal = (&'static str, String);

/// Reads one JSON value and nothing behind it.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Refusal> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let left = Cell::new(MAX_VALUES);
    let strict = Strict {
        depth: MAX_DEPTH,
        left: &left,
    };
    let value = strict
        .deserialize(&mut deserializer)
        .and_then(|v| deserializer.end().map(|()| v))
        .map_err(|error| {
            let text = error.to_string();
            let rule = if text.starts_with("key given twice") {
                "3.2"
            } else if text.starts_with("beyond the limit")
                || text.starts_with("number out of range")
                || text.starts_with("recursion limit")
            {
                "3.3"
            } else {
                "3.1"
            };
            (rule, text)
        })?;
    Ok(value)
}

/// Whether there are so few marks before a value that there cannot be more than [`MAX_VALUES`]; marks in strings count too.
pub(crate) fn surely_few_values(text: &[u8]) -> bool {
    let marks = text.iter().filter(|b| b"[,:".contains(b)).count();
    u32::try_from(marks).is_ok_and(|n| n < MAX_VALUES)
}

/// One value; in it, arrays and objects may nest `depth` deep, and the whole text has `left` values left.
#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: u32,
    left: &'a Cell<u32>,
}

impl Strict<'_> {
    /// For the values within an array or object.
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| {
            E::custom(format_args!(
                "beyond the limit: nested deeper than {MAX_DEPTH} levels"
            ))
        })?;
        Ok(Self { depth, ..self })
    }
}

fn too_large<E: serde::de::Error>(value: impl fmt::Display) -> E {
    E::custom(format_args!(
        "beyond the limit: number {value} is larger than {MAX_INTEGER}"
    ))
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            D::Error::custom(format_args!(
                "beyond the limit: more than {MAX_VALUES} values"
            ))
        })?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_INTEGER {
            return Err(too_large(value));
        }
        Ok(value.into())
    }
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER {
            return Err(too_large(value));
        }
        Ok(value.into())
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // MAX_INTEGER as a double, exactly.
        if value.abs() > 9_007_199_254_740_991.0 {
            return Err(too_large(value));
        }
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(list.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("key given twice: `{key}`")));
            }
            map.insert(key, entries.next_value_seed(below)?);
        }
        Ok(map.into())
    }
}

/// How `raw` differs from `known`, its reading written down again: a key that the reading ignored (rule 3.5), or a value of
/// another type that it took for one of the right type (rule 3.4: an array for an object, say).
pub(crate) fn unlike(raw: &Value, known: &Value, new_keys: bool) -> Option<Refusal> {
    let below = |key: &str, found: Refusal| (found.0, format!("{key}.{}", found.1));
    match (raw, known) {
        (Value::Object(raw), Value::Object(known)) => {
            raw.iter().find_map(|(key, value)| match known.get(key) {
                None if new_keys => None,
                None => Some(("3.5", key.clone())),
                Some(other) => unlike(value, other, new_keys).map(|f| below(key, f)),
            })
        }
        (Value::Array(raw), Value::Array(known)) => (raw.iter().zip(known).enumerate())
            .find_map(|(i, (r, k))| unlike(r, k, new_keys).map(|f| below(&i.to_string(), f))),
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => {
            Some(("3.4", "of the wrong type".to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_compared_as_the_nearest_double() {
        for (number, rule) in [
            ("9007199254740991", None),
            ("9007199254740991.2", None),
            ("9007199254740991.4", None),
            ("-9007199254740991.4", None),
            ("9007199254740991.5", Some("3.3")),
            ("9007199254740992", Some("3.3")),
            ("9.007199254740992e15", Some("3.3")),
            ("1e-400", None),
            ("1e400", Some("3.3")),
        ] {
            let found = super::parse(number.as_bytes()).err().map(|(rule, _)| rule);
            assert_eq!(found, rule, "{number}");
        }
    }

    #[test]
    fn values_are_counted() {
        let list = |n: usize| format!("[{}0]", "0,".repeat(n.saturating_sub(1)));
        let most = usize::try_from(super::MAX_VALUES).unwrap_or_default();
        for (text, rule) in [(list(most - 1), None), (list(most), Some("3.3"))] {
            assert_eq!(super::surely_few_values(text.as_bytes()), rule.is_none());
            let found = super::parse(text.as_bytes()).err().map(|(rule, _)| rule);
            assert_eq!(found, rule);
        }
    }
}
