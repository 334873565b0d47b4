//! The network between one client and the server. It checks each call against the ones before in
//! its slot: a slot has one call at a time, and its numbers rise by one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use plimsoll_engine::interface::{Io, Link, LinkKind, Mark, Ticket};
use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_nfs::server::{self, BackChannel, NfsCore, Peer};
use plimsoll_nfs::wire::record;
use plimsoll_nfs::wire::rpc::{Call, encode_reply_success};
use plimsoll_nfs::wire::v4::{
    CompoundHead, CompoundReply, Handle4, Operation, SequenceArgs, SessionId, Status4,
};
use plimsoll_nfs::wire::{Decode as _, Encode as _, XdrIn};

use crate::setup::memory::HOST;

/// Bytes of the head of a reply.
const REPLY_HEAD: usize = 24;

/// What a server does with a call instead of what it should.
pub enum Fault {
    /// Its first operation fails.
    First(Status4),
    /// It executes SEQUENCE, and the next operation fails.
    Second(Status4),
    /// It executes the call, and answers with what this makes of the reply.
    Changed(fn(&mut Vec<u8>)),
}

/// A message of the client.
pub struct Request {
    pub link: u64,
    /// Without record mark.
    pub bytes: Vec<u8>,
    pub xid: u32,
    /// Its first operation, of a call.
    pub first: Option<Operation>,
    /// What it is about: the operation behind SEQUENCE and PUTFH.
    pub main: Option<Operation>,
    pub sequence: Option<SequenceArgs>,
    /// Where the number of operations is.
    count_at: usize,
    /// Where SEQUENCE ends.
    sequence_end: usize,
}

impl Request {
    fn read(link: u64, bytes: Vec<u8>) -> Self {
        let mut input = XdrIn::new(&bytes);
        let xid = u32::from_be_bytes(*bytes.first_chunk().unwrap());
        let mut request = Self {
            link,
            xid,
            first: None,
            main: None,
            sequence: None,
            count_at: 0,
            sequence_end: 0,
            bytes: Vec::new(),
        };
        if Call::decode(&mut input).is_ok() {
            let head = CompoundHead::decode(&mut input).unwrap();
            request.count_at = bytes.len() - input.rest().len() - 4;
            let next = |input: &mut XdrIn<'_>| {
                input.u32().ok().map(|number| Operation::from_number(number).unwrap())
            };
            request.first = next(&mut input);
            request.main = request.first;
            if request.first == Some(Operation::Sequence) {
                request.sequence = Some(SequenceArgs::decode(&mut input).unwrap());
                request.sequence_end = bytes.len() - input.rest().len();
                request.main = next(&mut input).or(request.first);
                if request.main == Some(Operation::PutFh) {
                    let _ = Handle4::decode(&mut input).unwrap();
                    request.main = next(&mut input);
                }
                if (request.main, head.operations) == (Some(Operation::GetAttr), 4) {
                    request.main = Some(Operation::Close);
                }
            }
        }
        Self { bytes, ..request }
    }

    pub fn is(&self, operation: Operation) -> bool {
        self.main == Some(operation)
    }

    /// With SEQUENCE alone.
    fn without_work(&self) -> Vec<u8> {
        let mut bytes = self.bytes[..self.sequence_end].to_vec();
        bytes[self.count_at..self.count_at + 4].copy_from_slice(&1_u32.to_be_bytes());
        bytes
    }

    /// Number of the operation behind SEQUENCE.
    fn second(&self) -> [u8; 4] {
        *self.bytes[self.sequence_end..].first_chunk().unwrap()
    }
}

/// The last call of a slot.
struct SlotCall {
    xid: u32,
    sequence: u32,
    bytes: Vec<u8>,
    link: u64,
    state: CallState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    InFlight,
    Executed,
    /// SEQUENCE failed.
    Refused,
}

