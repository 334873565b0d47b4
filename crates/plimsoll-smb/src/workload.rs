//! An SMB load point as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::ClientSeat;
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::OpNames;

use super::parameters;
use super::script::{ScriptPlan, SmbScript};
use super::session::{SmbSession, SmbSite};
use super::target::SmbTarget;
use super::wire::status;
use super::workspace::ContentTable;

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct SmbLoad {
    /// One per endpoint of the assignment, in its order; never empty.
    pub shares: Vec<SmbTarget>,
    /// What the clients do.
    pub plan: Arc<ScriptPlan>,
    /// What is in the files.
    pub content: ContentTable,
}

impl SmbLoad {
    fn site(&self, share: &SmbTarget) -> SmbSite {
        let workload = &self.plan.workload;
        SmbSite {
            credentials: share.credentials.clone(),
            offer: workload.offer(),
            unc: share.unc.clone(),
            prefix: share.base.clone(),
            caching: workload.caching,
            content: self.content.clone(),
            outstanding_max: workload.outstanding_max,
            unexpected_max: workload.unexpected_max,
            buffers: Default::default(),
        }
    }
}

impl Workload for SmbLoad {
    fn op_names(&self) -> OpNames {
        OpNames(parameters::op_names())
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        match self.plan.replay {
            Some(_) => None,
            None => parameters::op_shares(&self.plan.workload),
        }
    }

    fn status_name(&self, status: u32) -> Option<&'static str> {
        status::name(status)
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let sites: Vec<Rc<SmbSite>> =
            self.shares.iter().map(|share| Rc::new(self.site(share))).collect();
        seat.drive(|client: ClientSeat| {
            let site = Rc::clone(&sites[client.endpoint % sites.len()]);
            let script = SmbScript::new(Arc::clone(&self.plan), &client);
            (SmbSession::new(site, client), script)
        });
    }
}
