//! 256 values turned on their side for fitting: one lane per sub-block, so that all sub-blocks are fitted at once by the same steps.
//!
//! Every operation is on whole lanes and sums run along a sub-block in ascending order, so that the result does not depend on how
//! wide the machine's vectors are. Multiplications and additions are rounded one by one; there is no fused one.

use super::half::{f16_to_f32, f32_to_f16};

/// One number per sub-block.
pub(super) type Lanes<const L: usize> = [f32; L];

/// The lanes with these values.
#[inline(always)]
pub(super) fn lanes<const L: usize>(value: impl FnMut(usize) -> f32) -> Lanes<L> {
    std::array::from_fn(value)
}

/// 1.5 · 2^23: its last place is 1.
const SHIFT: f32 = 12_582_912.0;

/// The nearest whole number, ties to even; right for magnitudes below 2^22.
#[inline(always)]
pub(super) fn round(x: f32) -> f32 {
    (x + SHIFT) - SHIFT
}

/// The whole number itself, for one below 2^22: the low byte of [`round`]'s sum.
#[inline(always)]
pub(super) fn round_to_byte(x: f32) -> u8 {
    (x + SHIFT).to_bits() as u8
}

/// `yes` or `no`, without a branch.
#[inline(always)]
pub(super) fn select(condition: bool, yes: f32, no: f32) -> f32 {
    let mask = u32::from(condition).wrapping_neg();
    f32::from_bits((mask & yes.to_bits()) | (!mask & no.to_bits()))
}

/// `x` between `low` and `high`; `low` for NaN.
#[inline(always)]
pub(super) fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > low { x } else { low };
    if x < high { x } else { high }
}

/// 1 / x, and 0 for 0.
#[inline(always)]
pub(super) fn inverse(x: f32) -> f32 {
    let one = select(x == 0.0, 0.0, 1.0);
    one / select(x == 0.0, 1.0, x)
}

/// The sum of all lanes, first to last.
#[inline(always)]
pub(super) fn total<const L: usize>(x: &Lanes<L>) -> f32 {
    apart(x).iter().sum()
}

/// The largest lane, at least 0.
#[inline(always)]
pub(super) fn largest<const L: usize>(x: &Lanes<L>) -> f32 {
    apart(x).iter().fold(0.0, |m, &x| if x > m { x } else { m })
}

/// The same lanes, through memory: sums over lanes would otherwise draw the loops before them out of whole vectors.
#[inline(always)]
pub(super) fn apart<const L: usize>(x: &Lanes<L>) -> Lanes<L> {
    std::hint::black_box(*x)
}

/// Numbers in the order of the values that they stand for.
#[inline(always)]
pub(super) fn in_order<const L: usize, const W: usize>(turned: &[[u8; L]; W]) -> [u8; 256] {
    let mut numbers = [0; 256];
    for l in 0..L {
        for i in 0..W {
            numbers[l * W + i] = turned[i][l];
        }
    }
    numbers
}

/// `L` sub-blocks of `W` values (`L * W` = 256), scaled by a power of two so that the largest lies in [1, 2): squares and
/// reciprocals can neither overflow nor vanish, and no bit is lost.
pub(super) struct Tile<const L: usize, const W: usize> {
    /// `x[i][l]` is value i of sub-block l; 0 where there is no value of the row.
    pub x: [Lanes<L>; W],
    /// 1 for values of the row, 0 for those that only fill up the block. Read only where `PADDED` is set.
    pub real: [Lanes<L>; W],
    /// Values of the row in each sub-block.
    pub n: Lanes<L>,
    /// The exponent e of the power of two: stored values are `x · 2^e`.
    exponent: i32,
}

