//! From a tensor of the checkpoint to where its bytes are stored, and whether they are the same bytes.

use qpx_format::{Bundle, Role, manifest::Source, reader::Extent};
use std::collections::BTreeMap;

/// A stored extent, and where in its source tensor it was.
#[derive(Clone, Debug)]
pub struct Piece {
    /// First byte within the source tensor's data.
    pub start: u64,
    /// Where the bytes are.
    pub extent: Extent,
}

/// The pieces of each tensor of the checkpoint, in order.
pub fn by_source(bundle: &Bundle) -> BTreeMap<String, Vec<Piece>> {
    let checked = &bundle.manifest().checked;
    let mut pieces: BTreeMap<String, Vec<Piece>> = BTreeMap::new();
    let mut add = |name: String, start: u64, extent: Option<Extent>| {
        if let Some(extent) = extent {
            pieces
                .entry(name)
                .or_default()
                .push(Piece { start, extent });
        }
    };
    let of_role = |role: &str| Role::parse(role).ok().and_then(|r| bundle.extent(&r));
    for tensor in &checked.tensors {
        add(
            tensor.source.name.clone(),
            tensor.source.start,
            of_role(&tensor.role),
        );
    }
    for alias in &checked.aliases {
        if let Some(source) = &alias.source {
            add(source.name.clone(), source.start, of_role(&alias.of));
        }
    }
    for row in &checked.experts {
        let word = match row.segment {
            qpx_format::manifest::SegmentKind::Draft => "draft",
            _ => "layer",
        };
        for expert in 0..row.count {
            let role = format!("{word}.{}.expert.{expert}.{}", row.layer, row.part);
            let start = row
                .source
                .start
                .saturating_add(expert.saturating_mul(row.source.stride));
            add(
                row.source.name.replace("{expert}", &expert.to_string()),
                start,
                of_role(&role),
            );
        }
    }
    for list in pieces.values_mut() {
        list.sort_by_key(|p| p.start);
    }
    pieces
}

/// Why the bundle does not hold its source bit for bit, a line for each reason.
pub fn inexact(bundle: &Bundle) -> Vec<String> {
    let manifest = bundle.manifest();
    // By the pair of source dtype and encoding: how many tensors, and the first one.
    let mut changed: BTreeMap<(String, String), (u64, String)> = BTreeMap::new();
    let mut look = |role: String, encoding: &str, source: &Source, tensors: u64| {
        if source.dtype.to_lowercase() != encoding {
            let key = (source.dtype.clone(), encoding.to_owned());
            let entry = changed.entry(key).or_insert((0, role));
            entry.0 = entry.0.saturating_add(tensors);
        }
    };
    for t in &manifest.checked.tensors {
        look(t.role.clone(), &t.encoding, &t.source, 1);
    }
    for r in &manifest.checked.experts {
        let role = format!("layer.{}.expert.0.{}", r.layer, r.part);
        look(role, &r.encoding, &r.source, r.count);
    }
    let mut reasons: Vec<String> = changed
        .into_iter()
        .map(|((dtype, encoding), (n, first))| match n {
            1 => format!("1 tensor, {first}, went from {dtype} to {encoding}"),
            n => format!("{n} tensors, such as {first}, went from {dtype} to {encoding}"),
        })
        .collect();
    let dropped = manifest.claimed.origin.dropped.iter();
    reasons.extend(dropped.map(|d| format!("{} was left out: {}", d.name, d.reason)));
    reasons
}
