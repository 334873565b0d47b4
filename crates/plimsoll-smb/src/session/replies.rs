//! From the bytes that arrive to the ops they end; how ops end, by their status, and clients.

use std::mem;

use plimsoll_engine::interface::{Io, Link};
use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind};
use plimsoll_model::outcome::OpStatus;

use super::super::logon::{Established, LogonProgress};
use super::super::op::{Expected, ExpectedLength, HandleNo, SmbCall, SmbOp};
use super::super::wire::header::{Command, Part, Parts, UNSOLICITED};
use super::super::wire::{lenient, status};
use super::chores::Chore;
use super::connection::{Connected, Connection, Credits};
use super::failure::{self, Described, Failure, Stop};
use super::handles::CacheGrant;
use super::in_flight::{OpInFlight, Phase};
use super::{SmbSession, deltree};

/// Credits kept at least for each op that may be in flight.
const CREDITS_PER_OP: u32 = 8;
/// Credits kept at least.
const CREDITS_MIN: u32 = 64;

/// The final reply to a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub command: Command,
    pub status: u32,
    pub body: Vec<u8>,
}

impl SmbSession {
    /// One whole message arrived.
    pub(super) fn on_message(&mut self, message: &[u8], io: &mut impl Io) -> Result<(), Stop> {
        match &mut self.connection {
            Connection::LoggingOn(link, logon) => {
                let link = *link;
                let site = self.site.clone();
                let out = &mut site.buffers.borrow_mut().out;
                out.clear();
                match logon.on_message(message, out) {
                    Ok(LogonProgress::More) => io.send(link, out),
                    Ok(LogonProgress::Done(established)) => self.logged_on(link, *established),
                    Err(error) => return self.lose(Failure::Logon(&error), None, io),
                }
                Ok(())
            }
            Connection::Up(_) => {
                let mut plain = mem::take(&mut self.site.buffers.borrow_mut().plain);
                let read = self.on_sealed(message, &mut plain, io);
                self.site.buffers.borrow_mut().plain = plain;
                read
            }
            Connection::Idle | Connection::Connecting(_) | Connection::Gone => Err(Stop::Lost),
        }
    }

    pub(crate) fn logged_on(&mut self, link: Link, established: Established) {
        self.counters.nonconformities.add(&established.nonconformities);
        let requested = self.site.outstanding_max.saturating_mul(CREDITS_PER_OP).max(CREDITS_MIN);
        let (next, available) = (established.next_message_id, established.credits);
        let credits = Credits::new(next, available, requested);
        self.connection = Connection::Up(Box::new(Connected { link, credits, established }));
    }

    /// A message of the session: a reply, several, or an unsolicited one.
    pub(super) fn on_sealed(
        &mut self,
        message: &[u8],
        plain: &mut Vec<u8>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let Connection::Up(up) = &mut self.connection else { return Err(Stop::Lost) };
        let opened = match up.established.seal.open(message, plain) {
            Ok(opened) => opened,
            Err(error) => {
                let failure = failure::unsealed(&error);
                return self.lose(failure, None, io);
            }
        };
        for part in Parts::new(opened) {
            match part {
                Ok(part) => self.on_part(&part, io)?,
                Err(error) => return self.lose(Failure::Message(error), None, io),
            }
        }
        Ok(())
    }

    pub(super) fn on_part(&mut self, part: &Part<'_>, io: &mut impl Io) -> Result<(), Stop> {
        let header = &part.header;
        let command = header.command;
        if !header.is_response() {
            let what = "it is a request";
            return self.lose(Failure::Nonsense { command, what }, None, io);
        }
        if header.message_id == UNSOLICITED {
            return self.on_break(part, io);
        }
        let Connection::Up(up) = &mut self.connection else { return Err(Stop::Lost) };
        let is_interim = header.status == status::PENDING && header.async_id.is_some();
        let Some((at, index)) = self.ops.find(header.message_id) else {
            // A command of no op, or a reply to nothing: ignored.
            if self.chores.answered(header.message_id, is_interim) {
                up.credits.grant(header.credits);
            }
            return Ok(());
        };
        up.credits.grant(header.credits);
        let Some(in_flight) = self.ops.get(at) else { return Ok(()) };
        if is_interim {
            in_flight.phase = Phase::Pending;
            return Ok(());
        }
        if failure::is_gone(header.status) {
            let failure = Failure::Gone { command, status: header.status };
            return self.lose(failure, Some(at), io);
        }
        let nonconformities = &mut self.counters.nonconformities;
        if let Err(failure) = in_flight.take(index, part, &self.site, nonconformities) {
            return self.lose(failure, Some(at), io);
        }
        if let Some(answers) = &mut self.answers {
            // Noted above.
            let body = lenient::body(command, part.body, &mut Nonconformities::default());
            let (status, body) = (header.status, body.into_owned());
            answers.push(Answer { command, status, body });
        }
        if in_flight.is_answered() { self.conclude(at, io) } else { Ok(()) }
    }