impl<const L: usize, const W: usize> Tile<L, W> {
    /// The tile of `values`: 256 of them, or fewer with `PADDED`.
    #[inline(always)]
    pub fn load<const PADDED: bool>(values: &[f32]) -> Self {
        let mut filled = [0.0; 256];
        let all: &[f32; 256] = match values.first_chunk() {
            Some(all) if !PADDED => all,
            _ => {
                filled[..values.len()].copy_from_slice(values);
                &filled
            }
        };
        let mut largest = [0u32; 16];
        for group in all.as_chunks::<16>().0 {
            for (m, x) in largest.iter_mut().zip(group) {
                *m = (*m).max(x.to_bits() & 0x7fff_ffff);
            }
        }
        let largest = largest.iter().fold(0, |a, &b| a.max(b));
        let exponent = ((largest >> 23) as i32 - 127).clamp(-100, 126);
        let down = power_of_two(-exponent);
        let mut tile = Self {
            x: [[0.0; L]; W],
            real: [[1.0; L]; W],
            n: [W as f32; L],
            exponent,
        };
        for l in 0..L {
            for i in 0..W {
                tile.x[i][l] = all[l * W + i] * down;
            }
        }
        if PADDED {
            for l in 0..L {
                for i in 0..W {
                    tile.real[i][l] = if l * W + i < values.len() { 1.0 } else { 0.0 };
                }
                tile.n[l] = values.len().saturating_sub(l * W).min(W) as f32;
            }
        }
        tile
    }

    /// Sums of x and x² of each sub-block.
    #[inline(always)]
    pub fn sums(&self) -> (Lanes<L>, Lanes<L>) {
        let (mut sx, mut sxx) = ([0.0; L], [0.0; L]);
        for x in &self.x {
            for l in 0..L {
                sx[l] += x[l];
                sxx[l] += x[l] * x[l];
            }
        }
        (sx, sxx)
    }

    /// Smallest and largest value of each sub-block; 0 and 0 where it has none.
    #[inline(always)]
    pub fn range<const PADDED: bool>(&self) -> (Lanes<L>, Lanes<L>) {
        let (mut low, mut high) = (self.x[0], self.x[0]);
        for i in 1..W {
            for l in 0..L {
                let x = self.x[i][l];
                // What fills up counts as the first value.
                let x = if PADDED {
                    select(self.real[i][l] == 0.0, self.x[0][l], x)
                } else {
                    x
                };
                low[l] = if x < low[l] { x } else { low[l] };
                high[l] = if x > high[l] { x } else { high[l] };
            }
        }
        (low, high)
    }

    /// A step as binary16 and what it then is in the tile's unit.
    ///
    /// Never infinite. Among subnormals, where the last place is coarse, the step is rounded up, so that the numbers to be
    /// multiplied with it stay in range.
    #[inline(always)]
    pub fn step(&self, step: f32) -> Step {
        let value = step * power_of_two(self.exponent);
        let magnitude = value.abs();
        let half = if magnitude < 6.103_515_6e-5 {
            (magnitude * 16_777_216.0).ceil() as u16
        } else {
            f32_to_f16(magnitude).min(0x7bff)
        };
        let half = half | if value < 0.0 { 0x8000 } else { 0 };
        Step {
            half,
            value: f16_to_f32(half) * power_of_two(-self.exponent),
        }
    }

    /// An offset as binary16, the nearest finite one, and what it then is in the tile's unit.
    #[inline(always)]
    pub fn offset(&self, offset: f32) -> Step {
        let value = offset * power_of_two(self.exponent);
        let half = f32_to_f16(clamp(value, -65504.0, 65504.0));
        Step {
            half,
            value: f16_to_f32(half) * power_of_two(-self.exponent),
        }
    }
}

/// A binary16 and its value in a tile's unit.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub half: u16,
    pub value: f32,
}

impl Step {
    /// 1 for a step that is not 0: with that scale a sub-block of small values still has a step, with 0 it has none.
    #[inline(always)]
    pub fn smallest_scale(&self) -> f32 {
        select(self.value == 0.0, 0.0, 1.0)
    }
}

#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}
