//! `qpx-run`: arguments in, words and an exit code out. The work is in the library.

use clap::Parser as _;
use qpx_console::Exit;
use qpx_run::{
    Error,
    cli::{Cli, Command},
    commands,
};
use std::{
    io::{self, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    let exit = match work(&Cli::parse()) {
        Ok(exit) => exit,
        // Whoever reads has seen enough.
        Err(Error::Output { reason }) if reason.kind() == io::ErrorKind::BrokenPipe => {
            Exit::Failure
        }
        Err(error) => {
            let mut stderr = io::stderr();
            let _ = writeln!(stderr, "error: {error}");
            if let Some(hint) = error.hint() {
                let _ = writeln!(stderr, "\nhint: {hint}");
            }
            error.exit()
        }
    };
    ExitCode::from(exit as u8)
}

fn work(cli: &Cli) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    match &cli.command {
        Some(Command::Logits(args)) => {
            let written = commands::write_logits(args)?;
            let text = match args.json {
                true => json(serde_json::to_string_pretty(&written)),
                false => format!(
                    "wrote {}: {} rows of {} sequences, {} bytes",
                    args.output.display(),
                    written.tokens,
                    written.sequences,
                    written.bytes
                ),
            };
            writeln!(out, "{text}").map_err(|reason| Error::Output { reason })?;
            Ok(Exit::Success)
        }
        Some(Command::Prove(args)) => {
            let outcome = commands::prove(args)?;
            let text = match args.json {
                true => json(serde_json::to_string_pretty(&outcome)),
                false => outcome.to_string(),
            };
            writeln!(out, "{text}").map_err(|reason| Error::Output { reason })?;
            Ok(outcome.verdict.exit())
        }
        None => {
            commands::continue_prompt(&cli.generate, &mut out, &mut io::stderr())?;
            Ok(Exit::Success)
        }
    }
}
