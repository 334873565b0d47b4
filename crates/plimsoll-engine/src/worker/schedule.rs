//! When clients act: each schedule is a script, the instants at which it acts, and the clients that
//! serve it. What is due goes to a client that is free, or waits; pieces of work are thought about.
//!
//! A client of a per-client or closed load has a schedule of its own; a shared schedule is one
//! served by a pool.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::units::{Nanos, OpsPerSec};

use super::free_clients::FreeClients;
use crate::pacer::{Arrivals, ArrivalsShare, Due, Thinker, start_delay};
use crate::recorder::Recorder;
use crate::seam::{Script, Step, Turn};

/// A closed client whose connection failed waits this long, so that a dead server is not flooded.
const RECONNECT_PAUSE: Nanos = Nanos::from_millis(10);

/// All schedules of one worker.
pub(super) struct Schedules<C> {
    schedules: Vec<Schedule<C>>,
    free: FreeClients,
    /// Who wakes when. At most one entry per schedule.
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Those that may do something at once, and when it was due.
    runnable: Vec<(u32, Nanos)>,
    /// Of these the one whose op was taken last: it may have more.
    acting: Option<(u32, Nanos)>,
    backlog_ops: u64,
    backlog_ops_max: u64,
    load_end: Nanos,
}

/// An op that may go out.
pub(super) struct Outgoing<Op> {
    pub(super) client: u32,
    pub(super) op: Op,
    pub(super) due: Nanos,
    pub(super) now: Nanos,
}

/// What came of an op that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Another op follows from it.
    GoesOn,
    /// It failed before or because there was no connection: at once, with nothing to wait for.
    NoConnection,
    Other,
}

/// A script and its pace.
pub(super) struct Schedule<C> {
    script: C,
    pace: Pace,
    /// Clients that serve it and have not left.
    clients: u32,
    /// Ops under way, of all its clients.
    in_flight: u32,
}

/// What makes a schedule act.
enum Pace {
    Open(OpenPace),
    Closed(ClosedPace),
}

/// A schedule that does not wait for replies.
struct OpenPace {
    arrivals: ArrivalsShare,
    /// Due, and waiting for a free client.
    backlog: VecDeque<Due>,
    /// The script waits for an op to end before it takes the first of the backlog.
    waits: bool,
}

/// A client that waits for its replies.
struct ClosedPace {
    thinker: Thinker,
    start: Nanos,
    issued: u64,
    /// The piece of work under way began here.
    piece_start: Option<Nanos>,
    /// Pause before that piece.
    think: Nanos,
    finished: bool,
    /// A timer will wake the schedule.
    asleep: bool,
}

impl<C: Script> Schedules<C> {
    pub(super) fn new(assignment: &Assignment) -> Self {
        let backlog_ops_max = match assignment.load {
            Load::Open { backlog_ops_max, .. } => {
                u64::from(backlog_ops_max.div_ceil(assignment.workers.max(1)))
            }
            Load::Closed { .. } => 0,
        };
        Self {
            schedules: Vec::new(),
            free: FreeClients::default(),
            timers: BinaryHeap::new(),
            runnable: Vec::new(),
            acting: None,
            backlog_ops: 0,
            backlog_ops_max,
            load_end: assignment.phases.load_end(),
        }
    }

    /// One more schedule; its number.
    pub(super) fn add(&mut self, schedule: Schedule<C>) -> u32 {
        let number = self.schedules.len() as u32;
        if let Some(at) = schedule.first_wake() {
            self.timers.push(Reverse((at, number)));
        }
        self.schedules.push(schedule);
        self.free.add_schedule();
        number
    }

    /// One more client, free, that serves this schedule.
    pub(super) fn add_client(&mut self, schedule: u32) {
        self.free.add_client(schedule);
        self.schedules[schedule as usize].clients += 1;
    }

    /// The script that this client follows.
    pub(super) fn script(&mut self, client: u32) -> &mut C {
        &mut self.of(client).script
    }

