//! What a client asks for next.
//!
//! A script follows from the plan and the client's number alone: what the server answers changes
//! nothing, so that a run can be repeated. In closed loads it says itself when a piece of work
//! begins; in open loads, whose arrivals come when they come, it never thinks.

mod applications;
mod cards;
mod disk_mix;
mod repeating;

use std::sync::Arc;

use plimsoll_engine::seam::{ClientSeat, Script, Step, Ticket, Turn};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::sessions::SessionsPlan;
use plimsoll_model::units::Nanos;

use super::loadfile::Replay;
use super::op::SmbCall;
use super::parameters::Pattern;
use crate::loadfile::LoadFile;
use crate::parameters::SmbWorkload;
use crate::workspace::Workspace;
use applications::Desktop;
use disk_mix::DiskMix;
use repeating::{Echoes, HeldSession, Logons, NicPasses};

/// The script of one client, whatever its pattern.
#[derive(Debug)]
pub(crate) struct SmbScript {
    pacing: Pacing,
    acts: Acts,
}

#[derive(Debug)]
enum Acts {
    DiskMix(Box<DiskMix>),
    Nic(NicPasses),
    Logons(Logons),
    Held(HeldSession),
    Echo(Echoes),
    Replay(Replay),
}

impl SmbScript {
    /// The script of the client on `seat`.
    pub(crate) fn new(plan: Arc<ScriptPlan>, seat: &ClientSeat) -> Self {
        let outstanding_max = plan.workload.outstanding_max;
        let acts = match (&plan.replay, plan.workload.pattern) {
            (Some(file), _) => Acts::Replay(Replay::new(Arc::clone(file), seat.client)),
            (None, Pattern::DiskMix) => {
                Acts::DiskMix(Box::new(DiskMix::new(Arc::clone(&plan), seat.client)))
            }
            (None, Pattern::Nic) => Acts::Nic(NicPasses::new(&plan.workload, seat.client)),
            (None, Pattern::Logons) => Acts::Logons(Logons::default()),
            (None, Pattern::Sessions) => {
                let start = plan.sessions.as_ref().map(|sessions| sessions.start(seat.client));
                Acts::Held(HeldSession::new(start.unwrap_or_default()))
            }
            (None, Pattern::Echo) => Acts::Echo(Echoes::new(outstanding_max)),
        };
        Self { pacing: plan.pacing, acts }
    }

    fn step(&mut self, turn: Turn) -> Step<SmbCall> {
        match &mut self.acts {
            Acts::DiskMix(script) => script.next(turn),
            Acts::Nic(script) => script.next(turn),
            Acts::Logons(script) => script.next(turn),
            Acts::Held(script) => script.next(turn),
            Acts::Echo(script) => script.next(turn),
            Acts::Replay(script) => script.next(turn),
        }
    }
}

impl Script for SmbScript {
    type Op = SmbCall;

    /// An application session is, or a pass; each script says it.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, turn: Turn) -> Step<SmbCall> {
        match (self.step(turn), self.pacing) {
            // A thought is never followed by another.
            (Step::Think, Pacing::Open) => self.step(turn),
            (step, _) => step,
        }
    }

    fn on_issued(&mut self, ticket: Ticket) {
        match &mut self.acts {
            // In an open load the clients of a worker share the script: each takes what it has
            // room for.
            Acts::Logons(_) | Acts::Echo(_) if self.pacing == Pacing::Open => {}
            Acts::DiskMix(script) => script.on_issued(ticket),
            Acts::Nic(script) => script.on_issued(ticket),
            Acts::Logons(script) => script.on_issued(ticket),
            Acts::Held(script) => script.on_issued(ticket),
            Acts::Echo(script) => script.on_issued(ticket),
            Acts::Replay(script) => script.on_issued(ticket),
        }
    }

    fn on_outcome(&mut self, ticket: Ticket, outcome: &Outcome, now: Nanos) {
        match &mut self.acts {
            Acts::Logons(_) | Acts::Echo(_) if self.pacing == Pacing::Open => {}
            Acts::DiskMix(script) => script.on_outcome(ticket, outcome, now),
            Acts::Nic(script) => script.on_outcome(ticket, outcome, now),
            Acts::Logons(script) => script.on_outcome(ticket, outcome, now),
            Acts::Held(script) => script.on_outcome(ticket, outcome, now),
            Acts::Echo(script) => script.on_outcome(ticket, outcome, now),
            Acts::Replay(script) => script.on_outcome(ticket, outcome, now),
        }
    }
}

/// The op, expected to succeed.
fn succeeds(op: super::op::SmbOp) -> SmbCall {
    SmbCall { op, expected: super::op::Expected::Success }
}

/// When a script's ops are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// When the one before has ended and the client has thought.
    Closed,
    /// When a schedule says.
    Open,
}

/// What the scripts of one load point share.
#[derive(Debug)]
pub(crate) struct ScriptPlan {
    /// Seed of the run.
    pub seed: u64,
    /// Clients of the load point.
    pub clients: u32,
    /// The parameters.
    pub workload: SmbWorkload,
    /// The seed files of every home.
    pub workspace: Workspace,
    /// When ops are sent.
    pub pacing: Pacing,
    /// How the clients open the sessions that they keep; `None` where they keep none.
    pub sessions: Option<SessionsPlan>,
    /// Replayed in place of the pattern.
    pub replay: Option<Arc<LoadFile>>,
    desktop: Desktop,
}

impl ScriptPlan {
    /// The plan of a load point of `clients` clients at the profile's `scale`.
    pub(crate) fn new(seed: u64, clients: u32, workload: SmbWorkload, scale: f64) -> Self {
        Self {
            seed,
            clients,
            workspace: Workspace::new(workload.workspace_mib, scale),
            pacing: Pacing::Closed,
            sessions: None,
            replay: None,
            desktop: Desktop::new(&workload),
            workload,
        }
    }
}

#[cfg(test)]
mod tests;
