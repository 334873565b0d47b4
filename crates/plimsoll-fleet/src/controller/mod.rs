//! The controller of a run's agents: events in, actions out, time passed in. Threads and pipes
//! drive it in the program, a simulator in tests.
//!
//! | the run is | until |
//! | --- | --- |
//! | gathering | all agents greeted and had their clocks measured, or `wait` has passed |
//! | idle | a command |
//! | planning | each agent has planned, refused, or is lost |
//! | attaching | each agent of the load point is ready |
//! | timing | the clocks of all are measured; then the order to start goes to all at once |
//! | running | each agent has reported and had its clock measured again |
//! | settling | (an agent failed, or the load point was stopped before its start) each other one has reported the end of its part |
//! | finishing | each agent has sent `Goodbye` and ended, or the silence limit has passed |
//! | finished | |
//!
//! | an agent is | and may send, besides heartbeats and clock readings |
//! | --- | --- |
//! | absent | `Hello` |
//! | greeted, idle | nothing |
//! | planning | `Planned`, `Refused` |
//! | preparing | `Ready`, `Refused` |
//! | ready | `Refused`, after it was stopped |
//! | running | `Second`, `Sample`, `ClientLost`, `Slices`; at the end `Finished` or `Refused` |
//! | reported | nothing; its clock is measured again |
//! | leaving | `Goodbye`; all else is of before |
//! | gone | |
//!
//! A load point ends for an agent with exactly one `Finished` or `Refused`, also if it was stopped:
//! what comes before that belongs to the lost load point, what comes after does not.

mod incoming;
mod member;
mod news;
mod point;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::units::{Nanos, keep_least};

use crate::message::{PlanOrder, ToAgent};
use crate::pulse::Awake;
use member::{Due, Member, MemberState};
use point::{Point, Progress};

pub use news::{
    Action, AgentId, AgentReport, Command, ControllerRequest, Failure, Input, Loss, News, Settings,
};

/// The state machine.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    members: Vec<Member>,
    run: Run,
    now: Nanos,
    awake: Awake,
    actions: VecDeque<Action>,
}

/// What the run is doing.
#[derive(Debug)]
enum Run {
    Gathering { until: Nanos },
    Idle,
    Planning { failed: Vec<(AgentId, Failure)> },
    Point(Box<Point>),
    Finishing { until: Nanos },
    Finished,
}

impl Controller {
    /// For `agents` agents, whose processes are being started.
    pub fn new(agents: usize, settings: Settings, now: Nanos) -> Self {
        Self {
            members: (0..agents).map(|_| Member::new(now)).collect(),
            run: Run::Gathering { until: now.saturating_add(settings.wait) },
            now,
            awake: Awake::new(settings.pulse, now),
            actions: VecDeque::new(),
            settings,
        }
    }

    /// An agent was sent a program with this SHA-256 and may have no other.
    pub fn expect_program(&mut self, agent: AgentId, sha256: &str) {
        if let Some(member) = self.members.get_mut(agent.0) {
            member.program = Some(sha256.to_owned());
        }
    }

    /// Takes in an event. `now` is read after the event has come.
    pub fn handle(&mut self, now: Nanos, input: Input) {
        self.now = self.now.max(now);
        self.awake.tick(self.now);
        match input {
            Input::Message(agent, message) => self.receive(agent, message),
            Input::Heard(agent) => self.heard(agent),
            Input::Broken(agent, error) => self.lose(agent, Loss::Unreadable(error)),
            Input::Ended(agent, why) => self.ended(agent, why),
            Input::Command(command) => self.command(command),
            Input::Tick => {}
        }
        self.check_deadlines();
        while self.advance() {}
        self.ask_clocks();
        self.show_life();
    }

