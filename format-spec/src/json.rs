//! JSON from a file that nobody vouches for: no duplicate keys, bounded depth, numbers that every language can hold.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Deepest nesting of arrays and objects, the outermost one counted.
pub const MAX_DEPTH: u32 = 64;
/// Largest magnitude of a number: up to it a double holds every whole number.
pub const MAX_INTEGER: u64 = 9_007_199_254_740_991;

/// Why a text was refused: the number of the rule and what is wrong.
pub(crate) type Refusal = (&'static str, String);

/// Reads one JSON value and nothing behind it.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Refusal> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let strict = Strict { depth: MAX_DEPTH };
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

/// One value; in it, arrays and objects may nest `depth` deep.
struct Strict {
    depth: u32,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<u32, E> {
        self.depth.checked_sub(1).ok_or_else(|| {
            E::custom(format_args!(
                "beyond the limit: nested deeper than {MAX_DEPTH} levels"
            ))
        })
    }
}

fn too_large<E: serde::de::Error>(value: impl fmt::Display) -> E {
    E::custom(format_args!(
        "beyond the limit: number {value} is larger than {MAX_INTEGER}"
    ))
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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
        let depth = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self { depth })? {
            list.push(item);
        }
        Ok(list.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let depth = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("key given twice: `{key}`")));
            }
            map.insert(key, entries.next_value_seed(Self { depth })?);
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
