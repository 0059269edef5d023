//! Reading a bundle: bounded, checked, by positioned reads or through a memory map.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

pub use crate::map::Map;
use crate::{
    Digest, Error, Manifest, PAGE_BYTES, check,
    digest::of,
    error::{Fault, Place, altered},
    index::{Index, Item, What},
    json,
    manifest::*,
    preamble::{MINOR, PAGE, Preamble},
    role::{Part, Role},
    scan::{self, Scan, entry},
    stamp::{self, Stamps},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// An open bundle whose page 0, manifest and digest table are verified and whose every offset is checked.
pub struct Bundle {
    file: File,
    path: PathBuf,
    id: Digest,
    preamble: Preamble,
    manifest: Manifest,
    text: Vec<u8>,
    table: Vec<u8>,
    index: Index,
    /// Number of the tensor of each role, aliases included.
    roles: BTreeMap<String, usize>,
    /// Number of the row of each layer's part: (draft, layer, part).
    rows: BTreeMap<(bool, u64, Part), usize>,
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
    /// The segment it lies in.
    pub segment: SegmentKind,
    /// First byte in the file.
    pub offset: u64,
    /// Stored bytes.
    pub length: u64,
    /// Number of its first leaf.
    pub first_leaf: u64,
    /// Number of its leaves.
    pub leaves: u64,
    /// Largest leaf, in bytes: the extent is cut into pieces of this size, the last one shorter.
    pub leaf_bytes: u64,
    /// Number of its source digest.
    pub source: u64,
}

/// One leaf: what the digest table has an entry for.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Number in the table.
    pub index: u64,
    /// Where it is and what it belongs to.
    pub place: Place,
    /// Sealed digest.
    pub digest: Digest,
}

