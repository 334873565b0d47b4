//! The loop itself, round by round: what is due, what is ready, what follows from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use plimsoll_model::assignment::Pacing;
use plimsoll_model::event::{AgentEvent, Phase, WorkerHealth};
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::lane::{Due, Pace};
use super::links::{Port, Stage};
use super::{Client, Worker};
use crate::clock;
use crate::driver::{Driver, Ready, Received, Wait};
use crate::recorder::Flight;
use crate::seam::{Link, LinkError, Script, Session, Step, Ticket, Turn};

/// A worker looks at its stop flag at least this often.
const STOP_CHECK: Nanos = Nanos::from_millis(20);
/// Grid of the coalescing pacer: at 20,000 ops/s a wakeup (38 µs here) is shared by eight ops, and
/// an op waits 0.2 ms on average, well inside the 1 ms that send lag may have.
const COALESCE_GRID: Nanos = Nanos::from_micros(400);
/// A closed client whose connection failed waits this long, so that a dead server is not flooded.
const RECONNECT_PAUSE: Nanos = Nanos::from_millis(10);
/// Reads of one connection in a row; then the others have their turn.
const READS_PER_TURN: u32 = 32;

/// Who wakes when. At most one entry per lane and few per client.
#[derive(Default)]
pub(super) struct Timers {
    lanes: BinaryHeap<Reverse<(Nanos, u32)>>,
    clients: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Timers {
    fn next(&self) -> Option<Nanos> {
        let first = |heap: &BinaryHeap<Reverse<(Nanos, u32)>>| heap.peek().map(|e| e.0.0);
        match (first(&self.lanes), first(&self.clients)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Bookkeeping of the rounds.
#[derive(Default)]
pub(super) struct Round {
    ready: Vec<Ready>,
    /// Connections with more to read than their turn allowed.
    unread: Vec<Ready>,
    interval_cpu: Nanos,
    empty_poll_ns: u64,
    wakeups: u64,
    bytes_received: u64,
    /// Wire bytes and connects when the window began.
    at_window_start: (u64, u64, u64),
}

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Runs to the end of the point and reports the totals.
    pub(super) fn run(mut self) {
        self.round.interval_cpu = clock::thread_cpu();
        for lane in 0..self.lanes.len() {
            if let Some(at) = self.lanes[lane].first_wake() {
                self.timers.lanes.push(Reverse((at, lane as u32)));
            }
        }
        loop {
            let now = self.driver.now();
            self.stop_check_at = now + STOP_CHECK;
            self.roll_intervals(now);
            if self.is_over(now) {
                break;
            }
            let acted = self.fire_timers(now);
            let wait = self.next_wait();
            let mut ready = std::mem::take(&mut self.round.ready);
            ready.append(&mut self.round.unread);
            self.driver.wait(wait, &mut ready);
            self.round.wakeups += u64::from(wait != Wait::Poll);
            let idle = ready.is_empty() && !acted;
            for event in ready.drain(..) {
                self.serve(event);
            }
            self.round.ready = ready;
            self.report_broken();
            self.links.end_round();
            if idle && self.spins() {
                self.round.empty_poll_ns += self.driver.now().saturating_sub(now).0;
            }
        }
        self.finish();
    }

    fn is_over(&self, now: Nanos) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let window_end = self.assignment.phases.window_end();
        now >= window_end
            && ((self.in_flight == 0 && self.backlog_ops == 0)
                || now >= window_end + self.assignment.phases.drain_ns)
    }

    /// Wakes every lane and client whose time has come. True when there was one.
    fn fire_timers(&mut self, now: Nanos) -> bool {
        let mut acted = false;
        while let Some(Reverse((at, lane))) = self.timers.lanes.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.lanes.pop();
            self.wake_lane(lane, at, now);
            self.run_lanes();
        }
        while let Some(Reverse((at, client))) = self.timers.clients.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.clients.pop();
            let state = &mut self.clients[client as usize];
            if state.deadline == at {
                state.deadline = Nanos::MAX;
            }
            if state.session.next_deadline().is_some_and(|deadline| deadline <= now) {
                let stamp = self.driver.now();
                self.call(client, stamp, |session, port| session.on_timer(stamp, port));
            } else {
                self.note_deadline(client);
            }
            self.run_lanes();
        }
        acted
    }

    fn wake_lane(&mut self, lane: u32, at: Nanos, now: Nanos) {
        let window_end = self.assignment.phases.window_end();
        let state = &mut self.lanes[lane as usize];
        let Pace::Open(open) = &mut state.pace else {
            self.runnable.push((lane, at));
            return;
        };
        while let Some(due) = open.next.filter(|due| due.at <= now && due.at < window_end) {
            self.recorder.came_due(due.at);
            if self.backlog_ops < self.backlog_ops_max {
                open.backlog.push_back(due);
                self.backlog_ops += 1;
            } else {
                self.recorder.not_sent(due.at);
            }
            open.advance();
        }
        if let Some(due) = open.next.filter(|due| due.at < window_end) {
            self.timers.lanes.push(Reverse((due.at, lane)));
        }
        self.runnable.push((lane, at));
    }

