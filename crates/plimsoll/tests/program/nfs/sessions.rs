//! NFSv4.1: whole runs, its settings, the commands around a run, and what goes wrong.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_testkit::lossy_proxy::CutProxy;
use plimsoll_testkit::nfs_peers::OwnNfs;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{
    CheckOutcome, Served, command, one_is_right, plimsoll, points_finished, result, short, signal,
    wait_for, wait_until,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::bad_days::{in_mid_point, refused_by};
use super::ladder::check_run;
use super::{of_version, through};
use crate::fleet::agents::{done, finished};

/// Windows of check_run's three points: 3,500 ops.
const BRIEF: [&str; 2] = ["--set", "profiles.quick.measure=1s"];
/// Compounds that make a client's session: EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE.
const SESSION_COMPOUNDS: f64 = 3.0;
/// Calls under way at both ends of a window, as a part of those in it.
const EDGES_RATIO: f64 = 0.15;
/// Ops of a load that was sustained, as a part of those requested.
const SUSTAINED_RATIO: f64 = 0.9;

/// Blocks that a READ or WRITE has on average, and their standard deviation.
struct Blocks {
    mean: f64,
    deviation: f64,
}

/// Those of the method.
const OF_THE_METHOD: Blocks = Blocks { mean: 1.49, deviation: 1.85 };
const SINGLE: Blocks = Blocks { mean: 1.0, deviation: 0.0 };

fn number(point: &Value, name: &str) -> f64 {
    point[name].as_f64().unwrap_or_else(|| panic!("no {name}: {point}"))
}

/// How many times of OPENs, CLOSEs or waits there are, of the ops that were due in the window.
fn times(point: &Value, name: &str) -> u64 {
    point["compound_calls"][name]["n"].as_u64().unwrap_or(0)
}

/// Ops of that name that ended in the window.
fn ended(point: &Value, name: &str) -> f64 {
    let share = point["ops"][name]["share_ratio"].as_f64().unwrap_or(0.0);
    share * number(point, "achieved_ops_per_s") * number(point, "seconds")
}

/// Each READ and WRITE of some blocks was opened and closed once, and no op is more than a compound.
#[track_caller]
fn check_compounds(result: &Value, blocks: &Blocks) {
    assert_eq!(result["nonconformities"], Value::Null);
    let points = result["points"].as_array().unwrap();
    for point in points {
        let calls = &point["compound_calls"];
        assert!(times(point, "open_ns") > 0 && times(point, "close_ns") > 0, "{calls}");
        for quiet in ["sessions_rebuilt", "reopened", "delays", "slot_waits", "delegations"] {
            assert_eq!(point[quiet], 0, "{quiet}: {point}");
        }
    }
    let sum = |of: &dyn Fn(&Value) -> f64| points.iter().map(of).sum::<f64>();
    let in_window =
        |name: &'static str| move |point: &Value| number(point, name) * number(point, "seconds");
    let ops = sum(&in_window("achieved_ops_per_s"));
    // On a busy machine ops wait so long that their calls are not in the same window.
    if ops < SUSTAINED_RATIO * sum(&in_window("requested")) {
        return;
    }
    let creates = sum(&|point| ended(point, "create"));
    let blocks_done = sum(&|point| ended(point, "read") + ended(point, "write"));
    let opens = sum(&|point| number(point, "opens"));
    let draws = opens - creates;
    let chance = 4.0 * blocks.deviation * draws.sqrt() + EDGES_RATIO * blocks_done;
    let apart = (blocks_done - blocks.mean * draws).abs();
    assert!(apart < chance, "{blocks_done} blocks of {draws} draws, which were opened");

    let sessions = sum(&|point| number(point, "connects")) * SESSION_COMPOUNDS;
    let compounds = sum(&|point| number(point, "compounds"));
    // CREATE is an OPEN.
    let expected = ops + 2.0 * opens - creates + sessions;
    let apart = (compounds - expected).abs();
    assert!(apart < EDGES_RATIO * expected, "{compounds} compounds instead of {expected}");
    let operations = sum(&|point| number(point, "operations"));
    assert!(operations > 3.0 * compounds, "{operations} operations in {compounds} compounds");
}

#[track_caller]
fn check_deviations(result: &Value) {
    let deviations = result["departures"].to_string();
    for part in ["one compound each", "opens and closes its file", "version: 4.1; the method has 3"]
    {
        assert!(deviations.contains(part), "{part:?} is not in {deviations}");
    }
}

#[test]
fn the_reference_server_is_measured_over_sessions() {
    let result = check_run("nfs-v4.1", "builtin:", &BRIEF);
    check_compounds(&result, &OF_THE_METHOD);
    check_deviations(&result);
}

#[test]
fn a_real_ganesha_is_measured_over_sessions() {
    if require_peer("ganesha.nfsd").is_none() {
        return;
    }
    let result = check_run("nfs-v4.1", "managed:ganesha", &BRIEF);
    check_compounds(&result, &OF_THE_METHOD);
    check_deviations(&result);
}

#[test]
fn small_files_are_opened_for_every_block() {
    let result = check_run("nfs-v4.1-open", "builtin:", &BRIEF);
    check_compounds(&result, &SINGLE);
}

#[test]
fn the_suite_of_version_3_is_measured_over_sessions_where_the_url_asks_for_it() {
    let server = Served::with("nfs", &[]);
    let result = check_run("nfs-v3", &of_version(&server, "4.1"), &BRIEF);
    check_compounds(&result, &OF_THE_METHOD);
    check_deviations(&result);
}

/// A load of one client that often has several ops under way.
const ONE_CLIENT: [&str; 6] =
    ["--points", "300", "--set", "load.clients=1", "--set", "profiles.quick.drain=10s"];

/// Runs one short point without errors.
#[track_caller]
fn one_point(suite: &str, url: &str, more: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&short(suite, url, &bundle, &[&ONE_CLIENT, more].concat()));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let point = result(&bundle)["points"][0].clone();
    assert_eq!(point["errors"], json!({}), "{point}");
    point
}

