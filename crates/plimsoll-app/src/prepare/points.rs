//! What happens on the servers before each load point: the segments of clients that are new get
//! their content.

use std::sync::Arc;

use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;

use super::fill::fill;
use super::greet::greet;
use super::site::Site;
use crate::op::AppKind;
use crate::parameters::AppWorkload;
use crate::script::ScriptPlan;
use crate::session::AppSite;
use crate::workload::AppLoad;
use plimsoll_protocol::net::{Dial, OnProgress, PointPreparation, SetupError};

/// What a preparation is made from.
pub(crate) struct PreparationRequest {
    /// The servers, in the order of the targets. Client i is one of server i modulo their number.
    pub sites: Vec<Site>,
    /// As the suite says.
    pub workload: AppWorkload,
    /// Scale of the profile.
    pub scale: f64,
    /// Seed of the run.
    pub seed: u64,
}

/// The servers of a run, and for how many clients their segments are filled.
pub(crate) struct AppPreparation {
    sites: Vec<Site>,
    workload: AppWorkload,
    data: Arc<AppSite>,
    seed: u64,
    /// Clients, of all servers, whose segments were in order once.
    filled: u32,
}

impl AppPreparation {
    /// Nothing is known of the segments yet.
    pub(crate) fn new(request: PreparationRequest) -> Self {
        let PreparationRequest { sites, workload, scale, seed } = request;
        let data = Arc::new(AppSite::new(&workload, scale));
        Self { sites, workload, data, seed, filled: 0 }
    }
}

impl PointPreparation for AppPreparation {
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError> {
        self.sites.iter().try_for_each(|site| greet(site, dial).map(drop))
    }

    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        let clients = load.clients();
        if self.workload.mix.kinds().any(AppKind::needs_content) {
            let servers = self.sites.len();
            for (at, site) in self.sites.iter().enumerate() {
                let here = |client: &u32| *client as usize % servers == at;
                let new: Vec<u32> = (self.filled..clients).filter(here).collect();
                fill(site, &self.data, &new, dial, progress)?;
            }
            self.filled = self.filled.max(clients);
        }
        let plan = ScriptPlan::new(self.seed, load, &self.workload, self.data.segment);
        Ok(Arc::new(AppLoad {
            site: Arc::clone(&self.data),
            plan: Arc::new(plan),
            shares: self.workload.mix.shares(),
        }))
    }
}