    /// All commands of an op are answered: it goes on, or ends.
    pub(super) fn conclude(&mut self, at: usize, io: &mut impl Io) -> Result<(), Stop> {
        let Some(in_flight) = self.ops.get(at) else { return Ok(()) };
        let status = in_flight.status();
        if let Some(tree) = &mut in_flight.tree {
            return match tree.ended(status) {
                deltree::Next::Go => {
                    in_flight.again();
                    self.ops.rest(at);
                    self.waiting.push_back(at);
                    Ok(())
                }
                deltree::Next::Done(status) => self.finish(at, status, io),
            };
        }
        if in_flight.has_more_parts() {
            in_flight.again();
            self.ops.rest(at);
            self.waiting.push_front(at);
            return Ok(());
        }
        match in_flight.call.op {
            SmbOp::Create { handle, .. } => {
                if let Some((file, grant)) = in_flight.opened
                    && let Some(before) = self.handles.insert(handle, file, grant)
                {
                    self.chores.push(Chore::Close(before));
                }
            }
            SmbOp::Read { handle, offset, .. } | SmbOp::Write { handle, offset, .. } => {
                let moved = in_flight.moved;
                self.remember(handle, offset, moved);
            }
            SmbOp::SetFile { handle, .. } => self.forget(handle),
            _ => {}
        }
        self.finish(at, status, io)
    }

    /// The range need not be read again, if the server lets the client keep it.
    pub(super) fn remember(&mut self, handle: HandleNo, offset: u64, bytes: u32) {
        let open = self.handles.get_mut(handle).filter(|open| open.grant != CacheGrant::Nothing);
        if let Some(open) = open {
            open.ranges.add(offset, bytes);
        }
    }

    pub(super) fn forget(&mut self, handle: HandleNo) {
        if let Some(open) = self.handles.get_mut(handle) {
            open.ranges.clear();
        }
    }

    /// The op ends with this status from the server.
    pub(super) fn finish(&mut self, at: usize, status: u32, io: &mut impl Io) -> Result<(), Stop> {
        let Some(in_flight) = self.ops.end(at) else { return Ok(()) };
        let status = self.as_expected(&in_flight.call, status);
        self.counters.verified += u64::from(in_flight.verified && in_flight.failure.is_none());
        self.settle(&in_flight, verdict(&in_flight, status), io)
    }

    /// Accepts a status that means the same as the expected one, and notes the difference.
    fn as_expected(&mut self, call: &SmbCall, actual: u32) -> u32 {
        let Expected::Failure(expected) = call.expected else { return actual };
        if expected == actual || !means_the_same(expected, actual) {
            return actual;
        }
        let (section, command) = match call.op {
            SmbOp::Find { .. } => ("3.3.5.18", "QUERY_DIRECTORY"),
            _ => ("3.3.5.9", "CREATE"),
        };
        let (field, kind) = (Some("Status"), NonconformityKind::OtherStatus);
        let nonconformity = Nonconformity::once("MS-SMB2", section, command, field, kind);
        self.counters.nonconformities.note(&nonconformity);
        expected
    }

    pub(super) fn settle(
        &mut self,
        in_flight: &OpInFlight,
        verdict: Verdict<'_>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let failure = match verdict {
            Ok(status) => {
                io.complete(in_flight.ticket, in_flight.outcome(status));
                return Ok(());
            }
            Err(failure) => failure,
        };
        let op = &in_flight.call.op;
        if !matches!(failure, Failure::Refused(_)) {
            io.explain(format_args!("{}: {failure}", Described(op)));
        }
        io.complete(in_flight.ticket, in_flight.outcome(failure.status()));
        // A logon has a session of its own: its end does not affect this client's session.
        let of_this_session = !matches!(op, SmbOp::Logon);
        if of_this_session && let Failure::Unexpected { .. } = failure {
            self.unexpected += 1;
            if self.unexpected > self.site.unexpected_max {
                let reason = format!(
                    "{} ops ended with another status than expected (allowed: {}); the last: {}: \
                     {failure}",
                    self.unexpected,
                    self.site.unexpected_max,
                    Described(op)
                );
                self.leave(reason, Failure::Left, None, io);
                return Err(Stop::Lost);
            }
        }
        Ok(())
    }

    /// The client cannot continue. The op in slot `guilty` ends with the failure; without one, all
    /// do.
    pub(super) fn lose(
        &mut self,
        failure: Failure<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let in_flight = guilty.and_then(|at| self.ops.get(at));
        let reason = match in_flight {
            Some(in_flight) => format!("{}: {failure}", Described(&in_flight.call.op)),
            None => failure.to_string(),
        };
        self.leave(reason, failure, guilty, io);
        Err(Stop::Lost)
    }

    pub(super) fn leave(
        &mut self,
        reason: String,
        failure: Failure<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) {
        if let Some(link) = self.connection.link() {
            io.close(link);
        }
        self.connection = Connection::Gone;
        self.assembler.reset();
        self.waiting.clear();
        self.lost.get_or_insert(reason);
        for at in 0..self.ops.slots() {
            let Some(in_flight) = self.ops.end(at) else { continue };
            let failure = match guilty {
                Some(guilty) if guilty != at => Failure::Left,
                _ => failure,
            };
            fail(&in_flight, failure, io);
        }
        self.logons.leave(io);
    }
}

