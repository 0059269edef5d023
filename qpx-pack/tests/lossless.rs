//! Lossless bundles of real checkpoints hold every tensor as an independent reader sees it.

mod common;

use common::{fixture, pack_to, scratch};
use qpx_format::{Bundle, Role, manifest::Became};
use qpx_pack::{Request, Silent};
use std::{collections::BTreeMap, fs};

const FIXTURES: &[&str] = &[
    "tiny-coder",
    "oracle/llama",
    "oracle/qwen3",
    "oracle/qwen3_moe",
];

#[test]
fn every_tensor_comes_back() {
    for name in FIXTURES {
        let folder = fixture(name);
        let scratch = scratch();
        let output = scratch.path().join("out.qpx");
        qpx_pack::run(&Request::new(&folder, &output), &Silent).unwrap();
        let bundle = Bundle::open(&output).unwrap();
        let mut by_source = BTreeMap::new();
        for row in &bundle.manifest().checked.experts {
            for expert in 0..row.count {
                let source = row.source.name.replace("{expert}", &expert.to_string());
                by_source.insert(source, bundle.expert(row.layer, expert, row.part).unwrap());
            }
        }
        for tensor in &bundle.manifest().checked.tensors {
            let role = Role::parse(&tensor.role).unwrap();
            by_source.insert(tensor.source.name.clone(), bundle.extent(&role).unwrap());
        }
        let mut seen = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            if !file.starts_with("model-") || !file.ends_with(".safetensors") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let shard = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            for (tensor, view) in shard.tensors() {
                let extent = by_source
                    .get(&tensor)
                    .unwrap_or_else(|| panic!("{name}: {tensor} is not in the bundle"));
                let mut stored = vec![0; usize::try_from(extent.length).unwrap()];
                bundle.read_verified(extent, &mut stored).unwrap();
                assert_eq!(stored, view.data(), "{name}: {tensor}");
                let shape: Vec<_> = view.shape().iter().map(|d| *d as u64).collect();
                assert_eq!(extent.shape, shape, "{name}: {tensor}");
                assert_eq!(
                    bundle.source_digest(extent),
                    *blake3::hash(view.data()).as_bytes(),
                    "{name}: {tensor}"
                );
                seen += 1;
            }
            let header = bundle
                .manifest()
                .checked
                .attached
                .iter()
                .find(|a| a.name == format!("source/{file}.header"));
            let header = bundle.attached(header.unwrap()).unwrap();
            assert_eq!(header, bytes[..header.len()], "{name}: {file}");
        }
        assert_eq!(seen, by_source.len(), "{name}");
        let report = qpx_format::verify::full(&bundle, 2, &|_| {}).unwrap();
        assert!(report.faults.is_empty(), "{name}");
    }
}

#[test]
fn what_travels_is_listed_with_its_digest() {
    let scratch = scratch();
    let output = scratch.path().join("out.qpx");
    pack_to("tiny-coder", &output, "lossless");
    let bundle = Bundle::open(&output).unwrap();
    let files = &bundle.manifest().claimed.origin.files;
    let names: Vec<_> = files.iter().map(|f| f.name.as_str()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    for file in files {
        let bytes = fs::read(fixture("tiny-coder").join(&file.name)).unwrap();
        assert_eq!(file.size, bytes.len() as u64);
        match file.became {
            Became::LeftOut => assert_eq!(file.sha256, None, "{}", file.name),
            _ => assert_eq!(
                file.sha256.as_deref(),
                Some(common::sha256(&bytes).as_str()),
                "{}",
                file.name
            ),
        }
    }
    let became = |name: &str| files.iter().find(|f| f.name == name).unwrap().became;
    assert_eq!(became("golden.safetensors"), Became::LeftOut);
    assert_eq!(became("tokenizer.json"), Became::Attached);
    assert_eq!(became("model.safetensors.index.json"), Became::Attached);
    assert_eq!(became("model-00002-of-00002.safetensors"), Became::Weights);
    assert_eq!(
        bundle.manifest().claimed.licence.as_deref(),
        Some("apache-2.0")
    );
    let attached = |name: &str| {
        let entry = bundle
            .manifest()
            .checked
            .attached
            .iter()
            .find(|a| a.name == name)
            .unwrap();
        bundle.attached(entry).unwrap()
    };
    for name in ["tokenizer.json", "config.json", "README.md"] {
        assert_eq!(
            attached(name),
            fs::read(fixture("tiny-coder").join(name)).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn weights_are_counted_by_hand() {
    let scratch = scratch();
    let output = scratch.path().join("out.qpx");
    let packed = pack_to("tiny-coder", &output, "lossless");
    // Per layer: norms, queries, keys, values, head norms, output, router; 32 experts of three 48 × 128 matrices.
    let attention = 2 * 128 + 128 * 128 + 2 * 64 * 128 + 2 * 32 + 128 * 128;
    let (router, expert) = (32 * 128, 3 * 48 * 128);
    let ends = 941 * 128;
    let total = 4 * (attention + router + 32 * expert) + 128 + 2 * ends;
    assert_eq!(total, 2_814_592);
    assert_eq!(packed.plan.parameters, total);
    // A token takes 4 experts of each layer, one row of the embedding, and the whole output layer.
    let active = 4 * (attention + router + 4 * expert) + 128 + ends + 128;
    assert_eq!(packed.plan.active_parameters, active);
    assert_eq!(packed.plan.source_tensors, 423);
    let bundle = Bundle::open(&output).unwrap();
    let census = &bundle.manifest().checked.census["bf16"];
    assert_eq!(
        (census.tensors, census.weights, census.bytes),
        (423, total, 2 * total)
    );
}

#[test]
fn a_tied_head_is_an_alias() {
    let scratch = scratch();
    let output = scratch.path().join("out.qpx");
    pack_to("oracle/llama", &output, "lossless");
    let bundle = Bundle::open(&output).unwrap();
    let alias = &bundle.manifest().checked.aliases[0];
    assert_eq!(
        (alias.role.as_str(), alias.of.as_str()),
        ("output", "embedding")
    );
    assert_eq!(alias.source, None);
    assert_eq!(bundle.manifest().checked.architecture["tied_output"], true);
}
