//! The rules that a manifest must keep: one checker for the reader and for the builder, so that what is built can be read.
//!
//! From the entries alone (their order, shapes and encodings) this module derives where everything must lie. The builder
//! takes the result; the reader compares it with what the manifest says. There is no freedom in the layout, hence no
//! overlap and no gap that could go unnoticed.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{
    PAGE_BYTES,
    encoding::{self, Encoding, elements},
    error::Fault,
    index::{Index, Owner, PartRun, Run},
    json::MAX_INTEGER,
    manifest::*,
    name,
    preamble::MAX_TABLE_BYTES,
    role,
};
use std::collections::{BTreeMap, BTreeSet};

/// Every item starts on a multiple of this.
pub const ITEM_ALIGNMENT: u64 = 256;
/// Largest leaf of any segment.
pub const MAX_LEAF_BYTES: u64 = 4 << 20;
/// Smallest leaf size that a segment may state.
pub const MIN_LEAF_BYTES: u64 = 4 << 10;
/// Most dimensions of a shape.
pub const MAX_DIMENSIONS: usize = 8;
/// Most experts of a layer.
pub const MAX_EXPERTS: u64 = 65_536;
/// Largest attached file, decompressed.
pub const MAX_ATTACHED_BYTES: u64 = 1 << 30;

/// What follows from a manifest's entries. Offsets count from the first segment.
pub(crate) struct Plan {
    pub segments: Vec<Segment>,
    pub index: Index,
    pub parameters: Parameters,
    pub census: BTreeMap<String, Census>,
    /// Bytes of all segments.
    pub length: u64,
}

impl Plan {
    /// Length of the digest table: bounded by [`MAX_TABLE_BYTES`].
    pub fn table_length(&self) -> u64 {
        self.index
            .leaves()
            .saturating_add(self.index.sources())
            .saturating_mul(32)
    }
}

fn fault(rule: &'static str, reason: impl Into<String>) -> Fault {
    Fault::new(rule, "manifest", reason)
}

/// The encoding called `name`, and the stored bytes and values of a tensor of `shape` in it: rules 5.1, 5.2, 5.4.
fn geometry(
    subject: &str,
    name: &str,
    shape: &[u64],
) -> Result<(&'static Encoding, u64, u64), Fault> {
    let encoding = encoding::by_name(name).ok_or_else(|| {
        fault("5.1", format!("there is no encoding `{name}` in version 1")).of(subject)
    })?;
    if shape.len() > MAX_DIMENSIONS {
        return Err(fault(
            "5.2",
            format!("at most {MAX_DIMENSIONS} dimensions, found {}", shape.len()),
        )
        .of(subject));
    }
    let too_large = || fault("5.2", format!("shape {shape:?} is too large")).of(subject);
    // Dimensions behind a zero are bounded too, whatever their order.
    let full: Vec<u64> = shape.iter().map(|d| (*d).max(1)).collect();
    if elements(&full).is_none_or(|n| n > MAX_INTEGER)
        || encoding.stored_bytes(&full).is_none_or(|n| n > MAX_INTEGER)
    {
        return Err(too_large());
    }
    let bytes = encoding.stored_bytes(shape).ok_or_else(too_large)?;
    let values = elements(shape).ok_or_else(too_large)?;
    if encoding.is_block() && shape.len() < 2 {
        return Err(fault(
            "5.4",
            format!("`{name}` needs rows, the shape {shape:?} has none"),
        )
        .of(subject));
    }
    Ok((encoding, bytes, values))
}

/// Checks everything in `manifest` but offsets, lengths of segments, counts and the census, and derives those.
pub(crate) fn plan(manifest: &Manifest) -> Result<Plan, Fault> {
    let checked = &manifest.checked;
    architecture(&checked.architecture)?;
    claimed(&manifest.claimed)?;
    attached(&checked.attached)?;
    roles(checked)?;
    segments(checked)?;

    let mut builder = Builder::default();
    let mut planned = Vec::new();
    for segment in &checked.segments {
        let start = builder.cursor;
        builder.segment(checked, segment)?;
        builder.cursor = round_up(builder.cursor, PAGE_BYTES)?;
        planned.push(Segment {
            kind: segment.kind,
            offset: start,
            length: builder.cursor.saturating_sub(start),
            leaf_bytes: segment.leaf_bytes,
        });
    }
    let parameters = parameters(checked, &builder)?;
    let plan = Plan {
        segments: planned,
        index: builder.index,
        parameters,
        census: builder.census,
        length: builder.cursor,
    };
    if plan.table_length() > MAX_TABLE_BYTES {
        return Err(fault(
            "2.9",
            format!(
                "a digest table has at most {MAX_TABLE_BYTES} bytes, this bundle needs {}",
                plan.table_length()
            ),
        ));
    }
    Ok(plan)
}