    /// What to do next; to be called after each event until it returns `None`.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to come back with [`Input::Tick`]; `None` where time changes nothing.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let Settings { pulse, .. } = &self.settings;
        let mut next = match self.run {
            Run::Finished => return None,
            Run::Gathering { until } | Run::Finishing { until } => {
                Some(self.awake.effective_deadline(until))
            }
            _ => None,
        };
        for member in &self.members {
            if member.state.has_a_pulse() {
                let silent = member.heard.saturating_add(pulse.silence);
                keep_least(&mut next, member.spoke.saturating_add(pulse.alive_every));
                keep_least(&mut next, self.awake.effective_deadline(silent));
            }
            keep_least(&mut next, member.due.map(|due| self.awake.effective_deadline(due.at)));
        }
        next
    }

    /// After [`Command::Finish`], when every agent is gone. Before it a command may still come,
    /// also where no agent is left.
    pub const fn has_finished(&self) -> bool {
        matches!(self.run, Run::Finished)
    }

    /// Agents that greeted and are not lost.
    pub fn living(&self) -> Vec<AgentId> {
        self.agents(|member| member.state.has_a_pulse())
    }

    fn agents(&self, which: impl Fn(&Member) -> bool) -> Vec<AgentId> {
        let of = |(at, member)| which(member).then_some(AgentId(at));
        self.members.iter().enumerate().filter_map(of).collect()
    }

    fn send(&mut self, agent: AgentId, message: ToAgent) {
        if let Some(member) = self.members.get_mut(agent.0) {
            member.spoke = self.now;
            self.actions.push_back(Action::Send(agent, message));
        }
    }

    fn notify(&mut self, news: News) {
        self.actions.push_back(Action::Notify(news));
    }

    /// Moves an agent to a phase, with a request to complete `within` this time.
    fn ask(
        &mut self,
        agent: AgentId,
        state: MemberState,
        (request, within): (ControllerRequest, Nanos),
    ) {
        if let Some(member) = self.members.get_mut(agent.0) {
            member.state = state;
            member.due = Some(Due { at: self.now.saturating_add(within), within, request });
        }
    }

    fn state(&self, agent: AgentId) -> MemberState {
        self.members.get(agent.0).map_or(MemberState::Gone, |member| member.state)
    }
}

/// Ends and losses.
impl Controller {
    fn ended(&mut self, agent: AgentId, why: String) {
        match self.state(agent) {
            MemberState::Leaving { goodbye_received: true } => {
                self.members[agent.0].state = MemberState::Gone
            }
            _ => self.lose(agent, Loss::Ended(why)),
        }
    }

    fn lose(&mut self, agent: AgentId, why: Loss) {
        if self.state(agent) == MemberState::Gone {
            return;
        }
        let member = &mut self.members[agent.0];
        (member.state, member.due, member.round) = (MemberState::Gone, None, None);
        member.loss = Some(why.clone());
        self.actions.push_back(Action::End(agent));
        self.notify(News::AgentLost { agent, why: why.clone() });
        self.plan_failed(agent, Failure::Lost(why.clone()));
        self.spoil(agent, Failure::Lost(why));
    }

    fn plan_failed(&mut self, agent: AgentId, why: Failure) {
        if let Run::Planning { failed } = &mut self.run {
            failed.push((agent, why));
        }
    }

    /// Invalidates the current load point because of one of its agents; the others stop.
    fn spoil(&mut self, agent: AgentId, why: Failure) {
        let Run::Point(point) = &mut self.run else { return };
        if point.part_mut(agent).is_none() {
            return;
        }
        point.spoil(agent, why);
        for agent in point.agents() {
            if self.state(agent) == MemberState::Reported {
                self.members[agent.0].rest();
            }
        }
        self.stop();
    }

    /// Stops every agent of the current load point that has not ended it.
    fn stop(&mut self) {
        let Run::Point(point) = &mut self.run else { return };
        if std::mem::replace(&mut point.stopped, true) {
            return;
        }
        for agent in point.agents() {
            let state = self.state(agent);
            if state.owes_an_end() {
                self.members[agent.0].round = None;
                self.send(agent, ToAgent::Stop);
            }
            // Getting ready may take its time, as it may without a stop.
            if matches!(state, MemberState::Ready | MemberState::Running) {
                self.ask(agent, state, (ControllerRequest::Stop, self.settings.report));
            }
        }
    }

