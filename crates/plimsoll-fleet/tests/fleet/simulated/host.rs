//! An agent's host: the agent under test, a model of its load, and the pipes to it.

use plimsoll_fleet::agent::{Action, Agent, AgentEnd, Input, LoadEvent};
use plimsoll_fleet::message::{FromAgent, Greeting, ToAgent};
use plimsoll_fleet::pulse::Pulse;
use plimsoll_model::assignment::Assignment;
use plimsoll_model::units::Nanos;

use super::clock::{Clock, MS, SECOND};
use super::link::Pipe;
use super::process::Process;
use super::random::Random;
use super::work;

/// What arrives at an agent.
pub enum AgentInput {
    Message(ToAgent),
    InputEnded,
    Load(u64, Step),
    Wake,
}

/// What happens to the load, and to which one.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Planned { is_refused: bool },
    Ready { is_refused: bool },
    Second(u32),
    Ended { is_whole: bool },
}

/// A load that ran.
pub struct LoadRun {
    pub attempt: u64,
    /// True instants.
    pub start: u64,
    pub end: Option<u64>,
    pub is_whole: bool,
}

/// The load point that the agent works on.
struct Load {
    assignment: Assignment,
    starts_at: Option<Nanos>,
    is_stopped: bool,
}

/// What follows from what an agent did.
pub enum Effect {
    Send(FromAgent),
    /// Something of a load happens after so long.
    Later(u64, u64, Step),
    Exits,
}

pub struct Host {
    pub process: Process<AgentInput>,
    pub agent: Option<Agent>,
    pub down: Pipe,
    pub up: Pipe,
    /// Its end is not reported by the launcher.
    pub ends_unseen: bool,
    /// When something came from the controller last.
    pub heard_at: u64,
    /// When its input ended.
    pub input_ended_at: Option<u64>,
    /// When the controller heard of it last.
    pub was_heard_at: u64,
    pub runs: Vec<LoadRun>,
    load: Option<Load>,
    load_id: u64,
    /// How often it refuses a plan or a load point, in percent.
    pub refuses_percent: u64,
}

impl Host {
    pub fn any(random: &mut Random, framed: bool) -> Self {
        Self {
            process: Process::new(Clock::any(random)),
            agent: None,
            down: Pipe::any(random, framed),
            up: Pipe::any(random, framed),
            ends_unseen: false,
            heard_at: 0,
            input_ended_at: None,
            was_heard_at: 0,
            runs: Vec::new(),
            load: None,
            load_id: 0,
            refuses_percent: 0,
        }
    }

    /// Its process starts.
    pub fn launch(&mut self, random: &mut Random, now: u64, version: &str) -> Vec<Effect> {
        self.heard_at = now;
        let greeting = Greeting { version: version.to_owned(), ..Greeting::default() };
        self.agent = Some(Agent::new(greeting, Pulse::default(), self.process.clock.shows(now)));
        self.effects(random, now)
    }

    /// Takes in an input while the process runs.
    pub fn handle(&mut self, random: &mut Random, now: u64, input: AgentInput) -> Vec<Effect> {
        let input = match input {
            AgentInput::Message(message) => {
                self.heard_at = now;
                Input::Message(message)
            }
            AgentInput::InputEnded => {
                self.input_ended_at.get_or_insert(now);
                Input::InputEnded
            }
            AgentInput::Wake => Input::Tick,
            AgentInput::Load(id, step) if id == self.load_id => {
                return self.step(random, now, step);
            }
            AgentInput::Load(..) => return Vec::new(),
        };
        self.give(now, input);
        self.effects(random, now)
    }

    pub fn next_wake(&self) -> Option<u64> {
        self.agent.as_ref()?.next_deadline().map(|at| self.process.clock.when(at))
    }

    /// The process is gone.
    pub fn dies(&mut self, now: u64) {
        self.process.is_alive = false;
        self.process.inbox.clear();
        self.end_run(now, false);
    }

    fn give(&mut self, now: u64, input: Input) {
        let shows = self.process.clock.shows(now);
        if let Some(agent) = &mut self.agent {
            agent.handle(shows, input);
        }
    }

    fn step(&mut self, random: &mut Random, now: u64, step: Step) -> Vec<Effect> {
        let outcome = |is_refused| match is_refused {
            true => Err("cannot".to_owned()),
            false => Ok(()),
        };
        match step {
            Step::Planned { is_refused } => {
                self.give(
                    now,
                    Input::Load(LoadEvent::Planned(outcome(is_refused).map(|()| Vec::new()))),
                );
            }
            Step::Ready { is_refused } => {
                self.load.take_if(|_| is_refused);
                self.give(now, Input::Load(LoadEvent::Ready(outcome(is_refused))));
            }
            Step::Second(second) => {
                let totals = plimsoll_fleet::message::SecondTotals { second, ..<_>::default() };
                self.give(now, Input::Load(LoadEvent::Second(Box::new(totals))));
            }
            Step::Ended { is_whole } => self.end_load(now, is_whole),
        }
        self.effects(random, now)
    }

