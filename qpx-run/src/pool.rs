//! Buffers of activations: made once, handed out and taken back, so that decoding allocates nothing.
//!
//! Every buffer has room for a whole chunk of tokens, whatever the call's own number: the same lane then takes the same
//! buffers in the same order for every chunk, and one rehearsal finds all that will ever be needed.

use crate::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of f32 on loan from a [`Pool`]; dropping it gives the buffer back.
#[derive(Debug)]
pub struct Tensor {
    rows: usize,
    columns: usize,
    /// Empty in a rehearsal.
    data: Vec<f32>,
    room: usize,
    number: u64,
    home: Arc<Pool>,
}

impl Tensor {
    /// Rows: tokens.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Values of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }
    /// The values, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data[..self.data.len().min(self.rows * self.columns)]
    }
    /// The same, to be changed. The tensor counts as another one from then on.
    pub fn data_mut(&mut self) -> &mut [f32] {
        self.number = self.home.lock().next_number();
        let length = self.data.len().min(self.rows * self.columns);
        &mut self.data[..length]
    }
    /// A number that no other content of any tensor of this pool has had.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        self.home.lock().free.push((self.room, data));
    }
}

/// The buffers.
#[derive(Debug)]
pub struct Pool {
    chunk: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: Vec<(usize, Vec<f32>)>,
    /// Rooms of all buffers, in a rehearsal.
    made: Vec<usize>,
    rehearsal: bool,
    numbers: u64,
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

impl Pool {
    /// A pool that notes which buffers would be needed, and makes none.
    pub fn rehearsal(chunk: usize) -> Arc<Self> {
        Arc::new(Self {
            chunk,
            state: Mutex::new(State {
                free: Vec::new(),
                made: Vec::new(),
                rehearsal: true,
                numbers: 0,
            }),
        })
    }

    /// A pool with buffers of these rooms, in floats.
    pub fn with_rooms(chunk: usize, rooms: &[usize]) -> Arc<Self> {
        Arc::new(Self {
            chunk,
            state: Mutex::new(State {
                free: rooms.iter().map(|n| (*n, vec![0.0; *n])).collect(),
                made: Vec::new(),
                rehearsal: false,
                numbers: 0,
            }),
        })
    }

    /// The buffers that a rehearsal needed.
    pub fn rooms(&self) -> Vec<usize> {
        self.lock().made.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tensor with any content, in the smallest free buffer that has room for a chunk of such rows.
    ///
    /// # Errors
    /// [`Error::Fault`] when no buffer is free: the rehearsal took another way.
    pub fn take(self: &Arc<Self>, rows: usize, columns: usize) -> Result<Tensor, Error> {
        let need = self.chunk * columns;
        if rows > self.chunk {
            return Err(Error::Fault {
                reason: "more tokens than a chunk has",
            });
        }
        let mut state = self.lock();
        let fit = (state.free.iter().enumerate())
            .filter(|(_, (room, _))| *room >= need)
            .min_by_key(|(_, (room, _))| *room)
            .map(|(i, _)| i);
        let (room, data) = match fit {
            Some(i) => state.free.swap_remove(i),
            None if state.rehearsal => {
                state.made.push(need);
                (need, Vec::new())
            }
            None => {
                return Err(Error::Fault {
                    reason: "no buffer is free that the plan promised",
                });
            }
        };
        let number = state.next_number();
        drop(state);
        Ok(Tensor {
            rows,
            columns,
            data,
            room,
            number,
            home: Arc::clone(self),
        })
    }
}
