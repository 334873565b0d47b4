//! A blocking client of one ONC RPC service (RFC 5531) for set-up: one call at a time, or many in
//! flight.
//!
//! Replies are matched by xid; duplicates and strangers are dropped. On datagrams a call is sent
//! again with the same xid when no reply comes; a stream that breaks ends the set-up.
//!
//! Set-up does not use the measured session: it needs windows of calls, and the session numbers
//! only the ops of a mix. Both share the encoder and decoder in `procedure/`.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::nonconformity::nonconformity;
use super::refusal::{CallError, RpcRefusal};
use super::wire::flaws::Flaws;
use super::wire::record;
use super::wire::rpc::{CallWriter, Credential, ReplyHead, ReplyOutcome, Service, procedure_of};
use super::wire::xdr::{Decode, Encode, XdrIn};
use plimsoll_protocol::net::{Channel, ChannelError, LinkKind, NonconformityLog};

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

/// A client on one channel.
pub struct RpcClient {
    channel: Box<dyn Channel>,
    kind: LinkKind,
    service: Service,
    credential: Credential,
    stop: Arc<AtomicBool>,
    xid_next: u32,
    in_flight: Vec<InFlight>,
    /// Emptied buffers of ended calls.
    spare: Vec<Vec<u8>>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    records: record::Assembler,
    /// Procedure of the reply that came last.
    answered: u32,
    log: NonconformityLog,
}

struct InFlight {
    xid: u32,
    number: u32,
    procedure: u32,
    /// The whole datagram; empty on streams.
    datagram: Vec<u8>,
}

/// Takes the results of a call, by the number it was posted with; answers with what it noted.
pub(crate) type OnResults<'a> = &'a mut dyn FnMut(u32, &[u8]) -> Result<Flaws, CallError>;

/// What a client is made with.
pub struct ClientSeed {
    /// What it calls.
    pub service: Service,
    /// Sent with every call.
    pub credential: Credential,
    /// First xid. Two clients of one run must differ in it by far: a server keeps replies by xid.
    pub first_xid: u32,
    /// Raised by the caller to end the set-up.
    pub stop: Arc<AtomicBool>,
    /// Where flaws of replies go.
    pub log: NonconformityLog,
}

impl RpcClient {
    /// A client on an open channel.
    pub fn new(channel: Box<dyn Channel>, kind: LinkKind, seed: ClientSeed) -> Self {
        Self {
            channel,
            kind,
            service: seed.service,
            credential: seed.credential,
            stop: seed.stop,
            xid_next: seed.first_xid,
            in_flight: Vec::new(),
            spare: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            records: record::Assembler::default(),
            answered: 0,
            log: seed.log,
        }
    }

    /// Makes one call and answers with its results.
    pub(crate) fn call(
        &mut self,
        procedure: u32,
        arguments: &impl Encode,
    ) -> Result<Vec<u8>, CallError> {
        let service = self.service;
        self.call_as(|to| to.put(service, procedure, arguments))
    }

