//! Every flag of `web-url`, as real web servers see its effect, and every flag in the table of
//! other tools.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use serde_json::Value;

use crate::web_peers::{CLIENT, LoggedRequest, WebPeer};
use plimsoll_testkit::program::{
    CheckOutcome, Ended, command, one_is_right, plimsoll, result, wait_for,
};

/// Requests of most runs here.
const N: u64 = 20;

/// A run of `web-url` without progress.
struct FlagRun {
    ended: Ended,
    result: Option<Value>,
}

impl FlagRun {
    fn points(&self) -> Vec<&Value> {
        let result = self.result.as_ref().unwrap_or_else(|| panic!("{:?}", self.ended));
        result["points"].as_array().unwrap().iter().collect()
    }

    /// Measured requests, and their errors.
    fn measured(&self) -> (u64, BTreeMap<String, u64>) {
        let (mut count, mut errors) = (0, BTreeMap::new());
        for point in self.points() {
            let ops = point["ops"].as_object().unwrap().values();
            count += ops.map(|op| op["count"].as_u64().unwrap()).sum::<u64>();
            for (class, number) in point["errors"].as_object().unwrap() {
                *errors.entry(class.clone()).or_default() += number.as_u64().unwrap();
            }
        }
        (count, errors)
    }
}

fn ask_with(url: &str, flags: &[&str], input: &str) -> FlagRun {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mut arguments = vec!["run", "web-url", url, "--out", bundle.to_str().unwrap()];
    arguments.extend(["--progress", "none", "--workers", "1"]);
    arguments.extend(flags);
    let mut run = command(&arguments);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    // A run that ended at once has closed it.
    let _ = run.stdin.take().unwrap().write_all(input.as_bytes());
    let ended = wait_for(run);
    let result = bundle.join("result.json").exists().then(|| result(&bundle));
    FlagRun { ended, result }
}

fn ask(url: &str, flags: &[&str]) -> FlagRun {
    ask_with(url, flags, "")
}

/// Requests in the server's log of a run of N requests, all of which must succeed; the first is the
/// check before the load.
#[track_caller]
fn requests_of_run(peer: &WebPeer, url: &str, flags: &[&str]) -> Vec<LoggedRequest> {
    let flags = [flags, &["-n", "20"]].concat();
    let run = ask(url, &flags);
    assert_eq!(run.measured(), (N, BTreeMap::new()), "{} {flags:?}", peer.name);
    let requests = peer.logged_requests(N + 1);
    assert_eq!(requests.len() as u64, N + 1, "{} {flags:?}", peer.name);
    requests
}

/// The one value that all requests have.
#[track_caller]
fn same<T: Ord + Clone + std::fmt::Debug>(
    requests: &[LoggedRequest],
    part: impl Fn(&LoggedRequest) -> T,
) -> T {
    let values: BTreeSet<T> = requests.iter().map(part).collect();
    assert_eq!(values.len(), 1, "{values:?}");
    values.into_iter().next().unwrap()
}

fn distinct(requests: &[LoggedRequest], part: impl Fn(&LoggedRequest) -> String) -> usize {
    requests.iter().map(part).collect::<BTreeSet<_>>().len()
}

fn connections(requests: &[LoggedRequest]) -> usize {
    distinct(requests, |one| one.connection.clone())
}

#[test]
fn requests_clients_and_new_connections_are_as_many_as_were_asked_for() {
    // The check before the load has a connection of its own.
    for (flags, expected) in [
        (&["--clients", "3"][..], 3 + 1),
        (&[], 20 + 1),
        (&["--clients", "3", "--new-connection"], 20 + 1),
        (&["--rate", "1k", "--connections", "4", "--new-connection"], 20 + 1),
    ] {
        for number in 0..WebPeer::all().len() {
            let once = || {
                let peer = WebPeer::all().into_iter().nth(number).unwrap();
                (peer.name, requests_of_run(&peer, &peer.url("a?b=c"), flags))
            };
            let (mut name, mut requests) = once();
            for _ in 0..2 {
                // Caddy's log identifies connections by their ports, and a new one may get the same
                // port.
                if connections(&requests) != expected {
                    (name, requests) = once();
                }
            }
            assert_eq!(connections(&requests), expected, "{name} {flags:?}");
            let line = same(&requests, |one| {
                (one.method.clone(), one.target.clone(), one.protocol.clone())
            });
            assert_eq!(line, ("GET".into(), "/a?b=c".into(), "HTTP/1.1".into()));
        }
    }
}

