//! Every rule of the header, each by the smallest header that breaks it.
#![allow(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "sizes of literals"
)]

use super::*;

/// The words of all faults of a header `json` before `data` bytes of data.
fn faults(json: &str, data: u64) -> String {
    match parse(json.as_bytes(), 8 + json.len() as u64 + data) {
        Ok(_) => String::new(),
        Err(faults) => faults
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
    }
}

const GOOD: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

#[test]
fn what_the_format_allows_passes() {
    let two = r#"{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    for (what, json, data) in [
        ("one tensor", GOOD, 8),
        ("spaces behind", &format!("{GOOD}   "), 8),
        ("tensors in any order, metadata", two, 10),
        ("no tensor", "{}", 0),
        (
            "a scalar",
            r#"{"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}"#,
            8,
        ),
        (
            "an empty tensor",
            r#"{"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}}"#,
            0,
        ),
        (
            "a name with slashes and dots",
            r#"{"a/b..c":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
            1,
        ),
    ] {
        assert_eq!(faults(json, data), "", "{what}");
    }
}

#[test]
fn unaligned_data_is_counted_and_accepted() {
    let json = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}"#;
    let padded = format!("{json:<width$}", width = json.len().next_multiple_of(8));
    let header = parse(padded.as_bytes(), 8 + padded.len() as u64 + 5).unwrap();
    assert_eq!(header.unaligned, 1);
    assert_eq!(header.entries[1].offset, 8 + padded.len() as u64 + 1);
}

#[test]
fn what_the_format_forbids_is_told() {
    let tensor = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let named =
        |name: &str| format!(r#"{{"{name}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#);
    let pair = |first: &str, second: &str| {
        format!(
            r#"{{"a":{{"dtype":"U8","shape":[4],"data_offsets":{first}}},"b":{{"dtype":"U8","shape":[4],"data_offsets":{second}}}}}"#
        )
    };
    let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for (json, data, words) in [
        (
            format!(" {GOOD}"),
            8,
            "begins with byte 0x20 where `{` must stand",
        ),
        (String::new(), 0, "has an empty header"),
        ("[]".to_owned(), 0, "begins with byte 0x5b"),
        (
            format!("{GOOD}\n"),
            8,
            "ends with byte 0x0a where `}` or a space must stand",
        ),
        (format!("{GOOD}x"), 8, "broken header: trailing characters"),
        ("{\"a\":".to_owned(), 0, "broken header: EOF"),
        (twice.to_owned(), 1, "`a` stands twice"),
        (
            r#"{"__metadata__":{"x":"1","x":"2"}}"#.to_owned(),
            0,
            "`x` stands twice in __metadata__",
        ),
        (
            r#"{"__metadata__":{},"__metadata__":{}}"#.to_owned(),
            0,
            "`__metadata__` stands twice",
        ),
        (
            r#"{"__metadata__":{"x":1}}"#.to_owned(),
            0,
            "expected a string",
        ),
        (named("a\\u0000b"), 1, "may not be empty, hold NUL"),
        (named("a/../b"), 1, "lead out of a folder"),
        (named("/etc/passwd"), 1, "lead out of a folder"),
        (named(""), 1, "may not be empty"),
        (
            tensor("F31", "[2]", "[0,8]"),
            8,
            "the dtype `F31`, which safetensors does not define",
        ),
        (tensor("F4", "[2]", "[0,1]"), 1, "values share bytes"),
        (
            tensor("F32", "[2]", "[8,0]"),
            8,
            "the data offsets 8..0, which make no range",
        ),
        (
            tensor("F32", "[3]", "[0,8]"),
            8,
            "gives a 8 bytes, but F32 [3] takes 12",
        ),
        (
            tensor("BF16", "[2,2]", "[0,16]"),
            16,
            "gives a 16 bytes, but BF16 [2, 2] takes 8",
        ),
        (
            tensor("F32", "[4294967296,4294967296]", "[0,8]"),
            8,
            "no whole number of bytes below 2^64",
        ),
        (
            tensor("F64", "[2305843009213693952]", "[0,8]"),
            8,
            "no whole number of bytes below 2^64",
        ),
        (tensor("F32", "[-1]", "[0,8]"), 8, "invalid value"),
        (tensor("F32", "[2.0]", "[0,8]"), 8, "invalid type"),
        (tensor("F32", "[2]", "[0,8,8]"), 8, "broken header"),
        (
            tensor("F32", "[2]", "[18446744073709551608,18446744073709551615]"),
            8,
            "gives a 7 bytes",
        ),
        (
            tensor("F32", "[2]", "[0,8],\"more\":1"),
            8,
            "unknown field `more`",
        ),
        (
            tensor("F32", "[2]", "[0,8],\"dtype\":\"F32\""),
            8,
            "duplicate field `dtype`",
        ),
        (
            tensor("F32", "[2]", "[0,8]"),
            7,
            "truncated: 1 bytes short (expected 70 bytes, found 69), a is cut",
        ),
        (
            tensor("F32", "[2]", "[0,8]"),
            9,
            "has 1 bytes behind its last tensor, which ends at byte 70",
        ),
        (
            tensor("F32", "[2]", "[4,12]"),
            12,
            "has a hole of 4 bytes before a",
        ),
        (
            pair("[0,4]", "[0,4]"),
            4,
            "stores b over a: they share 4 bytes",
        ),
        (
            pair("[0,4]", "[3,7]"),
            7,
            "stores b over a: they share 1 bytes",
        ),
        (
            pair("[0,4]", "[6,10]"),
            10,
            "has a hole of 2 bytes before b",
        ),
        (
            pair("[4,8]", "[0,4]"),
            6,
            "2 bytes short (expected 121 bytes, found 119), a is cut",
        ),
        (pair("[0,4]", "[4,8]"), 2, "a is cut, 1 more with it"),
        (
            pair("[0,4]", "[18446744073709551608,18446744073709551612]"),
            8,
            "which make no range",
        ),
    ] {
        let found = faults(&json, data);
        assert!(
            found.contains(words),
            "{json} + {data}: `{found}` lacks `{words}`"
        );
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let json = r#"{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,2]}}"#;
    let found = faults(json, 2);
    assert!(
        found.contains("F31") && found.contains("gives b 1 bytes"),
        "{found}"
    );
}
