//! The plan: everything that can be known before a weight is read. It lists every problem at once, or says where each byte goes.

mod attach;
mod pieces;
pub mod summary;

use crate::{
    Error, Request,
    family::{self, map::Mapping},
    note::Note,
    output,
    problem::Problem,
    recipe::Recipe,
    source::{Checkpoint, shard::State},
};
pub(crate) use pieces::{Piece, Target};
use qpx_format::{
    Draft, Layout,
    layout::{DraftExperts, DraftPart, DraftTensor},
    manifest::{Claimed, Origin, Recipe as Stated, SegmentKind, Source, Tool},
};
use std::{fs::File, os::unix::fs::FileExt as _, path::PathBuf};
use summary::Summary;

/// A packing that can begin.
#[derive(Debug)]
pub struct Plan {
    /// What a user should know about it.
    pub summary: Summary,
    pub(crate) layout: Layout,
    pub(crate) shards: Vec<ShardPlan>,
}

/// What becomes of one shard, from front to back.
#[derive(Debug)]
pub(crate) struct ShardPlan {
    pub name: String,
    pub path: PathBuf,
    pub state: State,
    /// The header as it was when the plan was made.
    pub header: Vec<u8>,
    /// The data behind it, without gaps.
    pub pieces: Vec<Piece>,
}

/// Plans what `request` asks for. Nothing is written, and no weight is read but a tied output layer that is stored all the same.
///
/// # Errors
/// [`Error::Checkpoint`] with all problems, [`Error::Recipe`], [`Error::Output`], [`Error::Read`], or [`Error::Format`] when the
/// format has no room for the model.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    if request.allow_nonfinite && !request.recipe.is_lossless() {
        return Err(Error::Usage {
            flag: "--allow-nonfinite",
            reason: "goes with lossless recipes only: an encoded NaN would be a wrong number",
        });
    }
    let not_ours = match &request.output {
        Some(output) => output::names_within(&request.source, output),
        None => Vec::new(),
    };
    let mut checkpoint = Checkpoint::open(&request.source, &not_ours)?;
    if let Some(output) = &request.output {
        output::check(output, &checkpoint.files, request.force)?;
    }
    let mapping = match find(&mut checkpoint) {
        Some(found) if checkpoint.problems.is_empty() => found,
        _ => return Err(unfit(request, checkpoint.problems)),
    };
    let (family, architecture, mapping) = mapping;
    let mut problems = Vec::new();
    compare_head(&checkpoint, &mapping, &mut problems)?;
    let (tensors, experts) = choose(
        &request.recipe,
        &mapping,
        &mut checkpoint.notes,
        &mut problems,
    );
    let attached = attach::collect(&mut checkpoint);
    problems.append(&mut checkpoint.problems);
    if !problems.is_empty() {
        return Err(unfit(request, problems));
    }
    let draft = Draft {
        requires: Vec::new(),
        architecture,
        claimed: Claimed {
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            origin: Origin {
                stated: request.origin.clone(),
                files: attached.files,
                dropped: Vec::new(),
            },
            licence: attached.licence,
            recipe: Stated {
                name: request.recipe.name.clone(),
                text: request.recipe.text.clone(),
            },
        },
        attached: attached.drafts,
        tensors,
        experts,
        aliases: mapping.aliases.clone(),
    };
    let layout = draft.layout()?;
    let pieces = pieces::of_shards(&checkpoint, &mapping, &layout);
    let summary = Summary::new(request, family, &checkpoint, &layout, &attached.left_out);
    let shards = checkpoint
        .shards
        .into_iter()
        .zip(pieces)
        .map(|(shard, pieces)| ShardPlan {
            name: shard.name,
            path: shard.path,
            state: shard.state,
            header: shard.header,
            pieces,
        })
        .collect();
    Ok(Plan {
        summary,
        layout,
        shards,
    })
}

fn unfit(request: &Request, problems: Vec<Problem>) -> Error {
    Error::Checkpoint {
        folder: request.source.clone(),
        problems,
    }
}

type Found = (
    &'static str,
    serde_json::Map<String, serde_json::Value>,
    Mapping,
);

/// Resolves the configuration and finds the tensors; problems stay in the checkpoint's list.
fn find(checkpoint: &mut Checkpoint) -> Option<Found> {
    let mut problems = std::mem::take(&mut checkpoint.problems);
    let mut notes = std::mem::take(&mut checkpoint.notes);
    let found = (|| {
        let config = checkpoint.config.as_ref()?;
        let names = checkpoint.shards.iter().flat_map(|shard| &shard.entries);
        if let Some(scheme) = family::scheme(config, names.map(|entry| entry.name.as_str())) {
            problems.push(scheme);
            return None;
        }
        let (family, form) =
            family::resolve(config, checkpoint.generation.as_ref(), &mut problems)?;
        let mapping = family::map::map(family, &form, checkpoint, &mut notes, &mut problems);
        let mut architecture = form.architecture;
        architecture.insert("tied_output".to_owned(), mapping.tied.into());
        attach::check_tokens(checkpoint, &architecture, form.rows, &mut notes);
        Some((family.name, architecture, mapping))
    })();
    checkpoint.problems = problems;
    checkpoint.notes = notes;
    found
}

