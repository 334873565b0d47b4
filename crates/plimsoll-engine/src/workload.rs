//! What a protocol brings to a load point, and what a worker gets there: the only dynamic dispatch,
//! once per worker and load point.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::event::{AgentEvent, PageLimits};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::page_cache::AccessPattern;
use plimsoll_model::units::OpsPerSec;

use crate::driver::epoll::EpollDriver;
use crate::driver::{LocalPort, Route};
use crate::fresh::FreshTimes;
use crate::interface::ClientContext;
use crate::pacer::Recorded;

/// Everything a protocol brings to a load point.
pub trait Workload: Send + Sync {
    /// Names of the ops; an [`OpKind`](plimsoll_model::outcome::OpKind) indexes them.
    fn op_names(&self) -> OpNames;
    /// Shares that the method requires, in the order of the names; `None` when the mix is not
    /// fixed.
    fn op_shares(&self) -> Option<Vec<f64>> {
        None
    }
    /// How long pages may take, in the order of the names; empty where no page has a limit.
    fn page_limits(&self) -> Vec<PageLimits> {
        Vec::new()
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
    /// Connections that a session has at a time, at most.
    fn connections_per_session(&self) -> u32 {
        1
    }
    /// Due times of ops that replace the load's own: an open load with a shared schedule has these
    /// at its rate.
    fn recorded(&self) -> Option<Recorded> {
        None
    }
    /// Size of the data on all servers that its ops choose from; `None` if unknown.
    fn data_bytes(&self) -> Option<u64> {
        None
    }
    /// Which parts of that data its ops read, and how often; `None` if that is unknown.
    fn access_pattern(&self) -> Option<AccessPattern> {
        None
    }
    /// Runs one worker: calls [`WorkerContext::drive`] with a function that makes each client.
    fn run_worker(&self, context: WorkerContext<'_>);
}

/// One worker's context in a load point: everything but the protocol.
pub struct WorkerContext<'a> {
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
    /// Connections of this worker that the limit of open files leaves room for, in addition to one
    /// per session.
    pub spare_links: u32,
    /// Due times that replace a shared schedule's own.
    pub recorded: Option<Recorded>,
    /// Where events go.
    pub events: &'a SyncSender<AgentEvent>,
    /// Empty histograms.
    pub fresh: FreshTimes,
    /// Set from outside to end the point early.
    pub stop: &'a AtomicBool,
    /// What moves bytes and time.
    pub driver: WorkerDriver<'a>,
}

impl WorkerContext<'_> {
    /// Arrivals that bring this many ops.
    pub(super) fn arrivals_per_s(&self, ops_per_s: OpsPerSec) -> OpsPerSec {
        OpsPerSec::new(ops_per_s.get() / self.ops_per_arrival.max(1.0)).unwrap_or(ops_per_s)
    }
}

/// The driver of a worker.
pub enum WorkerDriver<'a> {
    /// Real sockets.
    Epoll(Box<EpollDriver>),
    /// A simulation, which compiles every worker loop a second time.
    #[cfg(feature = "simulation")]
    Simulated(&'a mut dyn crate::driver::Driver),
    /// In use by the loop.
    Taken(PhantomData<&'a ()>),
}

/// The context of a client, whose number counts over all workers.
pub(super) fn client_context(assignment: &Assignment, client: u32) -> ClientContext {
    ClientContext {
        client,
        endpoint: assignment.endpoint_of(client),
        seed: assignment.seed,
        op_timeout: assignment.op_timeout,
        nonce: assignment.nonce,
    }
}

/// The addresses between which this client connects.
pub(super) fn route(assignment: &Assignment, context: &ClientContext) -> Route {
    let sources = &assignment.sources;
    let reserved = assignment.reserved_ports;
    Route {
        to: assignment.endpoints[context.endpoint].address,
        unix: assignment.endpoints[context.endpoint].unix.clone(),
        from: (!sources.is_empty()).then(|| sources[context.client as usize % sources.len()]),
        port: if reserved { LocalPort::Reserved } else { LocalPort::Any },
    }
}
