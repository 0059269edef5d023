//! How long opening and verifying take, beside hashing the same bytes with nothing else.
//!
//! `QPX_BENCH_MIB` sets the size of the bundle (256 unless said).
#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use divan::{Bencher, counter::BytesCount};
use qpx_format::{Bundle, layout::Draft, manifest::SegmentKind, verify};
use std::{fs, os::unix::fs::FileExt as _, path::PathBuf, sync::OnceLock};
use support::{draft, experts, raw::Raw, tensor};

fn main() {
    divan::main();
    let _ = fs::remove_dir_all(folder());
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("qpx-format-bench-{}", std::process::id()))
}

fn made(name: &str, draft: impl FnOnce() -> Draft) -> PathBuf {
    fs::create_dir_all(folder()).unwrap();
    let path = folder().join(name);
    support::write(&path, draft()).unwrap();
    path
}

/// 1000 tensors and 100 000 leaves: what a 400 GB bundle has, with tiny experts. Opening reads no leaf, so the content is a hole.
fn many() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let mut draft = draft();
        draft.attached.clear();
        draft.tensors = (0..1000)
            .map(|n| tensor(&format!("layer.{n}.norm"), "f32", &[8], SegmentKind::Core))
            .collect();
        draft.aliases.clear();
        draft.experts = (0..100)
            .map(|layer| experts(layer, SegmentKind::Experts, 330))
            .collect();
        for file in &mut draft.claimed.origin.files {
            file.sha256 = Some("0123456789abcdef".repeat(4));
        }
        let layout = draft.layout().unwrap();
        let digests = usize::try_from(layout.leaves + layout.sources).unwrap();
        let raw = Raw {
            fields: vec![(
                "content length",
                layout.content_length.to_le_bytes().to_vec(),
            )],
            manifest: serde_json::to_vec(&layout.manifest).unwrap(),
            table: vec![1; digests * 32],
            data: vec![],
            stamps: vec![],
        };
        fs::create_dir_all(folder()).unwrap();
        let path = folder().join("many.qpx");
        fs::write(&path, raw.bytes()).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(layout.content_length).unwrap();
        path
    })
    .clone()
}

fn large() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let mib = std::env::var("QPX_BENCH_MIB").map_or(256, |n| n.parse().unwrap());
        made("large.qpx", || {
            let mut draft = draft();
            draft.tensors = (0..16)
                .map(|n| {
                    let shape = [mib, 1 << 16];
                    tensor(
                        &format!("layer.{n}.weight"),
                        "u8",
                        &shape,
                        SegmentKind::Core,
                    )
                })
                .collect();
            draft.aliases.clear();
            draft.experts.clear();
            draft.architecture.remove("experts_per_token");
            draft
        })
    })
    .clone()
}

#[divan::bench]
fn open_100_000_leaves(bencher: Bencher) {
    let path = many();
    let bundle = Bundle::open(&path).unwrap();
    assert!(bundle.leaves() > 99_000);
    bencher.bench(|| Bundle::open(&path).unwrap());
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn verify_all(bencher: Bencher, threads: usize) {
    let bundle = Bundle::open(&large()).unwrap();
    bencher
        .counter(BytesCount::new(bundle.content_length()))
        .bench(|| {
            let report = verify::full(&bundle, threads, &|_| {}).unwrap();
            assert!(report.is_intact());
        });
}

/// The peer: one hash over the same file, read in pieces by one thread.
#[divan::bench(sample_count = 10)]
fn peer_blake3_one_thread(bencher: Bencher) {
    let file = fs::File::open(large()).unwrap();
    let length = file.metadata().unwrap().len();
    bencher.counter(BytesCount::new(length)).bench(|| {
        let mut buffer = vec![0; 1 << 20];
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        loop {
            match file.read_at(&mut buffer, at).unwrap() {
                0 => break hasher.finalize(),
                n => {
                    hasher.update(&buffer[..n]);
                    at += n as u64;
                }
            }
        }
    });
}
