//! Collects everything that is needed to repeat the run.

use plimsoll_engine::agent;
use plimsoll_model::assignment::Priority;
use plimsoll_model::certificate::{CertificateNote, RunEnvironment};
use plimsoll_model::disclosure::{
    AgentDisclosure, AgentHost, Disclosure, Host, RouteDisclosure, Setting, TargetDisclosure,
};
use plimsoll_model::inventory::{ConfigurationFile, SystemInventory};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::counted;
use plimsoll_monitor::{MonitorUrl, Root, interface_towards};
use plimsoll_servers::cores;
use plimsoll_servers::software::{configuration_file, running};

use super::jitter;
use super::run_setup::{RunRequest, RunSetup, cores_of_program};
use super::server_status;
use super::sources::RequestedMonitor;
use crate::certificates;
use crate::fleet::{Fleet, Member};
use crate::host_inventory::{self, own_sha256};
use crate::secrets::{HEADER_FACT, hidden, kept_headers};
use crate::systems;
use plimsoll_protocol::host::{Target, who_listens};

/// Version of `disclosure.json`.
const DISCLOSURE_FORMAT: u32 = 1;

pub(super) fn disclosure(
    request: &RunRequest,
    setup: &RunSetup,
    fleet: Option<&Fleet>,
) -> Disclosure {
    let served = setup.targets.iter().filter_map(Target::serves);
    let mut paths = vec![("bundle", request.out.as_path())];
    paths.extend(served.map(|path| ("served files", path)));
    let mut host = plimsoll_monitor::inventory(&paths);
    hidden::file_systems(&mut host.file_systems);
    // This thread may be pinned to some of them by now.
    if let Ok(cores) = cores_of_program() {
        host.cpus_available = Some(cores.len() as u32);
    }
    let targets = setup.targets.iter().zip(&setup.software);
    let targets: Vec<_> =
        targets.map(|(target, reported)| of_target(target, reported.as_deref())).collect();
    let systems = request.systems.with_targets(&host, &targets);
    let certified = |name: &str, host: &Host| {
        certificates::latest(name, &run_environment(request, setup, host))
    };
    let certificate = certified(&certificates::host_name(), &host);
    let agent_hosts = fleet.map(|fleet| agent_hosts(fleet, &certified)).unwrap_or_default();
    Disclosure {
        format: DISCLOSURE_FORMAT,
        tool: host_inventory::tool(),
        setup: settled(request, setup, fleet),
        not_verified: not_verified((request, setup), (&targets, &agent_hosts), &systems),
        monitored: Vec::new(),
        disk_sets: Vec::new(),
        agent_hosts,
        agents: fleet.map(|fleet| agents_with_routes(fleet, &setup.targets)).unwrap_or_default(),
        statements: request.statements.clone(),
        topology: topology((&host, fleet), &setup.targets, &request.monitors),
        generator: host,
        targets,
        systems,
        stated: Some(request.systems.declared.clone()),
        certificate,
    }
}

/// The conditions that a certificate of a load-making host should cover.
fn run_environment(request: &RunRequest, setup: &RunSetup, host: &Host) -> RunEnvironment {
    RunEnvironment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: if cfg!(debug_assertions) { "debug".into() } else { "release".into() },
        kernel: host.kernel.clone(),
        governor: certificates::governor(host),
        processor: certificates::processor(host),
        pacing: Some(setup.placement.pacing.as_str().to_owned()),
        priority: Some(certificates::priority_word(request.options.priority).to_owned()),
        protocol: Some(setup.plan.spoken.unwrap_or(&request.suite.protocol).to_owned()),
    }
}

