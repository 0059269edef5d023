//! The same bits whatever the chunk, the threads, the level and the number of expert slots; and what memory does to a run.

mod support;

use qpx_kernels::{Level, ops::Activations};
use qpx_pack::Recipe;
use qpx_run::{Error, Options, engine};
use support::{Packed, bits, logits};

/// A prompt that fills more than one chunk and ends within one.
fn prompt() -> Vec<u32> {
    (0..83_u32).map(|i| (i * 97 + 5) % 380).collect()
}

fn same_bits(packed: &Packed, base: &Options, what: &str) {
    let prompt = prompt();
    let expected = bits(&logits(&mut packed.engine(base), &prompt));
    for chunk in [1, 7, 64] {
        for threads in [1, 2, 3] {
            let options = Options {
                chunk,
                threads,
                ..base.clone()
            };
            let found = bits(&logits(&mut packed.engine(&options), &prompt));
            assert!(
                found == expected,
                "{what}: chunks of {chunk} on {threads} threads"
            );
        }
    }
    for level in Level::ALL {
        if level.is_available() {
            let options = Options {
                level: Some(level),
                ..base.clone()
            };
            let found = bits(&logits(&mut packed.engine(&options), &prompt));
            assert!(found == expected, "{what}: {level}");
        } else {
            eprintln!("skipped: this machine has no {level}");
        }
    }
}

#[test]
fn lossless_bits_are_the_same_everywhere() {
    for name in ["oracle/llama", "oracle/qwen3", "oracle/qwen3_moe"] {
        same_bits(&Packed::lossless(name), &Options::default(), name);
    }
}

#[test]
fn quantised_bits_are_the_same_everywhere() {
    let packed = Packed::new("oracle/qwen3_moe", Recipe::named("q4").unwrap());
    for activations in [Activations::Encoded, Activations::F32] {
        let options = Options {
            activations,
            ..Options::default()
        };
        same_bits(&packed, &options, "q4");
    }
}

#[test]
fn fewer_slots_give_the_same_bits_by_reading_more() {
    let packed = Packed::lossless("tiny-coder");
    let bundle = packed.bundle();
    let whole = Options {
        context: Some(256),
        ..Options::default()
    };
    let prompt: Vec<u32> = (0..200_u32).map(|i| (i * 37 + 11) % 941).collect();
    let mut engine = packed.engine(&whole);
    let expected = bits(&logits(&mut engine, &prompt));
    let counters = engine.counters();
    assert_eq!(counters.misses, 0, "all experts are held");
    assert!(counters.hits > 0);

    // The least that the plan names works, one byte less does not.
    let tiny = Options {
        memory: Some(1),
        ..whole.clone()
    };
    let least = match engine::plan(&bundle, &tiny) {
        Err(Error::Memory { least, .. }) => least,
        other => panic!("{other:?}"),
    };
    let refused = Options {
        memory: Some(least - 1),
        ..whole.clone()
    };
    let message = engine::plan(&bundle, &refused).unwrap_err().to_string();
    assert!(
        message.contains(&least.to_string()) && message.contains("resident weights"),
        "{message}"
    );
    let bounded = Options {
        memory: Some(least),
        ..whole
    };
    let mut engine = packed.engine(&bounded);
    assert_eq!(engine.plan().slots, 4);
    assert!(engine.plan().total <= least);
    let found = bits(&logits(&mut engine, &prompt));
    assert!(found == expected);
    let counters = engine.counters();
    assert!(counters.misses > 100 && counters.bytes > 0, "{counters:?}");
}

#[test]
fn the_context_and_the_vocabulary_have_ends() {
    let packed = Packed::lossless("oracle/llama");
    let options = Options {
        context: Some(8),
        ..Options::default()
    };
    let mut engine = packed.engine(&options);
    let feed = |engine: &mut qpx_run::Engine, ids: &[u32]| {
        engine.feed(ids, qpx_run::Wanted::Last, &mut |_, _| Ok(()))
    };
    feed(&mut engine, &[1; 8]).unwrap();
    assert!(matches!(
        feed(&mut engine, &[1]),
        Err(Error::Context { needed: 9, .. })
    ));
    engine.reset();
    assert!(matches!(
        feed(&mut engine, &[384]),
        Err(Error::Token { id: 384, .. })
    ));
    assert_eq!(engine.position(), 0);
    let beyond = Options {
        context: Some(4097),
        ..Options::default()
    };
    assert!(matches!(
        engine::plan(&packed.bundle(), &beyond),
        Err(Error::Context { .. })
    ));
}