#[test]
fn clients_over_http2_share_connections_of_so_many_streams() {
    for peer in WebPeer::all() {
        let ca_file = peer.file("certificate.pem");
        let flags = ["--http", "2", "--streams", "3", "--clients", "7", "--cacert", &ca_file];
        let requests = requests_of_run(&peer, &peer.tls_url(""), &flags);
        assert_eq!(same(&requests, |one| one.protocol.clone()), "HTTP/2.0");
        // The check before the load has a connection of its own.
        assert_eq!(connections(&requests), 3 + 1, "{}", peer.name);
    }
}

/// An open load of 50/s with these arrivals: the number of inter-arrival times at the server that
/// are those of uniform ones, 20 ms, except for the effect of a busy host.
fn even_intervals(peer: &WebPeer, arrivals: &str) -> (usize, Value) {
    let before = peer.logged_requests(0).len();
    let flags = ["-n", "100", "--rate", "50", "--connections", "4", "--arrivals", arrivals];
    let run = ask(&peer.url(""), &flags);
    assert_eq!(run.measured().0, 100);
    let requests = peer.logged_requests(before as u64 + 101).split_off(before + 1);
    assert!(connections(&requests) <= 4, "{}", peer.name);
    let intervals_ms = requests.windows(2).map(|two| (two[1].at_s - two[0].at_s) * 1e3);
    (intervals_ms.filter(|ms| (14.0..26.0).contains(ms)).count(), run.points()[0].clone())
}

#[test]
fn an_open_load_has_the_rate_the_gaps_and_the_connections_it_was_given() {
    for peer in WebPeer::all() {
        one_is_right(3, || {
            let [(uniform, point), (exponential, _)] =
                ["uniform", "poisson"].map(|arrivals| even_intervals(&peer, arrivals));
            // Of an exponential law 22 % lie there.
            let differs = uniform < 50 || exponential > 36;
            let message = || format!("{}: {uniform} and {exponential} of 99", peer.name);
            CheckOutcome::from_point(&point, differs.then(message))
        });
    }
}

#[test]
fn connections_of_an_open_load_are_as_many_as_were_given_where_all_are_needed() {
    // 200 a second of 60 ms each would take twelve.
    let accepted = |connections: &str| {
        let fault = |_: &_| Fault::Late(Duration::from_millis(60));
        let server = FaultServer::with_fixed_body(10, fault);
        let flags = ["-n", "20", "--rate", "200", "--connections", connections, "--no-check"];
        assert_eq!(ask(&server.url(), &flags).measured(), (20, BTreeMap::new()));
        server.accepted()
    };
    assert_eq!(accepted("6") - accepted("3"), 3);
}

#[test]
fn several_rates_are_a_ladder_and_each_point_has_its_requests() {
    for peer in WebPeer::all() {
        let run = ask(&peer.url(""), &["-n", "10", "--rate", "100,0.2k"]);
        let loads: Vec<_> = run.points().iter().map(|point| point["requested"].clone()).collect();
        assert_eq!(loads, [100.0, 200.0]);
        assert_eq!((run.measured().0, peer.logged_requests(21).len()), (20, 21), "{}", peer.name);
    }
}

#[test]
fn a_window_and_a_warm_up_are_as_long_as_was_asked_for() {
    for peer in WebPeer::all() {
        let flags = ["--rate", "100", "--gaps", "uniform", "--warm-up", "200ms", "--for", "300ms"];
        let (count, errors) = ask(&peer.url(""), &flags).measured();
        assert!(count.abs_diff(30) <= 1 && errors.is_empty(), "{count} {errors:?}");
        let all = peer.logged_requests(count + 1).len() as u64;
        assert!(all.abs_diff(20 + 30 + 1) <= 2, "{}: {all}", peer.name);
    }
}

#[test]
fn any_method_is_in_the_log() {
    for method in ["HEAD", "DELETE", "OPTIONS", "PATCH", "PURGE"] {
        for peer in WebPeer::all() {
            let requests =
                requests_of_run(&peer, &peer.url("m"), &["-m", method, "--timeout", "5s"]);
            assert_eq!(
                same(&requests, |one| (one.method.clone(), one.status)),
                (method.into(), 200)
            );
        }
    }
}

