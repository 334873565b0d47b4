//! How many links may wait for the server to close them. Sites and TLS count them too, so that this
//! is below both.

use std::cell::Cell;

/// Connections per client that may wait for the server to close them, with TLS or without.
pub(super) const LINGERING_LINKS_MAX: usize = 8;

/// Room for links that wait for their end, of the clients of a worker together.
#[derive(Debug)]
pub(super) struct SpareLinks(Cell<u32>);

impl Default for SpareLinks {
    fn default() -> Self {
        Self(Cell::new(u32::MAX))
    }
}

impl SpareLinks {
    /// Limits the number of links. To be called before the first is taken.
    pub(super) fn limit(&self, links: u32) {
        self.0.set(links);
    }

    /// Takes room for one; false where there is none.
    pub(super) fn take(&self) -> bool {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// How many there is room for.
    pub(super) fn left(&self) -> usize {
        self.0.get() as usize
    }

    pub(super) fn give_back(&self) {
        self.0.set(self.0.get().saturating_add(1));
    }
}
