//! The worker: one loop per core.
//!
//! cached `now` → due schedules → [`Script::next`] → [`Session::issue`] → driver; replies →
//! [`Session::on_bytes`] → [`Recorder::record`] → [`Script::on_outcome`]. Everything inside
//! [`Seat::drive`] is generic; nothing in the loop locks, logs or allocates per op.

mod acting;
mod intervals;
mod lates;
mod leaving;
mod links;
mod network;
mod rounds;
mod schedule;
mod settling;
mod unsent;
mod waiting;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use plimsoll_model::assignment::{Assignment, Load, OpNames};
use plimsoll_model::event::AgentEvent;
use plimsoll_model::suite::Arrivals as Sharing;
use plimsoll_model::units::Nanos;

use crate::driver::epoll::EpollDriver;
use crate::driver::{Datagrams, Driver, LocalPort, Route};
use crate::fresh::FreshTimes;
use crate::recorder::{Flight, Recorder};
use crate::seam::{ClientSeat, Script, Session, SessionCounters, Ticket};

use lates::Lates;
use links::{Links, Produced, Sending};
use network::Reading;
use schedule::Schedule;
use waiting::Waiting;

/// Bytes one read may hand to a session.
const READ_BUFFER_BYTES: usize = 256 * 1024;

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
    /// Where events go.
    pub events: &'a Sender<AgentEvent>,
    /// Empty histograms.
    pub fresh: FreshTimes,
    /// Set from outside to end the point early.
    pub stop: &'a AtomicBool,
    /// What moves bytes and time.
    pub driver: SeatDriver<'a>,
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

impl<'a> Seat<'a> {
    /// Runs the worker to the end of the point. `make` is called once per client, and once more
    /// for the script of a shared schedule (as client 0, so that the work does not depend on the
    /// number of workers).
    pub fn drive<S, C>(mut self, make: impl FnMut(ClientSeat) -> (S, C))
    where
        S: Session,
        C: Script<Op = S::Op>,
    {
        // A simulation takes part for as long as its owner keeps it; the seat keeps none.
        let driver = std::mem::replace(&mut self.driver, SeatDriver::Taken);
        let fresh = std::mem::replace(&mut self.fresh, FreshTimes::on_the_spot(0));
        match driver {
            SeatDriver::Epoll(driver) => Worker::new(&self, *driver, fresh, make).run(),
            SeatDriver::Simulated(driver) => Worker::new(&self, driver, fresh, make).run(),
            SeatDriver::Taken => unreachable!("a seat drives once: drive takes it by value"),
        }
    }
}

/// A simulated client as the worker keeps it.
struct Client<S> {
    session: S,
    /// Over all workers.
    number: u32,
    /// Has left the load; its session is not called any more.
    gone: bool,
    schedule: u32,
    endpoint: usize,
    route: Route,
    /// By ticket.
    flights: Vec<Option<Flight>>,
    /// Tickets that no op has, the one used last on top.
    free_tickets: Vec<Ticket>,
    in_flight: u32,
    /// When the op that ended last was due.
    last_due: Nanos,
    /// Since when it could have taken an op.
    free_since: Nanos,
    /// Stands in its schedule's list of free clients.
    listed_free: bool,
    /// Earliest entry of this client in the deadline heap.
    deadline: Nanos,
}

impl<S> Client<S> {
    /// An op goes out.
    fn begin(&mut self, flight: Flight) -> Ticket {
        self.in_flight += 1;
        if let Some(ticket) = self.free_tickets.pop() {
            self.flights[ticket.0 as usize] = Some(flight);
            return ticket;
        }
        self.flights.push(Some(flight));
        Ticket(self.flights.len() as u32 - 1)
    }

    /// The op ended; `None` when there is no such op.
    fn end(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.flights.get_mut(ticket.0 as usize)?.take()?;
        self.free_tickets.push(ticket);
        self.in_flight -= 1;
        Some(flight)
    }

    /// All ops end, the oldest ticket first.
    fn end_all(&mut self) -> Vec<(Ticket, Flight)> {
        let tickets = (0..self.flights.len() as u32).map(Ticket);
        tickets.filter_map(|ticket| Some((ticket, self.end(ticket)?))).collect()
    }
}

