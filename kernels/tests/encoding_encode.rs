//! Encoders at their limits: odd values, odd lengths, and the same bytes at every level.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed step fails the test; levels that are missing are named"
)]

use qpx_kernels::{Encoding, Level, encoding};

fn blocks() -> impl Iterator<Item = &'static Encoding> {
    encoding::ENCODINGS.iter().copied().filter(|e| e.block > 1)
}

/// Levels of this machine that the encoders know; prints those it lacks.
fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Scalar];
    #[cfg(target_arch = "x86_64")]
    for (level, present) in [
        (Level::Avx2, is_x86_feature_detected!("avx2")),
        (Level::Avx512, is_x86_feature_detected!("avx512f")),
    ] {
        if present {
            levels.push(level);
        } else {
            println!("not run: this processor has no {level:?}");
        }
    }
    if cfg!(target_arch = "aarch64") {
        levels.push(Level::Neon);
    } else {
        println!("not run: this processor has no Neon");
    }
    levels
}

fn encode(encoding: &Encoding, level: Level, row: &[f32]) -> Vec<u8> {
    let mut out = vec![0xaa; encoding.row_bytes(row.len())];
    encoding.encode.unwrap()(level, row, &mut out);
    out
}

fn decode(encoding: &Encoding, blocks: &[u8], columns: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; columns];
    encoding.decode_rows(blocks, columns, &mut out);
    out
}

/// Bell-shaped values from a seed.
fn bell(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count)
        .map(|_| (next() + next() + next() + next()) * 0.04)
        .collect()
}

/// Rows that have gone wrong in quantisers, by name.
fn odd_rows() -> Vec<(&'static str, Vec<f32>)> {
    let n = 512;
    let outlier = |at: usize, value: f32| {
        let mut row = bell(n, 3);
        row[at] = value;
        row
    };
    let mut rows = vec![
        ("zeros", vec![0.0; n]),
        ("negative zeros", vec![-0.0; n]),
        ("a positive constant", vec![0.37; n]),
        ("a negative constant", vec![-0.37; n]),
        (
            "all positive",
            bell(n, 1).iter().map(|x| x.abs() + 1.0).collect(),
        ),
        (
            "all negative",
            bell(n, 1).iter().map(|x| -x.abs() - 1.0).collect(),
        ),
        (
            "one value in zeros",
            (0..n).map(|i| if i == 77 { -3.0 } else { 0.0 }).collect(),
        ),
        ("a positive outlier", outlier(5, 40.0)),
        ("a negative outlier", outlier(250, -40.0)),
        ("an outlier of 1e9", outlier(100, 1e9)),
        (
            "two values",
            (0..n)
                .map(|i| if i % 3 == 0 { 1.5 } else { -0.25 })
                .collect(),
        ),
        ("a ramp", (0..n).map(|i| i as f32 - 256.0).collect()),
        (
            "one zero sub-block",
            (0..n)
                .map(|i| if i / 32 == 3 { 0.0 } else { bell(n, 2)[i] })
                .collect(),
        ),
    ];
    for (name, scale) in [
        ("times 2^-149", 2f32.powi(-149)),
        ("times 1e-40", 1e-40),
        ("times 1e-30", 1e-30),
        ("times 1e-9", 1e-9),
        ("times 1e-7", 1e-7),
        ("times 1e-5", 1e-5),
        ("times 1e5", 1e5),
        ("times 1e8", 1e8),
        ("times 1e30", 1e30),
        ("times 3e38", 3e38),
    ] {
        let row = bell(n, 4)
            .iter()
            .map(|x| (x * scale).clamp(-f32::MAX, f32::MAX))
            .collect();
        rows.push((name, row));
    }
    rows.push((
        "the largest of both signs",
        (0..n)
            .map(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN })
            .collect(),
    ));
    rows
}

#[test]
fn nothing_finite_becomes_infinite() {
    for encoding in blocks() {
        for (name, row) in odd_rows() {
            for columns in [row.len(), 300, 256, 33, 1] {
                let found = decode(
                    encoding,
                    &encode(encoding, Level::Scalar, &row[..columns]),
                    columns,
                );
                for (i, y) in found.iter().enumerate() {
                    assert!(
                        y.is_finite(),
                        "{} of {name}, {columns} columns: value {i} is {y}",
                        encoding.name
                    );
                }
            }
        }
    }
}

#[test]
fn every_level_writes_the_same_bytes() {
    for level in levels() {
        for encoding in encoding::ENCODINGS.iter().filter(|e| e.encode.is_some()) {
            for (name, row) in odd_rows()
                .into_iter()
                .chain((0..40).map(|s| ("bell", bell(512, s))))
            {
                for columns in [row.len(), 300, 32] {
                    let expected = encode(encoding, Level::Scalar, &row[..columns]);
                    let found = encode(encoding, level, &row[..columns]);
                    assert!(
                        expected == found,
                        "{} of {name}, {columns} columns, at {level:?}",
                        encoding.name
                    );
                }
            }
        }
    }
}

