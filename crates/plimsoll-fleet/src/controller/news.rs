//! What goes into the controller and what comes out of it.

use std::fmt;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::event::ClockOffset;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;

use crate::clock::Reading;
use crate::frame::FrameError;
use crate::message::{
    FromAgent, Greeting, NetworkRoute, PlanOrder, PointReport, SecondTotals, ToAgent,
};
use crate::pulse::Pulse;

/// An agent of a run: 0, 1, 2 … in the order in which they were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub usize);

/// The controller's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Version of this program. Agents must have the same.
    pub version: String,
    /// The run starts with at least this many agents.
    pub agents_min: usize,
    /// How long agents may take to appear.
    pub wait: Nanos,
    /// Heartbeats.
    pub pulse: Pulse,
    /// Between the order to start and the start: the order must have arrived everywhere.
    pub start_lead: Nanos,
    /// Questions of one measurement of a clock.
    pub exchanges: u32,
    /// How long an agent that lives may take to make a plan or to get ready for a load point.
    pub answer: Nanos,
    /// How long an agent may take to report after the end of its load.
    pub report: Nanos,
}

impl Settings {
    /// All `agents_min` within a minute, and the rest as it fits most runs.
    pub fn new(version: &str, agents_min: usize) -> Self {
        Self {
            version: version.to_owned(),
            agents_min,
            wait: Nanos::from_secs(60),
            pulse: Pulse::default(),
            start_lead: Nanos::from_millis(300),
            exchanges: 16,
            // Looking up the handles of a million files takes minutes.
            answer: Nanos::from_secs(600),
            // Histograms of ten minutes through srun (12 MB/s) take ten seconds.
            report: Nanos::from_secs(120),
        }
    }
}

/// An event for the controller.
#[derive(Debug)]
pub enum Input {
    /// A message from an agent.
    Message(AgentId, FromAgent),
    /// Bytes of a message arrived that is not whole yet.
    Heard(AgentId),
    /// A message from an agent that cannot be read.
    Broken(AgentId, FrameError),
    /// An agent's process or its stream ended: the launcher's exit status and last output.
    Ended(AgentId, String),
    /// A command from the coordinator.
    Command(Command),
    /// Time has passed: [`super::Controller::next_deadline`].
    Tick,
}

/// Commands of the coordinator. One at a time, each after the end of the one before.
#[derive(Debug)]
pub enum Command {
    /// The agents named make their workloads, those that use the same servers from the same order.
    /// Ends with [`News::Planned`] or [`News::PlanFailed`].
    Plan(Vec<(Vec<AgentId>, Box<PlanOrder>)>),
    /// The agents named run a load point together. Ends with [`News::PointFinished`],
    /// [`News::PointLost`] or [`News::PointStopped`].
    Point(Vec<(AgentId, Assignment)>),
    /// The load of the current point ends now. At any time.
    Stop,
    /// All agents go. At any time; ends with [`News::Finished`].
    Finish,
}

/// What the driver does for the controller.
#[derive(Debug)]
pub enum Action {
    /// Sends a message to an agent.
    Send(AgentId, ToAgent),
    /// Sends a long message to several agents: it is encoded once.
    SendAll(Vec<AgentId>, ToAgent),
    /// Ends an agent: its input is closed, and the launcher's child terminated if it does not end.
    End(AgentId),
    /// For the coordinator.
    Notify(News),
}

