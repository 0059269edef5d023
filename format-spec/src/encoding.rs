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

/// Every encoding of version 1. Plain ones are named as safetensors names them, in lower case.
pub const ENCODINGS: &[Encoding] = &[
    Encoding {
        name: "bool",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "u8",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "i8",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "f8_e4m3",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "f8_e5m2",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "f8_e8m0",
        block: 1,
        bytes: 1,
    },
    Encoding {
        name: "u16",
        block: 1,
        bytes: 2,
    },
    Encoding {
        name: "i16",
        block: 1,
        bytes: 2,
    },
    Encoding {
        name: "f16",
        block: 1,
        bytes: 2,
    },
    Encoding {
        name: "bf16",
        block: 1,
        bytes: 2,
    },
    Encoding {
        name: "u32",
        block: 1,
        bytes: 4,
    },
    Encoding {
        name: "i32",
        block: 1,
        bytes: 4,
    },
    Encoding {
        name: "f32",
        block: 1,
        bytes: 4,
    },
    Encoding {
        name: "u64",
        block: 1,
        bytes: 8,
    },
    Encoding {
        name: "i64",
        block: 1,
        bytes: 8,
    },
    Encoding {
        name: "f64",
        block: 1,
        bytes: 8,
    },
    Encoding {
        name: "c64",
        block: 1,
        bytes: 8,
    },
    Encoding {
        name: "q8_0",
        block: 32,
        bytes: 34,
    },
    Encoding {
        name: "q4_1",
        block: 32,
        bytes: 20,
    },
    Encoding {
        name: "q5_1",
        block: 32,
        bytes: 24,
    },
    Encoding {
        name: "q6_k",
        block: 256,
        bytes: 210,
    },
    Encoding {
        name: "q5_k",
        block: 256,
        bytes: 176,
    },
    Encoding {
        name: "q4_k",
        block: 256,
        bytes: 144,
    },
    Encoding {
        name: "q3_k",
        block: 256,
        bytes: 110,
    },
    Encoding {
        name: "q2_k",
        block: 256,
        bytes: 84,
    },
];

/// The encoding called `name`.
pub fn by_name(name: &str) -> Option<&'static Encoding> {
    ENCODINGS.iter().find(|e| e.name == name)
}
