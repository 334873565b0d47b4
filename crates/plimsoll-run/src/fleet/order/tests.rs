use std::net::{Ipv4Addr, TcpListener};

use plimsoll_http::parameters::HttpWorkload;
use plimsoll_model::suite::{Override, Suite};
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::net::Offline;
use plimsoll_testkit::tls::TestCertificate;

use super::*;
use crate::secrets;
use crate::signals::Signals;

fn suite(name: &str, set: &[&str]) -> Suite {
    let set: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    let suite = protocols::parse_suite(name, protocols::shipped(name).unwrap(), &set);
    suite.unwrap_or_else(|e| panic!("{name} {set:?}: {e}"))
}

fn sent(suite: Suite) -> Suite {
    let (kept, headers) = secrets::separate(suite).unwrap();
    headers.put_into(&kept)
}

fn targets(urls: &[&str], address: SocketAddr) -> Vec<ResolvedTarget> {
    let resolved = |url: &&str| ResolvedTarget::new(TargetUrl::parse(url).unwrap(), address);
    urls.iter().map(resolved).collect()
}

/// An address that refuses connections.
fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], 1).into()
}

/// Accepts connections and answers nothing.
fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The order as it arrives.
fn carried(order: &PlanOrder) -> PlanOrder {
    serde_json::from_slice(&serde_json::to_vec(order).unwrap()).unwrap()
}

fn read_on_the_agent(text: &str) -> Suite {
    protocols::parse_suite("the controller's suite", text, &[]).unwrap()
}

#[test]
fn an_agent_reads_every_suite_as_the_controller_has_it() {
    let of_all: [&[&str]; 4] = [
        &[],
        &["op_timeout=1234ms", "rules.errors_max_ratio=0.25"],
        &["profiles.quick.workload_scale=0.3", "profiles.full.measure=77s", "load.clients=9"],
        &["about='a \"quoted\" word, a \\ and ü'", "ladder.points=[3, 5]"],
    ];
    let mut read = 0;
    for (name, text) in protocols::shipped_suites() {
        for set in of_all {
            let set: Vec<Override> = set.iter().filter_map(|text| Override::parse(text)).collect();
            // Not every key goes with every suite.
            let Ok(suite) = protocols::parse_suite(name, text, &set) else { continue };
            let again = read_on_the_agent(&suite.to_toml());
            assert_eq!(again, suite, "{name} {set:?}");
            assert_eq!(again.to_toml(), suite.to_toml(), "{name} {set:?}");
            assert_eq!(format!("{again:?}"), format!("{suite:?}"), "{name} {set:?}");
            read += 1;
        }
    }
    assert!(read > 3 * protocols::shipped_suites().count(), "{read}");
}

#[test]
fn secrets_reach_the_agent_and_nothing_shows_them() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("token");
    std::fs::write(&file, "Bearer s3cret2\n").unwrap();
    let fields = format!(
        "workload.headers=[\"X-A: s3cret1 \\\"quoted\\\" ü\", \"X-B: @{}\", \"Accept: a\"]",
        file.display()
    );
    let line = "workload.urls=['{\"url\": \"/a\", \"headers\": {\"X-C\": \"s3cret3\"}}']";
    let suite = sent(suite("web-url", &[&fields, line]));
    let again = read_on_the_agent(&suite.to_toml());
    assert_eq!(again, suite);
    let HttpWorkload { headers, urls, .. } = again.workload.parameters();
    assert_eq!(*headers, ["X-A: s3cret1 \"quoted\" ü", "X-B: Bearer s3cret2", "Accept: a"]);
    assert!(urls.as_ref().unwrap()[0].contains("s3cret3"));

    let (_listener, address) = listener();
    let targets = targets(&["http://127.0.0.1/"], address);
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
    let mut order = order_of(&request, ProfileName::Quick, &CachedFiles::NONE).unwrap();
    order.password = Some("s3cret4".to_owned());
    let (_, dial) = plan_of(&order, SystemDial::new(Signals::unheard()), Arc::default()).unwrap();
    assert_eq!(dial.caller().password, Some(Secret("s3cret4".to_owned())));
    let shown = format!("{again:?} {request:?} {order:?} {dial:?}");
    assert!(shown.contains("X-A: (left out)") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn an_agent_plans_the_same_without_the_files_of_the_controller() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = |name: &str| temp_dir.path().join(name).display().to_string();
    let made = TestCertificate::new();
    let (ca, own, body) = (path("ca.pem"), path("own.pem"), path("body.json"));
    std::fs::write(&ca, &made.certificate_pem).unwrap();
    std::fs::write(&own, format!("{}{}", made.certificate_pem, made.key_pem)).unwrap();
    std::fs::write(&body, [0, 159, 146, 150]).unwrap();
    let suite = sent(suite(
        "web-url",
        &[
            &format!("workload.tls_ca_file={ca}"),
            &format!("workload.tls_certificate_file={own}"),
            &format!("workload.body_file={body}"),
            "workload.urls=['3 POST /a', '2 POST /b']",
        ],
    ));
    let (_listener, address) = listener();
    let targets = targets(&["https://ann:pw@localhost/x", "https://other:8443/y?z"], address);
    let (profile, files) = (suite.profiles.get(ProfileName::Full), HostFiles::default());
    let system = || SystemDial::new(Signals::unheard());
    let dial = system();
    let request = PlanRequest {
        seed: 99,
        highest_ops_per_s: Some(123.5),
        files: &files,
        // Nothing answers the controller's first request.
        planner: Planner::Agent,
        ..PlanRequest::plain(&suite, profile, &targets, &dial)
    };
    let plan = (protocols::of_suite(&suite).unwrap().protocol.plan)(&request).unwrap();
    let order = carried(&order_of(&request, ProfileName::Full, &files.cached()).unwrap());
    let mut names: Vec<&str> = order.files.iter().map(|file| file.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [body.as_str(), ca.as_str(), own.as_str()]);
    assert_eq!(order.targets[0].url, "https://ann:pw@localhost/x");
    drop(temp_dir);
    let (again, _) = plan_of(&order, system(), Arc::default()).unwrap();
    assert_eq!(again.op_names, plan.op_names);
    assert_eq!(again.op_shares, plan.op_shares);
    assert_eq!((again.facts, again.practices), (plan.facts, plan.practices));
    let refused =
        |order: &PlanOrder| plan_of(order, system(), Arc::default()).err().unwrap().to_string();
    let lacking = refused(&PlanOrder { files: Vec::new(), ..order.clone() });
    assert!(lacking.contains("cannot read"), "{lacking}");
    // Not the port of a listener that has gone: another test may have it by now.
    let mut unreachable = order.clone();
    unreachable.targets.iter_mut().for_each(|target| target.address = nowhere());
    assert!(refused(&unreachable).contains("localhost"), "nobody listens there");
}

