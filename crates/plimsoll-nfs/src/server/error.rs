//! Why the reference server of NFS cannot be started.

use std::io;
use std::net::SocketAddr;

/// Why the reference server of NFS cannot be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum NfsServerError {
    /// The portmapper's address is taken, mostly by a portmapper.
    #[error(
        "cannot listen on {address} as a portmapper: {source}; another one may run there, and \
             the ports in the URL make it unnecessary"
    )]
    Portmapper {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}
