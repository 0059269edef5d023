//! Reading a bundle: bounded, checked, by positioned reads or through a memory map.

use crate::{
    Digest, Error, Manifest,
    error::Place,
    manifest::*,
    role::{Part, Role},
    stamp::Stamps,
};
use std::path::Path;

/// An open bundle whose page 0, manifest and digest table are verified and whose every offset is checked.
pub struct Bundle {
    _p: (),
}

/// A stored extent: a tensor's or one expert part's bytes.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Role as a user reads it (`layer.3.expert.17.gate`).
    pub role: String,
    /// Name of its encoding.
    pub encoding: &'static crate::encoding::Encoding,
    /// Shape, rows first.
    pub shape: Vec<u64>,
    /// First byte in the file.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Number of its first leaf.
    pub first_leaf: u64,
    /// Number of its leaves.
    pub leaves: u64,
}

/// One leaf: what the digest table has an entry for.
#[derive(Clone, Debug)]
pub struct Leaf {
    /** Number in the table. */
    pub index: u64,
    /** Where it is and what it belongs to. */
    pub place: Place,
    /** Sealed digest. */
    pub digest: Digest,
}

impl Bundle {
    /// Opens and checks everything but the leaves and the padding.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let _ = path;
        todo!()
    }
    /// The file.
    pub fn path(&self) -> &Path {
        todo!()
    }
    /// BLAKE3 of page 0.
    pub fn id(&self) -> Digest {
        todo!()
    }
    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        todo!()
    }
    /// Bytes of the content; stamps begin there.
    pub fn content_length(&self) -> u64 {
        todo!()
    }
    /// The extent of a role; aliases are followed; `layer.L.expert.E.PART` works too.
    pub fn extent(&self, role: &Role) -> Option<Extent> {
        let _ = role;
        todo!()
    }
    /// The extent of one expert's part.
    pub fn expert(&self, layer: u64, expert: u64, part: Part) -> Option<Extent> {
        let _ = (layer, expert, part);
        todo!()
    }
    /// Every extent in file order (tensors, experts' parts).
    pub fn extents(&self) -> Box<dyn Iterator<Item = Extent> + '_> {
        todo!()
    }
    /// Number of leaves.
    pub fn leaves(&self) -> u64 {
        todo!()
    }
    /// A leaf's place and digest.
    pub fn leaf(&self, index: u64) -> Option<Leaf> {
        let _ = index;
        todo!()
    }
    /// Reads exactly `buffer.len()` bytes at `offset`, unverified.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let _ = (offset, buffer);
        todo!()
    }
    /// Reads an extent into `buffer` (exactly `extent.length` bytes) and verifies each of its leaves.
    pub fn read_verified(&self, extent: &Extent, buffer: &mut [u8]) -> Result<(), Error> {
        let _ = (extent, buffer);
        todo!()
    }
    /// Verifies bytes already in memory (`extent.length` of them) against the table.
    pub fn verify_bytes(&self, extent: &Extent, bytes: &[u8]) -> Result<(), Error> {
        let _ = (extent, bytes);
        todo!()
    }
    /// BLAKE3 of the source bytes an extent was made from (the digest table's second part).
    pub fn source_digest(&self, extent: &Extent) -> Digest {
        let _ = extent;
        todo!()
    }
    /// An attached file, verified and decompressed within its declared length.
    pub fn attached(&self, entry: &Attached) -> Result<Vec<u8>, Error> {
        let _ = entry;
        todo!()
    }
    /// The stamps after the content.
    pub fn stamps(&self) -> Result<Stamps, Error> {
        todo!()
    }
    /// A read-only memory map of the content, for zero-copy access by offset.
    pub fn map(&self) -> Result<crate::reader::Map, Error> {
        todo!()
    }
}

/// A memory map of a bundle's content.
pub struct Map {
    _p: (),
}

impl Map {
    /// An extent's bytes, unverified.
    pub fn bytes(&self, extent: &Extent) -> &[u8] {
        let _ = extent;
        todo!()
    }
}
