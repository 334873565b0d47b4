//! What is on its way to a client: one greeting or reply, sent as far as the socket takes it.

use std::io::IoSlice;
use std::os::fd::AsFd;

use crate::wire::{REPLY_HEADER_BYTES, ReplyHeader, WELCOME_BYTES, Welcome, work_block};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

const HEAD_BYTES_MAX: usize = WELCOME_BYTES;
const _: () = assert!(REPLY_HEADER_BYTES <= HEAD_BYTES_MAX);

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it is in the socket.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// The client is gone.
    Gone,
}

/// A message on its way.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    body: Body,
    sent_bytes: usize,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    None,
    /// So many bytes of the work block; nothing is copied.
    Block(usize),
    Text(Vec<u8>),
}

impl Outbox {
    pub(super) fn put_welcome(&mut self, welcome: &Welcome) {
        self.put(&welcome.encode(), Body::None);
    }

    /// With as many bytes of the work block as the header says.
    pub(super) fn put_reply(&mut self, header: &ReplyHeader) {
        let body = match header.payload_bytes as usize {
            0 => Body::None,
            some => Body::Block(some),
        };
        self.put(&header.encode(), body);
    }

    /// The header must have the length of `text`.
    pub(super) fn put_text(&mut self, header: &ReplyHeader, text: Vec<u8>) {
        self.put(&header.encode(), Body::Text(text));
    }

    fn put(&mut self, head: &[u8], body: Body) {
        self.head[..head.len()].copy_from_slice(head);
        (self.head_bytes, self.body, self.sent_bytes) = (head.len(), body, 0);
    }

    /// Bytes of the whole message.
    pub(super) fn bytes(&self) -> usize {
        self.head_bytes + self.body().len()
    }

    /// Sends what is left, normally with one call.
    pub(super) fn send(&mut self, socket: impl AsFd) -> Sent {
        const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
        while self.sent_bytes < self.bytes() {
            let (head, body) = self.left();
            let sent = match (head, body) {
                (one, []) | ([], one) => send(&socket, one, FLAGS),
                (head, body) => {
                    let parts = [IoSlice::new(head), IoSlice::new(body)];
                    sendmsg(&socket, &parts, &mut SendAncillaryBuffer::default(), FLAGS)
                }
            };
            match sent {
                Ok(sent) => self.sent_bytes += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Blocked,
                Err(_) => return Sent::Gone,
            }
        }
        self.body = Body::None;
        Sent::All
    }

    fn left(&self) -> (&[u8], &[u8]) {
        let body_sent = self.sent_bytes.saturating_sub(self.head_bytes);
        let head_sent = self.sent_bytes.min(self.head_bytes);
        (&self.head[head_sent..self.head_bytes], &self.body()[body_sent..])
    }

    fn body(&self) -> &[u8] {
        match &self.body {
            Body::None => &[],
            Body::Block(bytes) => &work_block()[..*bytes],
            Body::Text(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use crate::wire::{Status, WORK_BLOCK_BYTES};

    use super::*;

    fn header(payload_bytes: u32) -> ReplyHeader {
        ReplyHeader { payload_bytes, kind: 3, status: Status::Ok, id: 1, checksum: 2, server_ns: 3 }
    }

    #[test]
    fn a_reply_that_the_socket_takes_in_pieces_arrives_whole() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&ours, 4_096).unwrap();
        let mut outbox = Outbox::default();
        outbox.put_reply(&header(WORK_BLOCK_BYTES as u32));
        let (mut received, mut piece) = (Vec::new(), [0; 1_000]);
        let mut blocked = 0;
        while outbox.send(&ours) == Sent::Blocked {
            blocked += 1;
            let read = theirs.read(&mut piece).unwrap();
            received.extend(&piece[..read]);
        }
        drop(ours);
        theirs.read_to_end(&mut received).unwrap();
        assert!(blocked > 0);
        assert_eq!(received[..REPLY_HEADER_BYTES], header(WORK_BLOCK_BYTES as u32).encode());
        assert_eq!(received[REPLY_HEADER_BYTES..], *work_block());
    }

    #[test]
    fn a_client_that_left_is_no_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut outbox = Outbox::default();
        outbox.put_reply(&header(0));
        assert_eq!(outbox.send(&ours), Sent::Gone);
    }
}