/// A connection.
#[derive(Default)]
struct Wire {
    is_connected: bool,
    requests: Vec<Request>,
    /// Framed messages of the server.
    replies: Vec<Vec<u8>>,
    /// The one that arrives, and how much of it has.
    arriving: (Vec<u8>, usize),
    back: Option<Arc<BackChannel>>,
    callbacks: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A word of a message, and what it becomes.
pub type Change = (usize, u32);

/// Called for each request before the server executes it.
pub type Faults = dyn FnMut(&Request) -> Option<Fault>;

pub struct Net {
    core: Arc<NfsCore>,
    wires: BTreeMap<u64, Wire>,
    slots: HashMap<(SessionId, u32), SlotCall>,
    /// What faults answered, by request: a slot answers a repetition alike.
    answered: HashMap<Vec<u8>, Vec<u8>>,
    pub faults: Box<Faults>,
    /// Of the next messages that arrive, the last first.
    pub changes: Vec<Option<Change>>,
    /// False: the server may answer anything, so that nothing follows from its replies.
    pub is_strict: bool,
    pub links: u64,
    /// Main operations of all calls, as they were sent.
    pub sent: Vec<Operation>,
    pub highest_slot: u32,
    pub marks: Vec<(Ticket, Mark)>,
    pub done: Vec<(Ticket, Outcome)>,
    pub detail: String,
}

impl Net {
    pub fn new(core: Arc<NfsCore>) -> Self {
        Self {
            core,
            wires: BTreeMap::new(),
            slots: HashMap::new(),
            answered: HashMap::new(),
            faults: Box::new(|_| None),
            changes: Vec::new(),
            is_strict: true,
            links: 0,
            sent: Vec::new(),
            highest_slot: 0,
            marks: Vec::new(),
            done: Vec::new(),
            detail: String::new(),
        }
    }

    /// Connections that are open or opening.
    pub fn open(&self) -> Vec<u64> {
        self.wires.keys().copied().collect()
    }

    /// Requests on each of them that the server has not executed.
    pub fn requests(&self) -> Vec<usize> {
        self.wires.values().map(|wire| wire.requests.len()).collect()
    }

    /// One that is opening is open from now on.
    pub fn connect(&mut self) -> Option<Link> {
        let (link, wire) = self.wires.iter_mut().find(|(_, wire)| !wire.is_connected)?;
        wire.is_connected = true;
        let callbacks = Arc::clone(&wire.callbacks);
        let back = BackChannel::new(move |message| callbacks.lock().unwrap().push(framed(message)));
        wire.back = Some(Arc::new(back));
        Some(Link(*link))
    }

    /// Breaks a connection; the server has `executed` what was sent on it, or will never see it.
    pub fn cut(&mut self, link: u64, executed: bool) {
        while executed && self.execute(link, 0) {}
        self.wires.remove(&link);
    }

    /// The server executes one of the requests on a connection; false: there is none.
    pub fn execute(&mut self, link: u64, which: usize) -> bool {
        let Some(wire) = self.wires.get_mut(&link).filter(|wire| !wire.requests.is_empty()) else {
            return false;
        };
        let request = wire.requests.remove(which % wire.requests.len());
        let back = wire.back.clone();
        let reply = match self.answered.get(&request.bytes) {
            Some(reply) => Some(reply.clone()),
            None => self.answer(&request, back.as_ref()),
        };
        if let (Some(reply), Some(wire)) = (reply, self.wires.get_mut(&link)) {
            wire.replies.push(framed(&reply));
        }
        true
    }

    fn answer(&mut self, request: &Request, back: Option<&Arc<BackChannel>>) -> Option<Vec<u8>> {
        let honest = |bytes: &[u8]| {
            let peer = Peer { address: HOST, link: server::Link::Stream };
            let mut reply = Vec::new();
            let answered = self.core.answer_on(&peer, back, bytes, &mut reply);
            (answered == server::Answered::Replied).then_some(reply)
        };
        let reply = match (self.faults)(request) {
            None => return honest(&request.bytes),
            Some(Fault::First(status)) => {
                return Some(refused(request.xid, request.first.unwrap(), status));
            }
            Some(Fault::Changed(change)) => {
                let mut reply = honest(&request.bytes)?;
                change(&mut reply);
                reply
            }
            Some(Fault::Second(status)) => {
                let mut reply = honest(&request.without_work())?;
                if reply[REPLY_HEAD..REPLY_HEAD + 4] == [0; 4] {
                    reply[REPLY_HEAD..REPLY_HEAD + 4].copy_from_slice(&status.0.to_be_bytes());
                    reply[REPLY_HEAD + 8..REPLY_HEAD + 12].copy_from_slice(&2_u32.to_be_bytes());
                    reply.extend(request.second());
                    status.encode(&mut reply);
                }
                reply
            }
        };
        self.answered.insert(request.bytes.clone(), reply.clone());
        Some(reply)
    }

