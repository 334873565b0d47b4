//! A controller with agents that behave correctly, unless a test makes them fail.

use plimsoll_model::assignment::{Assignment, WorkerGroup};
use plimsoll_model::suite::ProfileName;
use plimsoll_model::units::Nanos;

use super::super::{Action, AgentId, Command, Controller, Input, News, Settings};
use crate::message::{FromAgent, Greeting, PlanOrder, ToAgent};
use crate::testing::assignment;

pub(super) const HOUR_NS: u64 = 3_600_000_000_000;

/// A controller whose agents answer questions for their clocks at once. The clock of agent n is n
/// hours ahead; the agent reads it 10 µs after the middle of the round trip.
pub(super) struct Fleet {
    pub(super) controller: Controller,
    pub(super) now: Nanos,
    pub(super) sent: Vec<(AgentId, ToAgent)>,
    pub(super) news: Vec<News>,
    pub(super) ended: Vec<AgentId>,
    pub(super) deaf: Vec<AgentId>,
}

impl Fleet {
    pub(super) fn new(agents: usize, agents_min: usize) -> Self {
        let now = Nanos::from_secs(1_000);
        let settings = Settings::new("1.2.3", agents_min);
        Self {
            controller: Controller::new(agents, settings, now),
            now,
            sent: Vec::new(),
            news: Vec::new(),
            ended: Vec::new(),
            deaf: Vec::new(),
        }
    }

    /// All have greeted and planned.
    pub(super) fn planned(agents: usize) -> Self {
        let mut fleet = Self::new(agents, 1);
        (0..agents).for_each(|agent| fleet.receive(agent, hello("1.2.3")));
        fleet.give(Input::Command(plan()));
        (0..agents)
            .for_each(|agent| fleet.receive(agent, FromAgent::Planned { routes: Vec::new() }));
        assert!(matches!(fleet.news.last(), Some(News::Planned)), "{:?}", fleet.news);
        fleet
    }

    /// All run a load point.
    pub(super) fn running(agents: usize) -> Self {
        let mut fleet = Self::planned(agents);
        fleet.begin(agents);
        (0..agents).for_each(|agent| fleet.receive(agent, FromAgent::Ready { ordinal: 4 }));
        assert!(matches!(fleet.news.last(), Some(News::Started { .. })), "{:?}", fleet.news);
        fleet
    }

    pub(super) fn begin(&mut self, agents: usize) {
        let living = self.controller.living().into_iter().take(agents);
        let of = |id: AgentId| {
            let group = Some(WorkerGroup { first: id.0 as u32, count: 1, own_endpoints: false });
            (id, Assignment { workers: 16, crew: group, ..assignment(4) })
        };
        self.give(Input::Command(Command::Point(living.map(of).collect())));
    }

    pub(super) fn give(&mut self, input: Input) {
        self.controller.handle(self.now, input);
        while let Some(action) = self.controller.next_action() {
            match action {
                Action::Send(agent, ToAgent::Clock { sent_ns }) if !self.deaf.contains(&agent) => {
                    self.now += Nanos(40_000);
                    let middle = sent_ns + (self.now.0 - sent_ns) / 2;
                    let at_ns = middle + 10_000 + agent.0 as u64 * HOUR_NS;
                    let answer = FromAgent::Clock { sent_ns, at_ns };
                    self.controller.handle(self.now, Input::Message(agent, answer));
                }
                Action::Send(agent, message) => self.sent.push((agent, message)),
                Action::SendAll(agents, message) => {
                    self.sent.extend(agents.into_iter().map(|agent| (agent, message.clone())));
                }
                Action::End(agent) => self.ended.push(agent),
                Action::Notify(news) => self.news.push(news),
            }
        }
    }

    pub(super) fn receive(&mut self, agent: usize, message: FromAgent) {
        self.give(Input::Message(AgentId(agent), message));
    }

    /// Lets time pass; all agents but `silent` show that they live.
    pub(super) fn pass(&mut self, span: Nanos, silent: &[usize]) {
        let until = self.now + span;
        while self.now < until {
            let next = self.controller.next_deadline().unwrap_or(until);
            assert!(next > self.now, "a deadline that has passed");
            self.now = next.min(until);
            for agent in self.controller.living() {
                if !silent.contains(&agent.0) {
                    self.receive(agent.0, FromAgent::Alive);
                }
            }
            self.give(Input::Tick);
        }
    }

    /// What an agent was sent since the last call, as text.
    pub(super) fn sent_to(&mut self, agent: usize) -> Vec<String> {
        let (to, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.sent).into_iter().partition(|(to, _)| to.0 == agent);
        self.sent = rest;
        let word = |message: ToAgent| {
            let text = format!("{message:?}");
            text.split([' ', '(']).next().unwrap_or_default().to_owned()
        };
        to.into_iter().map(|(_, message)| word(message)).collect()
    }

    /// What the coordinator was notified of since the last call.
    pub(super) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn lost(&mut self) -> Vec<(usize, String)> {
        let lost = |news| match news {
            News::AgentLost { agent, why } => Some((agent.0, why.to_string())),
            _ => None,
        };
        self.take_news().into_iter().filter_map(lost).collect()
    }
}

pub(super) fn hello(version: &str) -> FromAgent {
    let version = version.to_owned();
    FromAgent::Hello(Box::new(Greeting { version, ..Greeting::default() }))
}

pub(super) fn plan() -> Command {
    let order = PlanOrder {
        suite: String::new(),
        profile: ProfileName::Quick,
        seed: 1,
        highest_ops_per_s: None,
        targets: Vec::new(),
        run_urls: Vec::new(),
        sources: Vec::new(),
        file_set: None,
        files: Vec::new(),
        load_file: None,
        learnt: None,
        password: None,
        user: (0, 0),
    };
    // Those that are not there are left out.
    Command::Plan(vec![((0..16).map(AgentId).collect(), Box::new(order))])
}
