//! One client: bytes in, requests out of them, replies back.

use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use plimsoll_engine::driver::stamps::Stamps;
use plimsoll_servers::clock::monotonic_ns;

use super::answer::Answering;
use super::incoming::{BODY_BYTES_MAX, HEAD_BYTES_MAX, Head};
use super::reply::Refusal;

/// Bytes of replies that may wait for a client that does not take them.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// What a connection that waits keeps of its buffers.
const KEPT_BYTES: usize = 16 << 10;

/// A client.
pub(super) struct Connection {
    stream: TcpStream,
    /// Read, and not yet a whole request.
    input: Vec<u8>,
    head: Option<Head>,
    /// To be sent, from `sent` on.
    pub(super) output: Vec<u8>,
    sent: usize,
    pub(super) answering: Option<Answering>,
    /// It ends once `output` is gone.
    pub(super) closes: bool,
    /// The event queue says when there is room to send.
    pub(super) waits_for_room: bool,
    /// Something was sent last.
    pub(super) wrote_ns: u64,
    /// The kernel received the last of what was read.
    pub(super) arrived_ns: u64,
}

/// A request, and its body.
pub(super) struct Request {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

/// The connection is over.
#[derive(Debug)]
pub(super) struct Over;

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Stamps::ask(&stream);
        Self {
            stream,
            input: Vec::new(),
            head: None,
            output: Vec::new(),
            sent: 0,
            answering: None,
            closes: false,
            waits_for_room: false,
            wrote_ns: 0,
            arrived_ns: 0,
        }
    }

    /// Reads what there is, once.
    pub(super) fn fill(&mut self, room: &mut [u8], stamps: &mut Stamps) -> Result<(), Over> {
        match stamps.receive(&self.stream, room) {
            Ok((0, _)) => Err(Over),
            Ok((count, _)) if self.input.len() + count > HEAD_BYTES_MAX + BODY_BYTES_MAX => {
                Err(Over)
            }
            Ok((count, stamp)) => {
                self.input.extend_from_slice(&room[..count]);
                self.arrived_ns = stamp.map_or_else(monotonic_ns, |stamp| stamp.0);
                Ok(())
            }
            Err(e) if matches!(e.kind(), WouldBlock | Interrupted) => Ok(()),
            Err(_) => Err(Over),
        }
    }

    /// The next request, once it is whole and the one before is answered.
    pub(super) fn next_request(&mut self) -> Result<Option<Request>, Refusal> {
        if self.answering.is_some() || self.closes || self.input.is_empty() {
            return Ok(None);
        }
        if self.head.is_none() {
            self.head = Head::read(&self.input)?;
            if self.head.as_ref().is_some_and(|head| head.expects_continue) {
                self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
        let whole = self.head.take_if(|head| self.input.len() >= head.head_bytes + head.body_bytes);
        let Some(head) = whole else { return Ok(None) };
        let after = self.input.split_off(head.head_bytes + head.body_bytes);
        let mut body = std::mem::replace(&mut self.input, after);
        body.drain(..head.head_bytes);
        Ok(Some(Request { head, body }))
    }

    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends as much as the socket takes. Is everything gone?
    pub(super) fn flush(&mut self) -> Result<bool, Over> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Over),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == Interrupted => {}
                Err(e) if e.kind() == WouldBlock => {
                    let waits = self.output.len() - self.sent;
                    return if waits > OUTPUT_BYTES_MAX { Err(Over) } else { Ok(false) };
                }
                Err(_) => return Err(Over),
            }
        }
        self.sent = 0;
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES);
        Ok(true)
    }

    /// Ends it after its last reply. Whatever the client sends now is refused by the kernel.
    pub(super) fn end(self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
