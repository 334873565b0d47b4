//! An op from when it is due to its end, and the times that follow.

use plimsoll_model::event::OpTimes;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use crate::signs::{Arrived, StreamState};

/// An op in flight, as the engine keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Which op.
    pub kind: OpKind,
    /// When it should have been sent.
    pub due: Nanos,
    /// When its client was free to send it, if that was after it was due.
    pub free: Nanos,
    /// When it was sent.
    pub sent: Nanos,
    /// How long it may have waited for the server's wakeup, after an earlier reply lay unread.
    pub server_wakeup: Nanos,
    /// The largest lateness of any op in flight when it was sent, its own included.
    pub late_max: Nanos,
    /// The progress of its streamed reply.
    pub stream: StreamState,
}

impl Flight {
    /// Begin of its response time: when it was due, or what preceded it had ended.
    pub fn response_from(&self) -> Nanos {
        self.due.max(self.stream.response_from)
    }

    /// Begin of its service time: when it was sent, or could be after a wait in its session.
    pub fn service_from(&self) -> Nanos {
        self.sent.max(self.stream.service_from)
    }

    /// Service time of one that ended at `done`.
    pub fn service(&self, done: Nanos) -> Nanos {
        done.saturating_sub(self.service_from())
    }

    /// The generator's own part of send lag: from when it was due and a client free.
    pub fn lateness(&self) -> Nanos {
        self.sent.saturating_sub(self.due.max(self.free))
    }

    /// How late it counts as for those in flight with it.
    pub fn late_for_others(&self) -> Nanos {
        self.lateness() + self.server_wakeup
    }
}

/// How an op in flight ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// When.
    pub done: Nanos,
    /// When its reply reached this host.
    pub arrived: Arrived,
    /// The largest lateness of any op that was in flight with it.
    pub late_max: Nanos,
}

/// Every time of one op; without the service time of one that has `failed`.
pub(crate) fn record_times(times: &mut OpTimes, flight: &Flight, landing: &Landing, failed: bool) {
    let Landing { done, arrived, late_max } = *landing;
    let response_from = flight.response_from();
    times.response.saturating_record((done - response_from).0);
    times.send_lag.saturating_record(flight.sent.saturating_sub(flight.due).0);
    times.lateness.saturating_record(flight.lateness().0);
    let reached = match arrived {
        Arrived::Stamped(at) | Arrived::Bounded(at) => {
            times.receive_lag.saturating_record(done.saturating_sub(at).0);
            at
        }
        Arrived::Never => done,
    };
    let without = |from: Nanos| reached.saturating_sub(from).saturating_sub(late_max).0;
    times.response_low.saturating_record(without(response_from));
    if !failed {
        times.service.saturating_record(flight.service(done).0);
        times.service_low.saturating_record(without(flight.service_from()));
    }
}
