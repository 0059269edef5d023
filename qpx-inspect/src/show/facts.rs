//! What `show` tells: the numbers, counted from the manifest.

use super::names;
use qpx_format::{
    Bundle, Error, PAGE_BYTES,
    encoding::elements,
    manifest::{Became, Census, Checked, Parameters, SegmentKind, Tensor},
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A bundle in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The file, as it was called.
    pub file: String,
    /// BLAKE3 of page 0.
    pub id: String,
    /// `1.0`.
    pub format: String,
    /// The model's family.
    pub family: String,
    /// The resolved configuration.
    pub architecture: Map<String, Value>,
    /// In which way the file's name says something else than the bundle.
    pub name_disagrees: Vec<String>,
    /// Where it came from.
    pub origin: Origin,
    /// The licence, as the model card names it.
    pub licence: Option<String>,
    /// The program that wrote it, with its version.
    pub tool: String,
    /// The recipe's name.
    pub recipe: String,
    /// Bytes of the file.
    pub size: Size,
    /// How many weights there are.
    pub parameters: Parameters,
    /// By segment.
    pub segments: Vec<Segment>,
    /// By encoding.
    pub encodings: Vec<Encoding>,
    /// What one token needs.
    pub per_token: PerToken,
    /// Pages and records.
    pub layout: Layout,
    /// What was appended.
    pub stamps: Stamps,
}

/// Where a bundle came from.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// As the user stated it.
    pub stated: Option<String>,
    /// Files of weights, and their bytes.
    pub weight_files: u64,
    /// Bytes of these.
    pub weight_bytes: u64,
    /// Files that travel attached.
    pub attached_files: u64,
    /// Files that were left out.
    pub left_out: Vec<String>,
    /// Tensors that were left out.
    pub dropped: Vec<String>,
}

/// Bytes of the file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Size {
    /// The content.
    pub content: u64,
    /// Intact stamps behind it.
    pub stamps: u64,
}

/// What lies in a segment.
#[derive(Clone, Debug, Serialize)]
pub struct Segment {
    /// Its name.
    pub kind: SegmentKind,
    /// First byte.
    pub offset: u64,
    /// Bytes, padding included.
    pub length: u64,
    /// Bytes of tensors or attached files, padding between them not included.
    pub stored: u64,
    /// Tensors (each expert's part is one), or attached files.
    pub items: u64,
    /// Weights, where it holds any.
    pub weights: Option<u64>,
    /// Stored bits for each weight.
    pub bits_per_weight: Option<f64>,
}

/// What is stored in an encoding.
#[derive(Clone, Debug, Serialize)]
pub struct Encoding {
    /// Its name.
    pub name: String,
    /// Tensors, weights, bytes.
    #[serde(flatten)]
    pub census: Census,
    /// Stored bits for each weight, padding of rows included.
    pub bits_per_weight: Option<f64>,
}

/// Bytes that one token's pass reads, from memory or disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PerToken {
    /// All tensors of the core.
    pub core: u64,
    /// The output layer.
    pub output: u64,
    /// One row of the embedding.
    pub embedding_row: u64,
    /// The records of the chosen experts, whole pages.
    pub experts: u64,
    /// All of these.
    pub total: u64,
}

/// Pages and records.
#[derive(Clone, Debug, Serialize)]
pub struct Layout {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of the content.
    pub pages: u64,
    /// Leaves that have a digest.
    pub leaves: u64,
    /// Bytes of padding within the segments.
    pub padding: u64,
    /// Kinds of expert records: layers whose records are alike.
    pub records: Vec<Records>,
}

/// Layers whose expert records are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Records {
    /// How many layers.
    pub layers: u64,
    /// Experts of a layer.
    pub experts: u64,
    /// Experts that a token takes of each layer.
    pub chosen: u64,
    /// Bytes of a record.
    pub bytes: u64,
    /// Pages of a record.
    pub pages: u64,
}

/// What was appended.
#[derive(Clone, Debug, Serialize)]
pub struct Stamps {
    /// Number of intact ones, by kind.
    pub kinds: BTreeMap<String, u64>,
    /// What is wrong behind the last intact one.
    pub fault: Option<String>,
    /// What a crash left behind the last intact one.
    pub torn: Option<String>,
}

