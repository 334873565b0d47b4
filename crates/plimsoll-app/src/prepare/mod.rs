//! Set-up: greet the servers, and fill the clients' segments before they are used.
//!
//! A segment belongs to the server, which makes its file when a client names its size; what is in
//! it comes from here, through the protocol. Every segment is compared with what it should hold
//! when a run sees it first, and only what differs is written.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::interface::{ClientContext, Session as _};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Load, TargetDistribution};
use plimsoll_model::outcome::{ErrorClass, OpNames, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::blocking::{Blocking, BlockingError, SILENCE_MAX, hear};
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::net::{
    ChannelError, Dial, LinkKind, OnProgress, PointPreparation, SetupError, SourcePort,
};

use super::op::{AppKind, AppOp, Segment};
use super::parameters::{self, AppWorkload};
use super::refusal;
use super::script::{AppScript, ScriptPlan};
use super::session::{AppSession, AppSite, WorkerSite};
use super::wire::{Hello, Status, VERSION, Welcome, WireError};

/// Segments lie in a directory of the server's own and are not removed from here.
pub(crate) fn clean_target(
    target: &ResolvedTarget,
    _: &dyn Dial,
    _: &mut OnProgress<'_>,
) -> Result<String, SetupError> {
    Err(SetupError::Wrong(format!(
        "{}: the data segments lie in the server's own directory; stop the server and remove \
         that, or let it use a temporary one",
        target.url
    )))
}

/// A server of a run.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// As the user named it.
    pub name: String,
    /// Where to connect.
    pub address: SocketAddr,
}

/// Asks a server what it is, without a segment.
pub(crate) fn greet(site: &Site, dial: &dyn Dial) -> Result<Welcome, SetupError> {
    welcome(site, dial).map_err(|e| e.unable_to("greet the server", &site.name))
}

fn welcome(site: &Site, dial: &dyn Dial) -> Result<Welcome, AppError> {
    let mut channel = dial.dial(site.address, LinkKind::Stream, SourcePort::Any)?;
    let hello = Hello { version: VERSION, client: 0, segment_bytes: 0 };
    channel.send(&hello.encode())?;
    let (stop, mut time_left, mut incoming) = (dial.stop(), SILENCE_MAX, Vec::new());
    loop {
        if let Some(greeting) = incoming.first_chunk() {
            let welcome = Welcome::decode(greeting)?;
            return match refusal::message(&welcome, hello.segment_bytes) {
                Some(reason) => Err(AppError::Refused(reason)),
                None => Ok(welcome),
            };
        }
        hear(&mut *channel, &stop, &mut time_left, &mut incoming)?;
    }
}

/// What a preparation is made from.
pub(crate) struct PreparationRequest {
    /// The servers, in the order of the targets.
    pub sites: Vec<Site>,
    /// As the suite configures it.
    pub workload: AppWorkload,
    /// Scale of the profile.
    pub scale: f64,
    /// Seed of the run.
    pub seed: u64,
}

/// The servers of a run, and for how many clients their segments are filled.
pub(crate) struct AppPreparation {
    sites: Vec<Site>,
    distribution: TargetDistribution,
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
        Self {
            distribution: TargetDistribution::round_robin(sites.len()),
            sites,
            workload,
            data,
            seed,
            filled: 0,
        }
    }
}

impl PointPreparation for AppPreparation {
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError> {
        self.sites.iter().try_for_each(|site| greet(site, dial).map(drop))
    }

    fn distribute(&mut self, distribution: &TargetDistribution) {
        if self.distribution != *distribution {
            self.distribution = distribution.clone();
            self.filled = 0;
        }
    }

    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        let clients = load.clients();
        if self.workload.mix.kinds().any(AppKind::needs_content) {
            for (at, site) in self.sites.iter().enumerate() {
                let here = |client: &u32| self.distribution.target_of(*client) == at;
                let new: Vec<u32> = (self.filled..clients).filter(here).collect();
                fill(site, &self.data, &new, dial, progress)?;
            }
            self.filled = self.filled.max(clients);
        }
        Ok(self.load(load))
    }

    fn attach(
        &mut self,
        load: &Load,
        _: Option<u32>,
        _: &dyn Dial,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        Ok(self.load(load))
    }
}

impl AppPreparation {
    /// The requests of the clients depend on the load alone.
    fn load(&self, load: &Load) -> Arc<dyn Workload> {
        let plan = ScriptPlan::new(self.seed, load, &self.workload, self.data.segment);
        Arc::new(AppLoad {
            site: Arc::clone(&self.data),
            plan: Arc::new(plan),
            shares: self.workload.mix.shares(),
        })
    }
}

/// Everything the clients of a load point share.
#[derive(Debug)]
struct AppLoad {
    /// Their requests, and the expected replies.
    site: Arc<AppSite>,
    /// In which order.
    plan: Arc<ScriptPlan>,
    /// Shares of the kinds, in the order of their names.
    shares: Vec<f64>,
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