fn of_target(target: &Target, reported: Option<&str>) -> TargetDisclosure {
    let process = target.process.as_ref();
    let mut software =
        process.map(|p| p.software.to_string()).or_else(|| reported.map(str::to_owned));
    let mut facts = vec![Setting::new("url", target.resolved.url.to_string())];
    let others: Vec<String> = target.resolved.others.iter().map(ToString::to_string).collect();
    if !others.is_empty() {
        facts.push(Setting::new("other addresses of the name, without load", others.join(", ")));
    }
    let server = process.map_or_else(|| local_server(target), |_| LocalServer::default());
    software = software.or(server.version);
    facts.extend(server.facts);
    TargetDisclosure {
        target: target.name(),
        address: target.resolved.endpoint(),
        software,
        configuration: process.map(|p| p.configuration.clone()),
        configuration_file: server.configuration_file,
        cores: process.map(|p| p.cores.clone()).unwrap_or_default(),
        same_host: target.is_here,
        facts,
    }
}

/// A server on this host that was not started by this run, as far as its processes are visible.
#[derive(Default)]
struct LocalServer {
    version: Option<String>,
    configuration_file: Option<ConfigurationFile>,
    facts: Vec<Setting>,
}

fn local_server(target: &Target) -> LocalServer {
    let Some(listening) = who_listens(&target.resolved) else { return LocalServer::default() };
    let mut facts = vec![Setting::new("processes", &listening.who)];
    let cores: Vec<String> = listening.cores.iter().map(u32::to_string).collect();
    facts.push(Setting::new("may run on cores", cores.join(", ")));
    let Some(pid) = listening.pids.first().copied() else {
        return LocalServer { facts, ..LocalServer::default() };
    };
    let process = running(pid);
    facts.extend(process.program.map(|p| Setting::new("program", p.display().to_string())));
    facts.extend(process.version.clone().map(|version| Setting::new("says of itself", version)));
    if !process.arguments.is_empty() {
        let line = hidden::command_line(&process.arguments);
        facts.push(Setting::new("command line", line));
    }
    let configuration_file = configuration_file(pid);
    LocalServer { version: process.version, configuration_file, facts }
}

/// The role of each host: the generator with its addresses, each target and the link to it,
/// monitored hosts.
fn topology(
    (host, fleet): (&Host, Option<&Fleet>),
    targets: &[Target],
    monitors: &[RequestedMonitor],
) -> Vec<Setting> {
    let name = host.name.as_deref().unwrap_or("this host");
    let addresses = match host.addresses.is_empty() {
        true => "loopback only".to_owned(),
        false => host.addresses.join(", "),
    };
    let generator = match fleet {
        None => {
            let what =
                format!("{name}, {addresses}; coordinator, load generator and local monitors");
            Setting::new("generator", what)
        }
        Some(_) => {
            let what = format!("{name}, {addresses}; coordinator and local monitors");
            Setting::new("coordinator", what)
        }
    };
    let of_target = |target: &Target| {
        let endpoint = target.resolved.endpoint();
        let where_it_is = match &target.process {
            Some(process) => format!("{endpoint}, process {} of this run, {name}", process.pid()),
            None if target.is_here => format!("{endpoint}, {name}"),
            None => format!("{endpoint}, another host"),
        };
        let link = interface_towards(&Root::default(), target.resolved.address.ip());
        Setting::new(target.name(), format!("{where_it_is}; {}", link_text(host, link.as_deref())))
    };
    let others = monitors.iter().filter(|it| it.url != MonitorUrl::Local);
    let watched = others.map(|it| {
        let role =
            it.role.map_or_else(String::new, |role| format!("; {}, as given", role.as_str()));
        Setting::new(it.url.to_string(), format!("watched from the generator{role}"))
    });
    std::iter::once(generator).chain(targets.iter().map(of_target)).chain(watched).collect()
}

fn link_text(host: &Host, interface: Option<&str>) -> String {
    let Some(interface) = interface else { return "over a link that is not known".to_owned() };
    let mut text = format!("over {interface}");
    let network = host.networks.iter().find(|network| network.name == interface);
    let speed = network.and_then(|network| network.speed_mbit_per_s);
    if let Some(speed) = speed {
        text.push_str(&format!(", {speed} Mbit/s"));
    }
    text
}

