//! Checkpoints that must not become bundles: each is refused by name, and nothing is left under the output's name.

use qpx_tests::{
    checkpoint::{Shard, copy, edit_json, shards},
    program::{Ran, run},
    workspace::fixture,
};
use serde_json::json;
use std::{fs, path::Path};

const BAD_SOURCE: i32 = 3;

/// Breaks a copy of the mixture-of-experts fixture and packs it.
#[track_caller]
fn pack_broken(breaking: impl FnOnce(&Path)) -> Ran {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = copy(&fixture("oracle/qwen3_moe"), &scratch.path().join("model"));
    breaking(&folder);
    let output = scratch.path().join("out.qpx");
    let ran = run(
        "qpx-pack",
        [folder.as_os_str(), "-o".as_ref(), output.as_os_str()],
    );
    let left: Vec<_> = fs::read_dir(scratch.path())
        .expect("the scratch folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["model"], "something was left behind");
    ran
}

#[test]
fn the_unbroken_copy_packs() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = copy(&fixture("oracle/qwen3_moe"), &scratch.path().join("model"));
    let output = scratch.path().join("out.qpx");
    run(
        "qpx-pack",
        [folder.as_os_str(), "-o".as_ref(), output.as_os_str()],
    )
    .expect(0);
    assert!(output.is_file());
}

#[test]
fn truncated_shard() {
    let ran = pack_broken(|folder| {
        let shard = &shards(folder)[1];
        let length = fs::metadata(shard).expect("the shard").len();
        fs::OpenOptions::new()
            .write(true)
            .open(shard)
            .and_then(|f| f.set_len(length - 100))
            .expect("a cut");
    });
    ran.expect(BAD_SOURCE)
        .says(&["model-00002-of-00003.safetensors", "100 bytes"]);
}

#[test]
fn trailing_bytes() {
    let ran = pack_broken(|folder| {
        let shard = &shards(folder)[0];
        let mut bytes = fs::read(shard).expect("the shard");
        bytes.extend(b"more");
        fs::write(shard, bytes).expect("the shard");
    });
    ran.expect(BAD_SOURCE)
        .says(&["model-00001-of-00003.safetensors", "4 bytes"]);
}

#[test]
fn missing_shard() {
    let ran = pack_broken(|folder| fs::remove_file(&shards(folder)[2]).expect("removed"));
    ran.expect(BAD_SOURCE)
        .says(&["model-00003-of-00003.safetensors"]);
}

#[test]
fn index_names_an_absent_tensor() {
    let ran = pack_broken(|folder| {
        edit_json(&folder.join("model.safetensors.index.json"), |index| {
            index["weight_map"]["model.layers.0.phantom.weight"] =
                json!("model-00001-of-00003.safetensors");
        });
    });
    ran.expect(BAD_SOURCE).says(&[
        "model.layers.0.phantom.weight",
        "model-00001-of-00003.safetensors",
    ]);
}

#[test]
fn shard_holds_a_tensor_that_the_index_omits() {
    let ran = pack_broken(|folder| {
        edit_json(&folder.join("model.safetensors.index.json"), |index| {
            index["weight_map"]
                .as_object_mut()
                .expect("a map")
                .remove("model.norm.weight");
        });
    });
    ran.expect(BAD_SOURCE).says(&["model.norm.weight", "index"]);
}

#[test]
fn extra_tensor() {
    let ran = pack_broken(|folder| {
        let path = &shards(folder)[0];
        let mut shard = Shard::read(path);
        shard.push(
            "model.layers.0.self_attn.surplus.weight",
            "BF16",
            &[2, 2],
            &[0; 8],
        );
        shard.write(path);
        edit_json(&folder.join("model.safetensors.index.json"), |index| {
            index["weight_map"]["model.layers.0.self_attn.surplus.weight"] =
                json!("model-00001-of-00003.safetensors");
        });
    });
    ran.expect(BAD_SOURCE)
        .says(&["model.layers.0.self_attn.surplus.weight"]);
}

#[test]
fn wrong_shape() {
    let ran = pack_broken(|folder| {
        edit_json(&folder.join("config.json"), |config| {
            config["moe_intermediate_size"] = json!(25)
        })
    });
    ran.expect(BAD_SOURCE).says(&[
        "model.layers.0.mlp.experts.0.gate_proj.weight",
        "[25, 64]",
        "[24, 64]",
    ]);
}

#[test]
fn unknown_family_lists_the_known_ones() {
    let ran = pack_broken(|folder| {
        edit_json(&folder.join("config.json"), |config| {
            config["model_type"] = json!("qwen9_moe")
        })
    });
    ran.expect(BAD_SOURCE)
        .says(&["qwen9_moe", "llama", "qwen3", "qwen3_moe"]);
}

#[test]
fn missing_tokenizer() {
    let ran =
        pack_broken(|folder| fs::remove_file(folder.join("tokenizer.json")).expect("removed"));
    ran.expect(BAD_SOURCE).says(&["tokenizer.json"]);
}

#[test]
fn not_a_number_in_a_weight() {
    let ran = pack_broken(|folder| {
        let path = &shards(folder)[0];
        let mut shard = Shard::read(path);
        let offsets = &shard.header["model.embed_tokens.weight"]["data_offsets"];
        let start = usize::try_from(offsets[0].as_u64().expect("an offset")).expect("small");
        shard.data[start + 2 * 777..][..2].copy_from_slice(&0x7fc0_u16.to_le_bytes());
        shard.write(path);
    });
    ran.expect(BAD_SOURCE)
        .says(&["model.embed_tokens.weight", "777", "--allow-nonfinite"]);
}

#[test]
fn wrong_files_in_a_shards_place() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\nsize 270240\n";
    let cases: &[(&str, &[u8], &[&str])] = &[
        (
            "an LFS pointer",
            pointer.as_bytes(),
            &["LFS", "0123456789abcdef", "270240"],
        ),
        (
            "a web page",
            b"<!DOCTYPE html><html><body>404</body></html>",
            &["HTML"],
        ),
        ("a GGUF file", b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0", &["GGUF"]),
        (
            "an error body",
            b"{\"error\":\"Repository not found\"}",
            &["JSON"],
        ),
        ("nothing", b"", &["empty"]),
    ];
    for (what, content, words) in cases {
        println!("{what}");
        let ran = pack_broken(|folder| fs::write(&shards(folder)[1], content).expect("written"));
        ran.expect(BAD_SOURCE)
            .says(words)
            .says(&["model-00002-of-00003.safetensors"]);
    }
}

#[test]
fn every_problem_is_listed_at_once() {
    let ran = pack_broken(|folder| {
        fs::remove_file(folder.join("tokenizer.json")).expect("removed");
        fs::remove_file(&shards(folder)[2]).expect("removed");
        fs::write(&shards(folder)[1], b"GGUF\x03\0\0\0").expect("written");
    });
    ran.expect(BAD_SOURCE)
        .says(&["tokenizer.json", "model-00003-of-00003.safetensors", "GGUF"]);
}
