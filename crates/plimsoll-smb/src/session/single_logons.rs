//! Logons with a connection of their own: connect, log on, reach the share, log off, close.

use plimsoll_engine::interface::{Io, Link, LinkKind};
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::outcome::OpStatus;
use plimsoll_model::units::Nanos;

use super::super::logon::{Dialect, Established, Logon, LogonError, LogonProgress};
use super::super::wire::frame::{self, Assembler};
use super::super::wire::header::{Command, Header, Parts};
use super::super::wire::session::{LogoffRequest, LogoffResponse};
use super::super::wire::{lenient, status};
use super::failure::{Described, Failure, class_of};
use super::in_flight::OpInFlight;
use super::replies::{Verdict, expectation, fail};
use super::{Buffers, SmbSite};

/// The logons of a client that are under way.
#[derive(Default)]
pub(super) struct SingleLogons {
    active: Vec<SingleLogon>,
    started: u64,
    /// Harmless differences of replies from their specification, since the last call.
    pub(super) nonconformities: Nonconformities,
}

struct SingleLogon {
    in_flight: OpInFlight,
    link: Link,
    assembler: Assembler,
    phase: Phase,
}

enum Phase {
    Connecting,
    LoggingOn(Box<Logon>),
    LoggingOff(Box<Established>),
}

/// Whether a link is still to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Open,
    Closed,
}

impl Phase {
    fn waited_for(&self) -> &'static str {
        match self {
            Self::Connecting => "connection",
            Self::LoggingOn(_) => "end of the logon",
            Self::LoggingOff(_) => "reply to LOGOFF",
        }
    }
}

impl SingleLogons {
    pub(super) fn len(&self) -> usize {
        self.active.len()
    }

    pub(super) fn start(&mut self, in_flight: OpInFlight, io: &mut impl Io) {
        let link = io.connect(LinkKind::Stream);
        let (assembler, phase) = (Assembler::default(), Phase::Connecting);
        self.active.push(SingleLogon { in_flight, link, assembler, phase });
    }

    /// The deadline of the first of them.
    pub(super) fn deadline(&self) -> Nanos {
        self.active.iter().map(|logon| logon.in_flight.deadline).min().unwrap_or(Nanos::MAX)
    }

    fn find(&self, link: Link) -> Option<usize> {
        self.active.iter().position(|logon| logon.link == link)
    }

    /// Its connection is open.
    pub(super) fn connected(
        &mut self,
        link: Link,
        logon: impl FnOnce(u64) -> Logon,
        buffers: &mut Buffers,
        io: &mut impl Io,
    ) {
        let Some(at) = self.find(link) else { return };
        let active = &mut self.active[at];
        self.started += 1;
        let mut logon = Box::new(logon(self.started));
        buffers.out.clear();
        logon.start(&mut buffers.out);
        io.send(link, &buffers.out);
        active.phase = Phase::LoggingOn(logon);
    }

