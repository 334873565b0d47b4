//! What agents say to the controller.

use super::member::Stage;
use super::news::{Action, AgentId, Asked, Failure, Loss, News};
use super::{Controller, Run};
use crate::clock::Exchange;
use crate::message::{FromAgent, Greeting, ToAgent};

/// Clocks that are asked at once. An answer waits for those before it, and its round trip is the
/// bound: with 64 at once on one host it was above 1 ms, with 8 it is some 0.1 ms.
const CLOCKS_ASKED_MAX: usize = 8;

impl Controller {
    pub(super) fn heard(&mut self, agent: AgentId) {
        if let Some(member) = self.members.get_mut(agent.0) {
            member.heard = self.now;
        }
    }

    pub(super) fn said(&mut self, agent: AgentId, message: FromAgent) {
        self.heard(agent);
        match (self.stage(agent), message) {
            (Stage::Gone, _) => {}
            (Stage::Absent, FromAgent::Hello(greeting)) => self.greet(agent, greeting),
            (stage @ Stage::Absent, message) => self.out_of_turn(agent, stage, &message),
            (_, FromAgent::Alive) => {}
            (_, FromAgent::Clock { sent_ns, at_ns }) => self.clock_answered(agent, sent_ns, at_ns),
            (Stage::Leaving { .. }, FromAgent::Goodbye) => {
                self.members[agent.0].stage = Stage::Leaving { said_goodbye: true };
                self.actions.push_back(Action::End(agent));
            }
            (Stage::Leaving { .. }, _) => {}
            (_, FromAgent::Goodbye) => self.lose(agent, Loss::Left),
            (Stage::Planning, FromAgent::Planned { ways }) => {
                self.members[agent.0].rest();
                self.tell(News::Ways(agent, ways));
            }
            (Stage::Planning, FromAgent::Refused { reason }) => {
                self.members[agent.0].rest();
                self.plan_failed(agent, Failure::Refused(reason));
            }
            (stage, message) if stage.owes_an_end() => self.said_of_point(agent, stage, message),
            (stage, message) => self.out_of_turn(agent, stage, &message),
        }
    }

    fn out_of_turn(&mut self, agent: AgentId, stage: Stage, message: &FromAgent) {
        self.lose(agent, Loss::OutOfTurn { said: name(message), stage: stage.as_str() });
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
        self.members[agent.0].stage = Stage::Greeted;
        self.tell(News::Greeted(agent, greeting));
        self.measure_clock(agent);
    }

    fn said_of_point(&mut self, agent: AgentId, stage: Stage, message: FromAgent) {
        let Run::Point(point) = &mut self.run else { return };
        let (ordinal, lost, stopped) = (point.ordinal, point.loss.is_some(), point.stopped);
        match (stage, message) {
            (Stage::Preparing, FromAgent::Ready { ordinal: of }) if of == ordinal => {
                let member = &mut self.members[agent.0];
                member.stage = Stage::Ready;
                // One that was told to stop meanwhile still owes an end.
                if !lost && !stopped {
                    member.due = None;
                }
            }
            (_, FromAgent::Refused { reason }) => {
                self.members[agent.0].rest();
                if stage == Stage::Running || !stopped {
                    self.spoil(agent, Failure::Refused(reason));
                }
            }
            (Stage::Running, FromAgent::Finished(_)) if lost => self.members[agent.0].rest(),
            (Stage::Running, FromAgent::Finished(report)) => {
                if let Some(part) = point.part_mut(agent) {
                    part.report = Some(*report);
                }
                self.members[agent.0].stage = Stage::Reported;
                self.measure_clock(agent);
            }
            (Stage::Running, message) if is_of_load(&message) => {
                let part = point.part_mut(agent).filter(|_| !lost);
                match part.map(|part| part.take(message)) {
                    Some(Ok(Some(news))) => self.tell(news),
                    Some(Err(loss)) => self.lose(agent, loss),
                    Some(Ok(None)) | None => {}
                }
            }
            (stage, message) => self.out_of_turn(agent, stage, &message),
        }
    }

    /// Begins a measurement of an agent's clock, or has it wait for its turn.
    pub(super) fn measure_clock(&mut self, agent: AgentId) {
        self.members[agent.0].round = Some(<_>::default());
        let stage = self.stage(agent);
        self.ask(agent, stage, (Asked::Clock, self.settings.answer));
    }

    /// Asks the clocks whose turn it is. The answer to a question of a measurement that was given up
    /// is as good as another.
    pub(super) fn ask_clocks(&mut self) {
        let measured = self.agents(|member| member.round.is_some());
        let is_asked = |agent: &AgentId| self.members[agent.0].clock_asked.is_some();
        let (asked, waiting): (Vec<_>, Vec<_>) = measured.into_iter().partition(is_asked);
        let room = CLOCKS_ASKED_MAX.saturating_sub(asked.len());
        waiting.into_iter().take(room).for_each(|agent| self.ask_clock(agent));
    }

    fn ask_clock(&mut self, agent: AgentId) {
        self.members[agent.0].clock_asked = Some(self.now);
        self.send(agent, ToAgent::Clock { sent_ns: self.now.0 });
    }

    fn clock_answered(&mut self, agent: AgentId, sent_ns: u64, at_ns: u64) {
        let member = &mut self.members[agent.0];
        let Some(sent) = member.clock_asked.take().filter(|sent| sent.0 == sent_ns) else {
            let said = "the answer to another question for its clock";
            let stage = member.stage.as_str();
            return self.lose(agent, Loss::OutOfTurn { said, stage });
        };
        let Some(round) = &mut member.round else { return };
        round.take(Exchange { sent, at_ns, received: self.now });
        if round.count() < self.settings.exchanges {
            return self.ask_clock(agent);
        }
        let Some(reading) = round.reading() else { return };
        (member.round, member.due) = (None, None);
        match (member.stage, &mut self.run) {
            (Stage::Greeted, _) => {
                member.stage = Stage::Idle;
                self.tell(News::Clock(agent, reading));
            }
            (Stage::Ready, Run::Point(point)) => {
                point.part_mut(agent).into_iter().for_each(|part| part.before = Some(reading));
            }
            (Stage::Reported, Run::Point(point)) => {
                member.stage = Stage::Idle;
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