/// The agents with their routes to the servers.
fn agents_with_routes(fleet: &Fleet, targets: &[Target]) -> Vec<AgentDisclosure> {
    let of_agent = |member: &Member| {
        let (greeting, allocation) = (member.greeting.as_ref()?, &member.allocation);
        let all: Vec<usize> = (0..targets.len()).collect();
        let used = if allocation.targets.is_empty() { &all } else { &allocation.targets };
        let routes = used.iter().zip(&member.routes).filter_map(|(at, route)| {
            let speed = |name: &String| {
                let mut networks = greeting.inventory.networks.iter();
                networks.find(|network| network.name == *name)?.speed_mbit_per_s
            };
            Some(RouteDisclosure {
                target: targets.get(*at)?.name(),
                address: targets[*at].resolved.endpoint(),
                source: route.source.map(|source| source.to_string()),
                interface: route.interface.clone(),
                speed_mbit_per_s: route.interface.as_ref().and_then(speed),
            })
        });
        Some(AgentDisclosure {
            agent: member.spec.name.clone(),
            host: greeting.host.clone(),
            workers: allocation.workers,
            cores: allocation.cores.clone(),
            sources: allocation.sources.iter().map(ToString::to_string).collect(),
            ways: routes.collect(),
        })
    };
    fleet.living().filter_map(|(_, member)| of_agent(member)).collect()
}

/// The hosts of the agents, each once.
fn agent_hosts(
    fleet: &Fleet,
    certified: &dyn Fn(&str, &Host) -> Option<CertificateNote>,
) -> Vec<AgentHost> {
    let mut hosts: Vec<(&str, AgentHost)> = Vec::new();
    for (_, member) in fleet.living() {
        let Some(greeting) = &member.greeting else { continue };
        match hosts.iter_mut().find(|(boot_id, _)| *boot_id == greeting.boot_id) {
            Some((_, host)) => host.agents.push(member.spec.name.clone()),
            None => {
                let (agents, mut host) =
                    (vec![member.spec.name.clone()], greeting.inventory.clone());
                hidden::file_systems(&mut host.file_systems);
                let certificate = certified(&greeting.host, &host);
                hosts.push((&greeting.boot_id, AgentHost { agents, host, certificate }));
            }
        }
    }
    hosts.into_iter().map(|(_, host)| host).collect()
}

/// What each agent may use, how it differs from this program, and which agents are missing.
fn of_agents(fleet: &Fleet) -> Vec<Setting> {
    let own = own_sha256();
    let of_agent = |member: &Member| {
        let (greeting, allocation) = (member.greeting.as_ref()?, &member.allocation);
        let ports = if greeting.reserves_ports { "" } else { ", no reserved ports" };
        let program = match own.as_ref() == Some(&greeting.program_sha256) {
            true => "the same program",
            false => "another build of the program",
        };
        let mut text = format!(
            "{}, kernel {}; {} on cores {}; {program}{ports}",
            greeting.host,
            greeting.system,
            counted(allocation.workers as usize, "worker"),
            cores::list(&allocation.cores)
        );
        if !allocation.sources.is_empty() {
            let sources: Vec<String> = allocation.sources.iter().map(ToString::to_string).collect();
            text.push_str(&format!("; connects from {}", sources.join(", ")));
        }
        Some(Setting::new(format!("agent {}", member.spec.name), text))
    };
    let lost = fleet.members().iter().filter(|member| member.loss.is_some());
    let lost = lost.map(|member| Setting::new("agent that is not there", member.loss_text()));
    fleet.living().filter_map(|(_, member)| of_agent(member)).chain(lost).collect()
}

