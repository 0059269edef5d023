//! Tests of the programs as a user runs them. The tests stand in `tests/`; this library holds what they share.

pub mod checkpoint;
pub mod program;
pub mod workspace;
