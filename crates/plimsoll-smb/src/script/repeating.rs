//! The patterns in which a client does one thing over and over: `echo`, `logons`, `sessions` and
//! `nic`.

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::succeeds;
use crate::op::{Disposition, ExpectedLength, FsLevel, HandleNo, SmbCall, SmbOp};
use crate::parameters::SmbWorkload;
use crate::wire::create::options;
use crate::workspace;

/// A client of pattern `echo`: as many echoes in flight as the bound allows. It never thinks.
#[derive(Debug)]
pub(super) struct Echoes {
    outstanding_max: u32,
    in_flight: u32,
}

impl Echoes {
    pub(super) fn new(outstanding_max: u32) -> Self {
        Self { outstanding_max, in_flight: 0 }
    }
}

impl Script for Echoes {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _context: ScriptContext) -> Step<SmbCall> {
        match self.in_flight < self.outstanding_max {
            true => Step::Issue(succeeds(SmbOp::Echo)),
            false => Step::WaitForOutcome,
        }
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight += 1;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

/// A client of pattern `logons`: each op is a logon over a connection of its own, and a piece of
/// work.
#[derive(Debug, Default)]
pub(super) struct Logons {
    in_flight: bool,
    /// The think time before the next logon is over.
    begun: bool,
}

impl Script for Logons {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _context: ScriptContext) -> Step<SmbCall> {
        if self.in_flight {
            return Step::WaitForOutcome;
        }
        self.begun = !self.begun;
        if self.begun { Step::Think } else { Step::Issue(succeeds(SmbOp::Logon)) }
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight = true;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = false;
    }
}

/// A client of pattern `sessions`: it logs on at its start time, and stays. From then on each piece
/// of work is a query of the volume.
#[derive(Debug)]
pub(super) struct SustainedSession {
    start: Nanos,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    LogOn,
    InFlight,
    Think,
    Ask,
}

impl SustainedSession {
    /// The client logs on at this instant of the load point.
    pub(super) fn new(start: Nanos) -> Self {
        Self { start, phase: Phase::LogOn }
    }
}

impl Script for SustainedSession {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, context: ScriptContext) -> Step<SmbCall> {
        match self.phase {
            Phase::LogOn if context.now < self.start => Step::SleepUntil(self.start),
            Phase::LogOn => Step::Issue(succeeds(SmbOp::OpenSession)),
            Phase::InFlight => Step::WaitForOutcome,
            Phase::Think => {
                self.phase = Phase::Ask;
                Step::Think
            }
            Phase::Ask => Step::Issue(succeeds(SmbOp::QueryFs { level: FsLevel::FullSize })),
        }
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.phase = Phase::InFlight;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.phase = Phase::Think;
    }
}

const HANDLE: HandleNo = HandleNo(0);

/// A client of pattern `nic`: every client reads the same file from its beginning to its end in
/// small requests. A pass opens the file, reads it and closes it, and is a piece of work.
#[derive(Debug)]
pub(super) struct NicPasses {
    outstanding_max: u32,
    file_bytes: u32,
    request_bytes: u32,
    verify_one_in: u64,
    content_seed: u64,
    reads: u64,
    in_flight: u32,
    next: Next,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Think,
    Open,
    Read { offset: u32 },
    Close,
}

impl NicPasses {
    pub(super) fn new(workload: &SmbWorkload, client: u32) -> Self {
        Self {
            outstanding_max: workload.outstanding_max,
            file_bytes: workload.nic_file_bytes,
            request_bytes: workload.nic_request_bytes,
            verify_one_in: u64::from(workload.verify_one_in),
            content_seed: workload.file_set_seed,
            // Clients are out of step, so that they do not all verify at once.
            reads: u64::from(client),
            in_flight: 0,
            next: Next::Think,
        }
    }

    /// The read at `offset`, which is within the file, and what comes after it.
    fn read(&mut self, offset: u32) -> (SmbOp, Next) {
        let length = self.request_bytes.min(self.file_bytes - offset);
        let next = match offset + length {
            end if end < self.file_bytes => Next::Read { offset: end },
            _ => Next::Close,
        };
        let verify = self.reads.is_multiple_of(self.verify_one_in);
        self.reads += 1;
        let op = SmbOp::Read {
            handle: HANDLE,
            offset: u64::from(offset),
            length,
            expected_length: ExpectedLength::Exactly(length),
            check: verify.then(|| workspace::nic_content(self.content_seed)),
        };
        (op, next)
    }
}

impl Script for NicPasses {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _context: ScriptContext) -> Step<SmbCall> {
        let room = match self.next {
            Next::Read { offset: 1.. } => self.outstanding_max,
            // Opening, closing and thinking wait for all ops before; so does the first read.
            _ => 1,
        };
        if self.in_flight >= room {
            return Step::WaitForOutcome;
        }
        let (op, next) = match self.next {
            Next::Think => {
                self.next = Next::Open;
                return Step::Think;
            }
            Next::Open => (open(), Next::Read { offset: 0 }),
            Next::Read { offset } => self.read(offset),
            Next::Close => (SmbOp::Close { handle: HANDLE }, Next::Think),
        };
        self.next = next;
        Step::Issue(succeeds(op))
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight += 1;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

fn open() -> SmbOp {
    SmbOp::Create {
        path: workspace::nic_path(),
        handle: HANDLE,
        disposition: Disposition::Open,
        options: options::NON_DIRECTORY_FILE,
    }
}
