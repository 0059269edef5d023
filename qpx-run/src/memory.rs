//! Large blocks of bytes whose start is aligned for vector loads.

use crate::Error;

/// A multiple of every vector's width and of a cache line.
const ALIGNMENT: usize = 64;

/// Zeroed bytes that begin at a multiple of 64.
#[derive(Debug, Default)]
pub struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// `length` bytes, all touched: a machine that lacks them says so now.
    ///
    /// # Errors
    /// [`Error::NoMemory`], naming `what`.
    pub fn new(length: usize, what: &'static str) -> Result<Self, Error> {
        let mut memory = Vec::new();
        let whole = length.saturating_add(ALIGNMENT);
        memory
            .try_reserve_exact(whole)
            .map_err(|_| Error::NoMemory {
                what,
                bytes: length as u64,
            })?;
        memory.resize(whole, 0_u8);
        // An offset that can't be found is past the end of the spare bytes; unaligned is then the best there is.
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Ok(Self {
            start: if start < ALIGNMENT { start } else { 0 },
            memory,
            length,
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    /// The bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}
