//! What is taken out of a bundle is what went in: files, tensors, and whole checkpoints byte for byte.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{FIXTURES, fixture, inspect, json, packed};
use qpx_format::manifest::Became;
use safetensors::SafeTensors;
use std::fs;

#[test]
fn lossless_bundles_give_back_every_file_of_their_checkpoint() {
    for name in FIXTURES {
        let folder = packed(name, "lossless", "m.qpx");
        let ran = inspect(
            folder.path(),
            &["extract", "m.qpx", "--checkpoint", "-o", "back", "--json"],
        );
        assert_eq!(ran.code, 0, "{ran:?}");
        let bundle = qpx_format::Bundle::open(&folder.path().join("m.qpx")).unwrap();
        let origin = &bundle.manifest().claimed.origin;
        let mut written = 0;
        for file in &origin.files {
            let back = folder.path().join("back").join(&file.name);
            if file.became == Became::LeftOut {
                assert!(!back.exists(), "{name}: {}", file.name);
                continue;
            }
            let original = fs::read(fixture(name).join(&file.name)).unwrap();
            assert!(
                fs::read(&back).unwrap() == original,
                "{name}: {} differs",
                file.name
            );
            written += 1;
        }
        let shards = origin
            .files
            .iter()
            .filter(|f| f.became == Became::Weights)
            .count();
        assert!(
            shards >= 2,
            "{name}: the test means to restore several shards"
        );
        assert_eq!(json(&ran)["files"].as_array().unwrap().len(), written);
        // Nothing else, and nothing unfinished.
        assert_eq!(
            fs::read_dir(folder.path().join("back")).unwrap().count(),
            written
        );
    }
}

/// A tensor as a shard holds it.
struct Stored {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    data: Vec<u8>,
}

