//! Each primitive of each level against the portable one, on lanes that differ: a swap shows.

use super::scalar::Scalar;
use super::{Kernel, Simd};
use crate::Level;

/// Seeded bits.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 24) as u8)
    }
    /// Any bits but NaN: its payload is nobody's promise.
    fn floats(&mut self) -> [f32; 16] {
        std::array::from_fn(|i| {
            let x = f32::from_bits(self.next() as u32);
            if x.is_nan() { i as f32 } else { x }
        })
    }
    fn codes(&mut self) -> [i8; 64] {
        self.bytes().map(|b| b.cast_signed().max(-127))
    }
}

/// All results of one round, as bits.
struct Everything(u64);

impl Kernel for Everything {
    type Output = Vec<(&'static str, Vec<u32>)>;

    fn run<S: Simd>(self, s: S) -> Self::Output {
        let mut bits = Bits(self.0);
        let mut all = Vec::new();
        let mut say = |name, v: S::F| {
            let mut out = [0.0; 16];
            s.store(v, &mut out);
            let bits = |x: f32| {
                if x.is_nan() {
                    f32::NAN.to_bits()
                } else {
                    x.to_bits()
                }
            };
            all.push((name, out.map(bits).to_vec()));
        };
        let (a, b, c) = (bits.floats(), bits.floats(), bits.floats());
        let (x, y, z) = (s.load(&a), s.load(&b), s.load(&c));
        say("splat", s.splat(a[0]));
        say("halves", s.halves(a[0], a[1]));
        say("quarters", s.quarters(&[a[0], a[1], a[2], a[3]]));
        say("load", x);
        say("load_some", s.load_some(&a[..11]));
        say("load_f32_bytes", s.load_f32_bytes(&bits.bytes()));
        say("load_bf16", s.load_bf16(&bits.bytes()));
        say("load_f16", s.load_f16(&bits.bytes()));
        say("load_i8", s.load_i8(&bits.bytes().map(u8::cast_signed)));
        say(
            "load_i8_twice",
            s.load_i8_twice(&bits.bytes().map(u8::cast_signed)),
        );
        say("add", s.add(x, y));
        say("sub", s.sub(x, y));
        say("mul", s.mul(x, y));
        say("div", s.div(x, y));
        say("mul_add", s.mul_add(x, y, z));
        say("larger", s.larger(x, y));
        say("smaller", s.smaller(x, y));
        // The second operand where they can't be compared.
        say("larger of NaN", s.larger(s.splat(f32::NAN), y));
        say("smaller than NaN", s.smaller(x, s.splat(f32::NAN)));
        let powers: [f32; 16] = std::array::from_fn(|i| 12_582_912.0 + (i as f32 * 16.0 - 126.0));
        say("power_of_two", s.power_of_two(s.load(&powers)));
        let small = a.map(|x| x.clamp(-1e30, 1e30));
        say("sum", s.splat(s.sum(s.load(&small))));
        let codes = bits.codes();
        let one: [u8; 32] = bits.bytes();
        let other: [u8; 32] = bits.bytes();
        let shift = (bits.next() % 5) as u8;
        let signed = s.fields(&one, 0, &other, 0, 0xff);
        say("quads_signed", s.quads_signed(signed, &codes));
        let fields = s.fields(&one, shift, &other, 4 - shift, 0x0f);
        say("fields", s.quads(fields, &codes));
        let (low, _) = one.split_at(16);
        let halves = [low.try_into().unwrap_or([0; 16]), bits.bytes()];
        let nibbles = s.nibbles(&halves[0], &halves[1]);
        say("nibbles", s.quads(nibbles, &codes));
        let set = s.where_set(bits.next(), 16);
        say("where_set", s.quads(set, &codes));
        say("join", s.quads(s.join(nibbles, set, 1), &codes));
        // Each column alone, so that no two can be exchanged.
        for column in 0..64 {
            let mut only = [0; 64];
            only[column] = 1;
            say("a column of nibbles", s.quads(nibbles, &only));
            say("a column of bits", s.quads(set, &only));
            say("a column of signs", s.quads_signed(signed, &only));
        }
        all
    }
}

fn check(name: &str, run: impl Fn(Everything) -> <Everything as Kernel>::Output) {
    for seed in 1..200 {
        let expected = Scalar.run(Everything(seed * 0x9e37_79b9));
        let found = run(Everything(seed * 0x9e37_79b9));
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found, "{name}, seed {seed}");
        }
    }
}

#[test]
fn every_level_is_the_portable_one() {
    for level in Level::available() {
        check(level.name(), |everything| level.run(everything));
    }
}

#[test]
#[cfg(not(target_arch = "aarch64"))]
fn neon_is_the_portable_one_in_an_emulation() {
    let neon = super::neon::Neon::new().expect("the emulation is everywhere");
    check("emulated neon", |everything| neon.run(everything));
}