/// Checks offsets, lengths, counts and census of a manifest that was read against its plan; the first segment is at `data`.
pub(crate) fn compare(manifest: &Manifest, plan: &Plan, data: u64) -> Result<(), Fault> {
    let checked = &manifest.checked;
    let at = |relative: u64| relative.saturating_add(data);
    for (found, planned) in checked.segments.iter().zip(&plan.segments) {
        let name = found.kind.as_str();
        differs("4.2", name, "offset", found.offset, at(planned.offset))?;
        differs("4.3", name, "length", found.length, planned.length)?;
    }
    for run in plan.index.runs() {
        match &run.owner {
            Owner::Attached(i) => {
                if let Some(file) = checked.attached.get(*i) {
                    differs("4.5", &file.name, "offset", file.offset, at(run.offset))?;
                }
            }
            Owner::Tensor(i) => {
                if let Some(t) = checked.tensors.get(*i) {
                    differs("4.5", &t.role, "offset", t.offset, at(run.offset))?;
                }
            }
            Owner::Experts { stride, parts, .. } => {
                for part in parts {
                    if let Some(row) = checked.experts.get(part.row) {
                        let name = row.label();
                        let base = at(run.offset).saturating_add(part.delta);
                        differs("4.6", &name, "base", row.base, base)?;
                        differs("4.6", &name, "stride", row.stride, *stride)?;
                    }
                }
            }
        }
    }
    let (found, counted) = (&checked.parameters, &plan.parameters);
    differs("3.8", "parameters", "total", found.total, counted.total)?;
    differs("3.8", "parameters", "active", found.active, counted.active)?;
    let names = checked.census.keys().chain(plan.census.keys());
    for name in names {
        let (found, counted) = (checked.census.get(name), plan.census.get(name));
        if found != counted {
            let words = |census: Option<&Census>| match census {
                Some(c) => format!(
                    "{} tensors, {} weights, {} bytes",
                    c.tensors, c.weights, c.bytes
                ),
                None => "no entry".to_owned(),
            };
            return Err(fault(
                "3.9",
                format!(
                    "`{name}` must have {}, found {}",
                    words(counted),
                    words(found)
                ),
            )
            .of("census"));
        }
    }
    Ok(())
}

fn differs(
    rule: &'static str,
    subject: &str,
    what: &str,
    found: u64,
    expected: u64,
) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    Err(fault(rule, format!("{what} must be {expected}, found {found}")).of(subject))
}

fn round_up(value: u64, unit: u64) -> Result<u64, Fault> {
    value
        .checked_next_multiple_of(unit)
        .filter(|n| *n <= MAX_INTEGER)
        .ok_or_else(too_large)
}

fn add(a: u64, b: u64) -> Result<u64, Fault> {
    a.checked_add(b)
        .filter(|n| *n <= MAX_INTEGER)
        .ok_or_else(too_large)
}

fn mul(a: u64, b: u64) -> Result<u64, Fault> {
    a.checked_mul(b)
        .filter(|n| *n <= MAX_INTEGER)
        .ok_or_else(too_large)
}

fn too_large() -> Fault {
    fault(
        "2.6",
        format!("the content is larger than {MAX_INTEGER} bytes"),
    )
}

fn architecture(architecture: &serde_json::Map<String, serde_json::Value>) -> Result<(), Fault> {
    let family = architecture.get("family").and_then(|f| f.as_str());
    if family.is_some_and(|f| {
        f.starts_with(|c: char| c.is_ascii_lowercase())
            && f.len() <= 64
            && f.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    }) {
        return Ok(());
    }
    Err(fault(
        "3.7",
        "`family` must be a lower-case word of at most 64 bytes",
    )
    .of("architecture"))
}

fn claimed(claimed: &Claimed) -> Result<(), Fault> {
    let mut previous: Option<&str> = None;
    for file in &claimed.origin.files {
        name::check(&file.name).map_err(|why| fault("3.11", why).of(&file.name))?;
        if previous.is_some_and(|p| p >= file.name.as_str()) {
            return Err(fault("3.11", "names must ascend, each once").of(&file.name));
        }
        previous = Some(&file.name);
        let complete = match &file.sha256 {
            Some(hex) => crate::digest::is_hex(hex),
            None => file.became == Became::LeftOut,
        };
        if !complete {
            return Err(fault(
                "3.10",
                "64 lower-case hex digits; only a file left out may lack them",
            )
            .of(&file.name));
        }
    }
    Ok(())
}

