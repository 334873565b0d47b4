//! A server as set-up reaches it.

use std::net::SocketAddr;

/// A server of a run.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// As the user named it.
    pub name: String,
    /// Where to connect.
    pub address: SocketAddr,
}