/// No value is further off than a step of its sub-block, which is at most its range over the whole numbers there are.
#[test]
fn no_value_is_far_off() {
    // Sub-block, and whole numbers from end to end; a little slack for rounded scales.
    let grids = [
        ("q8_0", 32, 254.0),
        ("q4_1", 32, 15.0),
        ("q5_1", 32, 31.0),
        ("q6_k", 16, 62.0),
        ("q5_k", 32, 31.0),
        ("q4_k", 32, 15.0),
        ("q3_k", 16, 6.0),
        ("q2_k", 16, 3.0),
    ];
    for (name, width, steps) in grids {
        let encoding = encoding::by_name(name).unwrap();
        for seed in 0..30 {
            let row = bell(1024, seed);
            let found = decode(encoding, &encode(encoding, Level::Scalar, &row), row.len());
            for (at, (x, y)) in row.chunks(width).zip(found.chunks(width)).enumerate() {
                let (low, high) = x
                    .iter()
                    .fold((0f32, 0f32), |(l, h), &v| (l.min(v), h.max(v)));
                let range = match name {
                    "q8_0" | "q6_k" | "q3_k" => 2.0 * high.max(-low),
                    _ => high - low,
                };
                for (i, (x, y)) in x.iter().zip(y).enumerate() {
                    assert!(
                        (x - y).abs() <= range / steps * 1.5,
                        "{name}, seed {seed}, sub-block {at}, value {i}: {y} for {x}, range {range}",
                    );
                }
            }
        }
    }
}

#[test]
fn simple_rows_come_back_as_they_were() {
    for encoding in blocks() {
        for (name, row) in odd_rows().into_iter().take(4) {
            let found = decode(encoding, &encode(encoding, Level::Scalar, &row), row.len());
            for (x, y) in row.iter().zip(&found) {
                assert!(
                    (x - y).abs() <= x.abs() * 2e-3,
                    "{} of {name}: {y} for {x}",
                    encoding.name
                );
            }
        }
        let zeros = encode(encoding, Level::Scalar, &[0.0; 256]);
        assert!(
            decode(encoding, &zeros, 256).iter().all(|&y| y == 0.0),
            "{}",
            encoding.name
        );
    }
}

/// Steps in the range of binary16's subnormals are coarse; the scales make up for it.
#[test]
fn small_weights_keep_their_precision_as_long_as_binary16_allows() {
    for encoding in blocks() {
        let error = |scale: f32| {
            let row: Vec<f32> = bell(2048, 9).iter().map(|x| x * scale).collect();
            let found = decode(encoding, &encode(encoding, Level::Scalar, &row), row.len());
            let (e, p) = row.iter().zip(&found).fold((0.0, 0.0), |(e, p), (&x, &y)| {
                (e + f64::from(y - x).powi(2), p + f64::from(x).powi(2))
            });
            (e / p).sqrt()
        };
        let usual = error(1024.0);
        assert!(
            (error(32.0) - usual).abs() < usual * 1e-3,
            "{}: a power of two changes nothing",
            encoding.name
        );
        // Weights near 1e-5: steps of steps fall below the smallest binary16, 6e-8.
        let small = error(1.0 / 4096.0);
        assert!(
            small < usual * 1.5 + 0.02,
            "{}: {small} for small weights, {usual} for usual ones",
            encoding.name
        );
    }
}

#[test]
fn what_fills_up_a_block_has_no_weight() {
    // A narrow band away from zero: a zero taken for a value would widen it manyfold.
    let band: Vec<f32> = bell(2048, 5).iter().map(|x| x - 1.0).collect();
    for name in ["q4_1", "q5_1", "q4_k", "q5_k", "q2_k"] {
        let encoding = encoding::by_name(name).unwrap();
        let error = |columns: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for row in band.chunks_exact(columns) {
                let found = decode(encoding, &encode(encoding, Level::Scalar, row), columns);
                sum += row
                    .iter()
                    .zip(&found)
                    .map(|(&x, &y)| f64::from(y - x).powi(2))
                    .sum::<f64>();
                count += columns as f64;
            }
            (sum / count).sqrt()
        };
        let whole = error(512);
        for columns in [32, 48, 128, 640, 257, 31, 17] {
            let padded = error(columns);
            assert!(
                padded < whole * 1.1,
                "{name}: {padded} in rows of {columns}, {whole} in whole blocks"
            );
        }
    }
}

#[test]
fn a_row_is_encoded_alike_alone_and_among_others() {
    for encoding in encoding::ENCODINGS.iter().filter(|e| e.encode.is_some()) {
        for columns in [1, 31, 32, 33, 48, 128, 255, 256, 257, 640] {
            let rows = bell(3 * columns, 8);
            let mut together = vec![0x55; 3 * encoding.row_bytes(columns)];
            encoding.encode_rows(Level::Scalar, &rows, columns, &mut together);
            let alone: Vec<u8> = rows
                .chunks(columns)
                .flat_map(|r| encode(encoding, Level::Scalar, r))
                .collect();
            assert!(alone == together, "{} in rows of {columns}", encoding.name);
            let mut back = vec![0.0; rows.len()];
            encoding.decode_rows(&together, columns, &mut back);
            let one: Vec<f32> = alone
                .chunks(encoding.row_bytes(columns))
                .flat_map(|b| decode(encoding, b, columns))
                .collect();
            assert_eq!(one, back, "{} in rows of {columns}", encoding.name);
        }
    }
    for encoding in blocks() {
        encoding.encode_rows(Level::Scalar, &[], 0, &mut []);
    }
}

#[test]
#[should_panic(expected = "100 values in rows of 50 do not take 200 bytes as q4_k")]
fn lengths_that_do_not_fit_are_refused() {
    encoding::q4_k::ENCODING.encode_rows(Level::Scalar, &[0.0; 100], 50, &mut [0; 200]);
}

#[test]
#[cfg(target_arch = "x86_64")]
#[should_panic(expected = "this processor has no Neon")]
fn a_level_of_another_processor_is_refused() {
    encode(&encoding::q4_k::ENCODING, Level::Neon, &[0.0; 256]);
}