fn settled(request: &RunRequest, setup: &RunSetup, fleet: Option<&Fleet>) -> Vec<Setting> {
    let placement = &setup.placement;
    let named = |cores: &[u32]| match cores {
        [] => "left to the system".to_owned(),
        cores => cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut settings = vec![
        Setting::new("workers", placement.workers.to_string()),
        match fleet {
            None => Setting::new("cores of the generator", named(&placement.generator_cores)),
            Some(_) => Setting::new("cores of the generator", "those of its agents, below"),
        },
        Setting::new("cores of coordinator and monitors", named(&placement.rest_cores)),
        Setting::new("placement", placement.why.clone()),
        Setting::new("pacing", placement.pacing.as_str()),
        Setting::new(
            "priority of the workers",
            match request.options.priority {
                Priority::Normal => "normal".to_owned(),
                Priority::Auto => agent::raised_priority(),
            },
        ),
        Setting::new("driver", "epoll"),
    ];
    settings.extend(fleet.map(of_agents).unwrap_or_default());
    settings.extend(source_addresses(request, setup));
    let limits = request.options.server_limits.iter();
    settings.extend(limits.map(|limits| Setting::new("server held to", limits.to_string())));
    let in_a_row = request.options.in_a_row.iter();
    settings.extend(in_a_row.map(|run| Setting::new("runs in a row", run.to_string())));
    let monitors = request.monitors.iter();
    settings.extend(monitors.map(|it| Setting::new("monitor", it.to_string())));
    settings.extend(jitter::settings(
        &placement.generator_cores,
        request.suite.profiles.get(request.profile),
    ));
    settings.extend(facts(request, setup));
    settings
}

/// The source addresses of this program's clients.
fn source_addresses(request: &RunRequest, setup: &RunSetup) -> Option<Setting> {
    let (first, last) = (setup.sources.first()?, setup.sources.last()?);
    let text = match request.options.sources.is_empty() {
        true => format!("{first} to {last}"),
        false => {
            let all: Vec<String> = setup.sources.iter().map(ToString::to_string).collect();
            format!("{}, as asked for", all.join(", "))
        }
    };
    Some(Setting::new("source addresses", text))
}

/// The plan's facts; header fields are given as the suite keeps them.
fn facts(request: &RunRequest, setup: &RunSetup) -> Vec<Setting> {
    let mut headers = kept_headers(&request.suite).iter();
    let mut facts = setup.plan.facts.clone();
    for fact in facts.iter_mut().filter(|fact| fact.name == HEADER_FACT) {
        fact.value = headers.next().cloned().unwrap_or_default();
    }
    facts
}

fn not_verified(
    (request, setup): (&RunRequest, &RunSetup),
    (targets, agent_hosts): (&[TargetDisclosure], &[AgentHost]),
    systems: &[SystemInventory],
) -> Vec<String> {
    let pairs = setup.targets.iter().zip(targets);
    let foreign = pairs.filter(|(target, _)| matches!(target.spec, TargetSpec::Url(_)));
    let unseen = foreign.map(|(target, disclosed)| {
        let name = target.name();
        let described = systems.iter().any(|given| given.of_targets.contains(&name));
        match (disclosed.same_host, described) {
            (true, _) => format!(
                "{name}: configuration and data of the server, which somebody else started here"
            ),
            (false, true) => format!("{name}: configuration and data of the server"),
            (false, false) => format!(
                "{name}: hardware, operating system, software and tuning of the server; run \
                 `plimsoll inventory --json` there and give its file with --system, or state them \
                 with --system system.toml or --set disclosure.KEY=VALUE"
            ),
        }
    });
    let servers: Vec<u32> = setup.targets.iter().flat_map(Target::pids).collect();
    let unreadable = plimsoll_monitor::unreadable(&Root::default(), &servers);
    let sent = request.headers.put_into(&request.suite);
    unseen
        .chain(systems::not_verified(systems))
        .chain(server_status::not_reported(setup.served(&sent)))
        .chain(unreadable)
        .chain(without_certificate(agent_hosts))
        .collect()
}

/// The agents' hosts without a calibration certificate: the error of their figures is unknown.
fn without_certificate(hosts: &[AgentHost]) -> Option<String> {
    let lacking = hosts.iter().filter(|of| of.certificate.is_none());
    let names: Vec<&str> =
        lacking.map(|of| of.host.name.as_deref().unwrap_or("not named")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "how far times measured on agents' hosts are from the truth: there is no certificate \
             of calibration of {}; make one of each host with `plimsoll calibrate --agents WHERE`",
            names.join(", ")
        )
    })
}
