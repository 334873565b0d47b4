//! Messages from agents to the controller.

use super::member::MemberState;
use super::news::{Action, AgentId, ControllerRequest, Failure, Loss, News};
use super::{Controller, Run};
use crate::clock::Exchange;
use crate::message::{FromAgent, Greeting, ToAgent};

/// Clock requests in flight at once. An answer waits for those before it, and its round trip is the
/// bound: with 64 at once on one host it was above 1 ms, with 8 it is some 0.1 ms.
const CLOCK_REQUESTS_MAX: usize = 8;

impl Controller {
    pub(super) fn heard(&mut self, agent: AgentId) {
        if let Some(member) = self.members.get_mut(agent.0) {
            member.heard = self.now;
        }
    }

    pub(super) fn receive(&mut self, agent: AgentId, message: FromAgent) {
        self.heard(agent);
        match (self.state(agent), message) {
            (MemberState::Gone, _) => {}
            (MemberState::Absent, FromAgent::Hello(greeting)) => self.greet(agent, greeting),
            (state @ MemberState::Absent, message) => self.reject_message(agent, state, &message),
            (_, FromAgent::Alive) => {}
            (_, FromAgent::Clock { sent_ns, at_ns }) => self.clock_answered(agent, sent_ns, at_ns),
            (MemberState::Leaving { .. }, FromAgent::Goodbye) => {
                self.members[agent.0].state = MemberState::Leaving { goodbye_received: true };
                self.actions.push_back(Action::End(agent));
            }
            (MemberState::Leaving { .. }, _) => {}
            (_, FromAgent::Goodbye) => self.lose(agent, Loss::Left),
            (MemberState::Planning, FromAgent::Planned { routes }) => {
                self.members[agent.0].rest();
                self.notify(News::Routes(agent, routes));
            }
            (MemberState::Planning, FromAgent::Refused { reason }) => {
                self.members[agent.0].rest();
                self.plan_failed(agent, Failure::Refused(reason));
            }
            (state, message) if state.owes_an_end() => {
                self.receive_point_message(agent, state, message)
            }
            (state, message) => self.reject_message(agent, state, &message),
        }
    }

    fn reject_message(&mut self, agent: AgentId, state: MemberState, message: &FromAgent) {
        self.lose(agent, Loss::UnexpectedMessage { message: name(message), state: state.as_str() });
    }

    fn greet(&mut self, agent: AgentId, greeting: Box<Greeting>) {
        if greeting.version != self.settings.version {
            let (theirs, ours) = (greeting.version, self.settings.version.clone());
            return self.lose(agent, Loss::Version { theirs, ours });
        }
        let sent = self.members[agent.0].program.take();
        if let Some(sent) = sent.filter(|sent| *sent != greeting.program_sha256) {
            return self.lose(agent, Loss::Program { theirs: greeting.program_sha256, sent });
        }
        self.send(agent, ToAgent::Hello { version: self.settings.version.clone() });
        self.members[agent.0].state = MemberState::Greeted;
        self.notify(News::Greeted(agent, greeting));
        self.measure_clock(agent);
    }

    fn receive_point_message(&mut self, agent: AgentId, state: MemberState, message: FromAgent) {
        let Run::Point(point) = &mut self.run else { return };
        let (ordinal, lost, stopped) = (point.ordinal, point.loss.is_some(), point.stopped);
        match (state, message) {
            (MemberState::Preparing, FromAgent::Ready { ordinal: of }) if of == ordinal => {
                let member = &mut self.members[agent.0];
                member.state = MemberState::Ready;
                // An agent that was stopped meanwhile must still report its end.
                if !lost && !stopped {
                    member.due = None;
                }
            }
            (_, FromAgent::Refused { reason }) => {
                self.members[agent.0].rest();
                if state == MemberState::Running || !stopped {
                    self.spoil(agent, Failure::Refused(reason));
                }
            }
            (MemberState::Running, FromAgent::Finished(_)) if lost => self.members[agent.0].rest(),
            (MemberState::Running, FromAgent::Finished(report)) => {
                if let Some(part) = point.part_mut(agent) {
                    part.report = Some(*report);
                }
                self.members[agent.0].state = MemberState::Reported;
                self.measure_clock(agent);
            }
            (MemberState::Running, message) if is_of_load(&message) => {
                let part = point.part_mut(agent).filter(|_| !lost);
                match part.map(|part| part.take(message)) {
                    Some(Ok(Some(news))) => self.notify(news),
                    Some(Err(loss)) => self.lose(agent, loss),
                    Some(Ok(None)) | None => {}
                }
            }
            (state, message) => self.reject_message(agent, state, &message),
        }
    }

