//! Writing to stdout and stderr: a reader that has gone is no error, a full disk is.

use crate::{Exit, Failure};
use std::{
    error::Error,
    fmt,
    io::{self, Write as _},
};

/// Whether somebody still reads stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// What was printed has been taken.
    There,
    /// The other end of the pipe is closed: more output serves nobody.
    Gone,
}

/// Stdout could not be written, for another reason than a closed pipe.
#[derive(Debug)]
pub struct OutputLost(io::Error);

impl fmt::Display for OutputLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the output: {}", self.0)
    }
}

impl Error for OutputLost {}

impl Failure for OutputLost {
    fn exit(&self) -> Exit {
        Exit::Failure
    }
}

/// Prints text on stdout at once, as it is.
///
/// # Errors
/// [`OutputLost`], unless the reader has only gone.
pub fn text(text: &str) -> Result<Reader, OutputLost> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(Reader::There),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(e) => Err(OutputLost(e)),
    }
}

/// Prints a value as JSON on stdout, indented, with a final newline.
///
/// # Errors
/// As [`text`].
pub fn value(value: &impl serde::Serialize) -> Result<Reader, OutputLost> {
    let mut json = serde_json::to_string_pretty(value).map_err(|e| OutputLost(e.into()))?;
    json.push('\n');
    text(&json)
}

/// Says something to the user beside the data, on stderr. Whether it arrives changes nothing.
pub fn aside(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
