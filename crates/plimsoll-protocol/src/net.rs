//! What set-up around a load point may ask of the network: reaching a server, mounting, writing
//! a file set. Blocking, and injected: this crate opens no socket. The program implements
//! [`Dial`] over real sockets, tests in memory.
//!
//! Set-up is blocking because it runs before the clock starts: code that waits for its reply is
//! easier to get right than a state machine. It waits a tenth of a second at a time and checks
//! [`Dial::stop`] in between, so Ctrl-C works even if the server does not answer.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use plimsoll_engine::interface::LinkKind;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Load, TargetDistribution};
use plimsoll_model::nonconformity::{Nonconformities, Nonconformity};
use plimsoll_model::units::Bytes;

/// Opens channels.
pub trait Dial: Sync + fmt::Debug {
    /// A channel to `address`. `source` requests a port below 1024, as some servers demand; where
    /// that is not permitted any port is taken.
    fn dial(
        &self,
        address: SocketAddr,
        kind: LinkKind,
        source: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError>;

    /// A channel to a Unix socket of this host.
    fn dial_unix(&self, path: &Path) -> Result<Box<dyn Channel>, ChannelError> {
        let _ = path;
        Err(ChannelError::Failed(io::ErrorKind::Unsupported.into()))
    }

    /// Who calls.
    fn caller(&self) -> Caller {
        Caller::default()
    }

    /// Is set when the user stops everything; every wait on a channel checks it.
    fn stop(&self) -> Arc<AtomicBool> {
        Arc::default()
    }

    /// Where set-up notes replies that differ from their specification and mean the same.
    fn nonconformities(&self) -> NonconformityLog {
        NonconformityLog::default()
    }
}

/// What set-up has noted of replies that differ from their specification. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct NonconformityLog(Arc<Mutex<Nonconformities>>);

impl NonconformityLog {
    /// Counts what was seen in a reply.
    pub fn note(&self, nonconformity: &Nonconformity) {
        self.lock().note(nonconformity);
    }

    /// Adds what a session has counted.
    pub fn add(&self, nonconformities: &Nonconformities) {
        if !nonconformities.is_empty() {
            self.lock().add(nonconformities);
        }
    }

    /// What was noted since the last call.
    pub fn take(&self) -> Nonconformities {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Nonconformities> {
        // Counts are consistent at any time, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Identity of this program for servers that ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Name of this host.
    pub host: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Ports below 1024 may be bound.
    pub may_reserve_ports: bool,
    /// Differs from run to run.
    pub nonce: u64,
    /// Password of the user a URL names without one.
    pub password: Option<Secret>,
}

/// Text that no message and no report shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(left out)")
    }
}

/// A host without network, for workloads that ask the server nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl Dial for Offline {
    fn dial(
        &self,
        _: SocketAddr,
        _: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        Err(ChannelError::Failed(io::ErrorKind::NetworkUnreachable.into()))
    }
}

/// Which local port a channel wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePort {
    /// Any.
    Any,
    /// Below 1024 when permitted.
    Reserved,
}

/// A TCP connection or a connected UDP socket.
pub trait Channel: Send {
    /// Sends all of it; one datagram on a datagram channel.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError>;
    /// Appends what arrives first within `wait`: some bytes of a stream, or one datagram.
    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError>;
}

/// Why a channel did not open, or broke.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Nothing came in time.
    #[error("no answer in time")]
    Timeout,
    /// The peer closed a stream.
    #[error("the server closed the connection")]
    Closed,
    /// The operating system's error.
    #[error("{0}")]
    Failed(io::Error),
}

/// How far set-up is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupProgress {
    /// What is being done, in two or three words.
    pub doing: &'static str,
    /// Steps (files, mostly) done.
    pub done: u64,
    /// Steps in all.
    pub total: u64,
    /// Payload bytes written so far.
    pub bytes: Bytes,
}

/// The caller's answer to progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOn {
    /// Go on.
    Yes,
    /// Stop as soon as it is safe.
    No,
}

/// Reports set-up's progress to the caller, who may end it.
pub type OnProgress<'a> = dyn FnMut(SetupProgress) -> GoOn + 'a;

/// Why set-up failed, by what the user can do about it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The target or the environment is unusable: unreachable, refused, too small.
    #[error("{0}")]
    Unusable(String),
    /// The user's request is wrong.
    #[error("{0}")]
    Wrong(String),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

/// The highest load whose data a server has room for.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// Of all targets together.
    pub load_max_ops_per_s: f64,
    /// Free where there is least.
    pub free: Bytes,
    /// Where that is.
    pub location: String,
}

/// Work around each load point, for protocols whose data lies on the server and grows with load.
pub trait PointPreparation: Send {
    /// The servers answer.
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError>;
    /// The highest load that the servers have room for; `None` where data does not grow with load.
    /// Loads that are not a rate use it from then on.
    fn room(&mut self, dial: &dyn Dial) -> Result<Option<Room>, SetupError> {
        let _ = dial;
        Ok(None)
    }
    /// The most clients of a closed load that the servers have room for; `None` where data does not
    /// grow with clients.
    fn clients_max(&mut self, dial: &dyn Dial) -> Result<Option<u32>, SetupError> {
        let _ = dial;
        Ok(None)
    }
    /// From now on the clients use the targets by `distribution`. Before that, and if the servers'
    /// data is the same for every client, client i uses target i modulo their number.
    fn distribute(&mut self, distribution: &TargetDistribution) {
        let _ = distribution;
    }
    /// Brings the servers' data to what `load` needs and answers with the workload.
    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError>;
    /// Number of files that `ready` has prepared for `load`, unless the load itself determines it.
    /// It is passed to [`PointPreparation::attach`].
    fn files(&self, load: &Load) -> Option<u32> {
        let _ = load;
        None
    }
    /// Called on another host after `ready`: finds the prepared data and returns the same workload.
    /// Writes nothing.
    fn attach(
        &mut self,
        load: &Load,
        files: Option<u32>,
        dial: &dyn Dial,
    ) -> Result<Arc<dyn Workload>, SetupError>;
    /// The point under `load` has ended and is on disk; `last` if the run has no further one.
    /// Restores on the servers what the method requires. Not called after a point that the user cut
    /// short.
    fn after(
        &mut self,
        load: &Load,
        last: bool,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let _ = (load, last, dial, progress);
        Ok(())
    }
}
