//! Weights per second of each encoder on one core, at every level of this machine; decoding beside it.
//!
//! A "byte" in the output is a byte of f32 weights read: divide by four for weights. The reference quantiser's speed on the same
//! core comes from `tools/encode_reference.py`.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use qpx_kernels::{Level, encoding};

const COLUMNS: usize = 2048;
const ROWS: usize = 64;
const NAMES: &[&str] = &[
    "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k", "bf16", "f16",
];

fn main() {
    divan::main();
}

/// Values like a layer's: bell-shaped, small.
fn rows() -> Vec<f32> {
    let mut state = 1u64;
    (0..ROWS * COLUMNS)
        .map(|_| {
            let sum: u64 = (0..4)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    state >> 40
                })
                .sum();
            (sum as f32 / (1 << 24) as f32 - 2.0) * 0.03
        })
        .collect()
}

fn bench(bencher: Bencher, name: &str, level: Level) {
    let encoding = encoding::by_name(name).expect("a known encoding");
    let rows = rows();
    let mut out = vec![0; ROWS * encoding.row_bytes(COLUMNS)];
    bencher
        .counter(ItemsCount::new(rows.len()))
        .counter(BytesCount::of_slice(&rows))
        .bench_local(|| encoding.encode_rows(level, black_box(&rows), COLUMNS, &mut out));
}

#[divan::bench(args = NAMES)]
fn scalar(bencher: Bencher, name: &str) {
    bench(bencher, name, Level::Scalar);
}

#[cfg(target_arch = "x86_64")]
#[divan::bench(args = NAMES)]
fn avx2(bencher: Bencher, name: &str) {
    if is_x86_feature_detected!("avx2") {
        bench(bencher, name, Level::Avx2);
    }
}

#[divan::bench(args = NAMES)]
fn decode(bencher: Bencher, name: &str) {
    let encoding = encoding::by_name(name).expect("a known encoding");
    let mut values = rows();
    let mut blocks = vec![0; ROWS * encoding.row_bytes(COLUMNS)];
    encoding.encode_rows(Level::Scalar, &values, COLUMNS, &mut blocks);
    bencher
        .counter(ItemsCount::new(values.len()))
        .bench_local(|| encoding.decode_rows(black_box(&blocks), COLUMNS, &mut values));
}
