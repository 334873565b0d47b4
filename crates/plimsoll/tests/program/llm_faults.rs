//! Faults of other clients of language models that concern loads and schedules, each provoked as it
//! was found there: docs/llm-faults.md has the table. Faults of one answer are in the tests of
//! `plimsoll-llm`.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

use plimsoll_testkit::llm_server::{
    Act, ReceivedRequest, Staged, answer, begin, end, event, plain, text_event,
};
use plimsoll_testkit::program::{CheckOutcome, Ended, one_is_right, plimsoll, result};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Measurements that may go wrong on a machine that stands still now and then.
const TRIES: usize = 3;

/// A finished run.
struct Ran {
    ended: Ended,
    /// Its last load point.
    point: Value,
}

/// `llm-chat` on this server.
fn chat(server: &Staged, more: &[&str]) -> Ran {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let out = bundle.to_str().unwrap();
    let mut arguments = vec!["run", "llm-chat", &server.url, "--model", "m", "--out", out];
    arguments.extend(["--profile", "quick", "--progress", "none", "--workers", "1"]);
    arguments.extend(["--set", "profiles.quick.drain=2s", "--set", "workload.input_tokens=64"]);
    arguments.extend(more);
    let ended = plimsoll(&arguments);
    assert!(bundle.join("result.json").exists(), "{ended:?}");
    let points = result(&bundle)["points"].as_array().unwrap().clone();
    Ran { ended, point: points.last().unwrap().clone() }
}

/// The same without the requests before any load.
fn bare(server: &Staged, more: &[&str]) -> Ran {
    chat(server, &[&["--no-check"], more].concat())
}

impl Ran {
    /// A percentile of a time of the point, in ms.
    fn ms(&self, times: &str, percentile: &str) -> f64 {
        percentile_ms(&self.point, times, percentile)
    }

    /// The same for generation times.
    fn generation_ms(&self, times: &str, percentile: &str) -> f64 {
        percentile_ms(&self.point["generation"], times, percentile)
    }

    fn done(&self) -> u64 {
        let chat = &self.point["ops"]["chat"];
        chat["count"].as_u64().unwrap() - chat["errors"].as_u64().unwrap()
    }

    fn rules(&self) -> Vec<&str> {
        let of = |key: &str| self.point[key].as_array().into_iter().flatten().collect::<Vec<_>>();
        [of("reasons"), of("warnings")]
            .concat()
            .iter()
            .filter_map(|it| it["rule"].as_str())
            .collect()
    }

    /// The test's expectation, and the figures that differ from it.
    fn evaluate(&self, is_right: bool) -> CheckOutcome {
        CheckOutcome::from_point(&self.point, (!is_right).then(|| self.point.to_string()))
    }
}

fn percentile_ms(node: &Value, times: &str, percentile: &str) -> f64 {
    let value = node[times][percentile].as_f64();
    value.unwrap_or_else(|| panic!("{times} has no {percentile}: {node}")) / 1e6
}

/// One client more than fills the server's time: 50 requests/s of 100 ms each.
#[test]
fn fault_01_a_wait_for_a_free_client_is_part_of_the_time_and_is_told_apart() {
    let server = Staged::new(|_| answer(MS(90), MS(1), 10));
    let load = ["--rate", "50", "--arrivals", "uniform", "--connections", "1", "-n", "20"];
    let run = bare(&server, &load);
    // The last was due after 0.4 s, and is answered after 2 s at the earliest.
    assert!(run.ms("response_ns", "max") > 1_500.0, "{}", run.point);
    assert!(run.generation_ms("first_output_ns", "max") > 1_500.0, "{}", run.point);
    assert!(run.ms("send_lag_ns", "max") > 1_400.0, "{}", run.point);
    assert!(run.ms("service_ns", "p50") < run.ms("send_lag_ns", "p50"), "{}", run.point);
}

#[test]
fn fault_02_the_rate_that_was_asked_for_is_sent_or_the_run_says_so() {
    one_is_right(TRIES, || {
        let server = Staged::new(|_| answer(MS(5), MS(1), 3));
        let load = ["--rate", "200", "--arrivals", "uniform", "--warm-up", "0s", "--for", "1s"];
        let run = bare(&server, &load);
        let log = server.log();
        let span = log.requests.last().unwrap().at - log.requests[0].at;
        let rate = (log.requests.len() - 1) as f64 / span.as_secs_f64();
        let is_invalid = run.point["valid"] == false;
        run.evaluate(log.requests.len() == 200 && ((rate / 200.0 - 1.0).abs() < 0.01 || is_invalid))
    });
}