#[test]
fn files_are_opened_for_each_draw_once_or_never() {
    let server = Served::with("nfs", &[]);
    let opens = |opens: &str| {
        let setting = format!("workload.opens={opens}");
        let more = ["--set", &setting, "--set", "profiles.quick.measure=800ms"];
        times(&one_point("nfs-v4.1-open", &server.url, &more), "open_ns")
    };
    let per_draw = opens("per_draw");
    assert_eq!(opens("anonymous"), 0);
    let kept = opens("held");
    assert!(kept > 0 && kept < per_draw, "{kept} kept open, {per_draw} opened for each draw");
}

#[test]
fn ops_wait_for_the_only_slot_and_never_for_one_of_many() {
    let server = Served::with("nfs", &["--work", "1ms"]);
    let with_slots = |slots: &str| {
        let setting = format!("workload.slots={slots}");
        one_point("nfs-v4.1", &server.url, &["--set", &setting])
    };
    one_is_right(2, || {
        let narrow = with_slots("1");
        let waits = (times(&narrow, "slot_wait_ns"), number(&narrow, "slot_waits"));
        let are_few = waits.0 < 10 || waits.1 < 10.0;
        CheckOutcome::from_point(&narrow, are_few.then(|| format!("{waits:?} waited")))
    });
    let wide = with_slots("64");
    assert_eq!((times(&wide, "slot_wait_ns"), number(&wide, "slot_waits")), (0, 0.0));
}

#[test]
fn a_server_that_grants_few_slots_is_measured_with_those() {
    let server = Served::with("nfs", &["--slots", "2"]);
    let point = one_point("nfs-v4.1", &server.url, &[]);
    assert!(times(&point, "close_ns") > 5, "{point}");
}

#[test]
fn a_session_has_as_many_connections_as_the_suite_says() {
    let server = Served::with("nfs", &[]);
    let proxy = CutProxy::start(server.address());
    let url = through(&server, proxy.address(), "tcp");
    let accepted = |connections: &str| {
        let before = proxy.accepted();
        let setting = format!("workload.connections={connections}");
        one_point("nfs-v4.1", &url, &["--set", "load.clients=8", "--set", &setting]);
        proxy.accepted() - before
    };
    // The first run writes the file set too.
    let more = [accepted("1"), accepted("4"), accepted("1")];
    assert_eq!(more[1], more[2] + 3 * 8, "{more:?}");
}

