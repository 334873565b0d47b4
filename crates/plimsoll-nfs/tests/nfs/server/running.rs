//! A server on sockets of its own, in this process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plimsoll_nfs::server::{NfsConfig, NfsServer};
use plimsoll_testkit::program::ServerThread;

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server in a thread of this process; stops when dropped.
pub struct Running {
    pub address: SocketAddr,
    pub portmapper: Option<SocketAddr>,
    _serving: ServerThread,
}

/// With a portmapper of its own as well.
pub fn with_portmapper() -> Running {
    run(Some(ANY))
}

pub fn in_memory() -> Running {
    run(None)
}

fn run(portmapper: Option<SocketAddr>) -> Running {
    let memory_bytes_max = 256 << 20;
    let config = NfsConfig { listen: ANY, memory_bytes_max, portmapper, cores: Vec::new() };
    let server = NfsServer::bind(&config).unwrap();
    let (address, portmapper) = (server.address(), server.portmapper_address());
    let serving = ServerThread::new(move |stop| server.serve_until(stop));
    Running { address, portmapper, _serving: serving }
}

impl Running {
    /// URL as libnfs takes it.
    pub fn url(&self, path: &str) -> String {
        let port = self.address.port();
        format!("nfs://127.0.0.1/export{path}?nfsport={port}&mountport={port}&version=3")
    }
}
