//! Writing a bundle: reserve, write anywhere, seal.

use crate::{
    Bundle, Digest, Error, PAGE_BYTES,
    digest::{hex, of},
    error::Missing,
    index::{Item, What},
    layout::{Layout, text},
    preamble::{MINOR, Preamble, data_offset},
    publish::Partial,
    scan::{self, Scan},
};
use std::{
    collections::BTreeMap,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What stands in the manifest for a SHA-256 that is not known yet.
pub const UNKNOWN_SHA256: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A bundle being written, under the name `NAME.qpx.partial`. All methods but [`Writer::seal`] may be called from many threads.
///
/// Dropped without [`Writer::seal`], it removes the partial file, unless [`Writer::keep_partial`] was called.
#[derive(Debug)]
pub struct Writer {
    partial: Partial,
    target: PathBuf,
    layout: Layout,
    known: Mutex<Known>,
    threads: usize,
}

/// Digests that have come in.
#[derive(Debug)]
struct Known {
    leaves: Vec<Option<Digest>>,
    sources: Vec<Option<Digest>>,
    files: BTreeMap<String, [u8; 32]>,
    stray: Option<String>,
}

/// A sealed bundle.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// BLAKE3 of page 0.
    pub id: Digest,
    /// Content length.
    pub length: u64,
}

impl Writer {
    /// Creates `FINAL.partial` beside `final_path`, checks free space, reserves all bytes (`fallocate`), locks the file and writes attached files.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Busy`], [`Error::NotOurs`], [`Error::Io`].
    pub fn create(final_path: &Path, layout: Layout) -> Result<Self, Error> {
        let partial = Partial::create(final_path)?;
        partial.reserve(layout.content_length)?;
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let writer = Self {
            partial,
            target: final_path.to_path_buf(),
            known: Mutex::new(Known {
                leaves: vec![None; count(layout.leaves)],
                sources: vec![None; count(layout.sources)],
                files: BTreeMap::new(),
                stray: None,
            }),
            layout,
            threads: scan::default_threads(),
        };
        for item in writer.layout.index.items() {
            let What::Attached(i) = item.what else { break };
            if let Some(bytes) = writer.layout.attached.get(i) {
                writer.write_item(&item, bytes)?;
            }
        }
        Ok(writer)
    }

    /// Threads that [`Writer::seal`] reads back with; all there are unless said.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Leaves the partial file on the disk when this is dropped unsealed.
    pub fn keep_partial(&mut self, keep: bool) {
        self.partial.keep(keep);
    }

    /// The layout being filled.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where the bundle is while it is written.
    pub fn partial_path(&self) -> &Path {
        self.partial.path()
    }

