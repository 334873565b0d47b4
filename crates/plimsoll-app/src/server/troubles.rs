//! What a server says of its own troubles, for whoever runs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Messages of one server. A disk that fails does so at every request.
const MESSAGES_MAX: u32 = 20;

/// Takes messages for a person, and lets the first few through.
#[derive(Clone)]
pub struct Troubles {
    listener: Arc<dyn Fn(&str) + Send + Sync>,
    told: Arc<AtomicU32>,
}

impl Troubles {
    /// `listener` hears of them, one line each.
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { listener: Arc::new(listener), told: Arc::default() }
    }

    /// Nobody hears of them.
    pub fn unheard() -> Self {
        Self::new(|_| ())
    }

    pub(super) fn note(&self, message: &str) {
        match self.told.fetch_add(1, Ordering::Relaxed) {
            0..MESSAGES_MAX => (self.listener)(message),
            MESSAGES_MAX => (self.listener)("further troubles are not shown; the metrics count"),
            // The count must not come round.
            _ => self.told.store(MESSAGES_MAX + 1, Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Troubles").finish_non_exhaustive()
    }
}
