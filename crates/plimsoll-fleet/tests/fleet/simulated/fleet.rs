//! One controller and its agents in virtual time, from the first launch to the last end.

use std::collections::BTreeMap;

use plimsoll_fleet::controller::{Action, AgentId, Controller, Input, Loss, News, Settings};
use plimsoll_fleet::frame::FrameError;
use plimsoll_fleet::message::{FromAgent, ToAgent};
use plimsoll_model::units::Nanos;

use super::check;
use super::clock::{Clock, MS, SECOND};
use super::coordinator::{Coordinator, NextStep};
use super::faults::Fault;
use super::host::{AgentInput, Effect, Host, Step};
use super::process::Process;
use super::random::Random;

pub const VERSION: &str = "1.2.3";
/// No run lasts longer: four load points, each tried three times with every limit used up.
const RUN_MAX: u64 = 900 * SECOND;
/// More happens at no instant.
const EVENTS_MAX: u32 = 100_000;
/// A silent agent is lost after 3 s and a heartbeat of ours.
const LOSS_MAX: u64 = 3_600 * MS;

/// Something that happens at an instant.
pub enum Event {
    Launch(usize, &'static str),
    ToAgent(usize, AgentInput),
    ToController(ControllerInput),
    Load(usize, u64, Step),
    WakeAgent(usize),
    WakeController,
    ResumeAgent(usize),
    ResumeController,
    Fault(Fault),
}

/// What arrives at the controller.
pub enum ControllerInput {
    Message(usize, Box<FromAgent>),
    Broken(usize),
    Ended(usize, String),
    Interrupt,
    Wake,
}

pub struct Fleet<'a> {
    random: Random,
    coordinator: &'a mut Coordinator,
    process: Process<ControllerInput>,
    controller: Controller,
    hosts: Vec<Host>,
    now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    queued: u64,
}

impl<'a> Fleet<'a> {
    pub fn new(mut random: Random, coordinator: &'a mut Coordinator, agents: usize) -> Self {
        // Bytes are slow to make: one run of eight has them.
        let framed = random.percent(12);
        let hosts = (0..agents).map(|_| Host::any(&mut random, framed)).collect();
        let process = Process::new(Clock::any(&mut random));
        let agents_min = random.between(1, agents as u64) as usize;
        let settings = Settings {
            wait: Nanos::from_secs(10),
            answer: Nanos::from_secs(20),
            report: Nanos::from_secs(10),
            exchanges: random.between(1, 16) as u32,
            ..Settings::new(VERSION, agents_min)
        };
        let controller = Controller::new(agents, settings, process.clock.shows(0));
        let (now, queue, queued) = (0, BTreeMap::new(), 0);
        Self { random, coordinator, process, controller, hosts, now, queue, queued }
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub fn hosts(&mut self) -> &mut [Host] {
        &mut self.hosts
    }

    pub fn schedule(&mut self, at: u64, event: Event) {
        self.queued += 1;
        self.queue.insert((at.max(self.now), self.queued), event);
    }

    /// Runs until every process has ended.
    pub fn run(mut self) {
        self.wake_controller();
        let mut events = 0;
        while let Some(((at, _), event)) = self.queue.pop_first() {
            events = if at > self.now { 0 } else { events + 1 };
            assert!(events < EVENTS_MAX, "time stands still");
            self.now = at;
            assert!(self.now < RUN_MAX, "the run does not end");
            self.happen(event);
        }
        assert!(!self.process.is_alive, "the controller waits for nothing");
        for (agent, host) in self.hosts.iter().enumerate() {
            assert!(!host.process.is_alive || host.agent.is_none(), "agent {agent} is left");
            assert!(host.runs.iter().all(|run| run.end.is_some()), "load of agent {agent} is left");
            let cut = host.runs.iter().filter(|run| !run.is_whole);
            cut.for_each(|_| self.coordinator.count("loads cut"));
        }
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Launch(agent, version) => {
                let effects = self.hosts[agent].launch(&mut self.random, now, version);
                self.follow(agent, effects);
            }
            Event::ToAgent(agent, input) => self.reach_agent(agent, input),
            Event::ToController(input) => self.reach_controller(input),
            Event::Load(agent, id, step) => self.reach_agent(agent, AgentInput::Load(id, step)),
            Event::WakeAgent(agent) => {
                if self.hosts[agent].process.wakes_at.take_if(|at| *at == now).is_some() {
                    self.reach_agent(agent, AgentInput::Wake);
                }
            }
            Event::WakeController => {
                if self.process.wakes_at.take_if(|at| *at == now).is_some() {
                    self.reach_controller(ControllerInput::Wake);
                }
            }
            Event::ResumeAgent(agent) => self.resume_agent(agent),
            Event::ResumeController => self.resume_controller(),
            Event::Fault(fault) => self.fault(fault),
        }
    }
}

