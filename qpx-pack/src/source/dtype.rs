//! The dtypes of safetensors: their names, widths, and the encoding that carries each as it is.

use qpx_format::encoding::{self, Encoding};

/// A dtype that safetensors defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype {
    /// Name in a header.
    pub name: &'static str,
    /// Bits of a value.
    pub bits: u64,
}

const DTYPES: &[Dtype] = &[
    Dtype {
        name: "BOOL",
        bits: 8,
    },
    Dtype {
        name: "U8",
        bits: 8,
    },
    Dtype {
        name: "I8",
        bits: 8,
    },
    Dtype {
        name: "F8_E5M2",
        bits: 8,
    },
    Dtype {
        name: "F8_E4M3",
        bits: 8,
    },
    Dtype {
        name: "F8_E8M0",
        bits: 8,
    },
    Dtype {
        name: "F4",
        bits: 4,
    },
    Dtype {
        name: "F6_E2M3",
        bits: 6,
    },
    Dtype {
        name: "F6_E3M2",
        bits: 6,
    },
    Dtype {
        name: "U16",
        bits: 16,
    },
    Dtype {
        name: "I16",
        bits: 16,
    },
    Dtype {
        name: "F16",
        bits: 16,
    },
    Dtype {
        name: "BF16",
        bits: 16,
    },
    Dtype {
        name: "U32",
        bits: 32,
    },
    Dtype {
        name: "I32",
        bits: 32,
    },
    Dtype {
        name: "F32",
        bits: 32,
    },
    Dtype {
        name: "U64",
        bits: 64,
    },
    Dtype {
        name: "I64",
        bits: 64,
    },
    Dtype {
        name: "F64",
        bits: 64,
    },
    Dtype {
        name: "C64",
        bits: 64,
    },
];

impl Dtype {
    /// The dtype called `name` in a header.
    pub fn by_name(name: &str) -> Option<Self> {
        DTYPES.iter().copied().find(|dtype| dtype.name == name)
    }

    /// The encoding that keeps its bytes; `None` for values that share bytes, which a bundle can't hold yet.
    pub fn encoding(self) -> Option<&'static Encoding> {
        encoding::by_name(&self.name.to_ascii_lowercase())
    }

    /// Bytes of `values` values; `None` on overflow or where the last byte would be shared.
    pub fn bytes(self, values: u64) -> Option<u64> {
        let bits = values.checked_mul(self.bits)?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    /// Bytes of one value (1 where several share a byte).
    pub fn width(self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// Whether a lane can compute with its values as they are.
    pub fn is_weight(self) -> bool {
        matches!(self.name, "F32" | "F16" | "BF16")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_whole_byte_dtype_has_its_encoding() {
        for dtype in DTYPES {
            match dtype.encoding() {
                Some(encoding) => assert_eq!(
                    (encoding.block, encoding.bytes * 8),
                    (1, dtype.bits),
                    "{}",
                    dtype.name
                ),
                None => assert!(dtype.bits < 8, "{}", dtype.name),
            }
        }
    }

    #[test]
    fn sizes_are_checked() {
        let f32 = Dtype::by_name("F32").unwrap();
        assert_eq!(f32.bytes(3), Some(12));
        assert_eq!(f32.bytes(u64::MAX / 16), None);
        assert_eq!(Dtype::by_name("F4").unwrap().bytes(3), None);
        assert_eq!(Dtype::by_name("f32"), None);
    }
}
