//! The connection of a client: not needed yet, on its way, logged on, gone.
//!
//! Each connection has a client GUID of its own, also those of set-up and of each logon. Samba
//! serves all connections with one GUID in one process, so clients with a common GUID would measure
//! a single smbd.

use plimsoll_engine::seam::Link;

use super::super::logon::{Established, Logon};
use super::credits::Credits;

/// The connection of a client.
pub(super) enum Connection {
    /// Not needed yet.
    Idle,
    Connecting(Link),
    LoggingOn(Link, Box<Logon>),
    Up(Box<Connected>),
    /// The client is lost.
    Gone,
}

/// A client that has logged on.
pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) credits: Credits,
    pub(super) established: Established,
}

impl Connection {
    pub(super) fn link(&self) -> Option<Link> {
        match self {
            Self::Idle | Self::Gone => None,
            Self::Connecting(link) | Self::LoggingOn(link, _) => Some(*link),
            Self::Up(up) => Some(up.link),
        }
    }

    /// What an op waits for that has not been sent.
    pub(super) fn waited_for(&self) -> &'static str {
        match self {
            Self::Idle | Self::Gone | Self::Connecting(_) => "connection",
            Self::LoggingOn(..) => "end of the logon",
            Self::Up(_) => "credits from the server to send it with",
        }
    }
}
