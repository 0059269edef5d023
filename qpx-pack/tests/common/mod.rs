//! What the tests of packing share.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that can't make its input fails")]

use qpx_pack::{Packed, Recipe, Request, Silent};
use serde_json::{Map, Value, json};
use sha2::Digest as _;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(name)
}

pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub fn pack_to(name: &str, output: &Path, recipe: &str) -> Packed {
    let mut request = Request::new(fixture(name), output);
    request.recipe = Recipe::named(recipe).unwrap();
    request.force = true;
    qpx_pack::run(&request, &Silent).unwrap_or_else(|e| panic!("{name}, {recipe}: {e}"))
}

pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// A small checkpoint in memory, to be broken and written.
pub struct Folder {
    pub shards: Vec<Shard>,
    files: BTreeMap<String, Vec<u8>>,
    config: Map<String, Value>,
    index: Option<Map<String, Value>>,
    edits: Vec<(String, Edit)>,
    links: Vec<(String, String)>,
}

enum Edit {
    Cut(usize),
    Keep(usize),
    Append(Vec<u8>),
    Rename(String),
}

/// A shard in memory.
pub struct Shard {
    pub name: String,
    header: Map<String, Value>,
    data: Vec<u8>,
}

impl Shard {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            header: Map::new(),
            data: Vec::new(),
        }
    }

    pub fn push(&mut self, name: &str, dtype: &str, shape: &[u64], bytes: &[u8]) {
        let start = self.data.len();
        self.data.extend(bytes);
        self.header.insert(
            name.to_owned(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": [start, self.data.len()]}),
        );
    }

    fn range(&self, name: &str) -> std::ops::Range<usize> {
        let at = |n: usize| {
            usize::try_from(self.header[name]["data_offsets"][n].as_u64().unwrap()).unwrap()
        };
        at(0)..at(1)
    }

    pub fn has(&self, name: &str) -> bool {
        self.header.contains_key(name)
    }

    /// Names and shapes.
    pub fn tensors(&self) -> Vec<(String, Vec<u64>)> {
        let shape = |v: &Value| {
            v["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(|d| d.as_u64().unwrap())
                .collect()
        };
        self.header
            .iter()
            .map(|(k, v)| (k.clone(), shape(v)))
            .collect()
    }

    /// Gives a tensor another shape and other bytes, if it is here.
    pub fn replace(&mut self, name: &str, shape: &[u64], bytes: &[u8]) {
        if !self.has(name) {
            return;
        }
        let old = std::mem::replace(self, Self::new(&self.name));
        for (tensor, old_shape) in old.tensors() {
            match tensor == name {
                true => self.push(name, "BF16", shape, bytes),
                false => self.push(&tensor, "BF16", &old_shape, &old.entry(&tensor)),
            }
        }
    }

    pub fn entry(&self, name: &str) -> Vec<u8> {
        self.data[self.range(name)].to_vec()
    }

    pub fn set(&mut self, name: &str, at: usize, bytes: &[u8]) {
        let range = self.range(name);
        self.data[range][at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut header = serde_json::to_vec(&self.header).unwrap();
        header.resize(header.len().next_multiple_of(8), b' ');
        [
            &(header.len() as u64).to_le_bytes()[..],
            &header,
            &self.data,
        ]
        .concat()
    }
}

/// Reproducible bf16 weights of a sensible size.
pub fn weights(seed: usize, count: u64) -> Vec<u8> {
    let mut state = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::new();
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = ((state >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.2;
        bytes.extend(&((value.to_bits() >> 16) as u16).to_le_bytes());
    }
    bytes
}

impl Folder {
    /// Two layers of two experts, in two shards.
    pub fn qwen3_moe() -> Self {
        Self::sized(8, 6)
    }

    pub fn sized(hidden: u64, inner: u64) -> Self {
        let config = json!({
            "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": hidden, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 10, "hidden_act": "silu",
            "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "rope_theta": 1e6, "num_experts": 2, "num_experts_per_tok": 1,
            "moe_intermediate_size": inner, "norm_topk_prob": true, "eos_token_id": 3
        });
        let mut tensors: Vec<(String, Vec<u64>)> =
            vec![("model.embed_tokens.weight".into(), vec![10, hidden])];
        for layer in 0..2 {
            let mut add = |name: &str, shape: &[u64]| {
                tensors.push((
                    format!("model.layers.{layer}.{name}.weight"),
                    shape.to_vec(),
                ))
            };
            add("input_layernorm", &[hidden]);
            add("post_attention_layernorm", &[hidden]);
            add("self_attn.q_proj", &[8, hidden]);
            add("self_attn.k_proj", &[4, hidden]);
            add("self_attn.v_proj", &[4, hidden]);
            add("self_attn.o_proj", &[hidden, 8]);
            add("self_attn.q_norm", &[4]);
            add("self_attn.k_norm", &[4]);
            add("mlp.gate", &[2, hidden]);
            for expert in 0..2 {
                add(&format!("mlp.experts.{expert}.gate_proj"), &[inner, hidden]);
                add(&format!("mlp.experts.{expert}.up_proj"), &[inner, hidden]);
                add(&format!("mlp.experts.{expert}.down_proj"), &[hidden, inner]);
            }
        }
        tensors.push(("model.norm.weight".into(), vec![hidden]));
        tensors.push(("lm_head.weight".into(), vec![10, hidden]));
        let mut shards = vec![
            Shard::new("model-00001-of-00002.safetensors"),
            Shard::new("model-00002-of-00002.safetensors"),
        ];
        let half = tensors.len() / 2;
        for (number, (name, shape)) in tensors.iter().enumerate() {
            let bytes = weights(number, shape.iter().product());
            shards[usize::from(number > half)].push(name, "BF16", shape, &bytes);
        }
        let mut folder = Self {
            shards,
            files: BTreeMap::from([("tokenizer.json".into(), b"{}".to_vec())]),
            config: config.as_object().unwrap().clone(),
            index: None,
            edits: Vec::new(),
            links: Vec::new(),
        };
        folder.reindex();
        folder
    }

    /// Makes the index say what the shards hold.
    pub fn reindex(&mut self) {
        let pairs = self
            .shards
            .iter()
            .flat_map(|s| s.header.keys().map(|k| (k.clone(), json!(s.name))));
        self.index = Some(pairs.collect());
    }

    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        self.files.insert(name.to_owned(), bytes.to_vec());
    }

    pub fn remove(&mut self, name: &str) {
        if name.ends_with("index.json") {
            self.index = None;
        }
        if name == "config.json" {
            self.config.clear();
        }
        self.files.remove(name);
        self.shards.retain(|s| s.name != name);
    }

    pub fn rename(&mut self, name: &str, to: &str) {
        self.edits
            .push((name.to_owned(), Edit::Rename(to.to_owned())));
    }
    pub fn cut(&mut self, name: &str, bytes: usize) {
        self.edits.push((name.to_owned(), Edit::Cut(bytes)));
    }
    pub fn keep(&mut self, name: &str, bytes: usize) {
        self.edits.push((name.to_owned(), Edit::Keep(bytes)));
    }
    pub fn append(&mut self, name: &str, bytes: &[u8]) {
        self.edits
            .push((name.to_owned(), Edit::Append(bytes.to_vec())));
    }
    pub fn link(&mut self, name: &str, to: &str) {
        self.links.push((name.to_owned(), to.to_owned()));
    }
    pub fn index<T>(&mut self, change: impl FnOnce(&mut Map<String, Value>) -> T) {
        change(self.index.as_mut().unwrap());
    }
    pub fn config<T>(&mut self, change: impl FnOnce(&mut Map<String, Value>) -> T) {
        change(&mut self.config);
    }

    /// A weight file that no index names, with one small tensor.
    pub fn stray(&mut self, name: &str, tensor: &str) {
        let mut shard = Shard::new(name);
        shard.push(tensor, "U8", &[4], b"abcd");
        self.file(name, &shard.bytes());
    }

    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        if !self.config.is_empty() {
            fs::write(
                folder.join("config.json"),
                serde_json::to_vec(&self.config).unwrap(),
            )
            .unwrap();
        }
        if let Some(index) = &self.index {
            let index = json!({"weight_map": index});
            fs::write(
                folder.join("model.safetensors.index.json"),
                index.to_string(),
            )
            .unwrap();
        }
        for shard in &self.shards {
            fs::write(folder.join(&shard.name), shard.bytes()).unwrap();
        }
        for (name, bytes) in &self.files {
            fs::write(folder.join(name), bytes).unwrap();
        }
        for (name, edit) in &self.edits {
            let path = folder.join(name);
            let mut bytes = fs::read(&path).unwrap();
            match edit {
                Edit::Cut(n) => bytes.truncate(bytes.len() - n),
                Edit::Keep(n) => bytes.truncate(*n),
                Edit::Append(more) => bytes.extend(more),
                Edit::Rename(to) => {
                    fs::remove_file(&path).unwrap();
                    fs::write(folder.join(to), bytes).unwrap();
                    continue;
                }
            }
            fs::write(path, bytes).unwrap();
        }
        for (name, to) in &self.links {
            std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
        }
    }
}
