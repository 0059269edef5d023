//! `qpx-run`: arguments in, words and an exit code out. The work is in the library.

use clap::Parser as _;
use qpx_console::Exit;
use qpx_run::{
    Error,
    cli::{Cli, Command},
    commands,
};
use std::{io, process::ExitCode};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match &cli.command {
        Some(Command::Logits(args)) => qpx_console::finish(commands::write_logits(args), args.json),
        Some(Command::Prove(args)) => qpx_console::finish(commands::prove(args), args.json),
        None => {
            let (mut out, mut notes) = (io::stdout(), io::stderr());
            match commands::continue_prompt(&cli.generate, &mut out, &mut notes) {
                // Whoever read the text has seen enough: more of it serves nobody.
                Err(Error::Output { reason }) if reason.kind() == io::ErrorKind::BrokenPipe => {
                    ExitCode::SUCCESS
                }
                other => qpx_console::finish_plain(other.map(|()| Exit::Success), false),
            }
        }
    }
}
