//! A strict pass over a safetensors header: <https://github.com/huggingface/safetensors>, section "Format".
//!
//! The file is an u64 length N, N bytes of JSON that begin with `{` (spaces may follow it), and the data. Every rule that the
//! format states is checked here, in our own words and all at once; what the format allows (unaligned data) passes with a note.
#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::{dtype::Dtype, fault::Fault};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::{collections::BTreeSet, fmt};

/// The longest header that the format allows.
pub(crate) const LONGEST_HEADER_BYTES: u64 = 100_000_000;

/// One tensor of a shard.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its dtype.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<u64>,
    /// First byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

impl Entry {
    /// How many values it has.
    pub fn values(&self) -> u64 {
        // The header pass has checked that this fits.
        self.shape.iter().fold(1, |n, d| n.saturating_mul(*d))
    }
}

/// A header that keeps every rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    /// Tensors in the order of their data.
    pub entries: Vec<Entry>,
    /// What stands under `__metadata__`.
    pub metadata: Vec<(String, String)>,
    /// Tensors whose data begins at no multiple of its width: valid, worth a note.
    pub unaligned: u64,
}

/// Checks the JSON part of a header; the file is `file_bytes` long.
pub(crate) fn parse(json: &[u8], file_bytes: u64) -> Result<Header, Vec<Fault>> {
    match json.first() {
        Some(b'{') => {}
        first => {
            return Err(vec![Fault::HeaderStart {
                found: first.copied(),
            }]);
        }
    }
    let body = match json.iter().rposition(|b| *b != b' ') {
        Some(last) => json.get(..=last).unwrap_or(json),
        None => json,
    };
    if let Some(found @ (b'\n' | b'\r' | b'\t')) = body.last().copied() {
        return Err(vec![Fault::HeaderEnd { found }]);
    }
    let raw: Raw = serde_json::from_slice(body).map_err(|error| {
        vec![Fault::HeaderJson {
            reason: error.to_string(),
        }]
    })?;
    check(raw, json, file_bytes)
}

fn check(raw: Raw, json: &[u8], file_bytes: u64) -> Result<Header, Vec<Fault>> {
    let mut faults = Vec::new();
    let data_start = u64::try_from(json.len())
        .ok()
        .and_then(|n| n.checked_add(8))
        .unwrap_or(u64::MAX);
    let data_bytes = file_bytes.saturating_sub(data_start);
    let mut header = Header {
        metadata: raw.metadata,
        ..Header::default()
    };
    for (name, tensor) in raw.tensors {
        if name.is_empty() || name.contains('\0') || escapes(&name) {
            faults.push(Fault::Name { tensor: name });
            continue;
        }
        let Some(dtype) = Dtype::by_name(&tensor.dtype) else {
            faults.push(Fault::UnknownDtype {
                tensor: name,
                dtype: tensor.dtype,
            });
            continue;
        };
        if dtype.encoding().is_none() {
            faults.push(Fault::SharedBytes {
                tensor: name,
                dtype: dtype.name,
            });
            continue;
        }
        let [begin, end] = tensor.data_offsets;
        let values = tensor
            .shape
            .iter()
            .try_fold(1_u64, |n, d| n.checked_mul(*d));
        let expected = values.and_then(|n| dtype.bytes(n));
        let found = end.checked_sub(begin);
        match (expected, found) {
            (Some(expected), Some(found)) if expected == found => {
                let Some(offset) = data_start.checked_add(begin) else {
                    faults.push(Fault::Offsets {
                        tensor: name,
                        begin,
                        end,
                    });
                    continue;
                };
                if !offset.is_multiple_of(dtype.width().max(1)) {
                    header.unaligned = header.unaligned.saturating_add(1);
                }
                header.entries.push(Entry {
                    name,
                    dtype,
                    shape: tensor.shape,
                    offset,
                    length: found,
                });
            }
            (_, None) => faults.push(Fault::Offsets {
                tensor: name,
                begin,
                end,
            }),
            (expected, Some(found)) => faults.push(Fault::Size {
                tensor: name,
                dtype: dtype.name,
                shape: tensor.shape,
                expected,
                found,
            }),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    header
        .entries
        .sort_by(|a, b| (a.offset, a.length, &a.name).cmp(&(b.offset, b.length, &b.name)));
    cover(&header.entries, data_start, data_bytes, &mut faults);
    if faults.is_empty() {
        Ok(header)
    } else {
        Err(faults)
    }
}

/// The tensors' data must cover the file from the header to its end, each byte once.
fn cover(entries: &[Entry], data_start: u64, data_bytes: u64, faults: &mut Vec<Fault>) {
    let mut next = data_start;
    let mut before: Option<&Entry> = None;
    for entry in entries {
        if entry.offset > next {
            faults.push(Fault::Hole {
                before: entry.name.clone(),
                start: next,
                end: entry.offset,
            });
        } else if entry.offset < next {
            faults.push(Fault::Overlap {
                first: before.map(|b| b.name.clone()).unwrap_or_default(),
                second: entry.name.clone(),
                bytes: next.saturating_sub(entry.offset),
            });
        }
        next = next.max(entry.offset.saturating_add(entry.length));
        before = Some(entry);
    }
    let file_end = data_start.saturating_add(data_bytes);
    if next > file_end {
        let mut cut = entries
            .iter()
            .filter(|e| e.offset.saturating_add(e.length) > file_end);
        let first = cut.next().map(|e| e.name.clone()).unwrap_or_default();
        faults.push(Fault::Truncated {
            missing: next.saturating_sub(file_end),
            tensor: first,
            others: u64::try_from(cut.count()).unwrap_or(u64::MAX),
            expected: next,
            found: file_end,
        });
    } else if next < file_end {
        faults.push(Fault::Trailing {
            bytes: file_end.saturating_sub(next),
            expected: next,
        });
    }
}

/// Whether a name could lead out of a folder if somebody wrote it as a path.
fn escapes(name: &str) -> bool {
    name.starts_with('/') || name.split('/').any(|part| matches!(part, ".." | "."))
}

struct Raw {
    metadata: Vec<(String, String)>,
    tensors: Vec<(String, RawTensor)>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
                let mut raw = Raw {
                    metadata: Vec::new(),
                    tensors: Vec::new(),
                };
                let mut seen = BTreeSet::new();
                while let Some(key) = access.next_key::<String>()? {
                    if key == "__metadata__" {
                        raw.metadata = access.next_value::<Pairs>()?.0;
                    } else {
                        raw.tensors.push((key.clone(), access.next_value()?));
                    }
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(format!("`{key}` stands twice")));
                    }
                }
                Ok(raw)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Pairs, A::Error> {
                let (mut pairs, mut seen) = (Vec::new(), BTreeSet::new());
                while let Some((key, value)) = access.next_entry::<String, String>()? {
                    if !seen.insert(key.clone()) {
                        let message = format!("`{key}` stands twice in __metadata__");
                        return Err(de::Error::custom(message));
                    }
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests;
