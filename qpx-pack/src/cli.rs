//! The command line of `qpx-pack`.

use crate::{Error, Recipe, Request};
use clap::Parser;
use qpx_console::Exit;
use std::path::PathBuf;

/// Turn a Hugging Face checkpoint into a sealed .qpx bundle.
///
/// The checkpoint is read once from front to back; until the bundle is complete, read back and verified, nothing bears its
/// name. The same checkpoint, origin, recipe and version give the same bytes on every machine.
#[derive(Debug, Parser)]
#[command(name = "qpx-pack", version, after_long_help = long_help())]
pub struct Cli {
    /// The checkpoint's folder: config.json, tokenizer.json, safetensors files
    #[arg(value_name = "DIR")]
    pub source: PathBuf,
    /// The bundle to write
    #[arg(
        short,
        long,
        value_name = "OUT.qpx",
        required_unless_present = "dry_run"
    )]
    pub output: Option<PathBuf>,
    /// lossless, q8, q4, q3, q2, or a recipe file
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "lossless")]
    pub recipe: String,
    /// Where the checkpoint came from, to be recorded (hf:owner/name)
    #[arg(long, value_name = "TEXT")]
    pub origin: Option<String>,
    /// Print the plan and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replace the output if it exists, once the new bundle is verified
    #[arg(long)]
    pub force: bool,
    /// Print the result (or the plan, or the error) as JSON
    #[arg(long)]
    pub json: bool,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Carry NaN and infinite weights as they are (lossless recipes only)
    #[arg(long)]
    pub allow_nonfinite: bool,
}

fn long_help() -> String {
    let exits = Exit::help(&[
        Exit::Success,
        Exit::Failure,
        Exit::Usage,
        Exit::BadSource,
        Exit::OutputRefused,
    ]);
    format!("{EXAMPLES}\n\n{exits}")
}

const EXAMPLES: &str = "\
Examples:
  qpx-pack Qwen3-Coder-30B-A3B -o coder.qpx --recipe q4
  qpx-pack Llama-3.2-1B -o llama.qpx --origin hf:meta-llama/Llama-3.2-1B
  qpx-pack Qwen3-8B --recipe mine.toml --dry-run";

impl TryFrom<&Cli> for Request {
    type Error = Error;

    fn try_from(cli: &Cli) -> Result<Self, Error> {
        Ok(Self {
            source: cli.source.clone(),
            output: cli.output.clone(),
            recipe: Recipe::named(&cli.recipe)?,
            origin: cli.origin.clone(),
            force: cli.force,
            threads: cli.threads.map_or(0, usize::from),
            allow_nonfinite: cli.allow_nonfinite,
        })
    }
}
