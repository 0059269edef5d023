//! A checkpoint's folder, read without reading weights: its files, its shards' headers, its index, its configuration.
//!
//! Index and headers must agree both ways. What is wrong is gathered, never the end of the search.

pub mod dtype;
pub mod fault;
mod folder;
pub mod header;
mod index;
pub(crate) mod json;
mod recognise;
pub mod shard;
mod stray;

pub use folder::Listed;
pub(crate) use folder::{licence_of_card, purpose};
pub use recognise::Impostor;
pub use shard::Shard;

use crate::{Error, note::Note, problem::Problem};
use header::Entry;
use index::Index;
use recognise::LOOK_BYTES;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// A checkpoint as its headers and configuration files show it.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint {
    /// Every file, in the order of their names.
    pub files: Vec<Listed>,
    /// The shards in use, in the order of their names.
    pub shards: Vec<Shard>,
    /// The index file's name, where there is one.
    pub index: Option<String>,
    /// config.json.
    pub config: Option<Map<String, Value>>,
    /// generation_config.json.
    pub generation: Option<Map<String, Value>>,
    /// Tensors that a missing or broken shard should hold: reporting them as missing would say the same twice.
    pub unavailable: BTreeSet<String>,
    /// Whether a shard is so broken that nobody knows what it should hold.
    pub incomplete: bool,
    /// Remarks.
    pub notes: Vec<Note>,
    /// All that is wrong.
    pub problems: Vec<Problem>,
}

/// Where a tensor is: shard number and entry.
pub(crate) type Place<'a> = (usize, &'a Entry);

impl Checkpoint {
    /// Looks through `folder`; `not_ours` are names of files within it that are no part of the checkpoint (the output).
    pub(crate) fn open(folder: &Path, not_ours: &[String]) -> Result<Self, Error> {
        let mut this = Self::default();
        let reading = |source| Error::Read {
            file: folder.to_owned(),
            doing: "listing",
            source,
        };
        this.files = folder::list(folder, &mut this.notes, &mut this.problems).map_err(reading)?;
        this.files.retain(|file| !not_ours.contains(&file.name));
        this.config = this.settings("config.json");
        if this.config.is_none() && !this.has("config.json") {
            this.problems.push(Problem::MissingFile {
                file: "config.json",
                need: "it says what the tensors make up",
            });
        }
        this.generation = this.settings("generation_config.json");
        if !this.has("tokenizer.json") {
            this.problems.push(Problem::MissingFile {
                file: "tokenizer.json",
                need: "without it nobody can turn text into the model's ids",
            });
        }
        this.check_companions();
        this.choose_shards();
        Ok(this)
    }

    /// The file called `name`.
    pub(crate) fn file(&self, name: &str) -> Option<&Listed> {
        self.files.iter().find(|file| file.name == name)
    }

    fn has(&self, name: &str) -> bool {
        self.file(name).is_some()
    }

    /// All tensors by name; a tensor that is stored twice is a problem.
    pub(crate) fn tensors<'a>(
        shards: &'a [Shard],
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<&'a str, Place<'a>> {
        let mut tensors: BTreeMap<&str, Place<'_>> = BTreeMap::new();
        for (number, shard) in shards.iter().enumerate() {
            for entry in &shard.entries {
                if let Some((first, _)) = tensors.insert(&entry.name, (number, entry)) {
                    problems.push(Problem::StoredTwice {
                        tensor: entry.name.clone(),
                        first: shards
                            .get(first)
                            .map(|s| s.name.clone())
                            .unwrap_or_default(),
                        second: shard.name.clone(),
                    });
                }
            }
        }
        tensors
    }

