use super::*;
use crate::suite::{LoadSpec, OnClientFailure, Override, Rules};
use crate::units::Nanos;

const SUITE: &str = "format = 1\nname = \"s\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
    [load]\nmode = \"open\"\nclients = 7\n\
    [profiles.full]\nwarm_up = \"300s\"\nmeasure = \"600s\"\n\
    [workload]\nbytes = 10\n[workload.mix]\nread = 3\nwrite = 1\n\
    [origins.source]\n\"profiles.full\" = \"page 3\"\n\"workload.mix\" = \"Table 1\"\n\
    \"generator.hosts\" = \"Appendix B\"\n\"generator.order\" = \"page 7\"\n\
    \"ladder\" = \"page 2\"\n\"load\" = \"page 2\"\n\"rules.rate_tolerance_ratio\" = \"page 2\"\n\
    [origins.ours]\n\"op_timeout\" = \"left open\"\n\"workload.bytes\" = \"left open\"\n\"rules\" = \"left open\"\n\
    [origins.method]\n\"generator.hosts\" = \"seven hosts\"\n\"generator.order\" = \"at random\"\n";

const SWEEP: &str = "format = 1\nname = \"s\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
    [load]\nmode = \"closed\"\nstart_delay = \"15s\"\n\
    [ladder]\nkind = \"think\"\nclients = 974\nthinks = [\"15s\", \"25s\"]\n\
    [profiles.full]\nramp_down = \"30s\"\n[profiles.quick]\nthink_scale = 0.02\nclients_max = 98\n\
    [origins.source]\n\"ladder\" = \"Figure 2\"\n\"load\" = \"page 2\"\n";

fn parse(text: &str, set: &[&str]) -> Suite {
    let set: Vec<Override> = set.iter().map(|one| Override::parse(one).unwrap()).collect();
    // The tables of a workload as in the file and on the command line.
    Suite::parse("s.toml", text, &set, &|_, table| {
        let mut workload = toml::Table::new();
        if table.has("bytes") {
            let raw: toml::Table = toml::from_str(text).unwrap();
            workload = raw["workload"].as_table().unwrap().clone();
        }
        for one in &set {
            let path = one.path.strip_prefix("workload.").map(|path| path.split_once('.'));
            match path {
                Some(Some((inner, key))) => {
                    let inner = workload.get_mut(inner).and_then(toml::Value::as_table_mut);
                    inner.unwrap().insert(key.to_owned(), one.value.clone());
                }
                Some(None) => {
                    let key = one.path.trim_start_matches("workload.").to_owned();
                    workload.insert(key, one.value.clone());
                }
                None => {}
            }
        }
        Ok(workload)
    })
    .unwrap()
}

fn table(suite: &Suite, profile: ProfileName, shipped: Option<&Suite>) -> Vec<Parameter> {
    let practices = [
        Practice::new("generator.order", "in turn"),
        Practice::new("workload.bytes", "1").unscaled("10"),
        Practice::new("generator.replay", "a recording").as_deviation(),
    ];
    parameters(&MethodOf { suite, profile, shipped, practices: &practices })
}

fn plainly(suite: &Suite, profile: ProfileName, shipped: &Suite) -> Vec<String> {
    let shipped = Some(shipped);
    deviations(&parameters(&MethodOf { suite, profile, shipped, practices: &[] }))
}

fn row<'t>(table: &'t [Parameter], key: &str) -> &'t Parameter {
    table.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key}"))
}

#[test]
fn the_method_has_is_said_of_what_a_source_says_and_of_nothing_else() {
    let suite = parse(SUITE, &[]);
    let table = table(&suite, ProfileName::Quick, Some(&suite));
    for parameter in &table {
        let message = parameter.departure.as_deref().unwrap_or_default();
        let of_method = message.contains("the method has");
        assert!(!of_method || parameter.origin.is_the_methods(), "{parameter:?}");
        assert_eq!(parameter.method.is_some(), parameter.origin.is_the_methods(), "{parameter:?}");
    }
    let warm_up = row(&table, "profiles.full.warm_up");
    assert_eq!((&*warm_up.value, warm_up.method.as_deref()), ("1s", Some("300s")));
    assert_eq!((warm_up.origin, &*warm_up.said), (Origin::Source, "page 3"));
    let deviation = warm_up.departure.as_deref();
    assert_eq!(deviation, Some("warm-up per load point: 1s; the method has 300s"));
    let bytes = row(&table, "workload.bytes");
    assert_eq!(bytes.departure.as_deref(), Some("bytes: 1; the suite has 10"));
    assert_eq!((bytes.origin, &bytes.method), (Origin::Ours, &None));
}

