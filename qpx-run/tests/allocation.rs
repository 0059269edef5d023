//! Generating token ids allocates nothing: every allocation of the process is counted while it happens.

#![expect(unsafe_code, reason = "a counting allocator")]

mod support;

use qpx_run::{Options, generate::generate, sample::Sampling};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
};
use support::Packed;

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc`, hence from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations between the first and the last of `most` generated ids.
fn allocations(packed: &Packed, options: &Options, sampling: Sampling) -> u64 {
    let mut engine = packed.engine(options);
    let (mut first, mut last, mut count) = (0, 0, 0);
    let stats = generate(&mut engine, &[5, 6, 7, 8, 9], 60, sampling, &mut |_| {
        last = COUNT.load(Ordering::Relaxed);
        if count == 0 {
            first = last;
        }
        count += 1;
        Ok(())
    })
    .unwrap();
    assert!(stats.generated > 20, "too short a text to tell: {stats:?}");
    last - first
}

// One test: allocations of others at the same time would be counted.
#[test]
fn generating_ids_allocates_nothing() {
    let drawn = Sampling {
        temperature: 1.0,
        top_k: Some(50),
        top_p: Some(0.95),
        repetition_penalty: Some(1.05),
        seed: 3,
    };
    let cases = [
        ("oracle/llama", drawn),
        ("oracle/qwen3", drawn),
        ("oracle/qwen3_moe", drawn),
        ("tiny-coder", drawn),
    ];
    for (name, sampling) in cases {
        let packed = Packed::lossless(name);
        for threads in [1, 2] {
            let options = Options {
                threads,
                context: Some(128),
                ..Options::default()
            };
            let found = allocations(&packed, &options, sampling);
            assert_eq!(found, 0, "{name} on {threads} threads");
        }
    }
    // Experts that come and go take no memory either.
    let packed = Packed::lossless("tiny-coder");
    let tiny = Options {
        memory: Some(1),
        threads: 2,
        context: Some(128),
        ..Options::default()
    };
    let Err(qpx_run::Error::Memory { least, .. }) = qpx_run::engine::plan(&packed.bundle(), &tiny)
    else {
        panic!("a byte can't be enough");
    };
    let options = Options {
        memory: Some(least),
        ..tiny
    };
    assert_eq!(allocations(&packed, &options, drawn), 0, "with few slots");
    let vector = vec![0_u8; 10];
    let before = COUNT.load(Ordering::Relaxed);
    assert!(before > 0 && vector.len() == 10, "the counter counts");
}
