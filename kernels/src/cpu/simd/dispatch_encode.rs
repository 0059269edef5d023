//! Compiles an encoder for a level.
//!
//! Encoders are plain code over lanes; here the compiler is told which vectors it may use. There is no AVX-512 version: the AVX2
//! one runs on those machines. NEON is part of every aarch64 and needs no telling.
#![expect(
    unsafe_code,
    reason = "calls a function compiled for more than the build's baseline"
)]

use crate::Level;

/// Values that are fitted at once: one block of 256, or eight blocks of 32.
pub(crate) const GROUP: usize = 256;

/// An encoder's body, compiled once per level; everything it calls is `#[inline(always)]`, or it would keep the baseline's vectors.
pub(crate) trait Encoder {
    /// Bytes of a group.
    const BYTES: usize;

    /// Encodes a group; with `PADDED` there may be fewer values (and fewer bytes, always whole blocks).
    fn group<const PADDED: bool>(values: &[f32], out: &mut [u8]);
}

#[inline(always)]
fn encode_row<E: Encoder>(row: &[f32], out: &mut [u8]) {
    for (values, out) in row.chunks(GROUP).zip(out.chunks_mut(E::BYTES)) {
        if values.len() == GROUP {
            E::group::<false>(values, out);
        } else {
            E::group::<true>(values, out);
        }
    }
}

/// Runs `E` at `level`.
///
/// # Panics
/// When the machine lacks what `level` needs.
pub(crate) fn encode<E: Encoder>(level: Level, row: &[f32], out: &mut [u8]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => {
            assert!(
                is_x86_feature_detected!("avx2"),
                "this processor has no AVX2, which {level:?} needs"
            );
            // SAFETY: the function needs a processor with AVX2, and this one was just asked.
            unsafe { encode_avx2::<E>(row, out) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => panic!("this processor has no {level:?}"),
        #[cfg(not(target_arch = "aarch64"))]
        Level::Neon => panic!("this processor has no {level:?}"),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => encode_row::<E>(row, out),
        Level::Scalar => encode_row::<E>(row, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn encode_avx2<E: Encoder>(row: &[f32], out: &mut [u8]) {
    encode_row::<E>(row, out);
}
