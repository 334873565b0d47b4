//! How ops end, and clients.

use plimsoll_engine::seam::Io;

use super::super::op::SmbOp;
use super::SmbSession;
use super::connection::Connection;
use super::failure::{Described, Failure, Stop};
use super::in_flight::OpInFlight;
use super::verdict::{Verdict, verdict};

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
