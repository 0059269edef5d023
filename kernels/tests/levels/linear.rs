//! Matrix products: all encodings, lengths around every boundary, batches and threads.

use qpx_kernels::cpu::Input;
use qpx_kernels::ops::{Activations, Matrix};
use qpx_kernels::{Cpu, encoding, reference};

use super::data::{PLAIN, QUANTISED, Random, weights};
use super::{assert_same, every_level};

const LENGTHS: [usize; 19] = [
    1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 511, 512, 513, 640,
];
const BOTH: [Activations; 2] = [Activations::Encoded, Activations::F32];

/// The fast product of all tokens.
fn product(cpu: &Cpu, w: &Matrix, x: &[f32]) -> Vec<f32> {
    let tokens = x.len() / w.columns;
    let mut input = Input::with_capacity(tokens, w.columns);
    cpu.prepare(x, w.columns, &mut input)
        .expect("room for the input");
    let mut y = vec![f32::NAN; tokens * w.rows];
    cpu.linear(w, &input, &mut y).expect("fitting shapes");
    y
}

fn check(w: &Matrix, x: &[f32], case: &str) {
    for activations in BOTH {
        let mut expected = vec![0.0; x.len() / w.columns * w.rows];
        reference::linear(w, x, activations, &mut expected);
        for cpu in every_level(1, activations) {
            let case = format!(
                "{case}: {} {}x{}, {activations:?}, {}",
                w.encoding.name, w.rows, w.columns, cpu.level
            );
            assert_same(&expected, &product(&cpu, w, x), &case);
        }
    }
}

#[test]
fn every_encoding_at_every_length_is_as_the_plain_loops() {
    let mut random = Random::new(1);
    for name in PLAIN.into_iter().chain(QUANTISED) {
        let encoding = encoding::by_name(name).unwrap();
        for columns in LENGTHS {
            for (rows, tokens) in [(1, 1), (5, 1), (3, 2), (2, 3)] {
                let bytes = weights(&mut random, encoding, rows, columns);
                let w = Matrix {
                    encoding,
                    rows,
                    columns,
                    bytes: &bytes,
                };
                check(&w, &random.numbers(tokens * columns), "numbers");
                if rows == 3 {
                    check(&w, &random.nasty(tokens * columns), "nasty");
                }
            }
        }
    }
}

#[test]
fn infinite_and_missing_numbers_are_never_hidden() {
    let mut random = Random::new(2);
    for name in PLAIN.into_iter().chain(QUANTISED) {
        let encoding = encoding::by_name(name).unwrap();
        let bytes = weights(&mut random, encoding, 2, 300);
        let w = Matrix {
            encoding,
            rows: 2,
            columns: 300,
            bytes: &bytes,
        };
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = random.numbers(2 * 300);
            x[300 + 299] = bad;
            for activations in BOTH {
                for cpu in every_level(1, activations) {
                    let y = product(&cpu, &w, &x);
                    let case = format!("{name} {activations:?} {} {bad}", cpu.level);
                    assert!(y[..2].iter().all(|y| y.is_finite()), "{case}: {y:?}");
                    assert!(y[2..].iter().all(|y| !y.is_finite()), "{case}: {y:?}");
                }
            }
        }
    }
}

