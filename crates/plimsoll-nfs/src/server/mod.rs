//! The reference NFS server: NFS versions 2 and 3 with MOUNT, over TCP and UDP, and version 4.1
//! over TCP, on one port, in memory, with an optional portmapper.
//!
//! It is a server to measure against, not one to keep files on: every client that reaches it may do
//! everything, whatever user it claims to be.

mod core;
mod delayed;
pub mod ganesha;
mod sockets;
pub mod store;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::{ServerError, Stop, cores, listen};

use self::delayed::DelayedReplies;
use self::store::Store;

pub use self::core::{
    Answered, Counts, EXPORT, FewerSlots, Link, Nfs4, Nfs4Config, NfsCore, Peer, Registered,
};

/// The number that version 4.1 goes by in calls.
const NFS_4: u32 = 4;

/// Ports tried until one is free for TCP and UDP, when any will do.
const PORT_TRIES: usize = 64;

/// What to serve and where.
#[derive(Clone, Debug)]
pub struct NfsConfig {
    /// Address to listen on, for TCP and UDP; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Most memory in bytes that files and their names may take.
    pub memory_bytes_max: u64,
    /// Address of a portmapper to serve as well; normally port 111.
    pub portmapper: Option<SocketAddr>,
    /// Cores to keep to, and one thread for UDP on each; empty: any, and one thread.
    pub cores: Vec<u32>,
}

/// An NFS server that listens and does not serve yet.
pub struct NfsServer {
    core: NfsCore,
    nfs: Endpoint,
    portmapper: Option<Endpoint>,
    cores: Vec<u32>,
    delay: Option<Arc<DelayLaw>>,
    /// The only version of NFS that it serves.
    version: Option<u32>,
}

/// Two sockets of one port.
struct Endpoint {
    tcp: TcpListener,
    udp: UdpSocket,
    address: SocketAddr,
}

impl NfsServer {
    /// Listens. Calls queue up in the kernel until [`NfsServer::serve_until`].
    pub fn bind(config: &NfsConfig) -> Result<Self, ServerError> {
        let nfs = Endpoint::bind(config.listen)
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        let bind = |address: SocketAddr| {
            Endpoint::bind(address)
                .map_err(|source| ServerError::own(NfsServerError::Portmapper { address, source }))
        };
        let portmapper = config.portmapper.map(bind).transpose()?;
        let mut core = NfsCore::new(Store::new(config.memory_bytes_max));
        if portmapper.is_some() {
            core = core.with_portmapper(Registered { port: nfs.address.port() });
        }
        Ok(Self { core, nfs, portmapper, cores: config.cores.clone(), delay: None, version: None })
    }

    /// The same server with replies to GETATTR delayed by `law`.
    #[must_use]
    pub fn delayed_by(self, law: Arc<DelayLaw>) -> Self {
        Self { delay: Some(law), ..self }
    }

    /// The same server with additional work for each call.
    #[must_use]
    pub fn with_work(self, work: Work) -> Self {
        Self { core: self.core.with_work(work), ..self }
    }

    /// The same server with only one version of NFS: 2, 3, or 4, which is 4.1; `None`: all.
    #[must_use]
    pub fn with_version(self, version: Option<u32>) -> Self {
        Self { core: self.core.with_version(version), version, ..self }
    }

    /// The same server, in version 4.1 as configured.
    #[must_use]
    pub fn with_v4(self, config: Nfs4Config) -> Self {
        Self { core: self.core.with_v4(config), ..self }
    }

    /// Its clients and sessions of version 4.1, also while it serves.
    pub fn v4(&self) -> Arc<Nfs4> {
        Arc::clone(self.core.v4())
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.nfs.address
    }

    /// Where its portmapper listens.
    pub fn portmapper_address(&self) -> Option<SocketAddr> {
        self.portmapper.as_ref().map(|endpoint| endpoint.address)
    }

    /// `nfs://ADDRESS:PORT/export?mountport=PORT`, with the version if it serves only one. Version
    /// 4.1 has no MOUNT.
    pub fn url(&self) -> String {
        let address = self.nfs.address;
        let port = address.port();
        let options = match self.version {
            None => format!("mountport={port}"),
            Some(NFS_4) => "version=4.1".to_owned(),
            Some(version) => format!("mountport={port}&version={version}"),
        };
        format!("nfs://{address}{EXPORT}?{options}")
    }

    /// Serves until `stop` is requested; calls being executed are answered. Blocks the calling
    /// thread.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { core, nfs, portmapper, cores, delay, version: _ } = self;
        let delayed = delay.map(DelayedReplies::new);
        let delayed = delayed.as_ref();
        cores::pin_current_thread(&cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(&cores), source })?;
        let mut datagrams = Vec::new();
        for thread in 0..cores.len().max(1) {
            let core = cores.get(thread).map(|core| vec![*core]).unwrap_or_default();
            datagrams.push((nfs.udp.try_clone().map_err(no_socket)?, core));
        }
        let mut listeners = vec![nfs.tcp];
        if let Some(Endpoint { tcp, udp, .. }) = portmapper {
            datagrams.push((udp, Vec::new()));
            listeners.push(tcp);
        }
        std::thread::scope(|scope| {
            let core = &core;
            let mut threads = Vec::new();
            for (socket, pin) in datagrams {
                let serve = move || sockets::serve_datagrams((core, delayed), &socket, &pin, stop);
                threads.push(scope.spawn(serve));
            }
            if let Some(delayed) = delayed {
                scope.spawn(|| delayed.serve(stop));
            }
            let accepted = sockets::serve_streams((core, delayed), &listeners, stop);
            stop.request();
            let mut outcomes = vec![accepted];
            for thread in threads {
                let joined = thread.join();
                outcomes.push(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            outcomes.into_iter().collect()
        })
    }
}

impl Endpoint {
    fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut tried = Self::bind_both(address);
        // The free port that TCP found may be taken for UDP.
        for _ in 1..if address.port() == 0 { PORT_TRIES } else { 1 } {
            match tried {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    tried = Self::bind_both(address);
                }
                _ => break,
            }
        }
        tried
    }

    fn bind_both(address: SocketAddr) -> io::Result<Self> {
        let (tcp, address) = listen(address)?;
        let udp = UdpSocket::bind(address)?;
        Ok(Self { tcp, udp, address })
    }
}

fn no_socket(source: io::Error) -> ServerError {
    ServerError::System { doing: "share a socket between threads", source }
}

impl std::fmt::Debug for NfsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NfsServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Why the reference server of NFS cannot be started.
#[derive(Debug, thiserror::Error)]
enum NfsServerError {
    /// The portmapper's address is taken, mostly by a portmapper.
    #[error(
        "cannot listen on {address} as a portmapper: {source}; another one may run there, and \
             the ports in the URL make it unnecessary"
    )]
    Portmapper {
        /// Requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}