#[test]
fn files_that_are_delegated_are_not_opened_again() {
    let server = Served::with("nfs", &["--delegations"]);
    let with = |requested: bool| {
        let setting = format!("workload.delegations={requested}");
        one_point("nfs-v4.1-open", &server.url, &["--set", &setting])
    };
    let without = with(false);
    assert_eq!(without["delegations"], 0);
    one_is_right(2, || {
        let with = with(true);
        let opens = [&with, &without].map(|point| times(point, "open_ns"));
        let is_wrong = with["delegations"] == 0 || opens[0] * 10 > opens[1] * 9;
        CheckOutcome::from_point(&with, is_wrong.then(|| format!("{opens:?} opens: {with}")))
    });
}

#[test]
fn contradictions_are_refused_with_the_remedy() {
    let (server, other) = (Served::with("nfs", &[]), Served::with("nfs", &[]));
    let of = |query: &str| format!("{}&{query}", server.url);
    refused_by("nfs-v4.1", &of("version=3"), &["version=3 is not possible", "nfs-v3"], 2);
    refused_by("nfs-v2", &of("version=4.1"), &["version=4.1 is not possible", "nfs-v4.1"], 2);
    let udp = ["transport=udp is not possible", "version 4.1 needs TCP: write tcp"];
    refused_by("nfs-v4.1", &of("transport=udp"), &udp, 2);
    refused_by("nfs-v3", &of("version=4.1&transport=udp"), &udp, 2);
    refused_by("nfs-v4.1", &of("sec=krb5"), &["sec=krb5 is not possible", "write sec=sys"], 2);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = [&*of_version(&other, "4.1"), "--points", "50"];
    plimsoll(&short("nfs-v3", &server.url, &bundle, &more))
        .check(2, &["have different versions of NFS", "plimsoll versus"]);
    let more = ["--points", "50", "--set", "workload.transport=udp"];
    plimsoll(&short("nfs-v4.1", &server.url, &bundle, &more)).check(2, &udp);
}

#[test]
fn a_server_without_sessions_without_the_export_or_gone_is_named() {
    let old = Served::with("nfs", &["--version", "3"]);
    let url = old.url.replace("&version=3", "");
    refused_by("nfs-v4.1", &url, &["speaks NFS version 3, not 4", "use suite nfs-v3"], 3);
    let new = Served::with("nfs", &["--version", "4.1"]);
    let missing = ["the server has no /no/such", "pseudo file system"];
    refused_by("nfs-v4.1", &new.url.replace("/export", "/no/such"), &missing, 3);
    let of_3 = new.url.replace("?version=4.1", "?mountport=1");
    refused_by("nfs-v3", &of_3, &["127.0.0.1"], 3);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = format!("nfs://{free}/export");
    refused_by("nfs-v4.1", &dead, &["cannot reach NFS", "refused", "runs there"], 3);
}

#[test]
fn agents_share_a_load_over_sessions() {
    let server = Served::with("nfs", &[]);
    one_is_right(2, || {
        let temp_dir = tempfile::tempdir().unwrap();
        let bundle = temp_dir.path().join("b");
        let more = ["--points", "300", "--agents", "local,exec:env", "--json"];
        let more = [&more[..], &["--set", "profiles.quick.drain=10s"]].concat();
        let run = plimsoll(&short("nfs-v4.1", &server.url, &bundle, &more));
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        let printed: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(printed, result(&bundle));
        let point = &printed["points"][0];
        assert_eq!(point["errors"], json!({}), "{point}");
        assert!(times(point, "open_ns") > 5, "{point}");
        let done = done(&finished(&bundle)[0]);
        assert_eq!(done.len(), 2);
        CheckOutcome::from_point(point, done.contains(&0).then(|| format!("{done:?} done")))
    });
}