#[test]
fn a_token_does_not_depend_on_its_batch() {
    let mut random = Random::new(3);
    let (rows, columns, tokens) = (3, 290, 70);
    for name in PLAIN.into_iter().chain(QUANTISED) {
        let encoding = encoding::by_name(name).unwrap();
        let bytes = weights(&mut random, encoding, rows, columns);
        let w = Matrix {
            encoding,
            rows,
            columns,
            bytes: &bytes,
        };
        let x = random.numbers(tokens * columns);
        for activations in BOTH {
            for cpu in every_level(1, activations) {
                let case = format!("{name}, {activations:?}, {}", cpu.level);
                let all: Vec<f32> = x
                    .chunks(columns)
                    .flat_map(|x| product(&cpu, &w, x))
                    .collect();
                for batch in [2, 31, 32, 33, 64, 70] {
                    let y = product(&cpu, &w, &x[..batch * columns]);
                    assert_same(&all[..batch * rows], &y, &format!("{case}, batch {batch}"));
                }
                let mut input = Input::with_capacity(tokens, columns);
                cpu.prepare(&x, columns, &mut input).unwrap();
                for count in [0, 1, 2, 33, 68] {
                    // Out of order, some twice.
                    let some: Vec<u32> = (0..count).map(|i| i * 29 % 61).collect();
                    let mut y = vec![f32::NAN; some.len() * rows];
                    cpu.linear_some(&w, &input, &some, &mut y).unwrap();
                    let expected: Vec<f32> = some
                        .iter()
                        .flat_map(|t| &all[*t as usize * rows..][..rows])
                        .copied()
                        .collect();
                    assert_same(&expected, &y, &format!("{case}, {count} chosen"));
                }
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let mut random = Random::new(4);
    let (rows, columns, tokens) = (777, 512, 35);
    for name in ["bf16", "q8_0", "q4_k"] {
        let encoding = encoding::by_name(name).unwrap();
        let bytes = weights(&mut random, encoding, rows, columns);
        let w = Matrix {
            encoding,
            rows,
            columns,
            bytes: &bytes,
        };
        let x = random.numbers(tokens * columns);
        for cpu in every_level(1, Activations::Encoded) {
            let expected = product(&cpu, &w, &x);
            for threads in [2, 3, 8] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let cpu = Cpu { threads, ..cpu };
                let y = pool.install(|| product(&cpu, &w, &x));
                assert_same(
                    &expected,
                    &y,
                    &format!("{name}, {}, {threads} threads", cpu.level),
                );
            }
        }
    }
}

#[test]
fn an_input_serves_again_with_another_width() {
    let mut random = Random::new(5);
    let encoding = encoding::by_name("q8_0").unwrap();
    for cpu in every_level(1, Activations::Encoded) {
        let mut input = Input::with_capacity(4, 512);
        for columns in [512, 3, 300, 256] {
            let bytes = weights(&mut random, encoding, 7, columns);
            let w = Matrix {
                encoding,
                rows: 7,
                columns,
                bytes: &bytes,
            };
            let x = random.numbers(2 * columns);
            cpu.prepare(&x, columns, &mut input).unwrap();
            let mut y = vec![f32::NAN; 2 * 7];
            cpu.linear(&w, &input, &mut y).unwrap();
            assert_same(&product(&cpu, &w, &x), &y, &format!("{columns} columns"));
        }
    }
}

#[test]
fn rows_of_a_table_are_decoded() {
    let mut random = Random::new(6);
    for name in PLAIN.into_iter().chain(QUANTISED) {
        let encoding = encoding::by_name(name).unwrap();
        for columns in LENGTHS {
            let bytes = weights(&mut random, encoding, 4, columns);
            let w = Matrix {
                encoding,
                rows: 4,
                columns,
                bytes: &bytes,
            };
            let ids = [3, 0, 3];
            let mut expected = vec![0.0; 3 * columns];
            reference::embed(&w, &ids, &mut expected);
            for cpu in every_level(1, Activations::Encoded) {
                let mut y = vec![f32::NAN; 3 * columns];
                cpu.embed(&w, &ids, &mut y).unwrap();
                assert_same(&expected, &y, &format!("{name} {columns} {}", cpu.level));
            }
        }
    }
}

#[test]
fn wrong_shapes_are_errors() {
    let encoding = encoding::by_name("q8_0").unwrap();
    let bytes = vec![0; 3 * 34];
    let w = |rows, columns| Matrix {
        encoding,
        rows,
        columns,
        bytes: &bytes,
    };
    let cpu = every_level(1, Activations::Encoded)[0];
    let mut input = Input::with_capacity(2, 32);
    let mut y = vec![0.0; 6];
    let error = cpu.prepare(&[0.0; 33], 32, &mut input).unwrap_err();
    assert_eq!(error.to_string(), "prepare: x has 33 elements, not 32");
    assert!(cpu.prepare(&[0.0; 96], 32, &mut input).is_err());
    cpu.prepare(&[0.0; 64], 32, &mut input).unwrap();
    assert!(cpu.linear(&w(3, 32), &input, &mut y).is_ok());
    assert!(cpu.linear(&w(4, 32), &input, &mut y).is_err());
    assert!(cpu.linear(&w(3, 31), &input, &mut y).is_err());
    assert!(cpu.linear(&w(3, 32), &input, &mut y[..5]).is_err());
    assert!(
        cpu.linear_some(&w(3, 32), &input, &[2], &mut y[..3])
            .is_err()
    );
    assert!(cpu.embed(&w(3, 32), &[3], &mut [0.0; 32]).is_err());
    let integers = Matrix {
        encoding: encoding::by_name("i32").unwrap(),
        rows: 1,
        columns: 1,
        bytes: &[0; 4],
    };
    let error = cpu.embed(&integers, &[0], &mut [0.0]).unwrap_err();
    assert_eq!(error.argument, "a matrix of integers");
}
