//! One connection of either server, as bytes and messages: what the client sends is cut into
//! messages, each is answered before the next is looked at, and a client that takes too long is
//! late. The socket, which the caller keeps, does not block.

use std::borrow::Cow;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;

use plimsoll_servers::clock::monotonic_ns;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, send, sendmsg, shutdown};

use crate::wire::inbox::{Arrived, Inbox, Malformed};
use crate::wire::{
    PAYLOAD_BYTES_MAX, REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, Status,
    WELCOME_BYTES, Welcome, checksum, work_block,
};

/// The longest a greeting may take.
const GREETING_NS_MAX: u64 = 10_000_000_000;
/// How long a client has to read the last reply before the connection is closed.
const LEAVING_NS: u64 = 1_000_000_000;
/// Reads in a row that drop what a client sends after its last reply. One that sends still more is
/// not read again: its time is nearly up.
const READS_MAX: u32 = 16;
const HEAD_BYTES_MAX: usize = WELCOME_BYTES;
const _: () = assert!(REPLY_HEADER_BYTES <= HEAD_BYTES_MAX);

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Channel {
    inbox: Inbox,
    outbox: Outbox,
    phase: Phase,
    /// On the monotonic clock; the connection ends then if nothing changes.
    deadline_ns: Option<u64>,
    /// How long a request that has begun, or a reply, may take.
    transfer_ns_max: u64,
    /// There may be more to read.
    is_readable: bool,
    /// The client sends no more: the end follows what is left to read, and no further event reports
    /// it.
    sends_no_more: bool,
    /// Something was received since the last look at idle memory.
    is_warm: bool,
    /// Nothing more is read once the reply has left.
    is_last: bool,
    /// Received and answered since they were last counted.
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// What the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A message of the client.
    Receiving,
    /// The caller's reply.
    Serving,
    /// Room in the socket for the reply.
    Replying,
    /// The client, which is to read the last reply before the end.
    Leaving,
    Closed,
}

/// What follows for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A message is complete; nothing more is read until it has its reply.
    Arrived(Arrived),
    /// Bytes that are no message. A request's type; it has its reply, which is the last.
    Malformed(Option<u8>),
    /// Wait for its socket's next event.
    Wait,
    /// It has ended.
    Closed,
}

impl Channel {
    /// Of a connection that has just been accepted.
    pub(super) fn new(transfer_ns_max: u64, now_ns: u64) -> Self {
        Self {
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            phase: Phase::Receiving,
            deadline_ns: Some(now_ns + transfer_ns_max.min(GREETING_NS_MAX)),
            transfer_ns_max,
            is_readable: false,
            sends_no_more: false,
            is_warm: true,
            is_last: false,
            received_bytes: 0,
            sent_bytes: 0,
        }
    }

    /// The socket has news: something to read, room to write, perhaps the end.
    pub(super) fn hear(&mut self, sends_no_more: bool) {
        self.is_readable = true;
        self.sends_no_more |= sends_no_more;
    }

    /// Sends and reads until a message is complete, or there is nothing to do but wait. `buffer`
    /// has room for a frame.
    pub(super) fn advance(&mut self, socket: impl AsFd, buffer: &mut [u8]) -> Step {
        loop {
            match self.phase {
                Phase::Receiving => match self.inbox.next_message() {
                    Ok(Some(arrived)) => {
                        (self.phase, self.deadline_ns) = (Phase::Serving, None);
                        return Step::Arrived(arrived);
                    }
                    Err(malformed) => return self.refuse_malformed(malformed),
                    Ok(None) if self.is_readable => self.receive(&socket, buffer),
                    Ok(None) => {
                        if !self.inbox.is_empty() {
                            // Counted from the first byte, however slowly the others arrive.
                            self.start_deadline();
                        }
                        return Step::Wait;
                    }
                },
                Phase::Serving => return Step::Wait,
                Phase::Replying => {
                    self.send(&socket);
                    if self.phase == Phase::Replying {
                        return Step::Wait;
                    }
                }
                Phase::Leaving => {
                    self.drop_what_comes(&socket, buffer);
                    if self.phase == Phase::Leaving {
                        return Step::Wait;
                    }
                }
                Phase::Closed => return Step::Closed,
            }
        }
    }

    /// Payload of the request that has arrived.
    pub(super) fn payload(&self) -> &[u8] {
        self.inbox.payload()
    }

    /// Nothing but another message of the client can follow.
    pub(super) fn is_receiving(&self) -> bool {
        self.phase == Phase::Receiving
    }