    fn check_deadlines(&mut self) {
        let (now, awake, silence) = (self.now, self.awake, self.settings.pulse.silence);
        for agent in (0..self.members.len()).map(AgentId) {
            let effective_deadline = |deadline| awake.effective_deadline(deadline);
            if let Some(loss) = self.members[agent.0].overdue(now, silence, effective_deadline) {
                self.lose(agent, loss);
            }
        }
        match self.run {
            Run::Gathering { until } if awake.effective_deadline(until) <= now => {
                let late = |state| matches!(state, MemberState::Absent | MemberState::Greeted);
                for agent in self.agents(|member| late(member.state)) {
                    self.lose(agent, Loss::Absent(self.settings.wait));
                }
            }
            Run::Finishing { until } if awake.effective_deadline(until) <= now => {
                for agent in self.agents(|member| member.state != MemberState::Gone) {
                    self.lose(agent, Loss::Silent(silence));
                }
            }
            _ => {}
        }
    }

    fn show_life(&mut self) {
        let Self { now, settings, .. } = self;
        let (now, every) = (*now, settings.pulse.alive_every);
        let quiet = |member: &Member| member.spoke.saturating_add(every) <= now;
        for agent in self.agents(|member| member.state.has_a_pulse() && quiet(member)) {
            self.send(agent, ToAgent::Alive);
        }
    }
}

/// Commands, and what follows when all agents have done something.
impl Controller {
    fn command(&mut self, command: Command) {
        match (command, &self.run) {
            (_, Run::Finishing { .. } | Run::Finished) => {}
            (Command::Plan(orders), Run::Idle) => self.plan(orders),
            (Command::Point(assignments), Run::Idle) => self.begin_point(assignments),
            (Command::Stop, _) => self.stop(),
            (Command::Finish, _) => self.finish(),
            (Command::Plan(_) | Command::Point(_), _) => {
                self.notify(News::Refused("the command before it has not ended"));
            }
        }
    }

    fn plan(&mut self, orders: Vec<(Vec<AgentId>, Box<PlanOrder>)>) {
        self.run = Run::Planning { failed: Vec::new() };
        for (mut agents, order) in orders {
            agents.retain(|agent| self.state(*agent).has_a_pulse());
            for agent in &agents {
                self.ask(
                    *agent,
                    MemberState::Planning,
                    (ControllerRequest::Plan, self.settings.answer),
                );
                self.members[agent.0].spoke = self.now;
            }
            self.actions.push_back(Action::SendAll(agents, ToAgent::Plan(order)));
        }
    }

    fn begin_point(&mut self, assignments: Vec<(AgentId, Assignment)>) {
        let Some(point) = Point::new(&assignments) else {
            return self.notify(News::Refused("a load point needs an agent"));
        };
        let mut agents = point.agents();
        agents.sort();
        agents.dedup();
        if agents.len() < assignments.len() || agents.iter().any(|id| id.0 >= self.members.len()) {
            return self.notify(News::Refused("a load point has each of its agents once"));
        }
        let gone = agents.iter().find_map(|id| Some((*id, self.members[id.0].loss.clone()?)));
        if let Some((agent, why)) = gone {
            return self.notify(News::PointLost { agent, why: Failure::Lost(why) });
        }
        self.run = Run::Point(Box::new(point));
        for (agent, assignment) in assignments {
            self.ask(
                agent,
                MemberState::Preparing,
                (ControllerRequest::Prepare, self.settings.answer),
            );
            self.send(agent, ToAgent::Point(Box::new(assignment)));
        }
    }

