//! The plain encodings: every dtype of safetensors, one value after the other, little-endian, the bytes as the source has them.

use super::Encoding;
use super::half::{
    bf16_to_f32, f8_e4m3_to_f32, f8_e5m2_to_f32, f8_e8m0_to_f32, f16_to_f32, f32_to_bf16,
    f32_to_f16,
};
use crate::Level;

const fn carried(name: &'static str, bytes: usize) -> Encoding {
    Encoding {
        name,
        block: 1,
        bytes,
        decode: None,
        encode: None,
    }
}

const fn float(name: &'static str, bytes: usize, decode: fn(&[u8], &mut [f32])) -> Encoding {
    Encoding {
        name,
        block: 1,
        bytes,
        decode: Some(decode),
        encode: None,
    }
}

/// One byte, 0 or 1.
pub static BOOL: Encoding = carried("bool", 1);
/// Unsigned, 8 bits.
pub static U8: Encoding = carried("u8", 1);
/// Two's complement, 8 bits.
pub static I8: Encoding = carried("i8", 1);
/// Unsigned, 16 bits.
pub static U16: Encoding = carried("u16", 2);
/// Two's complement, 16 bits.
pub static I16: Encoding = carried("i16", 2);
/// Unsigned, 32 bits.
pub static U32: Encoding = carried("u32", 4);
/// Two's complement, 32 bits.
pub static I32: Encoding = carried("i32", 4);
/// Unsigned, 64 bits.
pub static U64: Encoding = carried("u64", 8);
/// Two's complement, 64 bits.
pub static I64: Encoding = carried("i64", 8);
/// IEEE binary64.
pub static F64: Encoding = carried("f64", 8);
/// Two IEEE binary32: real part, imaginary part.
pub static C64: Encoding = carried("c64", 8);

/// OCP e4m3.
pub static F8_E4M3: Encoding = float("f8_e4m3", 1, |bytes, out| {
    each(bytes, out, |[b]| f8_e4m3_to_f32(b))
});
/// OCP e5m2.
pub static F8_E5M2: Encoding = float("f8_e5m2", 1, |bytes, out| {
    each(bytes, out, |[b]| f8_e5m2_to_f32(b))
});
/// OCP e8m0, a power of two.
pub static F8_E8M0: Encoding = float("f8_e8m0", 1, |bytes, out| {
    each(bytes, out, |[b]| f8_e8m0_to_f32(b))
});

/// IEEE binary16.
pub static F16: Encoding = Encoding {
    encode: Some(|_: Level, row, out| fill(row, out, |x| f32_to_f16(x).to_le_bytes())),
    ..float("f16", 2, |bytes, out| {
        each(bytes, out, |b| f16_to_f32(u16::from_le_bytes(b)))
    })
};
/// The upper half of a binary32.
pub static BF16: Encoding = Encoding {
    encode: Some(|_: Level, row, out| fill(row, out, |x| f32_to_bf16(x).to_le_bytes())),
    ..float("bf16", 2, |bytes, out| {
        each(bytes, out, |b| bf16_to_f32(u16::from_le_bytes(b)))
    })
};
/// IEEE binary32.
pub static F32: Encoding = Encoding {
    encode: Some(|_: Level, row, out| fill(row, out, f32::to_le_bytes)),
    ..float("f32", 4, |bytes, out| each(bytes, out, f32::from_le_bytes))
};

#[inline(always)]
fn each<const N: usize>(bytes: &[u8], out: &mut [f32], value: impl Fn([u8; N]) -> f32) {
    let (values, rest) = bytes.as_chunks::<N>();
    assert!(
        rest.is_empty() && values.len() == out.len(),
        "{} bytes for {} values",
        bytes.len(),
        out.len()
    );
    for (x, &b) in out.iter_mut().zip(values) {
        *x = value(b);
    }
}

#[inline(always)]
fn fill<const N: usize>(row: &[f32], out: &mut [u8], bytes: impl Fn(f32) -> [u8; N]) {
    let length = out.len();
    let (values, rest) = out.as_chunks_mut::<N>();
    assert!(
        rest.is_empty() && values.len() == row.len(),
        "{length} bytes for {} values",
        row.len()
    );
    for (b, &x) in values.iter_mut().zip(row) {
        *b = bytes(x);
    }
}
