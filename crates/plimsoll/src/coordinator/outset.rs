//! Everything that must be settled before the first load point.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::OnceLock;

use plimsoll_model::assignment::{Endpoint, Pacing};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::{LoadSpec, ProfileName, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_protocols::http::fileset::{FileSetId, MARKER, Marker};
use plimsoll_protocols::http::parameters::Connections;
use plimsoll_protocols::{Plan, PlanError, PlanRequest, Protocol, ResolvedTarget};
use plimsoll_servers::cores;

use super::fetch::{Server, Trusted};
use super::ladder::LadderPlan;
use super::placement::{Placement, ServerPlace, place};
use super::servers::{self, ServerWish, Target};
use super::signals::Signals;
use crate::exit::Failure;
use crate::terminal::Live;

/// Loopback addresses the clients of connections per request spread over.
const SOURCES: u8 = 16;

/// A run as the user wants it.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The suite, overrides applied.
    pub suite: Suite,
    /// Timings and scale.
    pub profile: ProfileName,
    /// The servers.
    pub targets: Vec<TargetSpec>,
    /// Schedule and data follow from it.
    pub seed: u64,
    /// The bundle.
    pub out: PathBuf,
    /// Worker threads; `None` leaves the choice.
    pub workers: Option<u32>,
    /// Pacing; `None` leaves the choice.
    pub pacing: Option<Pacing>,
    /// What the user states for the disclosure.
    pub statements: Vec<Setting>,
    /// The command line, without passwords.
    pub command: Vec<String>,
}

/// What has been settled.
pub struct Outset {
    /// The servers, running and reached.
    pub targets: Vec<Target>,
    /// What each server says it is.
    pub software: Vec<Option<String>>,
    /// Cores, workers, pacing.
    pub placement: Placement,
    /// The workload.
    pub plan: Plan,
    /// The loads.
    pub ladder: LadderPlan,
    /// Addresses the clients connect from; empty leaves it to the system.
    pub sources: Vec<IpAddr>,
    /// Highest load in ops/s that the file set was made for; `None` before a search has ended.
    pub highest: Option<f64>,
}

impl Outset {
    /// Resolves, places, starts, greets, plans. Load is not sent yet. `found_ops_per_s` is the
    /// highest load of a ladder that a search has given.
    pub fn prepare(
        request: &RunRequest,
        found_ops_per_s: Option<f64>,
        signals: &Signals,
        live: &mut Live,
    ) -> Result<Self, Failure> {
        let suite = &request.suite;
        let protocol = plimsoll_protocols::protocol(&suite.protocol)
            .ok_or_else(|| Failure::wrong(format!("protocol {:?} is not known", suite.protocol)))?;
        let ladder = LadderPlan::of(&suite.ladder);
        let highest = found_ops_per_s.or_else(|| highest_ops_per_s(suite, &ladder));
        let addresses = servers::resolve_all(&request.targets, protocol)?;
        let placement = settle_placement(request, &addresses)?;
        let profile = suite.profiles.get(request.profile);
        let file_set = (protocol.needed_file_set)(suite, profile, highest)?;
        let wish = ServerWish { cores: &placement.server_cores, file_set, signals };
        let mut targets = Vec::new();
        for (spec, address) in request.targets.iter().zip(addresses) {
            targets.push(servers::start(spec, address, &wish, live)?);
        }
        let (held, software) = greet_all(suite, &targets, file_set.is_some())?;
        let resolved: Vec<ResolvedTarget> = targets.iter().map(|t| t.resolved.clone()).collect();
        let plan = make_plan(
            protocol,
            &PlanRequest {
                suite,
                profile,
                seed: request.seed,
                highest_ops_per_s: highest,
                targets: &resolved,
                file_set: held,
                urls: None,
            },
        )?;
        let sources = sources(suite, &targets);
        Ok(Self { targets, software, placement, plan, ladder, sources, highest })
    }

    /// Ids of the servers this run started.
    pub fn pids(&self) -> Vec<u32> {
        self.targets.iter().flat_map(Target::pids).collect()
    }

    /// Where the clients connect.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let endpoint =
            |target: &Target| Endpoint { target: target.name(), address: target.resolved.address };
        self.targets.iter().map(endpoint).collect()
    }
}

/// Connections per request use up the ports of one address: 28,232 by default, and each rests for a
/// minute after its end. On this host there are more addresses for the asking.
fn sources(suite: &Suite, targets: &[Target]) -> Vec<IpAddr> {
    let connections = suite.workload.get("connections").cloned();
    let per_request =
        connections.and_then(|value| value.try_into().ok()) == Some(Connections::PerRequest);
    let local = targets.iter().all(|target| match target.resolved.address.ip() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(_) => false,
    });
    if !per_request || !local {
        return Vec::new();
    }
    (1..=SOURCES).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

