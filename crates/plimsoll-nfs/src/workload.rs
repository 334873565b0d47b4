//! An NFS load point as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::ClientSeat;
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::OpNames;

use super::parameters::{self, NfsWorkload};
use super::script::{NfsScript, ScriptPlan};
use super::session::{NfsSession, NfsSite};

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct NfsLoad {
    /// One per endpoint of the assignment, in its order; never empty.
    pub sites: Vec<NfsSite>,
    /// What the clients do.
    pub plan: Arc<ScriptPlan>,
    /// As the suite says.
    pub workload: NfsWorkload,
}

impl Workload for NfsLoad {
    fn op_names(&self) -> OpNames {
        OpNames(parameters::op_names(&self.workload))
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        Some(parameters::op_shares(&self.workload))
    }

    fn ops_per_arrival(&self) -> f64 {
        parameters::ops_per_arrival(&self.workload)
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let sites: Vec<Rc<NfsSite>> = self.sites.iter().cloned().map(Rc::new).collect();
        let outstanding_max = self.workload.outstanding_max;
        seat.drive(|client: ClientSeat| {
            let site = sites[client.endpoint % sites.len()].clone();
            let session = NfsSession::new(site, client, outstanding_max);
            (session, NfsScript::new(self.plan.clone(), client.client))
        });
    }
}
