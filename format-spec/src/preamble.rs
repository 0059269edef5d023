//! Page 0: the one table of its fields, from which it is written, read and documented.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{
    Digest, PAGE_BYTES,
    digest::of,
    error::{Error, Fault, Place, altered},
    json::MAX_INTEGER,
};
use std::path::Path;

/// The first bytes of every bundle. They show a transfer that changed line ends or stripped the eighth bit.
pub const MAGIC: [u8; 8] = *b"\x89QPX\r\n\x1a\n";
/// The version that this crate writes, and the highest major version that it reads.
pub const MAJOR: u16 = 1;
/// The minor version that this crate writes.
pub const MINOR: u16 = 0;
/// Largest manifest.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Largest digest table.
pub const MAX_TABLE_BYTES: u64 = 256 << 20;
/// Page 0 in memory.
pub const PAGE: usize = 16 * 1024;

/// A field of a fixed layout: where it is, how long, and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// First byte.
    pub at: usize,
    /// Length in bytes.
    pub bytes: usize,
    /// Its name.
    pub name: &'static str,
    /// What it holds, for SPEC.md.
    pub holds: &'static str,
}

impl Field {
    pub(crate) const fn at(
        at: usize,
        bytes: usize,
        name: &'static str,
        holds: &'static str,
    ) -> Self {
        Self {
            at,
            bytes,
            name,
            holds,
        }
    }

    pub(crate) fn get<const N: usize>(self, bytes: &[u8]) -> [u8; N] {
        let end = self.at.saturating_add(N);
        bytes
            .get(self.at..end)
            .and_then(|s| s.try_into().ok())
            .unwrap_or([0; N])
    }

    pub(crate) fn u64(self, bytes: &[u8]) -> u64 {
        u64::from_le_bytes(self.get(bytes))
    }

    pub(crate) fn u16(self, bytes: &[u8]) -> u16 {
        u16::from_le_bytes(self.get(bytes))
    }

    pub(crate) fn put(self, page: &mut [u8], value: &[u8]) {
        let end = self.at.saturating_add(value.len());
        if let Some(place) = page.get_mut(self.at..end) {
            place.copy_from_slice(value);
        }
    }
}

const MAGIC_FIELD: Field = Field::at(0, 8, "magic", "`89 51 50 58 0D 0A 1A 0A`");
const MAJOR_FIELD: Field = Field::at(8, 2, "major", "major version: 1");
const MINOR_FIELD: Field = Field::at(10, 2, "minor", "minor version: 0");
const PAGE_FIELD: Field = Field::at(12, 4, "page bytes", "16384");
const CONTENT: Field = Field::at(
    16,
    8,
    "content length",
    "bytes of the content; stamps begin there",
);
const MANIFEST_AT: Field = Field::at(
    24,
    8,
    "manifest offset",
    "first byte of the manifest: 16384",
);
const MANIFEST_LENGTH: Field = Field::at(32, 8, "manifest length", "bytes of the manifest");
const MANIFEST_DIGEST: Field = Field::at(40, 32, "manifest digest", "BLAKE3 of the manifest");
const TABLE_AT: Field = Field::at(72, 8, "table offset", "first byte of the digest table");
const TABLE_LENGTH: Field = Field::at(80, 8, "table length", "bytes of the digest table");
const TABLE_DIGEST: Field = Field::at(88, 32, "table digest", "BLAKE3 of the digest table");
const RESERVED: Field = Field::at(120, 16232, "reserved", "zeros");
const PAGE_DIGEST: Field = Field::at(16352, 32, "page digest", "BLAKE3 of bytes 0..16352");

/// The fields of page 0.
pub const PREAMBLE: &[Field] = &[
    MAGIC_FIELD,
    MAJOR_FIELD,
    MINOR_FIELD,
    PAGE_FIELD,
    CONTENT,
    MANIFEST_AT,
    MANIFEST_LENGTH,
    MANIFEST_DIGEST,
    TABLE_AT,
    TABLE_LENGTH,
    TABLE_DIGEST,
    RESERVED,
    PAGE_DIGEST,
];

/// What page 0 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub minor: u16,
    pub content_length: u64,
    pub manifest_length: u64,
    pub manifest_digest: Digest,
    pub table_offset: u64,
    pub table_length: u64,
    pub table_digest: Digest,
}

