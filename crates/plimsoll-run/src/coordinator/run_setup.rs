//! Settles everything that a run needs before its first load point.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::sources::RequestedMonitor;
use plimsoll_model::assignment::Endpoint;
use plimsoll_model::capacity::{CapacityRequest, LoadFigure};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{RunOptions, ServerLimits};
use plimsoll_model::figure::JourneyFigure;
use plimsoll_model::gate::{GateFigure, Gates};
use plimsoll_model::suite::{LoadSpec, ProfileName, Suite, nearest};
use plimsoll_model::target::TargetSpec;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::{
    Greeting, NeedsFiles, Registration, ServerRequest, Target, is_here, who_listens,
};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{DEFAULT_SEED, InputFile, Plan, PlanError, PlanRequest, ResolvedTarget};
use plimsoll_servers::listener::Listening;
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_servers::{ServerLink, cores};

use super::conditioning;
use super::fleet_point::placement_with_agents;
use super::ladder::LadderPlan;
use super::placement::{Placement, ServerLocation, choose_placement};
use super::server_status::Served;
use super::servers;
use crate::dial::SystemDial;
use crate::failure::{Failure, FailureKind};
use crate::fleet::{Fleet, ServerEndpoint, order_of};
use crate::level_commands::{LevelCommands, NotSet};
use crate::observers::ObserverOptions;
use crate::own_addresses;
use crate::progress::RunProgress;
use crate::protocols;
use crate::secrets::{SecretHeaders, command_line};
use crate::signals::Signals;
use crate::systems::Systems;

/// A run as the user requests it.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The suite with overrides applied, as bundles keep it.
    pub suite: Suite,
    /// Header fields with their values. The suite does not contain them.
    pub headers: SecretHeaders,
    /// Timings and scale.
    pub profile: ProfileName,
    /// The servers.
    pub targets: Vec<TargetSpec>,
    /// Determines schedule and data.
    pub seed: u64,
    /// The bundle.
    pub out: PathBuf,
    /// Options that the journal keeps unchanged. Load file and monitors are below, opened.
    pub options: RunOptions,
    /// What the clients replay instead of the suite's pattern.
    pub loadfile: Option<InputFile>,
    /// Monitored besides this host.
    pub monitors: Vec<RequestedMonitor>,
    /// Record in full what agents observe of their hosts.
    pub monitors_agents: bool,
    /// Who watches the run.
    pub observers: ObserverOptions,
    /// Facts for the disclosure that the user declares.
    pub statements: Vec<Setting>,
    /// Inventories of other hosts, and facts that can only be declared.
    pub systems: Systems,
    /// The limits of the load to search for; `None` for a run of the suite's ladder.
    pub capacity: Option<CapacityRequest>,
    /// Conditions under which the run fails.
    pub gates: Gates,
    /// Commands that set levels on the servers of the run once they answer.
    pub after_start: Vec<LevelCommands>,
    /// The command line, without passwords.
    pub command: Vec<String>,
}

impl RunRequest {
    /// A run of the unchanged suite, without target and bundle yet.
    pub fn plain(suite: Suite, profile: ProfileName) -> Self {
        Self {
            out: PathBuf::new(),
            suite,
            headers: SecretHeaders::default(),
            profile,
            targets: Vec::new(),
            seed: DEFAULT_SEED,
            options: RunOptions::default(),
            loadfile: None,
            monitors: Vec::new(),
            monitors_agents: false,
            observers: ObserverOptions::default(),
            statements: Vec::new(),
            systems: Systems::default(),
            capacity: None,
            gates: Gates::default(),
            after_start: Vec::new(),
            command: command_line(),
        }
    }
}

/// The outcome of set-up.
pub(super) struct RunSetup {
    /// The protocol.
    pub registration: &'static Registration,
    /// The servers, running and reached.
    pub targets: Vec<Target>,
    /// Their link, which ends after them.
    _link: Option<ServerLink>,
    /// The software that each server reports.
    pub software: Vec<Option<String>>,
    /// Cores, workers, pacing.
    pub placement: Placement,
    /// The workload.
    pub plan: Plan,
    /// The connections that set-up makes to the servers.
    pub dial: SystemDial,
    /// The loads.
    pub ladder: LadderPlan,
    /// Addresses the clients connect from; empty leaves it to the system.
    pub sources: Vec<IpAddr>,
    /// The shipped suite of this name, without changes, once it was loaded.
    pub shipped: OnceCell<Option<Suite>>,
    /// Highest load in ops/s that the file set was made for; `None` before a search has ended.
    pub highest: Option<f64>,
}

