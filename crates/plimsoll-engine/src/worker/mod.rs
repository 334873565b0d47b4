//! The worker: one loop per core.
//!
//! wait → what happened on connections → [`Session`] → ops that ended, recorded → ops that are due
//! → [`Script::next`] → [`Session::issue`] → driver. Everything inside [`WorkerContext::drive`] is
//! generic; nothing in the loop locks, logs or allocates per op.
//!
//! Each part owns its state: `ops` what becomes of an op, with `schedule` and `pace` (when clients act),
//! `clients` (sessions and what they have in flight) and `recording`; `connections` the links and
//! the driver; `waiting` how long to wait; `log_off` what follows the load.

mod clients;
mod connections;
mod due_counts;
mod links;
mod log_off;
mod ops;
mod pace;
mod recording;
mod schedule;
mod waiting;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_model::assignment::{Load, Phases};
use plimsoll_model::suite::Arrivals as Sharing;
use plimsoll_model::units::Nanos;

use crate::clock::RunDelay;
use crate::driver::{Datagrams, Driver, Ready, Wait};
use crate::fresh::FreshTimes;
use crate::interface::{ClientContext, Link, LinkError, LinkKind, Script, Session};
use crate::workload;

use clients::Clients;
use connections::{Brought, Connections, Read};
use links::Sending;
use log_off::LogOff;
use ops::{DueBy, Ops};
use recording::Recording;
use schedule::{Schedule, Schedules};
use waiting::{Others, Outlook, Waiting};

pub use crate::workload::{WorkerContext, WorkerDriver};

/// Bytes one read may hand to a session.
const READ_BUFFER_BYTES: usize = 256 * 1024;
/// Reads of one connection in a row; then the others are served.
const READS_PER_ROUND: u32 = 32;
/// Batches of datagrams of one connection in a row.
const BATCHES_PER_ROUND: u32 = 16;
/// Connections served before due ops are looked for again: 16 exchanges are some 60 µs.
const EVENTS_BETWEEN_TIMERS: usize = 16;
/// A worker looks at its stop flag at least this often.
const STOP_CHECK: Nanos = Nanos::from_millis(20);

impl<'a> WorkerContext<'a> {
    /// Runs the worker to the end of the point. `make` is called once per client, and once more
    /// for the script of a shared schedule (as client 0, so that the work does not depend on the
    /// number of workers). Of clients that share a session, that of the first is used.
    pub fn drive<S, C>(mut self, make: impl FnMut(ClientContext) -> (S, C))
    where
        S: Session,
        C: Script<Op = S::Op>,
    {
        // A simulation takes part for as long as its owner keeps it; the context keeps none.
        let driver = std::mem::replace(&mut self.driver, WorkerDriver::Taken(PhantomData));
        let fresh = std::mem::replace(&mut self.fresh, FreshTimes::on_the_spot(0));
        match driver {
            WorkerDriver::Epoll(driver) => Worker::new(&self, *driver, fresh, make).run(),
            #[cfg(feature = "simulation")]
            WorkerDriver::Simulated(driver) => Worker::new(&self, driver, fresh, make).run(),
            WorkerDriver::Taken(_) => {
                unreachable!("a worker runs once: `drive` takes its context by value")
            }
        }
    }
}

/// One loop with everything it owns.
struct Worker<'a, S, C, D> {
    ops: Ops<'a, S, C, D>,
    waiting: Waiting,
    /// Where that matters to `waiting`.
    others: Option<Others>,
    phases: Phases,
    stop: &'a AtomicBool,
    buffer: Vec<u8>,
    datagrams: Datagrams,
    /// Something was ready in the last round.
    served: bool,
    /// The last round polled and found nothing to do, and began then.
    idle_since: Option<Nanos>,
}

