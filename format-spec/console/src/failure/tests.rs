use super::*;
use std::{fmt, path::PathBuf};

#[derive(Debug)]
struct Plain;

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the checkpoint is unfit: 2 problems\n  - one\n  - two")
    }
}

impl Error for Plain {}

impl Failure for Plain {
    fn exit(&self) -> Exit {
        Exit::BadSource
    }
}

fn cut() -> qpx_format::Error {
    qpx_format::Error::CutShort {
        file: PathBuf::from("m.qpx"),
        expected: 32768,
        found: 20000,
    }
}

#[test]
fn errors_read_as_headline_facts_and_hint() {
    let text = error_text(&cut(), false);
    assert_eq!(
        text,
        "error: cut short: 12768 of 32768 bytes are missing\n  \
         file  m.qpx\n  size  20000 bytes, should be 32768\n\n\
         hint: copy or download the file again; only the first part of m.qpx is there\n"
    );
    assert_eq!(
        error_text(&Plain, false),
        "error: the checkpoint is unfit: 2 problems\n  - one\n  - two\n"
    );
    assert!(error_text(&Plain, true).starts_with("\u{1b}[1;31merror:\u{1b}[0m the"));
}

#[test]
fn errors_are_json_with_the_same_facts() {
    let value = error_json(&cut());
    assert_eq!(
        value["error"]["facts"][1],
        json!({"name": "size", "text": "20000 bytes, should be 32768"})
    );
    assert_eq!(value["exit"], json!({"code": 11, "word": "cut short"}));
    let value = error_json(&Plain);
    assert_eq!(
        value["error"]["message"],
        "the checkpoint is unfit: 2 problems"
    );
    assert_eq!(value["error"]["facts"][1]["text"], "- two");
    assert_eq!(value["error"]["hint"], Value::Null);
}

#[test]
fn names_from_files_cannot_drive_the_terminal() {
    assert_eq!(harmless("a\u{1b}[2Jb\nc\r"), "a\\u{1b}[2Jb\nc\\u{d}");
}
