//! Choice of experts.

use qpx_kernels::ops::Activations;
use qpx_kernels::reference;

use super::data::Random;
use super::{assert_same, every_level};

#[test]
fn as_the_plain_loops() {
    let mut random = Random::new(1);
    for experts in [1, 2, 15, 16, 17, 60, 128] {
        for k in [1, 2, 8, experts] {
            if k > experts {
                continue;
            }
            let mut logits = random.numbers(5 * experts);
            // Ties, among them a whole token of equals.
            logits[experts..2 * experts].fill(0.25);
            logits[2 * experts] = logits[3 * experts - 1];
            for normalise in [false, true] {
                let (mut ids, mut weights) = (vec![0; 5 * k], vec![0.0; 5 * k]);
                reference::route_softmax(&logits, experts, k, normalise, &mut ids, &mut weights);
                for cpu in every_level(1, Activations::Encoded) {
                    let mut scratch = vec![f32::NAN; experts];
                    let (mut i, mut w) = (vec![9999; 5 * k], vec![f32::NAN; 5 * k]);
                    cpu.route_softmax(&logits, experts, k, normalise, &mut scratch, &mut i, &mut w)
                        .unwrap();
                    let case = format!("{experts} choose {k}, {normalise}, {}", cpu.level);
                    assert_eq!(ids, i, "{case}");
                    assert_same(&weights, &w, &case);
                }
            }
        }
    }
}

#[test]
fn ties_go_to_the_lower_id_and_nan_is_not_hidden() {
    for cpu in every_level(1, Activations::Encoded) {
        let mut scratch = [0.0; 4];
        let (mut ids, mut weights) = ([9; 2], [0.0; 2]);
        let mut route = |logits: &[f32]| {
            cpu.route_softmax(logits, 4, 2, true, &mut scratch, &mut ids, &mut weights)
                .unwrap();
            (ids, weights)
        };
        assert_eq!(route(&[1.0, 2.0, 2.0, 2.0]).0, [1, 2]);
        assert_eq!(route(&[1.0; 4]), ([0, 1], [0.5; 2]));
        for bad in [f32::NAN, f32::INFINITY] {
            let (ids, weights) = route(&[1.0, bad, 2.0, 0.0]);
            assert!(ids.iter().all(|i| *i < 4));
            assert!(weights.iter().all(|w| w.is_nan()), "{bad}: {weights:?}");
        }
        assert!(
            cpu.route_softmax(
                &[0.0; 4],
                4,
                5,
                true,
                &mut [0.0; 4],
                &mut [0; 5],
                &mut [0.0; 5]
            )
            .is_err()
        );
        assert!(
            cpu.route_softmax(
                &[0.0; 4],
                4,
                2,
                true,
                &mut [0.0; 3],
                &mut [0; 2],
                &mut [0.0; 2]
            )
            .is_err()
        );
    }
}
