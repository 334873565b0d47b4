//! How ops end, by their status, and clients.

use plimsoll_engine::seam::Io;
use plimsoll_model::outcome::OpStatus;

use super::super::op::{Expected, SmbOp, Wanted};
use super::super::wire::status;
use super::SmbSession;
use super::connection::Connection;
use super::failure::{Described, Failure, Stop};
use super::in_flight::OpInFlight;

impl SmbSession {
    /// The op ends with this status from the server.
    pub(super) fn finish(&mut self, at: usize, status: u32, io: &mut impl Io) -> Result<(), Stop> {
        let Some(in_flight) = self.ops.end(at) else { return Ok(()) };
        self.counters.verified += u64::from(in_flight.verified && in_flight.failure.is_none());
        self.settle(&in_flight, verdict(&in_flight, status), io)
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
        // A logon has a session of its own: what becomes of it says nothing of this client's.
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

    /// The client cannot go on. The op in slot `guilty` ends with the failure; when there is
    /// none, all do.
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
            io.explain(format_args!("{}: {failure}", Described(&in_flight.call.op)));
            io.complete(in_flight.ticket, in_flight.outcome(failure.status()));
        }
        self.logons.leave(io);
    }
}

/// How an op ended, or what is wrong with it.
pub(super) type Verdict<'m> = Result<OpStatus, Failure<'m>>;

/// Judges an op whose commands ended with `status`.
pub(super) fn verdict(in_flight: &OpInFlight, code: u32) -> Verdict<'static> {
    if let Some(failure) = in_flight.failure {
        return Err(failure);
    }
    let code = as_desktop_sees_it(in_flight, code);
    let judged = expectation(in_flight.call.expected, code)?;
    match in_flight.call.op {
        SmbOp::Read { wanted: Wanted::Exactly(expected), .. }
            if !status::is_failure(code) && in_flight.moved != expected =>
        {
            Err(Failure::Length { expected, found: in_flight.moved })
        }
        SmbOp::Write { length, .. } if !status::is_failure(code) && in_flight.moved != length => {
            Err(Failure::Length { expected: length, found: in_flight.moved })
        }
        _ => Ok(judged),
    }
}

/// A status against what the script expects.
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

/// A read that begins at the end of a file is a read of nothing: what SMB2 calls a failure is none
/// to an application, unless the script says so.
fn as_desktop_sees_it(in_flight: &OpInFlight, code: u32) -> u32 {
    match (&in_flight.call.op, in_flight.call.expected) {
        (SmbOp::Read { wanted, .. }, Expected::Success | Expected::Anything)
            if code == status::END_OF_FILE
                && matches!(wanted, Wanted::Any | Wanted::Exactly(0)) =>
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

    const NOT_FOUND: u32 = status::OBJECT_NAME_NOT_FOUND;

    #[test]
    fn statuses_are_held_against_what_is_expected() {
        let (ok, expected) = (Ok(OpStatus::Ok), Ok(OpStatus::ExpectedFailure));
        let other = |expected, actual| Err(OpStatus::Unexpected { expected, actual });
        let denied = status::ACCESS_DENIED;
        let cases = [
            (Expected::Success, 0, ok),
            (Expected::Success, NOT_FOUND, other(0, NOT_FOUND)),
            (Expected::Failure(NOT_FOUND), NOT_FOUND, expected),
            (Expected::Failure(NOT_FOUND), 0, other(NOT_FOUND, 0)),
            (Expected::Failure(NOT_FOUND), denied, other(NOT_FOUND, denied)),
            (Expected::AnyFailure, denied, expected),
            (Expected::AnyFailure, 0, other(status::UNSUCCESSFUL, 0)),
            (Expected::Anything, 0, ok),
            (Expected::Anything, denied, expected),
        ];
        for (wanted, actual, judged) in cases {
            let found = expectation(wanted, actual).map_err(|failure| failure.status());
            assert_eq!(found, judged, "{wanted:?} {actual:#x}");
        }
    }
}
