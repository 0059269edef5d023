//! Records appended after the content: they never change the bundle's id, and each names the one before it.
//!
//! Rules: SPEC.md, chapter 8. A record that a crash cut short is told apart from one that was altered: the first is
//! reported and ignored, the second is a fault.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{
    Bundle, Digest, Error,
    digest::{hex, of},
    error::Place,
    json,
    preamble::Field,
    scan,
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::FileExt as _,
    path::Path,
};

/// The first bytes of a record.
pub const STAMP_MAGIC: [u8; 8] = *b"QPXSTAMP";
/// Version of a record.
pub const STAMP_VERSION: u16 = 1;
/// Largest payload.
pub const MAX_PAYLOAD_BYTES: u64 = 16 << 20;
/// Most records behind one bundle.
pub const MAX_STAMPS: usize = 65_536;

const MAGIC: Field = Field::at(0, 8, "magic", "`QPXSTAMP`");
const VERSION: Field = Field::at(8, 2, "version", "1");
const ZERO: Field = Field::at(10, 6, "reserved", "zeros");
const KIND: Field = Field::at(16, 16, "kind", "ASCII word, filled up with zeros");
const LENGTH: Field = Field::at(32, 8, "payload length", "bytes of the payload");
const ID: Field = Field::at(40, 32, "bundle id", "BLAKE3 of page 0");
const PREVIOUS: Field = Field::at(
    72,
    32,
    "previous digest",
    "digest of the record before it; zeros in the first",
);

/// The fields of a record's header. Behind it: payload, zeros to a multiple of 8, BLAKE3 of all of the record before it.
pub const STAMP_HEADER: &[Field] = &[MAGIC, VERSION, ZERO, KIND, LENGTH, ID, PREVIOUS];
/// Bytes of a record's header.
pub const HEADER_BYTES: u64 = 104;
const DIGEST_BYTES: u64 = 32;

/// One intact record.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// `proof`, …
    pub kind: String,
    /// JSON text.
    pub payload: Vec<u8>,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes of the whole record.
    pub length: u64,
    /// Its digest, which the next record names.
    pub digest: Digest,
}

/// What stands after the content.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    /// Intact records in order.
    pub records: Vec<Stamp>,
    /// What is wrong behind the last intact record, if anything: something was altered there.
    pub fault: Option<Fault>,
    /// What a crash left behind the last intact record, if anything. It is no fault: [`append`] cuts it off.
    pub torn: Option<Torn>,
    /// Where the next record goes: the end of the last intact one.
    pub end: u64,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule's number in SPEC.md.
    pub rule: &'static str,
    /// Number of the record, from 0.
    pub record: usize,
    /// Bytes in the file.
    pub bytes: std::ops::Range<u64>,
    /// What is expected there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// A record that was not written to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The bytes that are there.
    pub bytes: std::ops::Range<u64>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "stamp {} at bytes {}..{} is not what was written (rule {}: expected {}, found {})",
            self.record, self.bytes.start, self.bytes.end, self.rule, self.expected, self.found
        )
    }
}

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the last stamp, at bytes {}..{}, was cut short and is ignored",
            self.bytes.start, self.bytes.end
        )
    }
}

impl Fault {
    /// As an error about the file at `path`.
    pub fn in_file(&self, path: &Path) -> Error {
        Error::Altered {
            place: Box::new(Place {
                file: path.to_path_buf(),
                region: "stamps".to_owned(),
                subject: Some(format!("stamp {}", self.record)),
                bytes: self.bytes.clone(),
                leaf: None,
            }),
            rule: self.rule,
            expected: self.expected.clone(),
            found: self.found.clone(),
        }
    }
}

