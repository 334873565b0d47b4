//! A TCP connection to a server that can be cut, as when the server restarts.

use std::net::SocketAddr;

use crate::relay::tcp::{Filter, TcpRelay};

/// A running proxy; stops when dropped.
pub struct CutProxy(TcpRelay);

impl CutProxy {
    /// Listens on a free port of 127.0.0.1 for clients of `server`.
    pub fn start(server: SocketAddr) -> Self {
        fn unchanged() -> Filter {
            Box::new(|bytes, out| out.extend_from_slice(bytes))
        }
        Self(TcpRelay::start(server, Box::new(|| (unchanged(), unchanged()))))
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Connections so far.
    pub fn accepted(&self) -> u64 {
        self.0.accepted()
    }

    /// Cuts every connection; new ones are refused.
    pub fn go_down(&mut self) {
        self.0.go_down();
    }

    /// Takes connections again.
    pub fn come_back(&mut self) {
        self.0.come_back();
    }

    /// Takes connections again, for the server that is at `server` now.
    pub fn come_back_at(&mut self, server: SocketAddr) {
        self.0.come_back_at(server);
    }
}
