//! Plan orders for agents: the controller's request as a message, and the plan that an agent on
//! another host makes from it, without reading any file or variable there.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::rng;
use plimsoll_fleet::frame::FRAME_BYTES_MAX;
use plimsoll_fleet::launcher::allow::{Allowance, Refusal};
use plimsoll_fleet::message::{OrderedFile, OrderedTarget, PlanOrder};
use plimsoll_model::suite::ProfileName;
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::files::CachedFiles;
use plimsoll_protocol::net::{
    Caller, Channel, ChannelError, Dial, LinkKind, NonconformityLog, Secret, SourcePort,
};
use plimsoll_protocol::{FileSetId, Plan, PlanRequest, Planner, ResolvedTarget};

use crate::dial::SystemDial;
use crate::failure::Failure;
use crate::{load_file, own_addresses, protocols};

/// Longest load file that an order has room for, with the suite and its other files.
const LOAD_FILE_BYTES_MAX: usize = FRAME_BYTES_MAX - (8 << 20);

/// The request as a message; `files` are those that its plan has read.
pub(crate) fn order_of(
    request: &PlanRequest<'_>,
    profile: ProfileName,
    files: &CachedFiles,
) -> Result<PlanOrder, Failure> {
    let ordered = |name: &Path, bytes: Vec<u8>| match name.to_str() {
        Some(name) => Ok(OrderedFile { name: name.to_owned(), bytes }),
        None => {
            Err(Failure::wrong(format!("{}: its name is not UTF-8; rename it", name.display())))
        }
    };
    let load_file = request.loadfile.map(|file| {
        let bytes = load_file::bytes_of(file)?;
        if bytes.len() > LOAD_FILE_BYTES_MAX {
            return Err(Failure::wrong(format!(
                "{}: it has {} MiB, and agents are sent {} at most; use a shorter part of it (plimsoll \
                 derive makes one of a part of the log), or run without --agents",
                file.path.display(),
                bytes.len() >> 20,
                LOAD_FILE_BYTES_MAX >> 20
            )));
        }
        ordered(&file.path, bytes)
    });
    let files = files.iter().map(|(name, bytes)| ordered(name, bytes.to_vec()));
    let caller = request.dial.caller();
    Ok(PlanOrder {
        suite: request.suite.to_toml(),
        profile,
        seed: request.seed,
        highest_ops_per_s: request.highest_ops_per_s,
        targets: request.targets.iter().map(ordered_target).collect(),
        run_urls: request.targets.iter().map(|target| target.url.with_password()).collect(),
        sources: Vec::new(),
        file_set: request.file_set.map(|set| (set.seed, set.directories)),
        files: files.collect::<Result<_, _>>()?,
        load_file: load_file.transpose()?,
        learnt: request.learnt.map(str::to_owned),
        password: caller.password.map(|secret| secret.0),
        user: (caller.uid, caller.gid),
    })
}

fn ordered_target(target: &ResolvedTarget) -> OrderedTarget {
    let ResolvedTarget { url, address, unix, .. } = target;
    OrderedTarget { url: url.with_password(), address: *address, unix: unix.clone() }
}

/// The plan of an order, and a dial for its load points that connects only to allowed targets.
pub(crate) fn plan_of(
    order: &PlanOrder,
    system: SystemDial,
    allowed: Arc<Allowance>,
) -> Result<(Plan, AgentDial), Failure> {
    // Without the offending line: it may hold a secret.
    let suite = protocols::parse_suite("the controller's suite", &order.suite, &[])
        .map_err(|error| Failure::wrong(error.to_string()))?;
    let protocol = protocols::of_suite(&suite)?.protocol;
    let targets: Vec<ResolvedTarget> = order
        .targets
        .iter()
        .map(|OrderedTarget { url, address, unix }| {
            let (url, unix) = (TargetUrl::parse(url)?, unix.clone());
            Ok(ResolvedTarget { unix, ..ResolvedTarget::new(url, *address) })
        })
        .collect::<Result<_, Failure>>()?;
    targets.iter().try_for_each(|target| refuse_target(&allowed, target))?;
    own_addresses::check(&order.sources, &targets)?;
    let run_urls = order.run_urls.iter().map(|url| TargetUrl::parse(url));
    let run_urls: Vec<TargetUrl> = run_urls.collect::<Result<_, _>>()?;
    let entry = |file: &OrderedFile| (PathBuf::from(&file.name), file.bytes.clone());
    let files: CachedFiles = order.files.iter().map(entry).collect();
    let load_file = order.load_file.as_ref().zip(protocol.load_files);
    let load_file =
        load_file.map(|(file, its)| load_file::from_bytes(&file.bytes, &file.name, its));
    let load_file = load_file.transpose()?;
    let dial = AgentDial::new(system, allowed, order);
    let plan = (protocol.plan)(&PlanRequest {
        suite: &suite,
        profile: suite.profiles.get(order.profile),
        seed: order.seed,
        highest_ops_per_s: order.highest_ops_per_s,
        targets: &targets,
        run_urls: Some(&run_urls),
        file_set: order.file_set.map(|(seed, directories)| FileSetId { seed, directories }),
        files: &files,
        loadfile: load_file.as_ref(),
        dial: &dial,
        planner: Planner::Agent,
        learnt: order.learnt.as_deref(),
    })?;
    Ok((plan, dial))
}

/// Refuses a target that the owner of this host does not allow.
fn refuse_target(allowed: &Allowance, target: &ResolvedTarget) -> Result<(), Failure> {
    let checked = match &target.unix {
        Some(path) => allowed.check_unix(path),
        None => allowed.check_target(target.address),
    };
    checked.map_err(|refusal| Failure::unusable(format!("{}: {refusal}", target.url)))
}

/// Sockets of this host, on behalf of an order's user.
#[derive(Clone, Debug)]
pub(crate) struct AgentDial {
    system: SystemDial,
    allowed: Arc<Allowance>,
    caller: Caller,
}

impl AgentDial {
    fn new(system: SystemDial, allowed: Arc<Allowance>, order: &PlanOrder) -> Self {
        let own = system.caller();
        let (uid, gid) = order.user;
        let caller = Caller {
            uid,
            gid,
            nonce: unlike_others(own.nonce, &own.host),
            password: order.password.clone().map(Secret),
            ..own
        };
        Self { system, allowed, caller }
    }
}

/// Agents that start at the same instant differ by their hosts, and on one host by their processes.
fn unlike_others(nonce: u64, host: &str) -> u64 {
    let own = rng::key(&[nonce, u64::from(std::process::id())]);
    host.bytes().fold(own, |sum, byte| rng::key(&[sum, u64::from(byte)]))
}

fn refused(refusal: Refusal) -> ChannelError {
    ChannelError::Failed(io::Error::new(io::ErrorKind::PermissionDenied, refusal))
}

impl Dial for AgentDial {
    fn dial(
        &self,
        address: SocketAddr,
        kind: LinkKind,
        source: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        self.allowed.check_target(address).map_err(refused)?;
        self.system.dial(address, kind, source)
    }

    fn dial_unix(&self, path: &Path) -> Result<Box<dyn Channel>, ChannelError> {
        self.allowed.check_unix(path).map_err(refused)?;
        self.system.dial_unix(path)
    }

    fn caller(&self) -> Caller {
        self.caller.clone()
    }

    fn stop(&self) -> Arc<AtomicBool> {
        self.system.stop()
    }

    fn nonconformities(&self) -> NonconformityLog {
        self.system.nonconformities()
    }
}

#[cfg(test)]
mod tests;