/// Whether `kind` is a word of 1 to 16 bytes.
fn is_kind(kind: &str) -> bool {
    (1..=16).contains(&kind.len())
        && kind.starts_with(|c: char| c.is_ascii_lowercase())
        && kind
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Bytes of a record with a payload of `payload` bytes.
fn record_bytes(payload: u64) -> u64 {
    HEADER_BYTES
        .saturating_add(payload.next_multiple_of(8))
        .saturating_add(DIGEST_BYTES)
}

/// A record as it is written.
fn record(kind: &str, payload: &[u8], id: &Digest, previous: &Digest) -> (Vec<u8>, Digest) {
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    let mut bytes = vec![0; usize::try_from(HEADER_BYTES).unwrap_or(0)];
    MAGIC.put(&mut bytes, &STAMP_MAGIC);
    VERSION.put(&mut bytes, &STAMP_VERSION.to_le_bytes());
    KIND.put(&mut bytes, kind.as_bytes());
    LENGTH.put(&mut bytes, &length.to_le_bytes());
    ID.put(&mut bytes, id);
    PREVIOUS.put(&mut bytes, previous);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let digest = of(&bytes);
    bytes.extend_from_slice(&digest);
    (bytes, digest)
}

/// Reads the records that start at `content` and belong to the bundle `id`.
pub(crate) fn read(file: &File, path: &Path, content: u64, id: &Digest) -> Result<Stamps, Error> {
    let end = file.metadata().map_err(Error::io(path, "look at"))?.len();
    let mut stamps = Stamps {
        end: content,
        ..Stamps::default()
    };
    let mut previous = [0; 32];
    while stamps.end < end {
        match next(file, path, stamps.end..end, id, &previous)? {
            Next::Record(stamp) if stamps.records.len() < MAX_STAMPS => {
                stamps.end = stamps.end.saturating_add(stamp.length);
                previous = stamp.digest;
                stamps.records.push(stamp);
            }
            Next::Record(stamp) => {
                stamps.fault = Some(Fault {
                    rule: "8.2",
                    record: stamps.records.len(),
                    bytes: stamp.offset..end,
                    expected: format!("at most {MAX_STAMPS} stamps"),
                    found: "more".to_owned(),
                });
                break;
            }
            Next::Torn => {
                stamps.torn = Some(Torn {
                    bytes: stamps.end..end,
                });
                break;
            }
            Next::Fault(_) if unwritten(file, path, stamps.end..end, id, &previous)? => {
                stamps.torn = Some(Torn {
                    bytes: stamps.end..end,
                });
                break;
            }
            Next::Fault(mut fault) => {
                fault.record = stamps.records.len();
                stamps.fault = Some(fault);
                break;
            }
        }
    }
    Ok(stamps)
}

enum Next {
    Record(Stamp),
    Torn,
    Fault(Fault),
}

/// Reads the record at `bytes.start`; `bytes.end` is the end of the file.
fn next(
    file: &File,
    path: &Path,
    bytes: std::ops::Range<u64>,
    id: &Digest,
    previous: &Digest,
) -> Result<Next, Error> {
    let left = bytes.end.saturating_sub(bytes.start);
    let read = |length: u64| {
        let mut buffer = vec![0; usize::try_from(length).unwrap_or(0)];
        scan::read_exact(file, path, bytes.start, &mut buffer).map(|()| buffer)
    };
    let fault = |rule, field: Field, expected: String, found: String| {
        let at = |n: usize| {
            let n = u64::try_from(n).unwrap_or(u64::MAX);
            bytes.start.saturating_add(n)
        };
        Ok(Next::Fault(Fault {
            rule,
            record: 0,
            bytes: at(field.at)..at(field.at.saturating_add(field.bytes)).min(bytes.end),
            expected,
            found,
        }))
    };
    let header = read(left.min(HEADER_BYTES))?;
    if let Some(Mismatch {
        rule,
        field,
        expected,
    }) = mismatch(&header, id, previous)
    {
        let rule = if left < HEADER_BYTES { "8.7" } else { rule };
        return fault(rule, field, expected, hex(part(&header, field)));
    }
    if left < HEADER_BYTES {
        return Ok(Next::Torn);
    }
    let word = part(&header, KIND).split(|b| *b == 0).next();
    let word = std::str::from_utf8(word.unwrap_or_default()).unwrap_or_default();
    let payload = LENGTH.u64(&header);
    let length = record_bytes(payload);
    if length > left {
        return Ok(
            if left <= record_bytes(MAX_PAYLOAD_BYTES) && ends_whole(&read(left)?) {
                return fault(
                    "8.2",
                    LENGTH,
                    "the length of the record that is there".to_owned(),
                    payload.to_string(),
                );
            } else {
                Next::Torn
            },
        );
    }
    let whole = read(length)?;
    let (body, sealed) = whole
        .split_at_checked(whole.len().saturating_sub(32))
        .unwrap_or_default();
    let digest = of(body);
    let all = Field::at(0, whole.len(), "", "");
    if digest != *sealed {
        let short = |d: &[u8]| hex(d).chars().take(16).chain(['…']).collect();
        return fault("8.5", all, short(sealed), short(&digest));
    }
    let start = usize::try_from(HEADER_BYTES).unwrap_or(usize::MAX);
    let (text, padding) = body
        .get(start..)
        .and_then(|rest| rest.split_at_checked(usize::try_from(payload).ok()?))
        .unwrap_or_default();
    if padding.iter().any(|b| *b != 0) {
        return fault("8.5", all, "zeros".to_owned(), hex(padding));
    }
    if let Err((_, reason)) = json::parse(text) {
        return fault("8.6", all, "one JSON value".to_owned(), reason);
    }
    Ok(Next::Record(Stamp {
        kind: word.to_owned(),
        payload: text.to_vec(),
        offset: bytes.start,
        length,
        digest,
    }))
}

/// A field of a header that is not as rules 8.1 to 8.4 want it.
struct Mismatch {
    rule: &'static str,
    field: Field,
    expected: String,
}

/// What is wrong with a header of which `header` is there: all of it, or its beginning.
fn mismatch(header: &[u8], id: &Digest, previous: &Digest) -> Option<Mismatch> {
    let (expected, _) = record("", &[], id, previous);
    let wrong = |rule, field, expected| {
        Some(Mismatch {
            rule,
            field,
            expected,
        })
    };
    for (field, rule) in [
        (MAGIC, "8.1"),
        (VERSION, "8.1"),
        (ZERO, "8.1"),
        (ID, "8.3"),
        (PREVIOUS, "8.4"),
    ] {
        if part(header, field) != common(&expected, field, header) {
            return wrong(rule, field, hex(part(&expected, field)));
        }
    }
    let kind = part(header, KIND);
    let used = kind.iter().position(|b| *b == 0).unwrap_or(kind.len());
    let (word, fill) = kind.split_at(used);
    let is_word = std::str::from_utf8(word).is_ok_and(is_kind);
    if !kind.is_empty() && (!is_word || fill.iter().any(|b| *b != 0)) {
        return wrong("8.1", KIND, "a lower-case word".to_owned());
    }
    // Bytes that are not there count as zeros: the smallest length that it can be.
    let mut length = [0; 8];
    for (to, from) in length.iter_mut().zip(part(header, LENGTH)) {
        *to = *from;
    }
    if u64::from_le_bytes(length) > MAX_PAYLOAD_BYTES {
        return wrong("8.2", LENGTH, format!("at most {MAX_PAYLOAD_BYTES}"));
    }
    None
}

/// Whether a crash left these bytes: the file had grown, and all or the end of what was written had not reached the disk.
fn unwritten(
    file: &File,
    path: &Path,
    bytes: std::ops::Range<u64>,
    id: &Digest,
    previous: &Digest,
) -> Result<bool, Error> {
    let left = bytes.end.saturating_sub(bytes.start);
    if left > record_bytes(MAX_PAYLOAD_BYTES) {
        return Ok(false);
    }
    let mut rest = vec![0; usize::try_from(left).unwrap_or(0)];
    scan::read_exact(file, path, bytes.start, &mut rest)?;
    let Some(last) = rest.iter().rposition(|b| *b != 0) else {
        return Ok(true);
    };
    let (written, zeros) = rest.split_at(last.saturating_add(1));
    // At least the digest is missing. A shorter run of zeros may be an altered digest.
    if u64::try_from(zeros.len()).unwrap_or(0) < DIGEST_BYTES {
        return Ok(false);
    }
    let whole = usize::try_from(HEADER_BYTES).unwrap_or(usize::MAX);
    let header = written.get(..whole).unwrap_or(written);
    let reaches = header.len() < whole || record_bytes(LENGTH.u64(header)) >= left;
    Ok(reaches && mismatch(header, id, previous).is_none())
}

/// The bytes of `field` that are there.
fn part(bytes: &[u8], field: Field) -> &[u8] {
    let end = field.at.saturating_add(field.bytes).min(bytes.len());
    bytes.get(field.at..end).unwrap_or_default()
}

/// As many bytes of `field` of `expected` as `found` has.
fn common<'a>(expected: &'a [u8], field: Field, found: &[u8]) -> &'a [u8] {
    let length = part(found, field).len();
    part(expected, field).get(..length).unwrap_or_default()
}

