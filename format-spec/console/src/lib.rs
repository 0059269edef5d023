//! What all qpx programs say alike: exit codes, errors, progress, `--json`.
//!
//! A program's `main` parses arguments, calls its library, and ends with [`finish`]:
//!
//! ```no_run
//! use qpx_console::{Exit, Report, finish};
//!
//! struct Length(u64);
//!
//! impl Report for Length {
//!     fn text(&self) -> String {
//!         format!("{}\n", qpx_console::exact(self.0))
//!     }
//!     fn json(&self) -> serde_json::Value {
//!         serde_json::json!({ "bytes": self.0 })
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let bundle = qpx_format::Bundle::open("coder.qpx".as_ref());
//!     finish(bundle.map(|b| Length(b.content_length())), false)
//! }
//! ```
//!
//! It prints nothing on its own, and knows nothing of what the programs do.

mod exit;
mod failure;
pub mod print;
mod progress;
mod report;
mod words;

pub use exit::{Exit, Meaning};
pub use failure::{
    Failure, colour_wanted, error_json, error_text, exit_json, exit_of, harmless, tell_error,
};
pub use print::{OutputLost, Reader};
pub use progress::{Bar, Lines, Progress, Silent, progress};
pub use report::{Report, finish, finish_plain};
pub use words::{count, counted, exact, grouped, hex, size};