/// All tensors of a fixture, by name.
fn tensors(name: &str) -> Vec<Stored> {
    let mut found = Vec::new();
    for shard in 1..=3 {
        let path = fixture(name).join(format!("model-0000{shard}-of-00003.safetensors"));
        let bytes = fs::read(path).unwrap();
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            found.push(Stored {
                name,
                dtype: format!("{:?}", view.dtype()),
                shape: view.shape().to_vec(),
                data: view.data().to_vec(),
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Packs a checkpoint of one shard, with the fixture's other files, and demands the shard back.
#[track_caller]
fn one_shard_comes_back(name: &str, tensors: &[Stored]) {
    let source = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if file.ends_with(".json") && !file.contains("index") && !file.contains("golden") {
            fs::copy(&path, source.path().join(&file)).unwrap();
        }
    }
    // A header of odd length, so that the data is unaligned; keys in another order than the data, blanks at the end.
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for t in tensors {
        let end = data.len() + t.data.len();
        entries.push(format!(
            r#""{}":{{"shape":{:?},"data_offsets":[{},{end}],"dtype":"{}"}}"#,
            t.name,
            t.shape,
            data.len(),
            t.dtype
        ));
        data.extend_from_slice(&t.data);
    }
    entries.reverse();
    let mut header = format!(
        r#"{{"__metadata__":{{"format":"pt"}},{}}}"#,
        entries.join(",")
    );
    while header.len() % 8 != 3 {
        header.push(' ');
    }
    let shard = [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        &data,
    ]
    .concat();
    fs::write(source.path().join("model.safetensors"), &shard).unwrap();

    let bundle = source.path().join("m.qpx");
    qpx_pack::run(
        &qpx_pack::Request::new(source.path(), &bundle),
        &qpx_pack::Silent,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let ran = inspect(
        source.path(),
        &["extract", "m.qpx", "--checkpoint", "-o", "back"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(fs::read(source.path().join("back/model.safetensors")).unwrap() == shard);
}

#[test]
fn a_single_unaligned_shard_comes_back() {
    one_shard_comes_back("oracle/llama", &tensors("oracle/llama"));
}

#[test]
fn a_copied_head_comes_back() {
    let mut all = tensors("oracle/llama");
    let embedding = all
        .iter()
        .find(|t| t.name == "model.embed_tokens.weight")
        .unwrap();
    let copy = Stored {
        name: "lm_head.weight".to_owned(),
        dtype: embedding.dtype.clone(),
        shape: embedding.shape.clone(),
        data: embedding.data.clone(),
    };
    all.push(copy);
    one_shard_comes_back("oracle/llama", &all);
}

#[test]
fn fused_experts_come_back() {
    let mut fused: Vec<Stored> = Vec::new();
    let mut add = |name: String, dtype: &str, shape: Vec<usize>, data: &[u8]| match fused
        .iter_mut()
        .find(|f| f.name == name)
    {
        Some(tensor) => tensor.data.extend_from_slice(data),
        None => fused.push(Stored {
            name,
            dtype: dtype.to_owned(),
            shape,
            data: data.to_vec(),
        }),
    };
    let all = tensors("oracle/qwen3_moe");
    let data = |name: &str| all.iter().find(|t| t.name == name);
    for t in all.iter().filter(|t| !t.name.contains(".experts.")) {
        add(t.name.clone(), &t.dtype, t.shape.clone(), &t.data);
    }
    for layer in 0..64 {
        let prefix = format!("model.layers.{layer}.mlp.experts");
        let part =
            |expert: usize, part: &str| data(&format!("{prefix}.{expert}.{part}_proj.weight"));
        let experts = (0..).take_while(|e| part(*e, "gate").is_some()).count();
        for expert in 0..experts {
            let (gate, up, down) = (
                part(expert, "gate").unwrap(),
                part(expert, "up").unwrap(),
                part(expert, "down").unwrap(),
            );
            let both = vec![experts, 2 * gate.shape[0], gate.shape[1]];
            add(
                format!("{prefix}.gate_up_proj"),
                &gate.dtype,
                both.clone(),
                &gate.data,
            );
            add(format!("{prefix}.gate_up_proj"), &up.dtype, both, &up.data);
            let shape = [&[experts], &down.shape[..]].concat();
            add(
                format!("{prefix}.down_proj"),
                &down.dtype,
                shape,
                &down.data,
            );
        }
    }
    assert!(fused.iter().any(|t| t.name.ends_with("gate_up_proj")));
    one_shard_comes_back("oracle/qwen3_moe", &fused);
}

#[test]
fn a_bundle_that_is_not_exact_says_what_is_not() {
    let folder = packed("oracle/qwen3_moe", "q4", "m.qpx");
    let ran = inspect(
        folder.path(),
        &["extract", "m.qpx", "--checkpoint", "-o", "back"],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in ["recipe q4", "such as layer.0.", "to q", "--tensor"] {
        assert!(ran.stderr.contains(word), "no `{word}` in {}", ran.stderr);
    }
    assert!(!folder.path().join("back").exists());
}

#[test]
fn files_that_exist_stay_unless_forced_and_the_bundle_always() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let at = folder.path();
    fs::create_dir(at.join("out")).unwrap();
    fs::write(at.join("out/config.json"), "mine").unwrap();
    for arguments in [
        &["extract", "m.qpx", "--attached", "-o", "out"][..],
        &["extract", "m.qpx", "--checkpoint", "-o", "out"],
        &[
            "extract",
            "m.qpx",
            "--tensor",
            "norm",
            "-o",
            "out/config.json",
        ],
    ] {
        let ran = inspect(at, arguments);
        assert_eq!(ran.code, 4, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("config.json") && ran.stderr.contains("--force"));
        assert_eq!(
            fs::read_dir(at.join("out")).unwrap().count(),
            1,
            "{arguments:?}"
        );
        assert_eq!(fs::read(at.join("out/config.json")).unwrap(), b"mine");
    }
    let ran = inspect(
        at,
        &[
            "extract",
            "m.qpx",
            "--attached",
            "config.json",
            "-o",
            "out",
            "--force",
        ],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        fs::read(at.join("out/config.json")).unwrap(),
        fs::read(fixture("oracle/llama/config.json")).unwrap()
    );
    fs::hard_link(at.join("m.qpx"), at.join("same")).unwrap();
    for output in ["m.qpx", "same"] {
        let ran = inspect(
            at,
            &[
                "extract", "m.qpx", "--tensor", "norm", "-o", output, "--force",
            ],
        );
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.contains("is the bundle itself"), "{ran:?}");
    }
}

#[test]
fn altered_bytes_never_get_a_name() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let at = folder.path();
    let bundle = qpx_format::Bundle::open(&at.join("m.qpx")).unwrap();
    let role = qpx_format::Role::parse("layer.1.mlp.down").unwrap();
    let offset = usize::try_from(bundle.extent(&role).unwrap().offset).unwrap();
    let mut bytes = fs::read(at.join("m.qpx")).unwrap();
    bytes[offset + 5] ^= 1;
    fs::write(at.join("m.qpx"), bytes).unwrap();
    for arguments in [
        &["extract", "m.qpx", "--checkpoint", "-o", "out"][..],
        &[
            "extract",
            "m.qpx",
            "--tensor",
            "layer.1.mlp.down",
            "-o",
            "out/t",
        ],
    ] {
        let ran = inspect(at, arguments);
        assert_eq!(ran.code, 10, "{ran:?}");
        assert!(ran.stderr.contains("layer.1.mlp.down"), "{ran:?}");
    }
    let left: Vec<_> = fs::read_dir(at.join("out"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    for name in &left {
        let original = fs::read(fixture("oracle/llama").join(name)).unwrap();
        assert_eq!(
            fs::read(at.join("out").join(name)).unwrap(),
            original,
            "{name:?}"
        );
    }
    assert!(left.iter().all(|n| n != "t"));
}

#[test]
fn plain_tensors_are_given_as_they_are_stored() {
    let folder = packed("oracle/qwen3_moe", "lossless", "m.qpx");
    let roles = [
        "layer.0.expert.3.down",
        "norm",
        "output",
        "layer.0.attention.query",
        "norm",
    ];
    let arguments: Vec<&str> = [
        &["extract", "m.qpx", "-o", "t/x.safetensors", "--tensor"][..],
        &roles,
    ]
    .concat();
    let ran = inspect(folder.path(), &arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let bytes = fs::read(folder.path().join("t/x.safetensors")).unwrap();
    let ours = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(ours.len(), 4);
    let bundle = qpx_format::Bundle::open(&folder.path().join("m.qpx")).unwrap();
    for role in roles {
        let extent = bundle
            .extent(&qpx_format::Role::parse(role).unwrap())
            .unwrap();
        let view = ours.tensor(role).unwrap();
        assert_eq!(
            blake3::hash(view.data()).as_bytes(),
            &bundle.source_digest(&extent),
            "{role}"
        );
        let shape: Vec<u64> = view.shape().iter().map(|d| *d as u64).collect();
        assert_eq!(shape, extent.shape, "{role}");
    }
    let ran = inspect(
        folder.path(),
        &["extract", "m.qpx", "-o", "y", "--tensor", "layer.99.router"],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("layer.99.router") && ran.stderr.contains("qpx-inspect tensors m.qpx")
    );
}

#[test]
fn block_encodings_are_given_as_the_values_they_stand_for() {
    let folder = packed("tiny-coder", "q4", "m.qpx");
    let bundle = qpx_format::Bundle::open(&folder.path().join("m.qpx")).unwrap();
    let rows = bundle.extents().filter(|e| e.encoding.is_block());
    let extents: Vec<_> = rows.step_by(37).collect();
    assert!(!extents.is_empty());
    let mut arguments = vec!["extract", "m.qpx", "-o", "x.safetensors", "--tensor"];
    arguments.extend(extents.iter().map(|e| e.role.as_str()));
    let ran = inspect(folder.path(), &arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let bytes = fs::read(folder.path().join("x.safetensors")).unwrap();
    let ours = SafeTensors::deserialize(&bytes).unwrap();
    for extent in &extents {
        let view = ours.tensor(&extent.role).unwrap();
        assert_eq!(view.dtype(), safetensors::Dtype::F32);
        let columns = usize::try_from(*extent.shape.last().unwrap()).unwrap();
        let mut stored = vec![0; usize::try_from(extent.length).unwrap()];
        bundle.read_verified(extent, &mut stored).unwrap();
        let mut values = vec![0.0; view.data().len() / 4];
        let encoding = qpx_kernels::encoding::by_name(extent.encoding.name).unwrap();
        encoding.decode_rows(&stored, columns, &mut values);
        let bytes: Vec<u8> = values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
        assert!(view.data() == bytes, "{}", extent.role);
    }
}

#[test]
fn attached_files_come_out_by_name() {
    let folder = packed("oracle/llama", "lossless", "m.qpx");
    let ran = inspect(
        folder.path(),
        &["extract", "m.qpx", "--attached", "-o", "all", "--json"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in [
        "config.json",
        "tokenizer.json",
        "model.safetensors.index.json",
    ] {
        let original = fs::read(fixture("oracle/llama").join(name)).unwrap();
        assert_eq!(
            fs::read(folder.path().join("all").join(name)).unwrap(),
            original,
            "{name}"
        );
    }
    assert!(!folder.path().join("all/source").exists());
    let header = "source/model-00001-of-00003.safetensors.header";
    let ran = inspect(
        folder.path(),
        &["extract", "m.qpx", "--attached", header, "-o", "all"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let original = fs::read(fixture("oracle/llama/model-00001-of-00003.safetensors")).unwrap();
    let bytes = fs::read(folder.path().join("all").join(header)).unwrap();
    assert!(original.starts_with(&bytes));
    let ran = inspect(
        folder.path(),
        &["extract", "m.qpx", "--attached", "merges.txt", "-o", "all"],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("merges.txt") && ran.stderr.contains("tokenizer.json"));
}