fn make_plan(protocol: &Protocol, request: &PlanRequest<'_>) -> Result<Plan, Failure> {
    Ok((protocol.plan)(request)?)
}

/// Highest rate of the run, when it is known; the size of a file set follows from it.
fn highest_ops_per_s(suite: &Suite, ladder: &LadderPlan) -> Option<f64> {
    match suite.load {
        LoadSpec::Open { .. } => ladder.known()?.iter().copied().reduce(f64::max),
        LoadSpec::Closed { .. } => None,
    }
}

/// Cores this program was given. Asked once: a run pins its own threads to some of them, and the
/// next run of the same program must not take those for all there are.
fn cores_of_program() -> Result<&'static [u32], Failure> {
    static CORES: OnceLock<Vec<u32>> = OnceLock::new();
    if let Some(cores) = CORES.get() {
        return Ok(cores);
    }
    let cores = cores::available()
        .map_err(|e| Failure::unusable(format!("cannot read which cores may be used: {e}")))?;
    Ok(CORES.get_or_init(|| cores))
}

fn settle_placement(
    request: &RunRequest,
    addresses: &[Option<std::net::SocketAddr>],
) -> Result<Placement, Failure> {
    let cores = cores_of_program()?;
    let server = if addresses.iter().any(Option::is_none) {
        ServerPlace::Ours
    } else if addresses.iter().flatten().any(|address| address.ip().is_loopback()) {
        ServerPlace::SameHost
    } else {
        ServerPlace::Elsewhere
    };
    let placement = place(cores, server, request.workers, request.pacing);
    // The coordinator and its monitors stay off the server's cores too.
    cores::pin_current_thread(&placement.generator_cores)
        .map_err(|e| Failure::unusable(format!("cannot pin to the generator's cores: {e}")))?;
    Ok(placement)
}

/// Reaches every server once; reads the description of its file set where one is needed.
fn greet_all(
    suite: &Suite,
    targets: &[Target],
    needs_files: bool,
) -> Result<(Option<FileSetId>, Vec<Option<String>>), Failure> {
    let mut held: Option<FileSetId> = None;
    let mut software = Vec::new();
    for target in targets {
        let name = target.name();
        let server = server_of(suite, target, &name);
        if !needs_files {
            server.greet()?;
            software.push(None);
            continue;
        }
        let (set, said) = read_marker(suite, target, &server)?;
        if held.is_some_and(|first| first != set) {
            return Err(Failure::wrong(format!(
                "{name} holds another file set than the targets before it; prepare all with the \
                 same --peak and --seed"
            )));
        }
        held = Some(set);
        software.push(said);
    }
    Ok((held, software))
}

fn server_of<'a>(suite: &'a Suite, target: &'a Target, name: &'a str) -> Server<'a> {
    let url = &target.resolved.url;
    let tls = (url.scheme == "https").then(|| Trusted {
        verify: suite.workload.get("tls_verify").and_then(toml::Value::as_bool).unwrap_or(true),
        ca_file: suite
            .workload
            .get("tls_ca_file")
            .and_then(toml::Value::as_str)
            .map(std::path::Path::new),
    });
    let host_field = match url.port {
        Some(port) => url.authority(port),
        None if url.host.contains(':') => format!("[{}]", url.host),
        None => url.host.clone(),
    };
    Server { target: name, address: target.resolved.address, host: &url.host, host_field, tls }
}

fn read_marker(
    suite: &Suite,
    target: &Target,
    server: &Server<'_>,
) -> Result<(FileSetId, Option<String>), Failure> {
    let url = &target.resolved.url;
    let prefix = suite
        .workload
        .get("file_set")
        .and_then(|set| set.get("path_prefix"))
        .and_then(toml::Value::as_str)
        .unwrap_or_default();
    let slash = if url.path.ends_with('/') { "" } else { "/" };
    let path = format!("{}{slash}{prefix}{MARKER}", url.path);
    let place = format!("{}://{}{path}", url.scheme, server.host_field);
    let reply = server.get(&path)?;
    if reply.status != 200 {
        return Err(Failure::unusable(format!(
            "{place}: {}; write the file set with 'plimsoll prepare {} DIR --peak N' and serve DIR",
            reply.status, suite.name
        )));
    }
    let text = String::from_utf8_lossy(&reply.body);
    let marker = Marker::parse(&text).map_err(|e| Failure::unusable(format!("{place}: {e}")))?;
    Ok((marker.id(), reply.software))
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::EmptyFileSet => Self::unusable(error.to_string()),
            _ => Self::wrong(error.to_string()),
        }
    }
}
