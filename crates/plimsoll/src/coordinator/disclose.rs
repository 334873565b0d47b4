//! What must be known to repeat the run.

use plimsoll_engine::agent;
use plimsoll_model::assignment::Priority;
use plimsoll_model::certificate::Circumstances;
use plimsoll_model::disclosure::{Disclosure, Setting, TargetDisclosure, Tool};
use plimsoll_model::target::TargetSpec;
use plimsoll_monitor::Root;

use super::jitter;
use super::run_setup::{RunRequest, RunSetup};
use super::{server_status, sources};
use crate::certificates;
use crate::secrets::{HEADER_FACT, kept_headers};
use plimsoll_protocol::host::Target;

/// Version of `disclosure.json`.
const DISCLOSURE_FORMAT: u32 = 1;
/// Names of the settings that a resumed run takes up again.
pub(super) const WORKERS: &str = "workers";
pub(super) const PACING: &str = "pacing";
pub(super) const PRIORITY: &str = "priority of the workers";
/// What a server of ours was held to.
pub(super) const HELD: &str = "server held to";
/// The run's place in several.
pub(super) const IN_A_ROW: &str = "runs in a row";
/// How the value of [`PRIORITY`] begins where nothing was asked for.
pub(super) const PRIORITY_NORMAL: &str = "normal";

/// Collects it.
pub(super) fn disclosure(request: &RunRequest, setup: &RunSetup) -> Disclosure {
    let host = plimsoll_monitor::inventory(&[("bundle", &request.out)]);
    let targets = setup.targets.iter().zip(&setup.software);
    let certificate = certificates::latest(&Circumstances {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: if cfg!(debug_assertions) { "debug".into() } else { "release".into() },
        kernel: host.kernel.clone(),
        governor: certificates::governor(&host),
        pacing: Some(setup.placement.pacing.as_str().to_owned()),
        priority: Some(certificates::priority_word(request.priority).to_owned()),
        protocol: Some(request.suite.protocol.clone()),
    });
    Disclosure {
        format: DISCLOSURE_FORMAT,
        tool: Tool {
            name: "plimsoll".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            build: if cfg!(debug_assertions) { "debug".into() } else { "release".into() },
        },
        generator: host,
        targets: targets.map(|(target, said)| of_target(target, said.as_deref())).collect(),
        setup: settled(request, setup),
        statements: request.statements.clone(),
        not_verified: not_verified(setup),
        certificate,
    }
}

fn of_target(target: &Target, said: Option<&str>) -> TargetDisclosure {
    let address = target.resolved.address;
    let process = target.process.as_ref();
    TargetDisclosure {
        target: target.name(),
        address: target.resolved.place(),
        software: process.map(|p| p.software.to_string()).or_else(|| said.map(str::to_owned)),
        configuration: process.map(|p| p.configuration.clone()),
        cores: process.map(|p| p.cores.clone()).unwrap_or_default(),
        same_host: address.ip().is_loopback(),
        facts: vec![Setting::new("url", target.resolved.url.to_string())],
    }
}

fn settled(request: &RunRequest, setup: &RunSetup) -> Vec<Setting> {
    let placement = &setup.placement;
    let cores = |cores: &[u32]| match cores {
        [] => "left to the system".to_owned(),
        cores => cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut settings = vec![
        Setting::new(WORKERS, placement.workers.to_string()),
        Setting::new("cores of the generator", cores(&placement.generator_cores)),
        Setting::new("cores of coordinator and monitors", cores(&placement.rest_cores)),
        Setting::new("placement", placement.why.clone()),
        Setting::new(PACING, placement.pacing.as_str()),
        Setting::new(
            PRIORITY,
            match request.priority {
                Priority::Normal => PRIORITY_NORMAL,
                Priority::Auto => agent::raised_priority(),
            },
        ),
        Setting::new("driver", "epoll"),
    ];
    if let (Some(first), Some(last)) = (setup.sources.first(), setup.sources.last()) {
        settings.push(Setting::new("source addresses", format!("{first} to {last}")));
    }
    settings.extend(request.held.iter().map(|held| Setting::new(HELD, held.to_string())));
    settings.extend(request.in_a_row.iter().map(|text| Setting::new(IN_A_ROW, text)));
    settings.extend(sources::settings(&request.monitors));
    settings.extend(jitter::settings(&placement.generator_cores, request.profile));
    settings.extend(facts(request, setup));
    settings
}

/// What the plan says of itself; header fields as the suite is kept with them.
fn facts(request: &RunRequest, setup: &RunSetup) -> Vec<Setting> {
    let mut headers = kept_headers(&request.suite).into_iter();
    let mut facts = setup.plan.facts.clone();
    for fact in facts.iter_mut().filter(|fact| fact.name == HEADER_FACT) {
        fact.value = headers.next().unwrap_or_default();
    }
    facts
}

fn not_verified(setup: &RunSetup) -> Vec<String> {
    let foreign = setup.targets.iter().filter(|t| matches!(t.spec, TargetSpec::Url(_)));
    let unseen = foreign.map(|target| {
        format!(
            "{}: hardware, operating system, software and tuning of the server; state them \
                 with --set disclosure.KEY=VALUE",
            target.name()
        )
    });
    let servers: Vec<u32> = setup.targets.iter().flat_map(Target::pids).collect();
    let unreadable = plimsoll_monitor::unreadable(&Root::default(), &servers);
    unseen
        .chain(server_status::not_told(setup.registration, &setup.targets))
        .chain(unreadable)
        .collect()
}