    /// The client has kept the server waiting beyond the limit.
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        self.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns)
    }

    /// It is closed, or only its last reply may still be read.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Leaving | Phase::Closed)
    }

    /// Gives back the memory of a connection that has been idle since the last call.
    pub(super) fn release_idle(&mut self) {
        if !std::mem::take(&mut self.is_warm) {
            self.inbox.release();
        }
    }

    /// The reply that is prepared next is the last.
    pub(super) fn end_with_reply(&mut self) {
        self.is_last = true;
    }

    /// Ends it without another byte.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// Prepares a greeting; one that refuses is the last that is sent.
    pub(super) fn welcome(&mut self, welcome: &Welcome) {
        self.is_last |= welcome.refusal.is_some();
        self.reply_with(&welcome.encode(), Cow::Borrowed(&[]));
    }

    /// Prepares a reply, with as many bytes of the work block as the header says.
    pub(super) fn reply(&mut self, header: &ReplyHeader) {
        let body = &work_block()[..header.payload_bytes as usize];
        self.reply_with(&header.encode(), Cow::Borrowed(body));
    }

    /// Prepares the reply to a status request.
    pub(super) fn reply_with_text(&mut self, request: &RequestHeader, text: String) {
        let mut text = text.into_bytes();
        text.truncate(PAYLOAD_BYTES_MAX as usize);
        let header = ReplyHeader {
            payload_bytes: text.len() as u32,
            kind: RequestType::Status as u8,
            status: Status::Ok,
            id: request.id,
            checksum: checksum(request.seed, &text),
            server_ns: 0,
        };
        self.reply_with(&header.encode(), Cow::Owned(text));
    }

    /// Prepares the reply to a request that was not carried out, the last one.
    pub(super) fn refuse(&mut self, kind: u8, id: u32, status: Status) {
        let (payload_bytes, checksum, server_ns) = (0, 0, 0);
        self.is_last = true;
        self.reply(&ReplyHeader { payload_bytes, kind, status, id, checksum, server_ns });
    }

    /// Sends what is prepared, as far as the socket takes it.
    pub(super) fn send(&mut self, socket: impl AsFd) {
        match self.outbox.send(&socket) {
            Sent::All => {
                self.inbox.finish();
                (self.phase, self.deadline_ns) = (Phase::Receiving, None);
                if self.is_last {
                    (self.phase, self.deadline_ns) =
                        (Phase::Leaving, Some(monotonic_ns() + LEAVING_NS));
                    // A close with unread bytes would take the reply back, so what still comes is
                    // dropped first. An error means that it is closed already.
                    let _ = shutdown(&socket, Shutdown::Write);
                }
            }
            Sent::Blocked => self.start_deadline(),
            Sent::Gone => self.close(),
        }
    }

    fn reply_with(&mut self, head: &[u8], body: Cow<'static, [u8]>) {
        self.sent_bytes += (head.len() + body.len()) as u64;
        self.outbox.set_message(head, body);
        self.phase = Phase::Replying;
    }

    fn refuse_malformed(&mut self, malformed: Malformed) -> Step {
        let Malformed::Request { id, kind, .. } = malformed else {
            // No client that speaks the protocol waits for an answer to that.
            self.close();
            return Step::Malformed(None);
        };
        self.refuse(kind, id, Status::BadRequest);
        Step::Malformed(Some(kind))
    }

    fn start_deadline(&mut self) {
        let deadline_ns = || monotonic_ns().saturating_add(self.transfer_ns_max);
        self.deadline_ns.get_or_insert_with(deadline_ns);
    }

    /// One read, into the inbox and, beyond its memory, into `overflow`.
    fn receive(&mut self, socket: impl AsFd, overflow: &mut [u8]) {
        let room = self.inbox.room();
        let space = self.inbox.space();
        let overflow = &mut overflow[..room - space.len()];
        let mut parts = [IoSliceMut::new(space), IoSliceMut::new(overflow)];
        match rustix::io::readv(&socket, &mut parts) {
            Ok(count @ 1..) => {
                self.inbox.arrived(count, overflow);
                self.received_bytes += count as u64;
                self.is_warm = true;
                // Events are edge-triggered: a short read means that nothing is left.
                self.is_readable = count == room || self.sends_no_more;
            }
            Err(Errno::AGAIN) => self.is_readable = false,
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => self.close(),
        }
    }

    /// Reads and forgets, as far as that goes quickly.
    fn drop_what_comes(&mut self, socket: impl AsFd, buffer: &mut [u8]) {
        for _ in 0..READS_MAX {
            match rustix::io::read(&socket, &mut *buffer) {
                Ok(1..) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(0) | Err(_) => return self.close(),
            }
        }
    }
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// All of it is in the socket.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// The client is gone.
    Gone,
}

