//! A server of the protocol in memory, for tests: bytes in, bytes out, and faults on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, net::SocketAddr};

use super::wire::*;
use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};

/// What a server holds and how it behaves.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// By client.
    pub segments: BTreeMap<u32, Vec<u8>>,
    /// Where the last append of its newest connection ended, by client.
    pub appended: BTreeMap<u32, usize>,
    /// What it replies instead of admitting a client.
    pub refusal: Option<Refusal>,
    /// It is calibrated.
    pub calibrated: bool,
    /// It never sends anything.
    pub silent: bool,
    /// Every write fails so.
    pub write_status: Option<Status>,
    /// Bytes sent instead of its greeting.
    pub greeting: Option<Vec<u8>>,
    /// Writes served.
    pub writes: u32,
    /// Greetings heard.
    pub hellos: Vec<Hello>,
}

/// One connection to it.
#[derive(Debug, Default)]
pub(crate) struct PeerLine {
    hello: Option<Hello>,
    received: Vec<u8>,
}

impl PeerLine {
    /// Takes what a client sent; answers with what it gets.
    pub(crate) fn take(&mut self, peer: &mut Peer, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.received.extend_from_slice(bytes);
        if peer.silent {
            return out;
        }
        let Some(hello) = self.hello else {
            let Some((first, _)) = self.received.split_first_chunk() else { return out };
            let hello = Hello::decode(first).unwrap();
            self.received.drain(..HELLO_BYTES);
            self.hello = Some(hello);
            out = peer.greet(hello);
            out.extend(self.take(peer, &[]));
            return out;
        };
        while let Some((header, rest)) = self.received.split_first_chunk() {
            let request = RequestHeader::decode(header).unwrap();
            let payload_bytes = request.payload_bytes as usize;
            let Some(payload) = rest.get(..payload_bytes) else { break };
            out.extend(peer.serve(hello.client, &request, payload));
            self.received.drain(..REQUEST_HEADER_BYTES + payload_bytes);
        }
        out
    }
}

impl Peer {
    fn greet(&mut self, hello: Hello) -> Vec<u8> {
        self.hellos.push(hello);
        self.appended.remove(&hello.client);
        if let Some(bytes) = &self.greeting {
            return bytes.clone();
        }
        if let Some(refusal) = self.refusal {
            return Welcome::refused(refusal).encode().to_vec();
        }
        let size = if self.calibrated { 0 } else { hello.segment_bytes };
        if size > 0 {
            self.segments.entry(hello.client).or_default().resize(size as usize, 0);
        }
        let welcome = Welcome {
            version: VERSION,
            refusal: None,
            service_threads: 4,
            durable: true,
            calibrated: self.calibrated,
            segment_bytes: size,
            memory_bytes: 0,
        };
        welcome.encode().to_vec()
    }

    /// The reply to a request, header and body.
    pub(crate) fn serve(
        &mut self,
        client: u32,
        request: &RequestHeader,
        payload: &[u8],
    ) -> Vec<u8> {
        let size = request.size as usize;
        let (status, body, checksum) = match request.kind {
            RequestType::ClientServer => {
                (Status::Ok, vec![7; size], checksum(request.seed, payload))
            }
            RequestType::Processor => {
                (Status::Ok, Vec::new(), work_checksum(request.seed, request.work))
            }
            RequestType::ServerClient => {
                let body = work_block()[..size].to_vec();
                let sum = checksum(request.seed, &body);
                (Status::Ok, body, sum)
            }
            _ => self.touch(client, request, payload),
        };
        let reply = ReplyHeader {
            payload_bytes: body.len() as u32,
            kind: request.kind as u8,
            status,
            id: request.id,
            checksum,
            server_ns: 0,
        };
        [&reply.encode()[..], &body].concat()
    }

    fn touch(
        &mut self,
        client: u32,
        request: &RequestHeader,
        payload: &[u8],
    ) -> (Status, Vec<u8>, u32) {
        let segment = self.segments.entry(client).or_default();
        let is_write = request.kind != RequestType::Read;
        let bytes = if is_write { payload.len() } else { request.size as usize };
        let mut from = request.offset as usize;
        if request.kind == RequestType::Append {
            let end = self.appended.entry(client).or_default();
            from = if *end + bytes <= segment.len() { *end } else { 0 };
            *end = from + bytes;
        }
        let Some(region) = segment.get_mut(from..from + bytes) else {
            return (Status::OutOfRange, Vec::new(), 0);
        };
        if is_write {
            self.writes += 1;
            if let Some(status) = self.write_status {
                return (status, Vec::new(), 0);
            }
            region.copy_from_slice(payload);
        }
        let sum = checksum(request.seed, region);
        (Status::Ok, Vec::new(), sum)
    }
}

/// A host with one such server, for set-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerHost {
    /// The server.
    pub peer: Arc<Mutex<Peer>>,
    /// Raised when the user stops the run.
    pub stop: Arc<AtomicBool>,
    /// Raises `stop` after this many receives over all channels.
    pub stop_after: Option<u32>,
}

impl PeerHost {
    /// Changes the server.
    pub(crate) fn set<T>(&self, change: impl FnOnce(&mut Peer) -> T) -> T {
        change(&mut self.peer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Dial for PeerHost {
    fn dial(
        &self,
        _: SocketAddr,
        kind: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        assert_eq!(kind, LinkKind::Stream);
        Ok(Box::new(PeerChannel { host: self.clone(), line: PeerLine::default(), out: Vec::new() }))
    }

    fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }
}

struct PeerChannel {
    host: PeerHost,
    line: PeerLine,
    out: Vec<u8>,
}

impl fmt::Debug for PeerChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerChannel")
    }
}

impl Channel for PeerChannel {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let answer = self.host.set(|peer| self.line.take(peer, bytes));
        self.out.extend(answer);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>, _: Duration) -> Result<(), ChannelError> {
        if let Some(left) = &mut self.host.stop_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.host.stop.store(true, Ordering::Relaxed);
            }
        }
        if self.out.is_empty() {
            return Err(ChannelError::Timeout);
        }
        // In pieces, as a network brings them.
        let piece = self.out.len().min(10);
        into.extend(self.out.drain(..piece));
        Ok(())
    }
}
