//! Cross-entropy of the trained fixture over documents that it was not trained on, in every encoding.
//!
//! The expected figure is that of an independent implementation (fixtures/tiny-coder/FIGURES.md).

mod support;

use qpx_kernels::ops::Activations;
use qpx_pack::Recipe;
use qpx_run::{Options, score::score};
use std::fs;
use support::{Packed, fixture};

const EXPECTED: f64 = 0.44025;

fn measure(recipe: Recipe, activations: Activations) -> f64 {
    let packed = Packed::new("tiny-coder", recipe);
    let text = fs::read_to_string(fixture("tiny-coder/documents.json")).unwrap();
    let documents: Vec<Vec<u32>> = serde_json::from_str(&text).unwrap();
    let options = Options {
        activations,
        context: documents.iter().map(Vec::len).max(),
        ..Options::default()
    };
    let mut engine = packed.engine(&options);
    let found = score(&mut engine, &documents).unwrap();
    assert_eq!(found.tokens, 11_778);
    found.mean()
}

fn check(recipe: &str, bound: f64) {
    let found = measure(Recipe::named(recipe).unwrap(), Activations::Encoded);
    println!("{recipe}: {found:.5} nats, {:+.5}", found - EXPECTED);
    assert!(
        (found - EXPECTED).abs() <= bound,
        "{recipe}: {found:.5} nats"
    );
}

#[test]
fn lossless_scores_as_the_reference() {
    check("lossless", 0.0005);
}

#[test]
fn q8_loses_next_to_nothing() {
    check("q8", 0.002);
}

#[test]
fn q4_loses_little() {
    check("q4", 0.03);
}

/// Every encoding forced on every matrix but the router; rows of 48 and 128 are padded to 256. Bounds: about twice what was measured.
#[test]
fn every_encoding_is_stated() {
    for (encoding, bound) in [
        ("q8_0", 0.002),
        ("q6_k", 0.01),
        ("q5_k", 0.02),
        ("q5_1", 0.02),
        ("q4_k", 0.06),
        ("q4_1", 0.06),
        ("q3_k", 0.30),
        ("q2_k", 1.50),
    ] {
        let text = format!(
            "[[rule]]\nrole = \"*.router\"\nencoding = \"source\"\n\n[[rule]]\nrole = \"*\"\nencoding = \"{encoding}\"\n"
        );
        let recipe = Recipe::parse(encoding, &text).unwrap();
        let found = measure(recipe.clone(), Activations::Encoded);
        let floats = measure(recipe, Activations::F32);
        println!(
            "{encoding}: {found:.5} nats, {:+.5}; with f32 activations {:+.5}",
            found - EXPECTED,
            floats - EXPECTED
        );
        assert!(
            (found - EXPECTED).abs() <= bound,
            "{encoding}: {found:.5} nats"
        );
        assert!(
            (found - floats).abs() <= 0.01,
            "{encoding}: activations cost {:.5}",
            found - floats
        );
    }
}
