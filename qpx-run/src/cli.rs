//! The command line: what is asked for. Nothing is done here.

use crate::{Error, Options, budget, sample::Overrides};
use clap::{Args, Parser, Subcommand, ValueEnum};
use qpx_console::Exit;
use qpx_kernels::{Level, ops::Activations};
use std::path::PathBuf;

fn long_help() -> String {
    let exits = Exit::help(&[
        Exit::Success,
        Exit::Failure,
        Exit::Usage,
        Exit::OutputRefused,
        Exit::Altered,
        Exit::CutShort,
        Exit::NotABundle,
        Exit::Newer,
        Exit::ProofDiffers,
        Exit::NoProof,
    ]);
    format!(
        "Examples:
  qpx-run coder.qpx --prompt \"fn main\" --raw     continue a text
  qpx-run coder.qpx --prompt \"What is a page?\"   answer through the bundle's chat template
  qpx-run prove coder.qpx --record                keep a decode proof in the bundle

A bundle that is called like a command needs a path: `qpx-run ./logits --prompt …`.

{exits}"
    )
}

/// Proves that a .qpx bundle decodes, on this machine
#[derive(Debug, Parser)]
#[command(
    name = "qpx-run",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    after_help = "A bundle that is called like a command needs a path: `qpx-run ./logits --prompt …`.",
    after_long_help = long_help()
)]
pub struct Cli {
    /// What to do; without one, the prompt is continued.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Continuing a prompt.
    #[command(flatten)]
    pub generate: Generate,
}

/// What else can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the raw f32 logits of given tokens, for checks
    Logits(Logits),
    /// Run fixed probes and compare the raw logits with the proof in the bundle
    Prove(Prove),
}

/// Continuing a prompt.
#[derive(Debug, Args)]
pub struct Generate {
    /// The bundle
    #[arg(required = true)]
    pub bundle: Option<PathBuf>,
    /// What to continue, or to answer through the bundle's chat template
    #[arg(long, value_name = "TEXT", required = true)]
    pub prompt: Option<String>,
    /// A system message for the chat template
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    pub system: Option<String>,
    /// Continue the prompt as it stands, without the chat template
    #[arg(long)]
    pub raw: bool,
    /// Most tokens to generate [default: 256, or fewer where the context ends]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// 0 is greedy; by default what the bundle's generation_config.json says, and greedy if it has none
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub temperature: Option<f32>,
    /// Draw from the K most probable tokens only
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_k: Option<u32>,
    /// Draw from the most probable tokens that together reach this probability
    #[arg(long, value_name = "P", value_parser = probability)]
    pub top_p: Option<f32>,
    /// Where random numbers begin; the same seed gives the same text [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the plan of memory and what the run took, on stderr
    #[arg(long)]
    pub stats: bool,
    /// How it is run.
    #[command(flatten)]
    pub machine: Machine,
}

/// Raw logits.
#[derive(Debug, Args)]
pub struct Logits {
    /// The bundle
    pub bundle: PathBuf,
    /// Token ids: a JSON array, an array of arrays, or ids with spaces between them
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// The safetensors file to write
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Also write which experts every token went through, and their weights
    #[arg(long)]
    pub routing: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,
    /// How it is run.
    #[command(flatten)]
    pub machine: Machine,
}

/// The decode proof.
#[derive(Debug, Args)]
pub struct Prove {
    /// The bundle
    pub bundle: PathBuf,
    /// Append the proof to the bundle's stamps if there is none for this arithmetic
    #[arg(long)]
    pub record: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub json: bool,
    /// How it is run.
    #[command(flatten)]
    pub machine: Machine,
}

/// How a model is run.
#[derive(Debug, Args)]
pub struct Machine {
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Positions to plan for [default: what the run needs, or 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// Bound of the whole process's memory, as in 6G [default: all experts are held]
    #[arg(long, value_name = "SIZE", value_parser = budget::parse_size)]
    pub memory: Option<u64>,
    /// Instruction set: scalar, avx2, avx512, neon [default: the best of this machine]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// How activations meet quantised weights
    #[arg(long, value_enum, default_value_t = Mode::Encoded)]
    pub activations: Mode,
}

/// How activations meet quantised weights.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    /// As 8-bit integers where the encoding says so
    Encoded,
    /// As floats, with dequantised weights
    F32,
}

impl Machine {
    /// The options for the engine.
    ///
    /// # Errors
    /// [`Error::Level`] for one that this machine lacks.
    pub fn options(&self) -> Result<Options, Error> {
        let level: Option<Level> = self.level.as_deref().map(str::parse).transpose()?;
        Ok(Options {
            threads: self.threads.map_or(0, usize::from),
            context: self.context.map(|n| n as usize),
            memory: self.memory,
            level,
            activations: match self.activations {
                Mode::Encoded => Activations::Encoded,
                Mode::F32 => Activations::F32,
            },
            ..Options::default()
        })
    }
}

impl Generate {
    /// What the user says about sampling.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            temperature: self.temperature,
            top_k: self.top_k.map(|k| k as usize),
            top_p: self.top_p,
            seed: self.seed,
        }
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match value.is_finite() && value >= 0.0 {
        true => Ok(value.abs()),
        false => Err("must be 0 or more".to_owned()),
    }
}

fn probability(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match value > 0.0 && value <= 1.0 {
        true => Ok(value),
        false => Err("must be above 0 and at most 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_prompt_needs_no_command() {
        let cli = Cli::try_parse_from(["qpx-run", "a.qpx", "--prompt", "x"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.generate.prompt.as_deref(), Some("x"));
        let cli = Cli::try_parse_from(["qpx-run", "prove", "a.qpx"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Prove(_))));
        let wrong: &[&[&str]] = &[
            &["qpx-run", "a.qpx"],
            &["qpx-run", "a.qpx", "--prompt", "x", "--temperature", "-1"],
            &["qpx-run", "a.qpx", "--prompt", "x", "--top-p", "0"],
            &[
                "qpx-run", "a.qpx", "--prompt", "x", "--raw", "--system", "y",
            ],
            &["qpx-run", "logits", "a.qpx", "--tokens", "t"],
        ];
        for line in wrong {
            assert!(Cli::try_parse_from(*line).is_err(), "{line:?}");
        }
    }
}
