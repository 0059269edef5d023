//! What the operating system says about memory.

use std::fs;

/// Bytes that a process may still take without driving others out: what the machine has, or what its group is limited to.
/// `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| meminfo(&text));
    let group = group_room();
    match (machine, group) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn group_room() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_available_line_is_read() {
        let text = "MemTotal:       2 kB\nMemAvailable:   123 kB\n";
        assert_eq!(super::meminfo(text), Some(123 * 1024));
        assert_eq!(super::meminfo("MemTotal: 2 kB\n"), None);
    }
}
