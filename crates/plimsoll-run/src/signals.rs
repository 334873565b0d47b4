//! Whether the user requested the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that Ctrl-C sets, if the program listens for it.
#[derive(Clone, Debug)]
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Nothing sets the flag yet.
    pub fn unheard() -> Self {
        Self(Arc::default())
    }

    /// Set by a request to end.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it is set.
    pub fn is_stop_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
