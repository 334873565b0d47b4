//! An agent's end of the stream: events in, actions out, time passed in. Threads and pipes drive
//! it in the program, a simulator in tests.
//!
//! | the agent is | and accepts |
//! | --- | --- |
//! | greeting | `Hello` of the same version: idle; of another: it ends |
//! | idle | `Plan`: planning; `Point`: preparing |
//! | planning | nothing, until the load has planned: it answers and is idle |
//! | preparing | `Stop`: it answers `Refused` when the load is ready, and is idle; else `Ready` |
//! | ready | `Start`: running; `Stop`: it answers `Refused` and is idle |
//! | running | `Stop`: the load ends early; when it has ended it answers `Finished` and is idle |
//! | ended | nothing |
//!
//! It answers questions for its clock at once, whatever it is doing. The end of its input, bytes
//! that are no message, a message out of turn and silence each end it, and its load first. Without
//! a controller, load goes on for at most [`Pulse::silence`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::{Nanos, keep_least};

use crate::frame::FrameError;
use crate::message::{
    FromAgent, Greeting, NetworkRoute, PlanOrder, PointReport, SecondTotals, ToAgent,
};
use crate::pulse::{Awake, Pulse};

/// How long an agent waits for the controller's greeting. The controller answers at once; an agent
/// that somebody started by hand, or that was cut off before it was greeted, ends by itself.
const HELLO_WAIT: Nanos = Nanos::from_secs(20);
/// Histograms of one message: heartbeats get between them.
const SLICES_BYTES_MAX: usize = 1_024 * 1_024;
const STOPPED: &str = "stopped before its start";
const UNPLANNED: &str = "it has no plan";

/// An event for an agent.
#[derive(Debug)]
pub enum Input {
    /// A message of the controller.
    Message(ToAgent),
    /// Bytes of a message arrived that is not whole yet.
    Heard,
    /// The stream from the controller has ended.
    InputEnded,
    /// The input cannot be parsed.
    Broken(FrameError),
    /// From the load.
    Load(LoadEvent),
    /// Time has passed: [`Agent::next_deadline`].
    Tick,
}

/// Events of the load. Those of an abandoned load point are ignored.
#[derive(Debug)]
pub enum LoadEvent {
    /// [`Action::Plan`] was done; or why it cannot be.
    Planned(Result<Vec<NetworkRoute>, String>),
    /// [`Action::Prepare`] was done; or why it cannot be.
    Ready(Result<(), String>),
    /// A second of the load point has passed.
    Second(Box<SecondTotals>),
    /// A failure worth showing.
    Sample(ErrorSample),
    /// A client gave up.
    ClientLost {
        /// Its number over all agents.
        client: u32,
        /// Why.
        reason: String,
        /// When, from the start of the load point.
        at: Nanos,
    },
    /// Histograms, in order of time.
    Slices(Vec<PackedSlice>),
    /// The load has ended, by itself or because it was stopped.
    Finished(Box<PointReport>),
    /// The load could not run, or has no report.
    Failed(String),
}

/// What the driver does for an agent.
#[derive(Debug)]
pub enum Action {
    /// Sends a message to the controller.
    Send(FromAgent),
    /// Makes workloads. Ends with [`LoadEvent::Planned`].
    Plan(Box<PlanOrder>),
    /// Gets ready for a load point. Ends with [`LoadEvent::Ready`].
    Prepare(Box<Assignment>),
    /// Runs it. Ends with [`LoadEvent::Finished`] or [`LoadEvent::Failed`].
    Start {
        /// The instant at which its clock starts, by this host's monotonic clock.
        at: Nanos,
    },
    /// Ends the load at once, and gives up what was made ready for it. A load that runs still ends
    /// with its event.
    StopLoad,
    /// Ends the process, after all that was sent has left it, within a second.
    Exit(AgentEnd),
}

/// Why an agent ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentEnd {
    /// The controller has nothing more to do.
    #[error("the controller said goodbye")]
    Goodbye,
    /// The controller or the launcher is gone.
    #[error("the stream from the controller ended without a goodbye")]
    InputEnded,
    /// Nothing came for too long.
    #[error("nothing was heard of the controller for {0}")]
    Silence(Nanos),
    /// What came is no message.
    #[error("{0}; `plimsoll agent` is started by `plimsoll run --agents`")]
    Unreadable(FrameError),
    /// The controller has another program.
    #[error(
        "the controller runs Plimsoll {theirs}, this is {ours}; install the same release on both"
    )]
    Version {
        /// Version of the controller.
        theirs: String,
        /// Version of this program.
        ours: String,
    },
    /// A message that does not follow from those before.
    #[error("the controller said {0} out of turn; this is a bug")]
    UnexpectedMessage(&'static str),
}

