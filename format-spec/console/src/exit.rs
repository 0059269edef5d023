//! The exit codes of all programs, and the words for them.

use std::process::ExitCode;

/// Exit codes of all programs. The README's table and the programs' help are made from [`Exit::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; for a check: intact, exact.
    Success = 0,
    /// The work could not be done (input or output error, not enough memory).
    Failure = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The checkpoint is unfit: broken, incomplete, contradictory, or of an unknown family.
    BadSource = 3,
    /// The output exists, is an input, or is being written by another process.
    OutputRefused = 4,
    /// Verified: bytes differ from what was sealed.
    Altered = 10,
    /// Verified: the file ends too early.
    CutShort = 11,
    /// The file is no bundle.
    NotABundle = 12,
    /// The file needs a newer reader.
    Newer = 13,
    /// The bundle is intact and fails a demand of the command line (`--expect-id`).
    RefusedByPolicy = 14,
    /// The decode proof differs from what was recorded.
    ProofDiffers = 15,
    /// There is no proof to compare with.
    NoProof = 16,
}

/// An exit code with its word and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// The code.
    pub exit: Exit,
    /// The word that stands for it in `--json`.
    pub word: &'static str,
    /// What it tells the user.
    pub meaning: &'static str,
}

const fn row(exit: Exit, word: &'static str, meaning: &'static str) -> Meaning {
    Meaning {
        exit,
        word,
        meaning,
    }
}

impl Exit {
    /// Every code, in ascending order.
    pub const ALL: &[Meaning] = &[
        row(Self::Success, "ok", "done; for a check: intact, exact"),
        row(
            Self::Failure,
            "failure",
            "the work could not be done: input or output error, too little memory",
        ),
        row(Self::Usage, "usage", "the command line is wrong"),
        row(
            Self::BadSource,
            "bad source",
            "the checkpoint is unfit: broken, incomplete, contradictory, of an unknown family",
        ),
        row(
            Self::OutputRefused,
            "output refused",
            "the output exists, is an input, or is being written by another process",
        ),
        row(
            Self::Altered,
            "altered",
            "bytes differ from what was sealed, or were sealed against the rules",
        ),
        row(Self::CutShort, "cut short", "the bundle ends too early"),
        row(Self::NotABundle, "not a bundle", "the file is no bundle"),
        row(
            Self::Newer,
            "newer than this reader",
            "the bundle needs a newer reader",
        ),
        row(
            Self::RefusedByPolicy,
            "refused by policy",
            "the bundle is intact, but not what was demanded (--expect-id)",
        ),
        row(
            Self::ProofDiffers,
            "proof differs",
            "decoding gives other logits than the recorded proof",
        ),
        row(
            Self::NoProof,
            "no proof",
            "there is no decode proof to compare with",
        ),
    ];

    /// The number that the shell sees.
    #[expect(
        clippy::as_conversions,
        reason = "the discriminants of a fieldless u8 enum"
    )]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        let row = Self::ALL.iter().find(|m| m.exit == self);
        row.map_or("failure", |m| m.word)
    }

    /// The codes that `of` picks, one a line, for the end of a long help text.
    pub fn help(of: &[Self]) -> String {
        let mut text = String::from("Exit codes:\n");
        for m in Self::ALL.iter().filter(|m| of.contains(&m.exit)) {
            text += &format!("  {:>2}  {}\n", m.exit.code(), m.meaning);
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The table of the README.
    pub fn markdown() -> String {
        let mut text = String::from("| code | word | meaning |\n|---|---|---|\n");
        for m in Self::ALL {
            text += &format!("| {} | {} | {} |\n", m.exit.code(), m.word, m.meaning);
        }
        text
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn every_code_has_one_row_in_ascending_order() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|m| m.exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16]);
        let mut words: Vec<_> = Exit::ALL.iter().map(|m| m.word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), codes.len(), "a word stands for one code");
        assert_eq!(Exit::CutShort.word(), "cut short");
    }
}
