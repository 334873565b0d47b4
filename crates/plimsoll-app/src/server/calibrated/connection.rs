//! One client of the calibrated server: bytes in, frames out of them, replies back.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use crate::wire::{
    HELLO_BYTES, Hello, PAYLOAD_BYTES_MAX, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, Refusal,
    ReplyHeader, RequestHeader, RequestType, Status, VERSION, Welcome, checksum,
};

/// Longest frame; a connection keeps no more than that of what it has read.
pub(super) const FRAME_BYTES_MAX: usize = REQUEST_HEADER_BYTES + PAYLOAD_BYTES_MAX as usize;
const SECOND_NS: u64 = 1_000_000_000;
/// A greeting takes no longer than this.
const GREETING_NS_MAX: u64 = 10 * SECOND_NS;
/// Nor does a request that has begun, or a reply until somebody has taken it.
const FRAME_NS_MAX: u64 = 30 * SECOND_NS;

/// A client.
pub(super) struct Connection {
    /// No other client has it.
    pub(super) number: u64,
    stream: TcpStream,
    /// Of the queue, for the welcome.
    servers: u32,
    stage: Stage,
    /// Read, and not yet a whole frame.
    input: Vec<u8>,
    /// To be sent, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// There may be more to read.
    readable: bool,
    /// The client sends no more: behind what there is to read lies the end, and no event will say
    /// so again.
    sends_no_more: bool,
    /// The connection ends once `output` is gone.
    ending: bool,
    /// When the stage, or the frame in it, began.
    since_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Greeting,
    Reading,
    /// A request waits for its departure; nothing is read meanwhile.
    Serving,
}

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To be served; the reply, its time in the server excepted.
    Service {
        /// The reply.
        reply: ReplyHeader,
        /// Seed of the request's checksum.
        seed: u32,
    },
    /// The server's figures.
    Figures {
        /// Of the request.
        id: u32,
        /// Of its checksum.
        seed: u32,
    },
    /// Nothing that could be done now.
    Nothing,
}

