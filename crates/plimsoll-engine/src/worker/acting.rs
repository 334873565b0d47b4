//! What a schedule does when its time has come: deal out ops, think, sleep.

use std::cmp::Reverse;

use plimsoll_model::units::Nanos;

use super::Worker;
use super::schedule::{Due, Pace};
use crate::driver::Driver;
use crate::recorder::Flight;
use crate::seam::{Script, Session, Step, Ticket, Turn};

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    pub(super) fn wake_schedule(&mut self, schedule: u32, at: Nanos, now: Nanos) {
        let load_end = self.assignment.phases.load_end();
        let state = &mut self.schedules[schedule as usize];
        let open = match &mut state.pace {
            Pace::Open(open) => open,
            Pace::Closed(closed) => {
                closed.asleep = false;
                self.runnable.push((schedule, at));
                return;
            }
        };
        while let Some(due) = open.next.filter(|due| due.at <= now && due.at < load_end) {
            self.recorder.came_due(due.at);
            let has_place =
                open.backlog.len() < state.free.len() || self.backlog_ops < self.backlog_ops_max;
            if has_place && state.clients > 0 {
                open.backlog.push_back(due);
                self.backlog_ops += 1;
            } else {
                self.recorder.not_sent(due.at);
            }
            open.advance();
        }
        if let Some(due) = open.next.filter(|due| due.at < load_end) {
            self.timers.schedules.push(Reverse((due.at, schedule)));
        }
        self.runnable.push((schedule, at));
    }

    /// Lets every runnable schedule do what it can, until none can. So ends every turn.
    pub(super) fn run_schedules(&mut self) {
        while let Some((schedule, at)) = self.runnable.pop() {
            match self.schedules[schedule as usize].pace {
                Pace::Open(_) => self.pump(schedule),
                Pace::Closed(_) => self.act(schedule, at),
            }
        }
        self.links.end_turn(&mut self.driver);
    }

    /// Open: ops that wait go to clients that are free.
    pub(super) fn pump(&mut self, schedule: u32) {
        loop {
            let state = &mut self.schedules[schedule as usize];
            let Pace::Open(open) = &mut state.pace else { return };
            if open.backlog.is_empty() || open.waits {
                return;
            }
            let Some(client) = state.free.pop_front() else { return };
            self.clients[client as usize].listed_free = false;
            if !self.clients[client as usize].session.has_room() {
                // It had when it was listed; a follow-on has taken it since.
                continue;
            }
            let Some(due) = open.backlog.pop_front() else { return };
            self.backlog_ops -= 1;
            let now = self.now();
            let state = &mut self.schedules[schedule as usize];
            let Pace::Open(open) = &mut state.pace else { return };
            match state.script.next(Turn { index: due.index, now }) {
                Step::Issue(op) => self.issue(client, op, due, now),
                Step::WaitForOutcome if state.in_flight > 0 => {
                    open.waits = true;
                    open.backlog.push_front(due);
                    self.backlog_ops += 1;
                    return self.list_free(client);
                }
                // The script has nothing for this arrival: the client stays free.
                Step::Think | Step::WaitForOutcome | Step::SleepUntil(_) | Step::Done => {
                    self.recorder.not_sent(due.at);
                    self.list_free(client);
                }
            }
        }
    }

    /// Closed: the client of this schedule acts; `at` is when it should.
    pub(super) fn act(&mut self, schedule: u32, at: Nanos) {
        if at >= self.assignment.phases.load_end() {
            return;
        }
        loop {
            let now = self.now();
            let state = &mut self.schedules[schedule as usize];
            let Pace::Closed(pace) = &mut state.pace else { return };
            let Some(client) = state.free.front().copied().filter(|_| !pace.finished) else {
                return;
            };
            if !self.clients[client as usize].session.has_room() {
                // It had when it was listed; a follow-on has taken it since.
                state.free.pop_front();
                self.clients[client as usize].listed_free = false;
                return;
            }
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
                Step::Think => return self.think(schedule, at),
                Step::SleepUntil(until) => {
                    return self.wake_at(schedule, until.max(now + Nanos(1)));
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
    pub(super) fn think(&mut self, schedule: u32, now: Nanos) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if let Some(started) = pace.piece_start.take() {
            self.recorder.piece_done(started, pace.think, now);
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
    pub(super) fn wake_at(&mut self, schedule: u32, at: Nanos) {
        let Pace::Closed(pace) = &mut self.schedules[schedule as usize].pace else { return };
        if !pace.asleep {
            pace.asleep = true;
            self.timers.schedules.push(Reverse((at, schedule)));
        }
    }

    pub(super) fn issue(&mut self, client: u32, op: S::Op, due: Due, now: Nanos) {
        let ticket = self.begin(client, &op, due.at, now);
        let schedule = self.clients[client as usize].schedule;
        self.schedules[schedule as usize].script.on_issued(ticket);
        self.call(client, now, |session, port| session.issue(ticket, op, now, port));
        self.list_free(client);
    }

    /// An op goes out at `sent`.
    pub(super) fn begin(&mut self, client: u32, op: &S::Op, due: Nanos, sent: Nanos) -> Ticket {
        let state = &mut self.clients[client as usize];
        let kind = state.session.kind(op);
        let free = state.free_since;
        let mut flight = Flight { kind, due, free, sent, late_max: Nanos::ZERO };
        flight.late_max = self.lates.sent(sent, flight.lateness());
        let ticket = state.begin(flight);
        self.schedules[state.schedule as usize].in_flight += 1;
        self.in_flight += 1;
        ticket
    }

    /// Puts the client into its schedule's list when it has room and is not there yet.
    pub(super) fn list_free(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if !state.listed_free && !state.gone && state.session.has_room() {
            state.listed_free = true;
            self.schedules[state.schedule as usize].free.push_back(client);
        }
    }
}
