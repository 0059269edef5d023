//! Turns a Hugging Face checkpoint into a sealed `.qpx` bundle, or says all that is wrong with it.
//!
//! [`plan()`] reads headers and configuration, checks everything, and lays the bundle out; [`run`] then reads each shard once
//! from front to back, encodes, writes, reads back, and gives the bundle its name. The library neither prints nor exits.
//!
//! ```no_run
//! use qpx_pack::{Recipe, Request, Silent};
//!
//! let mut request = Request::new("Qwen3-Coder-30B-A3B", "coder.qpx");
//! request.recipe = Recipe::named("q4")?;
//! let packed = qpx_pack::run(&request, &Silent)?;
//! println!("{}", packed.plan.to_text());
//! # Ok::<(), qpx_pack::Error>(())
//! ```

pub mod cli;
mod error;
mod family;
mod note;
mod output;
pub mod plan;
pub mod problem;
pub mod recipe;
pub mod source;
mod stream;

pub use error::Error;
pub use note::Note;
pub use output::OutputError;
pub use plan::{Plan, plan, summary::Summary};
pub use problem::Problem;
pub use qpx_console::{Progress, Silent};
pub use recipe::Recipe;

use qpx_console::{Report, exact, hex};
use qpx_format::Writer;
use std::path::PathBuf;

/// What is to be packed, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The checkpoint's folder.
    pub source: PathBuf,
    /// The bundle to write; a mere plan may do without.
    pub output: Option<PathBuf>,
    /// How tensors are encoded.
    pub recipe: Recipe,
    /// Where the checkpoint came from, as the user states it.
    pub origin: Option<String>,
    /// Replace an existing output.
    pub force: bool,
    /// Worker threads; 0 stands for as many as the machine has cores.
    pub threads: usize,
    /// Carry NaN and infinities instead of refusing them. For lossless recipes only.
    pub allow_nonfinite: bool,
}

impl Request {
    /// A lossless packing of `source` into `output`.
    pub fn new(source: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        Self {
            source: source.into(),
            output: Some(output.into()),
            recipe: Recipe::lossless(),
            origin: None,
            force: false,
            threads: 0,
            allow_nonfinite: false,
        }
    }

    fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            stated => stated,
        }
    }
}

/// A sealed bundle.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Packed {
    /// Where it is.
    pub output: PathBuf,
    /// BLAKE3 of its page 0, in hex.
    pub id: String,
    /// Its bytes.
    pub bytes: u64,
    /// What the plan said.
    pub plan: Summary,
}

impl Report for Packed {
    fn text(&self) -> String {
        format!(
            "{}\nsealed {}\n  id      {}\n  size    {}\n",
            self.plan.to_text(),
            self.output.display(),
            self.id,
            exact(self.bytes)
        )
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// What a call of the program came to.
#[derive(Debug)]
pub enum Outcome {
    /// A dry run.
    Planned(Summary),
    /// A bundle.
    Packed(Packed),
}

impl Report for Outcome {
    fn text(&self) -> String {
        match self {
            Self::Planned(summary) => summary.to_text(),
            Self::Packed(packed) => packed.text(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Planned(summary) => serde_json::to_value(summary).unwrap_or_default(),
            Self::Packed(packed) => packed.json(),
        }
    }
}

/// Packs: plans, streams, seals. Until the bundle is verified nothing bears its name; after a failure nothing is left.
///
/// # Errors
/// Those of [`plan()`]; [`Error::NonFinite`], [`Error::TooLarge`], [`Error::Changed`], [`Error::Read`] for what the weights or the
/// source's disk hold in store, and [`Error::Format`] for what the output's does.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Packed, Error> {
    let Some(output) = request.output.clone() else {
        return Err(Error::Usage {
            flag: "--output",
            reason: "is needed to write a bundle",
        });
    };
    progress.begin("planning", 0);
    let Plan {
        summary,
        layout,
        shards,
    } = plan(request)?;
    let threads = request.threads();
    let bytes = layout.content_length;
    let mut writer = Writer::create(&output, layout)?;
    writer.set_threads(threads);
    progress.begin("packing", summary.source_bytes);
    stream::run(&shards, &writer, threads, request.allow_nonfinite, progress)?;
    progress.begin("verifying", bytes);
    let sealed = writer.seal(request.force, &|done| progress.advance(done))?;
    progress.end();
    Ok(Packed {
        output,
        id: hex(&sealed.id),
        bytes: sealed.length,
        plan: summary,
    })
}
