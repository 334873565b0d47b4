//! Everything that must be settled before the first load point.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use plimsoll_model::assignment::Endpoint;
use plimsoll_model::capacity::CapacityAsked;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{Asked, ServerLimits};
use plimsoll_model::gate::Gates;
use plimsoll_model::suite::{LoadSpec, ProfileName, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_monitor::MonitorUrl;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::{
    Greeting, NeedsFiles, Registration, ServerWish, Target, is_here, who_listens,
};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{InputFile, Plan, PlanError, PlanRequest, ResolvedTarget};
use plimsoll_servers::listener::Listening;
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_servers::{Confinement, cores};

use super::conditioning;
use super::fleet_point::place_agents;
use super::ladder::LadderPlan;
use super::placement::{Placement, ServerPlace, place};
use super::server_status::Served;
use super::servers;
use crate::cli::DEFAULT_SEED;
use crate::dial::SystemDial;
use crate::exit::{Exit, Failure};
use crate::fleet::{Fleet, Whereabouts, order_of};
use crate::level_commands::{LevelCommands, NotSet};
use crate::observers::ObserverWishes;
use crate::own_addresses;
use crate::protocols;
use crate::secrets::{SecretHeaders, command_line};
use crate::signals::Signals;
use crate::systems::Systems;
use crate::terminal::Live;

/// A run as the user wants it.
#[derive(Clone, Debug)]
pub(crate) struct RunRequest {
    /// The suite, overrides applied, as bundles keep it.
    pub suite: Suite,
    /// What the suite is without: header fields with their values.
    pub headers: SecretHeaders,
    /// Timings and scale.
    pub profile: ProfileName,
    /// The servers.
    pub targets: Vec<TargetSpec>,
    /// Schedule and data follow from it.
    pub seed: u64,
    /// The bundle.
    pub out: PathBuf,
    /// What the journal keeps as it is. Load file and monitors are below, opened.
    pub asked: Asked,
    /// What the clients replay instead of the suite's pattern.
    pub loadfile: Option<InputFile>,
    /// What is watched besides this host.
    pub monitors: Vec<MonitorUrl>,
    /// What agents see of their hosts is told in full.
    pub monitors_agents: bool,
    /// Who looks on while the run goes.
    pub observers: ObserverWishes,
    /// What the user states for the disclosure.
    pub statements: Vec<Setting>,
    /// Inventories of other hosts, and what can only be stated.
    pub systems: Systems,
    /// The limits of the load to be searched; `None` for a run of the suite's ladder.
    pub capacity: Option<CapacityAsked>,
    /// Conditions under which the run fails.
    pub gates: Gates,
    /// What is set on the servers of the run once they answer.
    pub after_start: Vec<LevelCommands>,
    /// The command line, without passwords.
    pub command: Vec<String>,
}

impl RunRequest {
    /// A run of a suite as it is. It has no target and no bundle yet.
    pub(crate) fn plain(suite: Suite, profile: ProfileName) -> Self {
        Self {
            out: PathBuf::new(),
            suite,
            headers: SecretHeaders::default(),
            profile,
            targets: Vec::new(),
            seed: DEFAULT_SEED,
            asked: Asked::default(),
            loadfile: None,
            monitors: Vec::new(),
            monitors_agents: false,
            observers: ObserverWishes::default(),
            statements: Vec::new(),
            systems: Systems::default(),
            capacity: None,
            gates: Gates::default(),
            after_start: Vec::new(),
            command: command_line(),
        }
    }
}

/// What has been settled.
pub(super) struct RunSetup {
    /// The protocol.
    pub registration: &'static Registration,
    /// The servers, running and reached.
    pub targets: Vec<Target>,
    /// What each server says it is.
    pub software: Vec<Option<String>>,
    /// Cores, workers, pacing.
    pub placement: Placement,
    /// The workload.
    pub plan: Plan,
    /// What set-up asks the servers through.
    pub dial: SystemDial,
    /// The loads.
    pub ladder: LadderPlan,
    /// Addresses the clients connect from; empty leaves it to the system.
    pub sources: Vec<IpAddr>,
    /// The shipped suite of the suite's name without changes, once it was asked for.
    pub shipped: OnceCell<Option<Suite>>,
    /// Highest load in ops/s that the file set was made for; `None` before a search has ended.
    pub highest: Option<f64>,
}

impl RunSetup {
    /// Its servers, with the suite as it is sent to them.
    pub(super) fn served<'a>(&'a self, sent: &'a Suite) -> Served<'a> {
        Served { protocol: self.registration, suite: sent, targets: &self.targets }
    }

    /// Resolves, places, starts, greets, plans. Load is not sent yet. `found_ops_per_s` is the
    /// highest load of a ladder that a search has given.
    pub(super) fn prepare(
        request: &RunRequest,
        found_ops_per_s: Option<f64>,
        mut fleet: Option<&mut Fleet>,
        (signals, live): (&Signals, &mut Live),
    ) -> Result<Self, Failure> {
        let suite = &request.suite;
        let registration = protocols::of(suite)?;
        let protocol = registration.protocol;
        let ladder = match request.capacity {
            Some(_) => LadderPlan::Capacity,
            None => LadderPlan::of(&suite.ladder),
        };
        let highest = found_ops_per_s.or_else(|| highest_ops_per_s(suite, &ladder));
        let addresses = servers::resolve_all(&request.targets, registration, suite)?;
        let listen_on = request.asked.listen_on.unwrap_or(LOOPBACK);
        check_ways(request, &addresses, listen_on, fleet.as_deref())?;
        let mut placement = settle_placement(request, &addresses, fleet.as_deref_mut())?;
        let limits = request.asked.server_limits.unwrap_or_default();
        narrow(&mut placement.server_cores, limits.cores)?;
        let profile = suite.profiles.get(request.profile);
        let file_set = protocol.file_set_needed(suite, profile, highest)?;
        let cores = &placement.server_cores;
        let ServerLimits { threads, work, .. } = limits;
        let wish = ServerWish { suite, cores, threads, work, file_set, listen_on };
        let ServerLimits { quota_cores, memory_bytes, .. } = limits;
        let confinement = Confinement { quota_cores, memory_bytes };
        let start = |(spec, address)| {
            let mut target = servers::start(spec, address, registration, &wish, (signals, live))?;
            target.hold(&confinement)?;
            Ok::<_, Failure>(target)
        };
        let places = request.targets.iter().zip(addresses);
        let mut targets: Vec<Target> = places.map(start).collect::<Result<_, _>>()?;
        conditioning::check(suite, &targets)?;
        let needs = if file_set.is_some() { NeedsFiles::Yes } else { NeedsFiles::No };
        let Greeting { file_set: held, software } = (registration.greet)(suite, &targets, needs)?;
        set_after_start(&request.after_start, &mut targets, signals)?;
        let resolved: Vec<ResolvedTarget> = targets.iter().map(|t| t.resolved.clone()).collect();
        let (dial, files) = (SystemDial::new(signals.clone()), HostFiles::default());
        let sent = request.headers.put_into(suite);
        let asked = PlanRequest {
            seed: request.seed,
            highest_ops_per_s: highest,
            file_set: held,
            files: &files,
            loadfile: request.loadfile.as_ref(),
            ..PlanRequest::plain(&sent, profile, &resolved, &dial)
        };
        let plan = (protocol.plan)(&asked)?;
        if let Some(fleet) = fleet {
            let asked = PlanRequest { learnt: plan.learnt.as_deref(), ..asked };
            fleet.plan(&order_of(&asked, request.profile, &files.known())?, signals)?;
        }
        refuse_score(suite, &plan)?;
        let addresses = plan.addresses.iter().flatten();
        targets.iter_mut().zip(addresses).for_each(|(target, at)| target.resolved.address = *at);
        let sources = match request.asked.sources.is_empty() {
            true => (registration.sources)(suite, &targets),
            false => request.asked.sources.clone(),
        };
        Ok(Self {
            registration,
            targets,
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

    /// Where the clients connect.
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        let endpoint = |target: &Target| Endpoint {
            target: target.name(),
            address: target.resolved.address,
            unix: target.resolved.unix.clone(),
        };
        self.targets.iter().map(endpoint).collect()
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

/// Refuses servers that those who make the load do not reach, or not from where they are to.
fn check_ways(
    request: &RunRequest,
    addresses: &[Option<ResolvedTarget>],
    listen_on: IpAddr,
    fleet: Option<&Fleet>,
) -> Result<(), Failure> {
    if let Some(fleet) = fleet {
        let all = request.targets.iter().zip(addresses);
        let whereabouts = all.map(|(spec, address)| match address {
            Some(resolved) => Whereabouts::Runs(resolved),
            None => Whereabouts::Listens(spec, listen_on),
        });
        return fleet.refuse_out_of_reach(&whereabouts.collect::<Vec<_>>());
    }
    let running: Vec<ResolvedTarget> = addresses.iter().flatten().cloned().collect();
    own_addresses::check(&request.asked.sources, &running)?;
    let starts = running.len() < addresses.len();
    let sources = request.asked.sources.iter().filter(|_| starts);
    sources.copied().try_for_each(|it| own_addresses::check_way(it, (listen_on, 0).into()))
}

/// Ops that the suite's score does not know.
fn refuse_score(suite: &Suite, plan: &Plan) -> Result<(), Failure> {
    let Some(score) = &suite.score else { return Ok(()) };
    let refused = score.refuse_ops(&plan.op_names);
    refused.map_err(|why| Failure::wrong(format!("suite {}: {why}", suite.name)))
}

/// Reduces the cores of a server to the number that was asked for.
fn narrow(cores: &mut Vec<u32>, wanted: Option<u32>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    if cores.len() < wanted as usize {
        return Err(Failure::unusable(format!(
            "{wanted} cores were asked for and the server may have {} here: the others are the \
             generator's; take fewer cores, or a larger host",
            cores.len()
        )));
    }
    cores.truncate(wanted as usize);
    Ok(())
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
pub(crate) fn cores_of_program() -> Result<&'static [u32], Failure> {
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
        ServerPlace::Ours
    } else if addresses.iter().flatten().any(is_here) {
        ServerPlace::SameHost(listening_on(addresses))
    } else {
        ServerPlace::Elsewhere
    };
    let (workers, pacing) = (request.asked.workers, request.asked.pacing);
    let placement = match fleet {
        None => place(cores, &server, workers, pacing),
        Some(fleet) => place_agents(fleet, cores, &server, (workers, pacing)),
    };
    cores::pin_current_thread(&placement.setup_cores)
        .map_err(|e| Failure::unusable(format!("cannot pin to cores of its own: {e}")))?;
    Ok(placement)
}

/// What is known of the servers that somebody else placed on this host; nothing, unless each of
/// them is known.
fn listening_on(addresses: &[Option<ResolvedTarget>]) -> Option<Listening> {
    let here = addresses.iter().flatten().filter(|target| is_here(target));
    let found = here.map(who_listens).collect::<Option<Vec<_>>>()?;
    found.into_iter().reduce(|mut all, one| {
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
        let exit = match error {
            SetupError::Unusable(_) => Exit::Unusable,
            SetupError::Wrong(_) => Exit::Wrong,
            SetupError::Stopped => Exit::Interrupted,
        };
        Self::Other { exit, message: error.to_string() }
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