impl Preamble {
    /// Page 0 as it is written, and its digest: the bundle id.
    pub fn to_page(&self) -> (Vec<u8>, Digest) {
        let mut page = vec![0; PAGE];
        MAGIC_FIELD.put(&mut page, &MAGIC);
        MAJOR_FIELD.put(&mut page, &MAJOR.to_le_bytes());
        MINOR_FIELD.put(&mut page, &self.minor.to_le_bytes());
        // A page of 16384 bytes, in four bytes.
        PAGE_FIELD.put(&mut page, &16_384_u32.to_le_bytes());
        CONTENT.put(&mut page, &self.content_length.to_le_bytes());
        MANIFEST_AT.put(&mut page, &PAGE_BYTES.to_le_bytes());
        MANIFEST_LENGTH.put(&mut page, &self.manifest_length.to_le_bytes());
        MANIFEST_DIGEST.put(&mut page, &self.manifest_digest);
        TABLE_AT.put(&mut page, &self.table_offset.to_le_bytes());
        TABLE_LENGTH.put(&mut page, &self.table_length.to_le_bytes());
        TABLE_DIGEST.put(&mut page, &self.table_digest);
        let digest = of(page.get(..PAGE_DIGEST.at).unwrap_or_default());
        PAGE_DIGEST.put(&mut page, &digest);
        let id = of(&page);
        (page, id)
    }

    /// Reads page 0: rules 2.1 to 2.9.
    ///
    /// Magic, major version and page digest are where they are in every major version, so that a damaged page is not
    /// taken for a newer one.
    pub fn parse(page: &[u8], file_length: u64, file: &Path) -> Result<Self, Error> {
        let place = |field: Field| Place {
            file: file.to_path_buf(),
            region: "page 0".to_owned(),
            bytes: to_u64(field.at)..to_u64(field.at.saturating_add(field.bytes)),
            ..Place::default()
        };
        let digested = page.get(..PAGE_DIGEST.at).unwrap_or_default();
        let sealed: Digest = PAGE_DIGEST.get(page);
        let magic: [u8; 8] = MAGIC_FIELD.get(page);
        if magic != MAGIC {
            let mut mended = digested.to_vec();
            MAGIC_FIELD.put(&mut mended, &MAGIC);
            if page.len() == PAGE && of(&mended) == sealed {
                return Err(Error::Altered {
                    place: Box::new(place(MAGIC_FIELD)),
                    rule: "2.1",
                    expected: crate::digest::hex(&MAGIC),
                    found: crate::digest::hex(&magic),
                });
            }
            return Err(Error::NotABundle {
                file: file.to_path_buf(),
                reason: what_is(page, file_length),
            });
        }
        if page.len() < PAGE {
            return Err(Error::CutShort {
                file: file.to_path_buf(),
                expected: PAGE_BYTES,
                found: file_length,
            });
        }
        let found = of(digested);
        if found != sealed {
            let whole = Field::at(0, PAGE, "", "");
            return Err(altered(place(whole), "2.2", &sealed, &found));
        }
        let major = MAJOR_FIELD.u16(page);
        if major > MAJOR {
            return Err(Error::Newer {
                file: file.to_path_buf(),
                needs: format!("format version {major} (this reader knows version {MAJOR})"),
            });
        }
        let broken = |rule, field: Field, reason: String| {
            let end = field.at.saturating_add(field.bytes);
            Err(Fault::new(rule, "page 0", reason)
                .at(to_u64(field.at)..to_u64(end))
                .in_file(file))
        };
        if major != MAJOR {
            return broken("2.3", MAJOR_FIELD, format!("there is no version {major}"));
        }
        let page_bytes = u32::from_le_bytes(PAGE_FIELD.get(page));
        if u64::from(page_bytes) != PAGE_BYTES {
            let reason = format!("the page is {PAGE_BYTES} bytes, this one {page_bytes}");
            return broken("2.4", PAGE_FIELD, reason);
        }
        let reserved = page.get(RESERVED.at..PAGE_DIGEST.at).unwrap_or_default();
        if reserved.iter().any(|b| *b != 0) {
            return broken("2.5", RESERVED, "reserved bytes are not zero".to_owned());
        }
        let content_length = CONTENT.u64(page);
        if !content_length.is_multiple_of(PAGE_BYTES) || content_length > MAX_INTEGER {
            let reason = format!("the content cannot have {content_length} bytes");
            return broken("2.6", CONTENT, reason);
        }
        let manifest_offset = MANIFEST_AT.u64(page);
        if manifest_offset != PAGE_BYTES {
            let reason =
                format!("the manifest starts at byte {PAGE_BYTES}, not at {manifest_offset}");
            return broken("2.8", MANIFEST_AT, reason);
        }
        let manifest_length = MANIFEST_LENGTH.u64(page);
        if manifest_length == 0 || manifest_length > MAX_MANIFEST_BYTES {
            let reason = format!(
                "a manifest has 1 to {MAX_MANIFEST_BYTES} bytes, this one {manifest_length}"
            );
            return broken("2.8", MANIFEST_LENGTH, reason);
        }
        let table_offset = TABLE_AT.u64(page);
        let expected = table_offset_after(manifest_length);
        if table_offset != expected {
            let reason =
                format!("the digest table starts at byte {expected}, not at {table_offset}");
            return broken("2.9", TABLE_AT, reason);
        }
        let table_length = TABLE_LENGTH.u64(page);
        if !table_length.is_multiple_of(32) || table_length > MAX_TABLE_BYTES {
            let reason = format!(
                "a digest table has at most {MAX_TABLE_BYTES} bytes and 32 for each digest, this one {table_length}"
            );
            return broken("2.9", TABLE_LENGTH, reason);
        }
        let data = data_offset(table_offset, table_length);
        if content_length < data {
            let reason = format!(
                "the content ends at byte {content_length}, within the digest table's pages, which end at {data}"
            );
            return broken("2.6", CONTENT, reason);
        }
        if file_length < content_length {
            return Err(Error::CutShort {
                file: file.to_path_buf(),
                expected: content_length,
                found: file_length,
            });
        }
        Ok(Self {
            minor: MINOR_FIELD.u16(page),
            content_length,
            manifest_length,
            manifest_digest: MANIFEST_DIGEST.get(page),
            table_offset,
            table_length,
            table_digest: TABLE_DIGEST.get(page),
        })
    }

