//! What happens on the servers before each load point: probe, validate once, write the file set
//! for the load, hand its handles to the workload.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::ClientContext;
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::page_cache::AccessPattern;
use plimsoll_model::suite::{Conditioning, RATE_OPS_PER_S_MAX};
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_protocol::data_set::{self, Space};
use plimsoll_protocol::net::{
    Dial, GoOn, OnProgress, PointPreparation, Room, SetupError, SetupProgress,
};

use super::ours::{Export, need};
use super::{CHANNELS, Order, PreparedSet, finding};
use crate::client::NfsClient;
use crate::fileset::{Content, FileSet};
use crate::handles::Handles;
use crate::mounting::Mounted;
use crate::op::Accessed;
use crate::parameters::{self, NfsWorkload};
use crate::remote::Remote;
use crate::script::{NfsScript, ScriptPlan};
use crate::session::{NfsSite, SessionRequest};
use crate::validate;

/// Load in ops/s that the file set is made for when the load is not a rate: a guess at what a
/// server of today reaches.
const CLOSED_LOAD_OPS_PER_S: f64 = 1_000.0;

/// What a preparation is made from.
pub struct PreparationRequest {
    /// The exports, in the order of the targets.
    pub mounts: Vec<Mounted>,
    /// From the suite.
    pub workload: NfsWorkload,
    /// Scale of the profile.
    pub scale: f64,
    /// How long a load point lasts, warm-up included: files grow during that time.
    pub point: Nanos,
    /// Seed of the run.
    pub seed: u64,
    /// What is done with the server's caches before a load point.
    pub conditioning: Conditioning,
}

/// The servers of a run, and the state of each.
pub struct NfsPreparation {
    sites: Vec<Site>,
    workload: NfsWorkload,
    content: Content,
    scale: f64,
    point: Nanos,
    seed: u64,
    /// Highest load per server that there is room for, if it was queried.
    room_ops_per_s: Option<f64>,
}

/// What the sessions of all servers have from the suite.
#[derive(Clone, Copy)]
struct SiteOrder<'a> {
    workload: &'a NfsWorkload,
    content: &'a Content,
}

struct Site {
    mounted: Mounted,
    is_validated: bool,
    prepared: Option<PreparedSet>,
    warmth: Warmth,
}

impl NfsPreparation {
    /// Nothing is known of the servers' files yet.
    pub fn new(request: PreparationRequest) -> Self {
        let PreparationRequest { mounts, workload, scale, point, seed, conditioning } = request;
        let site = |mounted| Site {
            mounted,
            is_validated: false,
            prepared: None,
            warmth: Warmth::new(conditioning),
        };
        Self {
            sites: mounts.into_iter().map(site).collect(),
            content: Content::new(workload.file_set_seed),
            workload,
            scale,
            point,
            seed,
            room_ops_per_s: None,
        }
    }

    /// The set that each of the servers holds for `load`: the load is split equally over them.
    pub fn set_for(&self, load: &Load) -> FileSet {
        FileSet::for_load(self.ops_per_s(load), self.workload.mib_per_op_per_s, self.scale)
    }

    fn ops_per_s(&self, load: &Load) -> f64 {
        match load {
            Load::Open { rate_ops_per_s, .. } => rate_ops_per_s.get() / self.servers(),
            Load::Closed { .. } => {
                let assumed = CLOSED_LOAD_OPS_PER_S / self.servers();
                self.room_ops_per_s.map_or(assumed, |room| room.min(assumed))
            }
        }
    }

    fn plan(&self, set: FileSet, load: &Load) -> Result<ScriptPlan, SetupError> {
        ScriptPlan::new(&self.workload, set, self.seed, load.clients())
            .map_err(|error| SetupError::Wrong(error.to_string()))
    }

    fn load(&self, sites: Vec<NfsSite>, plan: ScriptPlan) -> Arc<dyn Workload> {
        Arc::new(NfsLoad { sites, plan: Arc::new(plan), workload: self.workload.clone() })
    }

    fn servers(&self) -> f64 {
        self.sites.len().max(1) as f64
    }

    fn growth(&self, ops_per_s: f64) -> Bytes {
        let appended_bytes = self.workload.append_bytes_per_op() * self.point.as_secs_f64();
        Bytes((ops_per_s * appended_bytes) as u64)
    }

