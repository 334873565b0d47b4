//! The `echo` pattern: as many echoes in flight as the bound allows. The client never thinks.

use plimsoll_engine::seam::{Script, Step, Ticket, Turn};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::succeeds;
use crate::op::{SmbCall, SmbOp};

/// The script of one client.
#[derive(Debug)]
pub(super) struct Echoes {
    outstanding_max: u32,
    in_flight: u32,
}

impl Echoes {
    pub(super) fn new(outstanding_max: u32) -> Self {
        Self { outstanding_max, in_flight: 0 }
    }
}

impl Script for Echoes {
    type Op = SmbCall;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _turn: Turn) -> Step<SmbCall> {
        match self.in_flight < self.outstanding_max {
            true => Step::Issue(succeeds(SmbOp::Echo)),
            false => Step::WaitForOutcome,
        }
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight += 1;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}