/// Agents.
impl Fleet<'_> {
    fn reach_agent(&mut self, agent: usize, input: AgentInput) {
        let host = &mut self.hosts[agent];
        let Some(input) = host.process.takes(self.now, input) else { return };
        self.agent_handles(agent, input);
    }

    fn agent_handles(&mut self, agent: usize, input: AgentInput) {
        let host = &mut self.hosts[agent];
        if !host.process.is_alive || host.agent.is_none() {
            return;
        }
        let effects = host.handle(&mut self.random, self.now, input);
        self.follow(agent, effects);
    }

    fn follow(&mut self, agent: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.send_to_controller(agent, message),
                Effect::Later(after, id, step) => {
                    self.schedule(self.now + after, Event::Load(agent, id, step));
                }
                Effect::Exits => self.launcher_reports(agent, "exit status: 0"),
            }
        }
        let host = &mut self.hosts[agent];
        let Some(at) = host.next_wake().filter(|_| host.process.is_alive) else { return };
        let at = at.max(self.now);
        if host.process.wakes_at.is_none_or(|scheduled| at < scheduled) {
            host.process.wakes_at = Some(at);
            self.schedule(at, Event::WakeAgent(agent));
        }
    }

    fn send_to_controller(&mut self, agent: usize, message: FromAgent) {
        let up = &mut self.hosts[agent].up;
        let Some(at) = up.arrival(&mut self.random, self.now) else { return };
        let message = Box::new(up.carried(&mut self.random, message));
        self.schedule(at, Event::ToController(ControllerInput::Message(agent, message)));
    }

    /// The launcher reports that an agent's process has ended, if it can.
    fn launcher_reports(&mut self, agent: usize, why: &str) {
        let host = &mut self.hosts[agent];
        if host.ends_unseen {
            return;
        }
        let Some(at) = host.up.arrival(&mut self.random, self.now) else { return };
        self.schedule(at, Event::ToController(ControllerInput::Ended(agent, why.to_owned())));
    }

    fn resume_agent(&mut self, agent: usize) {
        let process = &mut self.hosts[agent].process;
        if self.now < process.stopped_until || !process.is_alive {
            return;
        }
        process.resumed_at = self.now;
        if self.random.percent(50) {
            self.agent_handles(agent, AgentInput::Wake);
        }
        while let Some(input) = self.hosts[agent].process.inbox.pop_front() {
            self.agent_handles(agent, input);
        }
        self.agent_handles(agent, AgentInput::Wake);
    }
}

