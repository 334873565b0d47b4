//! The shipped suites, and what is planned of them.

use plimsoll_model::method::{self, MethodOf, parameters};
use plimsoll_model::suite::{Ladder, LoadSpec, Override, ProfileName, Suite, SuiteError};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::net::{Offline, SetupError};
use plimsoll_protocol::{FileSetId, Plan, PlanError, PlanRequest, ResolvedTarget};

use crate::PROTOCOL;

fn suite(name: &str, overrides: &[&str]) -> Result<Suite, SuiteError> {
    // Nobody is there to answer it.
    let all = ["workload.first_check=false"].iter().chain(overrides);
    let overrides: Vec<Override> = all.map(|text| Override::parse(text).unwrap()).collect();
    PROTOCOL.parse_suite(name, PROTOCOL.shipped(name).unwrap(), &overrides)
}

fn targets(urls: &[&str]) -> Vec<ResolvedTarget> {
    let resolve = |text: &&str| {
        ResolvedTarget::new(TargetUrl::parse(text).unwrap(), ([127, 0, 0, 1], 80).into())
    };
    urls.iter().map(resolve).collect()
}

/// Plans `suite` for one target.
fn plan(
    suite: &Suite,
    profile: ProfileName,
    change: impl FnOnce(&mut PlanRequest<'_>),
) -> Result<Plan, PlanError> {
    let targets = targets(&["http://127.0.0.1:8080/"]);
    let mut request = PlanRequest {
        highest_ops_per_s: Some(1_000.0),
        ..PlanRequest::plain(suite, suite.profiles.get(profile), &targets, &Offline)
    };
    change(&mut request);
    (PROTOCOL.plan)(&request)
}

#[test]
fn web_static_has_the_timings_and_rules_of_the_method() {
    let suite = suite("web-static", &[]).unwrap();
    let full = suite.profiles.get(ProfileName::Full);
    assert_eq!((full.warm_up, full.measure), (Nanos::from_secs(300), Nanos::from_secs(600)));
    assert_eq!(suite.ladder, Ladder::Auto { steps: 10, headroom: 1.0 });
    assert_eq!((suite.rules.rate_tolerance_ratio, suite.rules.errors_max_ratio), (0.05, 0.001));
    let quick = suite.profiles.get(ProfileName::Quick);
    assert_eq!((quick.warm_up, quick.measure), (Nanos::from_secs(1), Nanos::from_secs(3)));
}

#[test]
fn web_url_takes_clients_or_a_rate() {
    let closed = suite("web-url", &["ladder.points=[7]"]).unwrap();
    assert!(matches!(closed.load, LoadSpec::Closed { .. }));
    assert_eq!(closed.ladder, Ladder::Points { points: vec![7.0] });
    let set =
        ["load.mode=open", "load.arrivals=shared", "load.clients=32", "ladder.points=[20000]"];
    let open = suite("web-url", &set).unwrap();
    assert!(matches!(open.load, LoadSpec::Open { clients: 32, .. }));
}

#[test]
fn the_ladder_and_the_load_of_a_suite_may_be_changed_from_outside() {
    let ladder = |name: &str, set: &[&str]| {
        let suite = suite(name, set).unwrap_or_else(|e| panic!("{set:?}: {e}: {:?}", e.help));
        assert_eq!(PROTOCOL.parse_suite(name, &suite.to_toml(), &[]).unwrap(), suite);
        suite.ladder
    };
    let points = Ladder::Points { points: vec![500.0, 1_000.0] };
    let points_set = ["ladder.kind=points", "ladder.points=[500, 1000]"];
    assert_eq!(ladder("web-static", &points_set), points);
    let peak = Ladder::Peak { peak: 3_000.0, steps: 10 };
    assert_eq!(ladder("web-static", &["ladder.kind=peak", "ladder.peak=3000"]), peak);
    let auto = Ladder::Auto { steps: 10, headroom: 1.0 };
    assert_eq!(ladder("web-static", &["ladder.kind=auto"]), auto);
    assert_eq!(ladder("web-url", &["load.mode=open", "ladder.kind=auto"]), auto);
    let peak_set = ["load.mode=open", "ladder.kind=peak", "ladder.peak=3000"];
    assert_eq!(ladder("web-url", &peak_set), peak);
    let clients = Ladder::Points { points: vec![8.0] };
    let closed = ["load.mode=closed", "ladder.kind=points", "ladder.points=[8]"];
    assert_eq!(ladder("web-static", &closed), clients);
}

#[test]
fn wrong_workloads_are_refused_with_a_next_move() {
    let refusal = |set: &str| {
        let error = suite("web-static", &[set]).unwrap_err();
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    };
    assert!(refusal("workload.conections=x").contains("did you mean `connections`?"));
    assert!(refusal("workload.connections=per-reqest").contains("did you mean \"per-request\"?"));
    assert!(refusal("workload.file_set.class_percent=[35, 50, 14, 2]").contains("sum to 100"));
    assert!(refusal("workload.headers=[\"nope\"]").contains("not a header field"));
    assert!(refusal("workload.expect=[\"20\"]").contains("not an HTTP status"));
    assert!(refusal("workload.urls=[]").contains("goes with requests = \"urls\""));
    assert!(refusal("protocol=htp").contains("did you mean \"http\"?"));
}

#[test]
fn what_departs_from_the_method_is_read_off_its_parameters() {
    let shipped = suite("web-static", &[]).unwrap();
    let deviations = |set: &[&str], profile, existing| {
        let suite = suite("web-static", set).unwrap();
        let plan = plan(&suite, profile, |request| request.file_set = existing).unwrap();
        let practices = &plan.practices;
        let shipped = Some(&shipped);
        let table = parameters(&MethodOf { suite: &suite, profile, shipped, practices });
        let unsaid: Vec<_> = table.iter().filter(|row| row.said.is_empty()).collect();
        assert!(unsaid.is_empty(), "parameters without an origin: {unsaid:?}");
        method::deviations(&table)
    };
    let full = deviations(&[], ProfileName::Full, None);
    let check = |all: &[String], parts: &[&str]| {
        assert_eq!(all.len(), parts.len(), "{all:?}");
        for part in parts {
            assert!(all.iter().any(|one| one.contains(part)), "{part:?} in {all:?}");
        }
    };
    let order = "one deck for each group of 100 clients; the method has one for each thread";
    let hosts = "one program on one host; the method has seven";
    let sizes = "class 0 has 921 bytes; the method has four classes of nine; the last of class 0 \
                 has 922 bytes";
    check(&full, &[order, hosts, sizes, "connections: keep-alive; the method has per-request"]);
    let faithful = ["workload.connections=per-request"];
    check(&deviations(&faithful, ProfileName::Full, None), &[order, hosts, sizes]);
    let quick = deviations(&faithful, ProfileName::Quick, None).join("\n");
    let directories =
        "14 for 1,000 ops/s (workload_scale = 0.1); the method has 141 for 1,000 ops/s";
    assert!(quick.contains(directories), "{quick}");
    let shared = deviations(&["load.arrivals=shared"], ProfileName::Full, None).join("\n");
    for part in ["one deck for all clients", "arrival schedule: shared; the method has per_client"]
    {
        assert!(shared.contains(part), "{part:?} in {shared}");
    }
    let existing = Some(FileSetId { seed: 9, directories: 20 });
    let small = deviations(&faithful, ProfileName::Full, existing).join("\n");
    assert!(small.contains("the server holds 20"), "{small}");
}

#[test]
fn the_handshakes_of_https_are_disclosed() {
    let fact = |set: &[&str]| {
        let suite = suite("web-url", set).unwrap();
        let targets = targets(&["https://127.0.0.1:8443/"]);
        let profile = suite.profiles.get(ProfileName::Quick);
        let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
        let facts = (PROTOCOL.plan)(&request).unwrap().facts;
        facts.into_iter().find(|fact| fact.name == "TLS resumption").unwrap().value
    };
    assert!(fact(&[]).starts_with("off: every connection makes a full handshake"));
    assert!(fact(&["workload.tls_resumption=on"]).starts_with("on: within each worker"));
}

#[test]
fn ops_are_named_by_class_by_url_or_by_method() {
    let files = plan(&suite("web-static", &[]).unwrap(), ProfileName::Standard, |_| {}).unwrap();
    assert_eq!(files.op_names.0, ["class0", "class1", "class2", "class3"]);
    assert_eq!(files.op_shares, Some(vec![0.35, 0.5, 0.14, 0.01]));
    let url = suite("web-url", &[]).unwrap();
    let one = plan(&url, ProfileName::Standard, |_| {}).unwrap();
    assert_eq!((one.op_names.0, one.practices.len()), (vec!["GET".to_owned()], 0));
    let listed = suite("web-url", &["workload.urls=[\"3 /a\", \"HEAD /b\"]"]).unwrap();
    let list = plan(&listed, ProfileName::Standard, |_| {}).unwrap();
    assert_eq!(list.op_names.0, ["GET /a", "HEAD /b"]);
    assert_eq!(list.op_shares, Some(vec![0.75, 0.25]));
}

#[test]
fn targets_that_cannot_work_are_refused() {
    let suite = suite("web-static", &[]).unwrap();
    let refusal = |urls: &[&str]| {
        let targets = targets(urls);
        let profile = suite.profiles.get(ProfileName::Quick);
        let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
        (PROTOCOL.plan)(&request).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(refusal(&["http://h/", "https://h/"]).contains("mix http and https"));
    assert!(refusal(&["http://h/?a=b"]).contains("plain path"));
    let existing = Some(FileSetId { seed: 1, directories: 0 });
    let empty = plan(&suite, ProfileName::Quick, |r| r.file_set = existing);
    assert!(matches!(empty, Err(PlanError::Setup(SetupError::Unusable(_)))));
}

#[test]
fn the_schema_of_the_workload_names_every_key() {
    let schema = (PROTOCOL.workload_schema)();
    let text = schema.as_value().to_string();
    for key in
        ["requests", "connections", "verify_one_in", "file_set", "tls_ca_file", "tls_resumption"]
    {
        assert!(text.contains(key), "{key}");
    }
}
