//! As much of JSON Schema as `schema/*.json` use.

use serde_json::Value;
use std::path::Path;

/// Checks what a command printed against its schema.
#[track_caller]
pub fn check(name: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(name);
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut faults = Vec::new();
    compare(&schema, value, "", &mut faults);
    assert!(faults.is_empty(), "{name}: {faults:#?}\n{value:#}");
}

fn compare(schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let known = [
        "$schema",
        "title",
        "type",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minimum",
    ];
    for key in schema.as_object().unwrap().keys() {
        assert!(
            known.contains(&key.as_str()),
            "the schema uses {key}, which this check does not know"
        );
    }
    let mut wrong = |what: String| faults.push(format!("{at}: {what}"));
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        wrong(format!("{value} is not one of {allowed:?}"));
    }
    if let Some(types) = schema.get("type") {
        let is = |name: &Value| match name.as_str().unwrap() {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            other => panic!("unknown type {other}"),
        };
        let fits = types
            .as_array()
            .map_or_else(|| is(types), |list| list.iter().any(is));
        if !fits {
            wrong(format!("{value} is no {types}"));
        }
    }
    if let (Some(least), Some(number)) = (
        schema.get("minimum").and_then(Value::as_f64),
        value.as_f64(),
    ) && number < least
    {
        wrong(format!("{number} is below {least}"));
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (i, item) in list.iter().enumerate() {
            compare(items, item, &format!("{at}[{i}]"), faults);
        }
    }
    let Some(object) = value.as_object() else {
        return;
    };
    for key in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if !object.contains_key(key.as_str().unwrap()) {
            faults.push(format!("{at}: {key} is missing"));
        }
    }
    for (key, item) in object {
        let at = format!("{at}.{key}");
        let property = schema.get("properties").and_then(|p| p.get(key));
        match (property, schema.get("additionalProperties")) {
            (Some(schema), _) => compare(schema, item, &at, faults),
            (None, Some(Value::Bool(false))) => faults.push(format!("{at}: not in the schema")),
            (None, Some(rest @ Value::Object(_))) => compare(rest, item, &at, faults),
            (None, _) => {}
        }
    }
}