    /// Lets every runnable lane do what it can, until none can.
    fn run_lanes(&mut self) {
        while let Some((lane, at)) = self.runnable.pop() {
            match self.lanes[lane as usize].pace {
                Pace::Open(_) => self.pump(lane),
                Pace::Closed(_) => self.act(lane, at),
            }
        }
    }

    /// Open: ops that wait go to clients that are free.
    fn pump(&mut self, lane: u32) {
        loop {
            let state = &mut self.lanes[lane as usize];
            let Pace::Open(open) = &mut state.pace else { return };
            if open.backlog.is_empty() {
                return;
            }
            let Some(client) = state.free.pop_front() else { return };
            let Some(due) = open.backlog.pop_front() else { return };
            self.backlog_ops -= 1;
            self.clients[client as usize].listed_free = false;
            let now = self.driver.now();
            match state.script.next(Turn { index: due.index, now }) {
                Step::Issue(op) => self.issue(client, op, due, now),
                // Nothing to send for this arrival: the client stays free.
                Step::Think | Step::WaitForOutcome | Step::SleepUntil(_) | Step::Done => {
                    self.list_free(client);
                }
            }
        }
    }

    /// Closed: the client of this lane acts; `at` is when it should.
    fn act(&mut self, lane: u32, at: Nanos) {
        if at >= self.assignment.phases.window_end() {
            return;
        }
        loop {
            let now = self.driver.now();
            let state = &mut self.lanes[lane as usize];
            let Pace::Closed(pace) = &mut state.pace else { return };
            let Some(client) = state.free.front().copied().filter(|_| !pace.finished) else {
                return;
            };
            match state.script.next(Turn { index: pace.issued, now }) {
                Step::Issue(op) => {
                    let due = Due { index: pace.issued, at };
                    pace.issued += 1;
                    pace.piece_start.get_or_insert(at);
                    state.free.pop_front();
                    self.clients[client as usize].listed_free = false;
                    self.recorder.came_due(at);
                    self.issue(client, op, due, now);
                    if C::EVERY_OP_IS_A_PIECE {
                        return;
                    }
                }
                Step::Think => return self.think(lane, at),
                Step::SleepUntil(until) => {
                    return self.timers.lanes.push(Reverse((until.max(now), lane)));
                }
                Step::WaitForOutcome => return,
                Step::Done => {
                    pace.finished = true;
                    return;
                }
            }
        }
    }

    /// A piece of work is over at `now`; the next begins after a pause.
    fn think(&mut self, lane: u32, now: Nanos) {
        let Pace::Closed(pace) = &mut self.lanes[lane as usize].pace else { return };
        if let Some(started) = pace.piece_start.take() {
            self.recorder.piece_done(started, pace.think, now);
        }
        pace.think = pace.thinker.draw();
        if pace.think == Nanos::ZERO {
            self.runnable.push((lane, now));
        } else {
            self.timers.lanes.push(Reverse((now + pace.think, lane)));
        }
    }

    fn issue(&mut self, client: u32, op: S::Op, due: Due, now: Nanos) {
        let state = &mut self.clients[client as usize];
        let ticket = free_ticket(state);
        let kind = state.session.kind(&op);
        state.flights[ticket.0 as usize] = Some(Flight { kind, due: due.at, sent: now });
        state.in_flight += 1;
        self.in_flight += 1;
        self.call(client, now, |session, port| session.issue(ticket, op, now, port));
        self.list_free(client);
    }

    /// Puts the client into its lane's list when it has room and is not there yet.
    fn list_free(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if !state.listed_free && state.session.has_room() {
            state.listed_free = true;
            self.lanes[state.lane as usize].free.push_back(client);
        }
    }

