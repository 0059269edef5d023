//! `qpx-pack`: arguments in, words and an exit code out. The work is in the library.

use clap::Parser as _;
use qpx_pack::{Error, Outcome, Request, cli::Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    qpx_console::finish(work(&cli), cli.json)
}

fn work(cli: &Cli) -> Result<Outcome, Error> {
    let request = Request::try_from(cli)?;
    if cli.dry_run {
        return Ok(Outcome::Planned(qpx_pack::plan(&request)?.summary));
    }
    let progress = qpx_console::progress(false);
    qpx_pack::run(&request, progress.as_ref()).map(Outcome::Packed)
}