/// Whether these bytes are a whole record but for its length field: then it was altered, not cut short.
fn ends_whole(bytes: &[u8]) -> bool {
    let Some((body, sealed)) = bytes.split_at_checked(bytes.len().saturating_sub(32)) else {
        return false;
    };
    let whole = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let Some(longest) = whole.checked_sub(record_bytes(0)) else {
        return false;
    };
    let mut mended = body.to_vec();
    (0..8).any(|padding| {
        let length = longest.saturating_sub(padding);
        if record_bytes(length) != whole {
            return false;
        }
        LENGTH.put(&mut mended, &length.to_le_bytes());
        of(&mended) == *sealed
    })
}

/// Appends a record to a sealed bundle and syncs it. A record cut short by a crash is cut off first; any other fault is an error.
///
/// # Errors
/// What [`Bundle::open`] finds; [`Error::Altered`] when a stamp is; [`Error::Busy`] while another process appends;
/// [`Error::Broken`] when `kind` or `payload` is against the rules; [`Error::Io`].
pub fn append(path: &Path, kind: &str, payload: &[u8]) -> Result<Stamp, Error> {
    let broken = |rule, reason: String| {
        crate::error::Fault::new(rule, "stamps", reason)
            .of(kind)
            .in_file(Path::new(""))
    };
    if !is_kind(kind) {
        let reason = "a kind is a lower-case word of at most 16 bytes".to_owned();
        return Err(broken("8.1", reason));
    }
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    if length > MAX_PAYLOAD_BYTES {
        return Err(broken(
            "8.2",
            format!("a payload has at most {MAX_PAYLOAD_BYTES} bytes, this one {length}"),
        ));
    }
    json::parse(payload).map_err(|(_, reason)| broken("8.6", reason))?;

    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Error::io(path, "open for appending"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Busy {
                file: path.to_path_buf(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(Error::io(path, "lock")(error)),
    }
    let clone = file.try_clone().map_err(Error::io(path, "open again"))?;
    let bundle = Bundle::from_file(clone, path)?;
    let stamps = bundle.stamps()?;
    if let Some(fault) = stamps.fault {
        return Err(fault.in_file(path));
    }
    if stamps.torn.is_some() {
        file.set_len(stamps.end)
            .map_err(Error::io(path, "cut a torn stamp off"))?;
    }
    if stamps.records.len() >= MAX_STAMPS {
        return Err(broken(
            "8.2",
            format!("a bundle has at most {MAX_STAMPS} stamps"),
        ));
    }
    let previous = stamps.records.last().map_or([0; 32], |r| r.digest);
    let (bytes, digest) = record(kind, payload, &bundle.id(), &previous);
    let written = file
        .write_all_at(&bytes, stamps.end)
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        // Half a record would be ignored; better none.
        let _ = file.set_len(stamps.end);
        return Err(Error::io(path, "append to")(error));
    }
    Ok(Stamp {
        kind: kind.to_owned(),
        payload: payload.to_vec(),
        offset: stamps.end,
        length: record_bytes(length),
        digest,
    })
}

/// Bundle id shortened for people: first 16 hex digits.
pub fn short(id: &Digest) -> String {
    hex(id).chars().take(16).collect()
}
