//! Finding a family's tensors in the shards: by their names, in whichever form they are stored, with nothing left over.

use super::{ExpertGroup, Family, Form};
use crate::{
    note::Note,
    problem::{Problem, kind},
    source::{Checkpoint, Place, dtype::Dtype, header::Entry},
};
use qpx_format::{
    Part,
    manifest::{Alias, SegmentKind, Source},
};
use std::collections::BTreeMap;

/// Bytes of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub shard: usize,
    pub offset: u64,
    pub length: u64,
}

/// A tensor with its place.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub role: String,
    pub segment: SegmentKind,
    pub shape: Vec<u64>,
    pub dtype: Dtype,
    pub name: String,
    pub range: Range,
}

/// One matrix of all experts of a layer.
#[derive(Clone, Debug)]
pub(crate) struct MappedPart {
    pub part: Part,
    /// One expert's. [rows, columns]
    pub shape: [u64; 2],
    pub dtype: Dtype,
    pub source: Source,
    /// By expert.
    pub ranges: Vec<Range>,
}

/// The experts of a layer.
#[derive(Clone, Debug)]
pub(crate) struct MappedExperts {
    pub layer: u64,
    pub count: u64,
    pub parts: Vec<MappedPart>,
}

/// A whole model, found.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    pub tensors: Vec<Mapped>,
    pub experts: Vec<MappedExperts>,
    pub aliases: Vec<Alias>,
    /// A tied output layer that is stored all the same: to be compared with the embedding, by index into `tensors`.
    pub head_copy: Option<(usize, Mapped)>,
    /// Whether the output layer shares the embedding's bytes.
    pub tied: bool,
}

/// Finds everything that `form` asks for.
pub(crate) fn map(
    family: &Family,
    form: &Form,
    checkpoint: &Checkpoint,
    notes: &mut Vec<Note>,
    problems: &mut Vec<Problem>,
) -> Mapping {
    let mut finder = Finder::new(checkpoint, notes, problems);
    finder.find_prefix();
    let mapping = finder.run(form);
    finder.leftovers(family, form, mapping)
}

struct Finder<'a, 'b> {
    checkpoint: &'a Checkpoint,
    free: BTreeMap<&'a str, Place<'a>>,
    /// Name without data → name whose data it shares.
    copies: BTreeMap<&'a str, &'a str>,
    prefix: String,
    missing: Vec<String>,
    /// Kind, expected and found shape → index of the problem that speaks for all of them.
    shapes: BTreeMap<(String, Vec<u64>, Vec<u64>), usize>,
    notes: &'b mut Vec<Note>,
    problems: &'b mut Vec<Problem>,
}

impl<'a, 'b> Finder<'a, 'b> {
    fn new(
        checkpoint: &'a Checkpoint,
        notes: &'b mut Vec<Note>,
        problems: &'b mut Vec<Problem>,
    ) -> Self {
        // A tensor stored twice was reported when index and headers were compared.
        let free = Checkpoint::tensors(&checkpoint.shards, &mut Vec::new());
        let mut copies = BTreeMap::new();
        for shard in &checkpoint.shards {
            for (name, holder) in &shard.metadata {
                if !free.contains_key(name.as_str()) && free.contains_key(holder.as_str()) {
                    copies.insert(name.as_str(), holder.as_str());
                }
            }
        }
        Self {
            checkpoint,
            free,
            copies,
            prefix: "model.".to_owned(),
            missing: Vec::new(),
            shapes: BTreeMap::new(),
            notes,
            problems,
        }
    }

    fn shard_name(&self, place: &Place<'_>) -> String {
        let shard = self.checkpoint.shards.get(place.0);
        shard.map(|s| s.name.clone()).unwrap_or_default()
    }

    /// Some tools save the inner model, whose names lack `model.`; other beginnings mean that this is something else.
    fn find_prefix(&mut self) {
        let mark = "layers.0.input_layernorm.weight";
        let found = self.free.keys().find_map(|name| name.strip_suffix(mark));
        match found {
            Some("") => {
                self.prefix.clear();
                self.notes.push(Note::Prefix {
                    found: String::new(),
                });
            }
            Some("model.") | None => {}
            Some(other) => self.problems.push(Problem::Prefix {
                found: other.to_owned(),
                expected: "model.",
            }),
        }
    }

