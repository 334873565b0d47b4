//! A web load in memory, split up among workers and agents: the requests are the same.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::workload::Workload;
use plimsoll_http::PROTOCOL;
use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::suite::{
    Arrivals, InterArrival, Override, ProfileName, Think, ThinkDistribution,
};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};
use plimsoll_protocol::{PlanRequest, Planner, ResolvedTarget, Work};
use plimsoll_testkit::dial_driver::{assignment, crews, sent_by};

const REQUEST_END: &[u8] = b"\r\n\r\n";

/// A server that answers every HEAD.
#[derive(Debug)]
struct Web;

#[derive(Default)]
struct Line {
    received: Vec<u8>,
    replies: Vec<u8>,
}

impl Dial for Web {
    fn dial(
        &self,
        _: SocketAddr,
        _: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        Ok(Box::new(Line::default()))
    }
}

impl Channel for Line {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.received.extend_from_slice(bytes);
        while let Some(at) = self.received.windows(4).position(|part| part == REQUEST_END) {
            self.received.drain(..at + 4);
            self.replies.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>, _: Duration) -> Result<(), ChannelError> {
        match self.replies.is_empty() {
            true => Err(ChannelError::Timeout),
            false => {
                into.append(&mut self.replies);
                Ok(())
            }
        }
    }
}

fn planned(name: &str, set: &[&str], arrivals: Option<&str>) -> Arc<dyn Workload> {
    let arrivals = arrivals.map(|whose| format!("load.arrivals={whose}"));
    let set = set.iter().copied().chain(arrivals.as_deref());
    let set: Vec<Override> = set.map(|text| Override::parse(text).unwrap()).collect();
    let suite = PROTOCOL.parse_suite(name, PROTOCOL.shipped(name).unwrap(), &set).unwrap();
    let url = TargetUrl::parse("http://127.0.0.1/").unwrap();
    let targets = [ResolvedTarget::new(url, ([127, 0, 0, 1], 80).into())];
    let request = PlanRequest {
        planner: Planner::Agent,
        ..PlanRequest::plain(&suite, suite.profiles.get(ProfileName::Full), &targets, &Web)
    };
    match (PROTOCOL.plan)(&request).unwrap().work {
        Work::Fixed(workload) => workload,
        Work::PerPoint(_) => panic!("{name} prepares nothing"),
    }
}

/// The requests, by client where each has its own.
fn requests(
    workload: &dyn Workload,
    task: &Assignment,
    agents: u32,
    is_shared: bool,
) -> Vec<(Option<std::net::IpAddr>, String)> {
    let sent_by_group = |group| sent_by(workload, (task, group), &Web);
    let mut all = Vec::new();
    for (client, bytes) in crews(task.workers, agents).flat_map(sent_by_group) {
        let text = String::from_utf8(bytes).unwrap();
        let each = text.split_terminator("\r\n\r\n").map(str::to_owned);
        all.extend(each.map(|request| (client.filter(|_| !is_shared), request)));
    }
    match is_shared {
        true => all.sort(),
        // Of one client, in order.
        false => all.sort_by_key(|(client, _)| *client),
    }
    all
}

#[test]
fn requests_are_the_same_for_any_number_of_workers_and_agents() {
    let inter_arrival = InterArrival::Exponential;
    let open = |arrivals| Load::Open {
        rate_ops_per_s: OpsPerSec::new(3_000.0).unwrap(),
        arrivals,
        gaps: inter_arrival,
        clients: 9,
        backlog_ops_max: 1_000,
    };
    let think = Think { mean: Nanos::from_millis(2), distribution: ThinkDistribution::Exponential };
    let closed = Load::Closed {
        clients: 9,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    };
    let from_deck = "workload.urls=['3 /a', '2 /b?{{uuid}}', '/c/{{int 1 1000}}']";
    let drawn = "workload.urls=['9999 /a', '/b?{{uuid}}']";
    let suites: [(&str, &[&str]); 3] = [
        ("web-static", &["workload.method=HEAD"]),
        ("web-url", &["workload.method=HEAD", from_deck]),
        ("web-url", &["workload.method=HEAD", drawn]),
    ];
    let loads = [
        (open(Arrivals::Shared), Some("shared")),
        (open(Arrivals::PerClient), Some("per_client")),
        (closed, None),
    ];
    for (name, set) in suites {
        for (load, arrivals) in &loads {
            let is_shared = *arrivals == Some("shared");
            let mode: &[&str] = if arrivals.is_some() { &["load.mode=open"] } else { &[] };
            let workload = planned(name, &[set, mode].concat(), *arrivals);
            let mut task = assignment(load.clone());
            let one = requests(&*workload, &task, 1, is_shared);
            assert!(one.len() > 2_000, "{name} {load:?}: {}", one.len());
            for (workers, agents) in [(4, 1), (4, 2), (4, 4), (2, 2)] {
                task.workers = workers;
                let many = requests(&*workload, &task, agents, is_shared);
                assert!(many == one, "{name} {load:?}, {workers} workers, {agents} agents");
            }
        }
    }
}