    /// When the next schedule wakes.
    pub(super) fn next_wake(&self) -> Option<Nanos> {
        self.timers.peek().map(|first| first.0.0)
    }

    /// Ops that wait for a free client.
    pub(super) const fn backlog_ops(&self) -> u64 {
        self.backlog_ops
    }

    /// No more ops go out.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        now >= self.load_end
    }

    /// Wakes the first schedule whose time has come, if there is one.
    pub(super) fn wake_next(&mut self, now: Nanos, recorder: &mut Recorder) -> bool {
        let first = self.timers.peek().filter(|first| first.0.0 <= now);
        let Some(&Reverse((at, schedule))) = first else { return false };
        self.timers.pop();
        self.runnable.push((schedule, at));
        let state = &mut self.schedules[schedule as usize];
        let open = match &mut state.pace {
            Pace::Open(open) => open,
            Pace::Closed(closed) => {
                closed.asleep = false;
                return true;
            }
        };
        let free = self.free.count(schedule);
        let load_end = self.load_end;
        while let Some(due) = open.arrivals.take_if(|at| at <= now && at < load_end) {
            recorder.came_due(due.at);
            let has_place = open.backlog.len() < free || self.backlog_ops < self.backlog_ops_max;
            if has_place && state.clients > 0 {
                open.backlog.push_back(due);
                self.backlog_ops += 1;
            } else {
                recorder.not_sent(due.at);
            }
        }
        if let Some(at) = open.arrivals.next_at().filter(|at| *at < self.load_end) {
            self.timers.push(Reverse((at, schedule)));
        }
        true
    }

    /// The next op that can go out; `None` when no runnable schedule can do anything.
    pub(super) fn next_op(
        &mut self,
        recorder: &mut Recorder,
        has_room: impl Fn(u32) -> bool,
        mut now: impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        loop {
            let (schedule, at) = self.acting.take().or_else(|| self.runnable.pop())?;
            let is_open = matches!(self.schedules[schedule as usize].pace, Pace::Open(_));
            let next = if is_open {
                self.next_of_backlog(schedule, recorder, &has_room, &mut now)
            } else {
                self.next_of_client(schedule, at, recorder, &has_room, &mut now)
            };
            if next.is_some() {
                if is_open || !C::EVERY_OP_IS_A_PIECE {
                    self.acting = Some((schedule, at));
                }
                return next;
            }
        }
    }

    /// Open: an op that waits goes to a client that is free.
    fn next_of_backlog(
        &mut self,
        schedule: u32,
        recorder: &mut Recorder,
        has_room: &impl Fn(u32) -> bool,
        now: &mut impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        loop {
            let state = &mut self.schedules[schedule as usize];
            let Pace::Open(open) = &mut state.pace else { return None };
            if open.backlog.is_empty() || open.waits {
                return None;
            }
            let client = self.free.take(schedule)?;
            if !has_room(client) {
                // It had when it was listed; a follow-on has taken it since.
                continue;
            }
            let due = open.backlog.pop_front()?;
            self.backlog_ops -= 1;
            let now = now();
            match state.script.next(Turn { index: due.index, now }) {
                Step::Issue(op) => return Some(Outgoing { client, op, due: due.at, now }),
                Step::WaitForOutcome if state.in_flight > 0 => {
                    open.waits = true;
                    open.backlog.push_front(due);
                    self.backlog_ops += 1;
                    self.free.list(client);
                    return None;
                }
                // The script has nothing for this arrival: the client stays free.
                Step::Think | Step::WaitForOutcome | Step::SleepUntil(_) | Step::Done => {
                    recorder.not_sent(due.at);
                    self.free.list(client);
                }
            }
        }
    }

    /// Closed: the client of this schedule acts; `at` is when it should.
    fn next_of_client(
        &mut self,
        schedule: u32,
        at: Nanos,
        recorder: &mut Recorder,
        has_room: &impl Fn(u32) -> bool,
        now: &mut impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        if at >= self.load_end {
            return None;
        }
        let now = now();
        let state = &mut self.schedules[schedule as usize];
        let Pace::Closed(pace) = &mut state.pace else { return None };
        let client = self.free.first(schedule).filter(|_| !pace.finished)?;
        if !has_room(client) {
            // It had when it was listed; a follow-on has taken it since.
            self.free.take(schedule);
            return None;
        }
        match state.script.next(Turn { index: pace.issued, now }) {
            Step::Issue(op) => {
                pace.issued += 1;
                pace.piece_start.get_or_insert(at);
                self.free.take(schedule);
                recorder.came_due(at);
                return Some(Outgoing { client, op, due: at, now });
            }
            Step::Think => self.think(schedule, at, recorder),
            Step::SleepUntil(until) => self.wake_at(schedule, until.max(now + Nanos(1))),
            Step::WaitForOutcome => {}
            Step::Done => pace.finished = true,
        }
        None
    }

    /// An op of this client goes out; since when the client was free.
    pub(super) fn op_began(&mut self, client: u32) -> Nanos {
        self.of(client).in_flight += 1;
        self.free.free_since(client)
    }

    /// An op of this client ended. [`Schedules::go_on`] follows, unless the client leaves.
    pub(super) fn op_ended(&mut self, client: u32, now: Nanos) {
        let state = self.of(client);
        state.in_flight -= 1;
        let waited = match &mut state.pace {
            Pace::Open(open) => std::mem::take(&mut open.waits),
            Pace::Closed(_) => false,
        };
        if waited || !self.free.is_listed(client) {
            self.free.became_free(client, now);
        }
    }

    /// What the schedule does now that an op of this client has ended.
    pub(super) fn go_on(&mut self, client: u32, end: End, now: Nanos, recorder: &mut Recorder) {
        let schedule = self.free.schedule_of(client);
        match (&mut self.of(client).pace, end) {
            (Pace::Open(_), _) => self.runnable.push((schedule, now)),
            (Pace::Closed(_), End::GoesOn) if C::EVERY_OP_IS_A_PIECE => {}
            (Pace::Closed(pace), End::NoConnection) => {
                // Neither the failed piece nor the pause after it is a cycle of the client.
                pace.piece_start = None;
                pace.think = Nanos::ZERO;
                self.wake_at(schedule, now + RECONNECT_PAUSE);
            }
            (Pace::Closed(_), End::Other) if C::EVERY_OP_IS_A_PIECE => {
                self.think(schedule, now, recorder);
            }
            (Pace::Closed(_), End::GoesOn | End::Other) => self.runnable.push((schedule, now)),
        }
    }

    /// Puts the client into its schedule's list when it has room and is not there yet.
    pub(super) fn list_free(&mut self, client: u32, has_room: impl FnOnce() -> bool) {
        if !self.free.is_listed(client) && has_room() {
            self.free.list(client);
        }
    }

    /// The client has room again without an op having ended.
    pub(super) fn found_room(&mut self, client: u32, now: Nanos) {
        if !self.free.is_listed(client) {
            self.free.became_free(client, now);
            self.free.list(client);
            self.runnable.push((self.free.schedule_of(client), now));
        }
    }

    /// The client is given no more.
    pub(super) fn leave(&mut self, client: u32, now: Nanos, recorder: &mut Recorder) {
        let schedule = self.free.schedule_of(client);
        self.free.remove(client);
        let state = &mut self.schedules[schedule as usize];
        state.clients -= 1;
        match &mut state.pace {
            Pace::Closed(pace) => pace.finished = true,
            Pace::Open(open) if state.clients == 0 => {
                self.backlog_ops -= open.backlog.len() as u64;
                open.backlog.drain(..).for_each(|due| recorder.not_sent(due.at));
            }
            // The rest of the pool may take what waits.
            Pace::Open(_) => self.runnable.push((schedule, now)),
        }
    }

    /// The point ends at `now`: what waits is not sent, nor what came due since the last round.
    pub(super) fn finish(&mut self, now: Nanos, recorder: &mut Recorder) {
        for schedule in &mut self.schedules {
            let Pace::Open(open) = &mut schedule.pace else { continue };
            open.backlog.iter().for_each(|due| recorder.not_sent(due.at));
            // After an early stop.
            while let Some(due) = open.arrivals.take_if(|at| at <= now) {
                recorder.came_due(due.at);
                recorder.not_sent(due.at);
            }
        }
    }

    /// A piece of work is over at `now`; the next begins after a pause.
    fn think(&mut self, schedule: u32, now: Nanos, recorder: &mut Recorder) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if let Some(started) = pace.piece_start.take() {
            recorder.piece_done(started, pace.think, now);
        }
        pace.think = pace.thinker.draw();
        if pace.think == Nanos::ZERO {
            self.runnable.push((schedule, now));
        } else {
            let at = now + pace.think;
            self.wake_at(schedule, at);
        }
    }

    /// The schedule of a closed load sleeps until `at`. One that sleeps already is not woken later.
    fn wake_at(&mut self, schedule: u32, at: Nanos) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if !pace.asleep {
            pace.asleep = true;
            self.timers.push(Reverse((at, schedule)));
        }
    }

    fn of(&mut self, client: u32) -> &mut Schedule<C> {
        &mut self.schedules[self.free.schedule_of(client) as usize]
    }
}