#[test]
fn a_body_is_sent_as_written_and_drawn_anew_where_it_says_so() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("body");
    let long = format!("{{\"text\": \"ä{}\", \"kept\": \"{{{{uuid}}}}\"}}", "x".repeat(1_500));
    std::fs::write(&file, &long).unwrap();
    let at_file = format!("@{}", file.display());
    let form = "application/x-www-form-urlencoded";
    for peer in WebPeer::all() {
        let requests = requests_of_run(&peer, &peer.url(""), &["-d", "name=value"]);
        let sent =
            same(&requests, |one| (one.method.clone(), one.body.clone(), one.fields.clone()));
        assert_eq!((&*sent.0, &*sent.1), ("POST", "name=value"), "{}", peer.name);
        assert_eq!((&*sent.2["content-type"], &*sent.2["content-length"]), (form, "10"));
    }
    for peer in WebPeer::all() {
        let json = "Content-Type: application/json";
        let requests =
            requests_of_run(&peer, &peer.url(""), &["-m", "PUT", "-d", &at_file, "-H", json]);
        let sent =
            same(&requests, |one| (one.method.clone(), one.body.clone(), one.fields.clone()));
        assert_eq!((&*sent.0, &sent.1), ("PUT", &long), "{}", peer.name);
        assert_eq!(sent.2["content-type"], "application/json");
        assert_eq!(sent.2["content-length"], long.len().to_string());
    }
    for peer in WebPeer::all() {
        let requests = requests_of_run(&peer, &peer.url("{{int,5,5}}"), &["-d", "id={{uuid}}"]);
        assert_eq!(distinct(&requests[1..], |one| one.body.clone()), 20, "{}", peer.name);
        assert_eq!(same(&requests, |one| (one.target.clone(), one.body.len())), ("/5".into(), 39));
    }
}

#[test]
fn fields_users_and_cookies_are_in_the_log_of_every_request() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("fields");
    std::fs::write(&file, "X-One: 1\n\nX-Two: two words\n").unwrap();
    let file = file.to_str().unwrap();
    let flags = [
        &["-a", "ann:secret", "-b", "s=1", "--cookie", "t=2", "--header-file", file][..],
        &["-H", "X-Three: 3", "-H", "Accept: text/html", "-H", "Host: other.example"],
    ]
    .concat();
    let expected = [
        ("accept", "text/html"),
        ("authorization", "Basic YW5uOnNlY3JldA=="),
        ("cookie", "s=1; t=2"),
        ("x-one", "1"),
        ("x-three", "3"),
        ("x-two", "two words"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for peer in WebPeer::all() {
        let requests = requests_of_run(&peer, &peer.url(""), &flags);
        let fields = same(&requests, |one| (one.host.clone(), one.fields.clone()));
        assert_eq!(fields, ("other.example".into(), BTreeMap::from(expected.clone())));
    }
}

/// Three lines, weights 5, 3 and 2.
const LIST: &str = "5 GET /a?x=1\n\
    {\"url\": \"/b\", \"body\": {\"n\": 1}, \"weight\": 3, \"headers\": {\"X-One\": \"1\"}}\n\
    2 DELETE /c\n";

#[test]
fn a_list_from_a_file_or_from_standard_input_is_asked_for_by_its_weights() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("list");
    std::fs::write(&file, LIST).unwrap();
    for from in [file.to_str().unwrap(), "-"] {
        for peer in WebPeer::all() {
            let flags = ["-n", "20", "--clients", "1", "--no-check", "--urls", from];
            assert_eq!(ask_with(&peer.url(""), &flags, LIST).measured(), (20, BTreeMap::new()));
            let mut log = BTreeMap::new();
            for one in peer.logged_requests(20) {
                let fields = one.fields.get("x-one").is_some_and(|value| value == "1");
                *log.entry((one.method, one.target, one.body, fields)).or_default() += 1;
            }
            let line = |method: &str, target: &str, body: &str, fields: bool| {
                (method.to_owned(), target.to_owned(), body.to_owned(), fields)
            };
            let expected = BTreeMap::from([
                (line("GET", "/a?x=1", "", false), 10),
                (line("POST", "/b", "{\"n\":1}", true), 6),
                (line("DELETE", "/c", "", false), 4),
            ]);
            assert_eq!(log, expected, "{} from {from}", peer.name);
        }
    }
}

