//! No operation allocates once its buffers stand, on one thread or several.
#![expect(unsafe_code, reason = "counting allocations takes an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use qpx_kernels::cpu::{AttentionShape, Input};
use qpx_kernels::ops::{Activations, Matrix};
use qpx_kernels::{Cpu, Level, encoding};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged, so its promises are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const COLUMNS: usize = 256;
const ROWS: usize = 256;
const TOKENS: usize = 40;
const POSITIONS: usize = 200;

/// Buffers of all operations.
struct Buffers {
    weights: Vec<(&'static str, Vec<u8>)>,
    input: Input,
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    cache: Vec<f32>,
    scratch: Vec<f32>,
    ids: Vec<u32>,
    chosen: Vec<f32>,
}

impl Buffers {
    fn new() -> Self {
        let names = [
            "f32", "bf16", "f16", "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
        ];
        Self {
            weights: names
                .map(|name| {
                    let encoding = encoding::by_name(name).expect("a known encoding");
                    (name, vec![7; ROWS * encoding.row_bytes(COLUMNS)])
                })
                .into(),
            input: Input::with_capacity(TOKENS, COLUMNS),
            x: vec![0.5; TOKENS * COLUMNS],
            y: vec![0.0; TOKENS * ROWS],
            z: vec![0.25; TOKENS * ROWS],
            cache: vec![0.1; 2 * POSITIONS * 64],
            scratch: vec![0.0; 1000],
            ids: vec![0; TOKENS * 4],
            chosen: vec![0.0; TOKENS * 4],
        }
    }

    /// Every operation once.
    fn all(&mut self, cpu: &Cpu) {
        cpu.prepare(&self.x, COLUMNS, &mut self.input)
            .expect("fitting shapes");
        for (name, bytes) in &self.weights {
            let w = Matrix {
                encoding: encoding::by_name(name).expect("a known encoding"),
                rows: ROWS,
                columns: COLUMNS,
                bytes,
            };
            cpu.linear(&w, &self.input, &mut self.y)
                .expect("fitting shapes");
            cpu.linear_some(&w, &self.input, &[3, 1, 4], &mut self.y[..3 * ROWS])
                .expect("fitting shapes");
            cpu.embed(&w, &[5, 6], &mut self.y[..2 * COLUMNS])
                .expect("fitting shapes");
        }
        let weight = &self.z[..COLUMNS];
        cpu.rms_norm(&self.x, weight, 1e-6, &mut self.y)
            .expect("fitting shapes");
        cpu.add(&mut self.y, &self.z).expect("fitting shapes");
        cpu.add_bias(&mut self.y, weight).expect("fitting shapes");
        cpu.silu_mul(&self.x, &self.z, &mut self.y)
            .expect("fitting shapes");
        let (cos, sin) = self.z.split_at(TOKENS * 32);
        cpu.rope_half(&mut self.y, 4, 64, cos, &sin[..TOKENS * 32])
            .expect("fitting shapes");
        let shape = AttentionShape {
            heads: 4,
            kv_heads: 2,
            head_dim: 64,
            capacity: POSITIONS,
            scale: 0.125,
        };
        let n = shape.scratch(TOKENS, cpu.threads);
        cpu.attention(
            &self.x,
            &self.cache,
            &self.cache,
            shape,
            160,
            Some(100),
            &mut self.scratch[..n],
            &mut self.y,
        )
        .expect("fitting shapes");
        let logits = &self.x[..TOKENS * 32];
        cpu.route_softmax(
            logits,
            32,
            4,
            true,
            &mut self.scratch[..32],
            &mut self.ids,
            &mut self.chosen,
        )
        .expect("fitting shapes");
        cpu.add_scaled_rows(&self.x[..2 * 64], &[1, 0], &[0.5, 2.0], 64, &mut self.y)
            .expect("fitting shapes");
        assert!(cpu.argmax(&self.y).is_some());
    }
}

#[test]
fn no_operation_allocates() {
    let mut buffers = Buffers::new();
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        for level in Level::available() {
            for activations in [Activations::Encoded, Activations::F32] {
                let cpu = Cpu::new(level, threads, activations);
                let counted = pool.install(|| {
                    // Threads set themselves up when they first find work.
                    buffers.all(&cpu);
                    let before = ALLOCATIONS.load(Relaxed);
                    buffers.all(&cpu);
                    ALLOCATIONS.load(Relaxed) - before
                });
                assert_eq!(counted, 0, "{level}, {threads} threads, {activations:?}");
            }
        }
    }
}

#[test]
fn the_input_says_what_it_holds() {
    // Values, codes, a scale and a sum for each sixteen columns, and a cache line after each row of the three.
    let row = 4 * COLUMNS + COLUMNS + 4 * 2 * COLUMNS / 16 + 3 * 64;
    assert_eq!(Input::bytes(TOKENS, COLUMNS), TOKENS * row);
    // Rows are padded to 256 columns.
    assert_eq!(Input::bytes(3, 1), Input::bytes(3, 256));
}