    /// What the checkpoint calls `name`.
    fn actual(&self, name: &str) -> String {
        match name.strip_prefix("model.") {
            Some(rest) => format!("{}{rest}", self.prefix),
            None => name.to_owned(),
        }
    }

    fn is_unavailable(&self, name: &str) -> bool {
        self.checkpoint.incomplete || self.checkpoint.unavailable.contains(name)
    }

    fn take(&mut self, name: &str) -> Option<Place<'a>> {
        self.free.remove(name)
    }

    fn check(&mut self, place: &Place<'_>, expected: &[u64]) -> bool {
        let entry = place.1;
        if entry.shape != expected {
            let key = (kind(&entry.name), expected.to_vec(), entry.shape.clone());
            if let Some(Problem::Shape { more, .. }) = self
                .shapes
                .get(&key)
                .and_then(|at| self.problems.get_mut(*at))
            {
                *more += 1;
            } else {
                self.shapes.insert(key, self.problems.len());
                self.problems.push(Problem::Shape {
                    tensor: entry.name.clone(),
                    shard: self.shard_name(place),
                    expected: expected.to_vec(),
                    found: entry.shape.clone(),
                    more: 0,
                });
            }
            return false;
        }
        if !entry.dtype.is_weight() {
            self.problems.push(Problem::Dtype {
                tensor: entry.name.clone(),
                shard: self.shard_name(place),
                found: entry.dtype.name,
            });
            return false;
        }
        true
    }

    fn run(&mut self, form: &Form) -> Mapping {
        let mut mapping = Mapping::default();
        let (mut copied, mut taken) = (Vec::new(), BTreeMap::new());
        for expected in &form.tensors {
            let name = self.actual(&expected.name);
            let Some(place) = self.take(&name) else {
                copied.push((expected, name));
                continue;
            };
            if self.check(&place, &expected.shape) {
                taken.insert(name, mapping.tensors.len());
                mapping
                    .tensors
                    .push(mapped(&expected.role, expected.segment, place));
            }
        }
        for (expected, name) in copied {
            let tied_head = expected.role == "output" && form.tied;
            match self.copies.get(name.as_str()).copied() {
                _ if tied_head => {}
                Some(holder) if taken.contains_key(holder) => {
                    let at = taken.get(holder).copied().unwrap_or_default();
                    self.share(&mut mapping, at, expected, &name, holder);
                    continue;
                }
                Some(holder) => {
                    let Some(place) = self.take(holder) else {
                        continue;
                    };
                    if self.check(&place, &expected.shape) {
                        self.deduplicated(&name, holder);
                        taken.insert(holder.to_owned(), mapping.tensors.len());
                        mapping
                            .tensors
                            .push(mapped(&expected.role, expected.segment, place));
                    }
                    continue;
                }
                None if self.is_unavailable(&name) => continue,
                None => {
                    self.missing.push(name);
                    continue;
                }
            }
        }
        for group in &form.experts {
            if let Some(experts) = self.experts(group) {
                mapping.experts.push(experts);
            }
        }
        self.tie(form, &mut mapping);
        mapping
    }

    fn deduplicated(&mut self, tensor: &str, holder: &str) {
        self.notes.push(Note::Deduplicated {
            tensor: tensor.to_owned(),
            holder: holder.to_owned(),
        });
    }

    /// A tensor that the header's metadata gives another one's data.
    fn share(
        &mut self,
        mapping: &mut Mapping,
        at: usize,
        expected: &super::Expected,
        name: &str,
        holder: &str,
    ) {
        self.deduplicated(name, holder);
        let Some(held) = mapping.tensors.get_mut(at) else {
            return;
        };
        if held.shape != expected.shape {
            self.problems.push(Problem::Shape {
                tensor: holder.to_owned(),
                shard: String::new(),
                expected: expected.shape.clone(),
                found: held.shape.clone(),
                more: 0,
            });
            return;
        }
        let ends = held.role == "output" && expected.role == "embedding"
            || held.role == "embedding" && expected.role == "output";
        if ends {
            // Whichever name was kept, the data is the embedding and the output layer shares it.
            held.role = "embedding".to_owned();
            held.segment = SegmentKind::Head;
            mapping.tied = true;
        } else {
            mapping.aliases.push(Alias {
                role: expected.role.clone(),
                of: held.role.clone(),
                source: None,
            });
        }
    }

    /// A tied output layer shares the embedding's bytes; a copy of it must be equal, which the plan finds out by reading both.
    fn tie(&mut self, form: &Form, mapping: &mut Mapping) {
        let order: BTreeMap<_, _> = form
            .tensors
            .iter()
            .zip(0_usize..)
            .map(|(t, at)| (t.role.as_str(), at))
            .collect();
        mapping
            .tensors
            .sort_by_key(|tensor| order.get(tensor.role.as_str()).copied());
        mapping.tied |= form.tied;
        if !mapping.tied {
            return;
        }
        let mut source = None;
        if let Some(at) = mapping.tensors.iter().position(|t| t.role == "output") {
            let head = mapping.tensors.remove(at);
            source = Some(Source {
                name: head.name.clone(),
                dtype: head.dtype.name.to_owned(),
                start: 0,
                stride: 0,
            });
            if let Some(embedding) = mapping.tensors.iter().position(|t| t.role == "embedding") {
                mapping.head_copy = Some((embedding, head));
            }
        }
        mapping.aliases.push(Alias {
            role: "output".to_owned(),
            of: "embedding".to_owned(),
            source,
        });
    }

    fn experts(&mut self, group: &ExpertGroup) -> Option<MappedExperts> {
        let before = self.missing.len() + self.problems.len();
        let prefix = self.actual(&group.prefix);
        let gate_up = self.fused(
            group,
            &prefix,
            "gate_up_proj",
            [2 * group.inner, group.hidden],
        );
        let down = self.fused(group, &prefix, "down_proj", [group.hidden, group.inner]);
        let parts = [
            (Part::Gate, "gate", &gate_up, [group.inner, group.hidden], 0),
            (Part::Up, "up", &gate_up, [group.inner, group.hidden], 1),
            (Part::Down, "down", &down, [group.hidden, group.inner], 0),
        ];
        let mut found = Vec::new();
        for (part, word, fused, shape, half) in parts {
            let of_layer = match fused {
                Some(place) => split(place, part, shape, half, group.count),
                None => self.singles(group, &prefix, part, word, shape),
            };
            found.extend(of_layer);
        }
        let whole = found.len() == 3 && before == self.missing.len() + self.problems.len();
        whole.then_some(MappedExperts {
            layer: group.layer,
            count: group.count,
            parts: found,
        })
    }

    /// One tensor that holds a matrix of all experts; no `.weight` stands behind its name.
    fn fused(
        &mut self,
        group: &ExpertGroup,
        prefix: &str,
        word: &str,
        shape: [u64; 2],
    ) -> Option<Place<'a>> {
        let place = self.take(&format!("{prefix}{word}"))?;
        let singles = match word {
            "down_proj" => &["down_proj"][..],
            _ => &["gate_proj", "up_proj"],
        };
        let first = singles
            .iter()
            .map(|single| format!("{prefix}0.{single}.weight"));
        if let Some(single) = first
            .into_iter()
            .find(|name| self.free.contains_key(name.as_str()))
        {
            self.problems.push(Problem::BothForms {
                layer: group.layer,
                fused: place.1.name.clone(),
                single,
            });
        }
        self.check(&place, &[group.count, shape[0], shape[1]]);
        // Handed on even if it does not fit, so that its parts are not reported as missing too.
        Some(place)
    }

    fn singles(
        &mut self,
        group: &ExpertGroup,
        prefix: &str,
        part: Part,
        word: &'static str,
        shape: [u64; 2],
    ) -> Option<MappedPart> {
        let mut ranges = Vec::new();
        let mut dtype: Option<Dtype> = None;
        for expert in 0..group.count {
            let name = format!("{prefix}{expert}.{word}_proj.weight");
            let Some(place) = self.take(&name) else {
                if !self.is_unavailable(&name) {
                    self.missing.push(name);
                }
                continue;
            };
            if !self.check(&place, &shape) {
                continue;
            }
            let found = place.1.dtype;
            let first = *dtype.get_or_insert(found);
            if first != found {
                self.problems.push(Problem::MixedExperts {
                    layer: group.layer,
                    part: word,
                    first: first.name,
                    other: found.name,
                    tensor: name,
                });
            }
            ranges.push(range(&place, 0, place.1.length));
        }
        let whole = ranges.len() as u64 == group.count;
        let dtype = dtype.filter(|_| whole)?;
        Some(MappedPart {
            part,
            shape,
            dtype,
            source: Source {
                name: format!("{prefix}{{expert}}.{word}_proj.weight"),
                dtype: dtype.name.to_owned(),
                start: 0,
                stride: 0,
            },
            ranges,
        })
    }

    /// Whatever has no place: kept if it is known to be harmless, otherwise a problem.
    fn leftovers(mut self, family: &Family, form: &Form, mut mapping: Mapping) -> Mapping {
        let (mut kept, mut beyond, mut more_experts, mut unmapped) =
            (vec![], vec![], vec![], vec![]);
        let experts: BTreeMap<String, u64> = form
            .experts
            .iter()
            .map(|group| (self.actual(&group.prefix), group.count))
            .collect();
        let layers = format!("{}layers.", self.prefix);
        for (name, place) in std::mem::take(&mut self.free) {
            let layer = name
                .strip_prefix(&layers)
                .and_then(|rest| number(rest, '.'));
            let expert = experts.iter().find_map(|(prefix, count)| {
                let number = number(name.strip_prefix(prefix)?, '.')?;
                Some(number >= *count)
            });
            if name.ends_with(".rotary_emb.inv_freq") {
                kept.push(name.to_owned());
                mapping
                    .tensors
                    .push(mapped(&format!("kept.{name}"), SegmentKind::Kept, place));
            } else if layer.is_some_and(|layer| layer >= form.layers) {
                beyond.push(name.to_owned());
            } else if expert == Some(true) {
                more_experts.push(name.to_owned());
            } else {
                unmapped.push(name.to_owned());
            }
        }
        if !kept.is_empty() {
            self.notes.push(Note::Kept { tensors: kept });
        }
        if !self.missing.is_empty() {
            self.problems.push(Problem::MissingTensors {
                tensors: self.missing,
            });
        }
        if !beyond.is_empty() {
            self.problems.push(Problem::BeyondLayers {
                layers: form.layers,
                tensors: beyond,
            });
        }
        if !more_experts.is_empty() {
            let experts = form.experts.first().map_or(0, |group| group.count);
            self.problems.push(Problem::BeyondExperts {
                experts,
                tensors: more_experts,
            });
        }
        if !unmapped.is_empty() {
            self.problems.push(Problem::Unmapped {
                family: family.name,
                tensors: unmapped,
            });
        }
        mapping
    }
}