/// A tied output layer that is stored all the same must equal the embedding.
fn compare_head(
    checkpoint: &Checkpoint,
    mapping: &Mapping,
    problems: &mut Vec<Problem>,
) -> Result<(), Error> {
    let Some((embedding, head)) = &mapping.head_copy else {
        return Ok(());
    };
    let Some(embedding) = mapping.tensors.get(*embedding) else {
        return Ok(());
    };
    let mut differs = |reason: String| {
        problems.push(Problem::HeadDiffers {
            embedding: embedding.name.clone(),
            head: head.name.clone(),
            reason,
        });
    };
    if embedding.dtype != head.dtype {
        differs(format!("{} and {}", head.dtype.name, embedding.dtype.name));
        return Ok(());
    }
    let open = |range: &family::map::Range| {
        let shard = checkpoint.shards.get(range.shard);
        let path = shard.map(|shard| shard.path.clone()).unwrap_or_default();
        let reading = |source| Error::Read {
            file: path.clone(),
            doing: "reading",
            source,
        };
        File::open(&path)
            .map(|file| (file, path.clone()))
            .map_err(reading)
    };
    let (ours, theirs) = (open(&embedding.range)?, open(&head.range)?);
    let chunk = 4 << 20;
    let (mut left, mut right) = (vec![0; chunk], vec![0; chunk]);
    let mut done = 0;
    while done < embedding.range.length {
        let size = usize::try_from(embedding.range.length - done)
            .unwrap_or(chunk)
            .min(chunk);
        for ((file, path), range, buffer) in [
            (&ours, &embedding.range, &mut left),
            (&theirs, &head.range, &mut right),
        ] {
            file.read_exact_at(&mut buffer[..size], range.offset + done)
                .map_err(|source| Error::Read {
                    file: path.clone(),
                    doing: "reading",
                    source,
                })?;
        }
        if let Some(at) = left[..size]
            .iter()
            .zip(&right[..size])
            .position(|(a, b)| a != b)
        {
            let width = embedding.dtype.width();
            differs(format!(
                "the first difference is at index {}",
                (done + at as u64) / width
            ));
            return Ok(());
        }
        done += size as u64;
    }
    Ok(())
}

/// Gives each tensor its encoding.
fn choose(
    recipe: &Recipe,
    mapping: &Mapping,
    notes: &mut Vec<Note>,
    problems: &mut Vec<Problem>,
) -> (Vec<DraftTensor>, Vec<DraftExperts>) {
    let mut chooser = Chooser {
        recipe,
        used: vec![false; recipe.rules()],
        notes,
        problems,
    };
    let mut tensors = Vec::new();
    for tensor in &mapping.tensors {
        let own = tensor.dtype.name.to_ascii_lowercase();
        let encoding = if tensor.segment == SegmentKind::Kept {
            own
        } else {
            chooser.encoding(&tensor.role, &tensor.shape, own)
        };
        tensors.push(DraftTensor {
            role: tensor.role.clone(),
            encoding,
            shape: tensor.shape.clone(),
            segment: tensor.segment,
            source: Source {
                name: tensor.name.clone(),
                dtype: tensor.dtype.name.to_owned(),
                start: 0,
                stride: 0,
            },
        });
    }
    let mut experts = Vec::new();
    for layer in &mapping.experts {
        let parts = layer.parts.iter().map(|part| {
            let own = part.dtype.name.to_ascii_lowercase();
            // A layer's experts share an encoding: rules see them as expert 0.
            let role = format!("layer.{}.expert.0.{}", layer.layer, part.part.as_str());
            DraftPart {
                part: part.part,
                encoding: chooser.encoding(&role, &part.shape, own),
                shape: part.shape.to_vec(),
                source: part.source.clone(),
            }
        });
        experts.push(DraftExperts {
            layer: layer.layer,
            segment: SegmentKind::Experts,
            count: layer.count,
            parts: parts.collect(),
        });
    }
    chooser.finish();
    (tensors, experts)
}

struct Chooser<'a> {
    recipe: &'a Recipe,
    used: Vec<bool>,
    notes: &'a mut Vec<Note>,
    problems: &'a mut Vec<Problem>,
}

impl Chooser<'_> {
    fn encoding(&mut self, role: &str, shape: &[u64], own: String) -> String {
        let columns = shape.last().copied().unwrap_or(1);
        let choice = self.recipe.choose(role, shape.len(), columns);
        if let Some(used) = choice.rule.and_then(|number| self.used.get_mut(number)) {
            *used = true;
        }
        let Some(encoding) = choice.encoding else {
            return own;
        };
        let encoder = qpx_kernels::encoding::by_name(encoding.name).and_then(|e| e.encode);
        if encoding.name != own && encoder.is_none() {
            self.problems.push(Problem::Recipe {
                role: role.to_owned(),
                reason: format!("there is no encoder for {}", encoding.name),
            });
        }
        if let Some(wide) = choice.instead_of {
            self.narrowed(role, columns, wide.name, encoding.name);
        }
        encoding.name.to_owned()
    }

    /// One note for all tensors that are alike.
    fn narrowed(&mut self, role: &str, columns: u64, wide: &str, narrow: &str) {
        let role = crate::problem::kind(role);
        for note in self.notes.iter_mut() {
            if let Note::Narrow {
                roles,
                columns: c,
                wide: w,
                narrow: n,
            } = note
                && (*c, w.as_str(), n.as_str()) == (columns, wide, narrow)
            {
                if !roles.contains(&role) {
                    roles.push(role);
                }
                return;
            }
        }
        self.notes.push(Note::Narrow {
            roles: vec![role],
            columns,
            wide: wide.to_owned(),
            narrow: narrow.to_owned(),
        });
    }

    fn finish(self) {
        // A built-in recipe has rules for all families; one that meets nothing here says nothing.
        let built_in = crate::recipe::BUILT_IN
            .iter()
            .any(|(name, _)| *name == self.recipe.name);
        for (number, used) in self.used.iter().enumerate() {
            if !used && !built_in {
                self.notes.push(Note::UnusedRule {
                    pattern: self.recipe.patterns(number),
                });
            }
        }
    }
}
