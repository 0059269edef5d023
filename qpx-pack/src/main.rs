//! `qpx-pack`: arguments in, words and an exit code out. The work is in the library.
fn main() {}
