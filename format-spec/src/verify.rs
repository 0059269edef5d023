//! Verification of a whole bundle.

use crate::{
    Bundle, Error,
    manifest::SegmentKind,
    stamp::{Stamps, Torn},
};

/// What a verification did and found.
#[derive(Debug, Default)]
pub struct Report {
    /// All faults, in file order.
    pub faults: Vec<Error>,
    /// Leaves checked.
    pub leaves: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes of padding checked to be zero.
    pub padding: u64,
    /// Intact stamps.
    pub stamps: u64,
    /// A stamp that a crash cut short: told to the user, no fault.
    pub torn: Option<Torn>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, stamps: Stamps, bundle: &Bundle) {
        self.stamps = stamps.records.len() as u64;
        self.bytes += stamps.end - bundle.content_length();
        if let Some(fault) = stamps.fault {
            self.faults.push(fault.in_file(bundle.path()));
        }
        self.torn = stamps.torn;
    }

    /// Checks that attached files decompress to what they declare, where their bytes are intact.
    fn add_attached(&mut self, bundle: &Bundle) -> Result<(), Error> {
        for file in &bundle.manifest().checked.attached {
            match bundle.attached(file) {
                Ok(_) => {}
                Err(fault @ Error::Broken { .. }) => self.faults.push(fault),
                // Already found as an altered leaf.
                Err(Error::Altered { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.faults
            .sort_by_key(|f| f.place().map_or(u64::MAX, |p| p.bytes.start));
        Ok(())
    }
}

/// Checks every leaf and every padding byte, in parallel, by large positioned reads.
///
/// `progress` gets the bytes done since its last call, from several threads; in all they come to the content without
/// page 0, manifest and digest table, which [`Bundle::open`] has verified.
///
/// # Errors
/// [`Error::Io`] and [`Error::CutShort`]; everything else is in the report.
pub fn full(
    bundle: &Bundle,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, Error> {
    let found = bundle.scan().run(threads, progress)?;
    let mut report = Report {
        faults: found.faults,
        leaves: found.leaves,
        // What opening has read and verified counts too.
        bytes: found.bytes + head_bytes(bundle),
        padding: found.padding,
        ..Report::default()
    };
    report.add(bundle.stamps()?, bundle);
    report.add_attached(bundle)?;
    Ok(report)
}

/// Bytes of page 0, manifest and digest table.
fn head_bytes(bundle: &Bundle) -> u64 {
    let table = bundle.table_bytes();
    crate::PAGE_BYTES + bundle.manifest_text().len() as u64 + (table.end - table.start)
}

/// Checks sizes, stamps, attached files and a sample of leaves spread over the segments.
///
/// # Errors
/// As [`full`].
pub fn quick(bundle: &Bundle) -> Result<Report, Error> {
    const SAMPLES: u64 = 8;
    let mut report = Report {
        bytes: head_bytes(bundle),
        ..Report::default()
    };
    if bundle.file_length()? < bundle.content_length() {
        return Err(Error::CutShort {
            file: bundle.path().to_path_buf(),
            expected: bundle.content_length(),
            found: bundle.file_length()?,
        });
    }
    let mut buffer = Vec::new();
    for segment in &bundle.manifest().checked.segments {
        let leaves = leaves_of(bundle, segment.kind);
        let count = leaves.end - leaves.start;
        let picked = count.min(SAMPLES);
        for n in 0..picked {
            // The first, the last, and some between them.
            let at = if picked == 1 {
                0
            } else {
                n * (count - 1) / (picked - 1)
            };
            let Some(leaf) = bundle.leaf(leaves.start + at) else {
                continue;
            };
            let bytes = &leaf.place.bytes;
            buffer.resize(
                usize::try_from(bytes.end - bytes.start).unwrap_or_default(),
                0,
            );
            bundle.read_at(bytes.start, &mut buffer)?;
            let found = crate::digest::of(&buffer);
            if found != leaf.digest {
                let fault = crate::error::altered(leaf.place.clone(), "4.7", &leaf.digest, &found);
                report.faults.push(fault);
            }
            report.leaves += 1;
            report.bytes += buffer.len() as u64;
        }
    }
    report.add(bundle.stamps()?, bundle);
    report.add_attached(bundle)?;
    Ok(report)
}

/// The numbers of a segment's leaves.
fn leaves_of(bundle: &Bundle, kind: SegmentKind) -> std::ops::Range<u64> {
    let index = bundle.scan().index;
    let mut runs = index.runs().iter().filter(|r| r.segment == kind);
    let Some(first) = runs.next() else {
        return 0..0;
    };
    let last = runs.next_back().unwrap_or(first);
    first.first_leaf..last.first_leaf + last.leaves
}
