use plimsoll_model::inventory::SystemInventory;
use plimsoll_model::result::{SuiteSummary, TimeSummary};

use super::*;
use crate::published::board_rows;

fn target(target: &str, cores: &[u32], same_host: bool) -> TargetDisclosure {
    let software = same_host.then(|| "nginx/1.22.1".to_owned());
    let cores = cores.to_vec();
    TargetDisclosure { target: target.to_owned(), software, cores, same_host, ..Default::default() }
}

fn run(targets: Vec<TargetDisclosure>) -> RunResult {
    let host = |model: &str, number| Host {
        cpu_model: Some(model.to_owned()),
        cpus_online: Some(number),
        ..Host::default()
    };
    let mut inventory =
        SystemInventory { of_targets: vec!["http://far/".into()], ..Default::default() };
    inventory.inventory.host = host("Epyc", 16);
    let disclosure = Disclosure {
        generator: host("Xeon", 4),
        systems: vec![inventory],
        targets,
        ..Disclosure::default()
    };
    let point = |requested: f64, achieved: f64| PointResult {
        requested,
        valid: true,
        achieved_ops_per_s: Some(achieved),
        response_ns: Some(TimeSummary { mean: Some(achieved), p99: Some(7), ..Default::default() }),
        ..PointResult::default()
    };
    let mut run = RunResult {
        suite: Some(SuiteSummary { name: "web-static".to_owned(), ..SuiteSummary::default() }),
        targets: vec!["http://server/".to_owned()],
        points: vec![point(100.0, 100.0), point(200.0, 190.0), point(300.0, 180.0)],
        disclosure: Some(disclosure),
        ..RunResult::default()
    };
    run.summary.value = Some(190.0);
    run.summary.unit = "ops/s".to_owned();
    run.summary.overall_response_ms.origin = Some(3.0);
    run
}

#[test]
fn processors_are_those_the_server_was_held_to_or_all_of_a_host_of_its_own_and_else_unknown() {
    let of = |targets: Vec<TargetDisclosure>| row_of("a".to_owned(), &run(targets));
    let pinned = of(vec![target("managed:nginx", &[2, 3], true)]);
    assert_eq!((pinned.processors, pinned.per_processor()), (Some(2), Some(95.0)));
    assert_eq!(pinned.system, "nginx 1.22.1, Xeon");
    let far = || target("http://far/", &[], false);
    assert_eq!(
        (of(vec![far()]).processors, of(vec![far(), far()]).processors),
        (Some(16), Some(16))
    );
    assert_eq!(of(vec![far()]).system, "http://far/, Epyc");
    assert_eq!(of(vec![target("http://here/", &[], true)]).processors, None, "shared");
    let unknown = of(vec![far(), target("http://elsewhere/", &[], false)]);
    assert_eq!((unknown.processors, unknown.per_processor()), (None, None));
    let none = RunResult { disclosure: None, ..run(Vec::new()) };
    assert_eq!(row_of(String::new(), &none).system, "http://server/");
}

/// `nginx version: nginx/1.22.1, Inte…`, sixty times, and "≥ 118,397" next to "core: one thread".
#[test]
fn software_is_short_and_no_limit_that_was_reached_stands_beside_a_bound() {
    let mut run = run(vec![target("http://here/", &[], true)]);
    let disclosure = run.disclosure.as_mut().unwrap();
    disclosure.targets[0].software = Some("nginx version: nginx/1.22.1".to_owned());
    disclosure.generator.cpu_model =
        Some("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz".to_owned());
    run.points[1].limit.kind = LimitKind::Core;
    run.summary.bound = Bound::Exact;
    let row = row_of("a".to_owned(), &run);
    assert_eq!(row.system, "nginx 1.22.1, Intel Xeon Platinum 8481C");
    assert_eq!((row.at_least, row.limit.map(|limit| limit.kind)), (false, Some(LimitKind::Core)));
    run.summary.bound = Bound::AtLeast;
    let row = row_of("a".to_owned(), &run);
    assert_eq!((row.at_least, row.limit), (true, None), "the core did not end the load");
    run.points[1].limit.kind = LimitKind::None;
    assert_eq!(row_of("a".to_owned(), &run).limit.map(|it| it.kind), Some(LimitKind::None));
    run.summary.bound = Bound::Exact;
    assert_eq!(row_of("a".to_owned(), &run).limit, None, "what ended the load is not known");
    run.points[1].limit.kind = LimitKind::Generator;
    let row = row_of("a".to_owned(), &run);
    assert_eq!(row.limit.map(|limit| limit.kind), Some(LimitKind::Generator));
}

#[test]
fn response_times_are_those_of_the_highest_throughput_and_an_overall_one_only_where_the_suite_has_it()
 {
    let mut run = run(Vec::new());
    let row = row_of("a".to_owned(), &run);
    assert_eq!((row.response_mean_ns, row.response_p99_ns), (Some(190.0), Some(7.0)));
    assert_eq!((row.overall_response_ms, row.valid), (None, Some(false)));
    let mut invalid = run.points[1].clone();
    (invalid.valid, invalid.achieved_ops_per_s, invalid.response_ns) = (false, Some(900.0), None);
    run.points.push(invalid);
    assert_eq!(row_of("a".to_owned(), &run).response_p99_ns, Some(7.0));
    run.suite = run.suite.map(|suite| SuiteSummary { response_cap_ms: Some(40.0), ..suite });
    assert_eq!(row_of("a".to_owned(), &run).overall_response_ms, Some(3.0));
}

#[test]
fn a_peak_is_priced_by_a_label_or_by_the_only_system_of_the_file() {
    let list = |systems: &[&str]| {
        let system = |name: &&str| {
            format!(
                "[[systems]]\nname = \"{name}\"\n[[systems.items]]\nname = \"server\"\n\
                 source = \"list\"\ndate = 2026-11-01\nunit_price = 950\n"
            )
        };
        let systems: String = systems.iter().map(system).collect();
        PriceList::parse("p.toml", &format!("format = 1\ncurrency = \"EUR\"\n{systems}")).unwrap()
    };
    let price = |list: &PriceList| {
        let system = system_among(list, &["a-1".into(), "a".into()])?;
        price_of(list, system, &run(Vec::new()))
    };
    let by_label = price(&list(&["a", "b"])).unwrap();
    assert_eq!((by_label.per_unit, by_label.unit.as_str()), (5.0, "ops/s"));
    assert_eq!(price(&list(&["b", "c"])), None);
    assert_eq!(price(&list(&["b"])).unwrap().currency, "EUR");
}

#[test]
fn published_systems_are_lines_with_the_figures_of_their_sources() {
    let all = board_rows("all").unwrap();
    assert!(all.len() > 40, "{}", all.len());
    let [nt] = board_rows("netbench-nt-1998").unwrap().try_into().unwrap();
    assert_eq!((nt.peak, nt.processors), (Some(8_398_371.0), Some(2)));
    assert_eq!(nt.price.unwrap().per_unit, 1737.50);
    let web = board_rows("web-n440bx-1998").unwrap();
    assert_eq!(web[1].source, BoardSource::Published("web-n440bx-1998/2-cpu-350-mhz".into()));
    assert_eq!(web[1].system, "web-n440bx-1998, 2 CPU 350 MHz");
    assert_eq!(board_rows("web-n440bx-1998/2-cpu-350-mhz").unwrap(), web[1..2]);
    assert!(board_rows("netbench-proliant-1995").is_err() && board_rows("nothing").is_err());
}
