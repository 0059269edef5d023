//! Weight encodings and the arithmetic of decoding, over plain slices.
//!
//! Every operation exists as plain loops in [`mod@reference`] and as fast code in [`cpu`]; both give the same bits
//! (rules: `ops`). Nothing here knows files, model names or printing.

pub mod cpu;
pub mod encoding;
pub mod math;
pub mod ops;
pub mod reference;

pub use cpu::{Cpu, Level};
pub use encoding::Encoding;