/// The state machine.
#[derive(Debug)]
pub struct Agent {
    version: String,
    state: AgentState,
    planned: bool,
    pulse: Pulse,
    now: Nanos,
    heard: Nanos,
    spoke: Nanos,
    awake: Awake,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentState {
    Greeting,
    Idle,
    Planning,
    Preparing { ordinal: u32, stopped: bool },
    Ready,
    Running,
    Ended,
}

impl Agent {
    /// An agent that greets at once.
    pub fn new(greeting: Greeting, pulse: Pulse, now: Nanos) -> Self {
        let version = greeting.version.clone();
        let hello = Action::Send(FromAgent::Hello(Box::new(greeting)));
        Self {
            version,
            state: AgentState::Greeting,
            planned: false,
            pulse,
            now,
            heard: now,
            spoke: now,
            awake: Awake::new(pulse, now),
            actions: VecDeque::from([hello]),
        }
    }

    /// Takes in an event. `now` is read after the event has come and before anything else is done:
    /// it answers questions for the clock.
    pub fn handle(&mut self, now: Nanos, input: Input) {
        if self.state == AgentState::Ended {
            return;
        }
        self.now = self.now.max(now);
        self.awake.tick(self.now);
        match input {
            Input::Message(message) => self.receive(message),
            Input::Heard => self.heard = self.now,
            Input::InputEnded => self.end(AgentEnd::InputEnded),
            Input::Broken(error) => self.end(AgentEnd::Unreadable(error)),
            Input::Load(event) => self.load(event),
            Input::Tick => {}
        }
        self.check_deadlines();
    }

    /// What to do next; to be called after each event until it returns `None`.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to come back with [`Input::Tick`]; `None` after the end.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let mut next = Some(self.awake.effective_deadline(self.silent_at()));
        match self.state {
            AgentState::Ended => return None,
            AgentState::Greeting => {}
            _ => keep_least(&mut next, self.spoke.saturating_add(self.pulse.alive_every)),
        }
        next
    }

    /// When the controller is declared lost.
    fn silent_at(&self) -> Nanos {
        self.heard.saturating_add(self.patience())
    }

    fn patience(&self) -> Nanos {
        match self.state {
            AgentState::Greeting => HELLO_WAIT,
            _ => self.pulse.silence,
        }
    }

    fn check_deadlines(&mut self) {
        if self.state == AgentState::Ended {
            return;
        }
        if self.awake.effective_deadline(self.silent_at()) <= self.now {
            self.end(AgentEnd::Silence(self.patience()));
        } else if self.state != AgentState::Greeting
            && self.spoke.saturating_add(self.pulse.alive_every) <= self.now
        {
            self.send(FromAgent::Alive);
        }
    }

    fn receive(&mut self, message: ToAgent) {
        self.heard = self.now;
        match (self.state, message) {
            (_, ToAgent::Goodbye) => {
                self.stop_load();
                self.answer(FromAgent::Goodbye);
                self.end(AgentEnd::Goodbye);
            }
            (AgentState::Greeting, ToAgent::Hello { version }) if version == self.version => {
                self.state = AgentState::Idle;
            }
            (AgentState::Greeting, ToAgent::Hello { version }) => {
                self.end(AgentEnd::Version { theirs: version, ours: self.version.clone() });
            }
            (AgentState::Greeting, message) => {
                self.end(AgentEnd::UnexpectedMessage(name(&message)))
            }
            (_, ToAgent::Clock { sent_ns }) => {
                self.send(FromAgent::Clock { sent_ns, at_ns: self.now.0 });
            }
            (_, ToAgent::Alive) => {}
            (_, ToAgent::Stop) => self.stop(),
            (AgentState::Idle, ToAgent::Plan(order)) => {
                self.state = AgentState::Planning;
                self.actions.push_back(Action::Plan(order));
            }
            (AgentState::Idle, ToAgent::Point(assignment)) if self.planned => {
                let ordinal = assignment.point.ordinal;
                self.state = AgentState::Preparing { ordinal, stopped: false };
                self.actions.push_back(Action::Prepare(assignment));
            }
            (AgentState::Idle, ToAgent::Point(_)) => {
                self.answer(FromAgent::Refused { reason: UNPLANNED.to_owned() });
            }
            (AgentState::Ready, ToAgent::Start { at_ns }) => {
                self.state = AgentState::Running;
                self.actions.push_back(Action::Start { at: Nanos(at_ns) });
            }
            (_, message) => self.end(AgentEnd::UnexpectedMessage(name(&message))),
        }
    }

