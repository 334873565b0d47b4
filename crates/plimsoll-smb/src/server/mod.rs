//! The reference SMB server: the crate `smb-server` with one share, in memory or on a directory.
//!
//! It is a server to measure against, not one to keep files on.
//!
//! The crate brings many packages, but a server of our own would be some 3,000 lines that no
//! measurement needs.

mod directory;
mod memory;
mod probe;
pub mod samba;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use smb_server::{Access, LocalFsBackend, Share};
use tokio::runtime::Runtime;

use directory::DirectoryShare;
use memory::MemoryShare;
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::process::Login;
use plimsoll_servers::{ServerError, Stop, cores};

/// Name of the share.
pub const SHARE: &str = "plimsoll";

/// Connections served at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 16_384;
/// A connection without a request for so long is closed, unless it has files open.
const IDLE_MAX: Duration = Duration::from_secs(3600);
/// How long requests in progress may take once stopping.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// What to serve and where.
#[derive(Clone, Debug)]
pub struct SmbConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the files are.
    pub files: SmbFiles,
    /// Who may log on; `None`: everybody, as a guest, neither signed nor encrypted.
    pub login: Option<Login>,
    /// Whether messages must be encrypted; needs a login.
    pub encryption: Encryption,
    /// Threads, and the cores they keep to; empty: as many as there are cores, on any.
    pub cores: Vec<u32>,
    /// Besides, for each read and write of files in memory.
    pub work: Work,
}

/// Where the files of a server are.
#[derive(Clone, Debug)]
pub enum SmbFiles {
    /// In memory, of which at most so many bytes are used.
    Memory {
        /// Limit in bytes.
        bytes_max: u64,
    },
    /// Below a directory.
    Directory {
        /// The directory.
        root: PathBuf,
        /// Whether clients may change what is there.
        access: FilesAccess,
    },
}

/// What clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesAccess {
    /// Read and list.
    Read,
    /// All.
    ReadWrite,
}

/// Whether messages are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// As the client does.
    #[default]
    AsClient,
    /// Always; who cannot is refused.
    Required,
}

/// An SMB server that listens and does not serve yet.
pub struct SmbServer {
    server: smb_server::SmbServer,
    runtime: Runtime,
    address: SocketAddr,
    user: Option<String>,
}

impl SmbServer {
    /// Listens. Connections queue up in the kernel until [`SmbServer::serve_until`].
    pub fn bind(config: &SmbConfig) -> Result<Self, ServerError> {
        Self::bind_delayed(config, None)
    }

    /// Listens, as a server whose READs from memory are held by `delay`. On cores of its own it
    /// never sleeps while there are some.
    pub fn bind_delayed(
        config: &SmbConfig,
        delay: Option<Arc<DelayLaw>>,
    ) -> Result<Self, ServerError> {
        let runtime = runtime(&config.cores)?;
        if let Some(law) = delay.clone().filter(|_| !config.cores.is_empty()) {
            runtime.spawn(async move { law.keep_awake().await });
        }
        let mut share = share(config, delay)?;
        let mut builder = smb_server::SmbServer::builder()
            .listen(config.listen)
            .max_connections(CONNECTIONS_MAX)
            .idle_timeout(IDLE_MAX)
            // A test of wrong passwords is no attack.
            .logon_throttle(0, Duration::from_secs(1))
            .encrypt_data(config.encryption == Encryption::Required);
        share = match &config.login {
            None => share.public(),
            Some(Login { user, password }) => {
                builder = builder.user(user, password);
                share.user(user, Access::ReadWrite)
            }
        };
        let built = builder.share(share).build();
        let server = built.map_err(|error| ServerError::own(Refused(error.to_string())))?;
        let address = runtime
            .block_on(server.bind())
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        let user = config.login.as_ref().map(|login| login.user.clone());
        Ok(Self { server, runtime, address, user })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `smb://[USER@]ADDRESS:PORT/plimsoll`.
    pub fn url(&self) -> String {
        let who = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        format!("smb://{who}{}/{SHARE}", self.address)
    }

    /// Serves until `stop` is requested, then lets requests in progress finish for up to a second.
    /// Blocks the calling thread.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { server, runtime, .. } = self;
        let shutdown = server.shutdown_handle();
        let served = runtime.block_on(async {
            let mut serving = std::pin::pin!(server.serve());
            tokio::select! {
                served = &mut serving => served,
                () = stop.requested() => {
                    shutdown.shutdown();
                    // Whoever is not done by then is cut off below.
                    tokio::time::timeout(DRAIN_MAX, serving).await.unwrap_or(Ok(()))
                }
            }
        });
        runtime.shutdown_background();
        served.map_err(|source| ServerError::System { doing: "accept connections", source })
    }
}

impl std::fmt::Debug for SmbServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmbServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

fn share(config: &SmbConfig, delay: Option<Arc<DelayLaw>>) -> Result<Share, ServerError> {
    Ok(match &config.files {
        SmbFiles::Memory { bytes_max } => {
            Share::new(SHARE, MemoryShare::new(*bytes_max).delayed_by(delay).with_work(config.work))
        }
        SmbFiles::Directory { root, access } => {
            let directory = LocalFsBackend::new(root)
                .map_err(|source| ServerError::Root { path: root.clone(), source })?;
            let directory = match access {
                FilesAccess::Read => directory.read_only(),
                FilesAccess::ReadWrite => directory,
            };
            Share::new(SHARE, DirectoryShare(directory))
        }
    })
}

/// Its threads are started from one that is pinned, and inherit that.
fn runtime(cores: &[u32]) -> Result<Runtime, ServerError> {
    let system = |source| ServerError::System { doing: "set up serving threads", source };
    let threads = match cores.len() {
        0 => cores::available().map_err(system)?.len(),
        some => some,
    };
    let build = || {
        cores::pin_current_thread(cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(cores), source })?;
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("smb")
            .enable_all()
            .build()
            .map_err(system)
    };
    std::thread::scope(|scope| match scope.spawn(build).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// The crate that serves refuses its configuration.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the SMB server: {0}")]
pub struct Refused(String);
