//! Norms, additions, activations and rotations.

use qpx_kernels::ops::Activations;
use qpx_kernels::{Cpu, reference};

use super::data::Random;
use super::{assert_same, every_level};

const WIDTHS: [usize; 14] = [1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 80, 127, 128, 129];

/// Runs `f` at every level, on ordinary numbers and on nasty ones.
fn everywhere(seed: u64, f: impl Fn(&Cpu, &mut Random, &dyn Fn(&mut Random, usize) -> Vec<f32>)) {
    for cpu in every_level(1, Activations::Encoded) {
        let mut random = Random::new(seed);
        f(&cpu, &mut random, &|r, n| r.numbers(n));
        f(&cpu, &mut random, &|r, n| r.nasty(n));
    }
}

#[test]
fn rms_norm() {
    everywhere(1, |cpu, random, make| {
        for width in WIDTHS {
            let (x, weight) = (make(random, 3 * width), random.numbers(width));
            let (mut expected, mut y) = (vec![0.0; 3 * width], vec![f32::NAN; 3 * width]);
            for eps in [0.0, 1e-6] {
                reference::rms_norm(&x, &weight, eps, &mut expected);
                cpu.rms_norm(&x, &weight, eps, &mut y).unwrap();
                assert_same(&expected, &y, &format!("{} width {width}", cpu.level));
            }
        }
    });
}

#[test]
fn additions() {
    everywhere(2, |cpu, random, make| {
        for width in WIDTHS {
            let (x, y) = (make(random, 2 * width), make(random, 2 * width));
            let (mut expected, mut found) = (x.clone(), x.clone());
            reference::add(&mut expected, &y);
            cpu.add(&mut found, &y).unwrap();
            assert_same(&expected, &found, &format!("add {width}"));
            let bias = make(random, width);
            reference::add_bias(&mut expected, &bias);
            cpu.add_bias(&mut found, &bias).unwrap();
            assert_same(&expected, &found, &format!("add_bias {width}"));
        }
    });
}

#[test]
fn silu_mul() {
    everywhere(3, |cpu, random, make| {
        for n in WIDTHS {
            let (gate, up) = (make(random, n), make(random, n));
            let (mut expected, mut y) = (vec![0.0; n], vec![f32::NAN; n]);
            reference::silu_mul(&gate, &up, &mut expected);
            cpu.silu_mul(&gate, &up, &mut y).unwrap();
            assert_same(&expected, &y, &format!("{} {n}", cpu.level));
        }
    });
}

#[test]
fn the_exponential_is_the_same_everywhere_on_its_whole_range() {
    // Every 4099th float there is, NaN and infinities among them; silu holds one exponential.
    let gate: Vec<f32> = (0..u32::MAX).step_by(4099).map(f32::from_bits).collect();
    let up = vec![1.0; gate.len()];
    let mut expected = vec![0.0; gate.len()];
    reference::silu_mul(&gate, &up, &mut expected);
    for cpu in every_level(1, Activations::Encoded) {
        let mut y = vec![0.0; gate.len()];
        cpu.silu_mul(&gate, &up, &mut y).unwrap();
        assert_same(&expected, &y, cpu.level.name());
    }
}

#[test]
fn rope_half() {
    everywhere(4, |cpu, random, make| {
        for (heads, head_dim, pairs) in [
            (1, 2, 1),
            (3, 10, 5),
            (2, 33, 16),
            (2, 64, 32),
            (4, 128, 16),
            (1, 5, 0),
        ] {
            let tokens = 3;
            let x = make(random, tokens * heads * head_dim);
            let (cos, sin) = (
                random.numbers(tokens * pairs),
                random.numbers(tokens * pairs),
            );
            let (mut expected, mut found) = (x.clone(), x.clone());
            reference::rope_half(&mut expected, heads, head_dim, &cos, &sin);
            cpu.rope_half(&mut found, heads, head_dim, &cos, &sin)
                .unwrap();
            assert_same(&expected, &found, &format!("{heads} {head_dim} {pairs}"));
        }
    });
}