/// Answers come once 16 clients wait, to all at once; twice as many requests are due.
#[test]
fn fault_03_requests_that_waited_for_a_burst_of_answers_say_that_they_were_late() {
    let server = Staged::new(|request| answer(MS(200 - (request.index % 16) * 10), MS(1), 2));
    let load = ["--rate", "160", "--arrivals", "uniform", "--connections", "16", "-n", "160"];
    let run = bare(&server, &load);
    assert!(run.ms("send_lag_ns", "p50") > 20.0, "{}", run.point);
    assert!(run.ms("response_ns", "p50") > run.ms("service_ns", "p50"), "{}", run.point);
}

#[test]
fn fault_04_chunks_of_a_megabyte_are_read_as_fast_as_they_come() {
    let text = "x".repeat(1_000_000);
    let server = Staged::new(move |_| {
        let texts = vec![Act::Text(text.clone()); 2];
        // All streams are open by then.
        let head = vec![begin(), Act::Wait(MS(200))];
        [head, texts, vec![Act::Write(end(1_000_000))]].concat()
    });
    let run = bare(&server, &["--clients", "64", "-n", "64"]);
    assert_eq!(run.done(), 64, "{}", run.point);
    let generation = &run.point["generation"];
    let characters = generation["characters_per_s"].as_f64().unwrap();
    let chunks = generation["chunks_per_s"].as_f64().unwrap();
    assert_eq!((characters / chunks).round(), 1_000_000.0);
    // A client that read 64 KiB at a time and copied them would take minutes.
    assert!(run.ms("service_ns", "max") < 20_000.0, "{}", run.point);
}

/// Half of the answers are errors, the quick ones.
#[test]
fn fault_18_failures_are_listed_and_make_no_throughput() {
    let server = Staged::new(|request| match request.index % 2 {
        0 => vec![plain("500 Internal Server Error", "{\"error\":{\"message\":\"no\"}}")],
        _ => answer(MS(20), MS(1), 2),
    });
    let run = bare(&server, &["--clients", "2", "-n", "60"]);
    assert_eq!(run.point["errors"]["status:500"], 30, "{}", run.point);
    let rate = run.point["achieved_ops_per_s"].as_f64().unwrap();
    let done = rate * run.point["seconds"].as_f64().unwrap();
    assert_eq!((run.done(), done.round()), (30, 30.0), "{}", run.point);
    assert_eq!(run.point["generation"]["first_output_ns"]["n"], 30);
    run.ended.check(1, &["status 500, saying no"]);
}

#[test]
fn fault_19_refused_requests_are_no_answers_and_silence_ends() {
    let server = Staged::new(|request| match request.index {
        0..4 => vec![plain("429 Too Many Requests", "{\"error\":{\"message\":\"queue full\"}}")],
        4..8 => vec![plain("503 Service Unavailable", "{\"error\":\"starting\"}")],
        _ => vec![Act::Hold],
    });
    let run = bare(&server, &["--clients", "2", "-n", "12", "--timeout", "300ms"]);
    let errors = &run.point["errors"];
    assert_eq!((&errors["status:429"], &errors["status:503"]), (&4.into(), &4.into()), "{errors}");
    assert_eq!(errors["timeout"], 4, "{errors}");
    assert_eq!(run.done(), 0);
    assert!(run.point["generation"]["output_tokens_per_s"].is_null(), "{}", run.point);
}

/// All that come within 0.6 s of two wait for its end.
#[test]
fn fault_20_requests_that_were_due_while_the_server_stood_still_show_it() {
    one_is_right(TRIES, || {
        let server = Staged::new(|request| {
            let stalled = (100..160).contains(&request.index);
            let wait = if stalled { 600 - (request.index - 100) * 10 } else { 1 };
            answer(MS(wait), MS(1), 2)
        });
        let load = ["--rate", "100", "--arrivals", "uniform", "--warm-up", "0s", "--for", "2s"];
        let run = bare(&server, &load);
        // 30 % of them waited, from 0.6 s down to nothing.
        run.evaluate((300.0..500.0).contains(&run.generation_ms("first_output_ns", "p90")))
    });
}

