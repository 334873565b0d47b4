//! When clients act: each schedule is a script, the instants at which it acts, and the clients that
//! serve it. A due op goes to a free client, or waits; think time precedes pieces of work.
//!
//! A client of a per-client or closed load has a schedule of its own; a shared schedule is one
//! served by a pool. Where sessions arrive, each client has a schedule too: it takes the next
//! arrival when its session has ended, and acts when that is due. A session so waits only while all
//! clients are in one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_model::assignment::{Load, Phases};
use plimsoll_model::units::Nanos;

use super::due_counts::WindowCounts;
use super::pace::{self, Attendance, Pace, WorkerArrivals};
use crate::interface::{Script, ScriptContext, Step};
use crate::pacer::Recorded;
use crate::workload::WorkerContext;

/// A closed client whose connection failed waits this long, so that a dead server is not flooded.
const RECONNECT_PAUSE: Nanos = Nanos::from_millis(10);

/// All schedules of one worker.
pub(super) struct Schedules<C> {
    schedules: Vec<Schedule<C>>,
    /// By client.
    client_states: Vec<ClientState>,
    /// Who wakes when. At most one entry per schedule.
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Those that may do something at once, and when it was due.
    runnable: Vec<(u32, Nanos)>,
    /// Of these the one whose op was taken last: it may have more.
    acting: Option<(u32, Nanos)>,
    backlog_ops: u64,
    backlog_ops_max: u64,
    counts: WindowCounts,
    load_end: Nanos,
    /// Where the number of clients changes.
    attendance: Option<Attendance>,
    /// Those that no client has taken yet, of a load of sessions.
    sessions: Option<WorkerArrivals>,
}

/// A client as its schedule sees it.
struct ClientState {
    schedule: u32,
    /// Stands in its schedule's list of free clients.
    listed: bool,
    /// Since when it could have taken an op.
    free_since: Nanos,
}

/// An op that may go out.
pub(super) struct Outgoing<Op> {
    pub(super) client: u32,
    pub(super) op: Op,
    pub(super) due: Nanos,
    pub(super) now: Nanos,
}

/// The outcome of an op that ended.
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
    /// Clients with room for an op, the longest idle first.
    free: VecDeque<u32>,
    /// Clients that serve it and have not left.
    clients: u32,
    /// Ops in flight, of all its clients.
    in_flight: u32,
}

impl<C: Script> Schedules<C> {
    pub(super) fn new(context: &WorkerContext<'_>) -> Self {
        let WorkerContext { assignment, worker, .. } = *context;
        let backlog_ops_max = match assignment.load {
            Load::Open { backlog_ops_max, .. } => {
                u64::from(backlog_ops_max.div_ceil(assignment.workers.max(1)))
            }
            Load::Closed { .. } => 0,
        };
        Self {
            schedules: Vec::new(),
            client_states: Vec::new(),
            timers: BinaryHeap::new(),
            runnable: Vec::new(),
            acting: None,
            backlog_ops: 0,
            backlog_ops_max,
            counts: WindowCounts::new(assignment.windows().into_iter().map(|window| Phases {
                ops: window.ops.map(|ops| assignment.ops_of_worker(worker, ops)),
                ..window
            }))
            .naming_late_ops(context.recorded.as_ref().and_then(Recorded::first_line)),
            attendance: Attendance::new(assignment),
            load_end: assignment.phases.load_end(),
            sessions: pace::arrivals(context, 0).filter(|_| assignment.load.is_sessions()),
        }
    }

    /// One more schedule; its number.
    pub(super) fn add(&mut self, mut schedule: Schedule<C>) -> u32 {
        let number = self.schedules.len() as u32;
        let first = match &mut schedule.pace {
            Pace::Open(open) => open.arrivals.peek().map(|(_, due)| *due),
            Pace::Closed(closed) => match &mut self.sessions {
                Some(sessions) => closed.take_session(sessions),
                None => match &self.attendance {
                    Some(attendance) => attendance.next(closed.client, closed.start),
                    None => Some(closed.start),
                },
            },
        };
        self.timers.extend(first.map(|at| Reverse((at, number))));
        self.schedules.push(schedule);
        number
    }

