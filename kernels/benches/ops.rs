//! Matrix products beside the limits of the same machine in the same run.
//!
//! `memory_limit` is the limit of a one-token product: the machine's memory read by as many threads, nothing computed. One-token products
//! use a matrix larger than the caches. `QPX_BENCH_LEVEL` names another instruction set than the best.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use qpx_kernels::cpu::{AttentionShape, Input};
use qpx_kernels::ops::{Activations, Matrix};
use qpx_kernels::{Cpu, Level, encoding};
use rayon::prelude::*;

fn main() {
    divan::main();
}

const ENCODINGS: [&str; 11] = [
    "f32", "bf16", "f16", "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
];
const ROWS: usize = 4096;
const COLUMNS: usize = 2048;
/// Bytes that fit no cache.
const LARGE: usize = 256 << 20;

fn level() -> Level {
    match std::env::var("QPX_BENCH_LEVEL") {
        Ok(name) => name.parse().expect("a level of this machine"),
        Err(_) => Level::detect(),
    }
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads")
}

/// Weights with small halves wherever a layout may have them.
fn weights(name: &str, rows: usize) -> Vec<u8> {
    let encoding = encoding::by_name(name).expect("a known encoding");
    let bytes = rows * encoding.row_bytes(COLUMNS);
    (0..bytes).map(|i| (i * 37 % 251 % 64) as u8).collect()
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 31 % 97) as f32 / 97.0 - 0.5).collect()
}

/// Bytes of memory that threads can read, each its own part.
#[divan::bench(args = [1, 2])]
fn memory_limit(bencher: Bencher, threads: usize) {
    let memory = vec![1u64; LARGE / 8];
    let pool = pool(threads);
    bencher.counter(BytesCount::new(LARGE)).bench_local(|| {
        pool.install(|| {
            memory
                .par_chunks(1 << 16)
                .map(|part| part.iter().fold(0, |sum: u64, x| sum.wrapping_add(*x)))
                .reduce(|| 0, u64::wrapping_add)
        })
    });
}

fn linear(bencher: Bencher, name: &str, rows: usize, tokens: usize, threads: usize) {
    let bytes = weights(name, rows);
    let w = Matrix {
        encoding: encoding::by_name(name).expect("a known encoding"),
        rows,
        columns: COLUMNS,
        bytes: &bytes,
    };
    let cpu = Cpu::new(level(), threads, Activations::Encoded);
    let mut input = Input::with_capacity(tokens, COLUMNS);
    cpu.prepare(&numbers(tokens * COLUMNS), COLUMNS, &mut input)
        .expect("a fitting input");
    let mut y = vec![0.0; tokens * rows];
    let pool = pool(threads);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .counter(ItemsCount::new(rows * COLUMNS * tokens))
        .bench_local(|| {
            pool.install(|| cpu.linear(&w, black_box(&input), &mut y))
                .expect("fitting shapes");
        });
}

/// One token, weights from memory: bytes per second beside `memory_limit`.
#[divan::bench(args = ENCODINGS)]
fn one_token_1_thread(bencher: Bencher, name: &str) {
    let encoding = encoding::by_name(name).expect("a known encoding");
    linear(bencher, name, LARGE / 2 / encoding.row_bytes(COLUMNS), 1, 1);
}

/// The same on two threads.
#[divan::bench(args = ENCODINGS)]
fn one_token_2_threads(bencher: Bencher, name: &str) {
    let encoding = encoding::by_name(name).expect("a known encoding");
    linear(bencher, name, LARGE / 2 / encoding.row_bytes(COLUMNS), 1, 2);
}

/// A 4096 × 2048 matrix that stays in cache where it fits: multiply-adds per second.
#[divan::bench(args = ENCODINGS)]
fn matrix_1_token(bencher: Bencher, name: &str) {
    linear(bencher, name, ROWS, 1, 1);
}

/// The same for a prompt of 64 tokens.
#[divan::bench(args = ENCODINGS)]
fn matrix_64_tokens(bencher: Bencher, name: &str) {
    linear(bencher, name, ROWS, 64, 1);
}

/// The same for a prompt of 64 tokens.
#[divan::bench(args = ENCODINGS)]
fn matrix_64_tokens_2_threads(bencher: Bencher, name: &str) {
    linear(bencher, name, ROWS, 64, 2);
}

/// Attention of one token over a long cache: bytes of keys and values per second.
#[divan::bench(args = [256, 4096, 32768])]
fn attention_1_token(bencher: Bencher, positions: usize) {
    attention(bencher, 1, positions);
}

/// Attention of a chunk of a prompt.
#[divan::bench(args = [64, 1024])]
fn attention_64_tokens(bencher: Bencher, positions: usize) {
    attention(bencher, 64, positions);
}

fn attention(bencher: Bencher, tokens: usize, positions: usize) {
    let shape = AttentionShape {
        heads: 16,
        kv_heads: 2,
        head_dim: 128,
        capacity: positions,
        scale: 0.09,
    };
    let cache = numbers(shape.kv_heads * positions * shape.head_dim);
    let q = numbers(tokens * shape.heads * shape.head_dim);
    let mut y = vec![0.0; q.len()];
    let mut scratch = vec![0.0; shape.scratch(tokens, 1)];
    let cpu = Cpu::new(level(), 1, Activations::Encoded);
    bencher
        .counter(BytesCount::new(2 * 4 * cache.len()))
        .counter(ItemsCount::new(
            2 * tokens * positions * shape.heads * shape.head_dim,
        ))
        .bench_local(|| {
            cpu.attention(
                black_box(&q),
                &cache,
                &cache,
                shape,
                positions - tokens,
                None,
                &mut scratch,
                &mut y,
            )
            .expect("fitting shapes");
        });
}
