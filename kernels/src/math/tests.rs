use super::*;
use crate::cpu::simd::Kernel;
use crate::{Cpu, Level};

/// Distance in units in the last place of the f32 nearest to `exact`.
fn off_by(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    let place = f64::from(nearest.next_up()) - f64::from(nearest);
    (f64::from(found) - exact).abs() / place
}

#[test]
fn exp_is_within_one_place() {
    let mut worst = 0.0f64;
    // From the smallest subnormal result to the largest finite one.
    for i in 0..2_000_000 {
        let x = -103.9 + 192.6 * (i as f32 / 2_000_000.0);
        worst = worst.max(off_by(exp(x), libm::exp(f64::from(x))));
    }
    assert!(worst < 1.0, "{worst}");
    for i in -1000..1000 {
        let x = i as f32 * 1e-8;
        assert!(off_by(exp(x), libm::exp(f64::from(x))) < 1.0, "{x}");
    }
}

#[test]
fn exp_keeps_its_edges() {
    let cases = [
        (0.0, 1.0),
        (-0.0, 1.0),
        (f32::INFINITY, f32::INFINITY),
        (f32::NEG_INFINITY, 0.0),
        (f32::MAX, f32::INFINITY),
        (f32::MIN, 0.0),
        (88.73, f32::INFINITY),
        (-104.0, 0.0),
        (f32::MIN_POSITIVE, 1.0),
    ];
    for (x, y) in cases {
        assert_eq!(exp(x).to_bits(), f32::to_bits(y), "{x}");
    }
    assert!(exp(f32::NAN).is_nan());
    assert!(exp(88.72) < f32::INFINITY);
    assert!(exp(-103.9) > 0.0);
}

struct Sixteen<'a>(&'a [f32], &'a mut Vec<f32>);

impl Kernel for Sixteen<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for x in self.0.as_chunks::<16>().0 {
            let mut y = [0.0; 16];
            s.store(exp_sixteen(s, s.load(x)), &mut y);
            self.1.extend(y);
        }
    }
}

#[test]
fn sixteen_at_a_time_are_the_same_bits() {
    // Bit patterns over the whole range, and closely about the ends of exp's.
    let mut x: Vec<f32> = (0..u32::MAX)
        .step_by(8191)
        .map(|bits| f32::from_bits(bits.wrapping_mul(2_654_435_761)))
        .collect();
    x.extend((0..10_000).map(|i| -106.0 + i as f32 * 3e-4));
    x.extend((0..10_000).map(|i| 87.0 + i as f32 * 3e-4));
    for level in Level::available() {
        let mut y = Vec::new();
        level.run(Sixteen(&x, &mut y));
        for (x, y) in x.iter().zip(y) {
            let one = exp(*x);
            assert!(
                one.to_bits() == y.to_bits() || one.is_nan() && y.is_nan(),
                "{level}: exp({x:e}) is {y:e}, alone {one:e}"
            );
        }
    }
}

#[test]
fn the_others_are_near_the_exact_values() {
    for i in 1..20_000 {
        let x = i as f32 * 0.37;
        let wide = f64::from(x);
        assert!(off_by(ln(x), libm::log(wide)) < 1.0, "ln {x}");
        assert!(
            (f64::from(sin(x)) - libm::sin(wide)).abs() < 1e-7,
            "sin {x}"
        );
        assert!(
            (f64::from(cos(x)) - libm::cos(wide)).abs() < 1e-7,
            "cos {x}"
        );
        let small = x * 1e-3 - 3.0;
        let exact = libm::tanh(f64::from(small));
        assert!(
            (f64::from(tanh(small)) - exact).abs() < 2e-7,
            "tanh {small}"
        );
        let exact = 1.0 / (1.0 + libm::exp(-f64::from(small)));
        assert!(
            (f64::from(sigmoid(small)) - exact).abs() < 2e-7,
            "sigmoid {small}"
        );
        let exact = f64::from(small) * exact;
        assert!(
            (f64::from(silu(small)) - exact).abs() < 2e-7 * exact.abs().max(1.0),
            "silu {small}"
        );
    }
    assert_eq!(pow(10_000.0, -0.5), 0.01);
    assert_eq!(pow(2.0, 10.0), 1024.0);
}

#[test]
fn silu_vanishes_below_and_passes_above() {
    let cpu = Cpu::new(Level::Scalar, 1, Default::default());
    let gate = [-200.0, -0.0, 0.0, 200.0, f32::NAN];
    let mut y = [1.0; 5];
    cpu.silu_mul(&gate, &[1.0; 5], &mut y)
        .expect("equal lengths");
    assert_eq!(y[..4], [-0.0, -0.0, 0.0, 200.0]);
    assert!(y[4].is_nan());
}