impl Summary {
    /// Counts.
    pub(super) fn of(bundle: &Bundle) -> Result<Self, Error> {
        let manifest = bundle.manifest();
        let checked = &manifest.checked;
        let claimed = &manifest.claimed;
        let text = |key: &str| {
            let value = checked.architecture.get(key).and_then(Value::as_str);
            value.unwrap_or("unknown").to_owned()
        };
        let family = text("family");
        let stamps = bundle.stamps()?;
        let mut kinds = BTreeMap::new();
        for stamp in &stamps.records {
            *kinds.entry(stamp.kind.clone()).or_insert(0) += 1;
        }
        let segments = segments(checked);
        let padding = segments.iter().map(|s| s.length.saturating_sub(s.stored));
        let (major, minor) = bundle.version();
        let files = &claimed.origin.files;
        let became = |b: Became| files.iter().filter(move |f| f.became == b);
        let encodings = checked.census.iter().map(|(name, census)| Encoding {
            name: name.clone(),
            census: *census,
            bits_per_weight: bits(census.bytes, census.weights),
        });
        let per_token = per_token(checked);
        Ok(Self {
            file: bundle.path().display().to_string(),
            id: qpx_console::hex(&bundle.id()),
            format: format!("{major}.{minor}"),
            name_disagrees: names::disagreements(
                bundle.path(),
                &family,
                &claimed.recipe.name,
                checked.parameters.total,
            ),
            family,
            architecture: checked.architecture.clone(),
            origin: Origin {
                stated: claimed.origin.stated.clone(),
                weight_files: became(Became::Weights).map(|_| 1).sum(),
                weight_bytes: became(Became::Weights).map(|f| f.size).sum(),
                attached_files: became(Became::Attached).map(|_| 1).sum(),
                left_out: became(Became::LeftOut).map(|f| f.name.clone()).collect(),
                dropped: (claimed.origin.dropped.iter())
                    .map(|d| format!("{}: {}", d.name, d.reason))
                    .collect(),
            },
            licence: claimed.licence.clone(),
            tool: format!("{} {}", claimed.tool.name, claimed.tool.version),
            recipe: claimed.recipe.name.clone(),
            size: Size {
                content: bundle.content_length(),
                stamps: stamps.end.saturating_sub(bundle.content_length()),
            },
            parameters: checked.parameters,
            encodings: encodings.collect(),
            per_token,
            layout: Layout {
                page_bytes: PAGE_BYTES,
                pages: bundle.content_length() / PAGE_BYTES,
                leaves: bundle.leaves(),
                padding: padding.sum(),
                records: records(checked),
            },
            segments,
            stamps: Stamps {
                kinds,
                fault: stamps.fault.map(|f| f.to_string()),
                torn: stamps.torn.map(|t| t.to_string()),
            },
        })
    }
}

fn bits(bytes: u64, weights: u64) -> Option<f64> {
    // Two decimals are shown: the rounding of large counts does not matter.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "a ratio for people"
    )]
    let bits = bytes as f64 * 8.0 / weights as f64;
    (weights > 0).then_some(bits)
}

fn segments(checked: &Checked) -> Vec<Segment> {
    let summed = checked.segments.iter().map(|s| {
        let (mut items, mut stored, mut weights) = (0_u64, 0_u64, 0_u64);
        let mut add = |n: u64, bytes: u64, values: u64| {
            items = items.saturating_add(n);
            stored = stored.saturating_add(bytes);
            weights = weights.saturating_add(values);
        };
        if s.kind == SegmentKind::Attached {
            checked.attached.iter().for_each(|a| add(1, a.stored, 0));
        }
        for t in checked.tensors.iter().filter(|t| t.segment == s.kind) {
            add(1, t.length, elements(&t.shape).unwrap_or(0));
        }
        for r in checked.experts.iter().filter(|r| r.segment == s.kind) {
            let values = elements(&r.shape).unwrap_or(0);
            add(
                r.count,
                r.length.saturating_mul(r.count),
                values.saturating_mul(r.count),
            );
        }
        Segment {
            kind: s.kind,
            offset: s.offset,
            length: s.length,
            stored,
            items,
            weights: (s.kind != SegmentKind::Attached).then_some(weights),
            bits_per_weight: bits(stored, weights),
        }
    });
    summed.collect()
}

/// Experts that a token takes of each layer; the format checks that it is there where there are experts.
fn chosen(checked: &Checked) -> u64 {
    let chosen = checked.architecture.get("experts_per_token");
    chosen.and_then(Value::as_u64).unwrap_or(0)
}

/// Number of layers by (experts, record bytes).
fn records(checked: &Checked) -> Vec<Records> {
    let mut layers = BTreeMap::new();
    for row in &checked.experts {
        if row.segment == SegmentKind::Experts {
            layers.insert(row.layer, (row.count, row.stride));
        }
    }
    let mut kinds: Vec<Records> = Vec::new();
    for (experts, bytes) in layers.into_values() {
        match kinds
            .iter_mut()
            .find(|k| (k.experts, k.bytes) == (experts, bytes))
        {
            Some(kind) => kind.layers += 1,
            None => kinds.push(Records {
                layers: 1,
                experts,
                chosen: chosen(checked),
                bytes,
                pages: bytes / PAGE_BYTES,
            }),
        }
    }
    kinds
}

fn per_token(checked: &Checked) -> PerToken {
    let of_role = |role: &str| checked.tensors.iter().find(|t| t.role == role);
    let row = |t: &Tensor| {
        let rows = t.shape.split_last().and_then(|(_, rows)| elements(rows));
        t.length / rows.unwrap_or(1).max(1)
    };
    let core = checked
        .tensors
        .iter()
        .filter(|t| t.segment == SegmentKind::Core);
    let core = core.map(|t| t.length).sum();
    // A tied output layer reads the embedding's bytes.
    let alias = checked.aliases.iter().find(|a| a.role == "output");
    let output = alias.map_or_else(|| of_role("output"), |a| of_role(&a.of));
    let output = output.map_or(0, |t| t.length);
    let embedding_row = of_role("embedding").map_or(0, row);
    let experts = records(checked).into_iter();
    let experts = experts
        .map(|r| r.bytes.saturating_mul(r.chosen).saturating_mul(r.layers))
        .fold(0, u64::saturating_add);
    PerToken {
        core,
        output,
        embedding_row,
        experts,
        total: [core, output, embedding_row, experts]
            .into_iter()
            .fold(0, u64::saturating_add),
    }
}
