//! From a suite and its targets to a preparation for each load point, with its parameters resolved.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::method::Practice;
use plimsoll_model::units::Bytes;

use super::op::AppKind;
use super::parameters::{self, AppWorkload};
use super::prepare::{AppPreparation, PreparationRequest, Site, greet};
use super::session::segment_of;
use super::wire::{RequestType, Welcome};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{Plan, PlanError, PlanRequest, ResolvedTarget};

/// Greets every server and plans the work.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload = request.suite.workload.parameters::<AppWorkload>();
    let site =
        |target: &ResolvedTarget| Site { name: target.url.to_string(), address: target.address };
    let sites: Vec<Site> = request.targets.iter().map(site).collect();
    let mut welcomes = Vec::new();
    for site in &sites {
        let welcome = greet(site, request.dial)?;
        check_calibrated(site, &welcome, workload)?;
        welcomes.push(welcome);
    }
    let practices = practices(request, workload, &welcomes);
    let mut facts = facts(request, workload);
    for (site, welcome) in sites.iter().zip(&welcomes) {
        facts.extend(server_facts(site, welcome, sites.len()));
    }
    let op_shares = Some(workload.mix.shares());
    let preparation = AppPreparation::new(PreparationRequest {
        sites,
        workload: workload.clone(),
        scale: request.profile.workload_scale,
        seed: request.seed,
    });
    Ok(Plan::per_point(preparation, parameters::op_names(), op_shares, practices, facts))
}

/// A calibrated server answers after drawn times and does no work, so only such requests are
/// allowed.
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

fn practices(
    request: &PlanRequest<'_>,
    workload: &AppWorkload,
    welcomes: &[Welcome],
) -> Vec<Practice> {
    let used: Vec<AppKind> = workload.mix.kinds().collect();
    let names: Vec<&str> = used.iter().map(|kind| kind.name()).collect();
    let mut practices = vec![Practice::new("generator.kinds_of_transactions", names.join(", "))];
    let scale = request.profile.workload_scale;
    if scale != 1.0 && used.iter().any(|kind| kind.needs_segment()) {
        let segment = Bytes(segment_of(workload, scale).bytes());
        let text = format!("{segment} (workload_scale = {scale})");
        practices.push(Practice::new("workload.segment_mib", text));
    }
    if welcomes.iter().any(|welcome| welcome.calibrated) {
        let text = "calibrated: replies leave after times it draws, and no work is done";
        practices.push(Practice::new("generator.server", text).as_deviation());
    }
    practices
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
    fact(
        "content verified",
        format!(
            "the checksum of every reply; the body of one server/client reply in {}",
            workload.verify_one_in
        ),
    );
    facts
}

/// What a server reported of itself.
fn server_facts(site: &Site, welcome: &Welcome, servers: usize) -> Vec<Setting> {
    let named = |name: &str| match servers {
        1 => name.to_owned(),
        _ => format!("{name}, {}", site.name),
    };
    let threads = match welcome.service_threads {
        0 => "not a fixed number".to_owned(),
        threads => threads.to_string(),
    };
    let writes = if welcome.durable { "durable before their reply" } else { "not forced to disk" };
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
        let targets = [ResolvedTarget::new(url, ([127, 0, 0, 1], 7_415).into())];
        plan(&PlanRequest::plain(&suite, suite.profiles.get(profile), &targets, host))
    }

    #[test]
    fn parameters_are_stated_as_the_run_has_them() {
        let host = PeerHost::default();
        let practice = |name: &str, set: &[&str], profile, key: &str| {
            let practices = planned(name, set, profile, &host).practices;
            practices.into_iter().find(|one| one.key == key).map(|one| one.value)
        };
        let (full, quick) = (ProfileName::Full, ProfileName::Quick);
        let kinds = |name, set: &[&str]| {
            practice(name, set, full, "generator.kinds_of_transactions").unwrap()
        };
        let five = "client/server, processor, server/client, random read, random write";
        assert_eq!(kinds("transactions", &[]), five);
        let disk = kinds("transactions-disk", &["workload.mix.append=1"]);
        assert_eq!(disk, "random read, random write, append");
        let segment = |name, profile| practice(name, &[], profile, "workload.segment_mib");
        assert_eq!(segment("transactions", full), None);
        let scaled = "1.00 MiB (workload_scale = 0.0625)";
        assert_eq!(segment("transactions", quick).as_deref(), Some(scaled));
        assert_eq!(segment("transactions-processor", quick), None);
    }

    #[test]
    fn what_the_server_says_of_itself_is_disclosed() {
        let plan = planned("transactions", &[], ProfileName::Full, &PeerHost::default());
        let fact = |name: &str| {
            let matched = plan.facts.iter().find(|fact| fact.name == name);
            matched.unwrap_or_else(|| panic!("{name}")).value.clone()
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
        let server = plan.practices.iter().find(|one| one.key == "generator.server").unwrap();
        assert!(server.departs && server.value.starts_with("calibrated"), "{server:?}");
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
        let targets = [ResolvedTarget::new(url, ([127, 0, 0, 1], 1).into())];
        let profile = suite.profiles.get(ProfileName::Full);
        let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
        let failed = plan(&request).err().unwrap().to_string();
        assert!(failed.contains("app://h:1") && failed.contains("server runs there"), "{failed}");
    }
}
