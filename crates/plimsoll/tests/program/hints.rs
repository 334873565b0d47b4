//! Signs of a known cause: each is provoked and found, and servers that are merely slow get none.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use plimsoll_testkit::clock::now;
use plimsoll_testkit::fault_server::{Fault, FaultServer, Ignore, RequestFacts, Sockets};

use plimsoll_testkit::program::{CheckOutcome, one_is_right, plimsoll, result};

/// Measurements that may be wrong before a test fails: a machine that stands still for a while may
/// show any sign, without any evidence of that.
const TRIES: usize = 3;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A server whose every body is 100 bytes.
fn server(plan: impl Fn(&RequestFacts) -> Fault + Send + Sync + 'static) -> FaultServer {
    FaultServer::with_fixed_body(100, plan)
}

/// `result.json` of 5 s with that load.
fn run(targets: &[&FaultServer], load: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let urls: Vec<String> = targets.iter().map(|server| server.url()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    run_into(&bundle, &urls, load)
}

fn run_into(bundle: &Path, urls: &[&str], load: &[&str]) -> Value {
    let out = bundle.to_str().unwrap();
    let common = ["--for", "5s", "--out", out, "--progress", "none", "--workers", "1"];
    let ended = plimsoll(&[&["run", "web-url"], urls, &common, load].concat());
    let result = result(bundle);
    for hint in result["hints"].as_array().into_iter().flatten() {
        let kind = hint["hint"]["kind"].as_str().unwrap();
        assert!(ended.out.contains("hint: ") && ended.out.contains("docs/hints.md#"), "{kind}");
    }
    result
}

fn hints(result: &Value) -> impl Iterator<Item = &Value> {
    result["hints"].as_array().into_iter().flatten().map(|it| &it["hint"])
}

/// How the run differs from one with a right hint of this kind.
fn lacks(result: &Value, kind: &str, is_right: impl Fn(&Value) -> bool) -> Option<String> {
    let mut of_kind = hints(result).filter(|hint| hint["kind"] == kind);
    let lacks = !of_kind.any(is_right);
    lacks.then(|| format!("no right {kind} in {}; {}", result["hints"], signs(result)))
}

/// How the run differs from one with hints of these kinds only.
fn has_others(result: &Value, kinds: &[&str]) -> Option<String> {
    let others = hints(result).any(|hint| !kinds.iter().any(|kind| hint["kind"] == *kind));
    others.then(|| format!("others than {kinds:?} in {}", result["hints"]))
}

/// Asserts the hints of a run; a machine that other programs use gets more tries.
#[track_caller]
fn check_hints<D>(mut run: impl FnMut() -> Value, differs: impl Fn(&Value) -> D)
where
    D: IntoIterator<Item = String>,
{
    one_is_right(TRIES, || {
        let result = run();
        CheckOutcome::from_point(&result["points"][0], differs(&result))
    });
}

/// Asserts that a run has this hint, with the right figures, and no other.
#[track_caller]
fn only(kind: &str, run: impl FnMut() -> Value, is_right: impl Fn(&Value) -> bool) {
    check_hints(run, |result| {
        lacks(result, kind, &is_right).into_iter().chain(has_others(result, &[kind]))
    });
}

/// Asserts that a run has no hint.
#[track_caller]
fn check_no_hints(server: &FaultServer, load: &[&str]) {
    check_hints(|| run(&[server], load), |result| has_others(result, &[]));
}

/// Evidence for why there is none.
fn signs(result: &Value) -> String {
    let point = &result["points"][0];
    let of_tcp = |it: &&Value| it["name"].as_str().is_some_and(|name| name.starts_with("host.tcp"));
    let tcp: Vec<_> = point["resources"].as_array().into_iter().flatten().filter(of_tcp).collect();
    format!("{} {tcp:?}", point["service_ns"])
}

#[test]
fn replies_in_two_writes_without_nodelay_are_told_as_delayed_acknowledgements() {
    let server = server(|_| Fault::TwoWrites(Duration::ZERO));
    server.prepare_sockets(Sockets::WithNagle);
    let most = |hint: &Value| hint["share_ratio"].as_f64() > Some(0.5);
    only("delayed_ack", || run(&[&server], &["--clients", "8"]), most);
}

#[test]
fn lost_segments_are_told_as_retransmissions() {
    let server = server(|_| Fault::None);
    server.prepare_sockets(Sockets::Losing(0.02));
    let load = ["--rate", "300", "--connections", "64"];
    let several = |hint: &Value| hint["ops"].as_u64() >= Some(10);
    check_hints(|| run(&[&server], &load), |result| lacks(result, "retransmitted", several));
}

#[test]
fn a_full_accept_queue_is_told_as_connects_tried_again() {
    let server = std::sync::Arc::new(server(|_| Fault::None));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    // A connect that is tried again after 1 s comes one and a half rounds later: the server
    // accepts.
    let (round, ignoring) = (Duration::from_secs(2) / 3, MS(250));
    let accepts = {
        let (server, stop) = (server.clone(), stop.clone());
        std::thread::spawn(move || {
            let started = now();
            let rest =
                |until: Duration| std::thread::sleep(until.saturating_sub(started.elapsed()));
            for n in (0..).take_while(|_| !stop.load(std::sync::atomic::Ordering::SeqCst)) {
                rest(round * n);
                server.ignore_new_connections(Ignore::Yes);
                rest(round * n + ignoring);
                server.ignore_new_connections(Ignore::No);
            }
        })
    };
    let load = ["--clients", "400", "--new-connection"];
    let overflows = |hint: &Value| hint["listen_overflows"].as_u64() > Some(0);
    check_hints(|| run(&[&server], &load), |result| lacks(result, "syn_retransmitted", overflows));
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    accepts.join().unwrap();
}

#[test]
fn a_server_that_is_slow_after_accepting_is_told_as_slow_on_new_connections() {
    let server = server(|facts| match facts.on_connection {
        0 => Fault::Late(MS(50)),
        19 => Fault::AnnouncedCloseAfterReply,
        _ => Fault::None,
    });
    let slow = |hint: &Value| hint["new_p50_ns"].as_u64() >= Some(48_000_000);
    only("slow_new_connections", || run(&[&server], &["--clients", "8"]), slow);
}

#[test]
fn the_slow_one_of_three_targets_is_told() {
    let servers = [1, 1, 12].map(|ms| server(move |_| Fault::Late(MS(ms))));
    let targets: Vec<&FaultServer> = servers.iter().collect();
    let third = |hint: &Value| hint["target"] == servers[2].url();
    only("slow_target", || run(&targets, &["--clients", "9"]), third);
}

#[test]
fn a_server_that_stops_for_a_while_again_and_again_is_told_with_its_period() {
    let started = OnceLock::new();
    let server = server(move |_| {
        let within = started.get_or_init(now).elapsed().as_millis() as u64 % 500;
        if within < 60 { Fault::Late(MS(60 - within)) } else { Fault::None }
    });
    let load = ["--rate", "1000", "--connections", "32"];
    let even = |hint: &Value| {
        let ms = |key: &str| hint[key].as_u64().unwrap() / 1_000_000;
        (450..550).contains(&ms("period_ns")) && ms("length_ns") >= 40
    };
    only("even_pauses", || run(&[&server], &load), even);
}

const LATE_MS: [u64; 3] = [41, 200, 1_000];

#[test]
fn servers_that_are_merely_slow_get_no_hint() {
    for ms in LATE_MS {
        check_no_hints(&server(move |_| Fault::Late(MS(ms))), &["--clients", "16"]);
    }
}

#[test]
fn servers_that_are_merely_slow_on_connections_that_are_all_new_get_no_hint() {
    for ms in LATE_MS {
        let load = ["--clients", "16", "--new-connection"];
        check_no_hints(&server(move |_| Fault::Late(MS(ms))), &load);
    }
}

#[test]
fn servers_that_are_slow_now_and_then_or_between_two_parts_of_a_reply_get_no_hint() {
    let some_late = server(|facts| match facts.index % 50 {
        0 => Fault::Late(MS([41, 204, 1_000][(facts.index / 50 % 3) as usize])),
        _ => Fault::None,
    });
    check_no_hints(&some_late, &["--rate", "500", "--connections", "64"]);
    let in_parts = server(|_| Fault::TwoWrites(MS(41)));
    check_no_hints(&in_parts, &["--clients", "8"]);
}