/// One greeting or reply on its way.
#[derive(Debug, Default)]
struct Outbox {
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    body: Cow<'static, [u8]>,
    sent_bytes: usize,
}

impl Outbox {
    fn set_message(&mut self, head: &[u8], body: Cow<'static, [u8]>) {
        self.head[..head.len()].copy_from_slice(head);
        (self.head_bytes, self.body, self.sent_bytes) = (head.len(), body, 0);
    }

    /// Sends what is left, normally with one call.
    fn send(&mut self, socket: impl AsFd) -> Sent {
        const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
        loop {
            let head = &self.head[self.sent_bytes.min(self.head_bytes)..self.head_bytes];
            let body = &self.body[self.sent_bytes.saturating_sub(self.head_bytes)..];
            let sent = match (head, body) {
                ([], []) => break,
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
        self.body = Cow::Borrowed(&[]);
        Sent::All
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use crate::wire::WORK_BLOCK_BYTES;

    use super::*;

    fn header(payload_bytes: u32) -> ReplyHeader {
        ReplyHeader { payload_bytes, kind: 3, status: Status::Ok, id: 1, checksum: 2, server_ns: 3 }
    }

    #[test]
    fn a_reply_that_the_socket_takes_in_pieces_arrives_whole() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&ours, 4_096).unwrap();
        let mut channel = Channel::new(1, 0);
        channel.reply(&header(WORK_BLOCK_BYTES as u32));
        let (mut received, mut piece) = (Vec::new(), [0; 1_000]);
        let mut blocked = 0;
        while channel.advance(&ours, &mut []) == Step::Wait && !channel.is_receiving() {
            blocked += 1;
            let read = theirs.read(&mut piece).unwrap();
            received.extend(&piece[..read]);
        }
        drop(ours);
        theirs.read_to_end(&mut received).unwrap();
        assert!(blocked > 0);
        assert_eq!(received[..REPLY_HEADER_BYTES], header(WORK_BLOCK_BYTES as u32).encode());
        assert_eq!(received[REPLY_HEADER_BYTES..], *work_block());
        assert_eq!(channel.sent_bytes, received.len() as u64);
    }

    #[test]
    fn a_client_that_left_is_no_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut channel = Channel::new(1, 0);
        channel.reply(&header(0));
        assert_eq!(channel.advance(&ours, &mut []), Step::Closed);
    }

    #[test]
    fn a_byte_now_and_then_buys_no_time() {
        use std::io::Write as _;

        use crate::wire::{Hello, VERSION};
        const SECOND_NS: u64 = 1_000_000_000;

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (begun_ns, mut room) = (monotonic_ns(), vec![0; 65_576]);
        let mut channel = Channel::new(30 * SECOND_NS, begun_ns);
        let hello = Hello { version: VERSION, client: 1, segment_bytes: 0 }.encode();
        let mut drop_by = |channel: &mut Channel, bytes: &[u8]| {
            theirs.write_all(bytes).unwrap();
            channel.hear(false);
            channel.advance(&ours, &mut room)
        };
        assert_eq!(drop_by(&mut channel, &hello[..1]), Step::Wait);
        assert!(!channel.is_late(begun_ns + 9 * SECOND_NS));
        assert!(channel.is_late(begun_ns + 11 * SECOND_NS));
        assert!(matches!(drop_by(&mut channel, &hello[1..]), Step::Arrived(_)));
        channel.welcome(&Welcome { refusal: None, ..Welcome::refused(crate::wire::Refusal::Full) });
        assert_eq!(drop_by(&mut channel, &[]), Step::Wait);
        assert!(!channel.is_late(begun_ns + 90 * SECOND_NS));
        assert_eq!(drop_by(&mut channel, &[0]), Step::Wait);
        let first_byte = channel.deadline_ns;
        for _ in 0..3 {
            assert_eq!(drop_by(&mut channel, &[0]), Step::Wait);
            assert_eq!(channel.deadline_ns, first_byte);
        }
        assert!(channel.is_late(monotonic_ns() + 31 * SECOND_NS));
    }
}
