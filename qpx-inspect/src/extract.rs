//! `extract`: attached files, tensors, or the original checkpoint, out of a bundle.
//!
//! Nothing is written over without being told to, and a file gets its name only when its bytes are proven: leaf by leaf
//! against the digest table, a restored file as a whole against the SHA-256 of the original.

mod attached;
mod checkpoint;
mod header;
mod leaves;
mod pieces;
mod tensors;

use crate::{Error, table::Table};
use qpx_console::{Progress, Report, exact, harmless, size};
use qpx_format::Bundle;
use serde::Serialize;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What is to be extracted, and where to.
#[derive(Clone, Debug)]
pub struct Request {
    /// The bundle.
    pub bundle: PathBuf,
    /// What.
    pub what: What,
    /// The folder; for tensors the file.
    pub output: PathBuf,
    /// Replace files that exist.
    pub force: bool,
}

/// What is to be extracted.
#[derive(Clone, Debug)]
pub enum What {
    /// Attached files by name; none stands for all but the source headers.
    Attached(Vec<String>),
    /// Tensors by role.
    Tensors(Vec<String>),
    /// The original files.
    Checkpoint,
}

/// What was written.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Extracted {
    /// The bundle.
    pub bundle: String,
    /// The bundle's id.
    pub id: String,
    /// The files, in the order in which they were written.
    pub files: Vec<Written>,
    /// Files of the checkpoint that the bundle does not hold.
    pub left_out: Vec<String>,
}

/// A file that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// Where.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// The SHA-256 that proves it to be the original.
    pub sha256: Option<String>,
}

/// Extracts.
///
/// # Errors
/// [`Error::Exist`], [`Error::IsBundle`] before anything is written; [`Error::NoAttached`], [`Error::NoTensor`],
/// [`Error::NotExact`] for what the bundle does not have; [`Error::Format`] for altered bytes and failing disks.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Extracted, Error> {
    let bundle = Bundle::open(&request.bundle)?;
    let mut extracted = Extracted {
        bundle: request.bundle.display().to_string(),
        id: qpx_console::hex(&bundle.id()),
        ..Extracted::default()
    };
    let result = match &request.what {
        What::Attached(names) => attached::run(&bundle, request, names, &mut extracted),
        What::Tensors(roles) => tensors::run(&bundle, request, roles, progress, &mut extracted),
        What::Checkpoint => checkpoint::run(&bundle, request, progress, &mut extracted),
    };
    progress.end();
    result.map(|()| extracted)
}

/// Checks that all outputs may be written, before the first one is.
fn check_outputs(bundle: &Bundle, outputs: &[PathBuf], force: bool) -> Result<(), Error> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let of_bundle = identity(bundle.path());
    for output in outputs {
        if of_bundle.is_some() && identity(output) == of_bundle {
            return Err(Error::IsBundle {
                file: output.clone(),
            });
        }
    }
    let there = outputs.iter().filter(|o| fs::symlink_metadata(o).is_ok());
    let files: Vec<PathBuf> = there.cloned().collect();
    match files.is_empty() || force {
        true => Ok(()),
        false => Err(Error::Exist { files }),
    }
}

/// The place of `name` in `folder`. The format allows no name that leads out of it.
fn place(folder: &Path, name: &str) -> PathBuf {
    name.split('/')
        .fold(folder.to_path_buf(), |path, part| path.join(part))
}

/// Makes the folder that `output` is to lie in.
fn make_folder_of(output: &Path) -> Result<(), Error> {
    let Some(folder) = output.parent().filter(|f| !f.as_os_str().is_empty()) else {
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(|source| Error::Io {
        file: folder.to_path_buf(),
        doing: "make the folder",
        source,
    })
}

impl Report for Extracted {
    fn text(&self) -> String {
        let mut table = Table::new(&["written", "bytes", "proven by"], &[1]);
        for file in &self.files {
            table.row([
                file.path.clone(),
                size(file.bytes),
                match &file.sha256 {
                    Some(sha256) => format!("sha256 {}…", &sha256.get(..16).unwrap_or(sha256)),
                    None => "its leaves' digests".to_owned(),
                },
            ]);
        }
        let total = self.files.iter().map(|f| f.bytes).sum();
        let mut text = table.text("");
        text += &format!("\n{} files, {}\n", self.files.len(), exact(total));
        if !self.left_out.is_empty() {
            text += &format!("not in the bundle: {}\n", self.left_out.join(", "));
        }
        harmless(&text)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