    /// Makes the one call that `write` writes.
    pub(crate) fn call_as(
        &mut self,
        write: impl FnOnce(CallWriter<'_>),
    ) -> Result<Vec<u8>, CallError> {
        let mut results = Vec::new();
        self.begin();
        self.post(0, write)?;
        self.await_replies(&mut |_, bytes| {
            results.extend_from_slice(bytes);
            Ok(Flaws::NONE)
        })?;
        Ok(results)
    }

    /// Forgets what calls that failed have left.
    pub(crate) fn begin(&mut self) {
        self.in_flight.clear();
        self.outgoing.clear();
    }

    /// What was noted of the reply that came last.
    pub(crate) fn note(&self, flaws: Flaws) {
        self.note_of(self.answered, flaws);
    }

    /// What was noted of a reply to `procedure`.
    pub(crate) fn note_of(&self, procedure: u32, flaws: Flaws) {
        for flaw in flaws.iter() {
            self.log.note(&nonconformity(self.service, procedure, flaw));
        }
    }

    /// Procedure of the reply that came last.
    pub(crate) fn answered(&self) -> u32 {
        self.answered
    }

    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Only listens for a while.
    pub(crate) fn pause(&mut self, on_results: OnResults<'_>) -> Result<(), CallError> {
        let mut time_left = PAUSE;
        while self.receive(&mut time_left)? == Waited::Heard {
            self.settle(on_results)?;
        }
        Ok(())
    }

    /// Sends a call; on a stream it may wait for others, until replies are awaited.
    pub(crate) fn post(
        &mut self,
        number: u32,
        write: impl FnOnce(CallWriter<'_>),
    ) -> Result<(), CallError> {
        let xid = self.xid_next;
        self.xid_next = xid.wrapping_add(1);
        let credential = &self.credential;
        if self.kind == LinkKind::Stream {
            let at = record::begin(&mut self.outgoing);
            write(CallWriter { xid, credential, out: &mut self.outgoing });
            record::finish(&mut self.outgoing, at);
            let procedure =
                procedure_of(&self.outgoing[at + record::MARK_BYTES..]).unwrap_or_default();
            self.in_flight.push(InFlight { xid, number, procedure, datagram: Vec::new() });
            return if self.outgoing.len() >= BATCH_BYTES { self.flush() } else { Ok(()) };
        }
        let mut datagram = self.spare.pop().unwrap_or_default();
        write(CallWriter { xid, credential, out: &mut datagram });
        self.channel.send(&datagram)?;
        let procedure = procedure_of(&datagram).unwrap_or_default();
        self.in_flight.push(InFlight { xid, number, procedure, datagram });
        Ok(())
    }

    /// Until at least one call has ended.
    pub(crate) fn await_replies(&mut self, on_results: OnResults<'_>) -> Result<(), CallError> {
        self.flush()?;
        let before = self.in_flight.len();
        let mut sends = 1;
        let mut time_left = match self.kind {
            LinkKind::Stream => STREAM_SILENCE_MAX,
            LinkKind::Datagram => RESEND_AFTER,
        };
        while self.in_flight.len() == before {
            let waited = self.receive(&mut time_left)?;
            if waited == Waited::Heard {
                self.settle(on_results)?;
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

    fn flush(&mut self) -> Result<(), CallError> {
        if !self.outgoing.is_empty() {
            self.channel.send(&self.outgoing)?;
            self.outgoing.clear();
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

    /// Hands on the results of all calls that have ended.
    fn settle(&mut self, on_results: OnResults<'_>) -> Result<(), CallError> {
        let kind = self.kind;
        let mut ended = Ok(());
        let incoming = mem::take(&mut self.incoming);
        let mut records = mem::take(&mut self.records);
        let mut each = |message: &[u8]| {
            if ended.is_ok() {
                ended = self.on_message(message, on_results);
            }
        };
        let read = match kind {
            LinkKind::Datagram => {
                each(&incoming);
                Ok(())
            }
            LinkKind::Stream => records.push(&incoming, each),
        };
        (self.incoming, self.records) = (incoming, records);
        self.incoming.clear();
        self.incoming.shrink_to(INCOMING_BYTES_KEPT);
        read?;
        ended
    }

    fn on_message(&mut self, message: &[u8], on_results: OnResults<'_>) -> Result<(), CallError> {
        let mut input = XdrIn::tolerant(message);
        let head = ReplyHead::decode(&mut input)?;
        let Some(at) = self.in_flight.iter().position(|call| call.xid == head.xid) else {
            return Ok(());
        };
        let InFlight { number, procedure, mut datagram, .. } = self.in_flight.swap_remove(at);
        self.answered = procedure;
        self.note(input.flaws());
        if !datagram.is_empty() {
            datagram.clear();
            self.spare.push(datagram);
        }
        match head.outcome {
            ReplyOutcome::Success => {
                let flaws = on_results(number, input.rest())?;
                self.note(flaws);
                Ok(())
            }
            outcome => Err(CallError::Refused(RpcRefusal { service: self.service, outcome })),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Heard,
    InVain,
}
