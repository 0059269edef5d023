//! `qpx-pack`: arguments in, words and an exit code out. The work is in the library.

use clap::Parser as _;
use qpx_pack::{Error, Request, Silent, cli::Cli};
use std::{
    io::{self, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match work(&cli) {
        Ok(text) => {
            let _ = writeln!(io::stdout(), "{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let mut stderr = io::stderr();
            let _ = writeln!(stderr, "error: {error}");
            if let Some(hint) = error.hint() {
                let _ = writeln!(stderr, "\nhint: {hint}");
            }
            ExitCode::from(error.exit() as u8)
        }
    }
}

fn work(cli: &Cli) -> Result<String, Error> {
    let request = Request::try_from(cli)?;
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    if cli.dry_run {
        let summary = qpx_pack::plan(&request)?.summary;
        return Ok(match cli.json {
            true => json(serde_json::to_string_pretty(&summary)),
            false => summary.to_text(),
        });
    }
    let packed = qpx_pack::run(&request, &Silent)?;
    Ok(match cli.json {
        true => json(serde_json::to_string_pretty(&packed)),
        false => packed.to_text(),
    })
}
