//! Looking for NaN and infinities while weights stream by.

/// The index of the first value that is NaN or infinite.
pub fn first_nonfinite(row: &[f32]) -> Option<usize> {
    first(row, |&x| (x.to_bits() & 0x7fff_ffff) >= 0x7f80_0000)
}

/// The same on the bytes of values stored as `encoding`: `None` too for encodings without such values.
///
/// A last value that is cut short is not looked at.
pub fn first_nonfinite_bytes(encoding: &super::Encoding, bytes: &[u8]) -> Option<usize> {
    match encoding.name {
        "f32" | "c64" => first(bytes.as_chunks::<4>().0, |&b| {
            u32::from_le_bytes(b) & 0x7f80_0000 == 0x7f80_0000
        })
        .map(|i| i * 4 / encoding.bytes),
        "f64" => first(bytes.as_chunks::<8>().0, |&b| {
            u64::from_le_bytes(b) << 1 >= 0x7ff0_0000_0000_0000 << 1
        }),
        "bf16" => first(bytes.as_chunks::<2>().0, |&b| {
            u16::from_le_bytes(b) & 0x7f80 == 0x7f80
        }),
        "f16" => first(bytes.as_chunks::<2>().0, |&b| {
            u16::from_le_bytes(b) & 0x7c00 == 0x7c00
        }),
        "f8_e4m3" => first(bytes, |&b| b & 0x7f == 0x7f),
        "f8_e5m2" => first(bytes, |&b| b & 0x7c == 0x7c),
        "f8_e8m0" => first(bytes, |&b| b == 0xff),
        _ => None,
    }
}

/// Scans in pieces without a branch inside, so that the scan keeps up with memory; only a piece that holds one is searched.
#[inline(always)]
fn first<T>(values: &[T], bad: impl Fn(&T) -> bool) -> Option<usize> {
    const PIECE: usize = 256;
    for (i, piece) in values.chunks(PIECE).enumerate() {
        if piece.iter().fold(false, |any, x| any | bad(x)) {
            return piece.iter().position(&bad).map(|at| i * PIECE + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{ENCODINGS, by_name};

    #[test]
    fn the_first_of_several_is_found_anywhere() {
        for length in [1, 2, 255, 256, 257, 1000] {
            let mut row = vec![f32::MAX; length];
            assert_eq!(first_nonfinite(&row), None);
            for bad in [
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::from_bits(0x7f80_0001),
            ] {
                for at in [0, length / 2, length - 1] {
                    row[at] = bad;
                    row[length - 1] = f32::NAN;
                    assert_eq!(first_nonfinite(&row), Some(at), "{bad} in {length}");
                    row[at] = -0.0;
                    row[length - 1] = f32::MIN_POSITIVE;
                }
            }
        }
        assert_eq!(first_nonfinite(&[]), None);
    }

    /// On bytes: whatever decodes to NaN or infinity is found, and nothing else.
    #[test]
    fn bytes_are_judged_as_their_values_are() {
        for encoding in ENCODINGS
            .iter()
            .filter(|e| e.block == 1 && e.decode.is_some())
        {
            for pattern in 0..=u16::MAX {
                let mut bytes = [0; 4];
                bytes[4 - encoding.bytes..].copy_from_slice(
                    &(u32::from(pattern) << 16 | 1).to_le_bytes()[4 - encoding.bytes..],
                );
                let bytes = &bytes[4 - encoding.bytes..];
                let mut value = [0.0];
                encoding.decode.unwrap()(bytes, &mut value);
                let expected = (!value[0].is_finite()).then_some(0);
                assert_eq!(
                    first_nonfinite_bytes(encoding, bytes),
                    expected,
                    "{} {bytes:02x?}",
                    encoding.name
                );
            }
        }
        let f64s: Vec<u8> = [1.0, f64::MAX, f64::NEG_INFINITY, f64::NAN]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        assert_eq!(
            first_nonfinite_bytes(by_name("f64").unwrap(), &f64s),
            Some(2)
        );
        assert_eq!(
            first_nonfinite_bytes(by_name("f64").unwrap(), &f64s[..16]),
            None
        );
        let c64s: Vec<u8> = [1.0, 2.0, 3.0, f32::NAN]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        assert_eq!(
            first_nonfinite_bytes(by_name("c64").unwrap(), &c64s),
            Some(1)
        );
        assert_eq!(
            first_nonfinite_bytes(by_name("i32").unwrap(), &[0xff; 8]),
            None
        );
    }
}
