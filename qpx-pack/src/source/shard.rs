//! One shard: opened, recognised, its header read and checked. No weight is read here.

use super::{
    fault::Fault,
    header::{self, Entry, LONGEST_HEADER_BYTES},
    recognise::{Impostor, LOOK_BYTES},
};
use crate::problem::Problem;
use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// A shard whose header keeps every rule.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its name within the folder.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it was like when its header was read; a later difference means that somebody writes to it.
    pub state: State,
    /// The header's bytes: its length, and the JSON.
    pub header: Vec<u8>,
    /// Its tensors in the order of their data.
    pub entries: Vec<Entry>,
    /// What stands under `__metadata__`.
    pub metadata: Vec<(String, String)>,
    /// Tensors whose data is not aligned.
    pub unaligned: u64,
}

/// What tells whether a file was written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its size.
    pub bytes: u64,
    modified: Option<SystemTime>,
}

impl State {
    /// The state that `metadata` shows.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl Shard {
    /// Reads and checks the header of the file at `path`, called `name` within its folder.
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, Vec<Problem>> {
        let unreadable = |error: io::Error| {
            vec![Problem::Unreadable {
                file: name.to_owned(),
                reason: error.to_string(),
            }]
        };
        let broken = |faults: Vec<Fault>| -> Vec<Problem> {
            let of = |fault| Problem::Shard {
                file: name.to_owned(),
                fault,
            };
            faults.into_iter().map(of).collect()
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let state = State::of(&metadata);
        let mut start = Vec::new();
        (&mut file)
            .take(LOOK_BYTES as u64)
            .read_to_end(&mut start)
            .map_err(unreadable)?;
        if let Some(impostor) = Impostor::recognise(&start, state.bytes) {
            return Err(broken(vec![Fault::Impostor(impostor)]));
        }
        let Some(length) = start.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)) else {
            return Err(broken(vec![Fault::NoLength { found: state.bytes }]));
        };
        if length > LONGEST_HEADER_BYTES {
            return Err(broken(vec![Fault::HeaderTooLong { found: length }]));
        }
        let end = length + 8;
        if end > state.bytes {
            return Err(broken(vec![Fault::HeaderCut {
                expected: end,
                found: state.bytes,
            }]));
        }
        let mut header = start;
        let whole = usize::try_from(end).unwrap_or(usize::MAX);
        if header.len() < whole {
            let rest = end - header.len() as u64;
            (&mut file)
                .take(rest)
                .read_to_end(&mut header)
                .map_err(unreadable)?;
        }
        header.truncate(whole);
        if header.len() != whole {
            return Err(broken(vec![Fault::HeaderCut {
                expected: end,
                found: header.len() as u64,
            }]));
        }
        let parsed =
            header::parse(header.get(8..).unwrap_or_default(), state.bytes).map_err(broken)?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            state,
            header,
            entries: parsed.entries,
            metadata: parsed.metadata,
            unaligned: parsed.unaligned,
        })
    }
}
