//! What can be wrong with one shard, in words.

use super::recognise::Impostor;
use std::fmt;

/// A rule of the safetensors format that a shard breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum Fault {
    Impostor(Impostor),
    /// Fewer than the eight bytes of the header's length.
    NoLength {
        found: u64,
    },
    HeaderTooLong {
        found: u64,
    },
    HeaderCut {
        expected: u64,
        found: u64,
    },
    HeaderStart {
        found: Option<u8>,
    },
    HeaderEnd {
        found: u8,
    },
    HeaderJson {
        reason: String,
    },
    Name {
        tensor: String,
    },
    UnknownDtype {
        tensor: String,
        dtype: String,
    },
    /// A dtype narrower than a byte.
    SharedBytes {
        tensor: String,
        dtype: &'static str,
    },
    Offsets {
        tensor: String,
        begin: u64,
        end: u64,
    },
    Size {
        tensor: String,
        dtype: &'static str,
        shape: Vec<u64>,
        expected: Option<u64>,
        found: u64,
    },
    Hole {
        before: String,
        start: u64,
        end: u64,
    },
    Overlap {
        first: String,
        second: String,
        bytes: u64,
    },
    Truncated {
        missing: u64,
        tensor: String,
        others: u64,
        expected: u64,
        found: u64,
    },
    Trailing {
        bytes: u64,
        expected: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impostor(what) => what.fmt(f),
            Self::NoLength { found } => {
                write!(f, "has {found} bytes, too few for a safetensors header")
            }
            Self::HeaderTooLong { found } => write!(
                f,
                "is no safetensors file: its header would be {found} bytes long, at most 100000000 are allowed"
            ),
            Self::HeaderCut { expected, found } => write!(
                f,
                "is cut within its header, {} bytes short of its end (expected {expected} bytes, found {found})",
                expected.saturating_sub(*found)
            ),
            Self::HeaderStart { found } => match found {
                Some(byte) => write!(
                    f,
                    "has a header that begins with byte {byte:#04x} where `{{` must stand"
                ),
                None => f.write_str("has an empty header"),
            },
            Self::HeaderEnd { found } => write!(
                f,
                "has a header that ends with byte {found:#04x} where `}}` or a space must stand"
            ),
            Self::HeaderJson { reason } => write!(f, "has a broken header: {reason}"),
            Self::Name { tensor } => write!(
                f,
                "names a tensor {tensor:?}: a name may not be empty, hold NUL, or lead out of a folder"
            ),
            Self::UnknownDtype { tensor, dtype } => {
                write!(
                    f,
                    "gives {tensor} the dtype `{dtype}`, which safetensors does not define"
                )
            }
            Self::SharedBytes { tensor, dtype } => write!(
                f,
                "gives {tensor} the dtype {dtype}, whose values share bytes: no encoding of this version holds it"
            ),
            Self::Offsets { tensor, begin, end } => write!(
                f,
                "gives {tensor} the data offsets {begin}..{end}, which make no range"
            ),
            Self::Size {
                tensor,
                dtype,
                shape,
                expected,
                found,
            } => match expected {
                Some(expected) => write!(
                    f,
                    "gives {tensor} {found} bytes, but {dtype} {shape:?} takes {expected}"
                ),
                None => write!(
                    f,
                    "gives {tensor} the shape {shape:?} of {dtype}, whose size has no whole number of bytes below 2^64"
                ),
            },
            Self::Hole { before, start, end } => write!(
                f,
                "has a hole of {} bytes before {before} (bytes {start}..{end} belong to no tensor)",
                end.saturating_sub(*start)
            ),
            Self::Overlap {
                first,
                second,
                bytes,
            } => write!(f, "stores {second} over {first}: they share {bytes} bytes"),
            Self::Truncated {
                missing,
                tensor,
                others,
                expected,
                found,
            } => {
                write!(
                    f,
                    "is truncated: {missing} bytes short (expected {expected} bytes, found {found}), {tensor} is cut"
                )?;
                if *others > 0 {
                    write!(f, ", {others} more with it")?;
                }
                Ok(())
            }
            Self::Trailing { bytes, expected } => write!(
                f,
                "has {bytes} bytes behind its last tensor, which ends at byte {expected}"
            ),
        }
    }
}
