//! Reads a bundle's content once, front to back in large ranges by several threads, and checks each leaf and all padding.
//!
//! Memory is bounded: each thread has one buffer, and the list of pieces is made as it is consumed.

use crate::{
    Digest,
    error::{Error, Place, altered},
    index::{Index, Item},
    manifest::Manifest,
};
use std::{
    fs::File,
    ops::Range,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Bytes that a thread takes at a time.
const SHARE_BYTES: u64 = 16 << 20;
/// Pieces that a thread takes at a time, at most.
const SHARE_PIECES: usize = 4096;
/// Bytes of one read: what is read is hashed while it is still in the core's own cache.
const READ_BYTES: usize = 128 << 10;

/// What is scanned.
pub(crate) struct Scan<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    pub manifest: &'a Manifest,
    pub index: &'a Index,
    /// The digest table.
    pub table: &'a [u8],
    /// Ranges before the first segment that must be zero, in file order.
    pub zeros: [Range<u64>; 2],
    /// First byte of the first segment.
    pub data: u64,
    /// First byte behind the content.
    pub end: u64,
}

/// What a scan found.
#[derive(Default)]
pub(crate) struct Found {
    pub faults: Vec<Error>,
    pub leaves: u64,
    pub bytes: u64,
    pub padding: u64,
}

/// A piece of the file: a leaf, or padding.
struct Piece {
    bytes: Range<u64>,
    /// Leaf number, where it is a leaf.
    leaf: Option<u64>,
}

/// The sealed digest of leaf `number`.
pub(crate) fn entry(table: &[u8], number: u64) -> Option<Digest> {
    let start = usize::try_from(number).ok()?.checked_mul(32)?;
    table.get(start..start.checked_add(32)?)?.try_into().ok()
}

impl Scan<'_> {
    /// Every byte from the first range of zeros to the end, in file order.
    fn pieces(&self) -> impl Iterator<Item = Piece> {
        let before = self.zeros.iter().map(|r| Piece {
            bytes: r.clone(),
            leaf: None,
        });
        let mut end = self.data;
        let items = self.index.items().flat_map(move |item: Item| {
            let gap = Piece {
                bytes: end..item.offset,
                leaf: None,
            };
            end = item.end();
            let leaves = (0..item.leaves).map(move |n| Piece {
                bytes: item.leaf(n),
                leaf: item.first_leaf.checked_add(n),
            });
            std::iter::once(gap).chain(leaves)
        });
        let last = self.index.items().last().map_or(self.data, |i| i.end());
        let rest = std::iter::once(Piece {
            bytes: last..self.end,
            leaf: None,
        });
        before
            .chain(items)
            .chain(rest)
            .filter(|p| !p.bytes.is_empty())
    }

    /// Checks everything with `threads` threads. `progress` is called with the bytes done since its last call.
    pub fn run(&self, threads: usize, progress: &(dyn Fn(u64) + Sync)) -> Result<Found, Error> {
        let pieces = Mutex::new(self.pieces().peekable());
        let found = Mutex::new(Found::default());
        let stop = Mutex::new(None);
        let work = || {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let mut share = Vec::new();
                {
                    let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
                    if stop
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .is_some()
                    {
                        return;
                    }
                    let mut bytes = 0;
                    // A share is one range without holes: the file holds other things only before the first segment.
                    while let Some(piece) = pieces.next_if(|p| {
                        share
                            .last()
                            .is_none_or(|l: &Piece| l.bytes.end == p.bytes.start)
                    }) {
                        bytes += piece.bytes.end - piece.bytes.start;
                        share.push(piece);
                        if bytes >= SHARE_BYTES || share.len() >= SHARE_PIECES {
                            break;
                        }
                    }
                }
                if share.is_empty() {
                    return;
                }
                match self.share(&share, &mut buffer, progress) {
                    Ok(part) => {
                        let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
                        all.faults.extend(part.faults);
                        all.leaves += part.leaves;
                        all.bytes += part.bytes;
                        all.padding += part.padding;
                    }
                    Err(error) => {
                        stop.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                    }
                }
            }
        };
        let threads = threads.clamp(1, 256);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = stop.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found
            .faults
            .sort_by_key(|f| f.place().map_or(0, |p| p.bytes.start));
        Ok(found)
    }

    /// Checks pieces that follow each other without a hole.
    fn share(
        &self,
        pieces: &[Piece],
        buffer: &mut [u8],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut pieces = pieces.iter();
        let (Some(first), Some(last)) = (pieces.clone().next(), pieces.clone().next_back()) else {
            return Ok(found);
        };
        let (mut at, end) = (first.bytes.start, last.bytes.end);
        let mut current = pieces.next();
        let mut state = State::default();
        while at < end {
            let length = usize::try_from(end - at).map_or(buffer.len(), |n| n.min(buffer.len()));
            let window = &mut buffer[..length];
            read_exact(self.file, self.path, at, window)?;
            let mut rest: &[u8] = window;
            while let (Some(piece), false) = (current, rest.is_empty()) {
                let wanted = piece.bytes.end - at;
                let taken = usize::try_from(wanted).map_or(rest.len(), |n| n.min(rest.len()));
                let (now, later) = rest.split_at(taken);
                rest = later;
                state.feed(piece, now, at);
                at += now.len() as u64;
                if at == piece.bytes.end {
                    let ended = std::mem::take(&mut state);
                    self.judge(piece, ended, &mut found);
                    current = pieces.next();
                }
            }
            progress(length as u64);
            found.bytes += length as u64;
        }
        Ok(found)
    }

    fn judge(&self, piece: &Piece, state: State, found: &mut Found) {
        let Some(number) = piece.leaf else {
            found.padding += piece.bytes.end - piece.bytes.start;
            if let Some((at, byte)) = state.stray {
                found.faults.push(self.padding_fault(at, byte));
            }
            return;
        };
        found.leaves += 1;
        let digest: Digest = *state.hasher.finalize().as_bytes();
        let sealed = entry(self.table, number).unwrap_or_default();
        if digest != sealed {
            found.faults.push(altered(
                leaf_place(self.path, self.manifest, self.index, number),
                "4.7",
                &sealed,
                &digest,
            ));
        }
    }

    fn padding_fault(&self, at: u64, byte: u8) -> Error {
        let before = self.index.items().take_while(|i| i.offset <= at).last();
        Error::Altered {
            place: Box::new(Place {
                file: self.path.to_path_buf(),
                region: "padding".to_owned(),
                subject: Some(match &before {
                    Some(item) => item.label(self.manifest),
                    None if self.zeros.first().is_some_and(|z| z.contains(&at)) => {
                        "the manifest".to_owned()
                    }
                    None => "the digest table".to_owned(),
                }),
                bytes: at..at.saturating_add(1),
                leaf: None,
            }),
            rule: "4.8",
            expected: "00".to_owned(),
            found: format!("{byte:02x}"),
        }
    }
}

