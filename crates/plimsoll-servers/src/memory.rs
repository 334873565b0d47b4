//! Content of a file in memory: sorted blocks, holes left out, every byte charged to a budget.

use std::sync::atomic::{AtomicU64, Ordering};

/// Largest size of a file, in bytes: what an `off_t` holds.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Bytes per block. Files are mostly smaller; a block grows with what it holds.
const BLOCK: u64 = 64 << 10;
/// Smallest room of a block.
const ROOM_MIN: u64 = 1 << 10;
/// Memory of a block in addition to its bytes.
const BLOCK_OVERHEAD: u64 = 64;

/// Why a file cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Larger than files may be.
    TooBig,
    /// The budget is used up.
    NoSpace,
}

/// Memory that may be used, and how much of it is.
#[derive(Debug)]
pub struct Budget {
    used: AtomicU64,
    max: u64,
}

impl Budget {
    /// Of `max` bytes.
    pub fn new(max: u64) -> Self {
        Self { used: AtomicU64::new(0), max }
    }

    /// Uses `bytes` more.
    pub fn take(&self, bytes: u64) -> Result<(), Full> {
        let grow = |used: u64| used.checked_add(bytes).filter(|grown| *grown <= self.max);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
        taken.map(drop).map_err(|_| Full::NoSpace)
    }

    /// No longer uses them.
    pub fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// All of it, in bytes.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// What is left, in bytes.
    pub fn free(&self) -> u64 {
        self.max.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}

/// Content of a file.
#[derive(Debug, Default)]
pub struct Data {
    size: u64,
    /// Ascending by number. What lies behind a block's bytes and in absent blocks is zero.
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    number: u64,
    bytes: Vec<u8>,
}

impl Data {
    /// Size of the file, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What the blocks are charged with.
    pub fn charged(&self) -> u64 {
        self.blocks.iter().map(|block| charge(block.bytes.len() as u64)).sum()
    }

    /// Appends up to `count` bytes from `offset` on.
    pub fn read(&self, offset: u64, count: u32, into: &mut Vec<u8>) {
        let end = offset.saturating_add(u64::from(count)).min(self.size);
        let mut at = offset;
        let mut index = self.blocks.partition_point(|block| block.number < offset / BLOCK);
        while at < end {
            let stop = end.min((at / BLOCK + 1) * BLOCK);
            let (from, to) = ((at % BLOCK) as usize, (at % BLOCK + stop - at) as usize);
            let whole = into.len() + to - from;
            if let Some(block) = self.blocks.get(index).filter(|b| b.number == at / BLOCK) {
                let filled = block.bytes.len();
                into.extend_from_slice(&block.bytes[from.min(filled)..to.min(filled)]);
                index += 1;
            }
            into.resize(whole, 0);
            at = stop;
        }
    }

    /// Writes all of `data`, or nothing.
    pub fn write(&mut self, offset: u64, data: &[u8], budget: &Budget) -> Result<(), Full> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(Full::TooBig)?;
        budget.take(self.growth(offset, end))?;
        let mut at = offset;
        while at < end {
            let stop = end.min((at / BLOCK + 1) * BLOCK);
            let part = &data[(at - offset) as usize..(stop - offset) as usize];
            self.block(at / BLOCK).write((at % BLOCK) as usize, part);
            at = stop;
        }
        if !data.is_empty() {
            self.size = self.size.max(end);
        }
        Ok(())
    }

    /// Cuts or lengthens; gives back what is no longer needed.
    pub fn resize(&mut self, size: u64, budget: &Budget) -> Result<(), Full> {
        if size > FILE_BYTES_MAX {
            return Err(Full::TooBig);
        }
        if size < self.size {
            let before = self.charged();
            let keep = self.blocks.partition_point(|block| block.number < size.div_ceil(BLOCK));
            self.blocks.truncate(keep);
            if let Some(last) = self.blocks.last_mut().filter(|b| b.number == size / BLOCK) {
                last.bytes.truncate((size % BLOCK) as usize);
                last.bytes.shrink_to(room(size % BLOCK) as usize);
            }
            budget.give_back(before - self.charged());
        }
        self.size = size;
        Ok(())
    }

    /// What writing up to `end` from `offset` on adds to the charge.
    fn growth(&self, offset: u64, end: u64) -> u64 {
        let mut growth = 0;
        let mut at = offset;
        let mut index = self.blocks.partition_point(|block| block.number < offset / BLOCK);
        while at < end {
            let stop = end.min((at / BLOCK + 1) * BLOCK);
            let filled = at % BLOCK + stop - at;
            match self.blocks.get(index).filter(|block| block.number == at / BLOCK) {
                Some(block) => {
                    let stored = block.bytes.len() as u64;
                    growth += charge(filled.max(stored)) - charge(stored);
                    index += 1;
                }
                None => growth += charge(filled),
            }
            at = stop;
        }
        growth
    }

    fn block(&mut self, number: u64) -> &mut Block {
        let index = self.blocks.partition_point(|block| block.number < number);
        if self.blocks.get(index).is_none_or(|block| block.number != number) {
            // Exact: most files have one block, and doubling would cost more than they hold.
            if self.blocks.len() < 4 {
                self.blocks.reserve_exact(1);
            }
            self.blocks.insert(index, Block { number, bytes: Vec::new() });
        }
        &mut self.blocks[index]
    }
}

impl Block {
    fn write(&mut self, from: usize, part: &[u8]) {
        let to = from + part.len();
        let filled = self.bytes.len();
        if to > filled {
            let room = room(to as u64) as usize;
            self.bytes.reserve_exact(room.max(filled) - filled);
        }
        if from > filled {
            self.bytes.resize(from, 0);
        }
        let overlap = self.bytes.len().min(to) - from;
        self.bytes[from..from + overlap].copy_from_slice(&part[..overlap]);
        self.bytes.extend_from_slice(&part[overlap..]);
    }
}

/// Capacity of a block that holds `bytes`. Growing by doubling keeps appends cheap.
fn room(bytes: u64) -> u64 {
    bytes.next_power_of_two().clamp(ROOM_MIN, BLOCK)
}

fn charge(bytes: u64) -> u64 {
    room(bytes) + BLOCK_OVERHEAD
}

#[cfg(test)]
mod tests;
