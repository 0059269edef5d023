//! Fast versions of all operations for the CPU, the same bits at every level and thread count.
//!
//! One operation a file; the formulas and rules stand in [`crate::ops`], the plain loops in [`crate::reference`]. Work is split
//! over outputs, never along a sum, so that threads can't change a bit; a token's results don't depend on the tokens beside it.

use crate::ops::Activations;

mod add;
mod add_bias;
mod add_scaled_rows;
mod argmax;
mod attention;
mod embed;
mod input;
mod level;
mod linear;
mod rms_norm;
mod rope_half;
mod route_softmax;
mod silu_mul;
pub(crate) mod simd;
mod split;

pub use crate::ops::AttentionShape;
pub use input::Input;
pub use level::{Level, LevelError};

/// The CPU backend: a level, a number of threads, and how activations meet quantised weights.
///
/// Operations split work over outputs (never along a sum) on the rayon pool they are called in; with one thread they run inline.
/// None allocates: scratch memory is handed in.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// The instruction set.
    pub level: Level,
    /// Threads of the pool that operations are called in.
    pub threads: usize,
    /// How activations meet quantised weights.
    pub activations: Activations,
}

impl Cpu {
    /// A backend on `level`, which the machine must have (a level from [`Level::detect`] or from text always is).
    pub fn new(level: Level, threads: usize, activations: Activations) -> Self {
        Self {
            level,
            threads,
            activations,
        }
    }
}