/// At the second load point of [`CROWD`]. A pool of connections has 100 in many libraries.
const CROWD_CLIENTS: u64 = 256;

/// Shared by several tests: two load points, with all checks before.
static CROWD: LazyLock<(Staged, Ran)> = LazyLock::new(|| {
    let server = Staged::new(|_| answer(MS(100), MS(100), 3));
    let phases = ["--warm-up", "400ms", "--for", "700ms", "--points", "50,256"];
    let run = chat(&server, &phases);
    (server, run)
});

#[test]
fn fault_21_as_many_streams_are_open_as_were_asked_for() {
    assert_eq!(CROWD.0.log().open_max, CROWD_CLIENTS);
    assert_eq!(CROWD.1.point["clients_participating"], CROWD_CLIENTS);
}

/// To read the thousands of events of an answer takes many times as long as to write them at once.
#[test]
fn fault_22_where_the_client_is_the_limit_it_says_so() {
    let events = event(&text_event(" word")).repeat(3_000);
    let server =
        Staged::new(move |_| vec![begin(), Act::Write(events.clone()), Act::Write(end(3_000))]);
    one_is_right(TRIES, || {
        let run = bare(&server, &["--clients", "16", "--warm-up", "100ms", "--for", "1500ms"]);
        let names_generator = run.point["limit"]["kind"] == "generator";
        let is_invalid = run.point["valid"] == false && run.rules().contains(&"generator_cpu");
        run.evaluate(names_generator && is_invalid)
    });
}

#[test]
fn fault_28_a_client_keeps_its_connection() {
    let server = Staged::new(|_| answer(MS(1), MS(1), 2));
    let run = bare(&server, &["--clients", "8", "-n", "200"]);
    assert_eq!((run.done(), &run.point["connects"]), (200, &8.into()), "{}", run.point);
    assert_eq!(server.log().connections_used(), 8);
}

#[test]
fn fault_30_no_prompt_comes_twice() {
    let log = CROWD.0.log();
    let prompts: HashSet<&str> = log.requests.iter().map(|request| request.body.as_str()).collect();
    assert_eq!(prompts.len(), log.requests.len());
    // Caches identify known texts by their beginning.
    let beginnings: HashSet<&str> = log
        .requests
        .iter()
        .filter_map(|request| request.body.split("\"content\":\"").nth(1)?.get(..16))
        .collect();
    assert_eq!(beginnings.len(), log.requests.len());
}

/// Every first answer comes after the end of the load, whose clients have no more requests.
#[test]
fn fault_32_nothing_is_sent_after_the_end() {
    let server = Staged::new(|_| answer(MS(600), MS(1), 2));
    let run = bare(&server, &["--clients", "4", "--warm-up", "0s", "--for", "400ms"]);
    let later = server.log().requests.iter().filter(|request| request.on_connection > 0).count();
    assert_eq!(later, 0, "{}", run.point);
    // Nor does a load point send into the next one, whose connections are the last.
    let log = CROWD.0.log();
    let is_of_last =
        |request: &ReceivedRequest| request.connection > log.connections - CROWD_CLIENTS;
    let first_of_last = log.requests.iter().position(is_of_last).unwrap();
    assert!(log.requests[first_of_last..].iter().all(is_of_last));
}

#[test]
fn fault_23_the_number_of_requests_does_not_change_the_figure() {
    one_is_right(TRIES, || {
        let of = |n: &str| {
            let server = Staged::new(|_| answer(MS(40), MS(5), 3));
            bare(&server, &["--clients", "8", "-n", n])
        };
        let (few, many) = (of("40"), of("400"));
        let p50 = |run: &Ran| run.generation_ms("first_output_ns", "p50");
        many.evaluate((p50(&few) - p50(&many)).abs() < 2.0)
    });
}

/// Half of the answers end within 0.2 s, the others not within the run.
#[test]
fn fault_24_what_was_generated_within_the_window_counts_whether_its_request_ends_or_not() {
    one_is_right(TRIES, || {
        let server = Staged::new(|request| {
            answer(MS(1), MS(10), if request.index % 2 == 0 { 20 } else { 100_000 })
        });
        let phases = ["--clients", "20", "--warm-up", "100ms", "--for", "1s"];
        let run = bare(&server, &[&phases[..], &["--set", "profiles.quick.drain=200ms"]].concat());
        // Clients meet an answer without end one after the other; all stream, at 100 chunks/s.
        let chunks = run.point["generation"]["chunks_per_s"].as_f64().unwrap();
        run.evaluate((1_500.0..2_050.0).contains(&chunks))
    });
}

