//! The error of encoding, held to the reference quantiser's (`tools/encode_reference.py --write` stored its figures).
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use qpx_kernels::{Level, encoding};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

struct Matrix {
    columns: usize,
    values: Vec<f32>,
}

/// In (0, 1]: splitmix64.
fn uniform(count: usize, seed: u64) -> impl Iterator<Item = f64> {
    (1..=count as u64).map(move |i| {
        let mut z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) as f64 + 1.0) / 9_007_199_254_740_992.0
    })
}

fn synthetic(kind: &str, columns: usize) -> Matrix {
    let u: Vec<f64> = uniform(4 * 64 * columns, kind.len() as u64).collect();
    let values = u.as_chunks::<4>().0.iter().map(|u| {
        let normal = (-2.0 * libm::log(u[0])).sqrt() * libm::cos(std::f64::consts::TAU * u[1]);
        let value = match kind {
            "gaussian" => normal,
            "student" => normal / (-libm::log(u[2] * u[3]) / 2.0).sqrt(),
            _ => libm::log(u[0]) * if u[1] < 0.5 { -1.0 } else { 1.0 },
        };
        (value * 0.02) as f32
    });
    Matrix {
        columns,
        values: values.collect(),
    }
}

fn tiny_coder(wanted: &dyn Fn(&str) -> bool) -> BTreeMap<String, Matrix> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tiny-coder");
    let mut all = BTreeMap::new();
    for shard in [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ] {
        let bytes = std::fs::read(folder.join(shard)).unwrap();
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            if wanted(&name) {
                assert_eq!(view.dtype(), Dtype::BF16, "{name}");
                let mut values = vec![0.0; view.data().len() / 2];
                encoding::decode_plain("bf16", view.data(), &mut values).unwrap();
                all.insert(
                    name,
                    Matrix {
                        columns: view.shape()[1],
                        values,
                    },
                );
            }
        }
    }
    all
}

fn relative_rms(encoding: &encoding::Encoding, matrix: &Matrix) -> f64 {
    let rows = matrix.values.len() / matrix.columns;
    let mut blocks = vec![0; rows * encoding.row_bytes(matrix.columns)];
    encoding.encode_rows(Level::Scalar, &matrix.values, matrix.columns, &mut blocks);
    let mut back = vec![0.0; matrix.values.len()];
    encoding.decode_rows(&blocks, matrix.columns, &mut back);
    let (mut error, mut power) = (0.0, 0.0);
    for (&x, &y) in matrix.values.iter().zip(&back) {
        error += (f64::from(y) - f64::from(x)).powi(2);
        power += f64::from(x).powi(2);
    }
    (error / power).sqrt()
}

#[test]
fn no_matrix_is_encoded_worse_than_by_the_reference_quantiser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/ggml_rms.json");
    let reference: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let reference = reference.as_object().unwrap();
    let labels = reference["q4_k"].as_object().unwrap();
    let mut data = tiny_coder(&|name| labels.contains_key(name));
    for label in labels.keys() {
        if let Some((kind, columns)) = label
            .split_once('.')
            .filter(|(k, _)| *k != "model" && *k != "lm_head")
        {
            data.insert(label.clone(), synthetic(kind, columns.parse().unwrap()));
        }
    }
    println!("encoding  matrices  ours / reference: least, mean, most");
    for (name, figures) in reference {
        let encoding = encoding::by_name(name).unwrap();
        let mut ratios = Vec::new();
        for (label, figure) in figures.as_object().unwrap() {
            let (ours, theirs) = (
                relative_rms(encoding, &data[label]),
                figure.as_f64().unwrap(),
            );
            assert!(
                ours <= theirs,
                "{name} of {label}: {ours:.6}, the reference has {theirs:.6}"
            );
            assert!(
                ours > theirs / 2.0,
                "{name} of {label}: {ours:.6} can't be, the reference has {theirs:.6}"
            );
            ratios.push(ours / theirs);
        }
        assert!(ratios.len() > 60, "{name}: only {} matrices", ratios.len());
        let (least, most) = ratios
            .iter()
            .fold((9.0f64, 0.0f64), |(l, m), &r| (l.min(r), m.max(r)));
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        println!(
            "{name:<8} {:9} {least:24.4} {mean:7.4} {most:7.4}",
            ratios.len()
        );
    }
}
