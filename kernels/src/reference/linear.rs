//! y = x Wᵀ.
#![expect(
    clippy::needless_range_loop,
    reason = "an index names a column or a token in several arrays"
)]

use super::sum::{Sixteen, dot};
use crate::encoding::half::f16_to_f32;
use crate::ops::{Activations, Matrix, SMALLEST_ENCODED};

/// y = x Wᵀ. `x` [tokens, columns], `y` [tokens, rows].
pub fn linear(w: &Matrix, x: &[f32], activations: Activations, y: &mut [f32]) {
    for (x, y) in x.chunks(w.columns).zip(y.chunks_mut(w.rows)) {
        let integers = activations == Activations::Encoded && is_quantised(w.encoding.name);
        for (row, y) in y.iter_mut().enumerate() {
            *y = if integers {
                integer_row(w, row, x)
            } else {
                let w = decode(w, row);
                let mut padded = x.to_vec();
                padded.resize(w.len(), 0.0);
                dot(&w, &padded)
            };
        }
    }
}

/// A row's bytes.
fn row<'a>(w: &'a Matrix, row: usize) -> &'a [u8] {
    let bytes = w.encoding.row_bytes(w.columns);
    &w.bytes[row * bytes..][..bytes]
}

/// A row's values, whole blocks.
pub(super) fn decode(w: &Matrix, number: usize) -> Vec<f32> {
    let decode = w.encoding.decode.expect("an encoding of real numbers");
    let mut out = vec![0.0; w.columns.next_multiple_of(w.encoding.block)];
    decode(row(w, number), &mut out);
    out
}

/// Activations in 8 bits: codes, and for each block of 32 its scale.
fn encode(x: &[f32]) -> (Vec<i32>, Vec<f32>) {
    let mut codes = vec![0; x.len()];
    let mut scales = Vec::new();
    for (x, codes) in x.chunks(32).zip(codes.chunks_mut(32)) {
        let largest = x.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        if x.iter().any(|v| !v.is_finite()) {
            scales.push(f32::NAN);
        } else if largest < SMALLEST_ENCODED {
            scales.push(0.0);
        } else {
            for (code, x) in codes.iter_mut().zip(x) {
                *code = (x * (127.0 / largest)).round_ties_even() as i32;
            }
            scales.push(largest / 127.0);
        }
    }
    (codes, scales)
}

fn integer_row(w: &Matrix, number: usize, x: &[f32]) -> f32 {
    let columns = w.columns.next_multiple_of(256);
    let stored = w.columns.next_multiple_of(w.encoding.block);
    let mut x = x.to_vec();
    x.resize(columns, 0.0);
    let (codes, scales) = encode(&x);
    let row = row(w, number);
    let weight = |column| {
        if column < stored {
            let block = &row[column / w.encoding.block * w.encoding.bytes..][..w.encoding.bytes];
            weight(w.encoding.name, block, column % w.encoding.block)
        } else {
            (0, 0.0, 0.0)
        }
    };
    let mut products = Sixteen::default();
    for quad in 0..columns / 4 {
        let mut exact = 0;
        for column in 4 * quad..4 * quad + 4 {
            exact += weight(column).0 * codes[column];
        }
        products.product(exact as f32, weight(4 * quad).1 * scales[quad / 8]);
    }
    if w.encoding.name == "q8_0" {
        return products.total();
    }
    let mut leasts = Sixteen::default();
    for (g, sixteen) in codes.chunks(16).enumerate() {
        let sum = scales[g / 2] * sixteen.iter().sum::<i32>() as f32;
        leasts.product(weight(16 * g).2, sum);
    }
    products.merge(&leasts).total()
}

fn is_quantised(name: &str) -> bool {
    [
        "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
    ]
    .contains(&name)
}

/// Code, scale and least of value `i` of a block.
fn weight(name: &str, block: &[u8], i: usize) -> (i32, f32, f32) {
    let half = |at: usize| f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]));
    let nibble = |byte: u8, high: bool| i32::from(if high { byte >> 4 } else { byte & 15 });
    let bit = |byte: u8, n: usize| i32::from(byte >> n & 1);
    // 6-bit pairs of q4_k and q5_k: the first four plain, the others with their high bits above the first four's.
    let pair = |j: usize| {
        let b = &block[4..16];
        if j < 4 {
            (b[j] & 63, b[j + 4] & 63)
        } else {
            (
                b[j + 4] & 15 | b[j - 4] >> 6 << 4,
                b[j + 4] >> 4 | b[j] >> 6 << 4,
            )
        }
    };
    match name {
        "q8_0" => (i32::from(block[2 + i].cast_signed()), half(0), 0.0),
        "q4_1" => (nibble(block[4 + i % 16], i >= 16), half(0), half(2)),
        "q5_1" => (
            nibble(block[8 + i % 16], i >= 16) + 16 * bit(block[4 + i / 8], i % 8),
            half(0),
            half(2),
        ),
        "q4_k" | "q5_k" => {
            let (scale, least) = pair(i / 32);
            let at = if name == "q4_k" { 16 } else { 48 };
            let mut code = nibble(block[at + i / 64 * 32 + i % 32], i % 64 >= 32);
            if name == "q5_k" {
                code += 16 * bit(block[16 + i % 32], i / 32);
            }
            (
                code,
                half(0) * f32::from(scale),
                -(half(2) * f32::from(least)),
            )
        }
        "q6_k" => {
            let (part, j) = (i / 128, i % 128);
            let low = nibble(block[64 * part + j % 64], j >= 64);
            let high = i32::from(block[128 + 32 * part + j % 32] >> (j / 32 * 2) & 3);
            let scale = half(208) * f32::from(block[192 + i / 16].cast_signed());
            (low + 16 * high, scale, -32.0 * scale)
        }
        "q3_k" => {
            let (part, j) = (i / 128, i % 128);
            let low = i32::from(block[32 + 32 * part + j % 32] >> (j / 32 * 2) & 3);
            let g = i / 16;
            let b = &block[96..108];
            let scale = nibble(b[g % 8], g >= 8) + 16 * i32::from(b[8 + g % 4] >> (g / 4 * 2) & 3);
            let scale = half(108) * (scale - 32) as f32;
            (low + 4 * bit(block[i % 32], i / 32), scale, -4.0 * scale)
        }
        "q2_k" => {
            let (part, j) = (i / 128, i % 128);
            let code = i32::from(block[16 + 32 * part + j % 32] >> (j / 32 * 2) & 3);
            let scales = block[i / 16];
            (
                code,
                half(80) * f32::from(scales & 15),
                -(half(82) * f32::from(scales >> 4)),
            )
        }
        other => unreachable!("{other} is not multiplied as integers"),
    }
}
