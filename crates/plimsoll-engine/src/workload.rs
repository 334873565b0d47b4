//! What a protocol brings to a load point: the only dynamic dispatch, once per worker and load
//! point.

use plimsoll_model::outcome::OpNames;

use crate::pacer::Recorded;
use crate::worker::Seat;

/// Everything a protocol brings to a load point.
pub trait Workload: Send + Sync {
    /// Names of the ops; an [`OpKind`](plimsoll_model::outcome::OpKind) indexes them.
    fn op_names(&self) -> OpNames;
    /// Shares the method wants, in the order of the names; `None` when the mix is not fixed.
    fn op_shares(&self) -> Option<Vec<f64>> {
        None
    }
    /// The protocol's name of a status in [`plimsoll_model::outcome::OpStatus::Unexpected`], for
    /// people.
    fn status_name(&self, status: u32) -> Option<&'static str> {
        let _ = status;
        None
    }
    /// Ops that one arrival of an open load brings on average, follow-ons included; at least 1.
    /// Arrivals come at the requested rate divided by this.
    fn ops_per_arrival(&self) -> f64 {
        1.0
    }
    /// Clients of a worker that share a session, and so its connection: their ops are in flight
    /// together, one of each at most.
    fn clients_per_session(&self) -> u32 {
        1
    }
    /// Due times of ops in place of the load's own: an open load with a shared schedule has these at
    /// its rate.
    fn recorded(&self) -> Option<Recorded> {
        None
    }
    /// Size of the data on all servers that its ops choose from; `None` where nobody knows.
    fn data_bytes(&self) -> Option<u64> {
        None
    }
    /// Runs one worker: calls [`Seat::drive`] with a function that makes each client.
    fn run_worker(&self, seat: Seat<'_>);
}
