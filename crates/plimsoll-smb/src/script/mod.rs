//! Chooses a client's next request.
//!
//! A script depends only on the plan and the client's number, not on the server's answers, so that
//! a run can be repeated. In closed loads the script marks where a piece of work begins; in open
//! loads, where the schedule does, it never thinks.

mod applications;
mod cards;
mod disk_mix;
mod repeating;

use std::sync::Arc;

use plimsoll_engine::interface::{ClientContext, Script, ScriptContext, Step, Ticket};
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
use repeating::{Echoes, Logons, NicPasses, SustainedSession};

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
    Sustained(SustainedSession),
    Echo(Echoes),
    Replay(Replay),
}

/// Does the same with whichever script it is.
macro_rules! each {
    ($acts:expr, $script:ident => $act:expr) => {
        match $acts {
            Acts::DiskMix($script) => $act,
            Acts::Nic($script) => $act,
            Acts::Logons($script) => $act,
            Acts::Sustained($script) => $act,
            Acts::Echo($script) => $act,
            Acts::Replay($script) => $act,
        }
    };
}

impl SmbScript {
    /// The script of `client`.
    pub(crate) fn new(plan: Arc<ScriptPlan>, client: &ClientContext) -> Self {
        let outstanding_max = plan.workload.outstanding_max;
        let acts = match (&plan.replay, plan.workload.pattern) {
            (Some(file), _) => Acts::Replay(Replay::new(Arc::clone(file), client.client)),
            (None, Pattern::DiskMix) => {
                Acts::DiskMix(Box::new(DiskMix::new(Arc::clone(&plan), client.client)))
            }
            (None, Pattern::Nic) => Acts::Nic(NicPasses::new(&plan.workload, client.client)),
            (None, Pattern::Logons) => Acts::Logons(Logons::default()),
            (None, Pattern::Sessions) => {
                let start = plan.sessions.as_ref().map(|sessions| sessions.start(client.client));
                Acts::Sustained(SustainedSession::new(start.unwrap_or_default()))
            }
            (None, Pattern::Echo) => Acts::Echo(Echoes::new(outstanding_max)),
        };
        Self { pacing: plan.pacing, acts }
    }

    fn step(&mut self, context: ScriptContext) -> Step<SmbCall> {
        each!(&mut self.acts, script => script.next(context))
    }

    /// In an open load the clients of a worker share the script: each takes as many ops as it has
    /// room for.
    fn is_shared(&self) -> bool {
        self.pacing == Pacing::Open && matches!(self.acts, Acts::Logons(_) | Acts::Echo(_))
    }
}

impl Script for SmbScript {
    type Op = SmbCall;

    /// An application session is a piece, or a pass; each script marks it.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, context: ScriptContext) -> Step<SmbCall> {
        match (self.step(context), self.pacing) {
            // A thought is never followed by another.
            (Step::Think, Pacing::Open) => self.step(context),
            (step, _) => step,
        }
    }

    fn on_issued(&mut self, ticket: Ticket) {
        if !self.is_shared() {
            each!(&mut self.acts, script => script.on_issued(ticket));
        }
    }

    fn on_outcome(&mut self, ticket: Ticket, outcome: &Outcome, now: Nanos) {
        if !self.is_shared() {
            each!(&mut self.acts, script => script.on_outcome(ticket, outcome, now));
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
    /// At the times of a schedule.
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
