//! One seed is the same work for any number of agents, as nginx's log shows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plimsoll_testkit::program::{CheckOutcome, one_is_right, plimsoll, result};
use serde_json::Value;

use super::access_log::{AccessLog, Line};
use super::agents::{RunDir, finished};

/// Requests that say which they are: each is drawn from the seed and its number.
const LIST: &str = "3 GET /a\n2 GET /b?{{uuid}}\nGET /c/{{int 1 1000}}\n";
/// Numbers of agents.
const FLEETS: [usize; 3] = [1, 2, 4];
/// Addresses that clients connect from, one each: they identify the client.
const CLIENTS: u8 = 6;

/// What agents of this host sent in a load point.
struct Sent {
    lines: Vec<Line>,
    point: Value,
}

impl Sent {
    /// Runs a load with this number of agents.
    #[track_caller]
    fn by(agents: usize, nginx: &AccessLog, more: &[&str]) -> Self {
        let before = nginx.lines(0).len();
        let run_dir = RunDir::new();
        let (bundle, list) = (run_dir.bundle(), run_dir.write("list", LIST));
        let sources: Vec<String> = (1..=CLIENTS).map(|of| format!("\"127.0.1.{of}\"")).collect();
        let sources = sources.join(", ");
        let table = format!("[[agent]]\nat = \"exec:env\"\nsources = [{sources}]\n");
        let agents = run_dir.write("agents.toml", table.repeat(agents));
        let run_of = ["run", "web-url", &nginx.url, "--out", bundle.to_str().unwrap()];
        let plain = ["--progress", "none", "--workers", "1", "--no-check", "--profile", "quick"];
        let fleet = ["--urls", &list, "--agents", &agents];
        let run = plimsoll(&[&run_of[..], &plain, &fleet, more].concat());
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        let record = &finished(&bundle)[0];
        let seconds = record["seconds"].as_array().unwrap();
        let ended: u64 = seconds.iter().map(|second| second["done"].as_u64().unwrap()).sum();
        let lines = nginx.lines(before + ended as usize).split_off(before);
        Self { lines, point: result(&bundle)["points"][0].clone() }
    }

    /// Requests with repeats, in no order.
    fn requests(&self) -> Vec<&str> {
        let mut requests: Vec<&str> = self.lines.iter().map(|line| &*line.request).collect();
        requests.sort_unstable();
        requests
    }

    /// The same of each client.
    fn of_clients(&self) -> Vec<&Line> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort();
        lines
    }

    /// Requests of each client, in order.
    fn by_client(&self) -> BTreeMap<IpAddr, Vec<&str>> {
        let mut clients = BTreeMap::<_, Vec<_>>::new();
        for line in &self.lines {
            clients.entry(line.from).or_default().push(&*line.request);
        }
        clients
    }
}

/// Runs a load by one, two and four agents; `same` compares each with the first. If the machine
/// stood still, few ops were sent, or not all, and nothing can be compared.
#[track_caller]
fn check_same(more: &[&str], same: impl Fn(&Sent, &Sent) -> bool) {
    let Some(nginx) = AccessLog::start() else { return };
    one_is_right(2, || {
        let sent = FLEETS.map(|agents| Sent::by(agents, &nginx, more));
        let counts = sent.each_ref().map(|sent| sent.lines.len());
        let is_poor = |sent: &Sent| {
            let clients = sent.by_client().len();
            let is_small = sent.lines.len() < 100 || clients < usize::from(CLIENTS);
            is_small || sent.point["not_sent"] != 0
        };
        if sent.iter().any(is_poor) {
            return CheckOutcome::Disturbed(format!("{counts:?} requests are few, or not all"));
        }
        match sent[1..].iter().all(|other| same(&sent[0], other)) {
            true => CheckOutcome::Right,
            false => CheckOutcome::Wrong(format!("{more:?}: others of {counts:?} requests")),
        }
    });
}

const OPEN: [&str; 10] = [
    "--points",
    "500",
    "--set",
    "load.mode=open",
    "--set",
    "profiles.quick.warm_up=100ms",
    "--set",
    "profiles.quick.measure=500ms",
    "--set",
    "profiles.quick.drain=20s",
];

#[test]
fn a_shared_schedule_sends_the_same_requests_by_one_two_and_four_agents() {
    check_same(&OPEN, |one, other| one.requests() == other.requests());
}

#[test]
fn schedules_of_clients_send_the_same_requests_by_one_two_and_four_agents() {
    let clients = format!("load.clients={CLIENTS}");
    let own = ["--set", "load.arrivals=per_client", "--set", &clients];
    check_same(&[&OPEN[..], &own].concat(), |one, other| one.of_clients() == other.of_clients());
}

#[test]
fn a_number_of_requests_is_the_same_ones_by_one_two_and_four_agents() {
    let numbered = ["-n", "300", "--rate", "1000"];
    check_same(&numbered, |one, other| {
        one.lines.len() == 300 && one.requests() == other.requests()
    });
}

#[test]
fn clients_of_a_closed_load_send_the_same_sequences_by_one_two_and_four_agents() {
    let clients = CLIENTS.to_string();
    let closed = ["--clients", &clients, "--set", "profiles.quick.warm_up=50ms"];
    let brief = ["--set", "profiles.quick.measure=300ms"];
    check_same(&[&closed[..], &brief].concat(), |one, other| {
        let (one, other) = (one.by_client(), other.by_client());
        one.iter().all(|(client, all)| {
            let (others, common) = (&other[client], all.len().min(other[client].len()));
            all[..common] == others[..common]
        })
    });
}
