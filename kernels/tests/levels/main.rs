//! Every operation at every instruction set that this machine has, against the plain loops, bit for bit.
//!
//! Reads no file: the built binary can be carried to another machine and run there.

mod attention;
mod data;
mod elementwise;
mod linear;
mod routing;

use std::io::Write;

use qpx_kernels::cpu::LevelError;
use qpx_kernels::ops::Activations;
use qpx_kernels::{Cpu, Level};

/// One backend for each level that the machine has.
fn every_level(threads: usize, activations: Activations) -> Vec<Cpu> {
    Level::available()
        .into_iter()
        .map(|level| Cpu::new(level, threads, activations))
        .collect()
}

/// Fails with `case` unless both have the same bits; a NaN equals a NaN.
fn assert_same(expected: &[f32], found: &[f32], case: &str) {
    assert_eq!(expected.len(), found.len(), "{case}");
    for (i, (e, f)) in expected.iter().zip(found).enumerate() {
        let same = e.to_bits() == f.to_bits() || e.is_nan() && f.is_nan();
        assert!(
            same,
            "{case}: element {i} is {f:e} ({:08x}), not {e:e} ({:08x})",
            f.to_bits(),
            e.to_bits()
        );
    }
}

#[test]
fn says_which_levels_ran() {
    for level in Level::ALL {
        let word = if level.is_available() {
            "tested"
        } else {
            "NOT TESTED, this machine has none"
        };
        // Not `println!`: that is shown only when a test fails.
        writeln!(std::io::stderr(), "level {level}: {word}").unwrap();
    }
    assert!(Level::available().contains(&Level::Scalar));
    assert_eq!(Level::available().last(), Some(&Level::detect()));
}

#[test]
fn a_level_asked_for_and_missing_is_an_error() {
    for level in Level::ALL {
        let parsed = level.name().parse::<Level>();
        if level.is_available() {
            assert_eq!(parsed, Ok(level));
        } else {
            assert_eq!(parsed, Err(LevelError::Missing(level)));
            let message = LevelError::Missing(level).to_string();
            assert!(
                message.starts_with(&format!("this machine has no {level}: it can run scalar"))
            );
        }
    }
    let unknown = "AVX2".parse::<Level>().unwrap_err();
    assert_eq!(unknown, LevelError::Unknown("AVX2".into()));
}
