//! Writing a bundle: reserve, write anywhere, seal.

use crate::{Digest, Error, layout::Layout};
use std::path::Path;

/// A bundle being written, under the name `NAME.qpx.partial`. All methods but [`Writer::seal`] may be called from many threads.
pub struct Writer {
    _p: (),
}

/// A sealed bundle.
#[derive(Clone, Debug)]
pub struct Sealed {
    /** BLAKE3 of page 0. */
    pub id: Digest,
    /** Content length. */
    pub length: u64,
}

impl Writer {
    /// Creates `FINAL.partial` beside `final_path`, checks free space, reserves all bytes (`fallocate`), locks the file and writes attached files.
    pub fn create(final_path: &Path, layout: Layout) -> Result<Self, Error> {
        let _ = (final_path, layout);
        todo!()
    }
    /// The layout being filled.
    pub fn layout(&self) -> &Layout {
        todo!()
    }
    /// Writes `bytes` at `offset`; must lie inside one slot.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let _ = (offset, bytes);
        todo!()
    }
    /// Records the digest of a leaf.
    pub fn set_leaf(&self, leaf: u64, digest: Digest) {
        let _ = (leaf, digest);
        todo!()
    }
    /// Records the digest of a source tensor's bytes.
    pub fn set_source(&self, source: u64, digest: Digest) {
        let _ = (source, digest);
        todo!()
    }
    /// Records a source file's SHA-256.
    pub fn set_file_sha256(&self, name: &str, sha256: [u8; 32]) {
        let _ = (name, sha256);
        todo!()
    }
    /// Reads everything back and verifies it, writes page 0, syncs, renames, syncs the folder. Any unset digest is an error.
    /// `progress` is called with bytes read back. `replace` allows an existing file under the final name.
    pub fn seal(self, replace: bool, progress: &(dyn Fn(u64) + Sync)) -> Result<Sealed, Error> {
        let _ = (replace, progress);
        todo!()
    }
    /// Removes the partial file.
    pub fn discard(self) -> Result<(), Error> {
        todo!()
    }
}
