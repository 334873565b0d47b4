//! The calibrated server: answers after times drawn from a known law, as a queue with a known
//! number of servers would, so that an instrument can be held against it. It does no work.
//!
//! One thread. The last byte of a request is its arrival; [`plimsoll_servers::station`] computes its departure in
//! virtual time, and the reply leaves at that instant. A thread that slept through each service
//! would oversleep, and 50 µs at 90 % utilisation turn a mean of 3 ms into one of 5.

mod connection;
mod serving;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use plimsoll_model::calibrated::CalibratedSpec;

use plimsoll_servers::log::{Log, ROWS_MAX};
use plimsoll_servers::timed::{self, Clients};
use plimsoll_servers::{ServerError, Stop};
use serving::Serving;

/// What to be, and where.
#[derive(Clone, Debug)]
pub struct CalibratedConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The queue to be.
    pub spec: CalibratedSpec,
    /// Where to write what happened to each request, at the end; the file is replaced.
    pub log: Option<PathBuf>,
    /// Cores for itself, on which it looks without sleeping; empty: anywhere, asleep until shortly
    /// before a reply is due.
    pub cores: Vec<u32>,
}

/// A calibrated server that listens and does not serve yet.
pub struct CalibratedServer {
    listener: TcpListener,
    address: SocketAddr,
    config: CalibratedConfig,
}

impl CalibratedServer {
    /// Listens. That the log cannot be written is found out now and not at the end.
    pub fn bind(config: &CalibratedConfig) -> Result<Self, ServerError> {
        let (listener, address) = timed::bind(config.listen, config.log.as_deref())?;
        Ok(Self { listener, address, config: config.clone() })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `app://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("app://{}/", self.address)
    }

    /// Serves on the calling thread until `stop` is requested; what is under way then is dropped.
    /// Writes the log.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { listener, config, .. } = self;
        let CalibratedConfig { spec, log, cores, .. } = config;
        let clients = Clients::new(listener, &cores)?;
        let mut serving = Serving::new(&spec, log.as_ref().map(|_| Log::new(ROWS_MAX)));
        clients.serve(&mut serving, stop);
        let (kept, stall) = serving.ended();
        if let (Some(path), Some(kept)) = (log, kept) {
            let written = kept.write(&path, &spec, stall);
            written.map_err(|source| ServerError::Log { path, source })?;
        }
        Ok(())
    }
}
