//! Bundles with good, torn and altered stamps.

use super::{super::raw::RawStamp, Cases, Verdict, sample};
use qpx_format::error::Kind;

pub(super) fn stamps(cases: &mut Cases) {
    let raw = sample();
    let id = raw.id();
    let first = RawStamp::new("proof", b"{\"a\":[1,2]}", &id, &[0; 32]);
    let previous = first.bytes()[first.bytes().len() - 32..].to_vec();
    let second = RawStamp::new("note", b"\"twelve b\"", &id, &previous);
    let with = |stamps: &[Vec<u8>]| {
        let mut raw = sample();
        raw.stamps = stamps.concat();
        raw.bytes()
    };
    let one = first.bytes();
    let two = second.bytes();
    let zeros_from = |at: usize| {
        let mut bytes = second.bytes();
        bytes[at..].fill(0);
        bytes
    };
    let rules = ["8.1", "8.2", "8.3", "8.4", "8.5", "8.6"];
    let good = with(&[one.clone(), two.clone()]);
    cases.good("stamps", Verdict::Good, &rules, good);
    for (what, tail) in [
        ("zeros", vec![0; 500]),
        ("header-cut", two[..50].to_vec()),
        ("one-byte", two[..1].to_vec()),
        ("payload-cut", two[..110].to_vec()),
        ("digest-cut", two[..two.len() - 1].to_vec()),
        ("digest-zeros", zeros_from(two.len() - 32)),
        ("payload-zeros", zeros_from(106)),
        ("header-zeros", zeros_from(50)),
    ] {
        let bytes = with(&[one.clone(), tail]);
        cases.good(&format!("torn-{what}"), Verdict::Torn, &["8.7"], bytes);
    }
    let mut altered = |rule, what: &str, tail: Vec<u8>| {
        cases.bad(rule, what, Kind::Altered, with(&[one.clone(), tail]));
    };
    altered("8.1", "magic", second.clone().set(0, b"QPXSTAMQ").bytes());
    altered("8.1", "version", second.clone().set(8, &[2]).bytes());
    altered("8.1", "reserved", second.clone().set(13, &[1]).bytes());
    altered("8.1", "kind", second.clone().set(16, b"No").bytes());
    altered("8.1", "no-kind", second.clone().set(16, &[0; 4]).bytes());
    altered(
        "8.1",
        "behind-the-kind",
        second.clone().set(25, b"x").bytes(),
    );
    let long = ((16_u64 << 20) + 1).to_le_bytes();
    altered("8.2", "too-long", second.clone().set(32, &long).bytes());
    let mut length = two.clone();
    length[32] ^= 0x40;
    altered("8.2", "altered", length);
    altered(
        "8.3",
        "another-bundle",
        second.clone().set(40, &[7; 32]).bytes(),
    );
    altered("8.4", "first-again", one.clone());
    altered(
        "8.4",
        "another-chain",
        second.clone().set(72, &[0; 32]).bytes(),
    );
    let mut payload = two.clone();
    payload[106] ^= 1;
    altered("8.5", "payload", payload);
    let mut digest = two.clone();
    *digest.last_mut().unwrap() ^= 1;
    altered("8.5", "digest", digest);
    let mut padding = second.clone();
    padding.padding = vec![1; padding.padding.len()];
    altered("8.5", "padding", padding.bytes());
    let not_json = RawStamp::new("note", b"hello", &id, &previous);
    cases.bad(
        "8.6",
        "not-json",
        Kind::Altered,
        with(&[one.clone(), not_json.bytes()]),
    );
    cases.or(&["3.1"]);
    let twice = RawStamp::new("note", b"{\"a\":1,\"a\":1}", &id, &previous);
    cases.bad(
        "8.6",
        "key-twice",
        Kind::Altered,
        with(&[one.clone(), twice.bytes()]),
    );
    cases.or(&["3.2"]);
    for (what, tail, rule) in [
        ("no-stamp-behind", b"something else".to_vec(), "8.1"),
        (
            "bad-kind-cut",
            second.clone().set(16, b"No").bytes()[..50].to_vec(),
            "8.1",
        ),
        (
            "bad-length-cut",
            second.clone().set(32, &long).bytes()[..50].to_vec(),
            "8.2",
        ),
    ] {
        cases.bad("8.7", what, Kind::Altered, with(&[one.clone(), tail]));
        cases.or(&[rule]);
    }
    // Zeros where the digest should be, and more behind them than one record has.
    let tail = [zeros_from(two.len() - 32), vec![0; 64]].concat();
    cases.bad(
        "8.5",
        "zeros-behind-the-digest",
        Kind::Altered,
        with(&[one.clone(), tail]),
    );
    cases.or(&["8.7"]);
    let mut digest = two.clone();
    let end = digest.len();
    digest[end - 31..].fill(0);
    cases.bad(
        "8.5",
        "digest-almost-zeros",
        Kind::Altered,
        with(&[one.clone(), digest]),
    );
}
