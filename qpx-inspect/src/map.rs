//! `map`: where everything lies in the file, to scale, in a terminal of 80 columns and without colour.

use crate::{Error, table::Table};
use qpx_console::{Report, exact, harmless, size};
use qpx_format::{Bundle, PAGE_BYTES, manifest::SegmentKind};
use serde::Serialize;
use std::path::Path;

const COLUMNS: usize = 72;
const ROWS: usize = 8;

/// A bundle's regions, from its first byte to its last.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// The file.
    pub file: String,
    /// Its bytes, stamps included.
    pub length: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The regions, in file order, without gaps.
    pub regions: Vec<Region>,
    /// A record of the first layer that has experts.
    pub record: Option<Record>,
}

/// A range of the file.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    /// `page 0`, `manifest`, `digests`, a segment's name, `stamps`.
    pub name: &'static str,
    /// The character that stands for it.
    pub symbol: char,
    /// First byte.
    pub offset: u64,
    /// Bytes, padding to the page included.
    pub length: u64,
}

/// How one expert's record is filled.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// Its layer.
    pub layer: u64,
    /// Its bytes.
    pub length: u64,
    /// Its parts with their place in the record, in order.
    pub parts: Vec<Region>,
}

/// Draws the bundle at `path`.
///
/// # Errors
/// Whatever is wrong with what was read.
pub fn run(path: &Path) -> Result<Map, Error> {
    let bundle = Bundle::open(path)?;
    let table = bundle.table_bytes();
    let checked = &bundle.manifest().checked;
    let content = bundle.content_length();
    let stamps = bundle.stamps()?.end.saturating_sub(content);
    let data = checked.segments.first().map_or(content, |s| s.offset);
    let between = |name, symbol, from: u64, to: u64| Region {
        name,
        symbol,
        offset: from,
        length: to.saturating_sub(from),
    };
    let mut regions = vec![
        between("page 0", '0', 0, PAGE_BYTES),
        between("manifest", 'm', PAGE_BYTES, table.start),
        between("digests", 'd', table.start, data),
    ];
    for s in &checked.segments {
        let end = s.offset.saturating_add(s.length);
        regions.push(between(s.kind.as_str(), symbol(s.kind), s.offset, end));
    }
    regions.push(between(
        "stamps",
        's',
        content,
        content.saturating_add(stamps),
    ));
    regions.retain(|r| r.length > 0);
    let first = checked.experts.first();
    let record = first.map(|first| {
        let rows = checked.experts.iter();
        let same = rows.filter(|r| (r.segment, r.layer) == (first.segment, first.layer));
        Record {
            layer: first.layer,
            length: first.stride,
            parts: same
                .map(|r| Region {
                    name: r.part.as_str(),
                    symbol: r.part.as_str().chars().next().unwrap_or('?'),
                    offset: r.base.saturating_sub(first.base),
                    length: r.length,
                })
                .collect(),
        }
    });
    Ok(Map {
        file: path.display().to_string(),
        length: content.saturating_add(stamps),
        page_bytes: PAGE_BYTES,
        regions,
        record,
    })
}

fn symbol(kind: SegmentKind) -> char {
    match kind {
        SegmentKind::Attached => 'a',
        SegmentKind::Core => 'C',
        SegmentKind::Head => 'H',
        SegmentKind::Experts => 'e',
        SegmentKind::Draft => 'D',
        SegmentKind::Rows => 'r',
        SegmentKind::Kept => 'k',
    }
}

/// Shares `cells` among lengths in proportion, rounded; each gets at least one, and the largest share settles the sum.
fn shares(lengths: &[u64], cells: usize) -> Vec<usize> {
    let total: u128 = lengths.iter().copied().map(u128::from).sum();
    let of = u128::try_from(cells).unwrap_or(u128::MAX);
    let share = |length: &u64| {
        let doubled = u128::from(*length).saturating_mul(of).saturating_mul(2);
        let rounded = doubled
            .saturating_add(total)
            .checked_div(total.saturating_mul(2));
        usize::try_from(rounded.unwrap_or(0)).unwrap_or(0).max(1)
    };
    let mut shares: Vec<usize> = lengths.iter().map(share).collect();
    loop {
        let sum: usize = shares.iter().sum();
        // The first of the largest.
        let largest = shares.iter_mut().rev().max_by_key(|n| **n);
        match largest {
            Some(n) if sum < cells => *n += 1,
            Some(n) if sum > cells && *n > 1 => *n -= 1,
            _ => return shares,
        }
    }
}

fn draw(regions: &[(char, u64)], cells: usize) -> String {
    let lengths: Vec<u64> = regions.iter().map(|r| r.1).collect();
    let shares = shares(&lengths, cells).into_iter().zip(regions);
    shares
        .flat_map(|(n, (symbol, _))| std::iter::repeat_n(*symbol, n))
        .collect()
}

impl Report for Map {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n\n", self.file, exact(self.length));
        let regions: Vec<_> = self.regions.iter().map(|r| (r.symbol, r.length)).collect();
        let cells: Vec<char> = draw(&regions, COLUMNS * ROWS).chars().collect();
        for row in cells.chunks(COLUMNS) {
            text += &format!("  {}\n", row.iter().collect::<String>());
        }
        let cell = self
            .length
            .div_ceil(u64::try_from(cells.len()).unwrap_or(1).max(1));
        text += &format!(
            "\n  to scale, a character for {}; a region has at least one\n\n",
            size(cell)
        );
        let mut table = Table::new(
            &["", "region", "from byte", "to byte", "size", "share"],
            &[2, 3, 4, 5],
        );
        for r in &self.regions {
            table.row([
                r.symbol.to_string(),
                r.name.to_owned(),
                r.offset.to_string(),
                r.offset.saturating_add(r.length).to_string(),
                size(r.length),
                percent(r.length, self.length),
            ]);
        }
        text += &table.text("  ");
        if let Some(record) = &self.record {
            text += &record.text();
        }
        harmless(&text)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Record {
    fn text(&self) -> String {
        let mut pieces = Vec::new();
        let mut at = 0;
        for part in &self.parts {
            pieces.push(('.', part.offset.saturating_sub(at)));
            pieces.push((part.symbol, part.length));
            at = part.offset.saturating_add(part.length);
        }
        pieces.push(('.', self.length.saturating_sub(at)));
        pieces.retain(|p| p.1 > 0);
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|p| format!("{} {} {}", p.symbol, p.name, size(p.length)))
            .collect();
        format!(
            "\n  an expert's record (layer {}): {}, {} pages\n\n  {}\n\n  {}; . padding\n",
            self.layer,
            size(self.length),
            self.length / PAGE_BYTES,
            draw(&pieces, COLUMNS),
            parts.join(", ")
        )
    }
}

fn percent(part: u64, whole: u64) -> String {
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "for people"
    )]
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    format!("{share:.1}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_has_a_cell_and_all_cells_are_given() {
        assert_eq!(shares(&[1, 1_000_000], 10), [1, 9]);
        assert_eq!(shares(&[50, 50], 10), [5, 5]);
        assert_eq!(shares(&[1, 1, 1], 10), [4, 3, 3]);
        assert_eq!(shares(&[u64::MAX, u64::MAX, 0], 9), [4, 4, 1]);
        assert_eq!(draw(&[('a', 1), ('b', 3)], 8), "aabbbbbb");
    }
}
