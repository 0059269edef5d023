//! `qpx-run logits`: raw logits of given tokens, as a safetensors file.
//!
//! Sequence i gives `sequence.i.logits` f32 [T, vocabulary]; with routing also, for each layer L with experts,
//! `sequence.i.experts.L` i32 [T, k], the most probable first, and `sequence.i.expert_weights.L` f32 [T, k].

use crate::{Engine, Error, Wanted, cpu::Choice};
use qpx_format::publish::Partial;
use serde_json::{Map, Value, json};
use std::{
    io::{BufWriter, Write as _},
    path::Path,
};

/// What was written.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Written {
    /// Sequences.
    pub sequences: usize,
    /// Rows of logits.
    pub tokens: usize,
    /// Bytes of the file.
    pub bytes: u64,
}

impl qpx_console::Report for Written {
    fn text(&self) -> String {
        let (rows, sequences) = (self.tokens, self.sequences);
        format!(
            "wrote {rows} rows of logits of {sequences} sequences, {} bytes\n",
            self.bytes
        )
    }

    fn json(&self) -> Value {
        json!(self)
    }
}

/// Writes the logits of all positions of `sequences` to `output`; an existing file is replaced only if `replace`.
///
/// # Errors
/// Those of [`Engine::feed`], [`Error::Output`], and [`Error::Format`] for an output that may not be written.
pub fn write(
    engine: &mut Engine,
    sequences: &[Vec<u32>],
    routing: bool,
    output: &Path,
    replace: bool,
) -> Result<Written, Error> {
    if output.exists() && !replace {
        return Err(qpx_format::Error::Exists {
            file: output.to_path_buf(),
        }
        .into());
    }
    let routing = routing && !engine.expert_layers().is_empty();
    let (header, length) = header(engine, sequences, routing);
    let partial = Partial::create(output)?;
    let mut file = BufWriter::with_capacity(1 << 20, partial.file());
    let failed = |reason| Error::Output { reason };
    file.write_all(&(header.len() as u64).to_le_bytes())
        .and_then(|()| file.write_all(&header))
        .map_err(failed)?;
    engine.record_routing(routing);
    let mut tokens = 0;
    for ids in sequences {
        engine.reset();
        let mut write = |_: usize, logits: &[f32]| -> Result<(), Error> {
            for x in logits {
                file.write_all(&x.to_le_bytes()).map_err(failed)?;
            }
            Ok(())
        };
        engine.feed(ids, Wanted::All, &mut write)?;
        tokens += ids.len();
        if routing {
            let choices = engine.take_routing();
            let layers = engine.expert_layers().len();
            for layer in 0..layers {
                let of: Vec<&Choice> = choices.iter().filter(|c| c.layer == layer).collect();
                let ids = of
                    .iter()
                    .flat_map(|c| &c.ids)
                    .flat_map(|id| id.to_le_bytes());
                let weights = of
                    .iter()
                    .flat_map(|c| &c.weights)
                    .flat_map(|w| w.to_le_bytes());
                let bytes: Vec<u8> = ids.chain(weights).collect();
                file.write_all(&bytes).map_err(failed)?;
            }
        }
    }
    engine.record_routing(false);
    file.flush().map_err(failed)?;
    drop(file);
    partial.publish(replace)?;
    Ok(Written {
        sequences: sequences.len(),
        tokens,
        bytes: 8 + header.len() as u64 + length,
    })
}

/// The header, padded with spaces to a multiple of 8, and the length of the data.
fn header(engine: &Engine, sequences: &[Vec<u32>], routing: bool) -> (Vec<u8>, u64) {
    let outline = engine.outline();
    let k = outline.experts_per_token;
    let mut entries = Map::new();
    let mut at = 0_u64;
    let mut entry = |name: String, dtype: &str, rows: usize, columns: usize| {
        let end = at + 4 * rows as u64 * columns as u64;
        let value = json!({"dtype": dtype, "shape": [rows, columns], "data_offsets": [at, end]});
        entries.insert(name, value);
        at = end;
    };
    for (i, ids) in sequences.iter().enumerate() {
        entry(
            format!("sequence.{i}.logits"),
            "F32",
            ids.len(),
            outline.vocabulary,
        );
        if routing {
            for layer in engine.expert_layers() {
                entry(format!("sequence.{i}.experts.{layer}"), "I32", ids.len(), k);
                entry(
                    format!("sequence.{i}.expert_weights.{layer}"),
                    "F32",
                    ids.len(),
                    k,
                );
            }
        }
    }
    let mut header = Value::Object(entries).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    (header, at)
}