/// The place of leaf `number`.
pub(crate) fn leaf_place(path: &Path, manifest: &Manifest, index: &Index, number: u64) -> Place {
    let item = index.item_of_leaf(number);
    let bytes = item
        .as_ref()
        .map_or(0..0, |i| i.leaf(number.saturating_sub(i.first_leaf)));
    Place {
        file: path.to_path_buf(),
        region: item.as_ref().map_or("", |i| i.segment.as_str()).to_owned(),
        subject: item.map(|i| i.label(manifest)),
        bytes,
        leaf: Some(number),
    }
}

/// What is known of the piece that is being read.
#[derive(Default)]
struct State {
    hasher: blake3::Hasher,
    /// The first byte of padding that is not zero, and its place.
    stray: Option<(u64, u8)>,
}

impl State {
    fn feed(&mut self, piece: &Piece, bytes: &[u8], at: u64) {
        if piece.leaf.is_some() {
            self.hasher.update(bytes);
        } else if self.stray.is_none() {
            self.stray = bytes
                .iter()
                .zip(at..)
                .find(|(b, _)| **b != 0)
                .map(|(b, at)| (at, *b));
        }
    }
}

/// Reads exactly `buffer.len()` bytes at `offset`; a file that has become shorter is [`Error::CutShort`].
pub(crate) fn read_exact(
    file: &File,
    path: &Path,
    offset: u64,
    buffer: &mut [u8],
) -> Result<(), Error> {
    match file.read_exact_at(buffer, offset) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(Error::CutShort {
            file: path.to_path_buf(),
            expected: offset.saturating_add(buffer.len() as u64),
            found: file.metadata().map_or(0, |m| m.len()),
        }),
        Err(e) => Err(Error::io(path, "read")(e)),
    }
}

/// How many threads to use where nobody said.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