    /// Begins a measurement of an agent's clock, or queues it.
    pub(super) fn measure_clock(&mut self, agent: AgentId) {
        self.members[agent.0].round = Some(<_>::default());
        let state = self.state(agent);
        self.ask(agent, state, (ControllerRequest::Clock, self.settings.answer));
    }

    /// Sends the queued clock requests. The answer to a request of an abandoned measurement is as
    /// good as another.
    pub(super) fn ask_clocks(&mut self) {
        let measured = self.agents(|member| member.round.is_some());
        let is_pending = |agent: &AgentId| self.members[agent.0].clock_requested.is_some();
        let (pending, waiting): (Vec<_>, Vec<_>) = measured.into_iter().partition(is_pending);
        let room = CLOCK_REQUESTS_MAX.saturating_sub(pending.len());
        waiting.into_iter().take(room).for_each(|agent| self.ask_clock(agent));
    }

    fn ask_clock(&mut self, agent: AgentId) {
        self.members[agent.0].clock_requested = Some(self.now);
        self.send(agent, ToAgent::Clock { sent_ns: self.now.0 });
    }

    fn clock_answered(&mut self, agent: AgentId, sent_ns: u64, at_ns: u64) {
        let member = &mut self.members[agent.0];
        let Some(sent) = member.clock_requested.take().filter(|sent| sent.0 == sent_ns) else {
            let message = "the answer to another question for its clock";
            let state = member.state.as_str();
            return self.lose(agent, Loss::UnexpectedMessage { message, state });
        };
        let Some(round) = &mut member.round else { return };
        round.take(Exchange { sent, at_ns, received: self.now });
        if round.count() < self.settings.exchanges {
            return self.ask_clock(agent);
        }
        let Some(reading) = round.reading() else { return };
        (member.round, member.due) = (None, None);
        match (member.state, &mut self.run) {
            (MemberState::Greeted, _) => {
                member.state = MemberState::Idle;
                self.notify(News::Clock(agent, reading));
            }
            (MemberState::Ready, Run::Point(point)) => {
                point.part_mut(agent).into_iter().for_each(|part| part.before = Some(reading));
            }
            (MemberState::Reported, Run::Point(point)) => {
                member.state = MemberState::Idle;
                point.part_mut(agent).into_iter().for_each(|part| part.after = Some(reading));
            }
            _ => {}
        }
    }
}

/// Part of a load point's load, before its end.
const fn is_of_load(message: &FromAgent) -> bool {
    matches!(
        message,
        FromAgent::Second(_)
            | FromAgent::Sample(_)
            | FromAgent::ClientLost { .. }
            | FromAgent::Slices(_)
    )
}

/// A message's name, for a person.
const fn name(message: &FromAgent) -> &'static str {
    match message {
        FromAgent::Hello(_) => "Hello",
        FromAgent::Clock { .. } => "Clock",
        FromAgent::Planned { .. } => "Planned",
        FromAgent::Ready { .. } => "Ready",
        FromAgent::Refused { .. } => "Refused",
        FromAgent::Second(_) => "Second",
        FromAgent::Sample(_) => "Sample",
        FromAgent::ClientLost { .. } => "ClientLost",
        FromAgent::Slices(_) => "Slices",
        FromAgent::Finished(_) => "Finished",
        FromAgent::Alive => "Alive",
        FromAgent::Goodbye => "Goodbye",
    }
}
