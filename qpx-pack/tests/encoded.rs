//! Encoded bundles: the same bytes for any number of threads, values near the checkpoint's, and one result for all forms of a
//! checkpoint.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, Shard, scratch};
use qpx_format::{Bundle, Part, Role};
use qpx_pack::{Recipe, Request, Silent};
use serde_json::json;
use std::fs;

/// Rows that no block divides, leaves that cut rows and blocks, several leaves a tensor: one tensor of 9 MB as bf16.
fn big_tensor_folder() -> Folder {
    let mut folder = Folder::qwen3_moe();
    let rows = 7001;
    let columns = 632;
    folder.config(|c| {
        c.insert("vocab_size".into(), json!(rows));
        c.insert("hidden_size".into(), json!(columns));
    });
    let mut resized = Folder::sized(columns, 6);
    for shard in &mut resized.shards {
        for name in ["model.embed_tokens.weight", "lm_head.weight"] {
            shard.replace(
                name,
                &[rows, columns],
                &common::weights(name.len(), rows * columns),
            );
        }
    }
    folder.shards = resized.shards;
    folder
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let scratch = scratch();
    let source = scratch.path().join("model");
    big_tensor_folder().write(&source);
    for recipe in ["lossless", "q8", "q4", "q2"] {
        let mut first: Option<Vec<u8>> = None;
        for threads in [1, 2, 7] {
            let output = scratch.path().join(format!("{recipe}-{threads}.qpx"));
            let mut request = Request::new(&source, &output);
            request.recipe = Recipe::named(recipe).unwrap();
            request.threads = threads;
            qpx_pack::run(&request, &Silent).unwrap();
            let bytes = fs::read(&output).unwrap();
            match &first {
                None => first = Some(bytes),
                Some(first) => assert!(
                    *first == bytes,
                    "{recipe}: {threads} threads differ from one"
                ),
            }
        }
    }
}

/// A tensor of a bundle as numbers.
fn values(bundle: &Bundle, role: &str) -> Vec<f32> {
    let extent = bundle.extent(&Role::parse(role).unwrap()).unwrap();
    let mut bytes = vec![0; usize::try_from(extent.length).unwrap()];
    bundle.read_verified(&extent, &mut bytes).unwrap();
    let columns = usize::try_from(*extent.shape.last().unwrap()).unwrap();
    let encoding = qpx_kernels::encoding::by_name(extent.encoding.name).unwrap();
    let count = usize::try_from(extent.shape.iter().product::<u64>()).unwrap();
    let mut out = vec![0.0; count];
    encoding.decode_rows(&bytes, columns, &mut out);
    out
}

#[test]
fn encoded_leaves_join_into_the_rows_of_the_tensor() {
    // Leaves are encoded apart from each other; what they make up must be the tensor encoded in one go.
    let scratch = scratch();
    let source = scratch.path().join("model");
    let folder = big_tensor_folder();
    folder.write(&source);
    for (name, encoding) in [
        ("q8", "q8_0"),
        ("forced", "q4_k"),
        ("forced", "q6_k"),
        ("forced", "q3_k"),
    ] {
        let output = scratch.path().join(format!("{encoding}.qpx"));
        let mut request = Request::new(&source, &output);
        request.recipe = Recipe::parse(
            name,
            &format!("[[rule]]\nrole = \"*\"\nencoding = \"{encoding}\""),
        )
        .unwrap();
        qpx_pack::run(&request, &Silent).unwrap();
        let bundle = Bundle::open(&output).unwrap();
        let extent = bundle.extent(&Role::parse("embedding").unwrap()).unwrap();
        assert_eq!(extent.encoding.name, encoding);
        let mut stored = vec![0; usize::try_from(extent.length).unwrap()];
        bundle.read_verified(&extent, &mut stored).unwrap();
        let bytes = folder.shards[0].entry("model.embed_tokens.weight");
        let mut source_values = vec![0.0; bytes.len() / 2];
        qpx_kernels::encoding::decode_plain("bf16", &bytes, &mut source_values).unwrap();
        let kernel = qpx_kernels::encoding::by_name(encoding).unwrap();
        let mut expected = vec![0; stored.len()];
        kernel.encode_rows(
            qpx_kernels::Level::detect(),
            &source_values,
            632,
            &mut expected,
        );
        assert!(stored == expected, "{encoding}");
        assert_eq!(
            bundle.source_digest(&extent),
            *blake3::hash(&bytes).as_bytes(),
            "{encoding}"
        );
        assert_eq!(
            extent.leaves > 1,
            matches!(encoding, "q8_0" | "q6_k"),
            "{encoding}"
        );
    }
}

