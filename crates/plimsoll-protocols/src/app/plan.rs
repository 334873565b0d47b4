//! From a suite and its targets to a preparation for each load point, with everything that
//! departs from the published method named.

use plimsoll_model::assignment::OpNames;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::{LoadSpec, Profile, Suite};
use plimsoll_model::units::Bytes;

use super::op::AppKind;
use super::parameters::{self, AppMix, AppWorkload};
use super::prepare::{AppPreparation, PreparationRequest, Site, greet};
use super::session::segment_of;
use super::wire::{RequestType, Welcome};
use crate::net::ErrandError;
use crate::{Plan, PlanError, PlanRequest, ResolvedTarget, Work};

/// The kinds of the method; the others are additions.
const METHOD_KINDS: usize = 5;

/// The segments are filled through the server: none is needed before.
pub fn needed_file_set(
    _: &Suite,
    _: &Profile,
    _: Option<f64>,
) -> Result<Option<crate::http::fileset::FileSetId>, PlanError> {
    Ok(None)
}

/// The `[workload]` of a suite.
pub fn typed(suite: &Suite) -> Result<AppWorkload, PlanError> {
    suite.workload.clone().try_into().map_err(|e: toml::de::Error| PlanError::Workload {
        suite: suite.name.clone(),
        reason: e.message().to_owned(),
    })
}

/// Greets every server and plans the work.
pub fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload = typed(request.suite)?;
    let sites = sites(request.targets)?;
    let mut welcomes = Vec::new();
    for site in &sites {
        let welcome = greet(site, request.dial)?;
        check_calibrated(site, &welcome, &workload)?;
        welcomes.push(welcome);
    }
    let departures = departures(request, &workload, &welcomes);
    let mut facts = facts(request, &workload);
    for (site, welcome) in sites.iter().zip(&welcomes) {
        facts.extend(server_facts(site, welcome, sites.len()));
    }
    let op_shares = Some(workload.mix.shares());
    let preparation = AppPreparation::new(PreparationRequest {
        sites,
        workload,
        scale: request.profile.workload_scale,
        seed: request.seed,
    });
    Ok(Plan {
        work: Work::PerPoint(Box::new(preparation)),
        op_names: OpNames(parameters::op_names()),
        op_shares,
        addresses: None,
        reserved_ports: false,
        departures,
        facts,
    })
}

fn sites(targets: &[ResolvedTarget]) -> Result<Vec<Site>, PlanError> {
    if targets.is_empty() {
        return Err(PlanError::NoTarget);
    }
    let site = |target: &ResolvedTarget| match target.url.scheme.as_str() {
        "app" => Ok(Site { name: target.url.to_string(), address: target.address }),
        _ => Err(PlanError::Scheme {
            target: target.url.to_string(),
            protocol: super::PROTOCOL.name,
            schemes: "app",
        }),
    };
    targets.iter().map(site).collect()
}

/// A calibrated server answers after drawn times and does no work: nothing else is a fair question.
fn check_calibrated(
    site: &Site,
    welcome: &Welcome,
    workload: &AppWorkload,
) -> Result<(), ErrandError> {
    let other = workload.mix.kinds().find(|kind| *kind != AppKind::ClientServer);
    match other.filter(|_| welcome.calibrated) {
        None => Ok(()),
        Some(kind) => Err(ErrandError::Wrong(format!(
            "{}: the server is calibrated: it answers after times it draws and does no work, so \
             that a {} transaction means nothing; set the weights of all kinds but \
             client_server to 0, or start the server without --calibrated",
            site.name,
            kind.name()
        ))),
    }
}

fn departures(
    request: &PlanRequest<'_>,
    workload: &AppWorkload,
    welcomes: &[Welcome],
) -> Vec<String> {
    let mut departures = vec![
        "all clients are simulated by one program on one host; the method has a machine for each"
            .to_owned(),
    ];
    let mut departs = |text: String| departures.push(text);
    match &request.suite.load {
        LoadSpec::Open { .. } => {
            departs("an open load; the method's clients wait for each reply".to_owned());
        }
        LoadSpec::Closed { think, .. } if think.mean.0 > 0 => {
            let mean = think.mean;
            departs(format!("a think time of {mean}; the method's clients do not think"));
        }
        LoadSpec::Closed { .. } => {}
    }
    let names =
        |kinds: Vec<AppKind>| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let used: Vec<AppKind> = workload.mix.kinds().collect();
    let (method, added) = AppKind::ALL.split_at(METHOD_KINDS);
    let missing: Vec<AppKind> =
        method.iter().copied().filter(|kind| !used.contains(kind)).collect();
    let beyond: Vec<AppKind> = added.iter().copied().filter(|kind| used.contains(kind)).collect();
    if !missing.is_empty() {
        departs(format!("transactions of the method that are left out: {}", names(missing)));
    }
    if !beyond.is_empty() {
        departs(format!("transactions the method does not have: {}", names(beyond)));
    }
    let needs_segment = used.iter().any(|kind| kind.needs_segment());
    departures.extend(segment_departures(request, workload).filter(|_| needs_segment));
    if has_own_sizes(workload) {
        departures.push(
            "sizes, work or weights of the transactions differ from the suite's, which fill in \
             what the report leaves open"
                .to_owned(),
        );
    }
    if welcomes.iter().any(|welcome| welcome.calibrated) {
        departures.push(
            "the server is calibrated: replies leave after times it draws, and no work is done"
                .to_owned(),
        );
    }
    departures
}