    /// Bytes that arrive next: a reply on a connection, or at most `bytes_max` bytes of it.
    pub fn deliver(&mut self, link: u64, which: usize, bytes_max: usize) -> Option<Vec<u8>> {
        let wire = self.wires.get_mut(&link)?;
        wire.replies.append(&mut wire.callbacks.lock().unwrap());
        let (mut message, from) = std::mem::take(&mut wire.arriving);
        if message.is_empty() {
            if wire.replies.is_empty() {
                return None;
            }
            message = wire.replies.remove(which % wire.replies.len());
            if let Some((at, value)) = self.changes.pop().flatten() {
                let (fields, _) = message.as_chunks_mut();
                let at = at % fields.len();
                fields[at] = value.to_be_bytes();
            }
        }
        let to = from.saturating_add(bytes_max).min(message.len());
        let bytes = message[from..to].to_vec();
        if to < message.len() {
            wire.arriving = (message, to);
        } else {
            self.note_reply(&message[4..]);
        }
        Some(bytes)
    }

    /// A reply has arrived.
    fn note_reply(&mut self, message: &[u8]) {
        let xid = message.first_chunk().map(|xid| u32::from_be_bytes(*xid));
        let Some(call) = self.slots.values_mut().find(|call| Some(call.xid) == xid) else { return };
        let results = message.get(REPLY_HEAD..).unwrap_or_default();
        let first = CompoundReply::read(XdrIn::new(results))
            .and_then(|mut reply| reply.next(Operation::Sequence));
        call.state = match first {
            Ok(Status4::OK) | Err(_) => CallState::Executed,
            Ok(_) => CallState::Refused,
        };
    }

    fn check_slot(&mut self, request: &Request) {
        let Some(sequence) = request.sequence else { return };
        self.highest_slot = self.highest_slot.max(sequence.slot);
        let key = (sequence.session, sequence.slot);
        let call = SlotCall {
            xid: request.xid,
            sequence: sequence.sequence,
            bytes: request.bytes.clone(),
            link: request.link,
            state: CallState::InFlight,
        };
        let Some(before) = self.slots.insert(key, call) else {
            return assert_eq!(sequence.sequence, 1, "the first call of a slot");
        };
        match before.state {
            _ if !self.is_strict => {}
            CallState::Executed => assert_eq!(sequence.sequence, before.sequence + 1),
            CallState::Refused => assert_eq!(sequence.sequence, before.sequence),
            CallState::InFlight => {
                assert!(!self.wires.contains_key(&before.link), "two calls in one slot");
                assert!(request.bytes == before.bytes, "sent again with other bytes");
            }
        }
    }
}

impl Io for Net {
    fn connect(&mut self, kind: LinkKind) -> Link {
        assert_eq!(kind, LinkKind::Stream);
        self.links += 1;
        self.wires.insert(self.links, Wire::default());
        Link(self.links)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        let Link(link) = link;
        assert!(self.wires.get(&link).is_some_and(|wire| wire.is_connected), "no connection");
        let mark = u32::from_be_bytes(*bytes.first_chunk().unwrap());
        assert_eq!(mark, 1 << 31 | (bytes.len() as u32 - 4));
        let request = Request::read(link, bytes[4..].to_vec());
        self.check_slot(&request);
        self.sent.extend(request.main);
        self.wires.get_mut(&link).unwrap().requests.push(request);
    }
    fn discard(&mut self, _: Link, _: u64) {
        unreachable!("NFS replies are always read");
    }
    fn close(&mut self, link: Link) {
        assert!(self.wires.remove(&link.0).is_some(), "{link:?} is not open");
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.done.push((ticket, outcome));
    }
    fn mark(&mut self, ticket: Ticket, mark: Mark) {
        self.marks.push((ticket, mark));
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        assert!(!self.is_strict, "trailing bytes after {kind:?}");
    }
}

/// A reply whose first operation failed.
fn refused(xid: u32, operation: Operation, status: Status4) -> Vec<u8> {
    let mut reply = Vec::new();
    encode_reply_success(&mut reply, xid);
    let fields = [status.0, 0, 1, operation.number(), status.0];
    fields.iter().for_each(|word| word.encode(&mut reply));
    reply
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = record::begin(&mut bytes);
    bytes.extend_from_slice(message);
    record::finish(&mut bytes, at);
    bytes
}