    /// First byte after the digest table's pages: where the first segment starts.
    pub fn data_offset(&self) -> u64 {
        data_offset(self.table_offset, self.table_length)
    }
}

/// Where the digest table starts behind a manifest of `length` bytes (bounded by [`MAX_MANIFEST_BYTES`]).
pub(crate) fn table_offset_after(length: u64) -> u64 {
    PAGE_BYTES
        .saturating_add(length)
        .next_multiple_of(PAGE_BYTES)
}

/// Where the first segment starts behind a bounded digest table.
pub(crate) fn data_offset(table_offset: u64, table_length: u64) -> u64 {
    table_offset
        .saturating_add(table_length)
        .next_multiple_of(PAGE_BYTES)
}

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Says what a file is that does not start as a bundle does.
fn what_is(start: &[u8], file_length: u64) -> String {
    let known: [(&[u8], &str); 9] = [
        (b"GGUF", "it is a GGUF file"),
        (
            b"PK\x03\x04",
            "it is a zip archive (or a PyTorch checkpoint)",
        ),
        (b"\x1f\x8b", "it is gzip-compressed"),
        (b"\x28\xb5\x2f\xfd", "it is zstd-compressed"),
        (
            b"version https://git-lfs",
            "it is a Git-LFS pointer: the file itself was not fetched",
        ),
        (b"<!DOCTYPE", "it is an HTML page"),
        (b"<html", "it is an HTML page"),
        (
            b"\x89QPX\n",
            "a transfer changed its line ends: copy it again in binary mode",
        ),
        (
            b"\x09QPX",
            "a transfer stripped its eighth bits: copy it again in binary mode",
        ),
    ];
    if file_length == 0 {
        return "it is empty".to_owned();
    }
    if let Some((_, what)) = known.iter().find(|(prefix, _)| start.starts_with(prefix)) {
        return (*what).to_owned();
    }
    if start.get(8) == Some(&b'{') {
        return "it is a safetensors file".to_owned();
    }
    if start.iter().all(|b| *b == 0) {
        return "its first page is empty: it was never sealed".to_owned();
    }
    let first = crate::digest::hex(start.get(..8).unwrap_or(start));
    format!(
        "it starts with {first}, a bundle with {}",
        crate::digest::hex(&MAGIC)
    )
}