/// The number that `text` begins with, up to `end`.
fn number(text: &str, end: char) -> Option<u64> {
    text.split(end).next()?.parse().ok()
}

fn range(place: &Place<'_>, start: u64, length: u64) -> Range {
    Range {
        shard: place.0,
        offset: place.1.offset + start,
        length,
    }
}

fn mapped(role: &str, segment: SegmentKind, place: Place<'_>) -> Mapped {
    let Entry {
        name, dtype, shape, ..
    } = place.1;
    Mapped {
        role: role.to_owned(),
        segment,
        shape: shape.clone(),
        dtype: *dtype,
        name: name.clone(),
        range: range(&place, 0, place.1.length),
    }
}

/// Cuts one matrix of every expert out of a fused tensor; `half` is its place among the matrices fused in a row.
fn split(
    place: &Place<'_>,
    part: Part,
    shape: [u64; 2],
    half: u64,
    count: u64,
) -> Option<MappedPart> {
    let entry = place.1;
    if count == 0 || !entry.length.is_multiple_of(count) {
        return None;
    }
    let stride = entry.length / count;
    let length = entry.dtype.bytes(shape[0].checked_mul(shape[1])?)?;
    let start = half * length;
    if start.checked_add(length)? > stride {
        return None;
    }
    Some(MappedPart {
        part,
        shape,
        dtype: entry.dtype,
        source: Source {
            name: entry.name.clone(),
            dtype: entry.dtype.name.to_owned(),
            start,
            stride,
        },
        ranges: (0..count)
            .map(|expert| range(place, expert * stride + start, length))
            .collect(),
    })
}
