//! The names of encodings and how many bytes they take; their values are `qpx-kernels`' business.

/// An encoding's geometry: `block` values of a row take `bytes` bytes; a row is padded to whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Name in the manifest.
    pub name: &'static str,
    /// Values in a block.
    pub block: u64,
    /// Bytes of a block.
    pub bytes: u64,
}

const fn encoding(name: &'static str, block: u64, bytes: u64) -> Encoding {
    Encoding { name, block, bytes }
}

/// Every encoding of version 1. Plain ones are named as safetensors names them, in lower case.
pub const ENCODINGS: &[Encoding] = &[
    encoding("bool", 1, 1),
    encoding("u8", 1, 1),
    encoding("i8", 1, 1),
    encoding("f8_e4m3", 1, 1),
    encoding("f8_e5m2", 1, 1),
    encoding("f8_e8m0", 1, 1),
    encoding("u16", 1, 2),
    encoding("i16", 1, 2),
    encoding("f16", 1, 2),
    encoding("bf16", 1, 2),
    encoding("u32", 1, 4),
    encoding("i32", 1, 4),
    encoding("f32", 1, 4),
    encoding("u64", 1, 8),
    encoding("i64", 1, 8),
    encoding("f64", 1, 8),
    encoding("c64", 1, 8),
    encoding("q8_0", 32, 34),
    encoding("q4_1", 32, 20),
    encoding("q5_1", 32, 24),
    encoding("q6_k", 256, 210),
    encoding("q5_k", 256, 176),
    encoding("q4_k", 256, 144),
    encoding("q3_k", 256, 110),
    encoding("q2_k", 256, 84),
];

/// The encoding called `name`.
pub fn by_name(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().find(|e| e.name == name)
}

impl Encoding {
    /// Whether several values share a block.
    pub fn is_block(&self) -> bool {
        self.block > 1
    }

    /// Bytes that a tensor of `shape` takes: every row (last dimension) is padded to whole blocks on its own; shape `[]`
    /// is one value. `None` when the number does not fit.
    pub fn stored_bytes(&self, shape: &[u64]) -> Option<u64> {
        if shape.contains(&0) {
            return Some(0);
        }
        let (last, others) = match shape.split_last() {
            Some((last, others)) => (*last, others),
            None => (1, shape),
        };
        let row = last.div_ceil(self.block).checked_mul(self.bytes)?;
        others.iter().try_fold(row, |n, d| n.checked_mul(*d))
    }
}

/// Number of values in a tensor of `shape`; `None` when it does not fit.
pub fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d))
}