impl RunSetup {
    /// The servers, with the suite as it is sent to them.
    pub(super) fn served<'a>(&'a self, sent: &'a Suite) -> Served<'a> {
        Served { protocol: self.registration, suite: sent, targets: &self.targets }
    }

    /// Resolves targets, places workers, starts and greets servers, and plans. Sends no load.
    /// `found_ops_per_s` is the highest load of a ladder, from a search.
    pub(super) fn prepare(
        request: &RunRequest,
        searched_ops_per_s: Option<f64>,
        mut fleet: Option<&mut Fleet>,
        (signals, live): (&Signals, &mut dyn RunProgress),
    ) -> Result<Self, Failure> {
        let suite = &request.suite;
        let registration = protocols::of_suite(suite)?;
        let protocol = registration.protocol;
        let ladder = match request.capacity {
            Some(_) => LadderPlan::Capacity,
            None => LadderPlan::from_ladder(&suite.ladder),
        };
        let highest = searched_ops_per_s.or_else(|| highest_ops_per_s(suite, &ladder));
        let resolved_targets = servers::resolve_all(&request.targets, registration, suite)?;
        let (specs, addresses): (Vec<_>, Vec<_>) = resolved_targets.into_iter().unzip();
        let limits = request.options.server_limits.unwrap_or_default();
        let link = make_link(request, limits.link_bits_per_s, fleet.is_some())?;
        let listen_on = request.options.listen_on.unwrap_or(LOOPBACK);
        let listen_on = link.as_ref().map_or(listen_on, ServerLink::address);
        check_routes(request, (&specs, &addresses), listen_on, fleet.as_deref())?;
        let mut placement = settle_placement(request, &addresses, fleet.as_deref_mut())?;
        narrow(&mut placement.server_cores, limits.cores)?;
        let profile = suite.profiles.get(request.profile);
        let file_set = protocol.file_set_needed(suite, profile, highest)?;
        let cores = &placement.server_cores;
        let ServerLimits { threads, work, .. } = limits;
        let server_request = ServerRequest { suite, cores, threads, work, file_set, listen_on };
        let limits = (&limits, link.as_ref());
        let start = |target| {
            servers::start_limited(target, registration, &server_request, limits, (signals, live))
        };
        let resolved_targets = specs.iter().zip(addresses);
        let mut targets: Vec<Target> = resolved_targets.map(start).collect::<Result<_, _>>()?;
        conditioning::check(suite, &targets)?;
        let needs = if file_set.is_some() { NeedsFiles::Yes } else { NeedsFiles::No };
        let Greeting { file_set: served_set, software } =
            (registration.greet)(suite, &targets, needs)?;
        set_after_start(&request.after_start, &mut targets, signals)?;
        let resolved: Vec<ResolvedTarget> = targets.iter().map(|t| t.resolved.clone()).collect();
        let (dial, files) = (SystemDial::new(signals.clone()), HostFiles::default());
        let sent = request.headers.put_into(suite);
        let plan_request = PlanRequest {
            seed: request.seed,
            highest_ops_per_s: highest,
            file_set: served_set,
            files: &files,
            loadfile: request.loadfile.as_ref(),
            ..PlanRequest::plain(&sent, profile, &resolved, &dial)
        };
        let plan = (protocol.plan)(&plan_request)?;
        if let Some(fleet) = fleet {
            let plan_request = PlanRequest { learnt: plan.learnt.as_deref(), ..plan_request };
            fleet.plan(&order_of(&plan_request, request.profile, &files.cached())?, signals)?;
        }
        refuse_score(suite, &plan)?;
        refuse_pages(request, &plan)?;
        let addresses = plan.addresses.iter().flatten();
        targets.iter_mut().zip(addresses).for_each(|(target, at)| target.resolved.address = *at);
        let sources = match request.options.sources.is_empty() {
            true => (registration.sources)(suite, &targets),
            false => request.options.sources.clone(),
        };
        Ok(Self {
            registration,
            targets,
            _link: link,
            software,
            placement,
            plan,
            dial,
            ladder,
            sources,
            shipped: OnceCell::new(),
            highest,
        })
    }