fn segment_departures(
    request: &PlanRequest<'_>,
    workload: &AppWorkload,
) -> impl Iterator<Item = String> {
    let method = AppWorkload::default();
    let scale = request.profile.workload_scale;
    let segment = segment_of(workload, scale);
    let whole = segment_of(&method, 1.0);
    let size = (segment.bytes() != whole.bytes()).then(|| {
        format!(
            "data segments of {} instead of the method's {}: workload_scale = {scale}",
            Bytes(segment.bytes()),
            Bytes(whole.bytes())
        )
    });
    let ratio = workload.segment_access_ratio;
    let access = (ratio != method.segment_access_ratio).then(|| {
        format!("a segment access ratio of {ratio} instead of the method's 1: a part is never used")
    });
    size.into_iter().chain(access)
}

/// What the report leaves open is not as the suites have it. Weights of a suite with fewer kinds
/// are its own affair.
fn has_own_sizes(workload: &AppWorkload) -> bool {
    let ours = AppWorkload::default();
    let sizes = |w: &AppWorkload| {
        (w.request_bytes, w.reply_bytes, w.server_client_bytes, w.access_bytes, w.work)
    };
    let weights = workload.mix.weights().into_iter().filter(|weight| *weight > 0.0);
    let mut weights: Vec<f64> = weights.collect();
    weights.dedup();
    let is_whole_mix = workload.mix.kinds().eq(AppMix::default().kinds());
    sizes(workload) != sizes(&ours) || (is_whole_mix && weights.len() > 1)
}

fn facts(request: &PlanRequest<'_>, workload: &AppWorkload) -> Vec<Setting> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
    let shares = workload.mix.shares();
    let used: Vec<AppKind> = workload.mix.kinds().collect();
    let has = |kind: RequestType| used.iter().any(|one| one.request_type() == kind);
    let mix: Vec<String> = used
        .iter()
        .map(|kind| format!("{} {:.1}", kind.name(), shares[*kind as usize] * 100.0))
        .collect();
    fact("op mix", format!("{} % of transactions; weights unpublished", mix.join(", ")));
    if has(RequestType::ClientServer) {
        let AppWorkload { request_bytes, reply_bytes, .. } = workload;
        let sizes = format!("request of {request_bytes} B, reply of {reply_bytes} B; unpublished");
        fact("client/server", sizes);
    }
    if has(RequestType::Processor) {
        let work = format!("{} checksums over 64 KiB; unpublished", workload.work);
        fact("processor", work);
    }
    if has(RequestType::ServerClient) {
        let bytes = Bytes(u64::from(workload.server_client_bytes));
        fact("server/client", format!("reply of {bytes}; unpublished"));
    }
    if used.iter().any(|kind| kind.needs_segment()) {
        let segment = segment_of(workload, request.profile.workload_scale);
        let ratio = workload.segment_access_ratio;
        let text = format!("{} for each client, access ratio {ratio}", Bytes(segment.bytes()));
        fact("data segment", text);
        let access = Bytes(u64::from(workload.access_bytes));
        fact("disk access", format!("{access}; unpublished"));
        fact("file set seed", workload.file_set_seed.to_string());
    }
    fact("timings", "those of every profile are ours; the report names none".to_owned());
    fact(
        "content verified",
        format!(
            "the checksum of every reply; the body of one server/client reply in {}",
            workload.verify_one_in
        ),
    );
    facts
}

/// What a server said of itself.
fn server_facts(site: &Site, welcome: &Welcome, servers: usize) -> Vec<Setting> {
    let named = |name: &str| match servers {
        1 => name.to_owned(),
        _ => format!("{name}, {}", site.name),
    };
    let threads = match welcome.service_threads {
        0 => "not a fixed number".to_owned(),
        threads => threads.to_string(),
    };
    let writes = match welcome.durable {
        true => "durable before their reply",
        false => "not forced to disk",
    };
    let memory = match welcome.memory_bytes {
        0 => "not limited, or not known".to_owned(),
        bytes => Bytes(bytes).to_string(),
    };
    vec![
        Setting::new(named("service threads"), threads),
        Setting::new(named("writes"), writes.to_owned()),
        Setting::new(named("server memory for data"), memory),
    ]
}
