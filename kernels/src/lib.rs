//! Weight encodings and the arithmetic of decoding, over plain slices.
//!
//! Every operation exists as plain loops in [`mod@reference`] and as fast code in [`cpu`]; both give the same bits
//! (rules: `ops`). Nothing here knows files, model names or printing.
//!
//! An [`Encoding`] turns rows of f32 into blocks of bytes and back; a [`Cpu`] multiplies them and does the other operations of
//! a transformer. Its instruction set, its threads and its rounding of activations are arguments: none changes by itself.
//!
//! ```
//! use qpx_kernels::cpu::Input;
//! use qpx_kernels::ops::{Activations, Matrix};
//! use qpx_kernels::{Cpu, Level, encoding};
//!
//! // Two rows of four weights as bfloat16.
//! let encoding = encoding::by_name("bf16").ok_or("no such encoding")?;
//! let mut bytes = vec![0; 2 * encoding.row_bytes(4)];
//! let weights = [1.0, 2.0, 3.0, 4.0, 0.5, 0.0, 0.0, -0.5];
//! encoding.encode_rows(Level::detect(), &weights, 4, &mut bytes);
//! let matrix = Matrix { encoding, rows: 2, columns: 4, bytes: &bytes };
//!
//! // One token.
//! let cpu = Cpu::new(Level::detect(), 1, Activations::Encoded);
//! let mut input = Input::with_capacity(1, 4);
//! cpu.prepare(&[1.0, 1.0, 1.0, 2.0], 4, &mut input)?;
//! let mut y = [0.0; 2];
//! cpu.linear(&matrix, &input, &mut y)?;
//! assert_eq!(y, [14.0, -0.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cpu;
pub mod encoding;
pub mod math;
pub mod ops;
pub mod reference;

pub use cpu::{Cpu, Level};
pub use encoding::Encoding;