#[test]
fn encoded_values_stay_near_the_checkpoint() {
    let scratch = scratch();
    let exact_path = scratch.path().join("exact.qpx");
    common::pack_to("tiny-coder", &exact_path, "lossless");
    let exact = Bundle::open(&exact_path).unwrap();
    // Largest root mean square error of a tensor, beside the root mean square of its values.
    for (recipe, bound) in [("q8", 0.008), ("q4", 0.10), ("q3", 0.10), ("q2", 0.10)] {
        let output = scratch.path().join(format!("{recipe}.qpx"));
        common::pack_to("tiny-coder", &output, recipe);
        let bundle = Bundle::open(&output).unwrap();
        let mut worst: f64 = 0.0;
        for role in [
            "embedding",
            "output",
            "layer.0.attention.query",
            "layer.3.expert.31.down",
            "layer.2.expert.7.gate",
            "layer.1.router",
        ] {
            let (a, b) = (values(&exact, role), values(&bundle, role));
            let square = |x: f64| x * x;
            let error: f64 = a
                .iter()
                .zip(&b)
                .map(|(a, b)| square(f64::from(a - b)))
                .sum();
            let power: f64 = a.iter().map(|a| square(f64::from(*a))).sum();
            let relative = (error / power).sqrt();
            if role.ends_with("router") {
                assert_eq!(relative, 0.0, "{recipe}: {role}");
            }
            worst = worst.max(relative);
        }
        println!("{recipe}: {worst:.4}");
        assert!(worst > 0.0 && worst < bound, "{recipe}: {worst}");
    }
}

#[test]
fn fused_and_single_experts_give_the_same_experts() {
    let single = Folder::qwen3_moe();
    let mut fused = Folder::qwen3_moe();
    let all = |name: &str| {
        let shard = single.shards.iter().find(|s| s.has(name)).unwrap();
        shard.entry(name)
    };
    let (mut first, mut second) = (
        Shard::new("model-00001-of-00002.safetensors"),
        Shard::new("model-00002-of-00002.safetensors"),
    );
    for (name, shape) in single.shards.iter().flat_map(Shard::tensors) {
        // Layer 1 stays as it is: forms may differ from layer to layer, and from matrix to matrix.
        if !name.contains("layers.0.mlp.experts.") {
            first.push(&name, "BF16", &shape, &all(&name));
        }
    }
    let of = |expert: u64, word: &str| {
        all(&format!(
            "model.layers.0.mlp.experts.{expert}.{word}_proj.weight"
        ))
    };
    let gate_up = [of(0, "gate"), of(0, "up"), of(1, "gate"), of(1, "up")].concat();
    second.push(
        "model.layers.0.mlp.experts.gate_up_proj",
        "BF16",
        &[2, 12, 8],
        &gate_up,
    );
    first.push(
        "model.layers.0.mlp.experts.down_proj",
        "BF16",
        &[2, 8, 6],
        &[of(0, "down"), of(1, "down")].concat(),
    );
    fused.shards = vec![first, second];
    fused.reindex();
    let scratch = scratch();
    for recipe in ["lossless", "q4"] {
        let pack = |folder: &Folder, name: &str| {
            let source = scratch.path().join(name);
            folder.write(&source);
            let mut request =
                Request::new(&source, scratch.path().join(format!("{name}-{recipe}.qpx")));
            request.recipe = Recipe::named(recipe).unwrap();
            qpx_pack::run(&request, &Silent).unwrap();
            Bundle::open(request.output.as_deref().unwrap()).unwrap()
        };
        let (a, b) = (pack(&single, "single"), pack(&fused, "fused"));
        for (layer, expert) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for part in [Part::Gate, Part::Up, Part::Down] {
                let (x, y) = (
                    a.expert(layer, expert, part).unwrap(),
                    b.expert(layer, expert, part).unwrap(),
                );
                let digest = |bundle: &Bundle, leaf| bundle.leaf(leaf).unwrap().digest;
                assert_eq!((x.leaves, y.leaves), (1, 1));
                assert_eq!(
                    digest(&a, x.first_leaf),
                    digest(&b, y.first_leaf),
                    "{recipe} {layer} {expert} {part:?}"
                );
                assert_eq!(
                    a.source_digest(&x),
                    b.source_digest(&y),
                    "{recipe} {layer} {expert} {part:?}"
                );
            }
        }
    }
}

