//! Why the server of transactions cannot be started, and what it reports of its own troubles while
//! it runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fmt, io};

use plimsoll_servers::ServerError;

/// Why the server of transactions cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum AppServerError {
    /// The address for metrics is taken, not ours, or not allowed.
    #[error("cannot serve metrics on {address}: {source}; choose another address with --metrics")]
    Metrics {
        /// Requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No temporary directory can be made.
    #[error("cannot make a directory for the data segments below TMPDIR: {0}")]
    Temporary(io::Error),
    /// The directory for data segments cannot be used.
    #[error("cannot keep data segments in {}: {source}; name another with --root", path.display())]
    Segments {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory for data segments holds something else.
    #[error(
        "{} is not empty and does not carry the marker {}; name a new or empty directory with \
             --root", path.display(), super::MARKER
    )]
    SegmentsOccupied {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that was to be removed at the end holds data segments.
    #[error(
        "{} holds data segments, which would be removed at the end; keep them with --root, or \
             name a new or empty directory", path.display()
    )]
    SegmentsKept {
        /// The directory.
        path: PathBuf,
    },
    /// Another server uses the directory for data segments.
    #[error("another server keeps its data segments in {}; stop it or name another directory \
             with --root", path.display())]
    SegmentsInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A limit of memory, and segments on a file system in memory.
    #[error(
        "{} is on a file system in memory, which a limit of memory would fill; name a directory \
             on a disk with --root", path.display()
    )]
    SegmentsInMemory {
        /// The directory.
        path: PathBuf,
    },
    /// The limit of memory cannot be set.
    #[error(
        "cannot limit the memory of this process with a control group: {source}; run as root, or \
             without --memory as: systemd-run --scope -p MemoryMax={bytes} plimsoll serve app"
    )]
    Memory {
        /// Requested limit.
        bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A limit of memory the server itself would break.
    #[error("{bytes} bytes of memory are too few for the server; allow at least {bytes_min}")]
    MemoryTooSmall {
        /// Requested limit.
        bytes: u64,
        /// Least that is allowed.
        bytes_min: u64,
    },
}

impl From<AppServerError> for ServerError {
    fn from(error: AppServerError) -> Self {
        Self::own(error)
    }
}

/// Messages of one server. A disk that fails does so at every request.
const MESSAGES_MAX: u32 = 20;

/// Takes messages of a running server for the person who runs it, and lets the first few through.
#[derive(Clone)]
pub struct Troubles {
    listener: Arc<dyn Fn(&str) + Send + Sync>,
    reported: Arc<AtomicU32>,
}

impl Troubles {
    /// `listener` hears of them, one line each.
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { listener: Arc::new(listener), reported: Arc::default() }
    }

    /// Reports to nobody.
    pub fn unheard() -> Self {
        Self::new(|_| ())
    }

    pub(super) fn note(&self, message: &str) {
        match self.reported.fetch_add(1, Ordering::Relaxed) {
            0..MESSAGES_MAX => (self.listener)(message),
            MESSAGES_MAX => (self.listener)("further troubles are not shown; the metrics count"),
            // The count must not come round.
            _ => self.reported.store(MESSAGES_MAX + 1, Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Troubles").finish_non_exhaustive()
    }
}
