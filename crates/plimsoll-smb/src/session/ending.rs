//! How ops end, and clients.

use plimsoll_engine::seam::Io;

use super::super::op::SmbOp;
use super::SmbSession;
use super::flights::Flight;
use super::line::Line;
use super::replies::Stop;
use super::verdict::{Verdict, verdict};
use super::words::{Complaint, Described};

impl SmbSession {
    /// The op ends with this status from the server.
    pub(super) fn finish(&mut self, at: usize, status: u32, io: &mut impl Io) -> Result<(), Stop> {
        let Some(flight) = self.flights.end(at) else { return Ok(()) };
        self.counters.verified += u64::from(flight.verified && flight.complaint.is_none());
        self.settle(&flight, verdict(&flight, status), io)
    }

    pub(super) fn settle(
        &mut self,
        flight: &Flight,
        verdict: Verdict<'_>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let complaint = match verdict {
            Ok(status) => {
                io.complete(flight.ticket, flight.outcome(status));
                return Ok(());
            }
            Err(complaint) => complaint,
        };
        let op = &flight.call.op;
        if !matches!(complaint, Complaint::Refused(_)) {
            io.explain(format_args!("{}: {complaint}", Described(op)));
        }
        io.complete(flight.ticket, flight.outcome(complaint.status()));
        // A logon has a session of its own: what becomes of it says nothing of this client's.
        let of_this_session = !matches!(op, SmbOp::Logon);
        if of_this_session && let Complaint::Unexpected { .. } = complaint {
            self.unexpected += 1;
            if self.unexpected > self.site.unexpected_max {
                let reason = format!(
                    "{} ops ended with another status than expected (allowed: {}); the last: {}: \
                     {complaint}",
                    self.unexpected,
                    self.site.unexpected_max,
                    Described(op)
                );
                self.leave(reason, Complaint::Left, None, io);
                return Err(Stop::Lost);
            }
        }
        Ok(())
    }

    /// The client cannot go on. The op in slot `guilty` ends with the complaint; when there is
    /// none, all do.
    pub(super) fn lose(
        &mut self,
        complaint: Complaint<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let flight = guilty.and_then(|at| self.flights.get(at));
        let reason = match flight {
            Some(flight) => format!("{}: {complaint}", Described(&flight.call.op)),
            None => complaint.to_string(),
        };
        self.leave(reason, complaint, guilty, io);
        Err(Stop::Lost)
    }

    pub(super) fn leave(
        &mut self,
        reason: String,
        complaint: Complaint<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) {
        if let Some(link) = self.line.link() {
            io.close(link);
        }
        self.line = Line::Gone;
        self.assembler.reset();
        self.waiting.clear();
        self.lost.get_or_insert(reason);
        for at in 0..self.flights.slots() {
            let Some(flight) = self.flights.end(at) else { continue };
            let complaint = match guilty {
                Some(guilty) if guilty != at => Complaint::Left,
                _ => complaint,
            };
            io.explain(format_args!("{}: {complaint}", Described(&flight.call.op)));
            io.complete(flight.ticket, flight.outcome(complaint.status()));
        }
        self.logons.leave(io);
    }
}
