//! What a file is that stands where a shard should be. Judged by its first bytes, never by its name.

use std::fmt;

/// How many bytes from the start are looked at.
pub(crate) const LOOK_BYTES: usize = 512;

/// Something that is no safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Impostor {
    Empty,
    LfsPointer { oid: String, size: String },
    Html,
    Json { text: String },
    Gguf,
    Zip,
    Pickle,
    Gzip,
    Hdf5,
    Numpy,
    Bundle,
    Text { text: String },
}

impl Impostor {
    /// What begins with `start` and is `length` bytes long; `None` when it can be a safetensors file.
    pub(crate) fn recognise(start: &[u8], length: u64) -> Option<Self> {
        if length == 0 {
            return Some(Self::Empty);
        }
        // A sane header length has zeros in its upper four bytes, and no text does.
        if start.get(4..8) == Some(&[0; 4]) {
            return None;
        }
        let text = String::from_utf8_lossy(start);
        let word = text.trim_start();
        let line = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(key));
            found.unwrap_or("unknown").trim().to_owned()
        };
        let begins = |magic: &[u8]| start.starts_with(magic);
        Some(if word.starts_with("version https://git-lfs") {
            let oid = line("oid ");
            Self::LfsPointer {
                oid: oid.strip_prefix("sha256:").unwrap_or(&oid).to_owned(),
                size: line("size "),
            }
        } else if word.starts_with('<') {
            Self::Html
        } else if word.starts_with('{') || word.starts_with('[') {
            Self::Json { text: clip(word) }
        } else if begins(b"GGUF") {
            Self::Gguf
        } else if begins(b"PK\x03\x04") {
            Self::Zip
        } else if begins(b"\x80\x02") || begins(b"\x80\x04") {
            Self::Pickle
        } else if begins(b"\x1f\x8b") {
            Self::Gzip
        } else if begins(b"\x89HDF") {
            Self::Hdf5
        } else if begins(b"\x93NUMPY") {
            Self::Numpy
        } else if begins(b"\x89QPX") {
            Self::Bundle
        } else if start.iter().all(|b| matches!(b, 9 | 10 | 13 | 32..=126)) {
            Self::Text { text: clip(word) }
        } else {
            return None;
        })
    }
}

/// The first line of `text`, shortened for a message.
fn clip(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(80).collect()
}

impl fmt::Display for Impostor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::LfsPointer { oid, size } => write!(
                f,
                "is a Git LFS pointer, not the file it points to (oid {oid}, {size} bytes): fetch it with `git lfs pull`"
            ),
            Self::Html => {
                f.write_str("is an HTML or XML page, such as a server's error or login page")
            }
            Self::Json { text } => write!(f, "is JSON, such as a server's error message: {text}"),
            Self::Gguf => f.write_str("is a GGUF file: take the checkpoint it was converted from"),
            Self::Zip => {
                f.write_str("is a zip archive, such as a PyTorch .bin file: take safetensors files")
            }
            Self::Pickle => f.write_str("is a Python pickle: take safetensors files"),
            Self::Gzip => f.write_str("is gzip-compressed: unpack it first"),
            Self::Hdf5 => f.write_str("is an HDF5 file: take safetensors files"),
            Self::Numpy => f.write_str("is a NumPy array: take safetensors files"),
            Self::Bundle => f.write_str("is a .qpx bundle already"),
            Self::Text { text } => write!(f, "is a text, such as a server's error message: {text}"),
        }
    }
}
