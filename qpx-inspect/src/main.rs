//! `qpx-inspect`: arguments in, words and an exit code out. The work is in the library.

use clap::Parser as _;
use qpx_console::{Report, finish};
use qpx_inspect::{
    Error,
    cli::{Cli, Command},
    extract, map, show, tensors, verify,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.json();
    finish(run(cli), json)
}

fn run(cli: Cli) -> Result<Box<dyn Report>, Error> {
    Ok(match cli.into_command() {
        Command::Show(a) => Box::new(show::run(&a.bundle)?),
        Command::Tensors(a) => Box::new(tensors::run(&a.bundle, a.experts)?),
        Command::Map(a) => Box::new(map::run(&a.bundle)?),
        Command::Verify(a) => {
            let progress = qpx_console::progress(a.json);
            Box::new(verify::run(&a.request(), progress.as_ref())?)
        }
        Command::Extract(a) => {
            let progress = qpx_console::progress(a.json);
            Box::new(extract::run(&a.request(), progress.as_ref())?)
        }
    })
}
