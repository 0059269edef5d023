//! Every operation: shapes, formula, and the arithmetic rules that all implementations keep to the bit.
//!
//! # Rules (version [`ARITHMETIC_VERSION`])
//!
//! All numbers are f32, rounded to nearest even, subnormal numbers included. *Multiply-add* is `f32::mul_add`: one rounding.
//!
//! **Sums over many elements** (dot products, squares, softmax) run over sixteen partial sums that begin at zero: element i goes to
//! partial sum i mod 16, in ascending i; missing elements of the last sixteen count as zeros. Then a fixed tree:
//! `s[i] += s[i+8]` (i < 8), `s[i] += s[i+4]` (i < 4), `s[i] += s[i+2]` (i < 2), `s[0] + s[1]`. A product's sum uses multiply-add.
//!
//! **`linear`**, weights `f32`, `bf16`, `f16`: the sum of products of widened weights and activations.
//!
//! **`linear`, quantised weights** (`q8_0 q4_1 q5_1 q6_k q5_k q4_k q3_k q2_k`) with [`Activations::Encoded`]: integers.
//! - Activations: each block of 32 columns (zeros after the row's end, up to a multiple of 256 columns) gets
//!   `scale = largest / 127`, `largest` being the largest magnitude, and codes `round(x · (127 / largest))`, ties to even. A block
//!   whose largest is below [`SMALLEST_ENCODED`] is zero; one with an infinity or NaN has scale NaN. All encodings use
//!   blocks of 32: with 256 the rounding error of a block with one large value grows, for little speed. For each sixteen columns
//!   also `sum = scale · (sum of the codes)`.
//! - Weights: each value is `d · code + least` with an integer code from 0 to 63 (`q8_0`: −128 to 127, no least), d and least
//!   the same over 16 columns (`q6_k q3_k q2_k`) or 32. In the layouts' terms, each product rounded to f32: `q4_1 q5_1`: d, m;
//!   `q5_k q4_k`: `d · scale`, `−(dmin · min)`; `q2_k` the same; `q6_k`: `d · scale`, `−32 · d · scale`; `q3_k`: `d · (scale − 32)`, `−4 · d · (scale − 32)`.
//! - Columns 4c..4c+4 of a row make *quad* c: its products code · code are added exactly, as integers. Quad c is element c of a
//!   sum over sixteen partial sums p: `p = multiply_add(quad, d · scale, p)`, d and scale those of its columns (their product rounded).
//! - Each sixteen columns g are element g of another such sum r: `r = multiply_add(least, sum, r)`.
//! - Missing blocks up to a multiple of 256 columns count as zeros in both. The result is the tree over `p[i] + r[i]`.
//!
//! **`linear`, [`Activations::F32`]** and any other encoding: rows are decoded to f32 (padded up to whole blocks; activations
//! there are zero), then the sum of products.
//!
//! **`attention`**: keys in blocks of [`ATTENTION_BLOCK`] positions that begin at multiples of it. For each block with a key that is
//! seen: score = (sum of products of query and key) · scale; `now` = the largest of these and the `largest` so far; weight =
//! e^(score − now), 0 for keys not seen; `kept` = e^(largest − now) (0 at first); total = multiply_add(total, kept, sum of weights, element = position in the block);
//! y = y · kept, then y = multiply_add(weight, value, y) for seen keys in ascending order. In the end y / total.
//!
//! **`rms_norm`**: `1 / sqrt(sum of squares / width + eps)`, then `x · that · weight`. **`route_softmax`**: e^(x − largest), each
//! divided by their sum; when normalised, the chosen divided by their plain sum in order. **`add_scaled_rows`**: multiply-add.
//! `exp` and kin: [`crate::math`].

use crate::Encoding;

/// Version of the arithmetic rules; every decode proof records it. Changed whenever any bit of any result changes.
pub const ARITHMETIC_VERSION: u32 = 1;

/// Activations are zero in 8 bits when all magnitudes of their block are below 2⁻¹⁰⁰: `127 / largest` stays finite.
pub const SMALLEST_ENCODED: f32 = f32::from_bits((127 - 100) << 23);

/// Positions of a block of keys.
pub const ATTENTION_BLOCK: usize = 64;

/// Adding 1.5 · 2²³ leaves a float's integer part, rounded to nearest even, in its lowest bits.
pub(crate) const ROUNDER: f32 = 12_582_912.0;

/// A matrix of weights in memory. [rows, columns], `rows * encoding.row_bytes(columns)` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// How the rows are stored.
    pub encoding: &'static Encoding,
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub columns: usize,
    /// The rows, one after the other.
    pub bytes: &'a [u8],
}

/// How activations meet quantised weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activations {
    /// Rounded to 8 bits per block where the encoding says so, and multiplied as integers.
    #[default]
    Encoded,
    /// Kept as f32; weights are decoded to f32. The yardstick for devices.
    F32,
}

/// A slice or matrix has another length than the operation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// The operation.
    pub operation: &'static str,
    /// The argument.
    pub argument: &'static str,
    /// Elements it should have.
    pub expected: usize,
    /// Elements it has.
    pub found: usize,
}

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} has {} elements, not {}",
            self.operation, self.argument, self.found, self.expected
        )
    }
}