/// What the coordinator learns.
#[derive(Debug)]
pub enum News {
    /// An agent of this version is there.
    Greeted(AgentId, Box<Greeting>),
    /// The first measurement of its clock.
    Clock(AgentId, Reading),
    /// All agents that will come are there.
    Gathered,
    /// Too few came: why, of each that did not. All others are sent away.
    TooFew(Vec<(AgentId, Loss)>),
    /// How an agent that has its workload gets to each server of its order.
    Routes(AgentId, Vec<NetworkRoute>),
    /// All living agents have their workloads.
    Planned,
    /// Some have not.
    PlanFailed(Vec<(AgentId, Failure)>),
    /// All agents of the load point are ready.
    Ready,
    /// The order to start was given.
    Started {
        /// When the load point starts, by the controller's clock.
        at: Nanos,
    },
    /// An agent's second has passed.
    Second(AgentId, Box<SecondTotals>),
    /// A failure worth showing.
    Sample(AgentId, ErrorSample),
    /// A client gave up.
    ClientLost {
        /// Whose.
        agent: AgentId,
        /// Its number over all agents.
        client: u32,
        /// Why.
        reason: String,
        /// When, from the start of the load point.
        at: Nanos,
    },
    /// Every agent of the load point has run it and reported, in the order of the command.
    PointFinished(Vec<AgentReport>),
    /// The load point does not count. The agents that are left can begin another.
    PointLost {
        /// Because of this one, the first if there were several.
        agent: AgentId,
        /// What happened to it.
        why: Failure,
    },
    /// The load point was stopped before it started.
    PointStopped,
    /// An agent is gone before its time.
    AgentLost {
        /// Which.
        agent: AgentId,
        /// Why.
        why: Loss,
    },
    /// A command came when it could not be followed.
    Refused(&'static str),
    /// All agents are gone.
    Finished,
}

/// An agent's part in a finished load point.
#[derive(Debug)]
pub struct AgentReport {
    /// Which agent.
    pub agent: AgentId,
    /// What it counted.
    pub report: PointReport,
    /// Its histograms.
    pub slices: Vec<PackedSlice>,
    /// Its clock against the controller's, during the load point.
    pub clock: ClockOffset,
    /// How much later than the first agent it started, by the measured clocks.
    pub start_skew: Nanos,
    /// Seconds, samples and lost clients that were not passed on: more than a load point can have.
    pub dropped: u64,
}

/// Why an agent did not do its part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is gone.
    #[error(transparent)]
    Lost(Loss),
    /// It is there but cannot or will not.
    #[error("{0}")]
    Refused(String),
}

/// Why an agent is gone before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// It has another program.
    #[error(
        "it runs Plimsoll {theirs}, this is {ours}; install the same release there or use --deploy"
    )]
    Version {
        /// Version of the agent.
        theirs: String,
        /// Version of this program.
        ours: String,
    },
    /// Its program is not the one that it was sent.
    #[error(
        "its program has SHA-256 {theirs}, and --deploy has sent {sent}: something else is started \
         there than what was sent"
    )]
    Program {
        /// Hash of the agent's program.
        theirs: String,
        /// Hash of what was sent.
        sent: String,
    },
    /// It did not appear in time.
    #[error(
        "it did not answer within {0}; see whether its launcher works by hand, or raise --agents-wait"
    )]
    Absent(Nanos),
    /// Its message cannot be read.
    #[error(transparent)]
    Unreadable(FrameError),
    /// Its process or its stream ended.
    #[error("{0}")]
    Ended(String),
    /// Nothing came from it for too long.
    #[error("nothing was heard of it for {0}; its host is gone or stalled, or the network between")]
    Silent(Nanos),
    /// It is alive but did not complete the request in time.
    #[error("it did not {request} within {within}")]
    Overdue {
        /// The request.
        request: ControllerRequest,
        /// The time that it had.
        within: Nanos,
    },
    /// It sent a message that does not answer its request.
    #[error("it said {message} while {state}; this is a bug")]
    UnexpectedMessage {
        /// The message.
        message: &'static str,
        /// What it was doing.
        state: &'static str,
    },
    /// It sent more histograms than a load point can have.
    #[error("it sent more than {0} bytes of histograms")]
    TooMuch(usize),
    /// It sent `Goodbye` without a request.
    #[error("it left unasked; look at the end of its output")]
    Left,
}

/// A request to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerRequest {
    /// Its clock.
    Clock,
    /// To make workloads.
    Plan,
    /// To get ready for a load point.
    Prepare,
    /// To run a load point.
    Run,
    /// To end its load.
    Stop,
}

impl fmt::Display for ControllerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "tell its clock",
            Self::Plan => "make a plan",
            Self::Prepare => "get ready for the load point",
            Self::Run => "finish the load point",
            Self::Stop => "stop its load",
        })
    }
}