    /// The highest load that fits into `space` in addition to `existing`.
    fn load_max(&self, space: &Space, existing: FileSet) -> f64 {
        let fits = |ops_per_s: &f64| {
            let set = FileSet::for_load(*ops_per_s, self.workload.mib_per_op_per_s, self.scale);
            need(set, existing, self.growth(*ops_per_s)).fits(space)
        };
        // To a twentieth, and one below: nothing is known of a server's own needs.
        let loads = std::iter::successors(Some(RATE_OPS_PER_S_MAX), |load| Some(load / 1.05));
        loads.take_while(|load| *load >= 1.0).find(fits).unwrap_or(1.0) / 1.05
    }
}

impl PointPreparation for NfsPreparation {
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError> {
        self.sites.iter().try_for_each(|site| {
            let mut remote = site.mounted.remote(dial, dial.stop())?;
            remote.null().map_err(|e| e.unable_to("call NFS", site.mounted.target_label()))
        })
    }

    fn room(&mut self, dial: &dyn Dial) -> Result<Option<Room>, SetupError> {
        let mut least: Option<Room> = None;
        for site in &self.sites {
            let mut remote = site.mounted.remote(dial, dial.stop())?;
            let existing = super::existing_set(&mut remote, &site.mounted)?;
            let space = data_set::space_of(&mut Export(&mut remote, &site.mounted))?;
            let load_max_ops_per_s = self.load_max(&space, existing) * self.servers();
            let (free, location) = (Bytes(space.bytes), site.mounted.target_label().to_string());
            if least.as_ref().is_none_or(|room| load_max_ops_per_s < room.load_max_ops_per_s) {
                least = Some(Room { load_max_ops_per_s, free, location });
            }
        }
        self.room_ops_per_s = least.as_ref().map(|room| room.load_max_ops_per_s / self.servers());
        Ok(least)
    }

    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        let set = self.set_for(load);
        let plan = self.plan(set, load)?;
        let growth = self.growth(self.ops_per_s(load));
        let order = Order { set, content: &self.content, growth, channels: CHANNELS };
        let for_sessions = SiteOrder { workload: &self.workload, content: &self.content };
        let sites = self
            .sites
            .iter_mut()
            .map(|site| {
                let handles = site.ready(&order, dial, progress)?;
                site.warmth.warm(&site.mounted, &handles, dial, progress)?;
                Ok(site.for_sessions(handles, &for_sessions))
            })
            .collect::<Result<_, SetupError>>()?;
        Ok(self.load(sites, plan))
    }

    fn files(&self, load: &Load) -> Option<u32> {
        Some(self.set_for(load).files())
    }

    fn attach(
        &mut self,
        load: &Load,
        files: Option<u32>,
        dial: &dyn Dial,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        let set = files.map_or_else(|| self.set_for(load), FileSet::new);
        let (plan, seed) = (self.plan(set, load)?, self.content.seed());
        let for_sessions = SiteOrder { workload: &self.workload, content: &self.content };
        let sites = self
            .sites
            .iter_mut()
            .map(|site| {
                let prepared =
                    finding::find(&site.mounted, dial, (set, seed), site.prepared.as_ref())?;
                let handles = Arc::clone(&site.prepared.insert(prepared).handles);
                Ok(site.for_sessions(handles, &for_sessions))
            })
            .collect::<Result<_, SetupError>>()?;
        Ok(self.load(sites, plan))
    }
}

impl Site {
    fn for_sessions(&self, handles: Arc<Handles>, order: &SiteOrder<'_>) -> NfsSite {
        let NfsWorkload { slots, connections, opens, delegations, .. } = *order.workload;
        let lease = self.mounted.site.session.lease;
        let session = SessionRequest { slots, connections, opens, delegations, lease };
        let content = order.content.clone();
        NfsSite { handles, content, session, ..self.mounted.site.clone() }
    }

    /// Frees what the last point appended if too little is free for the next one.
    fn cut_back(
        &mut self,
        remote: &mut Remote,
        order: &Order<'_>,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let Some(prepared) = &self.prepared else { return Ok(()) };
        let order = Order { set: prepared.set, growth: Bytes(0), ..*order };
        let opened = super::open(remote, &self.mounted, &order)?;
        super::prepare(&self.mounted, dial, &order, opened, Some(prepared), progress).map(drop)
    }

