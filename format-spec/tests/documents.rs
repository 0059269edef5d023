//! SPEC.md says what the code does: its tables of fields are written from the code, its rules are the code's rules.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{
    encoding::ENCODINGS,
    preamble::{Field, PREAMBLE},
    rule::RULES,
    stamp::STAMP_HEADER,
};
use std::{fs, path::PathBuf};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("SPEC.md")
}

/// Two tests write the document where asked to: one at a time.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn table(fields: &[Field]) -> String {
    let mut text = String::from("| offset | bytes | field | holds |\n|---:|---:|---|---|\n");
    for field in fields {
        text += &format!(
            "| {} | {} | {} | {} |\n",
            field.at, field.bytes, field.name, field.holds
        );
    }
    text
}

/// `QPX_BLESS=1` writes the tables; otherwise they must be there.
#[test]
fn tables_of_fields() {
    let _turn = TURN.lock().unwrap();
    let mut text = fs::read_to_string(path()).unwrap();
    for (name, fields) in [("preamble", PREAMBLE), ("stamp", STAMP_HEADER)] {
        let mut end = 0;
        for field in fields {
            assert_eq!(field.at, end, "{name}: {} leaves no gap", field.name);
            end = field.at + field.bytes;
        }
        let marker = format!("<!-- table: {name} -->\n");
        let start = text.find(&marker).expect("the table's marker") + marker.len();
        let length = text[start..]
            .find("<!-- end -->")
            .expect("the end's marker");
        let written = table(fields);
        if std::env::var_os("QPX_BLESS").is_some() {
            text.replace_range(start..start + length, &written);
            fs::write(path(), &text).unwrap();
        }
        assert_eq!(
            &text[start..start + written.len()],
            written,
            "SPEC.md: run with QPX_BLESS=1"
        );
    }
}

/// Lines of 16 bytes; each field starts a line and has its name. The reserved zeros are left out.
fn dump(page: &[u8]) -> String {
    let mut text = String::from("```\n");
    for field in PREAMBLE {
        let bytes = &page[field.at..field.at + field.bytes];
        if field.name == "reserved" {
            assert!(bytes.iter().all(|b| *b == 0));
            text += &format!(
                "{:5}  00 … 00                                          {}\n",
                field.at, field.name
            );
            continue;
        }
        for (n, line) in bytes.chunks(16).enumerate() {
            let hex: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
            let name = match (n, field.bytes) {
                (0, 2 | 4 | 8) if field.name != "magic" => {
                    let value = line.iter().rev().fold(0_u64, |n, b| n << 8 | u64::from(*b));
                    format!("{}: {value}", field.name)
                }
                (0, _) => field.name.to_owned(),
                _ => String::new(),
            };
            let line = format!("{:5}  {:47}  {name}", field.at + 16 * n, hex.join(" "));
            text += line.trim_end();
            text += "\n";
        }
    }
    text + &format!("bundle id  {}\n```\n", blake3::hash(page).to_hex())
}

/// `QPX_BLESS=1` writes the dump from the vector's file.
#[test]
fn dump_of_page_0() {
    let vector = path().with_file_name("vectors/good-every-segment.qpx.zst");
    let bytes = zstd::bulk::decompress(&fs::read(vector).unwrap(), 16 << 20).unwrap();
    let written = dump(&bytes[..16384]);
    let _turn = TURN.lock().unwrap();
    let mut text = fs::read_to_string(path()).unwrap();
    let marker = "<!-- dump: page 0 of good-every-segment -->\n";
    let start = text.find(marker).expect("the dump's marker") + marker.len();
    let length = text[start..]
        .find("<!-- end -->")
        .expect("the end's marker");
    if std::env::var_os("QPX_BLESS").is_some() {
        text.replace_range(start..start + length, &written);
        fs::write(path(), &text).unwrap();
    }
    let end = start + written.len();
    assert!(
        text.get(start..end) == Some(&written),
        "SPEC.md: run with QPX_BLESS=1"
    );
    assert!(text[end..].starts_with("<!-- end -->"));
}

#[test]
fn rules_are_those_of_the_code() {
    let text = fs::read_to_string(path()).unwrap();
    let found: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("**")?.split_once("** "))
        .map(|(number, _)| number)
        .filter(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let known: Vec<&str> = RULES.iter().map(|(number, _)| *number).collect();
    assert_eq!(found, known);
}

#[test]
fn encodings_are_those_of_the_code() {
    let text = fs::read_to_string(path()).unwrap();
    for encoding in ENCODINGS {
        let name = format!("`{}`", encoding.name);
        assert!(text.contains(&name), "{name} is missing");
        if encoding.is_block() {
            let row = format!("| {name} | {} | {} |", encoding.block, encoding.bytes);
            assert!(text.contains(&row), "{row}");
        }
    }
}

/// The schema knows every key of a manifest, and asks for none that is not there.
#[test]
fn schema_fits_the_sample() {
    use serde_json::Value;
    fn check(root: &Value, schema: &Value, value: &Value, path: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.strip_prefix("#/$defs/").unwrap();
            return check(root, &root["$defs"][name], value, path);
        }
        if let Some(one) = schema.get("anyOf") {
            let which = usize::from(value.is_null());
            return check(root, &one[which], value, path);
        }
        if let Some(words) = schema.get("enum") {
            assert!(words.as_array().unwrap().contains(value), "{path}: {value}");
            return;
        }
        match schema["type"].as_str().unwrap() {
            "object" => {
                let object = value.as_object().expect(path);
                for key in schema["required"].as_array().into_iter().flatten() {
                    let key = key.as_str().unwrap();
                    assert!(object.contains_key(key), "{path}.{key} is required");
                }
                for (key, below) in object {
                    let known = schema["properties"].get(key);
                    let other = &schema["additionalProperties"];
                    assert!(known.is_some() || *other != false, "{path}.{key}");
                    if let Some(known) = known.or(Some(other).filter(|o| o.is_object())) {
                        check(root, known, below, &format!("{path}.{key}"));
                    }
                }
            }
            "array" => {
                for below in value.as_array().expect(path) {
                    check(root, &schema["items"], below, path);
                }
            }
            "string" => assert!(value.is_string(), "{path}"),
            "integer" => assert!(value.is_u64(), "{path}"),
            "null" => assert!(value.is_null(), "{path}"),
            other => panic!("{path}: {other}"),
        }
    }
    let schema = path().with_file_name("schema/manifest.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    check(
        &schema,
        &schema,
        &support::cases::sample().json(),
        "manifest",
    );
}
