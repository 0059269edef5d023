//! The `.qpx` bundle format: layout, reading, writing and verifying.
//!
//! The rules stand in `format-spec/SPEC.md`; this crate is their implementation. It knows bytes and digests, and
//! nothing of the values of weights, of vendors' tensor names, or of the terminal.
//!
//! ```no_run
//! use qpx_format::{Bundle, Role, verify};
//! # fn main() -> Result<(), qpx_format::Error> {
//! let bundle = Bundle::open("coder.qpx".as_ref())?;
//! if let Some(extent) = bundle.extent(&Role::parse("layer.0.attention.query")?) {
//!     let mut bytes = vec![0; extent.length as usize];
//!     bundle.read_verified(&extent, &mut bytes)?;
//! }
//! let report = verify::full(&bundle, 2, &|_| {})?;
//! for fault in &report.faults {
//!     println!("{fault}");
//! }
//! # Ok(()) }
//! ```

mod check;
pub mod digest;
pub mod encoding;
pub mod error;
mod index;
mod json;
pub mod layout;
pub mod manifest;
mod map;
mod name;
pub mod preamble;
pub mod publish;
pub mod reader;
pub mod role;
pub mod rule;
mod scan;
pub mod stamp;
pub mod verify;
pub mod writer;

pub use error::{Error, Place};
pub use layout::{Draft, Layout};
pub use manifest::Manifest;
pub use reader::Bundle;
pub use role::{Part, Role};
pub use writer::Writer;

/// Bytes of a page: everything that is paged on its own starts on a multiple of this.
pub const PAGE_BYTES: u64 = 16 * 1024;

/// A BLAKE3 digest.
pub type Digest = [u8; 32];
