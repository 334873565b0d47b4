//! A client that can go no further leaves the load; the others go on without it.

use plimsoll_model::event::AgentEvent;
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::Worker;
use super::schedule::Pace;
use crate::driver::Driver;
use crate::recorder::{Arrived, Flight, Landing};
use crate::seam::{Script, Session, Ticket};

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Takes the client out if its session has given up. `ended`: an op ended in the call before.
    pub(super) fn look_after(&mut self, client: u32, ended: bool, now: Nanos) {
        let state = &self.clients[client as usize];
        if !ended && (state.in_flight > 0 || state.session.has_room()) {
            return;
        }
        if let Some(reason) = state.session.lost() {
            self.leave(client, reason, now);
        }
    }

    fn leave(&mut self, client: u32, reason: String, now: Nanos) {
        let state = &mut self.clients[client as usize];
        state.gone = true;
        state.listed_free = false;
        let (number, schedule) = (state.number, state.schedule);
        let flights = state.end_all();
        self.left_in_time += u32::from(now < self.assignment.phases.window_end());
        self.links.release_all(client, &mut self.driver);
        self.abandon(client, &flights, now);
        let state = &mut self.schedules[schedule as usize];
        state.free.retain(|free| *free != client);
        state.clients -= 1;
        match &mut state.pace {
            Pace::Closed(pace) => pace.finished = true,
            Pace::Open(open) if state.clients == 0 => {
                self.backlog_ops -= open.backlog.len() as u64;
                open.backlog.drain(..).for_each(|due| self.recorder.not_sent(due.at));
            }
            // The rest of the pool may take what waits.
            Pace::Open(_) => self.runnable.push((schedule, now)),
        }
        self.tell(AgentEvent::ClientLost { client: number, reason, at: now });
    }

    /// What was under way has failed: its reply can no longer come.
    fn abandon(&mut self, client: u32, flights: &[(Ticket, Flight)], now: Nanos) {
        let state = &self.clients[client as usize];
        let (schedule, endpoint) = (state.schedule, state.endpoint);
        for (ticket, flight) in flights {
            let now = now.max(flight.sent);
            if now >= self.recorder.boundary() {
                self.roll_intervals(now);
            }
            let outcome = Outcome {
                kind: flight.kind,
                status: OpStatus::Failed(ErrorClass::Transport),
                bytes_read: 0,
                bytes_written: 0,
                ambiguous: false,
            };
            self.in_flight -= 1;
            self.schedules[schedule as usize].outcome();
            let late_max = self.lates.ended(flight.sent, flight.lateness(), flight.late_max);
            let landing = Landing { done: now, arrived: Arrived::Never, late_max };
            self.recorder.record(*flight, &outcome, endpoint, landing);
            self.schedules[schedule as usize].script.on_outcome(*ticket, &outcome, now);
        }
    }
}
