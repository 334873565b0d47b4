//! A blocking client for set-up: one request after another. Every wait is bounded, and ends soon
//! when the caller raises a flag.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::refusal;
use crate::wire::{
    Hello, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType,
    Status, VERSION, WELCOME_BYTES, Welcome, WireError, checksum,
};
use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SetupError, SourcePort};

/// A wait is cut into pieces this long, so that a stop is heard.
const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// Pieces of silence after which a server counts as hung: half a minute. A durable write behind
/// those of sixty others may take seconds.
const SILENT_PIECES_MAX: u32 = 300;

/// Why a question of set-up failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    /// The connection did not open, or broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server lets us not in.
    #[error("{0}")]
    Refused(String),
    /// What came is no message.
    #[error("the server's answer cannot be read: {0}")]
    Garbled(#[from] WireError),
    /// What came is not the answer it should be.
    #[error("the server gave {0}")]
    Unfit(&'static str),
    /// The server answered with an error.
    #[error("the server answered: {}", .0.name())]
    Status(Status),
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
}

impl AppError {
    /// For the user: what could not be done, where, why, and the next move.
    pub(crate) fn unable_to(self, doing: &str, place: impl fmt::Display) -> SetupError {
        let remedy = match &self {
            Self::Stopped => return SetupError::Stopped,
            // Its words end with the next move.
            Self::Refused(words) => return SetupError::Unusable(format!("{place}: {words}")),
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) => "see whether a transaction server listens on that port",
            Self::Unfit(_) => "see whether the server follows docs/app-protocol.md",
            Self::Status(Status::NoRoom) => "free some room where the server keeps its segments",
            Self::Status(_) => "see what the server's log says",
        };
        SetupError::Unusable(format!("{place}: cannot {doing}: {self}; {remedy}"))
    }
}

/// A connection that has been greeted.
pub(crate) struct AppClient {
    channel: Box<dyn Channel>,
    stop: Arc<AtomicBool>,
    incoming: Vec<u8>,
    out: Vec<u8>,
    asked: u32,
}

/// Which bytes of the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: u32,
}

impl AppClient {
    /// Connects as this client, with a segment of so many bytes (zero: none). Raising `stop` ends
    /// this and all that follows.
    pub(crate) fn open(
        dial: &dyn Dial,
        address: SocketAddr,
        (client, segment_bytes): (u32, u64),
        stop: Arc<AtomicBool>,
    ) -> Result<(Self, Welcome), AppError> {
        let channel = dial.dial(address, LinkKind::Stream, SourcePort::Any)?;
        let mut own = Self { channel, stop, incoming: Vec::new(), out: Vec::new(), asked: 0 };
        let hello = Hello { version: VERSION, client, segment_bytes };
        own.channel.send(&hello.encode())?;
        let welcome = Welcome::decode(&own.receive::<WELCOME_BYTES>()?)?;
        match refusal::words(&welcome, segment_bytes) {
            Some(words) => Err(AppError::Refused(words)),
            None => Ok((own, welcome)),
        }
    }

    /// The checksum over these bytes of the segment.
    pub(crate) fn read(&mut self, range: Range, seed: u32) -> Result<u32, AppError> {
        self.ask(RequestType::Read, range, seed, &[])
    }

    /// Writes to the segment; the server must have got what was sent.
    pub(crate) fn write(&mut self, offset: u64, content: &[u8], seed: u32) -> Result<(), AppError> {
        let range = Range { offset, bytes: 0 };
        let sum = self.ask(RequestType::Write, range, seed, content)?;
        match sum == checksum(seed, content) {
            true => Ok(()),
            false => Err(AppError::Unfit("a wrong checksum of what it was to write")),
        }
    }

    fn ask(
        &mut self,
        kind: RequestType,
        range: Range,
        seed: u32,
        payload: &[u8],
    ) -> Result<u32, AppError> {
        self.asked = self.asked.wrapping_add(1);
        let header = RequestHeader {
            payload_bytes: payload.len() as u32,
            kind,
            id: self.asked,
            size: range.bytes,
            offset: range.offset,
            seed,
            work: 0,
        };
        self.out.clear();
        self.out.reserve(REQUEST_HEADER_BYTES + payload.len());
        self.out.extend_from_slice(&header.encode());
        self.out.extend_from_slice(payload);
        self.channel.send(&self.out)?;
        let reply = ReplyHeader::decode(&self.receive::<REPLY_HEADER_BYTES>()?)?;
        if reply.id != self.asked || reply.kind != kind as u8 {
            return Err(AppError::Unfit("the reply to another request"));
        }
        if reply.payload_bytes != 0 || !self.incoming.is_empty() {
            return Err(AppError::Unfit("a body where there is none"));
        }
        match reply.status {
            Status::Ok => Ok(reply.checksum),
            other => Err(AppError::Status(other)),
        }
    }

    /// The next `N` bytes. Pieces of silence are counted over all of it, so that a server cannot
    /// hold us by sending a byte now and then.
    fn receive<const N: usize>(&mut self) -> Result<[u8; N], AppError> {
        let mut silent = 0;
        loop {
            if let Some((message, _)) = self.incoming.split_first_chunk() {
                let message = *message;
                self.incoming.drain(..N);
                return Ok(message);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(AppError::Stopped);
            }
            match self.channel.receive(&mut self.incoming, STOP_HEARD_WITHIN) {
                Ok(()) => {}
                Err(ChannelError::Timeout) if silent < SILENT_PIECES_MAX => silent += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
