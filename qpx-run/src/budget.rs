//! What a run takes of memory, planned before anything is allocated.

use crate::Error;
use serde::Serialize;
use std::fmt;

/// Code, stacks and the allocator's own needs, as measured on small runs and rounded up.
const PROGRAM_BYTES: u64 = 16 << 20;
/// A tokenizer in memory takes about this many times its file: two hash maps over vocabulary and merges.
const TOKENIZER_FACTOR: u64 = 16;

/// What a run will take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Every kind of memory, with its bytes.
    pub parts: Vec<PlanPart>,
    /// Their sum.
    pub total: u64,
    /// Experts that fit in memory at a time.
    pub slots: usize,
    /// All experts.
    pub experts: usize,
    /// Positions that keys and values have room for.
    pub context: usize,
    /// Tokens of a prompt that go through the model together.
    pub chunk: usize,
    /// Worker threads.
    pub threads: usize,
}

/// One kind of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanPart {
    /// What it is for.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: u64,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    /// Weights that every token touches.
    pub resident: u64,
    /// One expert slot.
    pub slot: u64,
    /// All experts.
    pub experts: usize,
    /// Fewest slots that a token needs.
    pub least_slots: usize,
    /// Keys and values.
    pub keys_values: u64,
    /// Rotary tables.
    pub rotations: u64,
    /// Activations.
    pub scratch: u64,
    /// Logits and what sampling takes.
    pub logits: u64,
    /// The tokenizer's file; 0 when no text is made.
    pub tokenizer_file: u64,
    /// The manifest, the digest table, lists of experts.
    pub lists: u64,
    /// Positions.
    pub context: usize,
    /// Tokens of a chunk.
    pub chunk: usize,
    /// Worker threads.
    pub threads: usize,
}

/// Plans a run within `limit` bytes; without a limit all experts are held, and `available` bounds the whole.
///
/// # Errors
/// [`Error::Memory`] with the least that works.
pub fn plan(demand: &Demand, limit: Option<u64>, available: Option<u64>) -> Result<Plan, Error> {
    let least = with_slots(demand, demand.least_slots.min(demand.experts));
    let fixed = with_slots(demand, 0).total;
    let slots = match limit {
        None => demand.experts,
        Some(limit) => {
            let fit = limit.saturating_sub(fixed).checked_div(demand.slot);
            usize::try_from(fit.unwrap_or(0)).map_or(demand.experts, |n| n.min(demand.experts))
        }
    };
    let planned = with_slots(demand, slots);
    let refused = match (limit, available) {
        (Some(limit), _) if least.total > limit => Some((limit, "and --memory allows")),
        (_, Some(free)) if planned.total > free => Some((free, "and this machine has")),
        _ => None,
    };
    match refused {
        Some((limit, what)) => Err(Error::Memory {
            limit,
            what,
            least: least.total,
            plan: Box::new(if planned.total > limit {
                planned
            } else {
                least
            }),
        }),
        None => Ok(planned),
    }
}

fn with_slots(demand: &Demand, slots: usize) -> Plan {
    let part = |name, bytes| PlanPart { name, bytes };
    let mut parts = vec![
        part("resident weights", demand.resident),
        part("expert slots", demand.slot.saturating_mul(slots as u64)),
        part("keys and values", demand.keys_values),
        part("rotary tables", demand.rotations),
        part("activations", demand.scratch),
        part("logits and sampling", demand.logits),
        part(
            "tokenizer",
            demand.tokenizer_file.saturating_mul(TOKENIZER_FACTOR),
        ),
        part("manifest, digests, lists", demand.lists),
        part("program", PROGRAM_BYTES),
    ];
    parts.retain(|p| p.bytes > 0);
    Plan {
        total: parts
            .iter()
            .fold(0, |sum: u64, p| sum.saturating_add(p.bytes)),
        parts,
        slots,
        experts: demand.experts,
        context: demand.context,
        chunk: demand.chunk,
        threads: demand.threads,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan of memory")?;
        for part in &self.parts {
            write!(f, "  {:<26}{:>14}", part.name, size(part.bytes))?;
            if part.name == "expert slots" {
                write!(f, "   {} of {} experts", self.slots, self.experts)?;
            }
            if part.name == "keys and values" {
                write!(f, "   {} positions", self.context)?;
            }
            if part.name == "activations" {
                write!(f, "   {} tokens together", self.chunk)?;
            }
            writeln!(f)?;
        }
        write!(f, "  {:<26}{:>14}", "total", size(self.total))
    }
}

/// Bytes for people: two decimals of the largest fitting unit.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (name, unit) in UNITS {
        if bytes >= unit {
            return format!("{:.2} {name}", bytes as f64 / unit as f64);
        }
    }
    format!("{bytes} B")
}

/// Bytes as a flag takes them, rounded up.
pub(crate) fn flag_size(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// Reads `6G`, `512M`, `1.5GiB`, `4096`: multiples of 1024.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size; write a number and K, M, G or T, as in 6G");
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * unit as f64;
    if !(bytes.is_finite() && bytes >= 1.0 && bytes < 2_f64.powi(63)) {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let cases = [
            ("6G", Some(6 << 30)),
            ("512M", Some(512 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("4096", Some(4096)),
            ("0", None),
            ("G", None),
            ("5X", None),
            ("1e9", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_limit_decides_how_many_experts_are_held() {
        let demand = Demand {
            resident: 100 << 20,
            slot: 1 << 20,
            experts: 64,
            least_slots: 4,
            ..Demand::default()
        };
        let slots = |limit| plan(&demand, limit, None).map(|p| p.slots);
        let fixed = (100 << 20) + PROGRAM_BYTES;
        assert_eq!(slots(None).ok(), Some(64));
        assert_eq!(slots(Some(fixed + (10 << 20))).ok(), Some(10));
        assert_eq!(slots(Some(fixed + (4 << 20))).ok(), Some(4));
        assert_eq!(slots(Some(1 << 40)).ok(), Some(64));
        match plan(&demand, Some(fixed + (4 << 20) - 1), None) {
            Err(Error::Memory { least, .. }) => assert_eq!(least, fixed + (4 << 20)),
            other => panic!("{other:?}"),
        }
        assert!(plan(&demand, None, Some(fixed + (63 << 20))).is_err());
        assert!(plan(&demand, None, Some(fixed + (64 << 20))).is_ok());
    }
}
