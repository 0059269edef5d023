//! Instruction sets: names, detection, and the refusal of one that the machine lacks.

use std::fmt;
use std::str::FromStr;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable code.
    Scalar,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL, DQ, VNNI.
    Avx512,
    /// ARM Advanced SIMD.
    Neon,
}

impl Level {
    /// Every level there is, worst first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Avx2, Self::Avx512, Self::Neon];

    /// The best level of this machine.
    pub fn detect() -> Self {
        Self::ALL
            .into_iter()
            .rfind(|level| level.is_available())
            .unwrap_or(Self::Scalar)
    }

    /// Every level this machine can run, worst first.
    pub fn available() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|level| level.is_available())
            .collect()
    }

    /// This level, if the machine has it.
    ///
    /// # Errors
    /// [`LevelError::Missing`] otherwise.
    pub fn require(self) -> Result<Self, LevelError> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(LevelError::Missing(self))
        }
    }

    /// Its name: what `parse` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = LevelError;

    /// A level by name; one that this machine lacks is an error, never replaced by another.
    fn from_str(name: &str) -> Result<Self, LevelError> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| LevelError::Unknown(name.to_owned()))?
            .require()
    }
}

/// Why a level can't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// No level has this name.
    Unknown(String),
    /// The machine has no such instructions.
    Missing(Level),
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no instruction set is called {name:?}")?,
            Self::Missing(level) => write!(f, "this machine has no {level}")?,
        }
        f.write_str(": it can run")?;
        for (i, level) in Level::available().into_iter().enumerate() {
            write!(f, "{} {level}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for LevelError {}