/// The op ends with a failure.
pub(super) fn fail(in_flight: &OpInFlight, failure: Failure<'_>, io: &mut impl Io) {
    io.explain(format_args!("{}: {failure}", Described(&in_flight.call.op)));
    io.complete(in_flight.ticket, in_flight.outcome(failure.status()));
}

/// How an op ended, or what is wrong with it.
pub(super) type Verdict<'m> = Result<OpStatus, Failure<'m>>;

/// Evaluates an op whose commands ended with `status`.
pub(super) fn verdict(in_flight: &OpInFlight, code: u32) -> Verdict<'static> {
    if let Some(failure) = in_flight.failure {
        return Err(failure);
    }
    let code = as_desktop_sees_it(in_flight, code);
    let op_status = expectation(in_flight.call.expected, code)?;
    match in_flight.call.op {
        SmbOp::Read { expected_length: ExpectedLength::Exactly(expected), .. }
            if !status::is_failure(code) && in_flight.moved != expected =>
        {
            Err(Failure::Length { expected, actual: in_flight.moved })
        }
        SmbOp::Write { length, .. } if !status::is_failure(code) && in_flight.moved != length => {
            Err(Failure::Length { expected: length, actual: in_flight.moved })
        }
        _ => Ok(op_status),
    }
}

/// To a client that looks for a name, each of these means that there is none. MS-ERREF 2.3.1
fn means_the_same(expected: u32, actual: u32) -> bool {
    const NO_SUCH_NAME: [u32; 2] = [status::OBJECT_NAME_NOT_FOUND, status::NO_SUCH_FILE];
    const NO_MATCH: [u32; 2] = [status::NO_SUCH_FILE, status::NO_MORE_FILES];
    [NO_SUCH_NAME, NO_MATCH].iter().any(|same| same.contains(&expected) && same.contains(&actual))
}

/// Compares a status with what the script expects.
pub(super) fn expectation(expected: Expected, actual: u32) -> Verdict<'static> {
    let failed = status::is_failure(actual);
    let expected = match expected {
        Expected::Success if !failed => return Ok(OpStatus::Ok),
        Expected::Failure(code) if actual == code => return Ok(OpStatus::ExpectedFailure),
        Expected::AnyFailure if failed => return Ok(OpStatus::ExpectedFailure),
        Expected::Anything if failed => return Ok(OpStatus::ExpectedFailure),
        Expected::Anything => return Ok(OpStatus::Ok),
        Expected::Success => status::SUCCESS,
        Expected::Failure(code) => code,
        Expected::AnyFailure => status::UNSUCCESSFUL,
    };
    Err(Failure::Unexpected { expected, actual })
}

/// A read that begins at the end of a file reads nothing: SMB2 calls that a failure, an application
/// does not, unless the script expects it.
fn as_desktop_sees_it(in_flight: &OpInFlight, code: u32) -> u32 {
    match (&in_flight.call.op, in_flight.call.expected) {
        (SmbOp::Read { expected_length, .. }, Expected::Success | Expected::Anything)
            if code == status::END_OF_FILE
                && matches!(expected_length, ExpectedLength::Any | ExpectedLength::Exactly(0)) =>
        {
            status::SUCCESS
        }
        (SmbOp::Read { .. }, _) if code == status::END_OF_FILE && in_flight.moved > 0 => {
            // An earlier part of the same read brought something.
            status::SUCCESS
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SUCH_NAME: u32 = status::OBJECT_NAME_NOT_FOUND;

    #[test]
    fn statuses_are_held_against_what_is_expected() {
        let (ok, expected) = (Ok(OpStatus::Ok), Ok(OpStatus::ExpectedFailure));
        let other = |expected, actual| Err(OpStatus::Unexpected { expected, actual });
        let denied = status::ACCESS_DENIED;
        let cases = [
            (Expected::Success, 0, ok),
            (Expected::Success, NO_SUCH_NAME, other(0, NO_SUCH_NAME)),
            (Expected::Failure(NO_SUCH_NAME), NO_SUCH_NAME, expected),
            (Expected::Failure(NO_SUCH_NAME), 0, other(NO_SUCH_NAME, 0)),
            (Expected::Failure(NO_SUCH_NAME), denied, other(NO_SUCH_NAME, denied)),
            (Expected::AnyFailure, denied, expected),
            (Expected::AnyFailure, 0, other(status::UNSUCCESSFUL, 0)),
            (Expected::Anything, 0, ok),
            (Expected::Anything, denied, expected),
        ];
        for (required, actual, verdict) in cases {
            let result = expectation(required, actual).map_err(|failure| failure.status());
            assert_eq!(result, verdict, "{required:?} {actual:#x}");
        }
    }
}
