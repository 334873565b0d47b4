//! A bad network for datagrams: some are lost, some come twice, some overtake each other. Every
//! misfortune follows from a seed and is counted. And TCP connections that can be cut.

use std::net::SocketAddr;

use plimsoll_engine::rng::{Random, Stream};

use crate::relay::tcp::{Filter, TcpRelay};
use crate::relay::udp::{Fate, UdpRelay};

pub use crate::relay::Direction;
pub use crate::relay::udp::{BothCounts, Counts};

/// Probability of each fault for a datagram; together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// It is lost.
    pub lose: f64,
    /// It comes twice.
    pub duplicate: f64,
    /// A later one of the same client comes before it.
    pub reorder: f64,
}

impl FaultRates {
    /// Nothing happens.
    pub const NONE: Self = Self { lose: 0.0, duplicate: 0.0, reorder: 0.0 };

    fn fate(self, draw: f64) -> Fate {
        let Self { lose, duplicate, reorder } = self;
        if draw < lose {
            Fate::Lose
        } else if draw < lose + duplicate {
            Fate::Duplicate
        } else if draw < lose + duplicate + reorder {
            Fate::HoldBack
        } else {
            Fate::Pass
        }
    }
}

/// What happens to the datagrams.
#[derive(Clone, Copy, Debug)]
pub struct LossyConfig {
    /// The same seed gives the n-th datagram of a direction the same fate.
    pub seed: u64,
    /// Towards the server.
    pub to_server: FaultRates,
    /// Towards the client.
    pub to_client: FaultRates,
}

/// A running proxy; stops when dropped.
pub struct LossyProxy(UdpRelay);

impl LossyProxy {
    /// Takes datagrams on a free port of 127.0.0.1 for `server`.
    pub fn start(server: SocketAddr, config: LossyConfig) -> Self {
        let mut to_server = Random::new(config.seed, Stream::Data, 0);
        let mut to_client = Random::new(config.seed, Stream::Data, 1);
        let decide = move |direction, _: &mut Vec<u8>| match direction {
            Direction::ToServer => config.to_server.fate(to_server.unit()),
            Direction::ToClient => config.to_client.fate(to_client.unit()),
        };
        Self(UdpRelay::start(server, Box::new(decide)))
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// What happened so far.
    pub fn counts(&self) -> BothCounts {
        self.0.counts()
    }

    /// From now on everything is lost, as if the server had died; lost ones are counted as such.
    pub fn go_down(&self) {
        self.0.go_down();
    }

    /// Datagrams go on again.
    pub fn come_back(&self) {
        self.0.come_back();
    }

    /// Datagrams go on again, to the server that is at `server` now.
    pub fn come_back_at(&self, server: SocketAddr) {
        self.0.come_back_at(server);
    }
}

/// A TCP connection to a server that can be cut, as when the server restarts. Stops when dropped.
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
