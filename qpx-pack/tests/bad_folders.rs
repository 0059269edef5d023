//! Folders that must not become bundles: small synthetic checkpoints, each broken in one way. The messages are the point.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, scratch};
use qpx_pack::{Error, Recipe, Request, Silent};
use serde_json::json;
use std::{fs, path::Path};

type Break = fn(&mut Folder);

/// Packs the broken folder; gives what it said, and checks that nothing was left.
#[track_caller]
fn refused(breaking: Break) -> (Error, String) {
    let scratch = scratch();
    let mut folder = Folder::qwen3_moe();
    breaking(&mut folder);
    let source = scratch.path().join("model");
    folder.write(&source);
    let request = Request::new(&source, scratch.path().join("out.qpx"));
    let error = qpx_pack::run(&request, &Silent).expect_err("refused");
    assert_eq!(
        fs::read_dir(scratch.path()).unwrap().count(),
        1,
        "something was left"
    );
    let text = error.to_string();
    (error, text)
}

#[test]
fn the_unbroken_folder_packs() {
    let scratch = scratch();
    let source = scratch.path().join("model");
    Folder::qwen3_moe().write(&source);
    let packed = qpx_pack::run(
        &Request::new(&source, scratch.path().join("out.qpx")),
        &Silent,
    )
    .unwrap();
    assert_eq!(
        packed.plan.notes,
        ["the checkpoint has no chat template: conversations will not be possible"]
    );
}

