//! Verification of a whole bundle.

use crate::{Bundle, Error};

/// What a verification did and found.
#[derive(Debug, Default)]
pub struct Report {
    /** All faults, in file order. */
    pub faults: Vec<Error>,
    /** Leaves checked. */
    pub leaves: u64,
    /** Bytes read. */
    pub bytes: u64,
    /** Bytes of padding checked to be zero. */
    pub padding: u64,
}

/// Checks every leaf and every padding byte, in parallel, by large positioned reads. `progress` gets bytes done.
pub fn full(
    bundle: &Bundle,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, Error> {
    let _ = (bundle, threads, progress);
    todo!()
}

/// Checks sizes, stamps and a sample of leaves spread over the segments.
pub fn quick(bundle: &Bundle) -> Result<Report, Error> {
    let _ = bundle;
    todo!()
}
