//! A worker's place in a load point.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::event::AgentEvent;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::units::OpsPerSec;

use crate::driver::epoll::EpollDriver;
use crate::driver::{Driver, LocalPort, Route};
use crate::fresh::FreshTimes;
use crate::pacer::Recorded;
use crate::seam::ClientSeat;

/// One worker's place in a load point: everything but the protocol.
pub struct Seat<'a> {
    /// The point.
    pub assignment: &'a Assignment,
    /// Number of this worker.
    pub worker: u32,
    /// Names of the workload's ops.
    pub op_names: OpNames,
    /// Ops that one arrival of an open load brings on average; at least 1.
    pub ops_per_arrival: f64,
    /// Clients of one endpoint that share a session, and so its connection; 1 for a session each.
    pub clients_per_session: u32,
    /// Due times in place of a shared schedule's own.
    pub recorded: Option<Recorded>,
    /// Where events go.
    pub events: &'a SyncSender<AgentEvent>,
    /// Empty histograms.
    pub fresh: FreshTimes,
    /// Set from outside to end the point early.
    pub stop: &'a AtomicBool,
    /// What moves bytes and time.
    pub driver: SeatDriver<'a>,
}

impl Seat<'_> {
    /// Arrivals that bring this many ops.
    pub(super) fn arrivals_per_s(&self, ops_per_s: OpsPerSec) -> OpsPerSec {
        OpsPerSec::new(ops_per_s.get() / self.ops_per_arrival.max(1.0)).unwrap_or(ops_per_s)
    }
}

/// The driver of a seat.
pub enum SeatDriver<'a> {
    /// Real sockets.
    Epoll(Box<EpollDriver>),
    /// A simulation.
    Simulated(&'a mut dyn Driver),
    /// In use by the loop.
    Taken,
}

/// The place of a client, whose number counts over all workers.
pub(super) fn client_seat(assignment: &Assignment, client: u32) -> ClientSeat {
    ClientSeat {
        client,
        endpoint: assignment.endpoint_of(client),
        seed: assignment.seed,
        op_timeout: assignment.op_timeout,
        nonce: assignment.nonce,
    }
}

/// Between which addresses the client of this seat connects.
pub(super) fn route(assignment: &Assignment, seat: &ClientSeat) -> Route {
    let sources = &assignment.sources;
    let reserved = assignment.reserved_ports;
    Route {
        to: assignment.endpoints[seat.endpoint].address,
        unix: assignment.endpoints[seat.endpoint].unix.clone(),
        from: (!sources.is_empty()).then(|| sources[seat.client as usize % sources.len()]),
        port: if reserved { LocalPort::Reserved } else { LocalPort::Any },
    }
}
