//! A read-only memory map of a bundle: the only unsafe code of this crate.
//!
//! The promise that the file keeps its length while it is mapped cannot be enforced on Unix: when somebody cuts the file, an
//! access behind its new end ends the process with SIGBUS. Whoever cannot live with that reads instead
//! ([`crate::Bundle::read_at`]), where it is an error. Bytes that change under the map are seen as they change: nothing
//! here interprets them, and verification works on a copy.

#![expect(unsafe_code, reason = "mapping a file")]

use crate::{Error, reader::Extent};
use std::{fs::File, path::Path};

/// A memory map of a bundle's content.
pub struct Map {
    map: memmap2::Mmap,
}

impl Map {
    pub(crate) fn new(file: &File, path: &Path, length: u64) -> Result<Self, Error> {
        let length = usize::try_from(length).map_err(|_| {
            let too_large = std::io::Error::from(std::io::ErrorKind::FileTooLarge);
            Error::io(path, "map")(too_large)
        })?;
        let mut options = memmap2::MmapOptions::new();
        options.len(length);
        // SAFETY: the map is read-only and is handed out as plain bytes, for which every bit pattern is valid. That nobody
        // changes or cuts the file meanwhile is the caller's to see to, as the module's documentation says.
        let map = unsafe { options.map(file) }.map_err(Error::io(path, "map"))?;
        Ok(Self { map })
    }

    /// An extent's bytes, unverified; empty when the extent is not of this bundle.
    pub fn bytes(&self, extent: &Extent) -> &[u8] {
        let range = usize::try_from(extent.offset)
            .ok()
            .zip(usize::try_from(extent.length).ok())
            .and_then(|(start, length)| Some(start..start.checked_add(length)?));
        range.and_then(|r| self.map.get(r)).unwrap_or_default()
    }
}