impl Bundle {
    /// Opens and checks everything but the leaves and the padding.
    ///
    /// # Errors
    /// Whatever is wrong first, with its place: see [`Error`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let about = std::fs::metadata(path).map_err(Error::io(path, "open"))?;
        if !about.is_file() {
            return Err(Error::NotABundle {
                file: path.to_path_buf(),
                reason: if about.is_dir() {
                    "it is a folder".to_owned()
                } else {
                    "it is no regular file".to_owned()
                },
            });
        }
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        Self::from_file(file, path)
    }

    pub(crate) fn from_file(file: File, path: &Path) -> Result<Self, Error> {
        let length = file.metadata().map_err(Error::io(path, "look at"))?.len();
        let mut page = vec![0; PAGE];
        let mut filled = 0;
        while let Some(rest) = page.get_mut(filled..).filter(|r| !r.is_empty()) {
            let at = u64::try_from(filled).unwrap_or(u64::MAX);
            match file.read_at(rest, at) {
                Ok(0) => break,
                Ok(n) => filled = filled.saturating_add(n),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(path, "read")(e)),
            }
        }
        page.truncate(filled);
        let preamble = Preamble::parse(&page, length, path)?;

        let text = digested(
            &file,
            path,
            ("manifest", "2.10"),
            PAGE_BYTES,
            preamble.manifest_length,
            &preamble.manifest_digest,
        )?;
        let table = digested(
            &file,
            path,
            ("digest table", "2.11"),
            preamble.table_offset,
            preamble.table_length,
            &preamble.table_digest,
        )?;
        let manifest = manifest(&text, preamble.minor, path)?;
        let (manifest, index) = placed(manifest, &preamble).map_err(|f| f.in_file(path))?;

        let checked = &manifest.checked;
        let mut roles: BTreeMap<String, usize> = (checked.tensors.iter().enumerate())
            .map(|(i, t)| (t.role.clone(), i))
            .collect();
        for alias in &checked.aliases {
            if let Some(i) = roles.get(&alias.of).copied() {
                roles.insert(alias.role.clone(), i);
            }
        }
        let rows = (checked.experts.iter().enumerate())
            .map(|(i, r)| ((r.segment == SegmentKind::Draft, r.layer, r.part), i))
            .collect();
        Ok(Self {
            id: of(&page),
            path: path.to_path_buf(),
            file,
            preamble,
            manifest,
            text,
            table,
            index,
            roles,
            rows,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// BLAKE3 of page 0.
    pub fn id(&self) -> Digest {
        self.id
    }

    /// The format version: major, minor.
    pub fn version(&self) -> (u16, u16) {
        (crate::preamble::MAJOR, self.preamble.minor)
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest as it stands in the file.
    pub fn manifest_text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes of the content; stamps begin there.
    pub fn content_length(&self) -> u64 {
        self.preamble.content_length
    }

    /// Where the digest table lies in the file.
    pub fn table_bytes(&self) -> std::ops::Range<u64> {
        let start = self.preamble.table_offset;
        start..start.saturating_add(self.preamble.table_length)
    }

    /// The extent of a role; aliases are followed; `layer.L.expert.E.PART` works too.
    pub fn extent(&self, role: &Role) -> Option<Extent> {
        if let Some(i) = self.roles.get(role.as_str()) {
            return self.to_extent(self.index.tensor(*i)?);
        }
        let (draft, layer, expert, part) = role.as_expert()?;
        let row = self.rows.get(&(draft, layer, part))?;
        self.to_extent(self.index.expert(*row, expert)?)
    }

    /// The extent of one expert's part.
    pub fn expert(&self, layer: u64, expert: u64, part: Part) -> Option<Extent> {
        let row = self.rows.get(&(false, layer, part))?;
        self.to_extent(self.index.expert(*row, expert)?)
    }

    /// Every extent in file order (tensors, experts' parts).
    pub fn extents(&self) -> Box<dyn Iterator<Item = Extent> + '_> {
        Box::new(self.index.items().filter_map(|i| self.to_extent(i)))
    }

    fn to_extent(&self, item: Item) -> Option<Extent> {
        let checked = &self.manifest.checked;
        let (encoding, shape) = match item.what {
            What::Attached(_) => return None,
            What::Tensor(i) => checked.tensors.get(i).map(|t| (&t.encoding, &t.shape))?,
            What::Expert { row, .. } => {
                checked.experts.get(row).map(|r| (&r.encoding, &r.shape))?
            }
        };
        Some(Extent {
            role: item.label(&self.manifest),
            encoding: crate::encoding::by_name(encoding)?,
            shape: shape.clone(),
            segment: item.segment,
            offset: item.offset,
            length: item.length,
            first_leaf: item.first_leaf,
            leaves: item.leaves,
            leaf_bytes: item.leaf_bytes,
            source: item.source?,
        })
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u64 {
        self.index.leaves()
    }

    /// A leaf's place and digest.
    pub fn leaf(&self, index: u64) -> Option<Leaf> {
        if index >= self.leaves() {
            return None;
        }
        Some(Leaf {
            index,
            place: scan::leaf_place(&self.path, &self.manifest, &self.index, index),
            digest: entry(&self.table, index)?,
        })
    }

    /// Reads exactly `buffer.len()` bytes at `offset`, unverified.
    ///
    /// # Errors
    /// [`Error::CutShort`] when the file has become shorter, [`Error::Io`].
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        scan::read_exact(&self.file, &self.path, offset, buffer)
    }

    /// Reads an extent into `buffer` (exactly `extent.length` bytes) and verifies each of its leaves.
    ///
    /// # Errors
    /// [`Error::Altered`] with the first leaf that differs; as [`Bundle::read_at`].
    pub fn read_verified(&self, extent: &Extent, buffer: &mut [u8]) -> Result<(), Error> {
        self.read_at(extent.offset, buffer)?;
        self.verify_bytes(extent, buffer)
    }

    /// Verifies bytes already in memory (`extent.length` of them) against the table.
    ///
    /// # Errors
    /// [`Error::Altered`] with the first leaf that differs, or when the length is another one.
    pub fn verify_bytes(&self, extent: &Extent, bytes: &[u8]) -> Result<(), Error> {
        self.verify_leaves(extent.first_leaf, extent.leaf_bytes, extent.length, bytes)
    }

    fn verify_leaves(
        &self,
        first: u64,
        leaf_bytes: u64,
        length: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let place = |n| scan::leaf_place(&self.path, &self.manifest, &self.index, n);
        if u64::try_from(bytes.len()) != Ok(length) {
            return Err(Error::Altered {
                place: Box::new(place(first)),
                rule: "5.3",
                expected: format!("{length} bytes"),
                found: format!("{} bytes", bytes.len()),
            });
        }
        let size = usize::try_from(leaf_bytes).unwrap_or(usize::MAX).max(1);
        for (number, leaf) in (first..).zip(bytes.chunks(size)) {
            let found = of(leaf);
            let sealed = entry(&self.table, number).unwrap_or_default();
            if found != sealed {
                return Err(altered(place(number), "4.7", &sealed, &found));
            }
        }
        Ok(())
    }

    /// BLAKE3 of the source bytes an extent was made from (the digest table's second part).
    pub fn source_digest(&self, extent: &Extent) -> Digest {
        entry(&self.table, self.leaves().saturating_add(extent.source)).unwrap_or_default()
    }

    /// An attached file, verified and decompressed within its declared length.
    ///
    /// # Errors
    /// [`Error::Altered`], or [`Error::Broken`] by rule 7.4 when it does not decompress to what is declared.
    pub fn attached(&self, entry: &Attached) -> Result<Vec<u8>, Error> {
        let broken = |reason: String| {
            Fault::new("7.4", "attached", reason)
                .of(&entry.name)
                .at(entry.offset..entry.offset.saturating_add(entry.stored))
                .in_file(&self.path)
        };
        let number = (self.manifest.checked.attached.iter())
            .position(|a| a.name == entry.name && a.offset == entry.offset);
        let item = number
            .and_then(|n| self.index.attached(n))
            .ok_or_else(|| broken("there is no such attached file in this bundle".to_owned()))?;
        let length = usize::try_from(item.length)
            .map_err(|_| broken("too large for this machine".to_owned()))?;
        let mut stored = vec![0; length];
        self.read_at(item.offset, &mut stored)?;
        self.verify_leaves(item.first_leaf, item.leaf_bytes, item.length, &stored)?;
        match entry.compression {
            Compression::None => Ok(stored),
            Compression::Zstd => decompress(&stored, entry.length).map_err(broken),
        }
    }

    /// The attached file called `name`.
    pub fn attached_named(&self, name: &str) -> Option<&Attached> {
        let files = &self.manifest.checked.attached;
        files.iter().find(|a| a.name == name)
    }

    /// The stamps after the content.
    ///
    /// # Errors
    /// [`Error::Io`]; what is wrong with the stamps themselves is in [`Stamps::fault`].
    pub fn stamps(&self) -> Result<Stamps, Error> {
        stamp::read(&self.file, &self.path, self.content_length(), &self.id)
    }

    /// A read-only memory map of the content, for zero-copy access by offset.
    ///
    /// # Errors
    /// [`Error::Io`]. See [`Map`] for what a map cannot promise.
    pub fn map(&self) -> Result<Map, Error> {
        let length = self.file.metadata();
        let found = length.map_err(Error::io(&self.path, "look at"))?.len();
        if found < self.content_length() {
            return Err(Error::CutShort {
                file: self.path.clone(),
                expected: self.content_length(),
                found,
            });
        }
        Map::new(&self.file, &self.path, self.content_length())
    }

    /// What a scan of the whole content needs.
    pub(crate) fn scan(&self) -> Scan<'_> {
        let manifest_end = PAGE_BYTES.saturating_add(self.preamble.manifest_length);
        let data = self.preamble.data_offset();
        Scan {
            file: &self.file,
            path: &self.path,
            manifest: &self.manifest,
            index: &self.index,
            table: &self.table,
            zeros: [
                manifest_end..self.preamble.table_offset,
                self.table_bytes().end..data,
            ],
            data,
            end: self.content_length(),
        }
    }

    /// Length of the file, stamps included.
    pub(crate) fn file_length(&self) -> Result<u64, Error> {
        let about = self.file.metadata();
        Ok(about.map_err(Error::io(&self.path, "look at"))?.len())
    }
}