#[test]
fn no_check_leaves_out_the_look_before_load() {
    // With nginx and Caddy the case of lists counts.
    let failing = FaultServer::with_fixed_body(10, |_| Fault::Status(503));
    let url = failing.url();
    let run = ask(&url, &["-n", "20"]);
    run.ended.check(3, &["the first GET ended with status 503", "--no-check"]);
    assert_eq!(failing.requests(), 1);
    let run = ask(&url, &["-n", "20", "--no-check"]);
    run.ended.check(1, &[]);
    assert_eq!(run.measured(), (20, BTreeMap::from([("status:503".to_owned(), 20)])));
    assert_eq!(failing.requests(), 21);
}

#[test]
fn a_timeout_is_the_longest_a_reply_may_take() {
    let late = |pause_ms| {
        let fault = move |_: &_| Fault::Late(Duration::from_millis(pause_ms));
        let server = FaultServer::with_fixed_body(10, fault);
        let flags = ["-n", "20", "--timeout", "1s", "--no-check"];
        (ask(&server.url(), &flags).measured(), server.requests())
    };
    assert_eq!(late(20), ((20, BTreeMap::new()), 20));
    assert_eq!(late(2_500), ((20, BTreeMap::from([("timeout".to_owned(), 20)])), 20));
}

#[test]
fn a_server_that_is_not_there_is_told_before_any_load() {
    let mut server = FaultServer::with_fixed_body(10, |_| Fault::None);
    server.go_down();
    ask(&server.url(), &["-n", "20"]).ended.check(3, &["127.0.0.1", "refuses the connection"]);
    assert_eq!(server.accepted(), 0);
}

#[test]
fn pieces_of_streams_are_timed_and_the_requests_are_the_same() {
    for peer in WebPeer::all() {
        let run = ask(&peer.url(""), &["-n", "20", "--stream"]);
        assert_eq!(run.points()[0]["ops"]["GET"]["first_piece_ns"]["n"], 20);
        assert_eq!(peer.logged_requests(21).len(), 21, "{}", peer.name);
    }
    // Long relative to a pause of this machine, after which two pieces arrive together.
    let pause = Duration::from_millis(200);
    let dripping = FaultServer::with_fixed_body(30, move |_| Fault::SlowDrip { bytes: 10, pause });
    let run = ask(&dripping.url(), &["-n", "4", "--stream", "--clients", "1"]);
    let get = &run.points()[0]["ops"]["GET"];
    assert!(get["piece_gap_ns"]["n"].as_u64().unwrap() >= 4 * 2, "{get}");
}

#[test]
fn another_place_to_connect_to_leaves_the_url_as_it_is() {
    for peer in WebPeer::all() {
        let endpoint = format!("127.0.0.1:{}", peer.port);
        let requests =
            requests_of_run(&peer, "http://no-such-host.invalid/x", &["--connect-to", &endpoint]);
        assert_eq!(
            same(&requests, |one| (one.host.clone(), one.target.clone())),
            ("no-such-host.invalid".into(), "/x".into())
        );
    }
    for peer in WebPeer::all() {
        let flags = ["--unix", &peer.file("socket")];
        let requests = requests_of_run(&peer, "http://no-such-host.invalid:81/x", &flags);
        assert_eq!(same(&requests, |one| one.host.clone()), "no-such-host.invalid:81");
    }
}

#[test]
fn certificates_are_checked_trusted_or_taken_as_they_come() {
    for peer in WebPeer::all() {
        let url = peer.tls_url("t");
        ask(&url, &["-n", "20"]).ended.check(3, &["is not good", "--cacert FILE", "--insecure"]);
        assert_eq!(peer.logged_requests(0), [], "{}", peer.name);
        let plain = url.replace(&peer.tls_port.to_string(), &peer.port.to_string());
        let expected = ["does not speak TLS", "write http:// instead of https://"];
        ask(&plain, &["-n", "20", "-k"]).ended.check(3, &expected);
    }
    for peer in WebPeer::all() {
        let requests = requests_of_run(&peer, &peer.tls_url("t"), &["-k"]);
        assert!(same(&requests, |one| one.tls && one.client.is_empty()), "{}", peer.name);
    }
    for peer in WebPeer::all() {
        let requests = requests_of_run(
            &peer,
            &peer.tls_url("t"),
            &["--cacert", &peer.file("certificate.pem")],
        );
        assert!(same(&requests, |one| one.tls), "{}", peer.name);
    }
}

