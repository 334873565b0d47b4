//! What a lane does when its time has come: deal out ops, think, sleep.

use std::cmp::Reverse;

use plimsoll_model::units::Nanos;

use super::lane::{Due, Pace};
use super::{Client, Worker};
use crate::driver::Driver;
use crate::recorder::Flight;
use crate::seam::{Script, Session, Step, Ticket, Turn};

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    pub(super) fn wake_lane(&mut self, lane: u32, at: Nanos, now: Nanos) {
        let window_end = self.assignment.phases.window_end();
        let state = &mut self.lanes[lane as usize];
        let open = match &mut state.pace {
            Pace::Open(open) => open,
            Pace::Closed(closed) => {
                closed.asleep = false;
                self.runnable.push((lane, at));
                return;
            }
        };
        while let Some(due) = open.next.filter(|due| due.at <= now && due.at < window_end) {
            self.recorder.came_due(due.at);
            if open.backlog.len() < state.free.len() || self.backlog_ops < self.backlog_ops_max {
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
    pub(super) fn run_lanes(&mut self) {
        while let Some((lane, at)) = self.runnable.pop() {
            match self.lanes[lane as usize].pace {
                Pace::Open(_) => self.pump(lane),
                Pace::Closed(_) => self.act(lane, at),
            }
        }
    }

    /// Open: ops that wait go to clients that are free.
    pub(super) fn pump(&mut self, lane: u32) {
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
                // The script has nothing for this arrival: the client stays free.
                Step::Think | Step::WaitForOutcome | Step::SleepUntil(_) | Step::Done => {
                    self.recorder.not_sent(due.at);
                    self.list_free(client);
                }
            }
        }
    }

    /// Closed: the client of this lane acts; `at` is when it should.
    pub(super) fn act(&mut self, lane: u32, at: Nanos) {
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
                    return self.wake_at(lane, until.max(now + Nanos(1)));
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
    pub(super) fn think(&mut self, lane: u32, now: Nanos) {
        let Pace::Closed(pace) = &mut self.lanes[lane as usize].pace else { return };
        if let Some(started) = pace.piece_start.take() {
            self.recorder.piece_done(started, pace.think, now);
        }
        pace.think = pace.thinker.draw();
        if pace.think == Nanos::ZERO {
            self.runnable.push((lane, now));
        } else {
            let at = now + pace.think;
            self.wake_at(lane, at);
        }
    }

    /// The lane of a closed load sleeps until `at`. One that sleeps already is not woken later.
    pub(super) fn wake_at(&mut self, lane: u32, at: Nanos) {
        let Pace::Closed(pace) = &mut self.lanes[lane as usize].pace else { return };
        if !pace.asleep {
            pace.asleep = true;
            self.timers.lanes.push(Reverse((at, lane)));
        }
    }

    pub(super) fn issue(&mut self, client: u32, op: S::Op, due: Due, now: Nanos) {
        let state = &mut self.clients[client as usize];
        let ticket = free_ticket(state);
        let kind = state.session.kind(&op);
        state.flights[ticket.0 as usize] =
            Some(Flight { kind, due: due.at, free: state.free_since, sent: now });
        state.in_flight += 1;
        self.in_flight += 1;
        self.call(client, now, |session, port| session.issue(ticket, op, now, port));
        self.list_free(client);
    }

    /// Puts the client into its lane's list when it has room and is not there yet.
    pub(super) fn list_free(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if !state.listed_free && state.session.has_room() {
            state.listed_free = true;
            self.lanes[state.lane as usize].free.push_back(client);
        }
    }
}

fn free_ticket<S>(client: &mut Client<S>) -> Ticket {
    let index = client.flights.iter().position(Option::is_none).unwrap_or_else(|| {
        client.flights.push(None);
        client.flights.len() - 1
    });
    Ticket(index as u32)
}