    /// Calls a session and settles what it produced.
    fn call(&mut self, client: u32, now: Nanos, f: impl FnOnce(&mut S, &mut Port<'_, D>)) {
        self.produced.wants_detail = self.recorder.wants_sample();
        let state = &mut self.clients[client as usize];
        let mut port = Port {
            driver: &mut self.driver,
            links: &mut self.links,
            produced: &mut self.produced,
            client,
            endpoint: self.assignment.endpoints[state.endpoint].address,
            source: state.source,
        };
        f(&mut state.session, &mut port);
        let mut next = 0;
        while let Some((ticket, outcome)) = self.produced.completions.get(next).copied() {
            next += 1;
            self.settle(client, ticket, &outcome, now);
        }
        self.produced.completions.clear();
        self.note_deadline(client);
    }

    /// An op ended at `now`.
    fn settle(&mut self, client: u32, ticket: Ticket, outcome: &Outcome, now: Nanos) {
        let state = &mut self.clients[client as usize];
        let Some(flight) = state.flights.get_mut(ticket.0 as usize).and_then(Option::take) else {
            debug_assert!(false, "a session completed a ticket it does not hold");
            return;
        };
        state.in_flight -= 1;
        self.in_flight -= 1;
        let (lane, endpoint) = (state.lane, state.endpoint);
        if now >= self.recorder.boundary() {
            self.roll_intervals(now);
        }
        self.recorder.record(flight, outcome, endpoint, now);
        let mut pause = None;
        if let OpStatus::Failed(class) = outcome.status {
            self.sample(class, outcome.kind, now);
            let unreachable = matches!(class, ErrorClass::Transport | ErrorClass::PortsExhausted);
            pause = unreachable.then_some(RECONNECT_PAUSE);
        }
        self.produced.detail = None;
        self.list_free(client);
        let state = &mut self.lanes[lane as usize];
        state.script.on_outcome(outcome, now);
        match &mut state.pace {
            Pace::Open(_) => self.runnable.push((lane, now)),
            Pace::Closed(pace) => match pause {
                Some(pause) => {
                    pace.piece_start = None;
                    self.timers.lanes.push(Reverse((now + pause, lane)));
                }
                None if C::EVERY_OP_IS_A_PIECE => self.think(lane, now),
                None => self.runnable.push((lane, now)),
            },
        }
    }

    fn sample(&mut self, class: ErrorClass, kind: OpKind, now: Nanos) {
        if !self.recorder.take_sample(class) {
            return;
        }
        let sample = ErrorSample {
            op: self.recorder.op_name(kind).to_owned(),
            class: class.to_string(),
            detail: self.produced.detail.take().unwrap_or_default(),
            at_ns: now.0,
        };
        self.tell(AgentEvent::ErrorSample(sample));
    }

    /// Registers the session's deadline when it is earlier than the one in the heap. A later one
    /// is found when the earlier entry fires, so a timeout per op costs no heap entry per op.
    fn note_deadline(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if let Some(at) = state.session.next_deadline().filter(|at| *at < state.deadline) {
            state.deadline = at;
            self.timers.clients.push(Reverse((at, client)));
        }
    }

    fn next_wait(&mut self) -> Wait {
        if self.spins() || !self.links.broken.is_empty() || !self.round.unread.is_empty() {
            return Wait::Poll;
        }
        let now_cap = self.recorder.boundary().min(self.stop_check_at);
        let timer = self.timers.next().unwrap_or(Nanos::MAX).min(now_cap);
        if self.assignment.pacing != Pacing::Coalesce || self.timers.lanes.is_empty() {
            return Wait::Until(timer);
        }
        // Replies under way are looked at on the grid too; without any, the next timer decides.
        let earliest = if self.in_flight > 0 { self.driver.now() } else { timer };
        let grid = COALESCE_GRID.0;
        Wait::SleepUntil(Nanos((earliest.0 / grid + 1) * grid).min(now_cap))
    }

    fn serve(&mut self, event: Ready) {
        let Some(link) = self.links.link(event.slot) else { return };
        let Some(state) = self.links.get(link) else { return };
        let client = state.client;
        match state.stage {
            Stage::Connecting if event.writable => match self.driver.connected(event.slot) {
                Ok(()) => {
                    self.links.opened(link, &mut self.driver);
                    let now = self.driver.now();
                    self.call(client, now, |session, port| session.on_connected(link, now, port));
                }
                Err(error) => self.fail(link, client, error),
            },
            Stage::Open if event.writable => self.links.flush(link, &mut self.driver),
            _ => {}
        }
        if event.readable || event.hung_up {
            self.read(link, client, event);
        }
        self.run_lanes();
    }

    /// Reads until less comes than was asked for, which re-arms the edge.
    fn read(&mut self, link: Link, client: u32, event: Ready) {
        for _ in 0..READS_PER_TURN {
            let Some(state) = self.links.get(link).filter(|s| s.stage == Stage::Open) else {
                return;
            };
            let discards = state.discard_left > 0;
            let (asked, result) = if discards {
                let asked = usize::try_from(state.discard_left).unwrap_or(usize::MAX);
                (asked, self.driver.discard(event.slot, asked))
            } else {
                let limit = self.clients[client as usize].session.read_limit(link);
                let asked = limit.clamp(1, self.buffer.len());
                (asked, self.driver.recv(event.slot, &mut self.buffer[..asked]))
            };
            let now = self.driver.now();
            match result {
                Ok(Received::Bytes(length)) => {
                    self.round.bytes_received += length as u64;
                    if discards {
                        self.dropped(link, client, length as u64, now);
                    } else {
                        self.received(link, client, length, now);
                    }
                    let quiet = self.clients[client as usize].in_flight == 0;
                    if (length < asked || quiet) && !event.hung_up {
                        return;
                    }
                }
                Ok(Received::Eof) => {
                    return self
                        .call(client, now, |session, port| session.on_eof(link, now, port));
                }
                Ok(Received::Nothing) => return,
                Err(error) => return self.fail(link, client, error),
            }
        }
        self.round.unread.push(event);
    }

    fn received(&mut self, link: Link, client: u32, length: usize, now: Nanos) {
        let buffer = std::mem::take(&mut self.buffer);
        self.call(client, now, |session, port| {
            session.on_bytes(link, &buffer[..length], now, port);
        });
        self.buffer = buffer;
    }

    fn dropped(&mut self, link: Link, client: u32, length: u64, now: Nanos) {
        if let Some(state) = self.links.get(link) {
            state.discard_left -= length.min(state.discard_left);
        }
        self.call(client, now, |session, port| session.on_discarded(link, length, now, port));
    }

    fn fail(&mut self, link: Link, client: u32, error: LinkError) {
        self.links.release(link, &mut self.driver);
        let now = self.driver.now();
        self.call(client, now, |session, port| session.on_failed(link, error, now, port));
    }

    /// Links that broke inside a session's own call.
    fn report_broken(&mut self) {
        let mut budget = self.links.broken.len();
        while budget > 0 {
            budget -= 1;
            let (link, error) = self.links.broken.swap_remove(0);
            if let Some(client) = self.links.get(link).map(|state| state.client) {
                self.fail(link, client, error);
                self.run_lanes();
            }
        }
    }

    /// Ends every interval whose border `now` has reached.
    fn roll_intervals(&mut self, now: Nanos) {
        while now >= self.recorder.boundary() {
            let end = self.recorder.boundary();
            self.roll(end);
        }
    }

    fn roll(&mut self, end: Nanos) {
        for client in &mut self.clients {
            let counted = client.session.take_counters();
            self.counters.retransmissions += counted.retransmissions;
            self.counters.verified += counted.verified;
        }
        let before = self.recorder.phase();
        let mut interval = self.recorder.roll(end);
        let cpu = clock::thread_cpu();
        interval.health = WorkerHealth {
            cpu_ns: cpu.saturating_sub(self.round.interval_cpu).0,
            empty_poll_ns: std::mem::take(&mut self.round.empty_poll_ns),
            wakeups: std::mem::take(&mut self.round.wakeups),
            backlog_ops: self.backlog_ops,
            ..interval.health
        };
        self.round.interval_cpu = cpu;
        self.tell(AgentEvent::Interval(Box::new(interval)));
        if before != self.recorder.phase() {
            self.cross_border(before);
        }
    }

    /// The window began or ended: counters that run all the time are read.
    fn cross_border(&mut self, left: Phase) {
        let now = (self.round.bytes_received, self.links.bytes_sent, self.links.connects);
        let counters = std::mem::take(&mut self.counters);
        if left == Phase::Measure {
            let before = self.round.at_window_start;
            let totals = self.recorder.totals_mut();
            totals.wire_bytes_in = now.0 - before.0;
            totals.wire_bytes_out = now.1 - before.1;
            totals.connects = now.2 - before.2;
            totals.retransmissions = counters.retransmissions;
            totals.verified = counters.verified;
        }
        self.round.at_window_start = now;
    }

    fn finish(mut self) {
        let now = self.driver.now();
        self.roll_intervals(now);
        for lane in &self.lanes {
            if let Pace::Open(open) = &lane.pace {
                open.backlog.iter().for_each(|due| self.recorder.not_sent(due.at));
            }
        }
        for client in &self.clients {
            for flight in client.flights.iter().flatten() {
                self.recorder.unfinished(*flight, client.endpoint, now);
            }
        }
        let left = self.recorder.phase();
        if now > Nanos::ZERO {
            self.roll(now);
        }
        if left == Phase::Measure {
            self.cross_border(left);
        }
        let participating = self.clients.len() as u32;
        self.recorder.totals_mut().clients_participating = participating;
        let events = self.events;
        let totals = self.recorder.into_totals();
        // A listener that has gone away wants nothing more.
        let _ = events.send(AgentEvent::WorkerFinished(Box::new(totals)));
    }

    fn tell(&self, event: AgentEvent) {
        let _ = self.events.send(event);
    }
}

fn free_ticket<S>(client: &mut Client<S>) -> Ticket {
    let index = client.flights.iter().position(Option::is_none).unwrap_or_else(|| {
        client.flights.push(None);
        client.flights.len() - 1
    });
    Ticket(index as u32)
}