    fn data_bytes(&self) -> Option<u64> {
        Some(u64::from(self.plan.clients()) * self.site.segment_bytes)
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        let site = Rc::new(WorkerSite::new(Arc::clone(&self.site)));
        context.drive(|client: ClientContext| {
            let script = AppScript::new(Arc::clone(&self.plan), &client);
            (AppSession::new(Rc::clone(&site), &client), script)
        });
    }
}

/// Connections that fill segments at once: enough to keep a disk busy that must write each block
/// before it answers.
const CHANNELS: usize = 8;

/// Brings the segments of these clients of one server into order, several at once: each is read by
/// its checksums, and what differs is written.
fn fill(
    at: &Site,
    data: &AppSite,
    clients: &[u32],
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<(), SetupError> {
    let tally = Tally::default();
    let site = Arc::new(data.in_large_blocks());
    let segment = site.segment;
    let chunks = segment.blocks_used() * clients.len() as u64;
    let each = |stop: &mut Arc<AtomicBool>, client: &u32| {
        let channel = dial.dial(at.address, LinkKind::Stream, SourcePort::Any);
        let (client, op_timeout) = (*client, Nanos::MAX);
        let context = ClientContext { client, endpoint: 0, seed: 0, op_timeout, nonce: 0 };
        let session = AppSession::new(Rc::new(WorkerSite::new(Arc::clone(&site))), &context);
        let open = |channel| Blocking::new(session, channel, Arc::clone(stop));
        let filled = channel.map(open).map_err(AppError::Channel);
        filled
            .and_then(|mut session| fill_one(&mut session, segment, client, &tally))
            .map_err(|e| e.unable_to("fill the data segments", &at.name))
    };
    let pool = ChannelPool { open: &|stop| Ok(Arc::clone(stop)), channels: CHANNELS };
    let report = Report { tally: &tally, doing: "filling data segments", total: chunks, progress };
    pool.collect(clients, each, report).map(drop)
}

fn fill_one(
    session: &mut Blocking<AppSession>,
    segment: Segment,
    client: u32,
    tally: &Tally,
) -> Result<(), AppError> {
    for block in 0..segment.blocks_used() {
        // Any seed serves; the block keeps two alike apart.
        let op = |kind| AppOp { kind, seed: block as u32 ^ client, block, compare: false };
        if !is_right(session, op(AppKind::RandomRead))? {
            if !is_right(session, op(AppKind::RandomWrite))? {
                return Err(AppError::Unfit("a wrong checksum of what it was to write".to_owned()));
            }
            tally.bytes.fetch_add(segment.block_bytes().into(), Ordering::Relaxed);
        }
        tally.step();
    }
    Ok(())
}

/// Performs `op`; false if the checksum differs.
fn is_right(session: &mut Blocking<AppSession>, op: AppOp) -> Result<bool, AppError> {
    let ended = session.run(op)?;
    match ended.outcome.status {
        OpStatus::Ok | OpStatus::ExpectedFailure => Ok(true),
        OpStatus::Failed(ErrorClass::Corrupt) => Ok(false),
        OpStatus::Unexpected { actual, .. } => {
            let status = u8::try_from(actual).ok().and_then(Status::from_code);
            Err(AppError::Status(status.unwrap_or(Status::BadRequest)))
        }
        OpStatus::Failed(class) => Err(match session.session().lost() {
            Some(reason) => AppError::Refused(reason),
            None if class == ErrorClass::Transport => AppError::Channel(ChannelError::Closed),
            None => AppError::Unfit(ended.detail),
        }),
    }
}

/// Why a request of set-up failed.
#[derive(Debug, thiserror::Error)]
enum AppError {
    /// The connection did not open, broke, or stayed silent.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server lets us not in.
    #[error("{0}")]
    Refused(String),
    /// The reply is no greeting.
    #[error("the server's answer cannot be read: {0}")]
    Garbled(#[from] WireError),
    /// The reply is not the expected one.
    #[error("the server gave {0}")]
    Unfit(String),
    /// The server answered with an error.
    #[error("the server answered: {}", .0.name())]
    Status(Status),
    /// The caller requested a stop.
    #[error("stopped")]
    Stopped,
}

impl AppError {
    /// For the user: what failed, where, why, and what to do next.
    fn unable_to(self, doing: &str, target: impl fmt::Display) -> SetupError {
        let remedy = match &self {
            Self::Stopped => return SetupError::Stopped,
            // Its text ends with what to do next.
            Self::Refused(reason) => return SetupError::Unusable(format!("{target}: {reason}")),
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) => "see whether a transaction server listens on that port",
            Self::Unfit(_) => "see whether the server follows docs/app-protocol.md",
            Self::Status(Status::NoRoom) => "free some room where the server keeps its segments",
            Self::Status(_) => "see what the server's log says",
        };
        SetupError::Unusable(format!("{target}: cannot {doing}: {self}; {remedy}"))
    }
}

impl From<BlockingError> for AppError {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::Stopped => Self::Stopped,
            BlockingError::Channel(error) => Self::Channel(error),
        }
    }
}

#[cfg(test)]
mod tests;
