//! Numbers and digests as people read them.

/// Bytes in the largest fitting unit, three digits: `1.20 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = float(bytes) / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"KiB");
    // What would be printed as 1024 belongs to the next unit.
    while value >= 1023.5 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", three_digits(value))
}

/// A size with the exact bytes beside: `1.20 GiB (1,288,490,189 bytes)`.
pub fn exact(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        n if n < 1024 => format!("{n} bytes"),
        n => format!("{} ({} bytes)", size(n), grouped(n)),
    }
}

/// A count in thousands, millions, billions: `30.5 B`.
pub fn count(n: u64) -> String {
    let value = float(n);
    for (limit, unit) in [
        (999.5e9, "T"),
        (999.5e6, "B"),
        (999.5e3, "M"),
        (9999.5, "K"),
    ] {
        if value >= limit {
            let step = match unit {
                "T" => 1e12,
                "B" => 1e9,
                "M" => 1e6,
                _ => 1e3,
            };
            return format!("{} {unit}", three_digits(value / step));
        }
    }
    n.to_string()
}

/// A whole number with a comma between groups of three digits.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len().saturating_sub(i)).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 tensor`, `2 tensors`.
pub fn counted(n: u64, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{} {word}s", grouped(n)),
    }
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed of it")]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_the_right_unit() {
        let cases: [(u64, &str); 9] = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10_240, "10.0 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.00 MiB"),
            (1_288_490_189, "1.20 GiB"),
            (400 << 30, "400 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        assert_eq!(exact(1_288_490_189), "1.20 GiB (1,288,490,189 bytes)");
        assert_eq!(exact(1), "1 byte");
    }

    #[test]
    fn counts_are_short() {
        let cases: [(u64, &str); 6] = [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0 K"),
            (999_600, "1.00 M"),
            (30_532_122_624, "30.5 B"),
            (1_040_000_000_000, "1.04 T"),
        ];
        for (n, text) in cases {
            assert_eq!(count(n), text, "{n}");
        }
        assert_eq!(grouped(1_234), "1,234");
        assert_eq!(grouped(123), "123");
        assert_eq!(hex(&[0, 171]), "00ab");
    }
}
