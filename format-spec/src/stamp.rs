//! Records appended after the content.

use crate::{Digest, Error};
use std::path::Path;

/// One intact record.
#[derive(Clone, Debug)]
pub struct Stamp {
    /** `proof`, … */
    pub kind: String,
    /** JSON text. */
    pub payload: Vec<u8>,
    /** First byte in the file. */
    pub offset: u64,
    /** Its digest, which the next record names. */
    pub digest: Digest,
}

/// What stands after the content.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    /** Intact records in order. */
    pub records: Vec<Stamp>,
    /** What is wrong behind the last intact record, if anything. */
    pub fault: Option<String>,
}

/// Appends a record to a sealed bundle and syncs it. A record cut short by a crash is cut off first; any other fault is an error.
pub fn append(path: &Path, kind: &str, payload: &[u8]) -> Result<Stamp, Error> {
    let _ = (path, kind, payload);
    todo!()
}

/// Bundle id shortened for people: first 16 hex digits.
pub fn short(id: &Digest) -> String {
    id.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
