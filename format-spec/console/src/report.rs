//! The end of a program: what it found, in words or as JSON, and its exit code.

use crate::{Exit, Failure, print, tell_error};
use serde_json::Value;
use std::process::ExitCode;

/// What a command found.
pub trait Report {
    /// For people: complete lines.
    fn text(&self) -> String;

    /// For programs.
    fn json(&self) -> Value;

    /// The exit code: a check that ran to its end may still have a bad verdict.
    fn exit(&self) -> Exit {
        Exit::Success
    }
}

impl<R: Report + ?Sized> Report for Box<R> {
    fn text(&self) -> String {
        (**self).text()
    }

    fn json(&self) -> Value {
        (**self).json()
    }

    fn exit(&self) -> Exit {
        (**self).exit()
    }
}

/// Prints what came out and gives the exit code.
pub fn finish<R: Report, E: Failure>(result: Result<R, E>, json: bool) -> ExitCode {
    let exit = match result {
        Ok(report) => {
            let printed = if json {
                print::value(&report.json())
            } else {
                print::text(&report.text())
            };
            match printed {
                Ok(_) => report.exit(),
                // Words of an unprinted verdict must not be taken for one that was read.
                Err(lost) => tell_error(&lost, false),
            }
        }
        Err(error) => tell_error(&error, json),
    };
    exit.into()
}

/// As [`finish`], for a command that has printed by itself.
pub fn finish_plain<E: Failure>(result: Result<Exit, E>, json: bool) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => tell_error(&error, json).into(),
    }
}