    /// The load ends by itself, or because it was stopped.
    fn end_load(&mut self, now: u64, is_whole: bool) {
        self.end_run(now, is_whole);
        let Some(load) = self.load.take() else { return };
        let Some(started) = load.starts_at else { return };
        let start = self.process.clock.when(started);
        let totals = match is_whole {
            true => work::totals(&load.assignment),
            false => work::partial_totals(&load.assignment),
        };
        let report = work::report(started, totals, self.process.clock.stepped_ns(start, now));
        self.give(now, Input::Load(LoadEvent::Slices(work::slices(&load.assignment))));
        self.give(now, Input::Load(LoadEvent::Finished(Box::new(report))));
    }

    /// Load must not go on without a controller: 3 s of silence and one, one after the end of the
    /// stream. A process that was stopped meanwhile made no load, and has a second after it.
    fn end_run(&mut self, now: u64, is_whole: bool) {
        let Some(run) = self.runs.last_mut().filter(|run| run.end.is_none()) else { return };
        (run.end, run.is_whole) = (Some(now), is_whole);
        if now <= run.start || !self.process.is_alive {
            return;
        }
        let silence = self.process.awake_limit(self.heard_at, 4 * SECOND, SECOND);
        assert!(
            now <= silence,
            "load went on {} ms after the last word",
            (now - self.heard_at) / MS
        );
        if let Some(ended) = self.input_ended_at {
            let limit = self.process.awake_limit(ended, SECOND, SECOND);
            assert!(now <= limit, "load went on {} ms after the end", (now - ended) / MS);
        }
    }

    fn effects(&mut self, random: &mut Random, now: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(action) = self.agent.as_mut().and_then(Agent::next_action) {
            match action {
                Action::Send(message) => effects.push(Effect::Send(message)),
                Action::Plan(_) => {
                    let is_refused = random.percent(self.refuses_percent);
                    let after = random.between(0, 200 * MS);
                    effects.push(self.later(after, Step::Planned { is_refused }));
                }
                Action::Prepare(assignment) => {
                    effects.extend(self.prepare(random, *assignment));
                }
                Action::Start { at } => effects.extend(self.start(now, at)),
                Action::StopLoad => effects.extend(self.stop_load(random)),
                Action::Exit(end) => {
                    let is_stopped = self.load.as_ref().is_none_or(|load| load.is_stopped);
                    assert!(is_stopped, "it ends while its load runs");
                    let waits = |input: &AgentInput| matches!(input, AgentInput::Message(_));
                    let unheard = self.process.inbox.iter().any(waits);
                    assert!(
                        !(unheard && matches!(end, AgentEnd::Silence(_))),
                        "the controller was not silent, it was not heard"
                    );
                    // The load was stopped and ends within milliseconds.
                    self.end_run(now + 20 * MS, false);
                    self.process.is_alive = false;
                    effects.push(Effect::Exits);
                }
            }
        }
        effects
    }

    fn later(&self, after: u64, step: Step) -> Effect {
        Effect::Later(after, self.load_id, step)
    }

    fn prepare(&mut self, random: &mut Random, assignment: Assignment) -> Option<Effect> {
        assert!(
            self.runs.iter().all(|run| run.end.is_some()),
            "a load point began while another ran"
        );
        self.load = Some(Load { assignment, starts_at: None, is_stopped: false });
        self.load_id += 1;
        let is_refused = random.percent(self.refuses_percent);
        let after = match random.between(0, 199) {
            // It hangs, as a mount of a dead server does.
            0 if self.refuses_percent > 0 => return None,
            1..4 => random.between(0, 8 * SECOND),
            _ => random.between(0, 500 * MS),
        };
        Some(self.later(after, Step::Ready { is_refused }))
    }

    fn start(&mut self, now: u64, at: Nanos) -> Vec<Effect> {
        let Some(load) = &mut self.load else { panic!("a start of nothing") };
        load.starts_at = Some(at);
        let attempt = load.assignment.nonce;
        let phases = load.assignment.phases;
        let start = self.process.clock.when(at);
        self.runs.push(LoadRun { attempt, start, end: None, is_whole: false });
        let length = (phases.load_end() + phases.drain_ns).0;
        let from = start.saturating_sub(now);
        let seconds = (1..=length / SECOND).map(|n| (n * SECOND, Step::Second(n as u32 - 1)));
        let end = (length, Step::Ended { is_whole: true });
        seconds.chain([end]).map(|(after, step)| self.later(from + after, step)).collect()
    }

    fn stop_load(&mut self, random: &mut Random) -> Option<Effect> {
        let load = self.load.as_mut()?;
        if std::mem::replace(&mut load.is_stopped, true) || load.starts_at.is_none() {
            return None;
        }
        // Whatever the load would have done is over.
        self.load_id += 1;
        Some(self.later(random.between(0, 20 * MS), Step::Ended { is_whole: false }))
    }
}
