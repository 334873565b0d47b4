//! From a suite and its targets to a preparation for each load point, with everything that
//! departs from the published method named.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::LoadSpec;
use plimsoll_model::units::Bytes;

use super::op::AppKind;
use super::parameters::{self, AppMix, AppWorkload};
use super::prepare::{AppPreparation, PreparationRequest, Site, greet};
use super::session::segment_of;
use super::wire::{RequestType, Welcome};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{Plan, PlanError, PlanRequest, ResolvedTarget, typed_workload};

/// The kinds of the method; the others are additions.
const METHOD_KINDS: usize = 5;

/// Greets every server and plans the work.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload: AppWorkload = typed_workload(request.suite)?;
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
    Ok(Plan::per_point(preparation, parameters::op_names(), op_shares, departures, facts))
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
) -> Result<(), SetupError> {
    let other = workload.mix.kinds().find(|kind| *kind != AppKind::ClientServer);
    match other.filter(|_| welcome.calibrated) {
        None => Ok(()),
        Some(kind) => Err(SetupError::Wrong(format!(
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

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::{Ladder, Override, ProfileName};
    use plimsoll_model::target::TargetUrl;

    use super::*;
    use crate::PROTOCOL;
    use crate::peer::PeerHost;
    use plimsoll_protocol::net::Offline;

    fn planned(name: &str, set: &[&str], profile: ProfileName, host: &PeerHost) -> Plan {
        try_planned(name, set, profile, host).unwrap_or_else(|e| panic!("{name} {set:?}: {e}"))
    }

    fn try_planned(
        name: &str,
        set: &[&str],
        profile: ProfileName,
        host: &PeerHost,
    ) -> Result<Plan, PlanError> {
        let overrides: Vec<Override> = set.iter().map(|s| Override::parse(s).unwrap()).collect();
        let suite =
            PROTOCOL.parse_suite(name, PROTOCOL.shipped(name).unwrap(), &overrides).unwrap();
        let url = TargetUrl::parse("app://127.0.0.1:7415").unwrap();
        let targets = [ResolvedTarget::at(url, ([127, 0, 0, 1], 7_415).into())];
        plan(&PlanRequest {
            suite: &suite,
            profile: suite.profiles.get(profile),
            seed: 1,
            highest_ops_per_s: None,
            targets: &targets,
            file_set: None,
            urls: None,
            loadfile: None,
            dial: host,
        })
    }

    #[test]
    fn everything_that_departs_from_the_method_is_named() {
        let host = PeerHost::default();
        let departures = |name: &str, set: &[&str], profile| {
            let mut departures = planned(name, set, profile, &host).departures;
            assert!(departures.remove(0).contains("one program on one host"));
            departures.join(" | ")
        };
        let full = ProfileName::Full;
        assert_eq!(departures("transactions", &[], full), "");
        let quick = departures("transactions", &[], ProfileName::Quick);
        assert!(quick.starts_with("data segments of 1.00 MiB instead of"), "{quick}");
        let part = departures("transactions", &["workload.segment_access_ratio=0.5"], full);
        assert!(part.contains("a segment access ratio of 0.5"), "{part}");
        let work = departures("transactions", &["workload.work=1"], full);
        assert!(work.contains("sizes, work or weights"), "{work}");
        let weights = departures("transactions", &["workload.mix.processor=1"], full);
        assert!(weights.contains("sizes, work or weights"), "{weights}");
        let disk = departures("transactions-disk", &["workload.mix.append=1"], ProfileName::Quick);
        for words in
            ["left out: client/server, processor, server/client", "not have: append", "1.00 MiB"]
        {
            assert!(disk.contains(words), "{disk}");
        }
        let processor = departures("transactions-processor", &[], ProfileName::Quick);
        assert!(!processor.contains("data segments"), "{processor}");
        let thinks = departures("transactions", &["load.think.mean=1s"], full);
        assert!(thinks.contains("a think time of 1.00 s"), "{thinks}");
    }

    #[test]
    fn what_the_server_says_of_itself_is_disclosed() {
        let plan = planned("transactions", &[], ProfileName::Full, &PeerHost::default());
        let fact = |name: &str| {
            let found = plan.facts.iter().find(|fact| fact.name == name);
            found.unwrap_or_else(|| panic!("{name}")).value.clone()
        };
        assert_eq!(fact("service threads"), "4");
        assert_eq!(fact("writes"), "durable before their reply");
        assert_eq!(fact("data segment"), "16.0 MiB for each client, access ratio 1");
        assert!(fact("processor").starts_with("100 checksums"));
        assert_eq!(plan.op_names.0.len(), 8);
        assert_eq!(plan.op_shares.unwrap()[..5], [0.2; 5]);
    }

    #[test]
    fn a_calibrated_server_is_asked_for_small_exchanges_only() {
        let host = PeerHost::default();
        host.set(|peer| peer.calibrated = true);
        let refused = try_planned("transactions", &[], ProfileName::Full, &host).err().unwrap();
        assert!(refused.to_string().contains("is calibrated"), "{refused}");
        let alone = ["workload.mix.server_client=0"];
        let plan = planned("transactions-network", &alone, ProfileName::Full, &host);
        assert!(plan.departures.last().unwrap().contains("is calibrated"));
    }

    #[test]
    fn the_suites_have_the_mixes_of_the_method_and_a_score() {
        let mut points = vec![1.0];
        points.extend((1..=15).map(|n| f64::from(n * 4)));
        for name in
            ["transactions", "transactions-processor", "transactions-disk", "transactions-network"]
        {
            let suite = PROTOCOL.parse_suite(name, PROTOCOL.shipped(name).unwrap(), &[]).unwrap();
            assert_eq!(suite.ladder, Ladder::Points { points: points.clone() }, "{name}");
            assert!(suite.score.is_some(), "{name}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_found_before_the_first_load_point() {
        let suite =
            PROTOCOL.parse_suite("t", PROTOCOL.shipped("transactions").unwrap(), &[]).unwrap();
        let url = TargetUrl::parse("app://h:1").unwrap();
        let target = ResolvedTarget::at(url, ([127, 0, 0, 1], 1).into());
        let request = PlanRequest {
            suite: &suite,
            profile: suite.profiles.get(ProfileName::Full),
            seed: 1,
            highest_ops_per_s: None,
            targets: &[target],
            file_set: None,
            urls: None,
            loadfile: None,
            dial: &Offline,
        };
        let failed = plan(&request).err().unwrap().to_string();
        assert!(failed.contains("app://h:1") && failed.contains("server runs there"), "{failed}");
    }
}
