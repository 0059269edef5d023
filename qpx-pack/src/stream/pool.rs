//! A bounded supply of buffers: the reader waits when too much is on its way, so memory stays bounded whatever the model.

use std::{
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Bytes that may be on their way at once. A larger single request waits until it is alone.
const MOST_BYTES: usize = 96 << 20;
/// Buffers kept for another use, and the largest that is.
const SPARE_BUFFERS: usize = 12;
const LARGEST_SPARE_BYTES: usize = 6 << 20;

/// The supply.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    spare: Vec<Vec<u8>>,
}

/// Bytes of a shard. Given back to the pool when the last user drops it.
#[derive(Debug)]
pub(super) struct Block {
    buffer: Vec<u8>,
    length: usize,
    /// The bytes that no block before this one held.
    pub fresh: Range<usize>,
    pool: Arc<Pool>,
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of `length` bytes of any content; waits until there is room.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Block {
        let mut state = self.state();
        while state.used_bytes > 0 && state.used_bytes + length > MOST_BYTES {
            state = self
                .freed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.used_bytes += length;
        let spare = state
            .spare
            .iter()
            .position(|buffer| buffer.capacity() >= length);
        let mut buffer = match spare {
            Some(at) => state.spare.swap_remove(at),
            None => Vec::new(),
        };
        drop(state);
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        Block {
            buffer,
            length,
            fresh: 0..length,
            pool: Arc::clone(self),
        }
    }
}

impl Block {
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.length).unwrap_or_default()
    }

    pub(super) fn fresh_bytes(&self) -> &[u8] {
        self.buffer.get(self.fresh.clone()).unwrap_or_default()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut state = self.pool.state();
        state.used_bytes = state.used_bytes.saturating_sub(self.length);
        if buffer.capacity() <= LARGEST_SPARE_BYTES && state.spare.len() < SPARE_BUFFERS {
            state.spare.push(buffer);
        }
        drop(state);
        self.pool.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_stays_bounded() {
        let pool = Arc::new(Pool::default());
        let first = pool.take(MOST_BYTES);
        let waiting = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.take(1).bytes().len()
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.join().unwrap(), 1);
        // Larger than all there is: served when nothing else is out.
        assert_eq!(pool.take(MOST_BYTES + 1).bytes().len(), MOST_BYTES + 1);
    }
}