/// The connection is over.
#[derive(Debug)]
pub(super) struct Over;

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, (number, servers): (u64, u32), now_ns: u64) -> Self {
        Self {
            number,
            stream,
            servers,
            stage: Stage::Greeting,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            readable: true,
            sends_no_more: false,
            ending: false,
            since_ns: now_ns,
        }
    }

    /// The kernel says there are bytes.
    pub(super) fn set_readable(&mut self) {
        self.readable = true;
    }

    /// The kernel says that the client sends no more.
    pub(super) fn set_sends_no_more(&mut self) {
        self.readable = true;
        self.sends_no_more = true;
    }

    /// Reads until a request is whole; answers greetings on the way. `room` holds a frame.
    pub(super) fn advance(&mut self, room: &mut [u8], now_ns: u64) -> Result<Wanted, Over> {
        loop {
            if self.stage == Stage::Serving || !self.output.is_empty() {
                return Ok(Wanted::Nothing);
            }
            let stage = self.stage;
            if let Some(wanted) = self.take_frame(now_ns)? {
                return Ok(wanted);
            }
            // Behind a greeting there may be a request already, and the end behind that.
            if self.stage == stage && !self.fill(room, now_ns)? {
                return Ok(Wanted::Nothing);
            }
        }
    }

    /// Sends the reply of the request that was served.
    pub(super) fn reply(&mut self, header: ReplyHeader, now_ns: u64) -> Result<(), Over> {
        self.stage = Stage::Reading;
        // The time that the client has to take it begins.
        self.since_ns = now_ns;
        self.queue_reply(header);
        self.flush(now_ns)
    }

    /// Sends the figures that were asked for.
    pub(super) fn send_figures(
        &mut self,
        (id, seed): (u32, u32),
        text: &str,
        now_ns: u64,
    ) -> Result<(), Over> {
        let header = ReplyHeader {
            payload_bytes: text.len() as u32,
            kind: RequestType::Status as u8,
            status: Status::Ok,
            id,
            checksum: checksum(seed, text.as_bytes()),
            server_ns: 0,
        };
        self.output.extend_from_slice(&header.encode());
        self.output.extend_from_slice(text.as_bytes());
        self.flush(now_ns)
    }

    /// Sends what is left of earlier replies.
    pub(super) fn flush(&mut self, now_ns: u64) -> Result<(), Over> {
        if self.output.is_empty() {
            // Every event says that there is room. Nothing began with it.
            return Ok(());
        }
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Over),
                Ok(length) => self.sent += length,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Over),
            }
        }
        self.output.clear();
        self.sent = 0;
        self.since_ns = now_ns;
        if self.ending { Err(Over) } else { Ok(()) }
    }

    /// It has kept us waiting for longer than anybody may.
    pub(super) fn is_stale(&self, now_ns: u64) -> bool {
        let limit_ns = match self.stage {
            Stage::Greeting => GREETING_NS_MAX,
            Stage::Serving => return false,
            Stage::Reading if self.input.is_empty() && self.output.is_empty() => return false,
            Stage::Reading => FRAME_NS_MAX,
        };
        now_ns.saturating_sub(self.since_ns) > limit_ns
    }

    /// Reads once; false when there was nothing.
    fn fill(&mut self, room: &mut [u8], now_ns: u64) -> Result<bool, Over> {
        if !self.readable {
            return Ok(false);
        }
        let wanted = FRAME_BYTES_MAX - self.input.len();
        match self.stream.read(&mut room[..wanted]) {
            Ok(0) => Err(Over),
            Ok(length) => {
                if self.input.is_empty() && self.stage == Stage::Reading {
                    self.since_ns = now_ns;
                }
                // Readiness is edge-triggered: less than asked for means that nothing is left.
                self.readable = length == wanted || self.sends_no_more;
                self.input.extend_from_slice(&room[..length]);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(false)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(Over),
        }
    }

    fn take_frame(&mut self, now_ns: u64) -> Result<Option<Wanted>, Over> {
        if self.stage == Stage::Greeting {
            return self.greet(now_ns);
        }
        let Some(head) = self.input.first_chunk::<REQUEST_HEADER_BYTES>() else { return Ok(None) };
        let request = match RequestHeader::decode(head) {
            Ok(request) => request,
            Err(_) => {
                return self.refuse(
                    head[4],
                    u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
                    now_ns,
                );
            }
        };
        let length = REQUEST_HEADER_BYTES + request.payload_bytes as usize;
        let Some(payload) = self.input.get(REQUEST_HEADER_BYTES..length) else { return Ok(None) };
        let wanted = match request.kind {
            RequestType::ClientServer => Wanted::Service {
                seed: request.seed,
                reply: ReplyHeader {
                    payload_bytes: request.size,
                    kind: request.kind as u8,
                    status: Status::Ok,
                    id: request.id,
                    checksum: checksum(request.seed, payload),
                    server_ns: 0,
                },
            },
            RequestType::Status => Wanted::Figures { id: request.id, seed: request.seed },
            other => return self.refuse(other as u8, request.id, now_ns),
        };
        self.input.drain(..length);
        if matches!(wanted, Wanted::Service { .. }) {
            self.stage = Stage::Serving;
        }
        Ok(Some(wanted))
    }

    fn greet(&mut self, now_ns: u64) -> Result<Option<Wanted>, Over> {
        let Some(bytes) = self.input.first_chunk::<HELLO_BYTES>() else { return Ok(None) };
        let Ok(hello) = Hello::decode(bytes) else { return Err(Over) };
        self.input.drain(..HELLO_BYTES);
        let welcome = if hello.version == VERSION {
            Welcome {
                version: VERSION,
                refusal: None,
                service_threads: self.servers,
                durable: false,
                calibrated: true,
                segment_bytes: 0,
                memory_bytes: 0,
            }
        } else {
            self.ending = true;
            Welcome::refused(Refusal::Version)
        };
        self.stage = Stage::Reading;
        self.output.extend_from_slice(&welcome.encode());
        self.flush(now_ns)?;
        Ok(None)
    }

    /// What this server does not do, or nobody: says so, and ends.
    fn refuse(&mut self, kind: u8, id: u32, now_ns: u64) -> Result<Option<Wanted>, Over> {
        let status = Status::BadRequest;
        let header = ReplyHeader { payload_bytes: 0, kind, status, id, checksum: 0, server_ns: 0 };
        self.ending = true;
        self.output.extend_from_slice(&header.encode());
        self.flush(now_ns)?;
        Ok(Some(Wanted::Nothing))
    }

    fn queue_reply(&mut self, header: ReplyHeader) {
        self.output.extend_from_slice(&header.encode());
        let length = REPLY_HEADER_BYTES + header.payload_bytes as usize;
        self.output.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_buys_no_time() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut connection = Connection::new(listener.accept().unwrap().0, (1, 1), 0);
        let mut room = vec![0; FRAME_BYTES_MAX];
        let hello = Hello { version: VERSION, client: 1, segment_bytes: 0 }.encode();
        let mut drop_by = |connection: &mut Connection, bytes: &[u8], now_ns| {
            client.write_all(bytes).unwrap();
            // As an edge-triggered event of arriving bytes has it.
            connection.set_readable();
            connection.flush(now_ns).unwrap();
            assert_eq!(connection.advance(&mut room, now_ns).unwrap(), Wanted::Nothing);
        };
        drop_by(&mut connection, &hello[..1], 9 * SECOND_NS);
        assert!(!connection.is_stale(9 * SECOND_NS));
        assert!(connection.is_stale(11 * SECOND_NS));
        drop_by(&mut connection, &hello[1..], 12 * SECOND_NS);
        assert!(!connection.is_stale(90 * SECOND_NS));
        for now_ns in [100, 115, 129].map(|second| second * SECOND_NS) {
            drop_by(&mut connection, &[0], now_ns);
            assert!(!connection.is_stale(now_ns));
        }
        assert!(connection.is_stale(131 * SECOND_NS));
    }
}