#[test]
fn what_no_key_sets_stands_in_the_table_too() {
    let suite = parse(SUITE, &[]);
    let table = table(&suite, ProfileName::Full, Some(&suite));
    let hosts = row(&table, HOSTS).departure.as_deref().unwrap();
    assert_eq!(hosts, "hosts of the clients: one program on one host; the method has seven hosts");
    let order = row(&table, "generator.order").departure.as_deref();
    assert_eq!(order, Some("order: in turn; the method has at random"));
    let replay = row(&table, "generator.replay").departure.as_deref();
    assert_eq!(replay, Some("replay: a recording"));
    assert_eq!(row(&table, "workload.mix").value, "read 3, write 1");
}

#[test]
fn the_full_profile_of_a_shipped_suite_departs_in_nothing_that_it_can_help() {
    for text in [SUITE, SWEEP] {
        let suite = parse(text, &[]);
        let messages = plainly(&suite, ProfileName::Full, &suite);
        let messages: Vec<_> = messages.iter().filter(|one| !one.contains("one host")).collect();
        assert!(messages.is_empty(), "{messages:?}");
    }
}

#[test]
fn what_is_set_otherwise_is_named_with_what_differs() {
    let method = parse(SUITE, &[]);
    let mut own = parse(SUITE, &["workload.mix.write=2", "op_timeout=77s"]);
    own.rules = Rules { errors_max_ratio: 0.5, response_cap_ms: Some(8.0), ..own.rules };
    own.ladder = Ladder::Points { points: vec![100.0, 2_000.0] };
    let message = plainly(&own, ProfileName::Full, &method).join("\n");
    for part in [
        "op mix, weights: write 2; the method has write 1",
        "timeout of an op: 77s; the suite has 10s",
        "errors allowed, as a share of ops: 0.5; the suite has 0.001",
        "response cap (mean service time, ms): 8; the suite has none",
        "load points: 2 named: 100, 2,000 ops/s; the method has 10 even ones up to the peak",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    // Named by the user, it is searched by nobody; the ladder is the same.
    own.ladder = Ladder::Peak { peak: 5_000.0, steps: 10 };
    assert!(!plainly(&own, ProfileName::Full, &method).join("\n").contains("load points"));
    own.ladder = Ladder::Auto { steps: 10, headroom: 0.95 };
    let message = plainly(&own, ProfileName::Full, &method).join("\n");
    assert!(message.contains("10 even ones up to 0.95 of the peak; the method has"), "{message}");
}

#[test]
fn what_a_closed_load_asks_of_its_clients_is_compared_with_the_method() {
    let (mut own, method) = (parse(SWEEP, &[]), parse(SWEEP, &[]));
    let LoadSpec::Closed { think, on_client_failure, .. } = &mut own.load else { panic!() };
    think.mean = Nanos::from_secs(9);
    *on_client_failure = OnClientFailure::Abort;
    own.ladder = Ladder::Think { clients: 10, thinks: vec![Nanos::from_secs(15)] };
    let message = plainly(&own, ProfileName::Full, &method).join("\n");
    for part in [
        "when a client fails: abort; the method has drop",
        "load points: one named: think times of 15s; the method has 2 named",
        "clients: 10; the method has 974",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    // Its mean is swept by the ladder.
    assert!(!message.contains("9s"), "{message}");
    let quick = plainly(&method, ProfileName::Quick, &method).join("\n");
    for part in [
        "start delay of a client, random up to: 300 ms (15s × 0.02); the method has 15s",
        "clients: 98; the method has 974",
        "scale of think time and start delay: 0.02; the full profile has 1",
        "ramp-down per load point: 0s; the full profile has 30s",
    ] {
        assert!(quick.contains(part), "{part:?} in {quick}");
    }
}

#[test]
fn another_kind_of_load_is_one_departure() {
    let (method, own) = (parse(SWEEP, &[]), parse(SUITE, &[]));
    let message = plainly(&own, ProfileName::Full, &method).join("\n");
    assert!(message.contains("load: open; the method has closed"), "{message}");
    assert!(!message.contains("start delay"), "{message}");
}

#[test]
fn a_suite_without_origins_is_its_writers() {
    let text = SUITE.split("[origins").next().unwrap();
    let suite = parse(text, &[]);
    let table = table(&suite, ProfileName::Quick, None);
    assert!(table.iter().all(|row| row.origin == Origin::Yours && row.method.is_none()));
    let message = deviations(&table).join("\n");
    assert!(message.contains("warm-up per load point: 1s; the full profile has 300s"), "{message}");
    assert!(!message.contains("method"), "{message}");
}
