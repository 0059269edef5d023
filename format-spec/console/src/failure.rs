//! Errors as a user reads them: a headline, facts, and a way out; in words or as JSON.

use crate::{Exit, print};
use qpx_format::error::Kind;
use serde_json::{Value, json};
use std::{error::Error, io::IsTerminal as _};

/// An error that a program can end with.
///
/// Its [`Display`](std::fmt::Display) is the headline on the first line and, indented behind it, the facts.
pub trait Failure: Error {
    /// What the user can do.
    fn hint(&self) -> Option<String> {
        None
    }

    /// Name and value of each fact, for JSON. Without them, JSON has the lines behind the headline as they are.
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The exit code.
    fn exit(&self) -> Exit {
        Exit::Failure
    }
}

impl Failure for qpx_format::Error {
    fn hint(&self) -> Option<String> {
        qpx_format::Error::hint(self)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        qpx_format::Error::facts(self)
    }

    fn exit(&self) -> Exit {
        exit_of(self)
    }
}

/// The exit code for what is wrong with a bundle that is read.
pub fn exit_of(error: &qpx_format::Error) -> Exit {
    match error.kind() {
        Kind::NotABundle => Exit::NotABundle,
        Kind::Newer => Exit::Newer,
        Kind::CutShort => Exit::CutShort,
        Kind::Altered | Kind::Broken => Exit::Altered,
        Kind::OutputRefused => Exit::OutputRefused,
        Kind::Io | Kind::NoSpace => Exit::Failure,
    }
}

/// Whether to colour: the stream is a terminal, and neither `NO_COLOR` nor `TERM=dumb` asks for plain text.
pub fn colour_wanted(terminal: bool) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    terminal && !no_colour && !dumb
}

/// An error in words: `error: ` and its text, then `hint: ` where there is a way out.
pub fn error_text(error: &dyn Failure, colour: bool) -> String {
    let (red, cyan, off) = match colour {
        true => ("\x1b[1;31m", "\x1b[36m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let mut text = format!("{red}error:{off} {}", harmless(&error.to_string()));
    if let Some(hint) = error.hint() {
        text += &format!("\n\n{cyan}hint:{off} {}", harmless(&hint));
    }
    text.push('\n');
    text
}

/// Text without the control characters by which a name from a file could take over a terminal.
pub fn harmless(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// An error as JSON: `{"error": {"message", "facts", "hint"}, "exit": {"code", "word"}}`.
pub fn error_json(error: &dyn Failure) -> Value {
    let text = error.to_string();
    let (headline, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let named = error.facts();
    let facts: Vec<Value> = if named.is_empty() {
        let lines = rest.lines().map(str::trim).filter(|l| !l.is_empty());
        lines.map(|line| json!({ "text": line })).collect()
    } else {
        let facts = named.into_iter();
        facts
            .map(|(name, text)| json!({ "name": name, "text": text }))
            .collect()
    };
    json!({
        "error": { "message": headline, "facts": facts, "hint": error.hint() },
        "exit": exit_json(error.exit()),
    })
}

/// An exit code as JSON.
pub fn exit_json(exit: Exit) -> Value {
    json!({ "code": exit.code(), "word": exit.word() })
}

/// Tells the user of an error: in words on stderr, or as JSON on stdout, where a program that asked for JSON reads.
pub fn tell_error(error: &dyn Failure, json: bool) -> Exit {
    if json {
        // Nobody is left to tell when that fails too.
        let _ = print::value(&error_json(error));
    } else {
        let colour = colour_wanted(std::io::stderr().is_terminal());
        print::aside(&error_text(error, colour));
    }
    error.exit()
}

#[cfg(test)]
mod tests;
