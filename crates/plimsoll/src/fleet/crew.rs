//! The agents of a run: their processes between the controller's state machine and the coordinator.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_fleet::clock::Reading;
use plimsoll_fleet::controller::{
    Action, AgentId, Command, Controller, Input, News, Settings,
};
use plimsoll_fleet::frame::{Decoder, encode};
use plimsoll_fleet::launcher::child::{AgentProcess, ChildEvent};
use plimsoll_fleet::launcher::command::LaunchCommand;
use plimsoll_fleet::launcher::explain::explain;
use plimsoll_fleet::launcher::gate::StartGate;
use plimsoll_fleet::launcher::spec::{self, AgentSpec, PodQuery};
use plimsoll_fleet::message::{Greeting, PlanOrder, ToAgent};
use plimsoll_model::event::AgentsAsked;
use plimsoll_model::units::Nanos;

use crate::agent::boot_id;
use crate::exit::Failure;
use crate::signals::Signals;
use crate::terminal::{Live, note};

use super::seats::{AgentSeat, SeatWish, seats};

/// Longest wait for something to happen: the live line is to go on.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The agents of a run.
pub(crate) struct Fleet {
    controller: Controller,
    members: Vec<Member>,
    gate: StartGate,
    program: PathBuf,
    events: Sender<(AgentId, Nanos, ChildEvent)>,
    heard: Receiver<(AgentId, Nanos, ChildEvent)>,
    news: VecDeque<News>,
    /// Processes that are being ended.
    endings: Vec<JoinHandle<()>>,
}

/// An agent.
pub(crate) struct Member {
    pub spec: AgentSpec,
    /// `None` until it has greeted.
    pub greeting: Option<Box<Greeting>>,
    process: Option<AgentProcess>,
    decoder: Decoder,
    /// It has greeted, and was not lost.
    is_there: bool,
    /// The first reading of its clock.
    pub clock: Option<Reading>,
    /// What it may use.
    pub seat: AgentSeat,
}

impl Fleet {
    /// Starts the agents and waits until they are there.
    pub(crate) fn launch(
        asked: &AgentsAsked,
        signals: &Signals,
        live: &mut Live,
    ) -> Result<Self, Failure> {
        let specs = specs(asked)?;
        let wanted = specs.len();
        let agents_min = asked.min.map_or(wanted, |min| (min as usize).min(wanted));
        let settings = Settings {
            wait: asked.wait,
            ..Settings::new(env!("CARGO_PKG_VERSION"), agents_min)
        };
        let program = std::env::current_exe()
            .map_err(|e| Failure::unusable(format!("cannot find this program's file: {e}")))?;
        let (events, heard) = channel();
        let mut fleet = Self {
            controller: Controller::new(wanted, settings, clock::monotonic()),
            gate: StartGate::new(&specs),
            members: specs.into_iter().map(Member::new).collect(),
            program,
            events,
            heard,
            news: VecDeque::new(),
            endings: Vec::new(),
        };
        fleet.start_more();
        fleet.gather(signals, live)?;
        Ok(fleet)
    }

    fn gather(&mut self, signals: &Signals, live: &mut Live) -> Result<(), Failure> {
        loop {
            if signals.is_asked() {
                return Err(Failure::interrupted("while agents were started"));
            }
            match self.next() {
                Some(News::Greeted(id, greeting)) => {
                    let member = &mut self.members[id.0];
                    (member.greeting, member.is_there) = (Some(greeting), true);
                    self.gate.settle(id.0);
                    self.start_more();
                }
                Some(News::Clock(id, reading)) => self.members[id.0].clock = Some(reading),
                Some(News::AgentLost { agent, why }) => {
                    self.lose(agent);
                    live.clear();
                    note(&format!("agent {}: {why}", self.members[agent.0].spec.name));
                }
                Some(News::Gathered) => return Ok(()),
                Some(News::TooFew(missing)) => return Err(self.too_few(&missing)),
                _ => {}
            }
            let there = self.members.iter().filter(|member| member.is_there).count();
            live.passing(|| format!("agents: {there} of {} are there", self.members.len()));
        }
    }

