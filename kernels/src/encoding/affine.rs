//! Fitting `x ≈ a · q + b` with whole q from 0 to a top: the search behind q4_1, q5_1, q4_k, q5_k and q2_k.
//!
//! For a fixed choice of whole numbers the best a and b are a linear least-squares problem, solved exactly from four sums. So the
//! search is over choices only: round with a handful of starting steps (the range of the values, stretched and shrunk), solve, keep
//! the best; then round with the solution and solve again, which can only lower the error.

use super::tile::{
    Lanes, Step, Tile, apart, clamp, in_order, inverse, lanes, round, round_to_byte, select,
};

/// A line per sub-block, and by how much it lowers the sum of squared errors below Σx².
pub(super) struct Line<const L: usize> {
    pub a: Lanes<L>,
    pub b: Lanes<L>,
    pub gain: Lanes<L>,
}

/// Sums over a sub-block, for one choice of whole numbers q.
pub(super) struct Sums<const L: usize> {
    pub q: Lanes<L>,
    pub qq: Lanes<L>,
    pub qx: Lanes<L>,
}

/// The whole numbers for `(x - b) / a` are those nearest to `x · by + plus`.
#[inline(always)]
pub(super) fn sums<const L: usize, const W: usize, const PADDED: bool>(
    tile: &Tile<L, W>,
    top: f32,
    by: &Lanes<L>,
    plus: &Lanes<L>,
) -> Sums<L> {
    let (by, plus) = (apart(by), apart(plus));
    let (mut sq, mut sqq, mut sqx) = ([0.0; L], [0.0; L], [0.0; L]);
    for i in 0..W {
        let x = &tile.x[i];
        for l in 0..L {
            let q = round(clamp(x[l] * by[l] + plus[l], 0.0, top));
            let q = if PADDED { q * tile.real[i][l] } else { q };
            sq[l] += q;
            sqq[l] += q * q;
            sqx[l] += q * x[l];
        }
    }
    Sums {
        q: apart(&sq),
        qq: apart(&sqq),
        qx: apart(&sqx),
    }
}

/// The best line for the choice behind `sums`; with `BELOW` only lines with b ≤ 0.
#[inline(always)]
fn solve<const L: usize, const BELOW: bool>(
    n: &Lanes<L>,
    sx: &Lanes<L>,
    sums: &Sums<L>,
) -> Line<L> {
    let (mut a, mut b, mut gain) = ([0.0; L], [0.0; L], [0.0; L]);
    for l in 0..L {
        let (q, qq, qx) = (sums.q[l], sums.qq[l], sums.qx[l]);
        // Whole numbers, so that "all q are equal" is exactly 0.
        let determinant = n[l] * qq - q * q;
        let slope = (n[l] * qx - q * sx[l]) * inverse(determinant);
        let origin = qx * inverse(qq);
        // All q equal: a constant. No b above 0 where none can be stored: a line through the origin.
        let slope = select(determinant > 0.0, slope, 0.0);
        let level = (sx[l] - slope * q) * inverse(n[l]);
        let above = BELOW && level > 0.0;
        let (al, bl) = (select(above, origin, slope), select(above, 0.0, level));
        a[l] = al;
        b[l] = bl;
        gain[l] = al * qx + bl * sx[l];
    }
    Line { a, b, gain }
}

impl<const L: usize> Line<L> {
    #[inline(always)]
    fn keep_better(&mut self, other: &Self) {
        for l in 0..L {
            let better = other.gain[l] > self.gain[l];
            self.a[l] = select(better, other.a[l], self.a[l]);
            self.b[l] = select(better, other.b[l], self.b[l]);
            self.gain[l] = select(better, other.gain[l], self.gain[l]);
        }
    }
}