/// Reads a range whose digest stands in page 0.
fn digested(
    file: &File,
    path: &Path,
    (region, rule): (&str, &'static str),
    offset: u64,
    length: u64,
    sealed: &Digest,
) -> Result<Vec<u8>, Error> {
    let place = Place {
        file: path.to_path_buf(),
        region: region.to_owned(),
        bytes: offset..offset.saturating_add(length),
        ..Place::default()
    };
    // Page 0 bounds both lengths, and both lie within the file.
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut hasher = blake3::Hasher::new();
    let mut at = offset;
    // Hashed while it is still in the processor's cache.
    for window in bytes.chunks_mut(256 << 10) {
        scan::read_exact(file, path, at, window)?;
        hasher.update(window);
        at = at.saturating_add(u64::try_from(window.len()).unwrap_or(u64::MAX));
    }
    let found: Digest = *hasher.finalize().as_bytes();
    if found != *sealed {
        return Err(altered(place, rule, sealed, &found));
    }
    Ok(bytes)
}

/// The manifest, if its text is exactly what this crate would write for it and plainly within the limits: a short way through
/// rules 3.1 to 3.6. What comes back the same when it is written again has no key twice, none that was ignored, and no value
/// of another type.
fn canonical(text: &[u8]) -> Option<Manifest> {
    // Fewer than 16 digits in a row are below the largest integer. A number stands behind one of these marks, the digits of a
    // SHA-256 do not.
    let mut before = b' ';
    let long_number = text
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        .any(|run| {
            let long = run.len() >= 16
                && run.first().is_some_and(u8::is_ascii_digit)
                && b":,[-".contains(&before);
            before = run.last().copied().unwrap_or(before);
            long
        });
    if long_number || !json::surely_few_values(text) {
        return None;
    }
    let manifest: Manifest = serde_json::from_slice(text).ok()?;
    let same = serde_json::to_vec(&manifest).is_ok_and(|again| again == text);
    // Only the architecture can nest and can have numbers with an exponent.
    let plain = |value: &serde_json::Value| {
        use serde_json::Value::{Array, Number, Object};
        match value {
            Array(list) => list.iter().all(|v| matches!(v, Number(n) if n.is_u64())),
            Object(map) => map.values().all(|v| match v {
                Array(_) | Object(_) => false,
                Number(n) => n.is_u64() || n.as_f64().is_some_and(|n| n.abs() < 1e15),
                _ => true,
            }),
            Number(n) => n.is_u64() || n.as_f64().is_some_and(|n| n.abs() < 1e15),
            _ => true,
        }
    };
    (same && manifest.requires.is_empty() && manifest.checked.architecture.values().all(plain))
        .then_some(manifest)
}

/// The manifest from its text: rules 3.1 to 3.6.
fn manifest(text: &[u8], minor: u16, path: &Path) -> Result<Manifest, Error> {
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let broken = |rule, reason: String| {
        Fault::new(rule, "manifest", reason)
            .at(PAGE_BYTES..PAGE_BYTES.saturating_add(length))
            .in_file(path)
    };
    if let Some(manifest) = canonical(text) {
        return Ok(manifest);
    }
    let value = json::parse(text).map_err(|(rule, reason)| broken(rule, reason))?;
    if !value.is_object() {
        return Err(broken("3.1", "it is no JSON object".to_owned()));
    }
    // Before the fields: a bundle that needs something new may also have new fields.
    let requires = value.get("requires").and_then(|r| r.as_array());
    let unknown: Vec<String> = requires
        .into_iter()
        .flatten()
        .filter_map(|feature| feature.as_str())
        .map(|feature| format!("`{feature}`"))
        .collect();
    if !unknown.is_empty() {
        return Err(Error::Newer {
            file: path.to_path_buf(),
            needs: format!("the feature {}", unknown.join(", ")),
        });
    }
    let manifest: Manifest = serde::Deserialize::deserialize(&value)
        .map_err(|error| broken("3.4", error.to_string()))?;
    let known =
        serde_json::to_value(&manifest).map_err(|error| broken("3.4", error.to_string()))?;
    // A later minor version may have keys that this one does not know.
    match json::unlike(&value, &known, minor > MINOR) {
        Some((rule @ "3.5", key)) => Err(broken(rule, format!("unknown key `{key}`"))),
        Some((rule, path)) => Err(broken(rule, format!("`{path}`"))),
        None => Ok(manifest),
    }
}

/// Checks a manifest against the rules and against page 0.
fn placed(manifest: Manifest, preamble: &Preamble) -> Result<(Manifest, Index), Fault> {
    let mut plan = check::plan(&manifest)?;
    if preamble.table_length != plan.table_length() {
        return Err(Fault::new(
            "4.9",
            "manifest",
            format!(
                "{} leaves and {} source pieces take a digest table of {} bytes, found {}",
                plan.index.leaves(),
                plan.index.sources(),
                plan.table_length(),
                preamble.table_length
            ),
        ));
    }
    let data = preamble.data_offset();
    check::compare(&manifest, &plan, data)?;
    let end = data.saturating_add(plan.length);
    if end != preamble.content_length {
        return Err(Fault::new(
            "4.2",
            "manifest",
            format!(
                "the last segment ends at byte {end}, the content at {}",
                preamble.content_length
            ),
        ));
    }
    plan.index.shift(data);
    Ok((manifest, plan.index))
}

/// Magic number of a Zstandard frame; a skippable frame has another.
const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bit of the byte behind the magic: no window is stated, it is the stated content size.
const SINGLE_SEGMENT: u8 = 0x20;
/// Largest window that is stated: 128 MiB.
const WINDOW_LOG: u32 = 27;
/// 1 GiB: no attached file is longer (rule 7.3), so no content size that was compared with `length` is.
const SINGLE_SEGMENT_LOG: u32 = 30;

/// Decompresses one zstd frame into exactly `length` bytes, never more.
fn decompress(stored: &[u8], length: u64) -> Result<Vec<u8>, String> {
    let descriptor = match stored.split_first_chunk() {
        Some((magic, [descriptor, ..])) if *magic == FRAME_MAGIC => *descriptor,
        _ => return Err("it is no Zstandard frame".to_owned()),
    };
    let stated = zstd::zstd_safe::get_frame_content_size(stored)
        .map_err(|_| "its frame's header is damaged".to_owned())?;
    if let Some(stated) = stated.filter(|n| *n != length) {
        return Err(format!(
            "its frame states {stated} bytes, {length} are declared"
        ));
    }
    // The decoder takes memory for the window.
    let window_log = if descriptor & SINGLE_SEGMENT == 0 {
        WINDOW_LOG
    } else {
        SINGLE_SEGMENT_LOG
    };
    let mut rest = stored;
    let mut bytes = Vec::new();
    let mut frame = zstd::stream::read::Decoder::with_buffer(&mut rest)
        .map_err(|e| e.to_string())?
        .single_frame();
    frame
        .window_log_max(window_log)
        .map_err(|e| e.to_string())?;
    frame
        .take(length.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| format!("it does not decompress: {e}"))?;
    let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if found > length {
        return Err(format!(
            "it decompresses to more than the declared {length} bytes"
        ));
    }
    if found < length {
        return Err(format!(
            "it decompresses to {found} bytes, {length} are declared"
        ));
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes stand behind its frame", rest.len()));
    }
    Ok(bytes)
}
