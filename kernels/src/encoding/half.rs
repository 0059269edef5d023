//! The short float formats and their conversions, without hardware instructions: the same bits on every machine.
//!
//! Sources: IEEE 754-2019 (binary16), bfloat16 as published by Google, OCP "8-bit Floating Point Specification" 1.0
//! (e4m3 and e5m2), OCP "Microscaling Formats" 1.0 (e8m0).

/// The value of an IEEE binary16. Exact; a NaN keeps its payload.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff);
    // Read as f32 the exponent is short of the difference of the two biases, 2^112. The product is exact for subnormals too.
    let finite = (f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23)).to_bits();
    let special = 0x7f80_0000 | (magnitude << 13);
    f32::from_bits(sign | if magnitude >= 0x7c00 { special } else { finite })
}

/// The nearest binary16, ties to even. Values from 65520 up become infinite, a NaN becomes the quiet NaN of its sign.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Below 2^-14 the last place of a binary16 is 2^-24, which is the last place of 0.5 as f32: the addition does the rounding.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    let normal = (magnitude.wrapping_sub(112 << 23) + 0x0fff + ((magnitude >> 13) & 1)) >> 13;
    let rounded = if magnitude < 0x3880_0000 {
        small
    } else if magnitude < 0x477f_f000 {
        normal
    } else if magnitude <= 0x7f80_0000 {
        0x7c00
    } else {
        0x7e00
    };
    (sign | rounded) as u16
}

/// The value of a bfloat16: the upper half of an f32.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

/// The nearest bfloat16, ties to even; a NaN is made quiet so that rounding can't turn it into an infinity.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 {
        quiet
    } else {
        rounded
    }) as u16
}

/// The value of an e4m3 (the OCP form without infinities: 0x7f and 0xff are NaN).
#[inline(always)]
pub fn f8_e4m3_to_f32(b: u8) -> f32 {
    let sign = u32::from(b & 0x80) << 24;
    let magnitude = u32::from(b & 0x7f);
    // Exponent bias 7 against 127: the difference is 2^120.
    let finite = (f32::from_bits(magnitude << 20) * f32::from_bits((120 + 127) << 23)).to_bits();
    f32::from_bits(
        sign | if magnitude == 0x7f {
            0x7fc0_0000
        } else {
            finite
        },
    )
}

/// The value of an e5m2: the upper half of a binary16.
#[inline(always)]
pub fn f8_e5m2_to_f32(b: u8) -> f32 {
    f16_to_f32(u16::from(b) << 8)
}

/// The value of an e8m0: 2^(b - 127), with no sign and no zero; 0xff is NaN.
#[inline(always)]
pub fn f8_e8m0_to_f32(b: u8) -> f32 {
    f32::from_bits(match b {
        0 => 0x0040_0000,
        0xff => 0x7fc0_0000,
        _ => u32::from(b) << 23,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minifloat's value by its definition, in f64.
    fn by_definition(code: u32, exponent_bits: u32, mantissa_bits: u32) -> f64 {
        let bias = (1i32 << (exponent_bits - 1)) - 1;
        let sign = if code >> (exponent_bits + mantissa_bits) == 1 {
            -1.0
        } else {
            1.0
        };
        let exponent = ((code >> mantissa_bits) & ((1 << exponent_bits) - 1)) as i32;
        let fraction = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
        if exponent == 0 {
            sign * fraction * 2f64.powi(1 - bias)
        } else {
            sign * (1.0 + fraction) * 2f64.powi(exponent - bias)
        }
    }

    #[test]
    fn every_f16_has_its_value_and_comes_back() {
        for h in 0..=u16::MAX {
            let value = f16_to_f32(h);
            match (h & 0x7c00 == 0x7c00, h & 0x3ff) {
                (true, 0) => assert!(value.is_infinite() && (value < 0.0) == (h >> 15 == 1)),
                (true, _) => {
                    assert!(value.is_nan());
                    assert_eq!(f32_to_f16(value), (h & 0x8000) | 0x7e00, "{h:04x}");
                    continue;
                }
                _ => assert_eq!(
                    f64::from(value).to_bits(),
                    by_definition(h.into(), 5, 10).to_bits(),
                    "{h:04x}"
                ),
            }
            assert_eq!(f32_to_f16(value), h, "{h:04x}");
        }
    }

    #[test]
    fn f16_rounds_to_nearest_even_between_all_neighbours() {
        for h in 0..0x7bffu16 {
            let (low, high) = (f64::from(f16_to_f32(h)), f64::from(f16_to_f32(h + 1)));
            let middle = ((low + high) / 2.0) as f32; // exact: one more bit
            let even = if h % 2 == 0 { h } else { h + 1 };
            for (x, expected) in [
                (middle.next_down(), h),
                (middle, even),
                (middle.next_up(), h + 1),
            ] {
                assert_eq!(f32_to_f16(x), expected, "{x:e}");
                assert_eq!(f32_to_f16(-x), expected | 0x8000, "-{x:e}");
            }
        }
        for (x, expected) in [
            (65519.996f32, 0x7bff),
            (65520.0, 0x7c00),
            (f32::MAX, 0x7c00),
            (1e-45, 0),
        ] {
            assert_eq!(f32_to_f16(x), expected, "{x:e}");
        }
    }

    #[test]
    fn bf16_rounds_to_nearest_even_and_keeps_every_value() {
        for h in 0..=u16::MAX {
            let value = bf16_to_f32(h);
            let expected = if value.is_nan() { h | 0x40 } else { h };
            assert_eq!(f32_to_bf16(value), expected, "{h:04x}");
            let bits = u32::from(h) << 16;
            if h & 0x7fff < 0x7f80 {
                assert_eq!(
                    f32_to_bf16(f32::from_bits(bits | 0x7fff)),
                    h,
                    "{h:04x}: below the middle"
                );
                assert_eq!(
                    f32_to_bf16(f32::from_bits(bits | 0x8000)),
                    h + h % 2,
                    "{h:04x}: the middle"
                );
                assert_eq!(
                    f32_to_bf16(f32::from_bits(bits | 0x8001)),
                    h + 1,
                    "{h:04x}: above the middle"
                );
            }
        }
        assert!(bf16_to_f32(f32_to_bf16(f32::from_bits(0x7f80_0001))).is_nan());
    }

    #[test]
    fn every_f8_has_its_value() {
        for b in 0..=u8::MAX {
            let (e4m3, e5m2, e8m0) = (f8_e4m3_to_f32(b), f8_e5m2_to_f32(b), f8_e8m0_to_f32(b));
            if b & 0x7f == 0x7f {
                assert!(e4m3.is_nan());
            } else {
                assert_eq!(
                    f64::from(e4m3).to_bits(),
                    by_definition(b.into(), 4, 3).to_bits(),
                    "{b:02x}"
                );
            }
            match b & 0x7f {
                0x7c => assert!(e5m2.is_infinite() && (e5m2 < 0.0) == (b > 0x7f)),
                0x7d.. => assert!(e5m2.is_nan()),
                _ => assert_eq!(
                    f64::from(e5m2).to_bits(),
                    by_definition(b.into(), 5, 2).to_bits(),
                    "{b:02x}"
                ),
            }
            if b == 0xff {
                assert!(e8m0.is_nan());
            } else {
                assert_eq!(f64::from(e8m0), 2f64.powi(i32::from(b) - 127), "{b:02x}");
            }
        }
    }
}