    /// One more client, free, that serves this schedule.
    pub(super) fn add_client(&mut self, schedule: u32) {
        let state = &mut self.schedules[schedule as usize];
        state.free.push_back(self.client_states.len() as u32);
        state.clients += 1;
        self.client_states.push(ClientState { schedule, listed: true, free_since: Nanos::ZERO });
    }

    /// The script that this client follows.
    pub(super) fn script(&mut self, client: u32) -> &mut C {
        &mut self.schedule_of(client).script
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
    pub(super) fn has_ended(&self, now: Nanos) -> bool {
        now >= self.load_end
    }

    /// The requested number of ops in the window has come due.
    pub(super) fn has_all_ops(&self) -> bool {
        self.counts.has_all_ops()
    }

    /// Wakes the first schedule whose time has come, if there is one.
    pub(super) fn wake_next(&mut self, now: Nanos) -> bool {
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
        let load_end = self.load_end;
        while let Some((index, due)) =
            open.arrivals.next_if(|(_, due)| *due <= now && *due < load_end)
        {
            if self.counts.has_all_ops() {
                return true;
            }
            self.counts.came_due(due);
            let has_capacity =
                open.backlog.len() < state.free.len() || self.backlog_ops < self.backlog_ops_max;
            if has_capacity && state.clients > 0 {
                open.backlog.push_back((index, due));
                self.backlog_ops += 1;
            } else {
                self.counts.not_sent(due);
            }
        }
        if let Some((_, next)) = open.arrivals.peek().filter(|(_, due)| *due < load_end) {
            self.timers.push(Reverse((*next, schedule)));
        }
        true
    }

    /// The next op that can go out; `None` when no runnable schedule can do anything.
    #[inline]
    pub(super) fn next_op(
        &mut self,
        has_room: impl Fn(u32) -> bool,
        mut now: impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        loop {
            let (schedule, at) = self.acting.take().or_else(|| self.runnable.pop())?;
            let is_open = matches!(self.schedules[schedule as usize].pace, Pace::Open(_));
            let next = if is_open {
                self.next_of_backlog(schedule, &has_room, &mut now)
            } else {
                self.next_of_client(schedule, at, &has_room, &mut now)
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
        has_room: &impl Fn(u32) -> bool,
        now: &mut impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        loop {
            let state = &mut self.schedules[schedule as usize];
            let Pace::Open(open) = &mut state.pace else { return None };
            if open.backlog.is_empty() || open.waits {
                return None;
            }
            let client = state.free.pop_front()?;
            self.client_states[client as usize].listed = false;
            if !has_room(client) {
                // It had when it was listed; a follow-on has taken it since.
                continue;
            }
            let (index, due) = open.backlog.pop_front()?;
            self.backlog_ops -= 1;
            let now = now();
            match state.script.next(ScriptContext { index, due, now }) {
                Step::Issue(op) => {
                    let free = self.client_states[client as usize].free_since;
                    self.counts.sent((index, due), now, free);
                    return Some(Outgoing { client, op, due, now });
                }
                Step::WaitForOutcome if state.in_flight > 0 => {
                    open.waits = true;
                    open.backlog.push_front((index, due));
                    self.backlog_ops += 1;
                    self.list_free(client, || true);
                    return None;
                }
                // The script has nothing for this arrival: the client stays free.
                _ => {
                    self.counts.not_sent(due);
                    self.list_free(client, || true);
                }
            }
        }
    }

    /// Closed: the client of this schedule acts; `client` is when it should.
    fn next_of_client(
        &mut self,
        schedule: u32,
        at: Nanos,
        has_room: &impl Fn(u32) -> bool,
        now: &mut impl FnMut() -> Nanos,
    ) -> Option<Outgoing<C::Op>> {
        if at >= self.load_end || self.has_all_ops() {
            return None;
        }
        let now = now();
        let state = &mut self.schedules[schedule as usize];
        let Pace::Closed(pace) = &mut state.pace else { return None };
        let client = state.free.front().copied().filter(|_| !pace.finished)?;
        if !has_room(client) {
            // It had when it was listed; a follow-on has taken it since.
            state.free.pop_front();
            self.client_states[client as usize].listed = false;
            return None;
        }
        if let Some(attendance) = self.attendance.as_ref().filter(|_| pace.piece_start.is_none()) {
            match attendance.next(pace.client, at) {
                Some(here) if here <= at => {}
                Some(later) => {
                    pace.think = Nanos::ZERO;
                    self.wake_at(schedule, later.max(now + Nanos(1)));
                    return None;
                }
                None => return None,
            }
        }
        match state.script.next(ScriptContext { index: pace.index, due: at, now }) {
            Step::Issue(op) => {
                if self.sessions.is_none() {
                    pace.index += 1;
                    pace.piece_start.get_or_insert(at);
                }
                state.free.pop_front();
                self.client_states[client as usize].listed = false;
                self.counts.came_due(at);
                return Some(Outgoing { client, op, due: at, now });
            }
            Step::Think => self.think(schedule, at, None),
            Step::ThinkFor(span) => self.think(schedule, at, Some(span)),
            Step::SleepUntil(until) => self.wake_at(schedule, until.max(now + Nanos(1))),
            Step::WaitForOutcome => {}
            Step::Done => pace.finished = true,
        }
        None
    }

    /// An op of this client goes out; since when the client was free.
    #[inline]
    pub(super) fn op_began(&mut self, client: u32) -> Nanos {
        self.schedule_of(client).in_flight += 1;
        self.client_states[client as usize].free_since
    }

    /// An op of this client ended. [`Schedules::go_on`] follows, unless the client leaves.
    #[inline]
    pub(super) fn op_ended(&mut self, client: u32, now: Nanos) {
        let state = self.schedule_of(client);
        state.in_flight -= 1;
        let waited = match &mut state.pace {
            Pace::Open(open) => std::mem::take(&mut open.waits),
            Pace::Closed(_) => false,
        };
        let client_state = &mut self.client_states[client as usize];
        if waited || !client_state.listed {
            client_state.free_since = now;
        }
    }

    /// What the schedule does now that an op of this client has ended.
    #[inline]
    pub(super) fn go_on(&mut self, client: u32, end: End, now: Nanos) {
        let schedule = self.client_states[client as usize].schedule;
        match (&mut self.schedule_of(client).pace, end) {
            (Pace::Open(_), _) => self.runnable.push((schedule, now)),
            (Pace::Closed(_), End::GoesOn) if C::EVERY_OP_IS_A_PIECE => {}
            (Pace::Closed(pace), End::NoConnection) => {
                // Neither the failed piece nor the pause after it is a cycle of the client.
                pace.piece_start = None;
                pace.think = Nanos::ZERO;
                self.wake_at(schedule, now + RECONNECT_PAUSE);
            }
            (Pace::Closed(_), End::Other) if C::EVERY_OP_IS_A_PIECE => {
                self.think(schedule, now, None);
            }
            (Pace::Closed(_), End::GoesOn | End::Other) => self.runnable.push((schedule, now)),
        }
    }

    /// Puts the client into its schedule's list when it has room and is not there yet.
    #[inline]
    pub(super) fn list_free(&mut self, client: u32, has_room: impl FnOnce() -> bool) {
        let client_state = &mut self.client_states[client as usize];
        if !client_state.listed && has_room() {
            client_state.listed = true;
            self.schedules[client_state.schedule as usize].free.push_back(client);
        }
    }

    /// The client has room again without an op having ended.
    pub(super) fn note_room(&mut self, client: u32, now: Nanos) {
        let client_state = &mut self.client_states[client as usize];
        if !client_state.listed {
            client_state.free_since = now;
            self.runnable.push((client_state.schedule, now));
            self.list_free(client, || true);
        }
    }

    /// The client is given no more.
    pub(super) fn leave(&mut self, client: u32, now: Nanos) {
        let schedule = self.client_states[client as usize].schedule;
        self.client_states[client as usize].listed = false;
        let state = &mut self.schedules[schedule as usize];
        state.free.retain(|free| *free != client);
        state.clients -= 1;
        match &mut state.pace {
            Pace::Closed(pace) => pace.finished = true,
            Pace::Open(open) if state.clients == 0 => {
                self.backlog_ops -= open.backlog.len() as u64;
                open.backlog.drain(..).for_each(|(_, due)| self.counts.not_sent(due));
            }
            // The rest of the pool may take what waits.
            Pace::Open(_) => self.runnable.push((schedule, now)),
        }
    }

    /// An op comes due that follows from one that ended.
    pub(super) fn follow_on_came_due(&mut self, due: Nanos) {
        self.counts.came_due(due);
    }

    /// The point ends at `now`: what waits is not sent, nor what came due since the last round.
    pub(super) fn finish(self, now: Nanos) -> WindowCounts {
        let had_all_ops = self.has_all_ops();
        let mut counts = self.counts;
        for mut schedule in self.schedules {
            let open = match &mut schedule.pace {
                Pace::Open(open) => open,
                Pace::Closed(pace) => {
                    if let Some(started) = pace.piece_start {
                        counts.piece_outlasted(started, pace.think);
                    }
                    continue;
                }
            };
            open.backlog.iter().for_each(|(_, due)| counts.not_sent(*due));
            if had_all_ops {
                continue;
            }
            // After an early stop.
            while let Some((_, due)) = open.arrivals.next_if(|(_, due)| *due <= now) {
                counts.came_due(due);
                counts.not_sent(due);
            }
        }
        let load_end = self.load_end;
        let was_due = |(_, due): &(u64, Nanos)| *due <= now && *due < load_end && !had_all_ops;
        if let Some(mut sessions) = self.sessions {
            while let Some((_, due)) = sessions.next_if(was_due) {
                counts.came_due(due);
                counts.not_sent(due);
            }
        }
        counts
    }

    /// A piece of work is over at `now`; the next begins after a pause: this one, or one that is
    /// drawn; where sessions arrive, when the next of them is due.
    fn think(&mut self, schedule: u32, now: Nanos, span: Option<Nanos>) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if let Some(started) = pace.piece_start.take() {
            self.counts.piece_done(started, pace.think, now);
        }
        if let (None, Some(sessions)) = (span, &mut self.sessions) {
            let due = pace.take_session(sessions);
            due.into_iter().for_each(|due| self.wake_at(schedule, due));
            return;
        }
        pace.think = span.unwrap_or_else(|| pace.thinker.draw());
        if pace.think == Nanos::ZERO {
            self.runnable.push((schedule, now));
        } else {
            let at = now + pace.think;
            self.wake_at(schedule, at);
        }
    }

    /// Suspends a closed schedule until `at`, unless it sleeps already.
    fn wake_at(&mut self, schedule: u32, at: Nanos) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if !pace.asleep {
            pace.asleep = true;
            self.timers.push(Reverse((at, schedule)));
        }
    }

    fn schedule_of(&mut self, client: u32) -> &mut Schedule<C> {
        &mut self.schedules[self.client_states[client as usize].schedule as usize]
    }
}

impl<C> Schedule<C> {
    /// The schedule of one client; of a pool, this worker's part of it.
    pub(super) fn new(script: C, context: &WorkerContext<'_>, client: u32) -> Self {
        let pace = Pace::new(context, client);
        Self { script, pace, free: VecDeque::new(), clients: 0, in_flight: 0 }
    }
}