    /// Starts writing to the disk what was written so far between `bytes.start` and `bytes.end`, so that sealing has less to wait for.
    pub fn flush(&self, bytes: std::ops::Range<u64>) {
        write_back(self.partial.file(), bytes);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_item(&self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        self.write_at(item.offset, bytes)?;
        for n in 0..item.leaves {
            let leaf = item.leaf(n);
            let start = usize::try_from(leaf.start - item.offset).unwrap_or(usize::MAX);
            let end = usize::try_from(leaf.end - item.offset).unwrap_or(usize::MAX);
            self.set_leaf(
                item.first_leaf + n,
                of(bytes.get(start..end).unwrap_or_default()),
            );
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`; must lie inside one slot.
    ///
    /// # Errors
    /// [`Error::OutsideSlot`], [`Error::NoSpace`], [`Error::Io`].
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let range = offset..offset.saturating_add(bytes.len() as u64);
        if self.layout.index.item_of_bytes(&range).is_none() {
            return Err(Error::OutsideSlot {
                file: self.partial.path().to_path_buf(),
                bytes: range,
            });
        }
        self.put(offset, bytes)
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.partial
            .file()
            .write_all_at(bytes, offset)
            .map_err(Error::io(self.partial.path(), "write"))
    }

    /// Records the digest of a leaf.
    pub fn set_leaf(&self, leaf: u64, digest: Digest) {
        let mut known = self.known();
        match usize::try_from(leaf)
            .ok()
            .and_then(|i| known.leaves.get_mut(i))
        {
            Some(place) => *place = Some(digest),
            None => known.stray = Some(format!("leaf {leaf}")),
        }
    }

    /// Records the digest of a source tensor's bytes.
    pub fn set_source(&self, source: u64, digest: Digest) {
        let mut known = self.known();
        match usize::try_from(source)
            .ok()
            .and_then(|i| known.sources.get_mut(i))
        {
            Some(place) => *place = Some(digest),
            None => known.stray = Some(format!("source piece {source}")),
        }
    }

    /// Records a source file's SHA-256.
    pub fn set_file_sha256(&self, name: &str, sha256: [u8; 32]) {
        let files = &self.layout.manifest.claimed.origin.files;
        let listed = files.iter().any(|f| f.name == name && f.sha256.is_some());
        let mut known = self.known();
        if listed {
            known.files.insert(name.to_owned(), sha256);
        } else {
            known.stray = Some(format!("the SHA-256 of {name}"));
        }
    }

    /// Reads everything back and verifies it, writes page 0, syncs, renames, syncs the folder. Any unset digest is an error.
    ///
    /// `progress` is called with the bytes read back since its last call, from several threads. `replace` allows an
    /// existing file under the final name.
    ///
    /// # Errors
    /// [`Error::Unfinished`], [`Error::Altered`] when the disk gives back other bytes, [`Error::Exists`], [`Error::Io`].
    pub fn seal(self, replace: bool, progress: &(dyn Fn(u64) + Sync)) -> Result<Sealed, Error> {
        let table = self.table()?;
        let mut layout_manifest = self.layout.manifest.clone();
        let files = &mut layout_manifest.claimed.origin.files;
        for (name, sha256) in &self.known().files {
            for file in files.iter_mut().filter(|f| f.name == *name) {
                file.sha256 = Some(hex(sha256));
            }
        }
        let manifest = text(&layout_manifest)?;
        let preamble = Preamble {
            minor: MINOR,
            content_length: self.layout.content_length,
            manifest_length: self.layout.manifest_length,
            manifest_digest: of(&manifest),
            table_offset: self.layout.table_offset,
            table_length: self.layout.table_length,
            table_digest: of(&table),
        };
        if manifest.len() as u64 != self.layout.manifest_length {
            return Err(self.unfinished(
                Missing::Stray {
                    what: format!("a manifest of {} bytes", manifest.len()),
                },
                1,
            ));
        }

        // Data first: to the disk, and back from it.
        let (file, path) = (self.partial.file(), self.partial.path());
        file.sync_data()
            .map_err(Error::io(path, "write to the disk"))?;
        forget_cached(file);
        let data = data_offset(self.layout.table_offset, self.layout.table_length);
        let scan = Scan {
            file,
            path,
            manifest: &layout_manifest,
            index: &self.layout.index,
            table: &table,
            zeros: [PAGE_BYTES..data, data..data],
            data,
            end: self.layout.content_length,
        };
        let found = scan.run(self.threads, progress)?;
        if let Some(fault) = found.faults.into_iter().next() {
            return Err(fault);
        }

        self.put(PAGE_BYTES, &manifest)?;
        self.put(self.layout.table_offset, &table)?;
        file.sync_data()
            .map_err(Error::io(path, "write to the disk"))?;
        let (page, id) = preamble.to_page();
        self.put(0, &page)?;
        file.sync_all()
            .map_err(Error::io(path, "write to the disk"))?;
        // The reader has the last word before anybody sees the name.
        let clone = file.try_clone().map_err(Error::io(path, "open again"))?;
        let bundle = Bundle::from_file(clone, path)?;
        debug_assert_eq!(bundle.id(), id);
        drop(bundle);
        let length = self.layout.content_length;
        self.partial.publish(replace)?;
        Ok(Sealed { id, length })
    }

    /// Removes the partial file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn discard(self) -> Result<(), Error> {
        self.partial.discard()
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    fn unfinished(&self, first: Missing, count: u64) -> Error {
        Error::Unfinished {
            file: self.partial.path().to_path_buf(),
            first,
            count,
        }
    }

    /// The digest table, if nothing is missing.
    fn table(&self) -> Result<Vec<u8>, Error> {
        let known = self.known();
        if let Some(what) = &known.stray {
            return Err(self.unfinished(Missing::Stray { what: what.clone() }, 1));
        }
        let gaps = |list: &[Option<Digest>]| {
            let first = list.iter().position(Option::is_none);
            let count = list.iter().filter(|d| d.is_none()).count();
            first.map(|i| (i as u64, count as u64))
        };
        if let Some((leaf, count)) = gaps(&known.leaves) {
            let item = self.layout.index.item_of_leaf(leaf);
            let subject = item.map(|i| i.label(&self.layout.manifest));
            let subject = subject.unwrap_or_default();
            return Err(self.unfinished(Missing::Leaf { leaf, subject }, count));
        }
        if let Some((source, count)) = gaps(&known.sources) {
            return Err(self.unfinished(Missing::Source { source }, count));
        }
        let files = &self.layout.manifest.claimed.origin.files;
        let mut unknown = files.iter().filter(|f| {
            f.sha256.as_deref() == Some(UNKNOWN_SHA256) && !known.files.contains_key(&f.name)
        });
        if let Some(file) = unknown.next() {
            let name = file.name.clone();
            let count = 1 + unknown.count() as u64;
            return Err(self.unfinished(Missing::Sha256 { name }, count));
        }
        let digests = known.leaves.iter().chain(&known.sources).flatten();
        Ok(digests.flatten().copied().collect())
    }
}

/// Makes the next reads come from the disk instead of the page cache, where the system can be asked to.
fn forget_cached(file: &std::fs::File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = file;
}

/// Starts write-back of a range without waiting for it.
fn write_back(file: &std::fs::File, bytes: std::ops::Range<u64>) {
    // `fadvise(DONTNEED)` starts write-back of dirty pages on Linux and drops clean ones.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::fs::fadvise(
        file,
        bytes.start,
        std::num::NonZeroU64::new(bytes.end.saturating_sub(bytes.start)),
        rustix::fs::Advice::DontNeed,
    );
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (file, bytes);
}