impl<C> Schedule<C> {
    /// The schedule of one client.
    pub(super) fn of_client(
        script: C,
        assignment: &Assignment,
        client: u32,
        ops_per_arrival: f64,
    ) -> Self {
        let pace = match &assignment.load {
            Load::Open { rate_ops_per_s, gaps, clients, .. } => {
                let rate = arrivals_per_s(*rate_ops_per_s, ops_per_arrival);
                let arrivals = Arrivals::new(rate, *gaps, assignment.seed, client, *clients);
                Pace::open(arrivals, 1, 0)
            }
            Load::Closed { think, start_delay_ns, .. } => Pace::Closed(ClosedPace {
                thinker: Thinker::new(think.clone(), assignment.seed, client),
                start: start_delay(*start_delay_ns, assignment.seed, client),
                issued: 0,
                piece_start: None,
                think: Nanos::ZERO,
                finished: false,
                // Until its start.
                asleep: true,
            }),
        };
        Self { script, pace, clients: 0, in_flight: 0 }
    }

    /// The schedule of a pool: this worker's part of it.
    pub(super) fn shared(
        script: C,
        assignment: &Assignment,
        worker: u32,
        ops_per_arrival: f64,
    ) -> Self {
        match &assignment.load {
            Load::Open { rate_ops_per_s, gaps, .. } => {
                let rate = arrivals_per_s(*rate_ops_per_s, ops_per_arrival);
                let arrivals = Arrivals::new(rate, *gaps, assignment.seed, 0, 1);
                let stride = u64::from(assignment.workers.max(1));
                let pace = Pace::open(arrivals, stride, u64::from(worker));
                Self { script, pace, clients: 0, in_flight: 0 }
            }
            Load::Closed { .. } => Self::of_client(script, assignment, worker, ops_per_arrival),
        }
    }

    /// When the schedule acts for the first time.
    fn first_wake(&self) -> Option<Nanos> {
        match &self.pace {
            Pace::Open(open) => open.arrivals.next_at(),
            Pace::Closed(closed) => Some(closed.start),
        }
    }
}

impl Pace {
    fn open(arrivals: Arrivals, stride: u64, offset: u64) -> Self {
        let arrivals = ArrivalsShare::new(arrivals, stride, offset);
        Self::Open(OpenPace { arrivals, backlog: VecDeque::new(), waits: false })
    }
}

fn arrivals_per_s(ops_per_s: OpsPerSec, ops_per_arrival: f64) -> OpsPerSec {
    OpsPerSec::new(ops_per_s.get() / ops_per_arrival.max(1.0)).unwrap_or(ops_per_s)
}
