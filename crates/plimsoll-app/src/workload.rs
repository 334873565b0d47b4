//! A load point of application transactions as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::ClientSeat;
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::OpNames;

use super::parameters;
use super::script::{AppScript, ScriptPlan};
use super::session::{AppSession, AppSite, WorkerSite};
use super::wire::Status;

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct AppLoad {
    /// What they ask for, and what must come back.
    pub site: Arc<AppSite>,
    /// In which order.
    pub plan: Arc<ScriptPlan>,
    /// Shares of the kinds, in the order of their names.
    pub shares: Vec<f64>,
}

impl Workload for AppLoad {
    fn op_names(&self) -> OpNames {
        OpNames(parameters::op_names())
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        Some(self.shares.clone())
    }

    fn status_name(&self, status: u32) -> Option<&'static str> {
        u8::try_from(status).ok().and_then(Status::from_code).map(Status::name)
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let site = Rc::new(WorkerSite::new(Arc::clone(&self.site)));
        seat.drive(|client: ClientSeat| {
            let script = AppScript::new(Arc::clone(&self.plan), &client);
            (AppSession::new(Rc::clone(&site), &client), script)
        });
    }
}