    fn ready(
        &mut self,
        order: &Order<'_>,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<Handles>, SetupError> {
        let mut remote = self.mounted.remote(dial, dial.stop())?;
        if !self.is_validated {
            validate::refuse_lacking(&mut remote, &self.mounted)?;
            // It may have hung up on a handle that names nothing.
            remote = self.mounted.remote(dial, dial.stop())?;
        }
        let opened = match super::open(&mut remote, &self.mounted, order) {
            Err(SetupError::Unusable(_)) if self.prepared.is_some() => {
                self.cut_back(&mut remote, order, dial, progress)?;
                super::open(&mut remote, &self.mounted, order)?
            }
            opened => opened?,
        };
        if self.prepared.as_ref().is_some_and(|prepared| prepared.handles.root != opened.root) {
            // Somebody removed the set and made another one.
            self.prepared = None;
            self.warmth = Warmth::new(self.warmth.conditioning);
        }
        if !self.is_validated {
            data_set::report_validating(progress)?;
            validate::validate(&mut remote, &self.mounted, &opened.root)?;
            self.is_validated = true;
        }
        drop(remote);
        let prepared = self.prepared.as_ref();
        let prepared = super::prepare(&self.mounted, dial, order, opened, prepared, progress)?;
        Ok(Arc::clone(&self.prepared.insert(prepared).handles))
    }
}

/// Files between two reports of progress.
const REPORT_EVERY: usize = 64;

/// What of a server's files has been read.
///
/// `conditioning = "warm"`: every accessed file is read once before the first load point that
/// needs it, one READ after the other on a channel of its own.
#[derive(Debug)]
struct Warmth {
    /// What the suite wants.
    pub conditioning: Conditioning,
    /// Accessed files from the first on that were read; the numbering grows with the load.
    read: usize,
}

impl Warmth {
    /// Nothing has been read.
    const fn new(conditioning: Conditioning) -> Self {
        Self { conditioning, read: 0 }
    }

    /// Reads those files of the set that were not read yet, if the suite requires a warm cache.
    fn warm(
        &mut self,
        mounted: &Mounted,
        handles: &Handles,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let total = handles.files.len();
        if self.conditioning != Conditioning::Warm || self.read >= total {
            return Ok(());
        }
        let mut remote = mounted.remote(dial, dial.stop())?;
        let chunk = super::chunk_bytes(mounted, mounted.limits.read_bytes_max);
        let mut bytes = 0;
        for number in self.read..total {
            if number % REPORT_EVERY == 0 {
                let (doing, bytes) = ("reading files", Bytes(bytes));
                let at = SetupProgress { doing, done: number as u64, total: total as u64, bytes };
                if progress(at) == GoOn::No {
                    return Err(SetupError::Stopped);
                }
            }
            bytes += read_file(&mut remote, mounted, handles, Accessed(number as u32), chunk)?;
        }
        self.read = total;
        Ok(())
    }
}

/// Reads a file as it was made; answers with its size.
fn read_file(
    remote: &mut Remote,
    mounted: &Mounted,
    handles: &Handles,
    file: Accessed,
    chunk: u32,
) -> Result<u64, SetupError> {
    let Some(handle) = handles.file(file) else { return Ok(0) };
    let mut offset = 0;
    while offset < file.bytes() {
        let want = u64::from(chunk).min(file.bytes() - offset) as u32;
        let read = remote.read(handle, offset, want);
        let read = read.map_err(|e| e.unable_to("read a file", mounted.target_label()))?;
        if read.count == 0 {
            break;
        }
        offset += u64::from(read.count);
    }
    Ok(offset)
}

/// Everything the clients of a load point share.
#[derive(Debug)]
struct NfsLoad {
    /// One per endpoint of the assignment, in its order; never empty.
    sites: Vec<NfsSite>,
    /// What the clients do.
    plan: Arc<ScriptPlan>,
    /// From the suite.
    workload: NfsWorkload,
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

    fn data_bytes(&self) -> Option<u64> {
        Some(self.plan.files().bytes() * self.sites.len() as u64)
    }

    fn access_pattern(&self) -> Option<AccessPattern> {
        Some(self.plan.access_pattern(self.sites.len() as u64))
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        let sites: Vec<Rc<NfsSite>> = self.sites.iter().cloned().map(Rc::new).collect();
        let outstanding_max = self.workload.outstanding_max;
        context.drive(|client: ClientContext| {
            let site = sites[client.endpoint % sites.len()].clone();
            let session = NfsClient::new(site, client, outstanding_max);
            (session, NfsScript::new(self.plan.clone(), client.client))
        });
    }
}