#[test]
fn fault_26_the_client_adds_nothing_to_the_first_token() {
    one_is_right(TRIES, || {
        let server = Staged::new(|_| answer(MS(10), MS(2), 5));
        let run = bare(&server, &["--clients", "1", "-n", "50"]);
        let mut truth = server.log().first_texts.clone();
        truth.sort_unstable();
        let truth = truth[truth.len() / 2].as_secs_f64() * 1e3;
        let reported = run.generation_ms("first_output_service_ns", "p50");
        run.evaluate((truth..truth + 0.5).contains(&reported))
    });
}

/// Nagle's algorithm delays the second of two small writes until the other side acknowledges the
/// first, which it does after 40 ms if it waits for more.
#[test]
fn fault_27_requests_on_a_kept_connection_do_not_wait_for_an_acknowledgement() {
    one_is_right(TRIES, || {
        let server = Staged::new(|_| answer(MS(1), MS(1), 2));
        let run = bare(&server, &["--clients", "1", "-n", "60"]);
        assert_eq!(server.log().connections_used(), 1);
        run.evaluate(run.ms("service_ns", "p50") < 30.0)
    });
    // A server that waits like that for each text is slow itself.
    let server = Staged::new(|_| [vec![Act::Nagle], answer(MS(0), MS(0), 1)].concat());
    let run = bare(&server, &["--clients", "1", "-n", "30"]);
    assert!(run.generation_ms("first_output_service_ns", "p50") > 30.0, "{}", run.point);
}

/// The server closes each connection after its second answer without notice, as an idle one.
#[test]
fn fault_29_a_connection_that_was_closed_while_idle_costs_no_request() {
    let server = Staged::new(|request| {
        let mut acts = answer(MS(5), MS(1), 2);
        acts.extend((request.on_connection == 1).then_some(Act::Close));
        acts
    });
    let run = bare(&server, &["--clients", "4", "-n", "100"]);
    assert_eq!((run.done(), &run.point["errors"]), (100, &serde_json::json!({})), "{}", run.point);
    // Each reached the server once.
    assert_eq!(server.log().requests.len(), 100);
    let again = ["reconnected", "ambiguous", "unkept"];
    let counted: u64 = again.iter().filter_map(|counter| run.point[*counter].as_u64()).sum();
    assert!(counted > 0, "{}", run.point);
}

#[test]
fn fault_31_a_stream_that_never_ends_fails_in_time_and_the_run_ends() {
    let server = Staged::new(|request| match request.index {
        3 => vec![begin(), Act::Text("a".to_owned()), Act::Hold],
        _ => answer(MS(5), MS(1), 2),
    });
    let run = bare(&server, &["--clients", "2", "-n", "20", "--timeout", "500ms"]);
    assert_eq!(run.point["errors"]["timeout"], 1, "{}", run.point);
    assert_eq!(run.done(), 19, "{}", run.point);
}

/// The first request of each client takes longer than the warm-up.
#[test]
fn fault_33_requests_of_the_warm_up_are_not_measured_although_they_end_after_it() {
    one_is_right(TRIES, || {
        let server = Staged::new(|request: &ReceivedRequest| {
            let first = if request.on_connection == 0 { MS(500) } else { MS(10) };
            answer(first, MS(1), 2)
        });
        let run = bare(&server, &["--clients", "4", "--warm-up", "100ms", "--for", "1s"]);
        run.evaluate(run.generation_ms("first_output_ns", "max") < 400.0)
    });
}

#[test]
fn fault_35_less_than_one_request_a_second_is_not_none() {
    let server = Staged::new(|_| answer(MS(1_200), MS(1), 2));
    let run = bare(&server, &["--clients", "1", "--warm-up", "0s", "--for", "2500ms"]);
    let rate = run.point["achieved_ops_per_s"].as_f64().unwrap();
    assert!((0.3..0.9).contains(&rate), "{rate}: {:?}", run.rules());
}
