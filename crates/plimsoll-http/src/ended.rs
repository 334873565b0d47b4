//! Connections that have ended, or are about to: those that the server will close after its reply,
//! and why one that was to be held is gone.

use std::fmt;

use plimsoll_engine::seam::{Io, Link};

use super::site::HttpOp;

/// Connections per client that may wait for the server to close them.
pub(super) const LINGERING_LINKS_MAX: usize = 8;

/// Why a connection that was to be held is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The server closed it, or it broke, while nothing was asked for.
    Idle,
    /// A request failed on it.
    WithRequest,
    /// The server closed it after a reply, as the reply said.
    AfterReply,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "the server closed the idle connection",
            Self::WithRequest => "a request on the connection failed",
            Self::AfterReply => "the server closed the connection after a reply",
        })
    }
}

/// A link that waits for its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lingering {
    pub(super) link: Link,
    /// The op that the last reply on it answered, if that ended well.
    pub(super) answered: Option<HttpOp>,
}

/// The links of one client that wait for their end.
#[derive(Debug, Default)]
pub(super) struct LingeringLinks(Vec<Lingering>);

impl LingeringLinks {
    /// Leaves the closing to the server, so that the waiting for late segments is its own.
    pub(super) fn add(&mut self, lingering: Lingering, io: &mut impl Io) {
        if self.0.len() == LINGERING_LINKS_MAX {
            io.close(self.0.remove(0).link);
        }
        self.0.push(lingering);
    }

    /// Forgets a link that waited for its end, if it is one.
    pub(super) fn stop(&mut self, link: Link) -> Option<Lingering> {
        let at = self.0.iter().position(|lingering| lingering.link == link)?;
        Some(self.0.remove(at))
    }

    /// Heap bytes.
    pub(super) const fn held_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Lingering>()
    }
}