    /// The endpoints that clients connect to.
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        let endpoint = |target: &Target| Endpoint {
            target: target.name(),
            address: target.resolved.address,
            unix: target.resolved.unix.clone(),
        };
        self.targets.iter().map(endpoint).collect()
    }
}

/// The link between this host and the servers that it starts, if one is requested.
fn make_link(
    request: &RunRequest,
    bits_per_s: Option<u64>,
    by_agents: bool,
) -> Result<Option<ServerLink>, Failure> {
    let Some(bits_per_s) = bits_per_s else { return Ok(None) };
    let elsewhere = [(by_agents, "--agents"), (request.options.listen_on.is_some(), "--listen-on")];
    match elsewhere.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => Err(Failure::wrong(format!(
            "link_rate: the server gets a network of its own, which only this host reaches; leave \
             {flag} out"
        ))),
        None => Ok(Some(ServerLink::new(bits_per_s)?)),
    }
}

/// Sets levels of an experiment on the servers that the run started.
fn set_after_start(
    levels: &[LevelCommands],
    targets: &mut [Target],
    signals: &Signals,
) -> Result<(), Failure> {
    for process in targets.iter_mut().filter_map(|target| target.process.as_mut()) {
        for level in levels {
            let scratch = process.scratch().map(|dir| dir.display().to_string());
            let more = vec![
                ("SERVER_PID", process.pid().to_string()),
                ("SERVER_DIR", scratch.unwrap_or_default()),
                ("SERVER_ADDRESS", process.address.to_string()),
            ];
            let level = LevelCommands { more, ..level.clone() };
            level.set(signals).map_err(|not_set| match not_set {
                NotSet::Failed(failure) => Failure::Hook(failure),
                NotSet::Interrupted => Failure::interrupted("interrupted while a level was set"),
            })?;
        }
        process.check()?;
    }
    Ok(())
}

/// Refuses servers that the load generators cannot reach, or not from the requested addresses.
fn check_routes(
    request: &RunRequest,
    (specs, addresses): (&[TargetSpec], &[Option<ResolvedTarget>]),
    listen_on: IpAddr,
    fleet: Option<&Fleet>,
) -> Result<(), Failure> {
    if let Some(fleet) = fleet {
        let endpoints = specs.iter().zip(addresses).map(|(spec, address)| match address {
            Some(resolved) => ServerEndpoint::Runs(resolved),
            None => ServerEndpoint::Listens(spec, listen_on),
        });
        return fleet.refuse_out_of_reach(&endpoints.collect::<Vec<_>>());
    }
    let running: Vec<ResolvedTarget> = addresses.iter().flatten().cloned().collect();
    own_addresses::check(&request.options.sources, &running)?;
    let starts = running.len() < addresses.len();
    let sources = request.options.sources.iter().filter(|_| starts);
    sources.copied().try_for_each(|it| own_addresses::check_route(it, (listen_on, 0).into()))
}

/// Refuses ops that the suite's score does not define.
fn refuse_score(suite: &Suite, plan: &Plan) -> Result<(), Failure> {
    let Some(score) = &suite.score else { return Ok(()) };
    let refused = score.refuse_ops(&plan.op_names);
    refused.map_err(|why| Failure::wrong(format!("suite {}: {why}", suite.name)))
}

