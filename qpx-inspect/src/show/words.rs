//! `show` for people: 80 columns, one screen.

use super::Summary;
use crate::table::{Table, field};
use qpx_console::{count, counted, exact, harmless, size};
use serde_json::Value;

pub fn text(s: &Summary) -> String {
    let mut text = format!(
        "{}: {}, {}, {}\n\n",
        s.file,
        s.family,
        s.recipe,
        size(s.size.content.saturating_add(s.size.stamps))
    );
    for reason in &s.name_disagrees {
        text += &format!("  note: {reason}\n");
    }
    if !s.name_disagrees.is_empty() {
        text.push('\n');
    }
    text += &identity(s);
    text.push('\n');
    text += &tables(s);
    text.push('\n');
    text += &work(s);
    text += &stamps(s);
    harmless(&text)
}

fn identity(s: &Summary) -> String {
    let mut text = field("id", &s.id);
    text += &field("model", &model(s));
    let stated = s.origin.stated.as_deref().unwrap_or("not stated");
    let mut origin = format!(
        "{stated}; {}, {}; {} attached",
        counted(s.origin.weight_files, "weight file"),
        size(s.origin.weight_bytes),
        counted(s.origin.attached_files, "file"),
    );
    if !s.origin.left_out.is_empty() {
        let n = u64::try_from(s.origin.left_out.len()).unwrap_or(u64::MAX);
        origin += &format!("; {} left out", counted(n, "file"));
    }
    text += &field("origin", &origin);
    if !s.origin.dropped.is_empty() {
        text += &field("dropped", &s.origin.dropped.join("; "));
    }
    let licence = s.licence.as_deref();
    text += &field("licence", licence.unwrap_or("not stated"));
    let format = format!("{}, recipe {}, format {}", s.tool, s.recipe, s.format);
    text += &field("packed by", &format);
    let mut content = exact(s.size.content);
    if s.size.stamps > 0 {
        content += &format!(" and stamps of {}", size(s.size.stamps));
    }
    text += &field("size", &content);
    text += &field(
        "parameters",
        &format!(
            "{} in all, {} active for each token",
            count(s.parameters.total),
            count(s.parameters.active)
        ),
    );
    text
}

fn model(s: &Summary) -> String {
    let number = |key: &str| s.architecture.get(key).and_then(Value::as_u64);
    let facts = [
        ("layers", "layers"),
        ("hidden_size", "hidden"),
        ("vocabulary", "tokens of vocabulary"),
        ("context_length", "of context"),
    ];
    let mut words: Vec<String> = facts
        .iter()
        .filter_map(|(key, word)| Some(format!("{} {word}", number(key)?)))
        .collect();
    if let (Some(all), Some(chosen)) = (number("experts"), number("experts_per_token")) {
        words.insert(1.min(words.len()), format!("{chosen} of {all} experts"));
    }
    format!("{}: {}", s.family, words.join(", "))
}

fn tables(s: &Summary) -> String {
    let bits = |b: Option<f64>| b.map_or(String::new(), |b| format!("{b:.2}"));
    let heading = [
        "segment",
        "bytes",
        "stored",
        "items",
        "weights",
        "bits/weight",
    ];
    let mut table = Table::new(&heading, &[1, 2, 3, 4, 5]);
    for segment in &s.segments {
        table.row([
            segment.kind.as_str().to_owned(),
            size(segment.length),
            size(segment.stored),
            segment.items.to_string(),
            segment.weights.map_or(String::new(), count),
            bits(segment.bits_per_weight),
        ]);
    }
    let heading = ["encoding", "", "bytes", "tensors", "weights", "bits/weight"];
    let mut encodings = Table::new(&heading, &[1, 2, 3, 4, 5]);
    for encoding in &s.encodings {
        encodings.row([
            encoding.name.clone(),
            String::new(),
            size(encoding.census.bytes),
            encoding.census.tensors.to_string(),
            count(encoding.census.weights),
            bits(encoding.bits_per_weight),
        ]);
    }
    format!("{}\n{}", table.text("  "), encodings.text("  "))
}

fn work(s: &Summary) -> String {
    let p = &s.per_token;
    let mut terms = vec![
        format!("core {}", size(p.core)),
        format!("output {}", size(p.output)),
        format!("embedding row {}", size(p.embedding_row)),
    ];
    for r in &s.layout.records {
        terms.push(format!(
            "{} layers × {} experts × {}",
            r.layers,
            r.chosen,
            size(r.bytes)
        ));
    }
    let mut text = field(
        "per token",
        &format!("{} = {}", size(p.total), terms.join(" + ")),
    );
    let mut pages = format!(
        "{} of {}, {}, padding {}",
        counted(s.layout.pages, "page"),
        size(s.layout.page_bytes),
        match s.layout.leaves {
            1 => "1 leaf".to_owned(),
            n => format!("{} leaves", qpx_console::grouped(n)),
        },
        size(s.layout.padding)
    );
    for r in &s.layout.records {
        pages += &format!(
            "; {} layers of {} expert records of {} ({})",
            r.layers,
            r.experts,
            size(r.bytes),
            counted(r.pages, "page")
        );
    }
    text += &field("layout", &pages);
    text
}

fn stamps(s: &Summary) -> String {
    let kinds: Vec<String> = s
        .stamps
        .kinds
        .iter()
        .map(|(k, n)| format!("{n} {k}"))
        .collect();
    let mut text = field(
        "stamps",
        &match kinds.is_empty() {
            true => "none".to_owned(),
            false => kinds.join(", "),
        },
    );
    for fault in s.stamps.fault.iter().chain(&s.stamps.torn) {
        text += &field("", fault);
    }
    text
}
