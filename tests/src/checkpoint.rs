//! Copies of checkpoints to break, and a plain way to take shards apart and put them together.

use serde_json::{Map, Value};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A copy of a fixture's files in `folder`.
///
/// # Panics
/// When a file can't be copied.
pub fn copy(fixture: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("a new folder");
    for entry in fs::read_dir(fixture).expect("the fixture") {
        let entry = entry.expect("an entry");
        if !entry.file_name().to_string_lossy().starts_with("golden") {
            fs::copy(entry.path(), folder.join(entry.file_name())).expect("a copy");
        }
    }
    folder.to_path_buf()
}

/// The shards of a folder, in the order of their names.
///
/// # Panics
/// When the folder can't be read.
pub fn shards(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("the folder")
        .map(|e| e.expect("an entry").path());
    let mut shards: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .collect();
    shards.sort();
    shards
}

/// A shard taken apart: its header as JSON and its data.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Tensor name → dtype, shape, data_offsets.
    pub header: Map<String, Value>,
    /// The bytes behind the header.
    pub data: Vec<u8>,
}

impl Shard {
    /// Reads a shard.
    ///
    /// # Panics
    /// When the file is no well-formed shard.
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).expect("the shard");
        let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        let end = 8 + usize::try_from(length).expect("a length");
        Self {
            header: serde_json::from_slice(&bytes[8..end]).expect("a header"),
            data: bytes[end..].to_vec(),
        }
    }

    /// Writes it.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn write(&self, path: &Path) {
        let header = serde_json::to_vec(&self.header).expect("JSON");
        let mut bytes = u64::try_from(header.len())
            .expect("a length")
            .to_le_bytes()
            .to_vec();
        bytes.extend(header);
        bytes.extend(&self.data);
        fs::write(path, bytes).expect("the shard is written");
    }

    /// Appends a tensor of `bytes`.
    pub fn push(&mut self, name: &str, dtype: &str, shape: &[u64], bytes: &[u8]) {
        let start = self.data.len();
        self.data.extend(bytes);
        let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [start, self.data.len()]});
        self.header.insert(name.to_owned(), entry);
    }
}

/// Changes a JSON file in place.
///
/// # Panics
/// When it can't be read, parsed or written.
pub fn edit_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).expect("the file")).expect("JSON");
    change(&mut value);
    fs::write(path, serde_json::to_vec_pretty(&value).expect("JSON")).expect("the file is written");
}