impl std::error::Error for ShapeError {}

/// Sizes of an attention call.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; head a uses a / (heads / kv_heads).
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Positions the caches have room for.
    pub capacity: usize,
    /// Multiplied with the scores.
    pub scale: f32,
}

impl AttentionShape {
    /// Floats of scratch for a call of `tokens` on `threads`.
    pub fn scratch(&self, tokens: usize, threads: usize) -> usize {
        // Outputs serve as running sums, and a block's weights lie on the stack.
        let _ = (tokens, threads);
        0
    }

    /// Checks an attention call; gives its number of tokens.
    pub(crate) fn check(
        &self,
        q: &[f32],
        k: &[f32],
        v: &[f32],
        start: usize,
        window: Option<usize>,
        y: &[f32],
    ) -> Result<usize, ShapeError> {
        const NAME: &str = "attention";
        let width = self.heads * self.head_dim;
        check_rows(NAME, "q", width, q.len())?;
        let tokens = q.len() / width.max(1);
        check_rows(NAME, "heads", self.kv_heads, self.heads)?;
        let cache = self.kv_heads * self.capacity * self.head_dim;
        check(NAME, "k", cache, k.len())?;
        check(NAME, "v", cache, v.len())?;
        check(NAME, "y", q.len(), y.len())?;
        check_most(NAME, "positions", self.capacity, start + tokens)?;
        if window == Some(0) {
            return Err(ShapeError {
                operation: NAME,
                argument: "window",
                expected: 1,
                found: 0,
            });
        }
        Ok(tokens)
    }
}

/// `found` is `expected`.
pub(crate) fn check(
    operation: &'static str,
    argument: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), ShapeError> {
    if expected == found {
        return Ok(());
    }
    Err(ShapeError {
        operation,
        argument,
        expected,
        found,
    })
}

/// `found` is at most `most`.
pub(crate) fn check_most(
    operation: &'static str,
    argument: &'static str,
    most: usize,
    found: usize,
) -> Result<(), ShapeError> {
    check(operation, argument, found.min(most), found)
}

/// `index` is below `count`.
pub(crate) fn check_below(
    operation: &'static str,
    argument: &'static str,
    count: usize,
    index: usize,
) -> Result<(), ShapeError> {
    if index < count {
        return Ok(());
    }
    Err(ShapeError {
        operation,
        argument,
        expected: count,
        found: index,
    })
}

/// `found` elements are whole rows of `width`.
pub(crate) fn check_rows(
    operation: &'static str,
    argument: &'static str,
    width: usize,
    found: usize,
) -> Result<(), ShapeError> {
    let rows = found.checked_div(width).unwrap_or(0);
    check(operation, argument, rows * width, found)
}

/// The bytes fit the shape, and the encoding holds real numbers.
pub(crate) fn check_matrix(operation: &'static str, w: &Matrix) -> Result<(), ShapeError> {
    let row_bytes = w.encoding.row_bytes(w.columns);
    let bytes = w.rows.saturating_mul(row_bytes);
    check(operation, "the weights' bytes", bytes, w.bytes.len())?;
    if w.encoding.decode.is_none() {
        return Err(ShapeError {
            operation,
            argument: "a matrix of integers",
            expected: 0,
            found: w.rows * w.columns,
        });
    }
    Ok(())
}

/// Checks a rope call; gives its number of pairs.
pub(crate) fn check_rope(
    x: usize,
    heads: usize,
    head_dim: usize,
    cos: usize,
    sin: usize,
) -> Result<usize, ShapeError> {
    const NAME: &str = "rope_half";
    check_rows(NAME, "x", heads * head_dim, x)?;
    let tokens = x / (heads * head_dim).max(1);
    check_rows(NAME, "cos", tokens, cos)?;
    check(NAME, "sin", cos, sin)?;
    let pairs = cos / tokens.max(1);
    check_most(NAME, "rotated dims of a head", head_dim, 2 * pairs)?;
    Ok(pairs)
}

/// Checks a routing call.
pub(crate) fn check_route(
    logits: usize,
    experts: usize,
    k: usize,
    scratch: usize,
    ids: usize,
    weights: usize,
) -> Result<(), ShapeError> {
    const NAME: &str = "route_softmax";
    check_rows(NAME, "logits", experts, logits)?;
    check_most(NAME, "experts to choose", experts, k)?;
    check_most(NAME, "experts (scratch has room for)", scratch, experts)?;
    let chosen = logits / experts.max(1) * k;
    check(NAME, "ids", chosen, ids)?;
    check(NAME, "weights", chosen, weights)
}

/// Checks an addition of scaled rows.
pub(crate) fn check_scaled_rows(
    x: usize,
    rows: &[u32],
    scale: usize,
    width: usize,
    y: usize,
) -> Result<(), ShapeError> {
    const NAME: &str = "add_scaled_rows";
    check(NAME, "x", rows.len() * width, x)?;
    check(NAME, "scale", rows.len(), scale)?;
    check_rows(NAME, "y", width, y)?;
    for row in rows {
        let row = usize::try_from(*row).unwrap_or(usize::MAX);
        check_below(NAME, "a row of y", y / width.max(1), row)?;
    }
    Ok(())
}
