//! `show`: what a bundle is, on one screen.
//!
//! Everything comes from page 0, manifest, digest table and stamps: no weight is read.

mod facts;
mod names;
mod words;

pub use facts::*;

use crate::Error;
use qpx_console::Report;
use qpx_format::Bundle;
use std::path::Path;

/// Looks at the bundle at `path`.
///
/// # Errors
/// Whatever is wrong with what was read.
pub fn run(path: &Path) -> Result<Summary, Error> {
    Ok(Summary::of(&Bundle::open(path)?)?)
}

impl Report for Summary {
    fn text(&self) -> String {
        words::text(self)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
