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
use plimsoll_servers::{ServerError, Stop, cores};
use serving::{Ended, Serving, Waiting};

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
        if let Some(path) = &config.log {
            std::fs::File::create(path)
                .map_err(|source| ServerError::Log { path: path.clone(), source })?;
        }
        let error = |source| ServerError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
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
        let system = |doing| move |source| ServerError::System { doing, source };
        let waiting = if cores.is_empty() { Waiting::Sleep } else { Waiting::Spin };
        cores::pin_current_thread(&cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(&cores), source })?;
        let kept = log.as_ref().map(|_| Log::new(ROWS_MAX));
        let serving =
            Serving::new(listener, &spec, waiting, kept).map_err(system("make an event queue"))?;
        let Ended { log: kept, stall } = serving.until(stop);
        if let (Some(path), Some(kept)) = (log, kept) {
            let written = kept.write(&path, &spec, stall);
            written.map_err(|source| ServerError::Log { path, source })?;
        }
        Ok(())
    }
}
