//! The header of an original shard, as it was attached: which tensor's data lies where in the file.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use serde_json::Value;

/// A tensor's data in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its name in the checkpoint.
    pub name: String,
    /// First byte behind the header.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

/// The data of all tensors, in file order, without gaps; `bytes` is the eight bytes of the length and the JSON behind.
///
/// # Errors
/// In which way it is no header of a file of `size` bytes.
pub fn parse(bytes: &[u8], size: u64) -> Result<Vec<Data>, String> {
    let (length, text) = bytes
        .split_first_chunk::<8>()
        .ok_or("its header is too short")?;
    let header = u64::try_from(bytes.len()).map_err(|e| e.to_string())?;
    if u64::from_le_bytes(*length).checked_add(8) != Some(header) {
        return Err("its header has another length than it says".to_owned());
    }
    let value: Value =
        serde_json::from_slice(text).map_err(|e| format!("its header is no JSON: {e}"))?;
    let entries = value.as_object().ok_or("its header is no object")?;
    let mut data = Vec::new();
    for (name, entry) in entries.iter().filter(|(name, _)| *name != "__metadata__") {
        let offsets = entry.get("data_offsets").and_then(Value::as_array);
        let offset = |n: usize| offsets.and_then(|o| o.get(n)).and_then(Value::as_u64);
        let (Some(start), Some(end)) = (offset(0), offset(1)) else {
            return Err(format!("its header has no offsets for {name}"));
        };
        let length = end
            .checked_sub(start)
            .ok_or_else(|| format!("{name} ends before it starts"))?;
        data.push(Data {
            name: name.clone(),
            start,
            length,
        });
    }
    data.sort_by_key(|d| (d.start, d.length));
    let mut at = 0;
    for d in &data {
        if d.start != at {
            return Err(format!(
                "the data of {} does not follow the one before it",
                d.name
            ));
        }
        at = d.start.saturating_add(d.length);
    }
    match header.checked_add(at) == Some(size) {
        true => Ok(data),
        false => Err(format!(
            "its header describes {at} bytes of data, its size is {size}"
        )),
    }
}

#[cfg(test)]
#[allow(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "small numbers of the tests' own"
)]
mod tests {
    use super::*;

    fn header(json: &str) -> Vec<u8> {
        [
            &u64::try_from(json.len()).unwrap().to_le_bytes()[..],
            json.as_bytes(),
        ]
        .concat()
    }

    #[test]
    fn data_comes_in_file_order() {
        let text = r#" {"b":{"data_offsets":[3,5]},"__metadata__":{"a":"1"},"a":{"data_offsets":[0,3]},"z":{"data_offsets":[3,3]}}"#;
        let bytes = header(text);
        let size = bytes.len() as u64 + 5;
        let data = parse(&bytes, size).unwrap();
        let names: Vec<_> = data
            .iter()
            .map(|d| (d.name.as_str(), d.start, d.length))
            .collect();
        assert_eq!(names, [("a", 0, 3), ("z", 3, 0), ("b", 3, 2)]);
        assert!(parse(&bytes, size + 1).is_err());
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "[]",
            "{",
            r#"{"a":{"data_offsets":[1,2]}}"#,
            r#"{"a":{"data_offsets":[2,0]}}"#,
            r#"{"a":{}}"#,
        ] {
            let bytes = header(text);
            assert!(parse(&bytes, bytes.len() as u64 + 2).is_err(), "{text}");
        }
        assert!(parse(b"1234567", 7).is_err());
        assert!(parse(&[9, 0, 0, 0, 0, 0, 0, 0, b'{', b'}'], 10).is_err());
    }
}
