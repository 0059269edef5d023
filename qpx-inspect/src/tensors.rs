//! `tensors`: what lies in a bundle, one row for each tensor and for each part of a layer's experts.

use crate::{Error, table::Table};
use qpx_console::{Report, grouped, harmless};
use qpx_format::{Bundle, manifest::SegmentKind};
use serde::Serialize;
use std::path::Path;

/// The tensors of a bundle, in file order.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// The file.
    pub file: String,
    /// The bundle's id.
    pub id: String,
    /// The rows.
    pub tensors: Vec<Row>,
    /// Roles that share another one's bytes.
    pub aliases: Vec<Alias>,
}

/// A tensor, an expert's part, or a layer's part of all experts.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is; `*` stands for every expert.
    pub role: String,
    /// The segment it lies in.
    pub segment: SegmentKind,
    /// The name of its encoding.
    pub encoding: String,
    /// Its shape; of an expert's part, one expert's.
    pub shape: Vec<u64>,
    /// Stored bytes; of an expert's part, one expert's.
    pub bytes: u64,
    /// First byte in the file; of all experts, the first one's.
    pub offset: u64,
    /// Of all experts: how many, and how far apart.
    pub experts: Option<Spread>,
    /// Where its values came from.
    pub source: Source,
}

/// How the experts of a layer lie.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Bytes from one to the next.
    pub stride: u64,
}

/// Where values came from.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// The tensor in the checkpoint; `{expert}` stands for the expert's number.
    pub name: String,
    /// Its dtype there.
    pub dtype: String,
    /// First byte within it.
    pub start: u64,
}

/// A role that shares another one's bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Alias {
    /// The role.
    pub role: String,
    /// Whose bytes it has.
    pub of: String,
}

/// Lists the tensors of the bundle at `path`, with one row for each expert if `experts`.
///
/// # Errors
/// Whatever is wrong with the bundle's page 0, manifest and digest table.
pub fn run(path: &Path, experts: bool) -> Result<Listing, Error> {
    let bundle = Bundle::open(path)?;
    let checked = &bundle.manifest().checked;
    let mut rows: Vec<Row> = (checked.tensors.iter())
        .map(|t| Row {
            role: t.role.clone(),
            segment: t.segment,
            encoding: t.encoding.clone(),
            shape: t.shape.clone(),
            bytes: t.length,
            offset: t.offset,
            experts: None,
            source: Source {
                name: t.source.name.clone(),
                dtype: t.source.dtype.clone(),
                start: t.source.start,
            },
        })
        .collect();
    for r in &checked.experts {
        let word = match r.segment {
            SegmentKind::Draft => "draft",
            _ => "layer",
        };
        let row = |expert: Option<u64>| {
            let n = expert.unwrap_or(0);
            let number = expert.map_or("*".to_owned(), |e| e.to_string());
            let name = match expert {
                Some(_) => r.source.name.replace("{expert}", &number),
                None => r.source.name.clone(),
            };
            Row {
                role: format!("{word}.{}.expert.{number}.{}", r.layer, r.part),
                segment: r.segment,
                encoding: r.encoding.clone(),
                shape: r.shape.clone(),
                bytes: r.length,
                // The reader has checked that the last record's end fits.
                offset: r.base.saturating_add(n.saturating_mul(r.stride)),
                experts: expert.is_none().then_some(Spread {
                    count: r.count,
                    stride: r.stride,
                }),
                source: Source {
                    name,
                    dtype: r.source.dtype.clone(),
                    start: r
                        .source
                        .start
                        .saturating_add(n.saturating_mul(r.source.stride)),
                },
            }
        };
        match experts {
            true => rows.extend((0..r.count).map(|e| row(Some(e)))),
            false => rows.push(row(None)),
        }
    }
    rows.sort_by_key(|r| r.offset);
    let aliases = checked.aliases.iter().map(|a| Alias {
        role: a.role.clone(),
        of: a.of.clone(),
    });
    Ok(Listing {
        file: path.display().to_string(),
        id: qpx_console::hex(&bundle.id()),
        tensors: rows,
        aliases: aliases.collect(),
    })
}

impl Report for Listing {
    fn text(&self) -> String {
        let heading = ["role", "encoding", "shape", "bytes", "offset", "source"];
        let mut table = Table::new(&heading, &[3, 4]);
        for row in &self.tensors {
            let shape: Vec<String> = row.shape.iter().map(u64::to_string).collect();
            let times = row
                .experts
                .map_or(String::new(), |e| format!("{} × ", e.count));
            table.row([
                row.role.clone(),
                row.encoding.clone(),
                format!("[{}]", shape.join(", ")),
                format!("{times}{}", grouped(row.bytes)),
                row.offset.to_string(),
                format!("{} {}", row.source.dtype, row.source.name),
            ]);
        }
        for alias in &self.aliases {
            let empty = String::new;
            let of = format!("= {}", alias.of);
            table.row([alias.role.clone(), of, empty(), empty(), empty(), empty()]);
        }
        harmless(&table.text(""))
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