fn attached(files: &[Attached]) -> Result<(), Fault> {
    for file in files {
        name::check(&file.name).map_err(|why| fault("7.1", why).of(&file.name))?;
        if file.length > MAX_ATTACHED_BYTES || file.stored > MAX_ATTACHED_BYTES {
            return Err(fault(
                "7.3",
                format!("an attached file has at most {MAX_ATTACHED_BYTES} bytes"),
            )
            .of(&file.name));
        }
        if file.compression == Compression::None && file.stored != file.length {
            return Err(fault(
                "7.3",
                format!(
                    "uncompressed, yet {} bytes are stored for {}",
                    file.stored, file.length
                ),
            )
            .of(&file.name));
        }
    }
    name::distinct(files.iter().map(|f| f.name.as_str()))
        .map_err(|(name, why)| fault("7.2", why).of(&name))
}

fn source(subject: &str, source: &Source) -> Result<(), Fault> {
    let bad = |reason: &str| Err(fault("3.12", reason).of(subject));
    if source.name.is_empty()
        || source.name.len() > name::MAX_SOURCE_NAME
        || source.name.chars().any(char::is_control)
    {
        return bad("a source name has 1 to 1024 bytes and no control characters");
    }
    let dtype = source.dtype.as_bytes();
    if dtype.is_empty()
        || dtype.len() > 32
        || !dtype
            .iter()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
    {
        return bad("a source dtype is an upper-case word");
    }
    Ok(())
}

/// Rules 6.1 to 6.5 and 3.12.
fn roles(checked: &Checked) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for tensor in &checked.tensors {
        let role = tensor.role.as_str();
        role::check(role).map_err(|why| fault("6.1", why).of(role))?;
        if !seen.insert(role) {
            return Err(fault("6.2", "the role is given twice").of(role));
        }
        source(role, &tensor.source)?;
        if tensor.source.stride != 0 {
            return Err(fault("3.12", "only experts have a source stride").of(role));
        }
        let first = role.split('.').next().unwrap_or_default();
        let fits = match first {
            "kept" => tensor.segment == SegmentKind::Kept,
            "draft" => tensor.segment == SegmentKind::Draft,
            "embedding" | "output" => tensor.segment == SegmentKind::Head,
            _ => matches!(tensor.segment, SegmentKind::Core | SegmentKind::Rows),
        };
        if !fits {
            return Err(fault(
                "6.3",
                format!("`{role}` does not belong in {}", tensor.segment.as_str()),
            )
            .of(role));
        }
        if matches!(first, "layer" | "draft") && role.split('.').nth(2) == Some("expert") {
            return Err(fault("6.3", "experts are listed under `experts` alone").of(role));
        }
        if first == "kept" && role.strip_prefix("kept.") != Some(&tensor.source.name) {
            return Err(fault("6.5", "`kept.` is followed by the source's name").of(role));
        }
    }
    for row in &checked.experts {
        let label = row.label();
        source(&label, &row.source)?;
        if row.source.name.contains("{expert}") != (row.source.stride == 0) {
            return Err(fault(
                "3.12",
                "the source has either `{expert}` in its name or a stride",
            )
            .of(&label));
        }
        if row.layer > role::MAX_NUMBER {
            return Err(fault(
                "4.6",
                format!("a layer's number is at most {}", role::MAX_NUMBER),
            )
            .of(&label));
        }
        if !matches!(row.segment, SegmentKind::Experts | SegmentKind::Draft) {
            return Err(fault(
                "6.3",
                format!("experts do not belong in {}", row.segment.as_str()),
            )
            .of(&label));
        }
    }
    let tensors = seen.clone();
    for alias in &checked.aliases {
        let role = alias.role.as_str();
        role::check(role).map_err(|why| fault("6.1", why).of(role))?;
        if !seen.insert(role) {
            return Err(fault("6.2", "the role is given twice").of(role));
        }
        let mut words = role.split('.');
        let first = words.next().unwrap_or_default();
        let expert = matches!(first, "layer" | "draft") && words.nth(1) == Some("expert");
        if first == "kept" || expert {
            return Err(fault("6.4", "neither a kept tensor nor an expert is an alias").of(role));
        }
        if !tensors.contains(alias.of.as_str()) {
            return Err(fault("6.4", format!("there is no tensor `{}`", alias.of)).of(role));
        }
        if let Some(s) = &alias.source {
            source(role, s)?;
        }
    }
    Ok(())
}

