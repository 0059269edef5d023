//! Proves that a `.qpx` bundle decodes, on this machine.
//!
//! An [`Engine`] reads what every token touches, holds as many experts as the memory allows, and runs a lane (one model family)
//! over operations of `qpx_kernels`. All memory is planned by rehearsing the lane and allocated at load; decoding allocates
//! nothing. The library neither prints nor exits.
//!
//! ```no_run
//! use qpx_run::{Engine, Options, generate::generate, sample::Sampling};
//! use std::{path::Path, sync::Arc};
//!
//! let bundle = Arc::new(qpx_format::Bundle::open(Path::new("coder.qpx"))?);
//! let mut engine = Engine::load(&bundle, &Options { context: Some(64), ..Options::default() })?;
//! generate(&mut engine, &[1, 2, 3], 16, Sampling::GREEDY, &mut |id| {
//!     println!("{id}");
//!     Ok(())
//! })?;
//! # Ok::<(), qpx_run::Error>(())
//! ```

pub mod blocks;
pub mod budget;
pub mod chat;
pub mod cli;
pub mod commands;
pub mod cpu;
pub mod engine;
pub mod error;
pub mod generate;
pub mod lanes;
pub mod logits;
pub mod memory;
pub mod needs;
pub mod ops;
pub mod pager;
pub mod planner;
pub mod pool;
pub mod prove;
pub mod resident;
pub mod sample;
pub mod score;
pub mod text;
pub mod tokens;

pub use engine::{Engine, Options, Wanted};
pub use error::Error;