    /// The controller cancels this load point.
    fn stop(&mut self) {
        self.stop_load();
        match &mut self.state {
            AgentState::Preparing { stopped, .. } => *stopped = true,
            AgentState::Ready => self.answer(FromAgent::Refused { reason: STOPPED.to_owned() }),
            // The end of the load point and the order to stop crossed.
            _ => {}
        }
    }

    fn load(&mut self, event: LoadEvent) {
        match (self.state, event) {
            (AgentState::Planning, LoadEvent::Planned(done)) => {
                self.planned = done.is_ok();
                let refused = |reason| FromAgent::Refused { reason };
                self.answer(done.map_or_else(refused, |routes| FromAgent::Planned { routes }));
            }
            (AgentState::Preparing { stopped: true, .. }, LoadEvent::Ready(_)) => {
                self.answer(FromAgent::Refused { reason: STOPPED.to_owned() });
            }
            (AgentState::Preparing { ordinal, .. }, LoadEvent::Ready(Ok(()))) => {
                self.state = AgentState::Ready;
                self.send(FromAgent::Ready { ordinal });
            }
            (AgentState::Preparing { .. }, LoadEvent::Ready(Err(reason)))
            | (AgentState::Running, LoadEvent::Failed(reason)) => {
                self.answer(FromAgent::Refused { reason });
            }
            (AgentState::Running, LoadEvent::Second(totals)) => {
                self.send(FromAgent::Second(totals))
            }
            (AgentState::Running, LoadEvent::Sample(sample)) => {
                self.send(FromAgent::Sample(sample))
            }
            (AgentState::Running, LoadEvent::ClientLost { client, reason, at }) => {
                self.send(FromAgent::ClientLost { client, reason, at });
            }
            (AgentState::Running, LoadEvent::Slices(slices)) => {
                chunks(slices).into_iter().for_each(|some| self.send(FromAgent::Slices(some)));
            }
            (AgentState::Running, LoadEvent::Finished(report)) => {
                self.answer(FromAgent::Finished(report));
            }
            _ => {}
        }
    }

    /// Sends the final answer to a request.
    fn answer(&mut self, message: FromAgent) {
        self.state = AgentState::Idle;
        self.send(message);
    }

    fn send(&mut self, message: FromAgent) {
        self.spoke = self.now;
        self.actions.push_back(Action::Send(message));
    }

    fn stop_load(&mut self) {
        if matches!(
            self.state,
            AgentState::Preparing { .. } | AgentState::Ready | AgentState::Running
        ) {
            self.actions.push_back(Action::StopLoad);
        }
    }

    fn end(&mut self, end: AgentEnd) {
        self.stop_load();
        self.state = AgentState::Ended;
        self.actions.push_back(Action::Exit(end));
    }
}

/// Slices in messages of bounded length; one that is longer has a message of its own.
fn chunks(slices: Vec<PackedSlice>) -> Vec<Vec<PackedSlice>> {
    let mut chunks: Vec<Vec<PackedSlice>> = Vec::new();
    let mut room_bytes = 0;
    for slice in slices {
        let bytes = slice.memory_bytes();
        match chunks.last_mut().filter(|_| bytes <= room_bytes) {
            Some(chunk) => {
                room_bytes -= bytes;
                chunk.push(slice);
            }
            None => {
                room_bytes = SLICES_BYTES_MAX.saturating_sub(bytes);
                chunks.push(vec![slice]);
            }
        }
    }
    chunks
}

/// A message's name, for a person.
const fn name(message: &ToAgent) -> &'static str {
    match message {
        ToAgent::Hello { .. } => "Hello",
        ToAgent::Clock { .. } => "Clock",
        ToAgent::Plan(_) => "Plan",
        ToAgent::Point(_) => "Point",
        ToAgent::Start { .. } => "Start",
        ToAgent::Stop => "Stop",
        ToAgent::Alive => "Alive",
        ToAgent::Goodbye => "Goodbye",
    }
}
