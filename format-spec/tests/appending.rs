//! What a crash or a second writer does to stamps.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{Bundle, Error, error::Kind, stamp, verify};
use std::fs;
use support::{draft, write};

/// Cut after every byte of the second record: the first one stays, the content stays good, and appending goes on.
#[test]
fn a_record_cut_anywhere_is_ignored_and_cut_off() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let id = write(&path, draft()).unwrap().id;
    let first = stamp::append(&path, "proof", b"{\"first\":true}").unwrap();
    let end = fs::metadata(&path).unwrap().len() as usize;
    stamp::append(&path, "proof", b"{\"second\":true}").unwrap();
    let whole = fs::read(&path).unwrap();
    for length in (end + 1..whole.len()).step_by(3) {
        fs::write(&path, &whole[..length]).unwrap();
        let bundle = Bundle::open(&path).unwrap();
        let stamps = bundle.stamps().unwrap();
        assert_eq!(stamps.fault, None, "cut at {length}");
        let torn = stamps.torn.expect("it is said that one is torn");
        assert_eq!(torn.bytes, end as u64..length as u64);
        assert_eq!(stamps.records.len(), 1);
        let report = verify::full(&bundle, 1, &|_| {}).unwrap();
        assert!(report.is_intact() && report.torn.is_some());

        let third = stamp::append(&path, "note", b"3").unwrap();
        assert_eq!(third.offset, end as u64);
        let bundle = Bundle::open(&path).unwrap();
        let stamps = bundle.stamps().unwrap();
        assert_eq!((stamps.fault, stamps.torn), (None, None));
        assert_eq!(stamps.records.len(), 2);
        assert_eq!(stamps.records[0].digest, first.digest);
        assert_eq!(bundle.id(), id);
    }
}

/// A file that had grown before its bytes reached the disk: an unwritten record is cut off, however much of it was written.
#[test]
fn a_record_that_ends_in_zeros_is_ignored_and_cut_off() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    write(&path, draft()).unwrap();
    stamp::append(&path, "proof", b"{\"first\":true}").unwrap();
    let end = fs::metadata(&path).unwrap().len() as usize;
    stamp::append(&path, "proof", b"{\"second\":true}").unwrap();
    let whole = fs::read(&path).unwrap();
    for written in (end..=whole.len() - 32).step_by(3) {
        let mut bytes = whole.clone();
        bytes[written..].fill(0);
        fs::write(&path, &bytes).unwrap();
        let stamps = Bundle::open(&path).unwrap().stamps().unwrap();
        assert_eq!(stamps.fault, None, "written up to {written}");
        assert!(stamps.torn.is_some() && stamps.records.len() == 1);
        stamp::append(&path, "note", b"3").unwrap();
        let stamps = Bundle::open(&path).unwrap().stamps().unwrap();
        assert_eq!((stamps.fault, stamps.torn), (None, None));
        assert_eq!(stamps.records.len(), 2);
    }
}

/// Zeros are a torn record up to the longest that there is; the file has holes, not bytes.
#[test]
fn more_zeros_than_a_record_has_are_a_fault() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    write(&path, draft()).unwrap();
    let content = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for (zeros, torn) in [
        (16_777_352, true),
        (16_777_353, false),
        (1_u64 << 40, false),
    ] {
        file.set_len(content + zeros).unwrap();
        let stamps = Bundle::open(&path).unwrap().stamps().unwrap();
        assert_eq!(stamps.torn.is_some(), torn, "{zeros}");
        let rule = stamps.fault.map(|f| f.rule);
        assert_eq!(rule, (!torn).then_some("8.1"), "{zeros}");
    }
}

#[test]
fn nothing_is_appended_behind_a_fault_or_beside_another_writer() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    write(&path, draft()).unwrap();
    let lock = fs::OpenOptions::new().write(true).open(&path).unwrap();
    lock.lock().unwrap();
    let error = stamp::append(&path, "proof", b"{}").unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    drop(lock);

    stamp::append(&path, "proof", b"{}").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = stamp::append(&path, "proof", b"{}").unwrap_err();
    assert_eq!((error.kind(), error.rule()), (Kind::Altered, Some("8.5")));
    assert_eq!(fs::read(&path).unwrap(), bytes, "untouched");
}

#[test]
fn what_is_against_the_rules_is_not_appended() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    write(&path, draft()).unwrap();
    let before = fs::read(&path).unwrap();
    for (kind, payload, rule) in [
        ("", &b"{}"[..], "8.1"),
        ("Proof", b"{}", "8.1"),
        ("seventeen_letters", b"{}", "8.1"),
        ("proof", b"", "8.6"),
        ("proof", b"{", "8.6"),
        ("proof", b"{\"a\":1,\"a\":2}", "8.6"),
    ] {
        let error = stamp::append(&path, kind, payload).unwrap_err();
        assert_eq!(error.rule(), Some(rule), "{kind} {payload:?}");
    }
    let large = vec![b' '; (16 << 20) + 1];
    let error = stamp::append(&path, "proof", &large).unwrap_err();
    assert_eq!(error.rule(), Some("8.2"));
    assert_eq!(fs::read(&path).unwrap(), before);
}
