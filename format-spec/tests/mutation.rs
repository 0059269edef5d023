//! A changed byte is never accepted, wherever it is, and nothing that a file holds makes the reader panic.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use qpx_format::{
    Bundle,
    preamble::PREAMBLE,
    stamp::{self, STAMP_HEADER},
    verify,
};
use std::{fs, path::Path};
use support::{cases::sample, draft, write};

/// What is wrong with the bundle at `path`, if anything.
fn fault(path: &Path) -> Option<qpx_format::Error> {
    let report = Bundle::open(path).and_then(|bundle| {
        // Nothing here may panic, whatever the bytes are.
        let _ = bundle.extents().count();
        let _ = verify::quick(&bundle)?;
        verify::full(&bundle, 1, &|_| {})
    });
    match report {
        Ok(report) => report.faults.into_iter().next(),
        Err(error) => Some(error),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// A bundle with two stamps, and the places where something begins or ends.
fn stamped(path: &Path) -> (Vec<u8>, Vec<usize>) {
    write(path, draft()).unwrap();
    stamp::append(path, "proof", br#"{"a": "0123456789"}"#).unwrap();
    stamp::append(path, "note", br#""a few words""#).unwrap();
    let bytes = fs::read(path).unwrap();
    let bundle = Bundle::open(path).unwrap();
    let table = bundle.table_bytes();
    let content = bundle.content_length();
    let mut edges = vec![0, bytes.len() as u64, content];
    edges.extend([
        16384,
        16384 + bundle.manifest_text().len() as u64,
        table.start,
        table.end,
    ]);
    edges.extend(PREAMBLE.iter().map(|f| f.at as u64));
    for segment in &bundle.manifest().checked.segments {
        edges.extend([segment.offset, segment.offset + segment.length]);
    }
    for file in &bundle.manifest().checked.attached {
        edges.extend([file.offset, file.offset + file.stored]);
    }
    for extent in bundle.extents() {
        edges.extend([extent.offset, extent.offset + extent.length]);
        edges.push(extent.offset + extent.leaf_bytes.min(extent.length));
    }
    for stamp in bundle.stamps().unwrap().records {
        edges.extend(STAMP_HEADER.iter().map(|f| stamp.offset + f.at as u64));
        let payload = stamp.offset + 104;
        let digest = stamp.offset + stamp.length - 32;
        edges.extend([payload, payload + stamp.payload.len() as u64, digest]);
    }
    // The last byte before each edge and the first one behind it.
    let mut places: Vec<usize> = edges
        .into_iter()
        .flat_map(|edge| [edge.wrapping_sub(1), edge])
        .filter_map(|at| usize::try_from(at).ok().filter(|at| *at < bytes.len()))
        .collect();
    places.sort_unstable();
    places.dedup();
    (bytes, places)
}

#[test]
fn a_flipped_bit_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let (bytes, mut places) = stamped(&path);
    assert!(fault(&path).is_none());
    assert!(places.len() > 150, "{}", places.len());
    let mut random = Random(0x5eed);
    places.extend((0..1000).map(|_| random.below(bytes.len())));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    use std::os::unix::fs::FileExt as _;
    for at in places {
        for bit in [0, 7] {
            let changed = bytes[at] ^ (1 << bit);
            file.write_all_at(&[changed], at as u64).unwrap();
            let found = fault(&path);
            assert!(found.is_some(), "bit {bit} of byte {at} is not missed");
        }
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    assert!(fault(&path).is_none());
}

#[test]
fn a_cut_file_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let (bytes, places) = stamped(&path);
    let content = Bundle::open(&path).unwrap().content_length() as usize;
    for end in places.into_iter().filter(|end| *end < content) {
        fs::write(&path, &bytes[..end]).unwrap();
        let found = fault(&path).unwrap();
        let kind = found.kind();
        use qpx_format::error::Kind;
        let expected = if end < 8 {
            Kind::NotABundle
        } else {
            Kind::CutShort
        };
        assert_eq!(kind, expected, "{end}: {found}");
    }
}

/// A manifest that was changed and sealed again: refused, or a bundle that is consistent with itself. Never a panic.
#[test]
fn a_resealed_manifest_never_panics() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let sample = sample();
    let mut random = Random(0xfeed);
    let (mut refused, mut accepted) = (0, 0);
    let numbers = [
        "0",
        "1",
        "255",
        "16384",
        "4294967296",
        "9007199254740991",
        "9007199254740992",
        "18446744073709551615",
        "-1",
        "1e30",
        "null",
        "\"\"",
        "[]",
        "{}",
        "true",
    ];
    for round in 0..1500 {
        let mut raw = sample.clone();
        if round % 3 == 0 {
            let at = random.below(raw.manifest.len());
            raw.manifest[at] = random.below(256) as u8;
        } else {
            // A number somewhere becomes another value.
            let text = String::from_utf8(raw.manifest).unwrap();
            let starts: Vec<usize> = text
                .match_indices(|c: char| c.is_ascii_digit())
                .map(|(i, _)| i)
                .filter(|i| !text.as_bytes()[i - 1].is_ascii_alphanumeric())
                .collect();
            let start = starts[random.below(starts.len())];
            let length = text[start..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(1);
            let new = numbers[random.below(numbers.len())];
            raw.manifest = [&text[..start], new, &text[start + length..]]
                .concat()
                .into_bytes();
        }
        fs::write(&path, raw.bytes()).unwrap();
        match fault(&path) {
            Some(_) => refused += 1,
            None => accepted += 1,
        }
    }
    println!("{refused} refused, {accepted} accepted (changes of claims and names)");
    assert!(refused > 900 && accepted > 0);
}

/// Page 0 with wild numbers, sealed again.
#[test]
fn a_resealed_page_0_never_panics() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.qpx");
    let sample = sample();
    let wild = [
        0,
        1,
        31,
        32,
        16383,
        16384,
        1 << 32,
        1 << 53,
        u64::MAX - 16384,
        u64::MAX,
    ];
    for field in PREAMBLE.iter().filter(|f| f.bytes == 8 && f.at > 0) {
        for number in wild {
            let raw = sample.clone().field(field.name, &number.to_le_bytes());
            if raw.bytes() == sample.bytes() {
                continue;
            }
            fs::write(&path, raw.bytes()).unwrap();
            assert!(fault(&path).is_some(), "{} {number}", field.name);
        }
    }
}
