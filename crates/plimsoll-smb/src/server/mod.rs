//! The reference SMB server: the crate `smb-server` with one share, in memory or on a directory.
//!
//! It is a server to measure against, not one to keep files on.
//!
//! The crate brings many packages, but a server of our own would be some 3,000 lines that no
//! measurement needs.

mod memory;
mod probe;
pub mod samba;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::process::Login;
use plimsoll_servers::{ServerError, Stop, cores};
use smb_server::{
    Access, BackendCapabilities, Handle, LocalFsBackend, OpenAction, OpenOptions, Share,
    ShareBackend, SmbPath, SmbResult, VolumeInfo,
};
use tokio::runtime::Runtime;

use memory::MemoryShare;

/// Name of the share.
pub const SHARE: &str = "plimsoll";

/// Connections served at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 16_384;
/// A connection without a request for this long is closed, unless it has files open.
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
    /// Additional work for each read and write of files in memory.
    pub work: Work,
}

/// Where the files of a server are.
#[derive(Clone, Debug)]
pub enum SmbFiles {
    /// In memory, up to a limit.
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

    /// Listens, as a server that delays READs from memory by `delay`. On cores of its own it stays
    /// awake while any wait.
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
                    // Connections that are not done by then are cut off below.
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

/// How long a deleted file keeps its inode number, and its space.
const RETENTION: Duration = Duration::from_secs(1);

/// The share on a directory.
///
/// The crate tells files apart by their inode numbers and forgets a deleted file only after its
/// name is gone. A file system gives a freed number to the next new file, which would then be taken
/// for the deleted one and refused as delete-pending. So a deleted file is kept open, and its
/// number in use, until the crate has surely forgotten it.
struct DirectoryShare(LocalFsBackend);

#[async_trait]
impl ShareBackend for DirectoryShare {
    async fn open(
        &self,
        path: &SmbPath,
        options: OpenOptions,
    ) -> SmbResult<(Box<dyn Handle>, OpenAction)> {
        self.0.open(path, options).await
    }

    async fn unlink(&self, path: &SmbPath) -> SmbResult<()> {
        // A file that cannot be opened may still be deleted.
        let retained = self.0.open(path, OpenOptions::default()).await.ok();
        self.0.unlink(path).await?;
        tokio::spawn(async move {
            tokio::time::sleep(RETENTION).await;
            drop(retained);
        });
        Ok(())
    }

    async fn rename(&self, from: &SmbPath, to: &SmbPath, replace: bool) -> SmbResult<()> {
        self.0.rename(from, to, replace).await
    }

    fn capabilities(&self) -> BackendCapabilities {
        self.0.capabilities()
    }

    async fn volume_info(&self) -> SmbResult<VolumeInfo> {
        self.0.volume_info().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smb_server::OpenIntent;

    async fn created(share: &DirectoryShare, name: &str) -> u64 {
        let options = OpenOptions { write: true, intent: OpenIntent::Create, ..Default::default() };
        let (handle, _) = share.open(&name.parse().unwrap(), options).await.unwrap();
        let index = handle.stat().await.unwrap().file_index;
        handle.close().await.unwrap();
        index
    }

    #[tokio::test]
    async fn a_new_file_is_not_taken_for_the_one_just_deleted() {
        let root = tempfile::tempdir().unwrap();
        let share = DirectoryShare(LocalFsBackend::new(root.path()).unwrap());
        let mut indices = Vec::new();
        for number in 0..50 {
            let name = format!("file{number:02}");
            let index = created(&share, &name).await;
            share.unlink(&name.parse().unwrap()).await.unwrap();
            assert!(!indices.contains(&index), "file {number}: {index} again");
            indices.push(index);
        }
    }
}
