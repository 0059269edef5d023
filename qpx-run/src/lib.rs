//! Proves that a `.qpx` bundle decodes, on this machine.

pub mod blocks;
pub mod budget;
pub mod cpu;
pub mod engine;
pub mod error;
pub mod lanes;
pub mod memory;
pub mod needs;
pub mod ops;
pub mod pager;
pub mod planner;
pub mod pool;
pub mod resident;

pub use engine::{Engine, Options, Wanted};
pub use error::Error;
