//! Every operation: shapes, formula, and the arithmetic rules that all implementations keep to the bit.

use crate::Encoding;

/// Version of the arithmetic rules below; every decode proof records it. Changed whenever any bit of any result changes.
pub const ARITHMETIC_VERSION: u32 = 1;

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