/// One loop with everything it owns.
struct Worker<'a, S, C, D> {
    assignment: &'a Assignment,
    events: &'a Sender<AgentEvent>,
    stop: &'a AtomicBool,
    driver: D,
    recorder: Recorder,
    clients: Vec<Client<S>>,
    schedules: Vec<Schedule<C>>,
    links: Links,
    produced: Produced,
    timers: rounds::Timers,
    waiting: Waiting,
    lates: Lates,
    /// The read that a session is being told of.
    reading: Option<Reading>,
    /// Schedules that may do something at once, and when it was due.
    runnable: Vec<(u32, Nanos)>,
    buffer: Vec<u8>,
    datagrams: Datagrams,
    round: rounds::Round,
    backlog_ops: u64,
    backlog_ops_max: u64,
    in_flight: u64,
    /// Clients that left before the window ended.
    left_in_time: u32,
    stop_check_at: Nanos,
    counters: SessionCounters,
}

impl<'a, S, C, D> Worker<'a, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    fn new(
        seat: &Seat<'a>,
        driver: D,
        fresh: FreshTimes,
        mut make: impl FnMut(ClientSeat) -> (S, C),
    ) -> Self {
        let assignment = seat.assignment;
        let targets: Vec<String> = assignment.endpoints.iter().map(|e| e.target.clone()).collect();
        let mut recorder =
            Recorder::new(seat.worker, assignment.phases, seat.op_names.clone(), &targets, fresh);
        let (clients, schedules) = seats(seat, &mut make);
        if assignment.counts_clients {
            recorder.count_clients(clients.iter().map(|client| client.number).collect());
        }
        let sending = if S::BATCH_SENDS { Sending::Batched } else { Sending::AtOnce };
        let backlog_ops_max = match assignment.load {
            Load::Open { backlog_ops_max, .. } => {
                u64::from(backlog_ops_max.div_ceil(assignment.workers.max(1)))
            }
            Load::Closed { .. } => 0,
        };
        Self {
            assignment,
            events: seat.events,
            stop: seat.stop,
            driver,
            recorder,
            clients,
            schedules,
            links: Links::new(sending),
            produced: Produced::default(),
            timers: rounds::Timers::default(),
            waiting: Waiting::new(assignment),
            lates: Lates::default(),
            reading: None,
            runnable: Vec::new(),
            buffer: vec![0; READ_BUFFER_BYTES],
            datagrams: Datagrams::default(),
            round: rounds::Round::default(),
            backlog_ops: 0,
            backlog_ops_max,
            in_flight: 0,
            left_in_time: 0,
            stop_check_at: Nanos::ZERO,
            counters: SessionCounters::default(),
        }
    }
}

/// Clients and schedules of one worker: client i belongs to worker i mod n.
fn seats<S, C>(
    place: &Seat<'_>,
    make: &mut impl FnMut(ClientSeat) -> (S, C),
) -> (Vec<Client<S>>, Vec<Schedule<C>>)
where
    S: Session,
    C: Script<Op = S::Op>,
{
    let Seat { assignment, worker, ops_per_arrival, .. } = *place;
    let total = assignment.load.clients();
    let shared = matches!(assignment.load, Load::Open { arrivals: Sharing::Shared, .. });
    let mut clients = Vec::new();
    let mut schedules = Vec::new();
    if shared {
        let (_, script) = make(client_seat(assignment, 0));
        schedules.push(Schedule::shared(script, assignment, worker, ops_per_arrival));
    }
    for number in (worker..total).step_by(assignment.workers.max(1) as usize) {
        let seat = client_seat(assignment, number);
        let (session, script) = make(seat);
        let index = clients.len() as u32;
        if !shared {
            schedules.push(Schedule::of_client(script, assignment, number, ops_per_arrival));
        }
        let schedule = if shared { 0 } else { index };
        schedules[schedule as usize].free.push_back(index);
        schedules[schedule as usize].clients += 1;
        clients.push(Client {
            session,
            number,
            gone: false,
            schedule,
            endpoint: seat.endpoint,
            route: route(assignment, &seat),
            flights: Vec::new(),
            free_tickets: Vec::new(),
            in_flight: 0,
            last_due: Nanos::ZERO,
            free_since: Nanos::ZERO,
            listed_free: true,
            deadline: Nanos::MAX,
        });
    }
    (clients, schedules)
}

fn route(assignment: &Assignment, seat: &ClientSeat) -> Route {
    let sources = &assignment.sources;
    let reserved = assignment.reserved_ports;
    Route {
        to: assignment.endpoints[seat.endpoint].address,
        from: (!sources.is_empty()).then(|| sources[seat.client as usize % sources.len()]),
        port: if reserved { LocalPort::Reserved } else { LocalPort::Any },
    }
}

fn client_seat(assignment: &Assignment, client: u32) -> ClientSeat {
    ClientSeat {
        client,
        endpoint: client as usize % assignment.endpoints.len().max(1),
        seed: assignment.seed,
        op_timeout: assignment.op_timeout,
        nonce: assignment.nonce,
    }
}
