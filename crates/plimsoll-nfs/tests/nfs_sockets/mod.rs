//! A server on sockets of its own, in this process.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::{IpAddr, SocketAddr};
use std::thread::JoinHandle;

use plimsoll_nfs::server::{NfsConfig, NfsFiles, NfsServer};
use plimsoll_servers::{ServerError, Stop};

/// A server in a thread of this process; stops when dropped.
pub struct Running {
    pub address: SocketAddr,
    pub portmapper: Option<SocketAddr>,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

pub fn run(files: NfsFiles, with_portmapper: bool) -> Running {
    let any = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 0);
    let portmapper = with_portmapper.then_some(any);
    let config = NfsConfig { listen: any, files, portmapper, cores: Vec::new() };
    let server = NfsServer::bind(&config).unwrap();
    let (address, portmapper) = (server.address(), server.portmapper_address());
    let stop = Stop::new();
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || server.serve_until(&stop)
    });
    Running { address, portmapper, stop, thread: Some(thread) }
}

pub fn in_memory() -> Running {
    run(NfsFiles::Memory { bytes_max: 256 << 20 }, false)
}

impl Running {
    /// URL as libnfs takes it.
    pub fn url(&self, path: &str) -> String {
        let port = self.address.port();
        format!("nfs://127.0.0.1/export{path}?nfsport={port}&mountport={port}&version=3")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        let served = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            served.unwrap().unwrap();
        }
    }
}
