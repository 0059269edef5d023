//! Attention: head widths, groups, windows, and the same bits however a prompt is cut.

use qpx_kernels::ops::{Activations, AttentionShape};
use qpx_kernels::{Cpu, reference};

use super::data::Random;
use super::{assert_same, every_level};

/// The fast result for tokens `start..` of a cache that holds them.
fn attend(
    cpu: &Cpu,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    shape: AttentionShape,
    start: usize,
    window: Option<usize>,
) -> Vec<f32> {
    let tokens = q.len() / (shape.heads * shape.head_dim);
    let mut scratch = vec![0.0; shape.scratch(tokens, cpu.threads)];
    let mut y = vec![f32::NAN; q.len()];
    cpu.attention(q, k, v, shape, start, window, &mut scratch, &mut y)
        .expect("fitting shapes");
    y
}

fn shape(heads: usize, kv_heads: usize, head_dim: usize, capacity: usize) -> AttentionShape {
    AttentionShape {
        heads,
        kv_heads,
        head_dim,
        capacity,
        scale: 1.0 / (head_dim as f32).sqrt(),
    }
}

#[test]
fn as_the_plain_loops() {
    let mut random = Random::new(1);
    for (heads, kv_heads, head_dim) in [
        (1, 1, 1),
        (2, 1, 15),
        (4, 2, 16),
        (3, 3, 17),
        (40, 2, 24),
        (2, 2, 80),
        (4, 1, 128),
    ] {
        for (start, tokens) in [
            (0, 1),
            (0, 3),
            (62, 3),
            (63, 1),
            (64, 1),
            (126, 4),
            (190, 1),
        ] {
            let shape = shape(heads, kv_heads, head_dim, 200);
            let mut k = random.numbers(kv_heads * 200 * head_dim);
            let mut v = random.numbers(kv_heads * 200 * head_dim);
            // What stands behind the last token must not be touched.
            for head in 0..kv_heads {
                let rest = (head * 200 + start + tokens) * head_dim..(head + 1) * 200 * head_dim;
                k[rest.clone()].fill(f32::NAN);
                v[rest].fill(f32::NAN);
            }
            let q = random.numbers(tokens * heads * head_dim);
            for window in [
                None,
                Some(1),
                Some(2),
                Some(63),
                Some(64),
                Some(65),
                Some(1000),
            ] {
                let mut expected = vec![0.0; q.len()];
                reference::attention(&q, &k, &v, shape, start, window, &mut expected);
                assert!(expected.iter().all(|y| y.is_finite()));
                for cpu in every_level(1, Activations::Encoded) {
                    let y = attend(&cpu, &q, &k, &v, shape, start, window);
                    let case = format!(
                        "{heads} heads, {kv_heads}, {head_dim} wide, {tokens} from {start}, window {window:?}, {}",
                        cpu.level
                    );
                    assert_same(&expected, &y, &case);
                }
            }
        }
    }
}

#[test]
fn neither_chunks_nor_threads_change_a_bit() {
    let mut random = Random::new(2);
    let (heads, kv_heads, head_dim, tokens) = (6, 2, 32, 150);
    let shape = shape(heads, kv_heads, head_dim, tokens);
    let width = heads * head_dim;
    let k = random.numbers(kv_heads * tokens * head_dim);
    let v = random.numbers(kv_heads * tokens * head_dim);
    let q: Vec<f32> = random
        .numbers(tokens * width)
        .iter()
        .map(|q| q * 9.0)
        .collect();
    for window in [None, Some(50)] {
        for cpu in every_level(1, Activations::Encoded) {
            let expected = attend(&cpu, &q, &k, &v, shape, 0, window);
            for chunk in [1, 7, 64, 100] {
                let mut y = Vec::new();
                for (i, q) in q.chunks(chunk * width).enumerate() {
                    y.extend(attend(&cpu, q, &k, &v, shape, i * chunk, window));
                }
                assert_same(&expected, &y, &format!("{}, chunks of {chunk}", cpu.level));
            }
            for threads in [2, 5] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let cpu = Cpu { threads, ..cpu };
                let y = pool.install(|| attend(&cpu, &q, &k, &v, shape, 0, window));
                assert_same(&expected, &y, &format!("{}, {threads} threads", cpu.level));
            }
        }
    }
}

#[test]
fn a_lost_number_is_not_hidden() {
    let shape = shape(1, 1, 4, 100);
    for cpu in every_level(1, Activations::Encoded) {
        for at in [0, 70, 99] {
            let mut k = vec![0.5; 400];
            k[at * 4] = f32::NAN;
            let y = attend(&cpu, &[1.0; 4], &k, &[1.0; 400], shape, 99, None);
            assert!(y.iter().all(|y| y.is_nan()), "{at}");
        }
    }
}

#[test]
fn wrong_shapes_are_errors() {
    let cpu = every_level(1, Activations::Encoded)[0];
    let (q, k) = ([0.0; 8], [0.0; 2 * 5 * 2]);
    let call = |shape: AttentionShape, start, window| {
        cpu.attention(&q, &k, &k, shape, start, window, &mut [], &mut [0.0; 8])
    };
    assert!(call(shape(4, 2, 2, 5), 4, None).is_ok());
    let error = call(shape(4, 2, 2, 5), 5, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "attention: positions has 6 elements, not 5"
    );
    assert!(call(shape(4, 2, 2, 5), 0, Some(0)).is_err());
    assert!(call(shape(4, 2, 2, 6), 0, None).is_err());
    assert!(call(shape(4, 3, 2, 5), 0, None).is_err());
    assert!(call(shape(3, 1, 2, 10), 0, None).is_err());
    assert!(call(shape(0, 0, 2, 5), 0, None).is_err());
}
