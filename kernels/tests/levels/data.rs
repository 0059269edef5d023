//! Seeded inputs: ordinary numbers, numbers that break sloppy arithmetic, and weights in every encoding.

use qpx_kernels::Encoding;
use qpx_kernels::encoding::half::f32_to_f16;

/// A small generator of uniform bits (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// From −1 to 1.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// Roughly normal, with a heavy tail here and there.
    pub fn number(&mut self) -> f32 {
        let x = self.unit() + self.unit() + self.unit();
        if self.below(50) == 0 { x * 30.0 } else { x }
    }

    pub fn numbers(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.number()).collect()
    }

    /// Large, tiny, subnormal, zero, minus zero and ordinary numbers, all finite.
    pub fn nasty(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| match self.below(8) {
                0 => 0.0,
                1 => -0.0,
                2 => self.unit() * 1e15,
                3 => self.unit() * 1e-20,
                4 => self.unit() * 1e-40,
                5 => f32::MIN_POSITIVE * self.unit(),
                _ => self.number(),
            })
            .collect()
    }
}

pub const PLAIN: [&str; 3] = ["f32", "bf16", "f16"];
pub const QUANTISED: [&str; 8] = [
    "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
];

/// Rows of random weights: every bit of a quantised block is random but its halves, which are small numbers of either sign.
pub fn weights(random: &mut Random, encoding: &Encoding, rows: usize, columns: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..rows * encoding.row_bytes(columns) / encoding.bytes {
        let at = bytes.len();
        match encoding.name {
            "f32" => bytes.extend(random.number().to_le_bytes()),
            "bf16" => bytes.extend(&random.number().to_le_bytes()[2..]),
            "f16" if random.below(9) == 0 => {
                bytes.extend(f32_to_f16(random.unit() * 1e-6).to_le_bytes());
            }
            "f16" => bytes.extend(f32_to_f16(random.number()).to_le_bytes()),
            name => {
                bytes.extend((0..encoding.bytes).map(|_| random.bits() as u8));
                let halves: &[usize] = match name {
                    "q8_0" => &[0],
                    "q4_1" | "q5_1" | "q4_k" | "q5_k" => &[0, 2],
                    "q6_k" => &[208],
                    "q3_k" => &[108],
                    "q2_k" => &[80, 82],
                    other => panic!("{other} has no known halves"),
                };
                for half in halves {
                    let d = f32_to_f16(random.unit() * 0.1).to_le_bytes();
                    bytes[at + half..at + half + 2].copy_from_slice(&d);
                }
            }
        }
    }
    bytes
}