/// The controller.
impl Fleet<'_> {
    fn reach_controller(&mut self, input: ControllerInput) {
        if let Some(input) = self.process.takes(self.now, input) {
            self.controller_handles(input);
        }
    }

    fn controller_handles(&mut self, input: ControllerInput) {
        if !self.process.is_alive {
            return;
        }
        let input = match input {
            ControllerInput::Message(agent, message) => {
                self.hosts[agent].was_heard_at = self.now;
                Input::Message(AgentId(agent), *message)
            }
            ControllerInput::Broken(agent) => {
                let first = b"Welcome".to_vec();
                Input::Broken(AgentId(agent), FrameError::NotAFrame { first, frames: 0 })
            }
            ControllerInput::Ended(agent, why) => Input::Ended(AgentId(agent), why),
            ControllerInput::Interrupt => Input::Command(self.coordinator.interrupt()),
            ControllerInput::Wake => Input::Tick,
        };
        self.give(input);
        for AgentId(agent) in self.controller.living() {
            let heard = self.hosts[agent].was_heard_at;
            let limit = self.process.awake_limit(heard, LOSS_MAX, 600 * MS);
            assert!(self.now <= limit, "agent {agent} is silent, and not lost");
        }
        if self.coordinator.is_finished {
            self.controller_ends(true);
        } else {
            self.wake_controller();
        }
    }

    fn give(&mut self, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            self.controller.handle(self.process.clock.shows(self.now), input);
            let mut next_step = NextStep::Nothing;
            while let Some(action) = self.controller.next_action() {
                match action {
                    Action::Send(agent, message) => self.send(agent, message),
                    Action::SendAll(agents, message) => {
                        agents.into_iter().for_each(|agent| self.send(agent, message.clone()));
                    }
                    Action::End(agent) => self.close_input(agent.0),
                    Action::Notify(news) => {
                        if let requested @ (NextStep::Plan | NextStep::Point | NextStep::Finish) =
                            self.hear(news)
                        {
                            next_step = requested;
                        }
                    }
                }
            }
            let living = self.controller.living();
            next = self.coordinator.command(next_step, &living).map(Input::Command);
        }
    }

    fn hear(&mut self, news: News) -> NextStep {
        if let News::AgentLost { agent: AgentId(lost), why: Loss::Silent(_) } = news {
            let waits = |input: &ControllerInput| matches!(input, ControllerInput::Message(of, _) if *of == lost);
            assert!(!self.process.inbox.iter().any(waits), "it was not silent, it was not heard");
        }
        let (hosts, clock) = (&self.hosts, &self.process.clock);
        self.coordinator.hear(news, |ended, news| {
            if let News::PointFinished(reports) = news {
                check::finished(ended, reports, hosts, clock);
            }
        })
    }

    fn send(&mut self, agent: AgentId, message: ToAgent) {
        let down = &mut self.hosts[agent.0].down;
        let Some(at) = down.arrival(&mut self.random, self.now) else { return };
        let message = down.carried(&mut self.random, message);
        self.schedule(at, Event::ToAgent(agent.0, AgentInput::Message(message)));
    }

    fn close_input(&mut self, agent: usize) {
        let Some(at) = self.hosts[agent].down.arrival(&mut self.random, self.now) else { return };
        self.schedule(at, Event::ToAgent(agent, AgentInput::InputEnded));
    }

    /// The controller's process ends, and with it the pipes to its agents, if anyone sees it.
    fn controller_ends(&mut self, closes_streams: bool) {
        self.process.is_alive = false;
        for agent in 0..self.hosts.len() {
            if closes_streams {
                self.close_input(agent);
            }
            self.hosts[agent].down.is_cut = true;
        }
    }

    fn wake_controller(&mut self) {
        let Some(deadline) = self.controller.next_deadline() else { return };
        let at = self.process.clock.when(deadline).max(self.now);
        if self.process.wakes_at.is_none_or(|scheduled| at < scheduled) {
            self.process.wakes_at = Some(at);
            self.schedule(at, Event::WakeController);
        }
    }

    fn resume_controller(&mut self) {
        if self.now < self.process.stopped_until || !self.process.is_alive {
            return;
        }
        self.process.resumed_at = self.now;
        if self.random.percent(50) {
            self.controller_handles(ControllerInput::Wake);
        }
        while let Some(input) = self.process.inbox.pop_front() {
            self.controller_handles(input);
        }
        self.controller_handles(ControllerInput::Wake);
    }
}

/// Faults.
impl Fleet<'_> {
    fn fault(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Kill { agent, is_reported } => {
                let host = &mut self.hosts[agent];
                if !host.process.is_alive || host.agent.is_none() {
                    return;
                }
                host.dies(now);
                host.ends_unseen |= !is_reported;
                self.launcher_reports(agent, "signal: 9");
            }
            Fault::Stop { agent, until } => {
                self.hosts[agent].process.stopped_until = until;
                self.schedule(until, Event::ResumeAgent(agent));
            }
            Fault::Cut { agent } => {
                let host = &mut self.hosts[agent];
                (host.down.is_cut, host.up.is_cut) = (true, true);
                self.lose_what_travels(agent);
            }
            Fault::Freeze { agent, until } => {
                let host = &mut self.hosts[agent];
                (host.down.frozen_until, host.up.frozen_until) = (until, until);
            }
            Fault::StopController { until } => {
                self.process.stopped_until = until;
                self.schedule(until, Event::ResumeController);
            }
            Fault::KillController { closes_streams } if self.process.is_alive => {
                self.controller_ends(closes_streams);
            }
            Fault::KillController { .. } => {}
            Fault::Interrupt => self.reach_controller(ControllerInput::Interrupt),
        }
    }

    /// What is in transit on a cut link does not arrive.
    fn lose_what_travels(&mut self, of: usize) {
        self.queue.retain(|_, event| match event {
            Event::ToAgent(agent, _)
            | Event::ToController(
                ControllerInput::Message(agent, _)
                | ControllerInput::Ended(agent, _)
                | ControllerInput::Broken(agent),
            ) => *agent != of,
            _ => true,
        });
    }
}
