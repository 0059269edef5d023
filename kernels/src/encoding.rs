//! The list of encodings. One file each: bit layout, decode formula, encoder.

/// An encoding of rows of weights.
///
/// A row of `n` values is stored as `ceil(n / block)` blocks of `bytes` bytes; the values that fill up the last block carry
/// no weight when it is fitted, and decode to something that meets zero activations.
#[derive(Debug)]
pub struct Encoding {
    /// Published name (`q4_k`, `bf16`).
    pub name: &'static str,
    /// Values in a block.
    pub block: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// Decodes whole blocks: `out.len()` is a multiple of `block`. `None` for encodings that hold no real numbers (integers, bool, c64, f64).
    pub decode: Option<fn(&[u8], &mut [f32])>,
    /// Encodes one row; `None` for plain encodings other than f32, bf16, f16. `out.len()` = `row_bytes(row.len())`.
    pub encode: Option<fn(crate::Level, &[f32], &mut [u8])>,
}

impl Encoding {
    /// Stored bytes of a row of `columns` values.
    pub fn row_bytes(&self, columns: usize) -> usize {
        columns.div_ceil(self.block) * self.bytes
    }
}

/// Every encoding.
pub static ENCODINGS: &[&Encoding] = &[];

/// The encoding called `name`.
pub fn by_name(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().copied().find(|e| e.name == name)
}
