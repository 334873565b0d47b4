//! One client at work.

use std::collections::BTreeMap;

use plimsoll_engine::interface::{
    ClientContext, Link, LinkError, Mark, Session as _, SessionCounters, Ticket,
};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_nfs::op::{NfsCall, NfsOp};
use plimsoll_nfs::session::{Session4, SessionRequest};

use super::Bed;
use super::net::Net;

pub const OP_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Ops under way at most.
const OUTSTANDING_MAX: u32 = 16;
/// More steps than any test needs.
const STEPS_MAX: usize = 100_000;

/// How an op ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub ticket: Ticket,
    pub call: NfsCall,
    pub outcome: Outcome,
    pub detail: String,
}

pub struct Client {
    pub session: Session4,
    pub net: Net,
    pub now: Nanos,
    tickets: u32,
    in_flight: BTreeMap<u32, NfsOp>,
    pub ended: Vec<Ended>,
}

impl Client {
    /// Client number `number` of a server. No two clients of a bed may have the same.
    pub fn new(bed: &Bed, number: u32, request: SessionRequest) -> Self {
        let (seed, op_timeout) = (1, OP_TIMEOUT);
        let client = ClientContext { client: number, endpoint: 0, seed, op_timeout, nonce: 99 };
        Self {
            session: Session4::new(bed.site(request), client, OUTSTANDING_MAX),
            net: Net::new(bed.core.clone()),
            now: Nanos::from_secs(1),
            tickets: 0,
            in_flight: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// A client whose session is there.
    pub fn ready(bed: &Bed, number: u32, request: SessionRequest) -> Self {
        let mut client = Self::new(bed, number, request);
        client.issue(NfsCall::FsStat);
        client.settle();
        assert_eq!(client.take_ended().len(), 1);
        client
    }

    pub fn issue(&mut self, call: NfsCall) -> Ticket {
        self.start(NfsOp::first(OpKind(0), call))
    }

    fn start(&mut self, op: NfsOp) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.in_flight.insert(ticket.0, op);
        self.session.issue(ticket, op, self.now, &mut self.net);
        self.hear();
        ticket
    }

    /// Takes note of the ops that have ended.
    fn hear(&mut self) {
        for (ticket, outcome) in std::mem::take(&mut self.net.done) {
            let op = self.in_flight.remove(&ticket.0).expect("no op ends twice");
            let (call, detail) = (op.call, self.net.detail.clone());
            self.ended.push(Ended { ticket, call, outcome, detail });
            let follow_on = self.session.take_follow_on(ticket);
            assert!(follow_on.is_none() || outcome.status == OpStatus::Ok);
            if let Some(op) = follow_on {
                self.start(op);
            }
        }
    }

    pub fn connect(&mut self) -> bool {
        let Some(link) = self.net.connect() else { return false };
        self.session.on_connected(link, self.now, &mut self.net);
        self.hear();
        true
    }

    /// Bytes arrive; false: none.
    pub fn deliver(&mut self, link: u64, which: usize, bytes_max: usize) -> bool {
        let Some(bytes) = self.net.deliver(link, which, bytes_max) else { return false };
        self.session.on_bytes(Link(link), &bytes, self.now, &mut self.net);
        self.hear();
        true
    }

    /// A connection breaks, before or after the server executed what was sent on it.
    pub fn cut(&mut self, link: u64, executed: bool) {
        self.net.cut(link, executed);
        let error = LinkError { class: ErrorClass::Transport, errno: 104 };
        self.session.on_failed(Link(link), error, self.now, &mut self.net);
        self.hear();
    }

    /// Everything that happens without time passing.
    pub fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            let mut happened = self.connect();
            for link in self.net.open() {
                happened |= self.net.execute(link, 0);
                happened |= self.deliver(link, 0, usize::MAX);
            }
            if !happened {
                return;
            }
        }
        panic!("it never rests");
    }

    /// Time goes on; the timer is called whenever it wants to be.
    pub fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        for _ in 0..STEPS_MAX {
            self.settle();
            match self.session.next_deadline().filter(|at| *at <= end) {
                Some(at) => self.wake_at(at),
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("the timer never rests");
    }

    fn wake_at(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        self.session.on_timer(self.now, &mut self.net);
        self.hear();
    }

    /// Until all ops have ended.
    pub fn run(&mut self) {
        assert!(self.run_or_lose(), "{:?}", self.session.lost());
    }

    /// The same; false: the client cannot go on.
    pub fn run_or_lose(&mut self) -> bool {
        for _ in 0..STEPS_MAX {
            self.settle();
            if self.session.lost().is_some() {
                return false;
            }
            if self.in_flight.is_empty() {
                return true;
            }
            self.wake_at(self.session.next_deadline().expect("it waits for something"));
        }
        panic!("some ops never end: {:?}", self.in_flight);
    }

    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The next timer, if there is one.
    pub fn wake(&mut self) {
        if let Some(at) = self.session.next_deadline() {
            self.wake_at(at);
        }
    }

    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Does it, and returns how it ended; further blocks follow.
    pub fn run_op(&mut self, call: NfsCall) -> Ended {
        let ticket = self.issue(call);
        self.run_or_lose();
        self.ended.iter().find(|ended| ended.ticket == ticket).unwrap().clone()
    }

    /// All ops have ended well, and none may have been done twice.
    pub fn assert_all_went_well(&self) {
        for ended in &self.ended {
            let outcome = ended.outcome;
            let well = matches!(outcome.status, OpStatus::Ok | OpStatus::ExpectedFailure);
            assert!(well && !outcome.ambiguous, "{ended:?}");
        }
    }

    /// The client leaves, and nothing is left of it.
    pub fn log_off(&mut self) {
        self.session.log_off(self.now, &mut self.net);
        self.settle();
        assert!(self.session.has_logged_off());
    }

    pub fn counters(&mut self) -> SessionCounters {
        self.session.take_counters()
    }

    /// Marks of an op, in their order.
    pub fn marks(&self, ticket: Ticket) -> Vec<Mark> {
        let marks = self.net.marks.iter().filter(|(of, _)| *of == ticket);
        marks.map(|(_, mark)| *mark).collect()
    }
}
