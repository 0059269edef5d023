//! Starts write-back while the pass goes on, so that sealing does not find all of the bundle still in memory.

use qpx_format::Writer;
use std::{
    ops::Range,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

/// Bytes after which their write-back is started.
const AT_ONCE_BYTES: u64 = 32 << 20;

/// Collects what was written, and starts its write-back from a thread of its own.
pub(super) struct Flusher {
    pending: Mutex<Pending>,
    batches: mpsc::Sender<Vec<Range<u64>>>,
}

#[derive(Default)]
struct Pending {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Flusher {
    /// Starts the thread; it ends when the flusher is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        writer: &'scope Writer,
    ) -> Self {
        let (batches, incoming) = mpsc::channel::<Vec<Range<u64>>>();
        scope.spawn(move || {
            for batch in incoming {
                for range in joined(batch) {
                    writer.flush(range);
                }
            }
        });
        Self {
            pending: Mutex::default(),
            batches,
        }
    }

    /// Notes that `range` of the bundle was written.
    pub(super) fn written(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.bytes += range.end - range.start;
        pending.ranges.push(range);
        if pending.bytes >= AT_ONCE_BYTES {
            let batch = std::mem::take(&mut *pending).ranges;
            drop(pending);
            // Write-back that does not start early starts when the bundle is sealed.
            let _ = self.batches.send(batch);
        }
    }
}

/// Ranges that touch, or nearly so (padding lies between), made one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut result: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match result.last_mut() {
            Some(last) if range.start <= last.end + qpx_format::PAGE_BYTES => {
                last.end = last.end.max(range.end)
            }
            _ => result.push(range),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let page = qpx_format::PAGE_BYTES;
        let ranges = vec![
            3 * page..4 * page,
            0..100,
            10 * page..11 * page,
            page..2 * page,
        ];
        assert_eq!(joined(ranges), [0..4 * page, 10 * page..11 * page]);
    }
}
