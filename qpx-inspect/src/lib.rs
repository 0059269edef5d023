//! Says what a `.qpx` bundle is, verifies every byte of it, and takes it apart.
//!
//! One file per command: each has a `run` that returns a [`Report`](qpx_console::Report), in words and as JSON (whose
//! schemas stand in `qpx-inspect/schema/`). The library neither prints nor exits.
//!
//! ```no_run
//! use qpx_console::Report as _;
//!
//! let about = qpx_inspect::show::run("coder.qpx".as_ref())?;
//! println!("{}", about.text());
//! # Ok::<(), qpx_inspect::Error>(())
//! ```

pub mod cli;
mod error;
pub mod extract;
pub mod map;
pub mod show;
mod table;
pub mod tensors;
pub mod verify;

pub use error::Error;
