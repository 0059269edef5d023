//! Each operation as plain loops.
