//! Every lane against logits of an independent implementation (float32, eager), position by position.
//!
//! Tolerance: 1e-4 of the largest absolute logit. Both sides compute in f32 from the same weights, so only the order of sums
//! differs; wrong mathematics shows at 1e-2 and above.

mod support;

use qpx_run::{Options, Wanted};
use safetensors::{Dtype, SafeTensors};
use std::fs;
use support::{Packed, fixture, ids};

const TOLERANCE: f32 = 1e-4;

fn floats(tensors: &SafeTensors<'_>, name: &str) -> (Vec<f32>, Vec<usize>) {
    let view = tensors
        .tensor(name)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(view.dtype(), Dtype::F32, "{name}");
    let (quads, rest) = view.data().as_chunks::<4>();
    assert!(rest.is_empty());
    let values = quads.iter().map(|b| f32::from_le_bytes(*b)).collect();
    (values, view.shape().to_vec())
}

fn integers(tensors: &SafeTensors<'_>, name: &str) -> Vec<u32> {
    let view = tensors
        .tensor(name)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(view.dtype(), Dtype::I32, "{name}");
    let (quads, _) = view.data().as_chunks::<4>();
    quads.iter().map(|b| u32::from_le_bytes(*b)).collect()
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |m: f32, x| m.max(x.abs()))
}

fn check(name: &str) {
    let packed = Packed::lossless(name);
    let mut engine = packed.engine(&Options::default());
    let text = fs::read_to_string(fixture(name).join("golden.json")).unwrap();
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    let data = fs::read(fixture(name).join("golden.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&data).unwrap();
    let prompts = golden["prompts"].as_array().unwrap();
    assert!(prompts.len() >= 3);
    let mut worst = 0.0_f32;
    for prompt in prompts {
        let label = prompt["name"].as_str().unwrap();
        let prompt_ids = ids(&prompt["input_ids"]);
        let greedy_ids = ids(&prompt["greedy_ids"]);
        engine.record_routing(true);
        let rows = support::logits(&mut engine, &prompt_ids);
        let routing = engine.take_routing();
        engine.record_routing(false);
        let (expected, shape) = floats(&tensors, &format!("{label}.logits"));
        assert_eq!(shape, [prompt_ids.len(), rows[0].len()], "{name} {label}");
        let scale = largest(&expected);
        for (t, (row, expected)) in rows.iter().zip(expected.chunks_exact(shape[1])).enumerate() {
            for (id, (x, y)) in row.iter().zip(expected).enumerate() {
                let error = (x - y).abs() / scale;
                worst = worst.max(error);
                assert!(
                    error <= TOLERANCE,
                    "{name} {label}: position {t}, token {id}: {x}, not {y}"
                );
            }
        }

        // The continuation by teacher forcing: the expected token is fed whatever was chosen, and each choice is compared.
        let (expected, shape) = floats(&tensors, &format!("{label}.greedy_logits"));
        let scale = largest(&expected);
        let mut row = rows[rows.len() - 1].clone();
        for (step, (id, expected)) in greedy_ids
            .iter()
            .zip(expected.chunks_exact(shape[1]))
            .enumerate()
        {
            for (x, y) in row.iter().zip(expected) {
                let error = (x - y).abs() / scale;
                worst = worst.max(error);
                assert!(
                    error <= TOLERANCE,
                    "{name} {label}: greedy step {step}: {x}, not {y}"
                );
            }
            let best = (0..row.len())
                .max_by(|a, b| row[*a].total_cmp(&row[*b]))
                .unwrap();
            assert_eq!(best as u32, *id, "{name} {label}: greedy step {step}");
            engine
                .feed(&[*id], Wanted::Last, &mut |_, logits| {
                    row.copy_from_slice(logits);
                    Ok(())
                })
                .unwrap();
        }

        // The reference lists a token's experts by ascending id.
        let layers = engine.expert_layers().to_vec();
        for (number, layer) in layers.iter().enumerate() {
            let expected = integers(&tensors, &format!("{label}.experts.{layer}"));
            let (weights, shape) = floats(&tensors, &format!("{label}.expert_weights.{layer}"));
            let mut found = Vec::new();
            for choice in routing.iter().filter(|c| c.layer == number) {
                for (ids, weights) in choice
                    .ids
                    .chunks(shape[1])
                    .zip(choice.weights.chunks(shape[1]))
                {
                    let mut pairs: Vec<_> =
                        ids.iter().copied().zip(weights.iter().copied()).collect();
                    pairs.sort_by_key(|(id, _)| *id);
                    found.extend(pairs);
                }
            }
            let found_ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
            assert_eq!(
                found_ids, expected,
                "{name} {label}: experts of layer {layer}"
            );
            for ((_, x), y) in found.iter().zip(&weights) {
                assert!(
                    (x - y).abs() <= TOLERANCE,
                    "{name} {label}: layer {layer}: weight {x}, not {y}"
                );
            }
        }
    }
    println!("{name}: largest difference {worst:.1e} of the largest logit");
}

#[test]
fn llama_agrees() {
    check("oracle/llama");
}

#[test]
fn qwen3_agrees() {
    check("oracle/qwen3");
}

#[test]
fn qwen3_moe_agrees() {
    check("oracle/qwen3_moe");
}

#[test]
fn tiny_coder_agrees() {
    check("tiny-coder");
}
