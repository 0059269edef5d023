//! Fitting `x ≈ a · q` with whole q on both sides of 0: the search behind q8_0, q6_k and q3_k.
//!
//! For a fixed choice of whole numbers the best a is Σqx / Σq². The search is over choices: round with a handful of starting steps,
//! which put the value of largest magnitude near either end of the whole numbers, solve, keep the best; then round with the
//! solution and solve again, which can only lower the error.

use super::tile::{
    Lanes, Step, Tile, apart, clamp, in_order, inverse, lanes, round, round_to_byte, select, total,
};

/// What a search may cost and what the numbers may be.
pub(super) struct Search<'a> {
    /// Smallest and largest whole number.
    pub numbers: (f32, f32),
    /// Smallest and largest scale.
    pub scales: (f32, f32),
    /// Where the value of largest magnitude comes to stand on the starting grids.
    pub ends: &'a [f32],
    /// Rounds of solving again from the best start.
    pub rounds: usize,
    /// Rounds of refitting after the block's step is known.
    pub refits: usize,
}

/// A super-block as it will be stored: value = (d · scale) · q.
pub(super) struct Stored<const L: usize> {
    pub d: Step,
    pub scales: Lanes<L>,
}

struct Sums<const L: usize> {
    qq: Lanes<L>,
    qx: Lanes<L>,
}

#[inline(always)]
fn sums<const L: usize, const W: usize>(
    tile: &Tile<L, W>,
    (low, high): (f32, f32),
    by: &Lanes<L>,
) -> Sums<L> {
    let by = apart(by);
    let (mut sqq, mut sqx) = ([0.0; L], [0.0; L]);
    for x in &tile.x {
        for l in 0..L {
            // What fills up a block is 0 and so is its whole number: it adds nothing.
            let q = round(clamp(x[l] * by[l], low, high));
            sqq[l] += q * q;
            sqx[l] += q * x[l];
        }
    }
    Sums {
        qq: apart(&sqq),
        qx: apart(&sqx),
    }
}

/// The best step found for each sub-block.
#[inline(always)]
pub(super) fn fit<const L: usize, const W: usize>(tile: &Tile<L, W>, search: &Search) -> Lanes<L> {
    let mut extreme = tile.x[0];
    for x in &tile.x {
        for l in 0..L {
            extreme[l] = select(x[l].abs() > extreme[l].abs(), x[l], extreme[l]);
        }
    }
    let by_extreme: Lanes<L> = lanes(|l| inverse(extreme[l]));
    let (mut best, mut gain) = ([0.0; L], [-1.0; L]);
    for &end in search.ends {
        let by: Lanes<L> = lanes(|l| end * by_extreme[l]);
        keep_better(&mut best, &mut gain, &sums(tile, search.numbers, &by));
    }
    for _ in 0..search.rounds {
        let by: Lanes<L> = lanes(|l| inverse(best[l]));
        keep_better(&mut best, &mut gain, &sums(tile, search.numbers, &by));
    }
    best
}

#[inline(always)]
fn keep_better<const L: usize>(best: &mut Lanes<L>, gain: &mut Lanes<L>, sums: &Sums<L>) {
    for l in 0..L {
        let a = sums.qx[l] * inverse(sums.qq[l]);
        let found = a * sums.qx[l];
        let better = found > gain[l];
        best[l] = select(better, a, best[l]);
        gain[l] = select(better, found, gain[l]);
    }
}

impl<const L: usize> Stored<L> {
    #[inline(always)]
    fn grid(&self) -> Lanes<L> {
        lanes(|l| inverse(self.d.value * self.scales[l]))
    }

    /// The error of each sub-block less Σx².
    #[inline(always)]
    fn loss(&self, sums: &Sums<L>) -> Lanes<L> {
        lanes(|l| {
            let a = self.d.value * self.scales[l];
            a * (a * sums.qq[l] - 2.0 * sums.qx[l])
        })
    }

    /// Better scales for this step: tries the neighbours of each.
    #[inline(always)]
    fn refit<const W: usize>(&mut self, tile: &Tile<L, W>, search: &Search) -> (Sums<L>, Lanes<L>) {
        let mut best_sums = sums(tile, search.numbers, &self.grid());
        let mut best = self.loss(&best_sums);
        let middle = self.scales;
        for shift in [-1.0, 1.0] {
            let other = Self {
                scales: lanes(|l| clamp(middle[l] + shift, search.scales.0, search.scales.1)),
                ..*self
            };
            let found_sums = sums(tile, search.numbers, &other.grid());
            let found = other.loss(&found_sums);
            for l in 0..L {
                let better = found[l] < best[l];
                best[l] = select(better, found[l], best[l]);
                self.scales[l] = select(better, other.scales[l], self.scales[l]);
                best_sums.qq[l] = select(better, found_sums.qq[l], best_sums.qq[l]);
                best_sums.qx[l] = select(better, found_sums.qx[l], best_sums.qx[l]);
            }
        }
        (best_sums, best)
    }
}

/// Fits a super-block.
#[inline(always)]
pub(super) fn store<const L: usize, const W: usize>(
    tile: &Tile<L, W>,
    search: &Search,
) -> Stored<L> {
    let steps = fit(tile, search);
    let extreme = apart(&steps)
        .iter()
        .fold(0.0f32, |m, &x| if x.abs() > m.abs() { x } else { m });
    let d = tile.step(extreme / search.scales.0);
    let by_d = inverse(d.value);
    let (low, high) = search.scales;
    let mut stored = Stored {
        d,
        scales: lanes(|l| clamp(round(steps[l] * by_d), low, high)),
    };
    let (mut best_sums, mut loss) = stored.refit(tile, search);
    for _ in 0..search.refits {
        // The best step for whole numbers and scales as they are.
        let s = &stored.scales;
        let uu = total::<L>(&lanes(|l| s[l] * s[l] * best_sums.qq[l]));
        let ux = total::<L>(&lanes(|l| s[l] * best_sums.qx[l]));
        let d = tile.step(ux * inverse(uu));
        let by_d = inverse(d.value);
        let mut other = Stored {
            d,
            scales: lanes(|l| {
                clamp(
                    round(best_sums.qx[l] * inverse(best_sums.qq[l]) * by_d),
                    low,
                    high,
                )
            }),
        };
        let (found_sums, found) = other.refit(tile, search);
        if total(&found) >= total(&loss) {
            break;
        }
        (stored, best_sums, loss) = (other, found_sums, found);
    }
    stored
}

impl<const L: usize> Stored<L> {
    /// The whole numbers less the smallest possible one, in the order of the values.
    #[inline(always)]
    pub fn numbers<const W: usize>(&self, tile: &Tile<L, W>, range: (f32, f32)) -> [u8; 256] {
        numbers(tile, range, &self.grid())
    }

    /// The scales plus `above`, as bytes.
    #[inline(always)]
    pub fn whole(&self, above: f32) -> [u8; L] {
        self.scales.map(|s| round_to_byte(s + above))
    }
}

/// The whole numbers for `x · by` less the smallest possible one, in the order of the values.
#[inline(always)]
pub(super) fn numbers<const L: usize, const W: usize>(
    tile: &Tile<L, W>,
    (low, high): (f32, f32),
    by: &Lanes<L>,
) -> [u8; 256] {
    let mut turned = [[0u8; L]; W];
    for (turned, x) in turned.iter_mut().zip(&tile.x) {
        for l in 0..L {
            turned[l] = round_to_byte(round(clamp(x[l] * by[l], low, high)) - low);
        }
    }
    in_order(&turned)
}
