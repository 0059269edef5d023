//! What all qpx programs say alike: exit codes, errors, progress, `--json`.

/// Exit codes of all programs. SPEC: the README's table is generated from this list.
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
