//! A blocking client of ONC RPC (RFC 5531) for set-up: one call at a time, or many in flight.
//!
//! Replies are matched by xid; duplicates and strangers are dropped. On datagrams a call is sent
//! again with the same xid when no reply comes; a stream that breaks ends the set-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::refusal::{CallError, RpcRefusal};
use super::wire::record;
use super::wire::rpc::{self, Credential, ReplyHead, ReplyOutcome};
use super::wire::xdr::{Decode, XdrIn};
use plimsoll_protocol::net::{Channel, ChannelError, LinkKind};

/// First wait for a reply to a datagram; doubles with each retransmission.
const RESEND_AFTER: Duration = Duration::from_secs(1);
/// Datagrams per call: waits of 1, 2, 4 and 8 s, fifteen seconds in all.
const SENDS_MAX: u32 = 4;
/// Silence on a stream after which the server counts as hung. A COMMIT of much data takes long.
const STREAM_SILENCE_MAX: Duration = Duration::from_secs(30);
/// A wait is cut into pieces this long, so that a stop is heard.
const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// How long a busy server is left alone.
const PAUSE: Duration = Duration::from_millis(100);
/// What anything heard takes from the wait it ends.
const HEARING_COSTS: Duration = Duration::from_millis(1);
/// Bytes of calls that are sent together on a stream at most.
const BATCH_BYTES: usize = 256 * 1024;
/// Bytes gathered from a stream before the buffer's room is given back.
const INCOMING_BYTES_KEPT: usize = 256 * 1024;

/// An RPC program and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Number of the program.
    pub program: u32,
    /// Version of it.
    pub version: u32,
}

/// A call without its header.
pub trait Question {
    /// Number of the procedure.
    fn procedure(&self) -> u32;
    /// Appends the arguments.
    fn encode_arguments(&self, out: &mut Vec<u8>);
}

/// A procedure without arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare(pub u32);

impl Question for Bare {
    fn procedure(&self) -> u32 {
        self.0
    }

    fn encode_arguments(&self, _: &mut Vec<u8>) {}
}

/// Arguments that are bytes already.
pub(crate) struct Encoded<F>(pub u32, pub F);

impl<F: Fn(&mut Vec<u8>)> Question for Encoded<F> {
    fn procedure(&self) -> u32 {
        self.0
    }

    fn encode_arguments(&self, out: &mut Vec<u8>) {
        (self.1)(out);
    }
}

/// Where calls to be pipelined come from, and where their replies go.
pub trait Feed {
    /// A call.
    type Question<'a>: Question
    where
        Self: 'a;

    /// The next call with a number of the feed's own choice. `None`: nothing can be asked before
    /// another reply is there, or ever.
    fn next(&mut self) -> Option<(u32, Self::Question<'_>)>;
    /// The results of call `number`.
    fn on_results(&mut self, number: u32, results: &[u8]) -> Result<(), CallError>;
    /// Whether the results since the last call said that the server wants a pause.
    fn wants_pause(&mut self) -> bool {
        false
    }
}

/// A client on one channel.
pub struct RpcClient {
    channel: Box<dyn Channel>,
    kind: LinkKind,
    credential: Credential,
    stop: Arc<AtomicBool>,
    xid_next: u32,
    in_flight: Vec<InFlight>,
    /// Emptied buffers of ended calls.
    spare: Vec<Vec<u8>>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    records: record::Assembler,
}

struct InFlight {
    xid: u32,
    number: u32,
    /// The whole datagram; empty on streams.
    datagram: Vec<u8>,
}

/// What a client is made with.
pub struct ClientSeed {
    /// Sent with every call.
    pub credential: Credential,
    /// First xid. Two clients of one run must differ in it by far: a server keeps replies by xid.
    pub first_xid: u32,
    /// Raised by the caller to end the set-up.
    pub stop: Arc<AtomicBool>,
}

impl RpcClient {
    /// A client on an open channel.
    pub fn new(channel: Box<dyn Channel>, kind: LinkKind, seed: ClientSeed) -> Self {
        Self {
            channel,
            kind,
            credential: seed.credential,
            stop: seed.stop,
            xid_next: seed.first_xid,
            in_flight: Vec::new(),
            spare: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            records: record::Assembler::default(),
        }
    }

    /// Whether calls travel on a stream or as datagrams.
    pub fn kind(&self) -> LinkKind {
        self.kind
    }

    /// Makes one call and answers with its results.
    pub fn call(&mut self, service: Service, ask: &dyn Question) -> Result<Vec<u8>, CallError> {
        let mut once = Once { question: Some(ask), results: Vec::new() };
        self.pipelined(service, 1, &mut once)?;
        Ok(once.results)
    }

    /// Makes all calls of `feed`, up to `window` of them in flight.
    pub fn pipelined<F: Feed>(
        &mut self,
        service: Service,
        window: usize,
        feed: &mut F,
    ) -> Result<(), CallError> {
        self.in_flight.clear();
        self.outgoing.clear();
        loop {
            while self.in_flight.len() < window {
                let Some((number, question)) = feed.next() else { break };
                self.post(service, number, &question)?;
            }
            self.flush()?;
            if self.in_flight.is_empty() {
                return Ok(());
            }
            self.await_replies(service, feed)?;
            if feed.wants_pause() {
                self.pause(service, feed)?;
            }
        }
    }