#[test]
fn each_fault_is_told() {
    let cases: &[(&str, Break, &str)] = &[
        (
            "no config",
            |f| f.remove("config.json"),
            "config.json is missing: it says what the tensors make up",
        ),
        (
            "broken config",
            |f| f.file("config.json", b"{\"a\":1,\"a\":2}"),
            "config.json is no valid JSON: the key `a` stands twice",
        ),
        (
            "config is a list",
            |f| f.file("config.json", b"[]"),
            "config.json is no valid JSON: it is no object",
        ),
        (
            "no tokenizer",
            |f| f.remove("tokenizer.json"),
            "tokenizer.json is missing",
        ),
        (
            "broken tokenizer",
            |f| f.file("tokenizer.json", b"<html>"),
            "tokenizer.json is no valid JSON",
        ),
        (
            "tokenizer is a pointer",
            |f| {
                f.file(
                    "tokenizer.json",
                    b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 7\n",
                )
            },
            "tokenizer.json is a Git LFS pointer, not the file it points to (oid abc, 7 bytes)",
        ),
        (
            "missing shard",
            |f| f.remove("model-00002-of-00002.safetensors"),
            "model-00002-of-00002.safetensors is missing: model.safetensors.index.json places",
        ),
        (
            "stale index",
            |f| {
                f.rename(
                    "model-00002-of-00002.safetensors",
                    "model-00002-of-00009.safetensors",
                )
            },
            "model.safetensors.index.json looks stale: 1 of the 2 shards it names are absent, while it does not name model-00002-of-00009.safetensors",
        ),
        (
            "index names an absent tensor",
            |f| {
                f.index(|map| {
                    map.insert(
                        "mtp.fc.weight".into(),
                        json!("model-00001-of-00002.safetensors"),
                    )
                })
            },
            "places mtp.fc.weight in model-00001-of-00002.safetensors, which does not hold it",
        ),
        (
            "index names the wrong shard",
            |f| {
                f.index(|map| {
                    map.insert(
                        "model.norm.weight".into(),
                        json!("model-00001-of-00002.safetensors"),
                    )
                })
            },
            "places model.norm.weight in model-00001-of-00002.safetensors, which does not hold it (model-00002-of-00002.safetensors does)",
        ),
        (
            "index omits a tensor",
            |f| f.index(|map| map.remove("model.norm.weight")),
            "model-00002-of-00002.safetensors holds 1 tensor that the index model.safetensors.index.json omits: model.norm.weight",
        ),
        (
            "index leads out",
            |f| f.index(|map| map.insert("x".into(), json!("../x.safetensors"))),
            "which is no file of the folder",
        ),
        (
            "index without a map",
            |f| f.file("model.safetensors.index.json", b"{}"),
            "it has no object `weight_map`",
        ),
        (
            "no index",
            |f| f.remove("model.safetensors.index.json"),
            "several weight files and no index that says which belong together: model-00001-of-00002.safetensors, model-00002-of-00002.safetensors",
        ),
        (
            "a forgotten shard",
            |f| f.stray("extra.safetensors", "mtp.fc.weight"),
            "extra.safetensors stands beside the indexed shards and holds 1 tensor that the index omits: mtp.fc.weight",
        ),
        (
            "a tensor in two shards",
            |f| {
                let norm = f.shards[1].entry("model.norm.weight");
                f.shards[0].push("model.norm.weight", "BF16", &[8], &norm);
            },
            "model.norm.weight is stored twice, in model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors",
        ),
        (
            "only pickles",
            |f| {
                f.shards.clear();
                f.remove("model.safetensors.index.json");
                f.file("pytorch_model.bin", b"PK");
            },
            "no safetensors file with weights is in the folder; pytorch_model.bin can't be read as such",
        ),
        (
            "truncated",
            |f| f.cut("model-00001-of-00002.safetensors", 10),
            "is truncated: 10 bytes short",
        ),
        (
            "cut in the header",
            |f| f.keep("model-00001-of-00002.safetensors", 100),
            "is cut within its header",
        ),
        (
            "seven bytes",
            |f| f.keep("model-00001-of-00002.safetensors", 7),
            "has 7 bytes, too few",
        ),
        (
            "trailing",
            |f| f.append("model-00001-of-00002.safetensors", b"abc"),
            "has 3 bytes behind its last tensor",
        ),
        (
            "GGUF",
            |f| {
                f.file(
                    "model-00001-of-00002.safetensors",
                    b"GGUF\x03\0\0\0\0\0\0\0",
                )
            },
            "is a GGUF file",
        ),
        (
            "zip",
            |f| {
                f.file(
                    "model-00001-of-00002.safetensors",
                    b"PK\x03\x04\x14\x08\x08\x08",
                )
            },
            "is a zip archive",
        ),
        (
            "JSON",
            |f| f.file("model-00001-of-00002.safetensors", b"{\"error\":\"gated\"}"),
            "is JSON, such as a server's error message: {\"error\":\"gated\"}",
        ),
        (
            "HTML",
            |f| f.file("model-00001-of-00002.safetensors", b"\n<!doctype html>"),
            "is an HTML or XML page",
        ),
        (
            "text",
            |f| f.file("model-00001-of-00002.safetensors", b"Entry not found"),
            "is a text, such as a server's error message: Entry not found",
        ),
        (
            "empty",
            |f| f.file("model-00001-of-00002.safetensors", b""),
            "model-00001-of-00002.safetensors is empty",
        ),
        (
            "a huge header",
            |f| {
                f.file(
                    "model-00001-of-00002.safetensors",
                    &200_000_000_u64.to_le_bytes(),
                )
            },
            "would be 200000000 bytes long",
        ),
        (
            "quantised",
            |f| {
                f.config(|c| {
                    c.insert(
                        "quantization_config".into(),
                        json!({"quant_method": "awq", "bits": 4}),
                    )
                })
            },
            "quantised already, by a scheme that this version can't read: awq, bits 4",
        ),
        (
            "a head that differs from the embedding it is tied to",
            |f| f.config(|c| c.insert("tie_word_embeddings".into(), json!(true))),
            "config.json ties the output layer to the embedding, but lm_head.weight differs from model.embed_tokens.weight: the first difference is at index 0",
        ),
        (
            "a link to nothing",
            |f| f.link("vocab.json", "nowhere"),
            "vocab.json can't be read: it is a symbolic link that leads nowhere",
        ),
    ];
    for (what, breaking, words) in cases {
        println!("{what}");
        let (error, text) = refused(*breaking);
        assert!(matches!(error, Error::Checkpoint { .. }), "{what}: {text}");
        assert!(text.contains(words), "{what}: lacks `{words}`:\n{text}");
    }
}

