//! The command line of `qpx-inspect`.

use crate::{extract, verify};
use clap::{Args, Parser, Subcommand};
use qpx_console::Exit;
use std::path::PathBuf;

/// Say what a .qpx bundle is; verify it; take it apart.
#[derive(Debug, Parser)]
#[command(
    name = "qpx-inspect",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exits()),
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    show: Option<BundleArgs>,
}

const EXAMPLES: &str = "\
Examples:
  qpx-inspect coder.qpx                 what it is, on one screen
  qpx-inspect verify coder.qpx          check every byte
  qpx-inspect tensors coder.qpx --json  every tensor, for programs
  qpx-inspect extract coder.qpx --checkpoint -o coder/";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What the bundle is, on one screen (without a command: this)
    Show(BundleArgs),
    /// List the tensors: role, encoding, shape, bytes, offset, source
    Tensors(TensorsArgs),
    /// Check the bundle's bytes against their digests
    #[command(after_help = VERIFY_EXAMPLES, after_long_help = format!("{VERIFY_EXAMPLES}\n\n{}", exits()))]
    Verify(VerifyArgs),
    /// Draw where everything lies in the file
    Map(BundleArgs),
    /// Write out attached files, tensors, or the original checkpoint
    #[command(after_help = EXTRACT_EXAMPLES)]
    Extract(ExtractArgs),
}

/// A bundle, and how to report on it.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tensors`.
#[derive(Debug, Args)]
pub struct TensorsArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// One row for each expert, not for each layer's part
    #[arg(long)]
    pub experts: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  qpx-inspect verify coder.qpx
  qpx-inspect verify coder.qpx --expect-id 9f2c…  (64 digits, from someone you trust)

Without an id from elsewhere this shows accidents, not the work of someone who
sealed the bundle anew.";

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Check page 0, manifest, digests, stamps, attached files, and a sample of the tensors
    #[arg(long)]
    pub quick: bool,
    /// Demand this bundle id: 64 hex digits
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub expect_id: Option<String>,
    /// Threads that read [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXTRACT_EXAMPLES: &str = "\
Examples:
  qpx-inspect extract coder.qpx --attached -o files/
  qpx-inspect extract coder.qpx --attached tokenizer.json -o files/
  qpx-inspect extract coder.qpx --tensor layer.0.router -o router.safetensors
  qpx-inspect extract coder.qpx --checkpoint -o coder/";

/// Arguments of `extract`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["attached", "tensor", "checkpoint"])))]
pub struct ExtractArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Attached files: those named, or all but the source headers
    #[arg(long, value_name = "NAME", num_args = 0..)]
    pub attached: Option<Vec<String>>,
    /// Tensors, by role, as one safetensors file; block encodings become F32
    #[arg(long, value_name = "ROLE", num_args = 1..)]
    pub tensor: Option<Vec<String>>,
    /// The original checkpoint, byte for byte (of a lossless bundle)
    #[arg(long)]
    pub checkpoint: bool,
    /// The folder to write to; with --tensor the file
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Cli {
    /// Whether JSON is asked for.
    pub fn json(&self) -> bool {
        match &self.command {
            Some(Command::Show(a) | Command::Map(a)) => a.json,
            Some(Command::Tensors(a)) => a.json,
            Some(Command::Verify(a)) => a.json,
            Some(Command::Extract(a)) => a.json,
            None => self.show.as_ref().is_some_and(|a| a.json),
        }
    }

    /// The command; a bundle alone is to be shown.
    pub fn into_command(self) -> Command {
        let empty = BundleArgs {
            bundle: PathBuf::new(),
            json: false,
        };
        // clap demands a bundle where there is no command.
        self.command
            .unwrap_or_else(|| Command::Show(self.show.unwrap_or(empty)))
    }
}

impl VerifyArgs {
    /// What the library is asked for.
    pub fn request(&self) -> verify::Request {
        verify::Request {
            bundle: self.bundle.clone(),
            quick: self.quick,
            expect_id: self.expect_id.clone(),
            threads: self.threads.map_or(0, usize::from),
        }
    }
}

impl ExtractArgs {
    /// What the library is asked for.
    pub fn request(&self) -> extract::Request {
        let what = match (&self.attached, &self.tensor) {
            (Some(names), _) => extract::What::Attached(names.clone()),
            (None, Some(roles)) => extract::What::Tensors(roles.clone()),
            (None, None) => extract::What::Checkpoint,
        };
        extract::Request {
            bundle: self.bundle.clone(),
            what,
            output: self.output.clone(),
            force: self.force,
        }
    }
}

fn parse_id(text: &str) -> Result<String, String> {
    let id = text.to_ascii_lowercase();
    match id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => Ok(id),
        false => Err(format!(
            "a bundle id has 64 hex digits, this has {} characters",
            text.chars().count()
        )),
    }
}

fn exits() -> String {
    Exit::help(&[
        Exit::Success,
        Exit::Failure,
        Exit::Usage,
        Exit::OutputRefused,
        Exit::Altered,
        Exit::CutShort,
        Exit::NotABundle,
        Exit::Newer,
        Exit::RefusedByPolicy,
    ])
}