#[test]
fn add_scaled_rows() {
    everywhere(5, |cpu, random, make| {
        for width in WIDTHS {
            let rows = [4, 0, 4, 1];
            let (x, scale) = (make(random, 4 * width), random.numbers(4));
            let y = make(random, 5 * width);
            let (mut expected, mut found) = (y.clone(), y);
            reference::add_scaled_rows(&x, &rows, &scale, width, &mut expected);
            cpu.add_scaled_rows(&x, &rows, &scale, width, &mut found)
                .unwrap();
            assert_same(&expected, &found, &format!("{} {width}", cpu.level));
        }
    });
}

#[test]
fn threads_change_no_bit() {
    let mut random = Random::new(6);
    let n = 100 * 1000;
    let (x, z, weight) = (random.numbers(n), random.numbers(n), random.numbers(1000));
    let (cos, sin) = (random.numbers(100 * 50), random.numbers(100 * 50));
    let mut expected = [vec![0.0; n], vec![0.0; n], x.clone(), x.clone()];
    reference::rms_norm(&x, &weight, 1e-5, &mut expected[0]);
    reference::silu_mul(&x, &z, &mut expected[1]);
    reference::rope_half(&mut expected[2], 10, 100, &cos, &sin);
    reference::add(&mut expected[3], &z);
    for threads in [2, 5] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        for cpu in every_level(threads, Activations::Encoded) {
            let mut found = [vec![0.0; n], vec![0.0; n], x.clone(), x.clone()];
            pool.install(|| {
                cpu.rms_norm(&x, &weight, 1e-5, &mut found[0]).unwrap();
                cpu.silu_mul(&x, &z, &mut found[1]).unwrap();
                cpu.rope_half(&mut found[2], 10, 100, &cos, &sin).unwrap();
                cpu.add(&mut found[3], &z).unwrap();
            });
            for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
                assert_same(
                    e,
                    f,
                    &format!("operation {i}, {}, {threads} threads", cpu.level),
                );
            }
        }
    }
}

#[test]
fn argmax_takes_the_first_of_equals_and_refuses_nan() {
    let cpu = every_level(1, Activations::Encoded)[0];
    let nan = f32::NAN;
    let cases: [(&[f32], Option<usize>); 7] = [
        (&[], None),
        (&[nan], None),
        (&[1.0, 3.0, 3.0, 2.0], Some(1)),
        (&[nan, 1.0], None),
        (&[1.0, nan], None),
        (&[-5.0, -7.0], Some(0)),
        (&[f32::NEG_INFINITY, f32::NEG_INFINITY], Some(0)),
    ];
    for (logits, expected) in cases {
        assert_eq!(cpu.argmax(logits), expected, "{logits:?}");
        assert_eq!(reference::argmax(logits), expected, "reference {logits:?}");
    }
}

#[test]
fn wrong_shapes_are_errors() {
    let cpu = every_level(1, Activations::Encoded)[0];
    let mut y = [0.0; 6];
    let x = [0.0; 6];
    assert!(cpu.rms_norm(&x, &x[..4], 0.0, &mut y).is_err());
    assert!(cpu.rms_norm(&x, &[], 0.0, &mut y).is_err());
    assert!(cpu.rms_norm(&x, &x[..3], 0.0, &mut y[..3]).is_err());
    assert!(cpu.add(&mut y, &x[..5]).is_err());
    assert!(cpu.add_bias(&mut y, &x[..4]).is_err());
    assert!(cpu.silu_mul(&x, &x[..5], &mut y).is_err());
    assert!(cpu.silu_mul(&x, &x, &mut y[..5]).is_err());
    assert!(cpu.rope_half(&mut y, 1, 3, &x[..4], &x[..4]).is_err());
    assert!(cpu.rope_half(&mut y, 1, 3, &x[..2], &x[..1]).is_err());
    assert!(cpu.rope_half(&mut y, 1, 3, &x[..2], &x[..2]).is_ok());
    assert!(
        cpu.add_scaled_rows(&x[..4], &[0, 3], &x[..2], 2, &mut y)
            .is_err()
    );
    assert!(
        cpu.add_scaled_rows(&x[..4], &[0, 2], &x[..2], 2, &mut y)
            .is_ok()
    );
}