/// The best line found for each sub-block. A starting grid `(stretch, start)` has `top + stretch` steps over the range
/// of the values, and its 0 stands `start` steps above the smallest.
#[inline(always)]
pub(super) fn fit<const L: usize, const W: usize, const PADDED: bool, const BELOW: bool>(
    tile: &Tile<L, W>,
    top: f32,
    grids: &[(f32, f32)],
    rounds: usize,
) -> Line<L> {
    let (mut low, mut high) = tile.range::<PADDED>();
    if BELOW {
        for l in 0..L {
            low[l] = select(low[l] < 0.0, low[l], 0.0);
            high[l] = select(high[l] > low[l], high[l], low[l]);
        }
    }
    let (sx, _) = tile.sums();
    let one_by_range: Lanes<L> = lanes(|l| inverse(high[l] - low[l]));
    let mut best = Line {
        a: [0.0; L],
        b: [0.0; L],
        gain: [-1.0; L],
    };
    for &(stretch, start) in grids {
        let by: Lanes<L> = lanes(|l| (top + stretch) * one_by_range[l]);
        let plus: Lanes<L> = lanes(|l| -low[l] * by[l] - start);
        let found = solve::<L, BELOW>(&tile.n, &sx, &sums::<L, W, PADDED>(tile, top, &by, &plus));
        best.keep_better(&found);
    }
    for _ in 0..rounds {
        let by: Lanes<L> = lanes(|l| inverse(best.a[l]));
        let plus: Lanes<L> = lanes(|l| -best.b[l] * by[l]);
        let found = solve::<L, BELOW>(&tile.n, &sx, &sums::<L, W, PADDED>(tile, top, &by, &plus));
        best.keep_better(&found);
    }
    best
}

/// The whole numbers for `x · by + plus`, in the order of the values; 0 for what fills up.
#[inline(always)]
pub(super) fn numbers<const L: usize, const W: usize, const PADDED: bool>(
    tile: &Tile<L, W>,
    top: f32,
    by: &Lanes<L>,
    plus: &Lanes<L>,
) -> [u8; 256] {
    let mut turned = [[0u8; L]; W];
    for (i, turned) in turned.iter_mut().enumerate() {
        for l in 0..L {
            let q = round(clamp(tile.x[i][l] * by[l] + plus[l], 0.0, top));
            let q = if PADDED { q * tile.real[i][l] } else { q };
            turned[l] = round_to_byte(q);
        }
    }
    in_order(&turned)
}

/// Fits up to eight blocks of 32, each with a step and an offset of its own; gives those as binary16, and the whole numbers.
#[inline(always)]
pub(super) fn fit_plain<const PADDED: bool>(
    values: &[f32],
    top: f32,
    grids: &[(f32, f32)],
) -> ([u16; 8], [u16; 8], [u8; 256]) {
    let tile = Tile::<8, 32>::load::<PADDED>(values);
    let line = fit::<8, 32, PADDED, false>(&tile, top, grids, 2);
    let (a, b) = (apart(&line.a), apart(&line.b));
    let steps: [Step; 8] = std::array::from_fn(|l| tile.step(a[l]));
    let offsets: [Step; 8] = std::array::from_fn(|l| tile.offset(b[l]));
    let by: Lanes<8> = lanes(|l| inverse(steps[l].value));
    let plus: Lanes<8> = lanes(|l| -offsets[l].value * by[l]);
    let numbers = numbers::<8, 32, PADDED>(&tile, top, &by, &plus);
    (steps.map(|s| s.half), offsets.map(|o| o.half), numbers)
}

/// Starting grids for numbers of 4 bits and sub-blocks of 32 (`tools/choose_grids.py 15 32 12`).
pub(super) const GRIDS_15: &[(f32, f32)] = &[
    (0.5, 0.25),
    (0.5, 0.5),
    (1.0, 0.25),
    (0.25, 0.5),
    (0.0, 0.0),
    (-2.0, -1.0),
    (0.0, -0.25),
    (-0.75, -0.75),
    (-0.75, -1.0),
    (0.25, 0.0),
    (0.25, 0.25),
    (0.25, -0.25),
];

/// The same for 5 bits (`31 32 9`).
pub(super) const GRIDS_31: &[(f32, f32)] = &[
    (0.15, 0.0),
    (0.4, 0.5),
    (0.4, 0.0),
    (0.15, -0.25),
    (0.15, 0.25),
    (-1.6, -0.75),
    (-0.85, -1.0),
    (-0.1, 0.0),
    (-0.85, -0.75),
];

/// The same for 2 bits and sub-blocks of 16 (`3 16 9`).
pub(super) const GRIDS_3: &[(f32, f32)] = &[
    (0.95, 0.5),
    (-0.55, -0.75),
    (0.45, 0.5),
    (0.45, 0.25),
    (0.95, 0.25),
    (0.7, 0.5),
    (0.2, 0.0),
    (0.7, 0.0),
    (0.7, 0.75),
];