    fn finish(&mut self) {
        for agent in self.agents(|member| member.state == MemberState::Absent) {
            self.members[agent.0].state = MemberState::Gone;
            self.actions.push_back(Action::End(agent));
        }
        for agent in self.living() {
            self.send(agent, ToAgent::Goodbye);
            let member = &mut self.members[agent.0];
            member.rest();
            member.state = MemberState::Leaving { goodbye_received: false };
        }
        self.run = Run::Finishing { until: self.now.saturating_add(self.settings.pulse.silence) };
    }

    /// Enters the next phase if every agent has completed its part of the current one.
    fn advance(&mut self) -> bool {
        let any = |of: &[MemberState]| self.members.iter().any(|member| of.contains(&member.state));
        match &mut self.run {
            Run::Gathering { .. } => self.gather(),
            Run::Planning { failed } if !any(&[MemberState::Planning]) => {
                let failed = std::mem::take(failed);
                self.run = Run::Idle;
                let failed = Some(failed).filter(|failed| !failed.is_empty());
                self.notify(failed.map_or(News::Planned, News::PlanFailed));
                true
            }
            Run::Point(_) => self.advance_point(),
            Run::Finishing { .. } if self.members.iter().all(|m| m.state == MemberState::Gone) => {
                self.run = Run::Finished;
                self.notify(News::Finished);
                true
            }
            Run::Planning { .. } | Run::Idle | Run::Finishing { .. } | Run::Finished => false,
        }
    }

    fn gather(&mut self) -> bool {
        let coming =
            |member: &Member| matches!(member.state, MemberState::Absent | MemberState::Greeted);
        let there = self.agents(|member| member.state == MemberState::Idle).len();
        let coming = self.agents(coming).len();
        if there + coming < self.settings.agents_min.max(1) {
            let reason = |agent: AgentId| Some((agent, self.members[agent.0].loss.clone()?));
            let reasons = self.agents(|_| true).into_iter().filter_map(reason).collect();
            self.notify(News::TooFew(reasons));
            self.finish();
            return true;
        }
        if coming == 0 {
            self.run = Run::Idle;
            self.notify(News::Gathered);
        }
        coming == 0
    }

    fn advance_point(&mut self) -> bool {
        let Run::Point(point) = &mut self.run else { return false };
        let all = |state| point.parts.iter().all(|part| self.members[part.agent.0].state == state);
        let agents = point.agents();
        let settled = || !agents.iter().any(|agent| self.members[agent.0].state.owes_an_end());
        let end = match point.progress {
            _ if point.loss.is_some() && settled() => {
                point.loss.take().map(|(agent, why)| News::PointLost { agent, why })
            }
            Progress::Attaching | Progress::Timing if point.stopped && settled() => {
                Some(News::PointStopped)
            }
            _ if point.loss.is_some() => None,
            Progress::Attaching if !point.stopped && all(MemberState::Ready) => {
                point.progress = Progress::Timing;
                self.notify(News::Ready);
                agents.into_iter().for_each(|agent| self.measure_clock(agent));
                return true;
            }
            Progress::Timing
                if !point.stopped && point.parts.iter().all(|part| part.before.is_some()) =>
            {
                self.start();
                return true;
            }
            Progress::Running => point.reports().map(News::PointFinished),
            Progress::Attaching | Progress::Timing => None,
        };
        let Some(news) = end else { return false };
        self.run = Run::Idle;
        self.notify(news);
        true
    }

    fn start(&mut self) {
        let Run::Point(point) = &mut self.run else { return };
        point.progress = Progress::Running;
        let lead = self.settings.start_lead;
        let at = self.now.saturating_add(lead);
        let load = point.phases.load_end().saturating_add(point.phases.drain_ns);
        let within = lead.saturating_add(load).saturating_add(self.settings.report);
        let starts: Vec<(AgentId, u64)> = point
            .parts
            .iter()
            .filter_map(|part| Some((part.agent, part.before?.there(at))))
            .collect();
        for (agent, at_ns) in starts {
            self.ask(agent, MemberState::Running, (ControllerRequest::Run, within));
            self.send(agent, ToAgent::Start { at_ns });
        }
        self.notify(News::Started { at });
    }
}