/// Rules 4.1, 4.4 and 4.10: the segments themselves, and that entries are listed in their order.
fn segments(checked: &Checked) -> Result<(), Fault> {
    let mut previous = None;
    for segment in &checked.segments {
        let name = segment.kind.as_str();
        if previous.is_some_and(|p| p >= segment.kind) {
            return Err(fault("4.1", "segments have one order, each once").of(name));
        }
        previous = Some(segment.kind);
        if !segment.leaf_bytes.is_power_of_two()
            || !(MIN_LEAF_BYTES..=MAX_LEAF_BYTES).contains(&segment.leaf_bytes)
        {
            return Err(fault(
                "4.4",
                format!(
                    "leaf size {} is no power of two from {MIN_LEAF_BYTES} to {MAX_LEAF_BYTES}",
                    segment.leaf_bytes
                ),
            )
            .of(name));
        }
        let kind = segment.kind;
        let used = match kind {
            SegmentKind::Attached => !checked.attached.is_empty(),
            _ => {
                checked.tensors.iter().any(|t| t.segment == kind)
                    || checked.experts.iter().any(|r| r.segment == kind)
            }
        };
        if !used {
            return Err(fault("4.1", "the segment holds nothing").of(name));
        }
    }
    let listed = |kind: SegmentKind| checked.segments.iter().any(|s| s.kind == kind);
    let kinds = (checked.tensors.iter().map(|t| t.segment))
        .chain(checked.experts.iter().map(|r| r.segment))
        .chain((!checked.attached.is_empty()).then_some(SegmentKind::Attached));
    for kind in kinds {
        if !listed(kind) {
            return Err(fault("4.1", "the segment is not listed").of(kind.as_str()));
        }
    }
    let tensors = checked.tensors.iter();
    for (a, b) in tensors.clone().zip(tensors.skip(1)) {
        if a.segment > b.segment {
            return Err(fault("4.10", "listed after a later segment's").of(&b.role));
        }
    }
    let rows = checked.experts.iter();
    for (a, b) in rows.clone().zip(rows.skip(1)) {
        if (a.segment, a.layer, a.part) >= (b.segment, b.layer, b.part) {
            return Err(fault("4.10", "rows ascend by segment, layer and part").of(&b.label()));
        }
    }
    Ok(())
}

/// Lays items one behind the other.
#[derive(Default)]
struct Builder {
    index: Index,
    census: BTreeMap<String, Census>,
    /// Values of each tensor, in the order of the list; then of each row's single part.
    values: Vec<u64>,
    row_values: Vec<u64>,
    cursor: u64,
}