    /// Only listens for a while.
    fn pause<F: Feed>(&mut self, service: Service, feed: &mut F) -> Result<(), CallError> {
        let mut time_left = PAUSE;
        while self.receive(&mut time_left)? == Waited::Heard {
            self.settle(service, feed)?;
        }
        Ok(())
    }

    fn post(
        &mut self,
        service: Service,
        number: u32,
        question: &impl Question,
    ) -> Result<(), CallError> {
        let xid = self.xid_next;
        self.xid_next = xid.wrapping_add(1);
        let called = (service.program, service.version);
        let encode = |out: &mut Vec<u8>| {
            rpc::encode_call(out, xid, called, question.procedure(), &self.credential);
            question.encode_arguments(out);
        };
        if self.kind == LinkKind::Stream {
            let at = record::begin(&mut self.outgoing);
            encode(&mut self.outgoing);
            record::finish(&mut self.outgoing, at);
            self.in_flight.push(InFlight { xid, number, datagram: Vec::new() });
            return if self.outgoing.len() >= BATCH_BYTES { self.flush() } else { Ok(()) };
        }
        let mut datagram = self.spare.pop().unwrap_or_default();
        encode(&mut datagram);
        self.channel.send(&datagram)?;
        self.in_flight.push(InFlight { xid, number, datagram });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CallError> {
        if !self.outgoing.is_empty() {
            self.channel.send(&self.outgoing)?;
            self.outgoing.clear();
        }
        Ok(())
    }

    /// Until at least one call has ended.
    fn await_replies<F: Feed>(&mut self, service: Service, feed: &mut F) -> Result<(), CallError> {
        let before = self.in_flight.len();
        let mut sends = 1;
        let mut time_left = match self.kind {
            LinkKind::Stream => STREAM_SILENCE_MAX,
            LinkKind::Datagram => RESEND_AFTER,
        };
        while self.in_flight.len() == before {
            let waited = self.receive(&mut time_left)?;
            if waited == Waited::Heard {
                self.settle(service, feed)?;
                continue;
            }
            if self.kind == LinkKind::Stream || sends == SENDS_MAX {
                return Err(ChannelError::Timeout.into());
            }
            for call in &self.in_flight {
                self.channel.send(&call.datagram)?;
            }
            time_left = RESEND_AFTER * (1 << sends);
            sends += 1;
        }
        Ok(())
    }

    /// Takes from `time_left` what it waited in vain, and a little for everything heard, so that
    /// strangers cannot lengthen it for ever.
    fn receive(&mut self, time_left: &mut Duration) -> Result<Waited, CallError> {
        while !time_left.is_zero() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(CallError::Stopped);
            }
            let piece = STOP_HEARD_WITHIN.min(*time_left);
            match self.channel.receive(&mut self.incoming, piece) {
                Ok(()) => {
                    *time_left = time_left.saturating_sub(HEARING_COSTS);
                    return Ok(Waited::Heard);
                }
                Err(ChannelError::Timeout) => *time_left = time_left.saturating_sub(piece),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Waited::InVain)
    }

    /// Hands the results of all calls that have ended to the feed.
    fn settle<F: Feed>(&mut self, service: Service, feed: &mut F) -> Result<(), CallError> {
        let (in_flight, spare) = (&mut self.in_flight, &mut self.spare);
        let mut outcome = Ok(());
        let mut each = |message: &[u8]| {
            if outcome.is_ok() {
                outcome = settle_one(service, in_flight, spare, message, feed);
            }
        };
        match self.kind {
            LinkKind::Datagram => each(&self.incoming),
            LinkKind::Stream => self.records.push(&self.incoming, each)?,
        }
        self.incoming.clear();
        self.incoming.shrink_to(INCOMING_BYTES_KEPT);
        outcome
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Heard,
    InVain,
}

fn settle_one<F: Feed>(
    service: Service,
    in_flight: &mut Vec<InFlight>,
    spare: &mut Vec<Vec<u8>>,
    message: &[u8],
    feed: &mut F,
) -> Result<(), CallError> {
    let mut input = XdrIn::new(message);
    let head = ReplyHead::decode(&mut input)?;
    let Some(at) = in_flight.iter().position(|call| call.xid == head.xid) else { return Ok(()) };
    let mut ended = in_flight.swap_remove(at);
    if !ended.datagram.is_empty() {
        ended.datagram.clear();
        spare.push(ended.datagram);
    }
    match head.outcome {
        ReplyOutcome::Success => feed.on_results(ended.number, input.rest()),
        outcome => Err(CallError::Refused(RpcRefusal { service, outcome })),
    }
}

struct Once<'q> {
    question: Option<&'q dyn Question>,
    results: Vec<u8>,
}

impl Question for &dyn Question {
    fn procedure(&self) -> u32 {
        (**self).procedure()
    }

    fn encode_arguments(&self, out: &mut Vec<u8>) {
        (**self).encode_arguments(out);
    }
}

impl Feed for Once<'_> {
    type Question<'a>
        = &'a dyn Question
    where
        Self: 'a;

    fn next(&mut self) -> Option<(u32, Self::Question<'_>)> {
        self.question.take().map(|question| (0, question))
    }

    fn on_results(&mut self, _: u32, results: &[u8]) -> Result<(), CallError> {
        self.results.extend_from_slice(results);
        Ok(())
    }
}
