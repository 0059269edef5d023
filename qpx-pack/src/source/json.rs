//! JSON as the formats around checkpoints demand it: a key that stands twice in one object is an error.
//!
//! serde_json keeps the last of two equal keys, which hides a broken or doctored file.

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Deepest nesting that is read; serde_json itself stops at 128.
const LARGEST_FILE_BYTES: u64 = 256 << 20;

/// Parses a whole JSON text; `Err` says what is wrong and where.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice::<Strict>(text)
        .map(|strict| strict.0)
        .map_err(|error| error.to_string())
}

/// Whether a file of this size is read as JSON at all.
pub(crate) fn is_sane_size(bytes: u64) -> bool {
    bytes <= LARGEST_FILE_BYTES
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictSeed.deserialize(deserializer).map(Strict)
    }
}

struct StrictSeed;

impl<'de> DeserializeSeed<'de> for StrictSeed {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number that is not finite"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(StrictSeed)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(StrictSeed)?;
            if object.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` stands twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_once_in_an_object() {
        for (text, good) in [
            (r#"{"a":1,"b":{"a":2}}"#, true),
            (r#"{"a":1,"a":1}"#, false),
            (r#"{"a":{"b":[{"c":1,"c":2}]}}"#, false),
            (r#"{"a":1e400}"#, false),
            (r#"{"a":1} x"#, false),
            ("\u{feff}{}", false),
        ] {
            assert_eq!(parse(text.as_bytes()).is_ok(), good, "{text}");
        }
        assert!(
            parse(br#"{"a":1,"a":1}"#)
                .unwrap_err()
                .contains("`a` stands twice")
        );
    }
}
