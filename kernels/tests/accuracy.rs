//! The plain loops against the same formulas in f64: the rules themselves are right, not only kept.

use qpx_kernels::ops::{Activations, AttentionShape, Matrix};
use qpx_kernels::{Level, encoding, reference};

/// Seeded normal numbers.
fn normal(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..n)
        .map(|_| ((0..12).map(|_| uniform()).sum::<f64>()) as f32)
        .collect()
}

/// Root of the mean square of the difference over that of the exact values.
fn error(found: &[f32], exact: &[f64]) -> f64 {
    let square = |x: f64| x * x;
    let difference: f64 = found
        .iter()
        .zip(exact)
        .map(|(f, e)| square(f64::from(*f) - e))
        .sum();
    (difference / exact.iter().map(|e| square(*e)).sum::<f64>()).sqrt()
}

/// x Wᵀ of decoded weights, in f64.
fn exact_product(w: &Matrix, x: &[f32]) -> Vec<f64> {
    let mut values = vec![0.0; w.rows * w.columns];
    w.encoding.decode_rows(w.bytes, w.columns, &mut values);
    let dot = |x: &[f32], w: &[f32]| {
        x.iter()
            .zip(w)
            .map(|(x, w)| f64::from(*x) * f64::from(*w))
            .sum()
    };
    x.chunks(w.columns)
        .flat_map(|x| {
            values
                .chunks(w.columns)
                .map(|w| dot(x, w))
                .collect::<Vec<f64>>()
        })
        .collect()
}

#[test]
fn products_of_every_encoding() {
    let (rows, columns, tokens) = (64, 1000, 4);
    let values = normal(1, rows * columns);
    let x = normal(2, tokens * columns);
    for name in [
        "f32", "bf16", "f16", "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
    ] {
        let encoding = encoding::by_name(name).unwrap();
        let mut bytes = vec![0; rows * encoding.row_bytes(columns)];
        encoding.encode_rows(Level::Scalar, &values, columns, &mut bytes);
        let w = Matrix {
            encoding,
            rows,
            columns,
            bytes: &bytes,
        };
        let exact = exact_product(&w, &x);
        let mut y = vec![0.0; tokens * rows];
        reference::linear(&w, &x, Activations::F32, &mut y);
        let floats = error(&y, &exact);
        assert!(floats < 1e-6, "{name}, f32 activations: {floats:e}");
        reference::linear(&w, &x, Activations::Encoded, &mut y);
        let integers = error(&y, &exact);
        println!("{name}: {floats:.1e} in floats, {integers:.1e} with 8-bit activations");
        // Rounding to 1/127 of a block's largest of 32, about 2.1 deviations: 0.0165 / sqrt(12).
        let most = if ["f32", "bf16", "f16"].contains(&name) {
            1e-6
        } else {
            7e-3
        };
        assert!(integers < most, "{name}, 8-bit activations: {integers:e}");
    }
}

#[test]
fn norms_and_units() {
    let (width, rows) = (1000, 3);
    let (x, z) = (normal(3, rows * width), normal(4, width));
    let mut y = vec![0.0; rows * width];
    reference::rms_norm(&x, &z, 1e-6, &mut y);
    let exact: Vec<f64> = x
        .chunks(width)
        .flat_map(|x| {
            let mean = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / width as f64;
            let scale = 1.0 / (mean + 1e-6).sqrt();
            x.iter()
                .zip(&z)
                .map(move |(x, z)| f64::from(*x) * scale * f64::from(*z))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(error(&y, &exact) < 2e-7);

    let up = normal(5, rows * width);
    reference::silu_mul(&x, &up, &mut y);
    let exact: Vec<f64> = x
        .iter()
        .zip(&up)
        .map(|(x, u)| f64::from(*x) / (1.0 + (-f64::from(*x)).exp()) * f64::from(*u))
        .collect();
    assert!(error(&y, &exact) < 2e-7);
}

#[test]
fn attention_is_softmax_of_scores_times_values() {
    let shape = AttentionShape {
        heads: 4,
        kv_heads: 2,
        head_dim: 24,
        capacity: 200,
        scale: 0.3,
    };
    let (start, tokens, dim) = (150, 5, shape.head_dim);
    let q = normal(6, tokens * shape.heads * dim);
    let k = normal(7, shape.kv_heads * shape.capacity * dim);
    let v = normal(8, shape.kv_heads * shape.capacity * dim);
    for window in [None, Some(77)] {
        let mut y = vec![0.0; q.len()];
        reference::attention(&q, &k, &v, shape, start, window, &mut y);
        let mut exact = Vec::new();
        for t in 0..tokens {
            for head in 0..shape.heads {
                let q = &q[(t * shape.heads + head) * dim..][..dim];
                let kv = head / 2 * shape.capacity * dim;
                let last = start + t;
                let first = window.map_or(0, |w: usize| last + 1 - w);
                let weight = |p: usize| {
                    let k = &k[kv + p * dim..][..dim];
                    let dot: f64 = q
                        .iter()
                        .zip(k)
                        .map(|(q, k)| f64::from(*q) * f64::from(*k))
                        .sum();
                    (dot * f64::from(shape.scale)).exp()
                };
                let total: f64 = (first..=last).map(weight).sum();
                for d in 0..dim {
                    let sum: f64 = (first..=last)
                        .map(|p| weight(p) * f64::from(v[kv + p * dim + d]))
                        .sum();
                    exact.push(sum / total);
                }
            }
        }
        let found = error(&y, &exact);
        assert!(found < 1e-6, "{window:?}: {found:e}");
    }
}

#[test]
fn routing_is_a_softmax() {
    let logits = normal(9, 64);
    let (mut ids, mut weights) = ([0; 8], [0.0; 8]);
    reference::route_softmax(&logits, 64, 8, false, &mut ids, &mut weights);
    let total: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
    let exact: Vec<f64> = ids
        .iter()
        .map(|i| f64::from(logits[*i as usize]).exp() / total)
        .collect();
    assert!(error(&weights, &exact) < 3e-7);
    let least = logits[ids[7] as usize];
    assert_eq!(logits.iter().filter(|x| **x > least).count(), 7);
    reference::route_softmax(&logits, 64, 8, true, &mut ids, &mut weights);
    assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}
