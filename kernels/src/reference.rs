//! Each operation as plain loops: slow, short, and the measure of the fast versions, to the bit.
//!
//! Written from the rules in [`crate::ops`], element by element, with nothing shared with [`crate::cpu`] but [`crate::math`].
//! Lengths must fit; where they don't, these panic.

mod attention;
mod linear;
mod route_softmax;
mod simple;
mod sum;

pub use attention::attention;
pub use linear::{embed, linear};
pub use route_softmax::route_softmax;
pub use simple::{add, add_bias, add_scaled_rows, argmax, rms_norm, rope_half, silu_mul};
