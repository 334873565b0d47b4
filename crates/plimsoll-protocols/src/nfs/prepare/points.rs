//! What happens on the servers before each load point: knock, validate once, write the file set
//! for the load, hand its handles to the workload.

use std::sync::Arc;

use plimsoll_engine::seam::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::units::{Bytes, Nanos};

use super::super::fileset::{Content, FileSet};
use super::super::handles::Handles;
use super::super::mounting::Mounted;
use super::super::parameters::NfsWorkload;
use super::super::script::ScriptPlan;
use super::super::session::NfsSite;
use super::super::validate;
use super::super::workload::NfsLoad;
use super::{CHANNELS, Known, Order};
use crate::net::{Dial, ErrandError, ErrandProgress, GoOn, OnProgress, PointPreparation};

/// Load in ops/s that the file set is made for when the load is not a rate: what a server of
/// today reaches, as far as it can be known beforehand.
const CLOSED_LOAD_OPS_PER_S: f64 = 1_000.0;

/// What a preparation is made from.
pub struct PreparationRequest {
    /// The exports, in the order of the targets.
    pub mounts: Vec<Mounted>,
    /// As the suite says.
    pub workload: NfsWorkload,
    /// Scale of the profile.
    pub scale: f64,
    /// How long a load point lasts, warm-up included: files grow by so much.
    pub point: Nanos,
    /// Seed of the run.
    pub seed: u64,
}

/// The servers of a run, and how far each is.
pub struct NfsPreparation {
    sites: Vec<Site>,
    workload: NfsWorkload,
    content: Content,
    scale: f64,
    point: Nanos,
    seed: u64,
}

struct Site {
    mounted: Mounted,
    is_validated: bool,
    known: Option<Known>,
}

impl NfsPreparation {
    /// Nothing is known of the servers' files yet.
    pub fn new(request: PreparationRequest) -> Self {
        let PreparationRequest { mounts, workload, scale, point, seed } = request;
        let site = |mounted| Site { mounted, is_validated: false, known: None };
        Self {
            sites: mounts.into_iter().map(site).collect(),
            content: Content::new(workload.file_set_seed),
            workload,
            scale,
            point,
            seed,
        }
    }

    /// The set that each of the servers holds for `load`: the load is split equally over them.
    pub fn set_for(&self, load: &Load) -> FileSet {
        let ops_per_s = self.ops_per_s(load);
        FileSet::for_load(ops_per_s, self.workload.mib_per_op_per_s, self.scale)
    }

    fn ops_per_s(&self, load: &Load) -> f64 {
        let ops_per_s = match load {
            Load::Open { rate_ops_per_s, .. } => rate_ops_per_s.get(),
            Load::Closed { .. } => CLOSED_LOAD_OPS_PER_S,
        };
        ops_per_s / self.sites.len().max(1) as f64
    }
}

impl PointPreparation for NfsPreparation {
    fn knock(&mut self, dial: &dyn Dial) -> Result<(), ErrandError> {
        self.sites.iter().try_for_each(|site| {
            let mut remote = site.mounted.remote(dial, dial.stop())?;
            remote.null().map_err(|e| e.unable_to("call NFS", site.mounted.place()))
        })
    }

    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, ErrandError> {
        let set = self.set_for(load);
        let plan = ScriptPlan::new(&self.workload, set, self.seed, load.clients())
            .map_err(|error| ErrandError::Wrong(error.to_string()))?;
        let appended_bytes = self.workload.append_bytes_per_op() * self.point.as_secs_f64();
        let growth = Bytes((self.ops_per_s(load) * appended_bytes) as u64);
        let order = Order { set, content: &self.content, growth, channels: CHANNELS };
        let sites = self
            .sites
            .iter_mut()
            .map(|site| {
                let handles = site.ready(&order, dial, progress)?;
                Ok(site.for_sessions(handles, &self.content))
            })
            .collect::<Result<_, ErrandError>>()?;
        let workload = self.workload.clone();
        Ok(Arc::new(NfsLoad { sites, plan: Arc::new(plan), workload }))
    }
}

impl Site {
    fn for_sessions(&self, handles: Arc<Handles>, content: &Content) -> NfsSite {
        NfsSite {
            version: self.mounted.version,
            link: self.mounted.kind,
            credential: self.mounted.credential.clone(),
            handles,
            content: content.clone(),
        }
    }

    fn ready(
        &mut self,
        order: &Order<'_>,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<Handles>, ErrandError> {
        let mut remote = self.mounted.remote(dial, dial.stop())?;
        let opened = super::open(&mut remote, &self.mounted, order)?;
        if self.known.as_ref().is_some_and(|known| known.handles.root != opened.root) {
            // Somebody removed the set and made another one.
            self.known = None;
        }
        if !self.is_validated {
            let validating =
                ErrandProgress { doing: "validating", done: 0, total: 1, bytes: Bytes(0) };
            if progress(validating) == GoOn::No {
                return Err(ErrandError::Stopped);
            }
            validate::validate(&mut remote, &self.mounted, &opened.root)?;
            self.is_validated = true;
        }
        drop(remote);
        let known = self.known.as_ref();
        let known = super::prepare(&self.mounted, dial, order, opened, known, progress)?;
        Ok(Arc::clone(&self.known.insert(known).handles))
    }
}