    fn too_few(&self, missing: &[(AgentId, plimsoll_fleet::controller::Loss)]) -> Failure {
        let lines: Vec<String> = missing
            .iter()
            .map(|(id, why)| format!("agent {}: {why}", self.members[id.0].spec.name))
            .collect();
        Failure::unusable(format!(
            "{} of {} agents are not there\n{}",
            lines.len(),
            self.members.len(),
            lines.join("\n")
        ))
    }

    /// Has the agents make their workloads.
    pub(crate) fn plan(&mut self, order: PlanOrder, signals: &Signals) -> Result<(), Failure> {
        self.command(Command::Plan(Box::new(order)));
        loop {
            if signals.is_asked() {
                return Err(Failure::interrupted("while agents planned"));
            }
            match self.next() {
                Some(News::Planned) => return Ok(()),
                Some(News::PlanFailed(all)) => {
                    let lines: Vec<String> = all
                        .iter()
                        .map(|(id, why)| format!("agent {}: {why}", self.members[id.0].spec.name))
                        .collect();
                    return Err(Failure::unusable(lines.join("\n")));
                }
                Some(News::AgentLost { agent, .. }) => self.lose(agent),
                _ => {}
            }
        }
    }

    /// Asks the controller for something; what comes of it is in [`Self::next`].
    pub(crate) fn command(&mut self, command: Command) {
        self.controller.handle(clock::monotonic(), Input::Command(command));
        self.act();
    }

    /// The next news, or `None` after a short wait.
    pub(crate) fn next(&mut self) -> Option<News> {
        if self.news.is_empty() {
            self.turn();
        }
        self.news.pop_front()
    }