#[test]
fn a_weight_beyond_half_precision_is_refused() {
    let scratch = scratch();
    let source = scratch.path().join("model");
    let mut folder = Folder::qwen3_moe();
    folder.shards[1].set("lm_head.weight", 2 * 9, &0x7f00_u16.to_le_bytes());
    folder.write(&source);
    let mut request = Request::new(&source, scratch.path().join("out.qpx"));
    request.recipe = Recipe::named("q8").unwrap();
    let text = qpx_pack::run(&request, &Silent).unwrap_err().to_string();
    assert!(text.starts_with("lm_head.weight holds 1.7014118346046923e38 at index 9, which is beyond what q8_0 can hold"), "{text}");
    request.recipe = Recipe::lossless();
    qpx_pack::run(&request, &Silent).unwrap();
}

#[test]
fn both_tables_of_encodings_agree() {
    let ours: Vec<_> = qpx_format::encoding::ENCODINGS
        .iter()
        .map(|e| (e.name, e.block, e.bytes))
        .collect();
    let theirs: Vec<_> = qpx_kernels::encoding::ENCODINGS
        .iter()
        .map(|e| (e.name, e.block as u64, e.bytes as u64))
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn a_source_that_changes_meanwhile_is_refused() {
    struct Meddler(std::path::PathBuf);
    impl qpx_pack::Progress for Meddler {
        fn begin(&self, step: &'static str, _total: u64) {
            if step == "packing" {
                let file = fs::OpenOptions::new().append(true).open(&self.0).unwrap();
                file.set_len(file.metadata().unwrap().len() - 1).unwrap();
            }
        }
        fn advance(&self, _bytes: u64) {}
        fn end(&self) {}
    }
    let scratch = scratch();
    let source = scratch.path().join("model");
    Folder::qwen3_moe().write(&source);
    let output = scratch.path().join("out.qpx");
    let shard = source.join("model-00002-of-00002.safetensors");
    let error = qpx_pack::run(&Request::new(&source, &output), &Meddler(shard)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("changed while it was read: it had"),
        "{error}"
    );
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[test]
fn built_in_recipes_come_to_what_they_promise() {
    // Geometries of published models: hidden, rows, layers, queries, keys, inner, experts (0: dense), tied.
    let cases = [
        (
            "Qwen3-30B-A3B",
            2048,
            151_936,
            48,
            4096,
            512,
            768,
            128,
            false,
        ),
        (
            "the small preset",
            1024,
            32_000,
            8,
            1024,
            256,
            512,
            32,
            false,
        ),
        (
            "Llama 3.1 8B",
            4096,
            128_256,
            32,
            4096,
            1024,
            14_336,
            0,
            false,
        ),
        ("Llama 3.2 1B", 2048, 128_256, 16, 2048, 512, 8192, 0, true),
        ("Qwen3-0.6B", 1024, 151_936, 28, 2048, 1024, 3072, 0, true),
    ];
    for (name, hidden, rows, layers, queries, keys, inner, experts, tied) in cases {
        let recipe = Recipe::named("q4").unwrap();
        let (mut weights, mut bits) = (0_u64, 0.0);
        let mut add = |role: &str, columns: u64, count: u64| {
            let choice = recipe.choose(role, 2, columns);
            assert_eq!(choice.instead_of, None, "{name}: {role}");
            let per_weight = choice
                .encoding
                .map_or(16.0, |e| e.bytes as f64 * 8.0 / e.block as f64);
            weights += count;
            bits += per_weight * count as f64;
        };
        add("embedding", hidden, rows * hidden);
        if !tied {
            add("output", hidden, rows * hidden);
        }
        add("layer.0.attention.query", hidden, layers * queries * hidden);
        add("layer.0.attention.key", hidden, 2 * layers * keys * hidden);
        add(
            "layer.0.attention.output",
            queries,
            layers * queries * hidden,
        );
        let (role, copies) = if experts == 0 {
            ("mlp", 1)
        } else {
            ("expert.0", experts)
        };
        add(
            &format!("layer.0.{role}.gate"),
            hidden,
            2 * layers * copies * inner * hidden,
        );
        add(
            &format!("layer.0.{role}.down"),
            inner,
            layers * copies * inner * hidden,
        );
        if experts > 0 {
            add("layer.0.router", hidden, layers * experts * hidden);
        }
        let per_weight = bits / weights as f64;
        println!("{name}: {per_weight:.3} bits per weight");
        assert!(per_weight <= 4.9, "{name}: {per_weight}");
    }
}
