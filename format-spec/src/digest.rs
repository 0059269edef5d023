//! Digests: BLAKE3 over bytes, and how digests are written for people and in the manifest.

use crate::Digest;

/// BLAKE3 of `bytes`.
pub fn of(bytes: &[u8]) -> Digest {
    *blake3::hash(bytes).as_bytes()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether `text` is 64 lower-case hex digits.
pub(crate) fn is_hex(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