    /// Bytes came; the logon may be over, and then its op is to end as the verdict says.
    pub(super) fn bytes(
        &mut self,
        link: Link,
        mut bytes: &[u8],
        site: &SmbSite,
        io: &mut impl Io,
    ) -> Option<(OpInFlight, Verdict<'static>)> {
        let at = self.find(link)?;
        let active = &mut self.active[at];
        let nonconformities = &mut self.nonconformities;
        let mut assembler = std::mem::take(&mut active.assembler);
        let ended = loop {
            match assembler.take(&mut bytes) {
                Ok(Some(message)) => {
                    let buffers = &mut site.buffers.borrow_mut();
                    if let Some(verdict) = active.on_message(message, buffers, nonconformities, io)
                    {
                        break Some(verdict);
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(Err(Failure::Stream(error))),
            }
        };
        active.assembler = assembler;
        let verdict = ended?;
        let ended = self.active.swap_remove(at);
        io.close(link);
        Some((ended.in_flight, verdict))
    }

    /// The connection of one broke or was closed by the server.
    pub(super) fn broke(
        &mut self,
        link: Link,
        state: LinkState,
        failure: Failure<'_>,
        io: &mut impl Io,
    ) {
        let Some(at) = self.find(link) else { return };
        if state == LinkState::Open {
            io.close(link);
        }
        fail(&self.active.swap_remove(at).in_flight, failure, io);
    }

    /// Logons past their deadline have failed.
    pub(super) fn time_out(&mut self, now: Nanos, after: Nanos, io: &mut impl Io) {
        while let Some(at) = self.active.iter().position(|logon| logon.in_flight.deadline <= now) {
            let logon = self.active.swap_remove(at);
            io.close(logon.link);
            let waited_for = logon.phase.waited_for();
            fail(&logon.in_flight, Failure::Timeout { after, waited_for }, io);
        }
    }

    /// The client leaves the mix.
    pub(super) fn leave(&mut self, io: &mut impl Io) {
        for logon in self.active.drain(..) {
            io.close(logon.link);
            fail(&logon.in_flight, Failure::Left, io);
        }
    }
}

impl SingleLogon {
    fn on_message(
        &mut self,
        message: &[u8],
        buffers: &mut Buffers,
        nonconformities: &mut Nonconformities,
        io: &mut impl Io,
    ) -> Option<Verdict<'static>> {
        let Buffers { out, plain, .. } = buffers;
        out.clear();
        match &mut self.phase {
            Phase::Connecting => None,
            Phase::LoggingOn(logon) => match logon.on_message(message, out) {
                Ok(LogonProgress::More) => {
                    io.send(self.link, out);
                    None
                }
                Ok(LogonProgress::Done(mut established)) => {
                    encode_logoff(&mut established, out);
                    io.send(self.link, out);
                    nonconformities.add(&established.nonconformities);
                    self.phase = Phase::LoggingOff(established);
                    None
                }
                Err(error) => Some(refused(&self.in_flight, &error, io)),
            },
            Phase::LoggingOff(established) => {
                let expected = self.in_flight.call.expected;
                Some(
                    logged_off(established, message, plain, nonconformities)
                        .and_then(|status| expectation(expected, status)),
                )
            }
        }
    }
}

/// A failed logon, explained here because its error is not kept.
fn refused(in_flight: &OpInFlight, error: &LogonError, io: &mut impl Io) -> Verdict<'static> {
    let verdict = error.status().map(|actual| expectation(in_flight.call.expected, actual));
    let status = match verdict {
        Some(Ok(as_expected)) => return Ok(as_expected),
        Some(Err(failure)) => failure.status(),
        None => OpStatus::Failed(class_of(error)),
    };
    io.explain(format_args!("{}: {error}", Described(&in_flight.call.op)));
    Err(Failure::Refused(status))
}

fn encode_logoff(established: &mut Established, out: &mut Vec<u8>) {
    let at = frame::begin(out);
    let header = Header {
        message_id: established.next_message_id,
        credit_charge: u16::from(established.dialect > Dialect::V2_0_2),
        credits: 1,
        session_id: established.session_id,
        ..Header::new(Command::Logoff)
    };
    header.encode(out);
    LogoffRequest {}.encode(out);
    frame::finish(out, at);
    established.seal.protect(out, at);
}

/// The status of the reply to LOGOFF.
fn logged_off(
    established: &mut Established,
    message: &[u8],
    plain: &mut Vec<u8>,
    nonconformities: &mut Nonconformities,
) -> Result<u32, Failure<'static>> {
    let command = Command::Logoff;
    let opened = established.seal.open(message, plain).map_err(|_| Failure::Unsealed)?;
    let part = match Parts::new(opened).next() {
        Some(Ok(part)) => part,
        Some(Err(error)) => return Err(Failure::Message(error)),
        None => return Err(Failure::Nonsense { command, what: "it is empty" }),
    };
    if part.header.command != command || part.header.message_id != established.next_message_id {
        return Err(Failure::Nonsense { command, what: "it answers something else" });
    }
    lenient::header(&part.header, nonconformities);
    if part.header.status == status::SUCCESS {
        let decoded = LogoffResponse::decode(&lenient::body(command, part.body, nonconformities));
        decoded.map_err(|error| Failure::Malformed { command, error })?;
    } else {
        lenient::failed(command, part.body, nonconformities);
    }
    Ok(part.header.status)
}
