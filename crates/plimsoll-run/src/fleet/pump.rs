//! The thread that drives the controller's state machine. It reads from agents and sends them
//! heartbeats, whatever the coordinator is doing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_fleet::controller::{Action, AgentId, Command, Controller, Input, News};
use plimsoll_fleet::frame::{Decoder, encode};
use plimsoll_fleet::launcher::child::{AgentProcess, ChildEvent, Sink};
use plimsoll_fleet::launcher::command::LaunchCommand;
use plimsoll_fleet::launcher::explain::{explain, explain_sent};
use plimsoll_fleet::launcher::gate::StartGate;
use plimsoll_fleet::launcher::spec::AgentSpec;
use plimsoll_fleet::message::{FromAgent, ToAgent};
use plimsoll_model::units::Nanos;

use super::deploy::Delivery;

/// Longest wait for an event.
const LOOK_UP: Duration = Duration::from_millis(200);

/// An event for the pump.
pub(super) enum Event {
    /// An event of an agent's process, and when it happened.
    Child(AgentId, Nanos, ChildEvent),
    /// A command of the coordinator.
    Command(Command),
    /// The next agent may start.
    Start,
}

/// The controller with the processes of its agents.
pub(super) struct Pump {
    pub controller: Controller,
    pub links: Vec<Link>,
    pub gate: StartGate,
    /// Agents that may start, one per event: between two starts, connected agents are answered.
    pub starting: VecDeque<usize>,
    /// This program's file.
    pub program: PathBuf,
    pub events: Sender<Event>,
    pub news: Sender<News>,
    /// Threads that end processes.
    pub endings: Vec<JoinHandle<()>>,
    /// Writes a line for the user.
    pub note: fn(&str),
}

/// An agent's process.
pub(super) struct Link {
    spec: AgentSpec,
    delivery: Delivery,
    process: Option<AgentProcess>,
    decoder: Decoder,
}

impl Link {
    pub(super) fn new(spec: &AgentSpec) -> Self {
        let (delivery, decoder) = (Delivery::NotRequested, Decoder::default());
        Self { spec: spec.clone(), delivery, process: None, decoder }
    }

    /// Sets what was sent to it.
    pub(super) fn with(self, delivery: Delivery) -> Self {
        Self { delivery, ..self }
    }

    /// Starts the agent's process; returns an error text if there is none.
    fn start(&mut self, program: &Path, sink: Sink) -> Result<(), String> {
        if let Delivery::Failed(why) = &self.delivery {
            return Err(why.clone());
        }
        let command = LaunchCommand::agent(&self.spec, program);
        let process = AgentProcess::start(&command, sink).map_err(|error| error.to_string())?;
        self.process = Some(process);
        Ok(())
    }
}

impl Pump {
    /// Starts the agents, and serves the coordinator until it has stopped all of them.
    pub(super) fn run(mut self, heard: &Receiver<Event>) {
        self.start_more();
        self.act();
        while !self.controller.has_finished() {
            match heard.recv_timeout(self.wait()) {
                Ok(Event::Child(id, at, event)) => self.take(id, at, event),
                Ok(Event::Start) => self.start(),
                Ok(Event::Command(command)) => {
                    self.controller.handle(clock::monotonic(), Input::Command(command));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.controller.handle(clock::monotonic(), Input::Tick);
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.act();
        }
        for link in &mut self.links {
            link.process = None;
        }
        for ending in self.endings {
            let _ = ending.join();
        }
    }

    fn wait(&self) -> Duration {
        let left = |deadline: Nanos| deadline.saturating_sub(clock::monotonic());
        let deadline = self.controller.next_deadline();
        deadline.map_or(LOOK_UP, |at| Duration::from_nanos(left(at).0).min(LOOK_UP))
    }

    fn start_more(&mut self) {
        for index in self.gate.start() {
            self.starting.push_back(index);
            // Returns to this loop as an event.
            let _ = self.events.send(Event::Start);
        }
    }

    /// Starts the next agent.
    fn start(&mut self) {
        let Some(index) = self.starting.pop_front() else { return };
        let id = AgentId(index);
        let events = self.events.clone();
        let sink = move |event| {
            let _ = events.send(Event::Child(id, clock::monotonic(), event));
        };
        let link = &mut self.links[index];
        if let Delivery::Sent { sha256 } = &link.delivery {
            self.controller.expect_program(id, sha256);
        }
        if let Err(why) = link.start(&self.program, Box::new(sink)) {
            self.controller.handle(clock::monotonic(), Input::Ended(id, why));
        }
    }

    fn take(&mut self, id: AgentId, at: Nanos, event: ChildEvent) {
        let link = &mut self.links[id.0];
        match event {
            ChildEvent::Line(line) => (self.note)(&format!("agent {}: {line}", link.spec.name)),
            ChildEvent::Ended(end) => {
                let why = match link.delivery {
                    Delivery::Sent { .. } => explain_sent(&link.spec.launcher, &end),
                    _ => explain(&link.spec.launcher, &end),
                };
                self.controller.handle(at, Input::Ended(id, why));
            }
            ChildEvent::Bytes(bytes) => {
                link.decoder.push(&bytes);
                loop {
                    let input = match link.decoder.next() {
                        Ok(Some(message)) => Input::Message(id, message),
                        Ok(None) => Input::Heard(id),
                        Err(error) => Input::Broken(id, error),
                    };
                    let more = matches!(input, Input::Message(..));
                    // An agent that greets is silent until it is answered, which happens now.
                    let at = match &input {
                        Input::Message(_, FromAgent::Hello(_)) => clock::monotonic(),
                        _ => at,
                    };
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
                Action::Notify(news) => {
                    let settled = match &news {
                        News::Greeted(id, _) | News::AgentLost { agent: id, .. } => Some(*id),
                        _ => None,
                    };
                    // Nothing receives the news of the end. News keep their order: starting another
                    // agent acts on what follows, such as the loss of the load point.
                    let _ = self.news.send(news);
                    if let Some(id) = settled {
                        self.gate.settle(id.0);
                        self.start_more();
                    }
                }
                Action::Send(id, message) => self.send(&[id], &message),
                Action::SendAll(ids, message) => self.send(&ids, &message),
                Action::End(id) => {
                    if let Some(mut process) = self.links[id.0].process.take() {
                        process.close();
                        self.endings.extend(thread::Builder::new().spawn(move || process.end()));
                    }
                }
            }
        }
    }

    /// Encodes once. An agent that cannot be sent to counts as gone.
    fn send(&mut self, ids: &[AgentId], message: &ToAgent) {
        let frame = encode(message).map(Arc::<[u8]>::from).map_err(|error| error.to_string());
        for &id in ids {
            let Some(process) = &self.links[id.0].process else { continue };
            let sent = frame
                .clone()
                .and_then(|frame| process.send(frame).map_err(|error| error.to_string()));
            if let Err(why) = sent {
                self.controller.handle(clock::monotonic(), Input::Ended(id, why));
            }
        }
    }
}

#[cfg(test)]
mod tests;
