//! One client: its connection, the answer it gets, and when what happened.

use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use plimsoll_engine::driver::epoll::Stamps;
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::web::{BadRequest, Closed, Request, WebClient};

use super::answer::Answering;

/// Longest body: a prompt of some millions of words.
const BODY_BYTES_MAX: usize = 32 << 20;

/// A client.
pub(super) struct Connection {
    pub(super) web: WebClient,
    pub(super) answering: Option<Answering>,
    /// An event reports when there is room to send.
    pub(super) waits_for_room: bool,
    /// Something was sent last.
    pub(super) wrote_ns: u64,
    /// The kernel received the last of what was read.
    pub(super) arrived_ns: u64,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.web.as_fd()
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, accepted_ns: u64) -> Self {
        Stamps::ask(&stream);
        Self {
            web: WebClient::new(stream, BODY_BYTES_MAX, accepted_ns),
            answering: None,
            waits_for_room: false,
            wrote_ns: 0,
            arrived_ns: 0,
        }
    }

    /// Reads what there is, once.
    pub(super) fn fill(&mut self, room: &mut [u8], stamps: &mut Stamps) -> Result<(), Closed> {
        match stamps.receive(&self.web, room) {
            Ok((0, _)) => Err(Closed),
            Ok((count, stamp)) => {
                self.web.take(&room[..count])?;
                self.arrived_ns = stamp.map_or_else(monotonic_ns, |stamp| stamp.0);
                Ok(())
            }
            Err(e) if matches!(e.kind(), WouldBlock | Interrupted) => Ok(()),
            Err(_) => Err(Closed),
        }
    }

    /// The next request, once it is whole and the one before is answered.
    pub(super) fn next_request(&mut self) -> Result<Option<Request>, BadRequest> {
        if self.answering.is_some() { Ok(None) } else { self.web.next_request() }
    }
}