#[test]
fn a_load_file_travels_and_one_that_changed_does_not() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("a.txt");
    std::fs::write(&path, "Mkdir \"\\client1\" *\n").unwrap();
    let suite = suite("disk-mix", &[]);
    let source = load_file::read(&path, &suite).unwrap();
    let targets = targets(&["smb://ann@127.0.0.1/share"], nowhere());
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest {
        loadfile: Some(&source),
        ..PlanRequest::plain(&suite, profile, &targets, &Offline)
    };
    let order = || order_of(&request, ProfileName::Quick, &CachedFiles::NONE);
    let came = carried(&order().unwrap()).load_file.unwrap();
    let its = protocols::of_suite(&suite).unwrap().protocol.load_files.unwrap();
    let again = load_file::from_bytes(&came.bytes, &came.name, its).unwrap();
    assert_eq!((again.path, again.sha256), (source.path.clone(), source.sha256.clone()));
    std::fs::write(&path, "Mkdir \"\\client1x\" *\n").unwrap();
    let changed = order().err().unwrap().to_string();
    assert!(changed.contains("has changed"), "{changed}");
}

#[test]
fn a_socket_of_this_host_travels_for_agents_of_this_host() {
    let suite = suite("web-url", &[]);
    let mut targets = targets(&["http://localhost/"], nowhere());
    targets[0].unix = Some("/run/web.sock".into());
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
    let order = carried(&order_of(&request, ProfileName::Quick, &CachedFiles::NONE).unwrap());
    assert_eq!(order.targets[0].unix, targets[0].unix);
    // Nothing listens there: the socket is tried, not the address.
    let refused = plan_of(&order, SystemDial::new(Signals::unheard()), Arc::default())
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("No such file"), "{refused}");
}

#[test]
fn an_agent_with_targets_of_its_own_names_ops_as_all_others_do() {
    let suite = suite("web-url", &[]);
    let (_listener, address) = listener();
    let targets = targets(&["http://a/first", "http://b/second"], address);
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
    let mut order = order_of(&request, ProfileName::Quick, &CachedFiles::NONE).unwrap();
    let planned = |order: &PlanOrder| {
        plan_of(&carried(order), SystemDial::new(Signals::unheard()), Arc::default())
            .unwrap()
            .0
            .op_names
    };
    let all = planned(&order);
    order.targets.remove(0);
    assert_eq!(planned(&order), all);
}

#[test]
fn sources_that_the_agents_host_has_not_are_refused() {
    let suite = suite("web-url", &[]);
    let (_listener, address) = listener();
    let targets = targets(&["http://a/"], address);
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest::plain(&suite, profile, &targets, &Offline);
    let order = order_of(&request, ProfileName::Quick, &CachedFiles::NONE).unwrap();
    let with = |source: &str| {
        let order = PlanOrder { sources: vec![source.parse().unwrap()], ..order.clone() };
        plan_of(&carried(&order), SystemDial::new(Signals::unheard()), Arc::default()).map(drop)
    };
    with("127.0.0.2").unwrap();
    let refused = with("203.0.113.9").unwrap_err().to_string();
    assert!(refused.starts_with("source address 203.0.113.9: clients cannot"), "{refused}");
}

#[test]
fn an_agent_connects_to_nothing_that_its_host_does_not_allow() {
    let (_listener, address) = listener();
    let (_other, elsewhere) = listener();
    let suite = suite("web-url", &[]);
    let one = targets(&["http://127.0.0.1/"], address);
    let profile = suite.profiles.get(ProfileName::Quick);
    let request = PlanRequest::plain(&suite, profile, &one, &Offline);
    let order = order_of(&request, ProfileName::Quick, &CachedFiles::NONE).unwrap();
    let nobody = |_: &str| Err(io::ErrorKind::NotFound.into());
    let only = |address: SocketAddr| {
        Arc::new(Allowance::parse(&format!("targets = [\"{address}\"]"), &nobody).unwrap())
    };
    let planned = |allowed| plan_of(&order, SystemDial::new(Signals::unheard()), allowed);
    let (_, dial) = planned(only(address)).unwrap();
    let open = |address| dial.dial(address, LinkKind::Stream, SourcePort::Any).map(drop);
    assert!(open(address).is_ok());
    let refused = open(elsewhere).unwrap_err().to_string();
    assert!(refused.contains(&format!("does not allow {elsewhere} as a target")), "{refused}");
    let refused = planned(only(elsewhere)).err().unwrap().to_string();
    assert!(refused.contains(&format!("does not allow {address} as a target")), "{refused}");
}