/// Refuses limits and conditions on pages that no journey has.
fn refuse_pages(request: &RunRequest, plan: &Plan) -> Result<(), Failure> {
    let of_gates = request.gates.all.iter().filter_map(|gate| match &gate.figure {
        GateFigure::Journey(figure) => Some(figure),
        _ => None,
    });
    let limits = request.capacity.iter().flat_map(|capacity| capacity.within.limits());
    let of_limits = limits.filter_map(|limit| match &limit.figure {
        LoadFigure::Journey(figure) => Some(figure),
        _ => None,
    });
    let name = &request.suite.name;
    for figure in of_gates.chain(of_limits) {
        if !request.suite.workload.has_journeys() {
            return Err(Failure::wrong(format!(
                "{}: suite {name} has no journeys, so it has no such figure; suite web-users has it",
                figure.name()
            )));
        }
        let JourneyFigure::Page(page, _) = figure else { continue };
        let pages = &plan.op_names.0;
        if !pages.contains(page) {
            let all = pages.iter().map(String::as_str);
            let near = nearest(page, all.clone());
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            return Err(Failure::wrong(format!(
                "{}: the journey has no page {page:?}; {near}its pages are {}",
                figure.name(),
                all.collect::<Vec<_>>().join(", ")
            )));
        }
    }
    Ok(())
}

/// Reduces the cores of a server to the requested number.
fn narrow(cores: &mut Vec<u32>, requested: Option<u32>) -> Result<(), Failure> {
    let Some(requested) = requested else { return Ok(()) };
    if cores.len() < requested as usize {
        return Err(Failure::unusable(format!(
            "{requested} cores were asked for and the server may have {} here: the others are the \
             generator's; take fewer cores, or a larger host",
            cores.len()
        )));
    }
    cores.truncate(requested as usize);
    Ok(())
}

/// Highest rate of the run, if it is fixed. The size of a file set follows from it.
fn highest_ops_per_s(suite: &Suite, ladder: &LadderPlan) -> Option<f64> {
    match suite.load {
        LoadSpec::Open { .. } => ladder.fixed_loads()?.iter().copied().reduce(f64::max),
        LoadSpec::Closed { .. } => None,
    }
}

/// Cores that this program may use. Read once: a run pins its own threads to some of them, and the
/// next run of the same process must not take those for all.
pub fn cores_of_program() -> Result<&'static [u32], Failure> {
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
    addresses: &[Option<ResolvedTarget>],
    fleet: Option<&mut Fleet>,
) -> Result<Placement, Failure> {
    let cores = cores_of_program()?;
    let server = if addresses.iter().any(Option::is_none) {
        ServerLocation::Ours
    } else if addresses.iter().flatten().any(is_here) {
        ServerLocation::SameHost(listening_on(addresses))
    } else {
        ServerLocation::Elsewhere
    };
    let (workers, pacing) = (request.options.workers, request.options.pacing);
    let placement = match fleet {
        None => choose_placement(cores, &server, workers, pacing),
        Some(fleet) => placement_with_agents(fleet, cores, &server, (workers, pacing)),
    };
    cores::pin_current_thread(&placement.setup_cores)
        .map_err(|e| Failure::unusable(format!("cannot pin to cores of its own: {e}")))?;
    Ok(placement)
}

/// What is known about servers on this host that other programs started; `None` unless every one is
/// identified.
fn listening_on(addresses: &[Option<ResolvedTarget>]) -> Option<Listening> {
    let here = addresses.iter().flatten().filter(|target| is_here(target));
    here.map(who_listens).collect::<Option<Vec<_>>>()?.into_iter().reduce(|mut all, one| {
        if !all.who.contains(&one.who) {
            all.who = format!("{}, {}", all.who, one.who);
        }
        all.pids.extend(one.pids);
        all.cores.extend(one.cores);
        all.cores.sort_unstable();
        all.cores.dedup();
        all
    })
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Setup(error) => error.into(),
            _ => Self::wrong(error.to_string()),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let kind = match error {
            SetupError::Unusable(_) => FailureKind::Unusable,
            SetupError::Wrong(_) => FailureKind::Wrong,
            SetupError::Stopped => FailureKind::Interrupted,
        };
        Self::Other { kind, message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_are_not_there_are_refused_before_anything_is_started() {
        let refused = narrow(&mut vec![1], Some(2)).unwrap_err().to_string();
        assert!(refused.contains("2 cores were asked for and the server may have 1"), "{refused}");
        let mut cores = vec![1, 2, 3];
        narrow(&mut cores, Some(2)).unwrap();
        assert_eq!(cores, [1, 2]);
    }
}
