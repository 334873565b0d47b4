//! The prefix cache: which beginnings of prompts have been computed before, in blocks.

use std::collections::{BTreeMap, HashMap};

/// Tokens of a block.
pub const BLOCK_TOKENS: u32 = 16;

/// Blocks by the hash of everything up to their end; whoever was needed longest ago goes first.
pub(super) struct PrefixCache {
    blocks_max: usize,
    /// When each was last needed.
    used: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl PrefixCache {
    /// Of so many tokens.
    pub(super) fn new(tokens: u64) -> Self {
        let blocks_max = usize::try_from(tokens / u64::from(BLOCK_TOKENS)).unwrap_or(usize::MAX);
        Self { blocks_max, used: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// How many of the first blocks are there.
    pub(super) fn leading(&mut self, blocks: &[u64]) -> u32 {
        let found = blocks.iter().take_while(|block| self.used.contains_key(block)).count();
        // The end of a prompt goes before its beginning, without which it is worth nothing.
        blocks[..found].iter().rev().for_each(|block| self.touch(*block));
        found as u32
    }

    pub(super) fn keep(&mut self, blocks: &[u64]) {
        blocks.iter().rev().for_each(|block| self.touch(*block));
        while self.used.len() > self.blocks_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.used.remove(&oldest);
        }
    }

    fn touch(&mut self, block: u64) {
        self.uses += 1;
        if let Some(before) = self.used.insert(block, self.uses) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, block);
    }
}
