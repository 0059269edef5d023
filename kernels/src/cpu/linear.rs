//! y = x Wᵀ: how rows and tokens are shared out, and which loop an encoding takes.

mod decoded;
mod plain;
mod quantised;
mod unpack;

use super::simd::{Kernel, Simd};
use super::{Cpu, Input, split};
use crate::ops::{self, Activations, Matrix, ShapeError};

/// Tokens that share one decoding of the weights.
pub(crate) const TOGETHER: usize = 32;

/// Which rows of the input a call multiplies.
#[derive(Clone, Copy)]
enum Which<'a> {
    From(usize),
    These(&'a [u32]),
}

impl Which<'_> {
    #[inline(always)]
    fn token(&self, i: usize) -> usize {
        match self {
            Self::From(first) => first + i,
            Self::These(list) => list[i] as usize,
        }
    }
}

/// Rows `first_row..` of a matrix times up to [`TOGETHER`] tokens: `y[token][row - first_row]`.
struct Rows<'a, 'y, 'z> {
    w: &'a Matrix<'a>,
    input: &'a Input,
    which: Which<'a>,
    activations: Activations,
    first_row: usize,
    y: &'y mut [&'z mut [f32]],
}

impl Cpu {
    /// y = x Wᵀ for all tokens of `input`. `y` [tokens, W.rows].
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, or the encoding holds no real numbers.
    pub fn linear(&self, w: &Matrix, input: &Input, y: &mut [f32]) -> Result<(), ShapeError> {
        check("linear", w, input)?;
        ops::check("linear", "y", input.tokens() * w.rows, y.len())?;
        self.multiply(w, input, None, y);
        Ok(())
    }

    /// The same for some tokens only: row `i` of `y` is token `tokens[i]` of `input` (an expert's batch).
    ///
    /// # Errors
    /// [`ShapeError`] when a length doesn't fit, a token is not in `input`, or the encoding holds no real numbers.
    pub fn linear_some(
        &self,
        w: &Matrix,
        input: &Input,
        tokens: &[u32],
        y: &mut [f32],
    ) -> Result<(), ShapeError> {
        check("linear_some", w, input)?;
        ops::check("linear_some", "y", tokens.len() * w.rows, y.len())?;
        for token in tokens {
            ops::check_below(
                "linear_some",
                "a token of the input",
                input.tokens(),
                *token as usize,
            )?;
        }
        self.multiply(w, input, Some(tokens), y);
        Ok(())
    }

    fn multiply(&self, w: &Matrix, input: &Input, tokens: Option<&[u32]>, y: &mut [f32]) {
        if w.rows == 0 {
            return;
        }
        let row_bytes = w.encoding.row_bytes(w.columns);
        for (i, y) in y.chunks_mut(TOGETHER * w.rows).enumerate() {
            let count = y.len() / w.rows;
            let mut columns: [&mut [f32]; TOGETHER] = std::array::from_fn(|_| Default::default());
            for (column, y) in columns.iter_mut().zip(y.chunks_exact_mut(w.rows)) {
                *column = y;
            }
            let which = match tokens {
                None => Which::From(i * TOGETHER),
                Some(tokens) => Which::These(&tokens[i * TOGETHER..]),
            };
            let piece = split::piece(self.threads, w.rows, row_bytes * count);
            self.spread(
                Rows {
                    w,
                    input,
                    which,
                    activations: self.activations,
                    first_row: 0,
                    y: &mut columns[..count],
                },
                piece,
            );
        }
    }

    /// Halves the rows until a piece is small enough, then multiplies it.
    fn spread(&self, job: Rows, piece: usize) {
        let rows = job.y.first().map_or(0, |y| y.len());
        if rows <= piece {
            self.level.run(job);
            return;
        }
        let half = rows / 2;
        let count = job.y.len();
        let mut low: [&mut [f32]; TOGETHER] = std::array::from_fn(|_| Default::default());
        let mut high: [&mut [f32]; TOGETHER] = std::array::from_fn(|_| Default::default());
        for (i, y) in job.y.iter_mut().enumerate() {
            (low[i], high[i]) = y.split_at_mut(half);
        }
        let (w, input, which, activations) = (job.w, job.input, job.which, job.activations);
        let part = |first_row, y: &mut [&mut [f32]]| {
            self.spread(
                Rows {
                    w,
                    input,
                    which,
                    activations,
                    first_row,
                    y,
                },
                piece,
            );
        };
        rayon::join(
            || part(job.first_row, &mut low[..count]),
            || part(job.first_row + half, &mut high[..count]),
        );
    }
}

fn check(operation: &'static str, w: &Matrix, input: &Input) -> Result<(), ShapeError> {
    ops::check_matrix(operation, w)?;
    ops::check(operation, "a row of the input", w.columns, input.columns())
}

impl Kernel for Rows<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        use unpack::{Q2K, Q3K, Q4_1, Q4K, Q5_1, Q5K, Q6K, Q8_0};
        match (self.w.encoding.name, self.activations) {
            ("f32", _) => plain::rows::<S, plain::Float>(s, self),
            ("bf16", _) => plain::rows::<S, plain::Brain>(s, self),
            ("f16", _) => plain::rows::<S, plain::Half>(s, self),
            ("q8_0", Activations::Encoded) => quantised::rows::<S, Q8_0>(s, self),
            ("q4_1", Activations::Encoded) => quantised::rows::<S, Q4_1>(s, self),
            ("q5_1", Activations::Encoded) => quantised::rows::<S, Q5_1>(s, self),
            ("q6_k", Activations::Encoded) => quantised::rows::<S, Q6K>(s, self),
            ("q5_k", Activations::Encoded) => quantised::rows::<S, Q5K>(s, self),
            ("q4_k", Activations::Encoded) => quantised::rows::<S, Q4K>(s, self),
            ("q3_k", Activations::Encoded) => quantised::rows::<S, Q3K>(s, self),
            ("q2_k", Activations::Encoded) => quantised::rows::<S, Q2K>(s, self),
            _ => decoded::rows(s, self),
        }
    }
}
