//! From the best line of each sub-block to what a super-block can store: whole scales and minimums times two binary16 steps.

use super::affine::{Line, Sums, fit, numbers, sums};
use super::tile::{
    Lanes, Step, Tile, clamp, inverse, lanes, largest, round, round_to_byte, select, total,
};

/// A super-block as it will be stored: value = (d · scale) · q - (dmin · minimum).
pub(super) struct Stored<const L: usize> {
    pub d: Step,
    pub dmin: Step,
    pub scales: Lanes<L>,
    pub minimums: Lanes<L>,
}

/// What a search may cost and what the numbers may be.
pub(super) struct Search<'a> {
    /// Largest whole number of a value.
    pub top: f32,
    /// Largest scale and minimum.
    pub top_scale: f32,
    /// See [`fit`].
    pub grids: &'a [(f32, f32)],
    /// See [`fit`].
    pub rounds: usize,
    /// Rounds of refitting after the steps are known.
    pub refits: usize,
}

impl<const L: usize> Stored<L> {
    /// `x · by + plus` is what is rounded.
    #[inline(always)]
    fn grid(&self) -> (Lanes<L>, Lanes<L>) {
        let by: Lanes<L> = lanes(|l| inverse(self.d.value * self.scales[l]));
        let plus: Lanes<L> = lanes(|l| (self.dmin.value * self.minimums[l]) * by[l]);
        (by, plus)
    }

    /// The error of each sub-block less Σx², from the sums of its whole numbers.
    #[inline(always)]
    fn loss<const W: usize>(&self, tile: &Tile<L, W>, sx: &Lanes<L>, sums: &Sums<L>) -> Lanes<L> {
        lanes(|l| {
            let (a, b) = (
                self.d.value * self.scales[l],
                -(self.dmin.value * self.minimums[l]),
            );
            a * (a * sums.qq[l] + 2.0 * (b * sums.q[l] - sums.qx[l]))
                + b * (b * tile.n[l] - 2.0 * sx[l])
        })
    }

    /// Better scales and minimums for these steps: tries the neighbours of each minimum with the scale that then fits best.
    #[inline(always)]
    fn refit<const W: usize, const PADDED: bool>(
        &mut self,
        tile: &Tile<L, W>,
        sx: &Lanes<L>,
        search: &Search,
    ) -> (Sums<L>, Lanes<L>) {
        let one_by_d = inverse(self.d.value);
        let smallest = self.d.smallest_scale();
        let (by, plus) = self.grid();
        let mut best_sums = sums::<L, W, PADDED>(tile, search.top, &by, &plus);
        let mut best = self.loss(tile, sx, &best_sums);
        for shift in [0.0, -1.0, 1.0] {
            let minimums: Lanes<L> =
                lanes(|l| clamp(self.minimums[l] + shift, 0.0, search.top_scale));
            // The best scale for this minimum, with the whole numbers as they are.
            let scales: Lanes<L> = lanes(|l| {
                let b = -(self.dmin.value * minimums[l]);
                let a = (best_sums.qx[l] - b * best_sums.q[l]) * inverse(best_sums.qq[l]);
                clamp(round(a * one_by_d), smallest, search.top_scale)
            });
            let other = Self {
                scales,
                minimums,
                ..*self
            };
            let (by, plus) = other.grid();
            let found_sums = sums::<L, W, PADDED>(tile, search.top, &by, &plus);
            let found = other.loss(tile, sx, &found_sums);
            for l in 0..L {
                let better = found[l] < best[l];
                best[l] = select(better, found[l], best[l]);
                self.scales[l] = select(better, other.scales[l], self.scales[l]);
                self.minimums[l] = select(better, other.minimums[l], self.minimums[l]);
                best_sums.q[l] = select(better, found_sums.q[l], best_sums.q[l]);
                best_sums.qq[l] = select(better, found_sums.qq[l], best_sums.qq[l]);
                best_sums.qx[l] = select(better, found_sums.qx[l], best_sums.qx[l]);
            }
        }
        (best_sums, best)
    }

    /// The best two steps for whole numbers, scales and minimums as they are.
    #[inline(always)]
    fn better_steps<const W: usize>(
        &self,
        tile: &Tile<L, W>,
        sx: &Lanes<L>,
        sums: &Sums<L>,
    ) -> Option<(Step, Step)> {
        let (s, m) = (&self.scales, &self.minimums);
        let uu = total::<L>(&lanes(|l| s[l] * s[l] * sums.qq[l]));
        let uv = total::<L>(&lanes(|l| s[l] * m[l] * sums.q[l]));
        let vv = total::<L>(&lanes(|l| m[l] * m[l] * tile.n[l]));
        let ux = total::<L>(&lanes(|l| s[l] * sums.qx[l]));
        let vx = total::<L>(&lanes(|l| m[l] * sx[l]));
        let determinant = uu * vv - uv * uv;
        if determinant > 1e-3 * uu * vv {
            let d = (ux * vv - uv * vx) / determinant;
            let dmin = (uv * ux - uu * vx) / determinant;
            (d > 0.0 && dmin > 0.0).then(|| (tile.step(d), tile.step(dmin)))
        } else {
            None
        }
    }
}

/// Fits a super-block.
#[inline(always)]
pub(super) fn store<const L: usize, const W: usize, const PADDED: bool>(
    tile: &Tile<L, W>,
    search: &Search,
) -> Stored<L> {
    let line: Line<L> = fit::<L, W, PADDED, true>(tile, search.top, search.grids, search.rounds);
    let below: Lanes<L> = lanes(|l| -line.b[l]);
    let d = tile.step(largest(&line.a) / search.top_scale);
    let dmin = tile.step(largest(&below) / search.top_scale);
    let (one_by_d, one_by_dmin) = (inverse(d.value), inverse(dmin.value));
    let mut stored = Stored {
        d,
        dmin,
        scales: lanes(|l| {
            clamp(
                round(line.a[l] * one_by_d),
                d.smallest_scale(),
                search.top_scale,
            )
        }),
        minimums: lanes(|l| clamp(round(below[l] * one_by_dmin), 0.0, search.top_scale)),
    };
    let (sx, _) = tile.sums();
    let (mut best_sums, mut loss) = stored.refit::<W, PADDED>(tile, &sx, search);
    for _ in 0..search.refits {
        let Some((d, dmin)) = stored.better_steps(tile, &sx, &best_sums) else {
            break;
        };
        let mut other = Stored { d, dmin, ..stored };
        let (found_sums, found) = other.refit::<W, PADDED>(tile, &sx, search);
        if total(&found) >= total(&loss) {
            break;
        }
        (stored, best_sums, loss) = (other, found_sums, found);
    }
    stored
}

impl<const L: usize> Stored<L> {
    /// The whole numbers, in the order of the values.
    #[inline(always)]
    pub fn numbers<const W: usize, const PADDED: bool>(
        &self,
        tile: &Tile<L, W>,
        top: f32,
    ) -> [u8; 256] {
        let (by, plus) = self.grid();
        numbers::<L, W, PADDED>(tile, top, &by, &plus)
    }

    /// Scales and minimums as whole numbers.
    #[inline(always)]
    pub fn whole(&self) -> ([u8; L], [u8; L]) {
        (
            self.scales.map(round_to_byte),
            self.minimums.map(round_to_byte),
        )
    }
}