    /// Reads a small file whole; what goes wrong becomes a problem.
    pub(crate) fn read(&mut self, name: &str) -> Option<Vec<u8>> {
        let file = self.file(name)?.clone();
        let reason = if json::is_sane_size(file.bytes) {
            match fs::read(&file.path) {
                Ok(bytes) => return Some(bytes),
                Err(error) => error.to_string(),
            }
        } else {
            format!("{} bytes are too many for a file of its kind", file.bytes)
        };
        self.problems.push(Problem::Unreadable {
            file: name.to_owned(),
            reason,
        });
        None
    }

    fn settings(&mut self, name: &str) -> Option<Map<String, Value>> {
        let bytes = self.read(name)?;
        let reason = match json::parse(&bytes) {
            Ok(Value::Object(map)) => return Some(map),
            Ok(_) => "it is no object".to_owned(),
            Err(reason) => reason,
        };
        self.problems.push(Problem::Json {
            file: name.to_owned(),
            reason,
        });
        None
    }

    /// Files that travel must be what their names say: not pointers, not pages, JSON where they are called so.
    fn check_companions(&mut self) {
        let names: Vec<_> = self.files.iter().map(|f| f.name.clone()).collect();
        for name in names.iter().filter(|name| purpose(name).is_some()) {
            let Some(bytes) = self.read(name) else {
                continue;
            };
            let start = bytes.get(..LOOK_BYTES.min(bytes.len())).unwrap_or_default();
            if let Some(pointer @ Impostor::LfsPointer { .. }) =
                Impostor::recognise(start, bytes.len() as u64)
            {
                self.problems.push(Problem::Shard {
                    file: name.clone(),
                    fault: fault::Fault::Impostor(pointer),
                });
            } else if name == "tokenizer.json"
                && let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes)
            {
                self.problems.push(Problem::Json {
                    file: name.clone(),
                    reason: error.to_string(),
                });
            }
        }
    }

    /// Finds the shards that belong together and opens them.
    fn choose_shards(&mut self) {
        let weights: Vec<_> = self
            .files
            .iter()
            .filter(|f| !f.name.contains('/') && f.name.ends_with(".safetensors"))
            .map(|f| f.name.clone())
            .collect();
        let indices: Vec<_> = self
            .files
            .iter()
            .filter(|f| !f.name.contains('/') && f.name.ends_with(".safetensors.index.json"))
            .map(|f| f.name.clone())
            .collect();
        let standard = "model.safetensors.index.json".to_owned();
        let index = match indices.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many if many.contains(&standard) => Some(standard),
            many => {
                self.problems.push(Problem::NoIndex {
                    files: many.to_vec(),
                });
                self.incomplete = true;
                return;
            }
        };
        let used = match index {
            Some(name) => self.indexed(&name),
            None => self.single(&weights),
        };
        let Some(used) = used else {
            self.incomplete = true;
            return;
        };
        self.judge_strays(&weights, &used);
    }

    /// The one weight file of a folder without an index.
    fn single(&mut self, weights: &[String]) -> Option<BTreeSet<String>> {
        let numbered = |name: &String| name.contains("-of-");
        let one = match weights {
            [] => {
                let others = self.files.iter().map(|f| f.name.clone());
                let others = others.filter(|name| {
                    [".bin", ".gguf", ".pth", ".pt", ".h5", ".npz", ".onnx"]
                        .iter()
                        .any(|end| name.ends_with(end))
                });
                self.problems.push(Problem::NoWeights {
                    others: others.collect(),
                });
                return None;
            }
            many if many.iter().any(numbered) => None,
            [one] => Some(one.clone()),
            many => many
                .iter()
                .find(|name| *name == "model.safetensors")
                .cloned(),
        };
        let Some(one) = one else {
            self.problems.push(Problem::NoIndex {
                files: weights.to_vec(),
            });
            return None;
        };
        let path = self.file(&one)?.path.clone();
        match Shard::open(&path, &one) {
            Ok(shard) => self.adopt(shard),
            Err(problems) => {
                self.problems.extend(problems);
                self.incomplete = true;
            }
        }
        Some(BTreeSet::from([one]))
    }

    /// The shards that the index names, checked against it both ways.
    fn indexed(&mut self, name: &str) -> Option<BTreeSet<String>> {
        let bytes = self.read(name)?;
        let index = match index::parse(name, &bytes) {
            Ok(index) => index,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        self.index = Some(name.to_owned());
        let named: BTreeSet<_> = index.places.values().cloned().collect();
        let mut absent = Vec::new();
        let mut broken = BTreeSet::new();
        for shard in &named {
            let Some(path) = self.file(shard).map(|f| f.path.clone()) else {
                absent.push(shard.clone());
                continue;
            };
            match Shard::open(&path, shard) {
                Ok(shard) => self.adopt(shard),
                Err(problems) => {
                    self.problems.extend(problems);
                    broken.insert(shard.clone());
                }
            }
        }
        self.report_absent(&index, &named, &absent);
        let gone = |shard: &String| absent.contains(shard) || broken.contains(shard);
        let unavailable = index.places.iter().filter(|(_, shard)| gone(shard));
        self.unavailable = unavailable.map(|(tensor, _)| tensor.clone()).collect();
        self.cross_check(&index, &gone);
        Some(named)
    }

    fn adopt(&mut self, shard: Shard) {
        if shard.unaligned > 0 {
            self.notes.push(Note::Unaligned {
                file: shard.name.clone(),
                tensors: shard.unaligned,
            });
        }
        self.shards.push(shard);
    }

    fn report_absent(&mut self, index: &Index, named: &BTreeSet<String>, absent: &[String]) {
        if absent.is_empty() {
            return;
        }
        let unnamed: Vec<_> = self
            .files
            .iter()
            .map(|f| f.name.clone())
            .filter(|name| {
                name.ends_with(".safetensors") && name.contains("-of-") && !named.contains(name)
            })
            .collect();
        if !unnamed.is_empty() {
            self.problems.push(Problem::StaleIndex {
                index: index.name.clone(),
                named: named.len() as u64,
                absent: absent.len() as u64,
                unnamed,
            });
        }
        for file in absent {
            let tensors = index.places.values().filter(|shard| *shard == file).count() as u64;
            self.problems.push(Problem::MissingShard {
                index: index.name.clone(),
                file: file.clone(),
                tensors,
            });
        }
    }

    fn cross_check(&mut self, index: &Index, gone: &dyn Fn(&String) -> bool) {
        let mut problems = Vec::new();
        let tensors = Self::tensors(&self.shards, &mut problems);
        let shard_name = |number: usize| self.shards.get(number).map_or("", |s| s.name.as_str());
        for (tensor, shard) in &index.places {
            let holder = tensors
                .get(tensor.as_str())
                .map(|(number, _)| shard_name(*number));
            if holder != Some(shard.as_str()) && !gone(shard) {
                let twice = problems
                    .iter()
                    .any(|p| matches!(p, Problem::StoredTwice { tensor: t, .. } if t == tensor));
                if !twice {
                    problems.push(Problem::AbsentTensor {
                        index: index.name.clone(),
                        tensor: tensor.clone(),
                        shard: shard.clone(),
                        holder: holder.map(str::to_owned),
                    });
                }
            }
        }
        for shard in &self.shards {
            let omitted = shard.entries.iter().map(|e| e.name.clone());
            let omitted: Vec<_> = omitted
                .filter(|name| !index.places.contains_key(name))
                .collect();
            if !omitted.is_empty() {
                problems.push(Problem::OmittedTensors {
                    index: index.name.clone(),
                    shard: shard.name.clone(),
                    tensors: omitted,
                });
            }
        }
        let found: u64 = tensors.values().map(|(_, entry)| entry.length).sum();
        let whole = self.unavailable.is_empty();
        if let Some(stated) = index.total_bytes.filter(|stated| whole && *stated != found) {
            self.notes.push(Note::TotalSize {
                index: index.name.clone(),
                stated,
                found,
            });
        }
        self.problems.extend(problems);
    }
}