#[test]
fn consequences_are_not_told_twice() {
    let (_, text) = refused(|f| f.remove("model-00002-of-00002.safetensors"));
    assert_eq!(text.lines().count(), 2, "{text}");
    let (_, text) = refused(|f| {
        f.remove("tokenizer.json");
        f.file("model-00001-of-00002.safetensors", b"GGUF\x03\0\0\0");
        f.config(|c| c.insert("hidden_act".into(), json!("gelu")));
    });
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn numbers_that_are_none_are_told_in_any_recipe() {
    for recipe in ["lossless", "q8"] {
        let scratch = scratch();
        let source = scratch.path().join("model");
        let mut folder = Folder::qwen3_moe();
        folder.shards[1].set("lm_head.weight", 2 * 13, &0x7f80_u16.to_le_bytes());
        folder.shards[1].set("lm_head.weight", 2 * 20, &0x7fc0_u16.to_le_bytes());
        folder.write(&source);
        let mut request = Request::new(&source, scratch.path().join("out.qpx"));
        request.recipe = Recipe::named(recipe).unwrap();
        let error = qpx_pack::run(&request, &Silent).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("lm_head.weight holds inf at index 13\n  file  model-00002-of-00002.safetensors, byte "), "{text}");
        let at: usize = text.rsplit(' ').next().unwrap().parse().unwrap();
        let bytes = fs::read(source.join("model-00002-of-00002.safetensors")).unwrap();
        assert_eq!(bytes[at..at + 2], 0x7f80_u16.to_le_bytes());
        request.allow_nonfinite = true;
        match recipe {
            "lossless" => drop(qpx_pack::run(&request, &Silent).unwrap()),
            _ => assert!(matches!(
                qpx_pack::run(&request, &Silent),
                Err(Error::Usage { .. })
            )),
        }
    }
}

#[test]
fn strays_are_named_and_left() {
    let scratch = scratch();
    let source = scratch.path().join("model");
    let mut folder = Folder::qwen3_moe();
    folder.stray(
        "model.safetensors",
        "model.layers.0.self_attn.q_proj.qweight",
    );
    folder.stray("consolidated.safetensors", "tok_embeddings.weight");
    folder.stray("notes.safetensors", "curve");
    folder.write(&source);
    let packed = qpx_pack::run(
        &Request::new(&source, scratch.path().join("out.qpx")),
        &Silent,
    )
    .unwrap();
    for name in [
        "model.safetensors",
        "consolidated.safetensors",
        "notes.safetensors",
    ] {
        assert!(
            packed.plan.left_out.iter().any(|f| f.name == name),
            "{name}"
        );
        assert!(
            packed
                .plan
                .notes
                .iter()
                .any(|n| n.starts_with(&format!("{name} is not used: "))),
            "{name}"
        );
    }
}

#[test]
fn an_equal_copy_of_a_tied_head_is_stored_once() {
    let scratch = scratch();
    let source = scratch.path().join("model");
    let mut folder = Folder::qwen3_moe();
    folder.config(|c| c.insert("tie_word_embeddings".into(), json!(true)));
    let embedding = folder.shards[0].entry("model.embed_tokens.weight");
    folder.shards[1].set("lm_head.weight", 0, &embedding);
    folder.write(&source);
    let output = scratch.path().join("out.qpx");
    qpx_pack::run(&Request::new(&source, &output), &Silent).unwrap();
    let bundle = qpx_format::Bundle::open(&output).unwrap();
    let alias = &bundle.manifest().checked.aliases[0];
    assert_eq!(alias.source.as_ref().unwrap().name, "lm_head.weight");
    assert!(
        bundle
            .manifest()
            .checked
            .tensors
            .iter()
            .all(|t| t.role != "output")
    );
}

#[test]
fn a_folder_of_links_is_read_and_links_to_folders_are_not_entered() {
    let scratch = scratch();
    let (blobs, source) = (
        scratch.path().join("blobs"),
        scratch.path().join("snapshot"),
    );
    Folder::qwen3_moe().write(&blobs);
    fs::create_dir(&source).unwrap();
    for entry in fs::read_dir(&blobs).unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), source.join(entry.file_name())).unwrap();
    }
    let pack = |source: &Path, name: &str| {
        let output = scratch.path().join(name);
        let packed = qpx_pack::run(&Request::new(source, &output), &Silent).unwrap();
        (fs::read(output).unwrap(), packed.plan.notes)
    };
    let (plain, _) = pack(&blobs, "plain.qpx");
    assert_eq!(pack(&source, "linked.qpx").0, plain);
    // A loop, and a tool's own folder: neither changes the bundle.
    std::os::unix::fs::symlink(&source, source.join("again")).unwrap();
    fs::create_dir(source.join(".cache")).unwrap();
    fs::write(source.join(".cache/x"), "x").unwrap();
    let (bytes, notes) = pack(&source, "looped.qpx");
    assert_eq!(bytes, plain);
    assert!(
        notes
            .iter()
            .any(|n| n == "the folder again was not entered"),
        "{notes:?}"
    );
}