impl Builder {
    fn segment(&mut self, checked: &Checked, segment: &Segment) -> Result<(), Fault> {
        let kind = segment.kind;
        if kind == SegmentKind::Attached {
            for (i, file) in checked.attached.iter().enumerate() {
                self.item(segment, Owner::Attached(i), file.stored)?;
            }
            return Ok(());
        }
        for (i, tensor) in checked.tensors.iter().enumerate() {
            if tensor.segment != kind {
                continue;
            }
            let (encoding, bytes, values) =
                geometry(&tensor.role, &tensor.encoding, &tensor.shape)?;
            differs("5.3", &tensor.role, "length", tensor.length, bytes)?;
            self.item(segment, Owner::Tensor(i), bytes)?;
            self.values.push(values);
            self.count(encoding, 1, values, bytes)?;
        }
        let rows: Vec<_> = (checked.experts.iter().enumerate())
            .filter(|(_, r)| r.segment == kind)
            .collect();
        for layer in rows.chunk_by(|(_, a), (_, b)| a.layer == b.layer) {
            self.experts(segment, layer)?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        encoding: &Encoding,
        tensors: u64,
        values: u64,
        bytes: u64,
    ) -> Result<(), Fault> {
        let census = self.census.entry(encoding.name.to_owned()).or_default();
        census.tensors = add(census.tensors, tensors)?;
        census.weights = add(census.weights, values)?;
        census.bytes = add(census.bytes, bytes)?;
        Ok(())
    }

    fn item(&mut self, segment: &Segment, owner: Owner, length: u64) -> Result<(), Fault> {
        let offset = round_up(self.cursor, ITEM_ALIGNMENT)?;
        self.cursor = add(offset, length)?;
        let sources = u64::from(!matches!(owner, Owner::Attached(_)));
        self.index.push(Run {
            owner,
            segment: segment.kind,
            offset,
            length,
            leaf_bytes: segment.leaf_bytes,
            first_leaf: 0,
            leaves: length.div_ceil(segment.leaf_bytes),
            first_source: 0,
            sources,
        });
        Ok(())
    }

    /// All records of one layer.
    fn experts(&mut self, segment: &Segment, rows: &[(usize, &ExpertRow)]) -> Result<(), Fault> {
        let Some((_, first)) = rows.first() else {
            return Ok(());
        };
        let count = first.count;
        let mut parts = Vec::new();
        let mut end = 0_u64;
        let mut leaves = 0_u64;
        for (i, row) in rows {
            let label = row.label();
            if row.count != count || count == 0 || count > MAX_EXPERTS {
                return Err(fault(
                    "4.6",
                    format!(
                        "all parts of a layer have the same 1 to {MAX_EXPERTS} experts, found {} and {count}",
                        row.count
                    ),
                )
                .of(&label));
            }
            let (encoding, bytes, values) = geometry(&label, &row.encoding, &row.shape)?;
            if row.shape.len() != 2 || values == 0 {
                return Err(fault(
                    "5.5",
                    format!("[rows, columns], none of them zero; found {:?}", row.shape),
                )
                .of(&label));
            }
            differs("5.3", &label, "length", row.length, bytes)?;
            let delta = round_up(end, ITEM_ALIGNMENT)?;
            end = add(delta, bytes)?;
            let part_leaves = bytes.div_ceil(segment.leaf_bytes);
            parts.push(PartRun {
                row: *i,
                delta,
                length: bytes,
                leaf: leaves,
                leaves: part_leaves,
            });
            leaves = add(leaves, part_leaves)?;
            self.row_values.push(values);
            self.count(encoding, count, mul(values, count)?, mul(bytes, count)?)?;
        }
        let stride = round_up(end, PAGE_BYTES)?;
        let offset = round_up(self.cursor, PAGE_BYTES)?;
        let length = mul(stride, count)?;
        self.cursor = add(offset, length)?;
        let per_record = u64::try_from(parts.len()).unwrap_or(u64::MAX);
        self.index.push(Run {
            segment: segment.kind,
            offset,
            length,
            leaf_bytes: segment.leaf_bytes,
            first_leaf: 0,
            leaves: mul(leaves, count)?,
            first_source: 0,
            sources: mul(per_record, count)?,
            owner: Owner::Experts {
                count,
                stride,
                record_leaves: leaves,
                parts,
            },
        });
        Ok(())
    }
}

/// Rule 3.8: how many weights there are, and how many one token touches.
fn parameters(checked: &Checked, built: &Builder) -> Result<Parameters, Fault> {
    let mut total = 0;
    let mut active = 0;
    let values_of = |role: &str| {
        (checked.tensors.iter().zip(&built.values))
            .find(|(t, _)| t.role == role)
            .map_or(0, |(_, v)| *v)
    };
    for (tensor, values) in checked.tensors.iter().zip(&built.values) {
        if tensor.segment == SegmentKind::Kept {
            continue;
        }
        total = add(total, *values)?;
        let touched = match tensor.segment {
            SegmentKind::Core => *values,
            SegmentKind::Head if tensor.role != "embedding" => *values,
            SegmentKind::Head | SegmentKind::Rows => tensor.shape.last().copied().unwrap_or(1),
            _ => 0,
        };
        active = add(active, touched)?;
    }
    for alias in checked.aliases.iter().filter(|a| a.role == "output") {
        active = add(active, values_of(&alias.of))?;
    }
    let per_token = checked.architecture.get("experts_per_token");
    let per_token = per_token.and_then(serde_json::Value::as_u64);
    for (row, values) in checked.experts.iter().zip(&built.row_values) {
        total = add(total, mul(*values, row.count)?)?;
        if row.segment == SegmentKind::Experts {
            let chosen = per_token
                .filter(|n| (1..=row.count).contains(n))
                .ok_or_else(|| {
                    fault(
                        "3.7",
                        format!("`experts_per_token` must be from 1 to {}", row.count),
                    )
                    .of("architecture")
                })?;
            active = add(active, mul(*values, chosen)?)?;
        }
    }
    Ok(Parameters { total, active })
}

impl ExpertRow {
    /// How a row is called in messages: `layer.3.expert.*.gate`.
    pub(crate) fn label(&self) -> String {
        let word = if self.segment == SegmentKind::Draft {
            "draft"
        } else {
            "layer"
        };
        format!("{word}.{}.expert.*.{}", self.layer, self.part)
    }
}
