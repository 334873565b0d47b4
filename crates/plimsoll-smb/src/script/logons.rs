//! The `logons` pattern: each op is a logon over a connection of its own, and a piece of work.

use plimsoll_engine::seam::{Script, Step, Ticket, Turn};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::succeeds;
use crate::op::{SmbCall, SmbOp};

/// The script of one client.
#[derive(Debug, Default)]
pub(super) struct Logons {
    in_flight: bool,
    /// The think time before the next logon has been held.
    begun: bool,
}

impl Script for Logons {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _turn: Turn) -> Step<SmbCall> {
        if self.in_flight {
            return Step::WaitForOutcome;
        }
        self.begun = !self.begun;
        match self.begun {
            true => Step::Think,
            false => Step::Issue(succeeds(SmbOp::Logon)),
        }
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight = true;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = false;
    }
}