impl<'a, S, C, D> Worker<'a, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    fn new(
        context: &WorkerContext<'a>,
        driver: D,
        fresh: FreshTimes,
        make: impl FnMut(ClientContext) -> (S, C),
    ) -> Self {
        let (clients, schedules) = create_clients(context, make);
        let recording = Recording::new(context, fresh, clients.numbers());
        let sending = if S::BATCH_SENDS { Sending::Batched } else { Sending::AtOnce };
        let connections = Connections::new(driver, sending);
        let due_by = match context.assignment.load {
            Load::Open { .. } if !context.assignment.load.is_sessions() => DueBy::Clock,
            Load::Open { .. } | Load::Closed { .. } => DueBy::Reply,
        };
        Self {
            ops: Ops::new(connections, clients, schedules, recording, due_by),
            waiting: Waiting::new(context.assignment),
            others: None,
            phases: context.assignment.phases,
            stop: context.stop,
            buffer: vec![0; READ_BUFFER_BYTES],
            datagrams: Datagrams::default(),
            served: false,
            idle_since: None,
        }
    }

    /// Runs to the end of the point, reports the totals and lets the sessions log off.
    fn run(mut self) {
        self.ops.connections().begin();
        self.ops.recording().begin();
        if self.waiting.watches_interruptions() {
            self.others = Some(Others::from_run_delay(RunDelay::of_this_thread()));
        }
        loop {
            let now = self.begin_round();
            self.ops.roll_intervals(now);
            // Before the end is looked at: what came due until now is counted, sent or not.
            let acted = self.ops.wake_due(now);
            if self.is_finished(now) {
                break;
            }
            self.wait(now, acted);
            self.serve_ready();
            self.report_broken();
            self.ops.connections().links().end_round();
        }
        let now = self.ops.connections().now();
        let (connections, clients) = self.ops.finish(now);
        LogOff::new(connections, clients, self.buffer).run(self.stop);
    }

    /// The round's time. Where no op is due by the clock, that of the last thing done will do.
    fn begin_round(&mut self) -> Nanos {
        if self.served && !self.ops.has_timers() {
            return self.ops.connections().last_now();
        }
        let now = self.ops.connections().now();
        if let Some(since) = self.idle_since.take() {
            let took = now.saturating_sub(since);
            self.ops.recording().polled_empty(took);
            if let Some(others) = &mut self.others {
                self.waiting.polled_empty(others.preempted_time(took), now);
            }
        }
        now
    }

    fn is_finished(&self, now: Nanos) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        if self.ops.are_all_done() {
            return true;
        }
        let load_end = self.phases.load_end();
        now >= load_end && (self.ops.are_settled() || now >= load_end + self.phases.drain_ns)
    }

    /// Waits as long as `waiting` decides. `acted`: something was done in this round, begun at
    /// `now`.
    fn wait(&mut self, now: Nanos, acted: bool) {
        if acted {
            self.waiting.acted(now);
        }
        let in_flight = self.ops.in_flight();
        let wait = self.waiting.next(&Outlook {
            now,
            timer: self.ops.next_timer(),
            look_up: self.ops.recording().boundary().min(now + STOP_CHECK),
            in_flight,
            more: self.ops.connections().has_more(),
            // A closed load of one op per client would be limited by the grid; clients that keep
            // many ops in flight have the next ones in progress meanwhile.
            gains: self.ops.has_timers() || (S::BATCH_SENDS && in_flight),
        });
        let waited = self.ops.connections().wait(wait, acted);
        self.waiting.waited(wait, waited.from, waited.to, waited.ready);
        self.served = waited.ready > 0;
        if !matches!(wait, Wait::Poll | Wait::Yield) {
            self.ops.recording().slept(waited.to.saturating_sub(waited.from));
            if let Some(others) = &mut self.others {
                others.forget();
            }
        } else if !self.served && !acted {
            self.idle_since = Some(now);
        }
    }

    /// Handles what the wait reported, and ops that come due meanwhile.
    fn serve_ready(&mut self) {
        let mut served = 0;
        while let Some(event) = self.ops.connections().next_ready() {
            self.serve(event);
            served += 1;
            if served % EVENTS_BETWEEN_TIMERS == 0 && self.ops.has_timers() {
                let now = self.ops.connections().now();
                self.ops.wake_due(now);
            }
        }
    }

    fn serve(&mut self, event: Ready) {
        let Some((link, owner, kind)) = self.ops.connections().links().find(event.slot) else {
            return;
        };
        if event.writable {
            match self.ops.connections().links().writable(link) {
                Ok(true) => {
                    let now = self.ops.connections().now();
                    self.ops.call(owner, now, |session, port| {
                        session.on_connected(link, now, port);
                    });
                }
                Ok(false) => {}
                Err(error) => self.fail(link, owner, error),
            }
        }
        if event.readable || event.hung_up {
            let read = match kind {
                LinkKind::Stream => self.read(link, owner, event),
                LinkKind::Datagram => self.read_datagrams(link, owner, event),
            };
            if let Err(error) = read {
                self.fail(link, owner, error);
            }
        }
        self.ops.issue_due();
    }

    /// Reads until a read is short, which re-arms the edge.
    fn read(&mut self, link: Link, owner: u32, event: Ready) -> Result<(), LinkError> {
        for _ in 0..READS_PER_ROUND {
            let limit = self.ops.read_limit(owner, link);
            let Some(read) = self.ops.connections().read(link, &mut self.buffer, limit)? else {
                return Ok(());
            };
            let Read { brought, short, .. } = read;
            self.deliver_read(link, owner, read);
            let done = match brought {
                Brought::Bytes(_) => short,
                // The discarded body was the end of a reply: nothing can follow it.
                Brought::Dropped(_) => short || self.ops.is_idle(owner),
                Brought::End => return Ok(()),
            };
            if done && !event.hung_up {
                return Ok(());
            }
            if S::BATCH_SENDS {
                // A full read means that many replies are arriving: the ops that they cause are
                // sent before the next read.
                self.ops.issue_due();
            }
        }
        self.ops.connections().come_back_to(link, event);
        Ok(())
    }

    /// Delivers what a read brought to the session.
    fn deliver_read(&mut self, link: Link, owner: u32, read: Read) {
        let Read { brought, at, .. } = read;
        let buffer = &self.buffer;
        self.ops.call(owner, at, |session, port| match brought {
            Brought::Bytes(length) => session.on_bytes(link, &buffer[..length], at, port),
            Brought::Dropped(length) => session.on_discarded(link, length, at, port),
            Brought::End => session.on_eof(link, at, port),
        });
        self.ops.connections().end_read();
    }

    /// Reads until there is nothing left, which re-arms the edge.
    fn read_datagrams(&mut self, link: Link, owner: u32, event: Ready) -> Result<(), LinkError> {
        for _ in 0..BATCHES_PER_ROUND {
            if !self.ops.connections().is_open(link) {
                return Ok(());
            }
            let (now, read) = self.ops.connections().read_datagrams(link, &mut self.datagrams);
            read?;
            for (bytes, stamp) in self.datagrams.received() {
                if !self.ops.connections().take_datagram(link, bytes.len(), stamp, now) {
                    break;
                }
                self.ops.call(owner, now, |session, port| {
                    session.on_bytes(link, bytes, now, port);
                });
                self.ops.connections().end_read();
            }
            if !self.datagrams.is_full() {
                self.ops.connections().note_empty(link, now);
            }
            if self.datagrams.is_empty() || !self.datagrams.is_full() && !event.hung_up {
                return Ok(());
            }
        }
        self.ops.connections().come_back_to(link, event);
        Ok(())
    }

    fn fail(&mut self, link: Link, owner: u32, error: LinkError) {
        self.ops.connections().release(link);
        let now = self.ops.connections().now();
        self.ops.call(owner, now, |session, port| {
            session.on_failed(link, error, now, port);
        });
        self.ops.connections().end_read();
    }

    /// Links that broke inside a session's own call.
    fn report_broken(&mut self) {
        for _ in 0..self.ops.connections().links().broken() {
            if let Some((link, owner, error)) = self.ops.connections().links().take_broken() {
                self.read_last(link, owner);
                // Unless the session has closed it meanwhile.
                if self.ops.connections().links().get(link).is_some() {
                    self.fail(link, owner, error);
                }
                self.ops.issue_due();
            }
        }
    }

    /// A stream that takes no more bytes may still contain what the peer sent before it reset it:
    /// the reply to a request that it did not read to the end.
    fn read_last(&mut self, link: Link, owner: u32) {
        let entry = self.ops.connections().links().find(link.slot());
        if !entry.is_some_and(|(_, _, kind)| kind == LinkKind::Stream) {
            return;
        }
        for _ in 0..READS_PER_ROUND {
            let limit = self.ops.read_limit(owner, link);
            let read = self.ops.connections().read_broken(link, &mut self.buffer, limit);
            match read {
                // The reason of the end is already known, and better.
                Ok(None | Some(Read { brought: Brought::End, .. })) | Err(_) => {
                    return self.ops.connections().end_read();
                }
                Ok(Some(read)) => self.deliver_read(link, owner, read),
            }
        }
    }
}

