//! The controller's state of one agent.

use plimsoll_model::units::Nanos;

use super::news::{ControllerRequest, Loss};
use crate::clock::Exchanges;

/// What an agent is doing, as far as the controller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    Absent,
    Greeted,
    Idle,
    Planning,
    Preparing,
    Ready,
    Running,
    Reported,
    Leaving { goodbye_received: bool },
    Gone,
}

impl MemberState {
    /// For a person: "while …".
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "it should greet",
            Self::Greeted | Self::Idle => "it had no order",
            Self::Planning => "making a plan",
            Self::Preparing => "getting ready",
            Self::Ready => "waiting for the start",
            Self::Running => "running a load point",
            Self::Reported => "its report had been sent",
            Self::Leaving { .. } | Self::Gone => "leaving",
        }
    }

    /// A load point was begun, and its end was not reported.
    pub(super) const fn owes_an_end(self) -> bool {
        matches!(self, Self::Preparing | Self::Ready | Self::Running)
    }

    /// Whether heartbeats are expected in both directions.
    pub(super) const fn has_a_pulse(self) -> bool {
        !matches!(self, Self::Absent | Self::Leaving { .. } | Self::Gone)
    }
}

/// The deadline of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) at: Nanos,
    pub(super) within: Nanos,
    pub(super) request: ControllerRequest,
}

/// One agent.
#[derive(Debug)]
pub(super) struct Member {
    /// SHA-256 of the program that it must have.
    pub(super) program: Option<String>,
    pub(super) state: MemberState,
    /// When a byte came from it last.
    pub(super) heard: Nanos,
    /// When something was sent to it last.
    pub(super) spoke: Nanos,
    pub(super) due: Option<Due>,
    /// The clock request in flight. Its answer may come after the measurement was abandoned.
    pub(super) clock_requested: Option<Nanos>,
    /// The measurement of its clock that is in progress.
    pub(super) round: Option<Exchanges>,
    /// Why it is gone.
    pub(super) loss: Option<Loss>,
}

impl Member {
    pub(super) const fn new(now: Nanos) -> Self {
        Self {
            program: None,
            state: MemberState::Absent,
            heard: now,
            spoke: now,
            due: None,
            clock_requested: None,
            round: None,
            loss: None,
        }
    }

    /// It has nothing more to do until the next request.
    pub(super) fn rest(&mut self) {
        self.state = MemberState::Idle;
        self.due = None;
        self.round = None;
    }

    /// Why it is lost by now, if time is the reason.
    pub(super) fn overdue(
        &self,
        now: Nanos,
        silence: Nanos,
        effective_deadline: impl Fn(Nanos) -> Nanos,
    ) -> Option<Loss> {
        if self.state.has_a_pulse() && effective_deadline(self.heard.saturating_add(silence)) <= now
        {
            return Some(Loss::Silent(silence));
        }
        let due = self.due.filter(|due| effective_deadline(due.at) <= now)?;
        Some(Loss::Overdue { request: due.request, within: due.within })
    }
}
