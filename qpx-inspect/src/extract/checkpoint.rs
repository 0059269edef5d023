//! The original checkpoint, byte for byte: each shard from its header and the stored tensors, proven by its SHA-256
//! before it gets its name.

use super::{
    Extracted, Request, Written, check_outputs,
    header::{self, Data},
    leaves, make_folder_of,
    pieces::{self, Piece},
    place,
};
use crate::Error;
use qpx_console::Progress;
use qpx_format::{
    Bundle,
    manifest::{Became, SourceFile},
    publish::Partial,
};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, os::unix::fs::FileExt as _, path::Path};

pub fn run(
    bundle: &Bundle,
    request: &Request,
    progress: &dyn Progress,
    extracted: &mut Extracted,
) -> Result<(), Error> {
    let origin = &bundle.manifest().claimed.origin;
    let mut reasons = pieces::inexact(bundle);
    let held = |f: &&SourceFile| f.became != Became::LeftOut;
    let files: Vec<&SourceFile> = origin.files.iter().filter(held).collect();
    for file in files
        .iter()
        .filter(|f| attached_name(f).is_none_or(|n| bundle.attached_named(&n).is_none()))
    {
        reasons.push(match file.became {
            Became::Weights => format!("the header of {} is not attached", file.name),
            _ => format!("{} is not attached", file.name),
        });
    }
    if !files.iter().any(|f| f.became == Became::Weights) {
        reasons.push("it names no weight files".to_owned());
    }
    if !reasons.is_empty() {
        return Err(Error::NotExact {
            file: request.bundle.clone(),
            recipe: bundle.manifest().claimed.recipe.name.clone(),
            reasons,
        });
    }
    let outputs: Vec<_> = files
        .iter()
        .map(|f| place(&request.output, &f.name))
        .collect();
    check_outputs(bundle, &outputs, request.force)?;

    let sources = pieces::by_source(bundle);
    progress.begin("restoring", files.iter().map(|f| f.size).sum());
    for (file, output) in files.into_iter().zip(outputs) {
        make_folder_of(&output)?;
        let job = Job {
            bundle,
            file,
            progress,
        };
        job.restore(&sources, &output, request.force)?;
        extracted.files.push(Written {
            path: output.display().to_string(),
            bytes: file.size,
            sha256: file.sha256.clone(),
        });
    }
    let left_out = origin.files.iter().filter(|f| f.became == Became::LeftOut);
    extracted.left_out = left_out.map(|f| f.name.clone()).collect();
    Ok(())
}

/// The attached file that holds a file of the checkpoint, or the header of a shard.
fn attached_name(file: &SourceFile) -> Option<String> {
    match file.became {
        Became::Weights => Some(format!("source/{}.header", file.name)),
        Became::Attached => Some(file.name.clone()),
        Became::LeftOut => None,
    }
}

/// One file to restore.
struct Job<'a> {
    bundle: &'a Bundle,
    file: &'a SourceFile,
    progress: &'a dyn Progress,
}

/// Where a restored file goes: hashed and written from front to back.
struct Sink<'a> {
    partial: &'a Partial,
    hash: Sha256,
    at: u64,
}

impl Job<'_> {
    fn wrong(&self, reason: String) -> Error {
        Error::NotRestored {
            bundle: self.bundle.path().to_path_buf(),
            name: self.file.name.clone(),
            reason,
        }
    }

    fn restore(
        &self,
        sources: &BTreeMap<String, Vec<Piece>>,
        output: &Path,
        force: bool,
    ) -> Result<(), Error> {
        let entry = attached_name(self.file)
            .and_then(|name| self.bundle.attached_named(&name))
            .ok_or_else(|| self.wrong("it is not attached".to_owned()))?;
        // A header's length is bounded by what the format allows for attached files.
        let start = self.bundle.attached(entry)?;
        let shard = self.file.became == Became::Weights;
        let data = match shard {
            true => header::parse(&start, self.file.size).map_err(|e| self.wrong(e))?,
            false => Vec::new(),
        };
        let plan = self.plan(&data, sources)?;

        let partial = Partial::create(output)?;
        partial.reserve(self.file.size)?;
        let mut sink = Sink {
            partial: &partial,
            hash: Sha256::new(),
            at: 0,
        };
        self.write(&mut sink, &start)?;
        for piece in plan {
            leaves::each(self.bundle, &piece.extent, |bytes| {
                self.write(&mut sink, bytes)
            })?;
        }
        let (written, found) = (sink.at, qpx_console::hex(&sink.hash.finalize()));
        if written != self.file.size {
            return Err(self.wrong(format!("{written} bytes, {} were packed", self.file.size)));
        }
        if self.file.sha256.as_ref() != Some(&found) {
            let packed = self.file.sha256.as_deref().unwrap_or("no SHA-256");
            return Err(self.wrong(format!("sha256 {found}, {packed} was packed")));
        }
        Ok(partial.publish(force)?)
    }

    fn write(&self, sink: &mut Sink<'_>, bytes: &[u8]) -> Result<(), Error> {
        let written = sink.partial.file().write_all_at(bytes, sink.at);
        written.map_err(|source| Error::Io {
            file: sink.partial.path().to_path_buf(),
            doing: "write",
            source,
        })?;
        sink.hash.update(bytes);
        let done = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        sink.at = sink.at.saturating_add(done);
        self.progress.advance(done);
        Ok(())
    }

    /// The stored pieces that make up the shard's data, in order.
    fn plan<'p>(
        &self,
        data: &[Data],
        sources: &'p BTreeMap<String, Vec<Piece>>,
    ) -> Result<Vec<&'p Piece>, Error> {
        let mut plan = Vec::new();
        for tensor in data {
            let pieces = sources.get(&tensor.name);
            let pieces = pieces.map_or(&[][..], Vec::as_slice);
            let mut at = 0;
            // Where two roles share the same source bytes (a copied head), the first will do.
            for piece in pieces.iter().filter(|p| p.extent.length > 0) {
                if piece.start == at {
                    at = at.saturating_add(piece.extent.length);
                    plan.push(piece);
                }
            }
            if at != tensor.length {
                return Err(self.wrong(format!(
                    "{at} of {} bytes of {} are in the bundle",
                    tensor.length, tensor.name
                )));
            }
        }
        Ok(plan)
    }
}
