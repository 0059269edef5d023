//! Each operation as plain loops: slow, short, and the measure of the fast versions, to the bit.
//!
//! Written from the rules in [`crate::ops`], element by element, with nothing shared with [`crate::cpu`] but [`crate::math`].
//! Lengths must fit; where they don't, these panic.

mod add;
mod add_bias;
mod add_scaled_rows;
mod argmax;
mod attention;
mod embed;
mod linear;
mod rms_norm;
mod rope_half;
mod route_softmax;
mod silu_mul;
mod sum;

pub use add::add;
pub use add_bias::add_bias;
pub use add_scaled_rows::add_scaled_rows;
pub use argmax::argmax;
pub use attention::attention;
pub use embed::embed;
pub use linear::linear;
pub use rms_norm::rms_norm;
pub use rope_half::rope_half;
pub use route_softmax::route_softmax;
pub use silu_mul::silu_mul;
