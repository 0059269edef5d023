//! A small bundle that has every segment, and writing it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part of it; a test may panic"
)]

use qpx_format::{
    Draft, Writer,
    layout::{DraftExperts, DraftFile, DraftPart, DraftTensor, Layout},
    manifest::*,
    role::Part,
    writer::{Sealed, UNKNOWN_SHA256},
};
use std::path::Path;

pub fn source(name: &str) -> Source {
    Source {
        name: name.into(),
        dtype: "F32".into(),
        start: 0,
        stride: 0,
    }
}

pub fn tensor(role: &str, encoding: &str, shape: &[u64], segment: SegmentKind) -> DraftTensor {
    DraftTensor {
        role: role.into(),
        encoding: encoding.into(),
        shape: shape.to_vec(),
        segment,
        source: source(role.strip_prefix("kept.").unwrap_or(role)),
    }
}

pub fn experts(layer: u64, segment: SegmentKind, count: u64) -> DraftExperts {
    let part = |part: Part, shape: [u64; 2]| DraftPart {
        part,
        encoding: "f32".into(),
        shape: shape.to_vec(),
        source: source(&format!("model.{layer}.experts.{{expert}}.{part}")),
    };
    DraftExperts {
        layer,
        segment,
        count,
        parts: vec![
            part(Part::Gate, [6, 8]),
            part(Part::Up, [6, 8]),
            part(Part::Down, [8, 6]),
        ],
    }
}

/// Every segment, two layers of experts, an alias, an empty tensor, a compressed file and a plain one.
pub fn draft() -> Draft {
    let files = ["config.json", "model.safetensors"];
    Draft {
        requires: vec![],
        architecture: serde_json::from_str(
            r#"{"family": "test", "layers": 2, "experts_per_token": 2, "theta": 10000.0}"#,
        )
        .unwrap(),
        claimed: Claimed {
            tool: Tool {
                name: "qpx-format tests".into(),
                version: "1".into(),
            },
            origin: Origin {
                stated: Some("hf:nobody/nothing".into()),
                files: files
                    .iter()
                    .map(|name| SourceFile {
                        name: (*name).into(),
                        size: 100,
                        sha256: Some(UNKNOWN_SHA256.into()),
                        became: Became::Weights,
                    })
                    .collect(),
                dropped: vec![],
            },
            licence: None,
            recipe: Recipe {
                name: "lossless".into(),
                text: "# none\n".into(),
            },
        },
        attached: vec![
            DraftFile {
                name: "config.json".into(),
                purpose: Purpose::Config,
                content: br#"{"a": 1}"#.to_vec(),
            },
            DraftFile {
                name: "source/model.safetensors.header".into(),
                purpose: Purpose::SourceHeader,
                content: b"the same words again and again. ".repeat(40),
            },
        ],
        tensors: vec![
            tensor("layer.0.attention.norm", "f32", &[8], SegmentKind::Core),
            tensor(
                "layer.0.attention.query",
                "q8_0",
                &[4, 40],
                SegmentKind::Core,
            ),
            tensor("layer.0.router", "bf16", &[3, 8], SegmentKind::Core),
            tensor("norm", "f32", &[], SegmentKind::Core),
            tensor("empty", "f32", &[0, 4], SegmentKind::Core),
            tensor("embedding", "f16", &[16, 8], SegmentKind::Head),
            tensor("draft.0.attention.norm", "f32", &[8], SegmentKind::Draft),
            tensor("layer.1.memory", "u8", &[40, 2000], SegmentKind::Rows),
            tensor("kept.vision.Weird name!", "i64", &[3], SegmentKind::Kept),
        ],
        experts: vec![
            experts(0, SegmentKind::Experts, 3),
            experts(1, SegmentKind::Experts, 3),
            experts(0, SegmentKind::Draft, 2),
        ],
        aliases: vec![Alias {
            role: "output".into(),
            of: "embedding".into(),
            source: None,
        }],
    }
}

/// Bytes that tell where they belong, and compress well.
pub fn value(seed: u64, length: u64) -> Vec<u8> {
    (0..length)
        .map(|i| (seed * 37 + i * 7 + (i >> 8) * 3) as u8)
        .collect()
}

/// All slots of a layout with their seeds.
pub fn slots(layout: &Layout) -> Vec<qpx_format::layout::Slot> {
    let checked = &layout.manifest.checked;
    let mut slots: Vec<_> = (0..checked.tensors.len())
        .map(|i| layout.tensor_slot(i))
        .collect();
    for (row, entry) in checked.experts.iter().enumerate() {
        slots.extend((0..entry.count).map(|e| layout.expert_slot(row, e)));
    }
    slots
}

/// Fills every slot with bytes from its offset and seals.
pub fn write(path: &Path, draft: Draft) -> Result<Sealed, qpx_format::Error> {
    let layout = draft.layout()?;
    let writer = Writer::create(path, layout)?;
    fill(&writer)?;
    writer.seal(false, &|_| {})
}

pub fn fill(writer: &Writer) -> Result<(), qpx_format::Error> {
    for slot in slots(writer.layout()) {
        let bytes = value(slot.source + 1, slot.length);
        writer.write_at(slot.offset, &bytes)?;
        writer.set_source(slot.source, *blake3::hash(&bytes).as_bytes());
        let mut n = 0;
        while let Some((range, leaf)) = slot.leaf(n) {
            let range = range.start as usize..range.end as usize;
            writer.set_leaf(leaf, *blake3::hash(&bytes[range]).as_bytes());
            n += 1;
        }
    }
    let files = writer.layout().manifest.claimed.origin.files.clone();
    for file in files.iter().filter(|f| f.sha256.is_some()) {
        writer.set_file_sha256(&file.name, *blake3::hash(file.name.as_bytes()).as_bytes());
    }
    Ok(())
}

pub mod cases;
pub mod raw;