/// Clients and schedules of one worker: client i belongs to worker i mod n.
fn create_clients<S, C: Script>(
    context: &WorkerContext<'_>,
    mut make: impl FnMut(ClientContext) -> (S, C),
) -> (Clients<S>, Schedules<C>) {
    let assignment = context.assignment;
    let mut clients = Clients::new();
    let mut schedules = Schedules::new(context);
    let is_shared = matches!(assignment.load, Load::Open { arrivals: Sharing::Shared, .. });
    let shared = is_shared.then(|| {
        let (_, script) = make(workload::client_context(assignment, 0));
        schedules.add(Schedule::new(script, context, 0))
    });
    for numbers in sessions_of(context) {
        for (number, index_in_session) in numbers.into_iter().zip(0..) {
            let client = workload::client_context(assignment, number);
            let (session, script) = make(client);
            if index_in_session == 0 {
                clients.add_session(session, workload::route(assignment, &client));
            }
            let schedule =
                shared.unwrap_or_else(|| schedules.add(Schedule::new(script, context, number)));
            schedules.add_client(schedule);
            clients.add(number, client.endpoint);
        }
    }
    (clients, schedules)
}

/// The clients of one worker by session: those of one endpoint share a session, as many as the
/// workload lets.
fn sessions_of(context: &WorkerContext<'_>) -> Vec<Vec<u32>> {
    let WorkerContext { assignment, worker, clients_per_session, .. } = *context;
    let all = worker..assignment.load.clients();
    let mut numbers: Vec<u32> = all.step_by(assignment.workers.max(1) as usize).collect();
    if clients_per_session <= 1 {
        return numbers.into_iter().map(|number| vec![number]).collect();
    }
    numbers.sort_by_key(|number| assignment.endpoint_of(*number));
    let of_endpoint =
        numbers.chunk_by(|a, b| assignment.endpoint_of(*a) == assignment.endpoint_of(*b));
    of_endpoint
        .flat_map(|own| own.chunks(clients_per_session as usize))
        .map(<[u32]>::to_vec)
        .collect()
}