    /// Agents that are there, in their order.
    pub(crate) fn living(&self) -> impl Iterator<Item = (AgentId, &Member)> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, member)| member.is_there).map(|(index, it)| (AgentId(index), it))
    }

    /// Divides the cores of the agents' hosts among them. `workers` is what the user wants of each,
    /// `taken` are cores that others need on the host with this boot id.
    pub(crate) fn take_seats(&mut self, workers: Option<u32>, here: (&str, &[u32])) {
        let there: Vec<usize> = self.living().map(|(id, _)| id.0).collect();
        let wish = |index: &usize| {
            let Member { spec, greeting, .. } = &self.members[*index];
            Some(SeatWish {
                greeting: greeting.as_ref()?,
                settings: &spec.settings,
                workers: spec.settings.workers.or(workers),
            })
        };
        let wishes: Vec<SeatWish<'_>> = there.iter().filter_map(wish).collect();
        let seats = seats(&wishes, here);
        for (index, seat) in there.into_iter().zip(seats) {
            self.members[index].seat = seat;
        }
    }

    /// How many hosts the agents run on.
    pub(crate) fn hosts(&self) -> usize {
        let greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        greetings.map(|greeting| greeting.boot_id.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// The same in words, for the table of the method.
    pub(crate) fn hosts_text(&self, server_is_here: bool) -> String {
        let own = boot_id();
        let mut greetings = self.living().filter_map(|(_, member)| member.greeting.as_ref());
        let servers = server_is_here && greetings.any(|greeting| greeting.boot_id == own);
        let (agents, hosts) = (self.living().count(), self.hosts());
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let at = if servers { ", the server's own among them" } else { "" };
        format!("{agents} generator{} on {hosts} host{}{at}", plural(agents), plural(hosts))
    }

    /// All that were asked for.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// An agent is gone.
    pub(crate) fn lose(&mut self, agent: AgentId) {
        self.members[agent.0].is_there = false;
        self.gate.settle(agent.0);
        self.start_more();
    }

    fn start_more(&mut self) {
        for index in self.gate.start() {
            let id = AgentId(index);
            let command = LaunchCommand::agent(&self.members[index].spec, &self.program);
            let events = self.events.clone();
            let sink = move |event| {
                let _ = events.send((id, clock::monotonic(), event));
            };
            match AgentProcess::start(&command, Box::new(sink)) {
                Ok(process) => self.members[index].process = Some(process),
                Err(error) => {
                    let input = Input::Ended(id, error.to_string());
                    self.controller.handle(clock::monotonic(), input);
                }
            }
        }
        self.act();
    }

    /// Waits for events, for a short while, and follows what comes of them.
    fn turn(&mut self) {
        let now = clock::monotonic();
        let until = self.controller.next_deadline().map(|at| at.saturating_sub(now));
        let wait = until.map_or(LOOK_UP, |until| Duration::from_nanos(until.0).min(LOOK_UP));
        match self.heard.recv_timeout(wait) {
            Ok(event) => self.take(event),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        while let Ok(event) = self.heard.try_recv() {
            self.take(event);
        }
        self.controller.handle(clock::monotonic(), Input::Tick);
        self.act();
    }

    fn take(&mut self, (id, at, event): (AgentId, Nanos, ChildEvent)) {
        let member = &mut self.members[id.0];
        match event {
            ChildEvent::Line(line) => note(&format!("agent {}: {line}", member.spec.name)),
            ChildEvent::Ended(end) => {
                let why = explain(&member.spec.launcher, &end);
                self.controller.handle(at, Input::Ended(id, why));
            }
            ChildEvent::Bytes(bytes) => {
                member.decoder.push(&bytes);
                loop {
                    let input = match member.decoder.next() {
                        Ok(Some(message)) => Input::Said(id, message),
                        Ok(None) => Input::Heard(id),
                        Err(error) => Input::Broken(id, error),
                    };
                    let more = matches!(input, Input::Said(..));
                    self.controller.handle(at, input);
                    if !more {
                        break;
                    }
                }
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.controller.next_action() {
            match action {
                Action::Tell(news) => self.news.push_back(news),
                Action::Send(id, message) => self.send(&[id], &message),
                Action::SendAll(ids, message) => self.send(&ids, &message),
                Action::End(id) => {
                    if let Some(mut process) = self.members[id.0].process.take() {
                        process.close();
                        self.endings.extend(
                            thread::Builder::new().spawn(move || process.end()),
                        );
                    }
                }
            }
        }
    }

    /// Encoded once. Who cannot be told is as good as gone.
    fn send(&mut self, ids: &[AgentId], message: &ToAgent) {
        let frame = encode(message).map(Arc::<[u8]>::from).map_err(|error| error.to_string());
        for &id in ids {
            let Some(process) = &self.members[id.0].process else { continue };
            let sent = frame.clone().and_then(|frame| {
                process.send(frame).map_err(|error| error.to_string())
            });
            if let Err(why) = sent {
                self.controller.handle(clock::monotonic(), Input::Ended(id, why));
            }
        }
    }

    /// Sends all agents away.
    fn finish(&mut self) {
        self.command(Command::Finish);
        while self.members.iter().any(|member| member.process.is_some()) {
            match self.next() {
                Some(News::Finished) => break,
                Some(_) => {}
                None if self.controller.next_deadline().is_none() => break,
                None => {}
            }
        }
        for member in &mut self.members {
            member.process = None;
        }
        for ending in self.endings.drain(..) {
            let _ = ending.join();
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Member {
    /// Name of its host, as far as it is known.
    pub(crate) fn host(&self) -> &str {
        self.greeting.as_ref().map_or("an unknown host", |greeting| &greeting.host)
    }

    fn new(spec: AgentSpec) -> Self {
        let decoder = Decoder::default();
        Self { spec, greeting: None, process: None, decoder, is_there: false, clock: None, seat: AgentSeat::default() }
    }
}

/// The agents that were asked for; pods are asked for by name.
fn specs(asked: &AgentsAsked) -> Result<Vec<AgentSpec>, Failure> {
    let read = |path: &Path| std::fs::read_to_string(path);
    let wanted = spec::parse(&asked.at, &read).map_err(|e| Failure::wrong(e.to_string()))?;
    let mut agents = wanted.agents;
    for query in &wanted.pods {
        agents.extend(pods(query)?);
    }
    spec::name_apart(&mut agents);
    Ok(agents)
}

fn pods(query: &PodQuery) -> Result<Vec<AgentSpec>, Failure> {
    let output = query.command().command().stdin(Stdio::null()).output().map_err(|e| {
        Failure::unusable(format!("cannot run kubectl: {e}; install it, or give its folder in PATH"))
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::unusable(format!("kubectl cannot list the pods: {words}")));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    query.agents(&printed).map_err(|e| Failure::unusable(e.to_string()))
}