#[test]
fn an_interrupted_run_over_sessions_is_resumed_over_sessions() {
    let server = Served::with("nfs", &[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = of_version(&server, "4.1");
    let run = short("nfs-v3", &url, &bundle, &["--points", "100,110,120"]);
    let child = command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    signal(&child, Signal::INT);
    wait_for(child).check(4, &["plimsoll resume"]);
    let resumed = plimsoll(&["resume", text(&bundle), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let result = result(&bundle);
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for point in points {
        assert_eq!(point["errors"], json!({}), "{point}");
        assert!(point["compound_calls"].is_object(), "{point}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn versus_compares_the_versions_of_one_server() {
    let server = Served::with("nfs", &[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("v");
    let urls = ["3", "4.1"].map(|version| of_version(&server, version));
    let flags = ["--points", "200", "--repeat", "2", "--force", "--json"];
    let of_run = short("nfs-v3", "", &out, &flags);
    let made = plimsoll(&[&["versus", "nfs-v3", &urls[0], &urls[1]], &of_run[3..]].concat());
    assert!(matches!(made.code, Some(0 | 1)), "{made:?}");
    let document: Value = serde_json::from_str(&made.out).unwrap();
    let figures = document["figures"].as_array().unwrap();
    let ratio = figures.iter().find(|row| row["figure"] == "p50").unwrap();
    assert!(ratio["ratios"][0]["ratio"].as_f64() > Some(0.0), "{ratio}");
    let calls =
        |side: &str| result(&out.join(side).join("1"))["points"][0]["compound_calls"].clone();
    assert!(calls("a").is_null() && calls("b").is_object());
}

#[test]
fn versions_and_slots_are_factors_of_an_experiment() {
    let server = Served::with("nfs", &[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let (file, out) = (temp_dir.path().join("e.toml"), temp_dir.path().join("out"));
    let experiment = format!(
        "suite = \"nfs-v3\"\ntarget = \"{}\"\nrepeats = 1\nresponse = \"p50@100\"\n\
         options = \"--profile quick --points 100 --workers 1 --set profiles.quick.warm_up=50ms \
         --set profiles.quick.measure=200ms --set profiles.quick.drain=1s\"\n\
         [[factors]]\nname = \"version\"\nkey = \"workload.version\"\nlevels = [3, 4.1]\n\
         [[factors]]\nname = \"slots\"\nkey = \"workload.slots\"\nlevels = [1, 64]\n",
        server.url
    );
    std::fs::write(&file, experiment).unwrap();
    let made = plimsoll(&["experiment", text(&file), "--out", text(&out), "--force", "--json"]);
    assert!(matches!(made.code, Some(0 | 1)), "{made:?}");
    let document: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!(document["experiment"]["cells"].as_array().unwrap().len(), 4, "{document}");
}

#[test]
fn a_server_that_restarts_with_its_files_gets_new_sessions_and_no_op_fails() {
    let server = OwnNfs::start();
    let point = in_mid_point("nfs-v4.1", &server.url, || server.v4.restart(Duration::ZERO));
    assert_eq!(point["errors"], json!({}), "{point}");
    assert_eq!(point["sessions_rebuilt"], 16, "{point}");
    assert_eq!(server.v4.executed_twice(), 0);
}

#[test]
fn a_server_that_is_killed_and_started_again_has_neither_sessions_nor_files() {
    let first = Served::with("nfs", &[]);
    let (url, address) = (first.url.clone(), first.address().to_string());
    let mut second = None;
    let point = in_mid_point("nfs-v4.1", &url, || {
        // Killed.
        drop(first);
        std::thread::sleep(Duration::from_millis(200));
        let again = ["serve", "nfs", "--listen", &address, "--stop-with-stdin"];
        second = Some(Served::start(command(&again)));
    });
    assert!(number(&point, "sessions_rebuilt") >= 1.0, "{point}");
    let errors = point["errors"].as_object().unwrap();
    // NFS4ERR_STALE (RFC 8881 §15.1.2.7).
    assert!(errors.get("status:70").and_then(Value::as_u64).unwrap_or(0) > 10, "{errors:?}");
}

#[test]
fn a_server_that_stands_still_is_waited_for_and_nothing_is_sent_again() {
    let server = Served::with("nfs", &[]);
    let point = in_mid_point("nfs-v4.1", &server.url, || {
        signal(server.child(), Signal::STOP);
        std::thread::sleep(Duration::from_secs(2));
        signal(server.child(), Signal::CONT);
    });
    assert_eq!(point["errors"], json!({}), "{point}");
    for never in ["retransmissions", "sessions_rebuilt", "ambiguous"] {
        assert_eq!(point[never], 0, "{never}: {point}");
    }
    assert!(point["response_ns"]["max"].as_f64() > Some(1e9), "{point}");
}