#[test]
fn the_clients_own_certificate_is_shown_to_the_server() {
    for peer in WebPeer::all() {
        let (certificate, key) = (peer.file("client/certificate.pem"), peer.file("client/key.pem"));
        let together = peer.file("client/both.pem");
        let trust = ["--cacert", &peer.file("certificate.pem")];
        let mut before = 0;
        for flags in [&["--cert", &*certificate, "--key", &key][..], &["--cert", &together]] {
            let flags = [&trust, flags, &["-n", "20"]].concat();
            assert_eq!(ask(&peer.tls_url(""), &flags).measured(), (20, BTreeMap::new()));
            let requests = peer.logged_requests(before + 21);
            let client = same(&requests, |one| one.client.clone());
            assert!(client.contains(&format!("CN={CLIENT}")), "{}: {client:?}", peer.name);
            before += 21;
        }
    }
}

/// What `plimsoll run --help` says of web-url: the long names of each flag.
fn flags() -> Vec<(String, Option<String>)> {
    let help = plimsoll(&["run", "--help"]).out;
    let part = help.split("Options of web-url").nth(1).unwrap();
    let part = part.split("\nOptions of ").next().unwrap();
    let lines = part.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let tokens = lines.map(|line| line.split([' ', ',']).filter(|word| word.starts_with('-')));
    let flags = tokens.map(|tokens| tokens.map(str::to_owned).collect::<Vec<_>>());
    flags
        .map(|mut names| (names.pop().unwrap(), names.pop()))
        .filter(|(long, _)| long.starts_with("--"))
        .collect()
}

#[test]
fn connections_that_are_held_and_that_the_server_closes_are_counted_as_lost() {
    let server = FaultServer::with_fixed_body(200, |request| match request.index % 10 {
        3 => Fault::CloseAfterReply,
        _ => Fault::None,
    });
    let hold = ["--hold", "50", "--hold-rate", "200", "--hold-every", "1h", "--no-check"];
    let run = ask(&server.url(), &[&hold[..], &["--warm-up", "100ms", "--for", "300ms"]].concat());
    let points = run.points();
    let sessions = &points[0]["sessions"];
    let counts = ["asked", "opened", "held", "lost"].map(|count| sessions[count].as_u64());
    assert_eq!(counts, [Some(50), Some(50), Some(45), Some(5)], "{}", points[0]);
    let samples = points[0]["error_samples"].to_string();
    assert!(samples.contains("closed the idle connection"), "{samples}");
    assert_eq!(server.requests(), 50);
}

#[test]
fn clients_think_between_their_requests() {
    let server = FaultServer::with_fixed_body(200, |_| Fault::None);
    let load = ["--clients", "1", "--for", "600ms", "--warm-up", "0s", "--all-addresses"];
    let run = ask(&server.url(), &[&load[..], &["--think", "constant:100ms"]].concat());
    assert_eq!(run.points().len(), 1);
    assert!((1..=8).contains(&server.requests()), "{}", server.requests());
    let wrong = plimsoll(&["run", "web-url", &server.url(), "--think", "now:5s"]);
    wrong.check(2, &["now is no distribution", "constant:5s"]);
}

#[test]
fn a_journey_is_of_another_suite() {
    for (flag, value) in [("--journey", "journey.toml"), ("--sessions", "20")] {
        let run = ask_with("http://127.0.0.1:9/", &[flag, value], "");
        run.ended.check(2, &[&format!("{flag} belongs to suite web-users")]);
    }
}

#[test]
fn every_flag_has_a_case_here_and_a_row_in_the_table_of_other_tools() {
    let flags = flags();
    assert!(flags.len() >= 23, "{flags:?}");
    let cases = include_str!("flags.rs");
    let page = include_str!("../../../../docs/other-tools.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let has_row = |flag: &str| {
        let mut tokens = rows.iter().flat_map(|row| row.split(|c: char| !is_of_flag(c)));
        tokens.any(|word| word == flag)
    };
    for (long, short) in &flags {
        let names = [Some(long), short.as_ref()].into_iter().flatten();
        let is_used = names.clone().any(|name| cases.contains(&format!("\"{name}\"")));
        assert!(is_used, "{long} has no case in flags.rs");
        assert!(names.clone().all(|name| has_row(name)), "{long} has no row in other-tools.md");
    }
}

fn is_of_flag(c: char) -> bool {
    c == '-' || c.is_ascii_alphanumeric()
}
