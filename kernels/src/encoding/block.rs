//! What the block encodings share on the decoding side: walking blocks, and the two formulas that turn whole numbers into weights.

use super::half::f16_to_f32;

/// Calls `one` for each block of `BYTES` bytes and its `VALUES` values.
///
/// # Panics
/// When `bytes` and `out` are not the same number of whole blocks.
#[inline(always)]
pub(super) fn each_block<const BYTES: usize, const VALUES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    one: impl Fn(&[u8; BYTES], &mut [f32; VALUES]),
) {
    let (blocks, bytes_left) = bytes.as_chunks::<BYTES>();
    let values = out.len();
    let (rows, values_left) = out.as_chunks_mut::<VALUES>();
    assert!(
        bytes_left.is_empty() && values_left.is_empty() && blocks.len() == rows.len(),
        "{} bytes are not {values} values in blocks of {VALUES}",
        bytes.len(),
    );
    for (block, row) in blocks.iter().zip(rows) {
        one(block, row);
    }
}

/// The binary16 at `offset` of a block.
#[inline(always)]
pub(super) fn f16_at<const BYTES: usize>(block: &[u8; BYTES], offset: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[offset], block[offset + 1]]))
}

/// `(d · scale) · q` for sub-blocks of `WIDTH` values.
#[inline(always)]
pub(super) fn scaled<const WIDTH: usize>(
    d: f32,
    scales: &[i8],
    quants: &[i8; 256],
    out: &mut [f32; 256],
) {
    let (quants, _) = quants.as_chunks::<WIDTH>();
    let (out, _) = out.as_chunks_mut::<WIDTH>();
    for ((&scale, quants), out) in scales.iter().zip(quants).zip(out) {
        let step = d * f32::from(scale);
        for (x, &q) in out.iter_mut().zip(quants) {
            *x = step * f32::from(q);
        }
    }
}

/// `(d · scale) · q - (dmin · minimum)` for sub-blocks of `WIDTH` values; each operation rounded on its own.
#[inline(always)]
pub(super) fn scaled_above<const WIDTH: usize>(
    [d, dmin]: [f32; 2],
    scales: &[u8],
    minimums: &[u8],
    quants: &[i8; 256],
    out: &mut [f32; 256],
) {
    let (quants, _) = quants.as_chunks::<WIDTH>();
    let (out, _) = out.as_chunks_mut::<WIDTH>();
    for (((&scale, &minimum), quants), out) in scales.iter().zip(minimums).zip(quants).zip(out) {
        let step = d * f32::from(scale);
        let below = dmin * f32::from(minimum);
        for (x, &q) in out.iter_mut().zip(quants) {
            *x = step * f32::from(q) - below;
        }
    }
}
