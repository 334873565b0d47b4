//! Which host is named as the limit, where several are watched: written figures on real sockets.
//!
//! A server with an imposed rate, on a host of its own, saturates while no real resource is full.
//! Pages of an exporter and SNMP agents, on the addresses of other hosts, have written figures.

use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_testkit::clock::now;
use plimsoll_testkit::delay_server::{DelayConfig, DelayServer, Waiting, one_at_a_time};
use plimsoll_testkit::exporter_page::ExporterPage;
use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::program::{CheckOutcome, command, one_is_right, result, short, wait_for};
use plimsoll_testkit::snmp_agent::{
    self, COMMUNITY, COUNTER_64, GAUGE_32, SnmpAgent, TIME_TICKS, Table,
};
use serde_json::Value;
use tempfile::TempDir;

/// Hosts by their namespaces. The target's server is on the first.
const WEB: usize = 0;
const DATABASE: usize = 1;
const SWITCH: usize = 2;
const GENERATOR: usize = 3;

/// What the page of a host says.
#[derive(Clone, Copy)]
enum Figures {
    /// Of an exporter: each processor is busy for this share.
    Processors(f64),
    /// Of an exporter: idle processors, and a disk that serves all requests one by one.
    Disk,
    /// Of an SNMP agent without processors: its port 7 sends this share of its speed.
    Port(f64),
}
use Figures::{Disk, Port, Processors};

const BUSY: Figures = Processors(0.99);
const IDLE: Figures = Processors(0.25);
const FULL: Figures = Port(0.98);
const ROOM: Figures = Port(0.3);

/// Sources that a run watches, each with its role if it is given.
type Sources = &'static [(Option<&'static str>, usize, Figures)];

struct Scenario {
    name: &'static str,
    sources: Sources,
    /// Hosts of the targets.
    targets: &'static [usize],
    agent: bool,
    /// Kind, location and, if it is not the only server, the host; none if nobody may be blamed.
    limit: Option<(&'static str, &'static str, Option<usize>)>,
}

const fn scenario(
    name: &'static str,
    sources: Sources,
    limit: Option<(&'static str, &'static str, Option<usize>)>,
) -> Scenario {
    Scenario { name, sources, targets: &[WEB], agent: false, limit }
}

const SCENARIOS: [Scenario; 12] = [
    scenario(
        "the server is busy, its database and a switch are not",
        &[(None, WEB, BUSY), (Some("database"), DATABASE, IDLE), (None, SWITCH, ROOM)],
        Some(("processor", "2 cores", None)),
    ),
    scenario(
        "the server's disk is busy",
        &[(Some("database"), DATABASE, IDLE), (None, WEB, Disk)],
        Some(("disk", "sda", None)),
    ),
    scenario(
        "a database is busy",
        &[(None, WEB, IDLE), (Some("database"), DATABASE, BUSY)],
        Some(("processor", "2 cores", Some(DATABASE))),
    ),
    scenario(
        "a database's disk is busy, and the server is not watched",
        &[(Some("database"), DATABASE, Disk)],
        Some(("disk", "sda", Some(DATABASE))),
    ),
    scenario(
        "a port of a switch is full",
        &[(None, WEB, IDLE), (None, SWITCH, FULL)],
        Some(("network", "port7", Some(SWITCH))),
    ),
    scenario(
        "a port of a switch is full, and the server is not watched",
        &[(None, SWITCH, FULL)],
        Some(("network", "port7", Some(SWITCH))),
    ),
    scenario(
        "a virtual address: the only other host is busy",
        &[(None, DATABASE, BUSY), (None, SWITCH, ROOM)],
        Some(("processor", "2 cores", None)),
    ),
    Scenario {
        targets: &[WEB, DATABASE],
        ..scenario(
            "of two servers one is busy",
            &[(None, WEB, IDLE), (None, DATABASE, BUSY)],
            Some(("processor", "2 cores", Some(DATABASE))),
        )
    },
    scenario(
        "a virtual address: one of two hosts is busy",
        &[(None, DATABASE, BUSY), (None, GENERATOR, IDLE)],
        None,
    ),
    scenario("a host without a role is busy", &[(None, WEB, IDLE), (None, DATABASE, BUSY)], None),
    scenario("a client is busy", &[(None, WEB, IDLE), (Some("client"), GENERATOR, BUSY)], None),
    Scenario {
        agent: true,
        ..scenario("an agent's host is busy", &[(None, GENERATOR, BUSY), (None, WEB, IDLE)], None)
    },
];

/// One op at a time; the rate at which the server saturates.
const SERVICE: Duration = Duration::from_millis(4);

/// Either kind of server of figures.
enum Source {
    Page(ExporterPage),
    Agent(SnmpAgent, String),
}

impl Source {
    /// `waits_ns` is the time that all requests of the server spent there.
    fn start(
        namespaces: &Namespaces,
        host: usize,
        figures: Figures,
        waits_ns: &Arc<AtomicU64>,
    ) -> Self {
        let (begin, waits_ns) = (now(), Arc::clone(waits_ns));
        let at = (namespaces.address(host), 0);
        if let Port(share) = figures {
            let socket = namespaces.open_in_spoke(host, || UdpSocket::bind(at).unwrap());
            let table = move || Some(ports(begin.elapsed().as_secs_f64(), share));
            return Self::Agent(SnmpAgent::start(socket, table), at.0.to_string());
        }
        let listener = namespaces.open_in_spoke(host, || TcpListener::bind(at).unwrap());
        let page = move || {
            let waited_s = waits_ns.load(Ordering::Relaxed) as f64 / 1e9;
            metrics(begin.elapsed().as_secs_f64(), figures, waited_s)
        };
        Self::Page(ExporterPage::start(listener, page))
    }

    /// As the result names it.
    fn url(&self) -> String {
        match self {
            Self::Page(page) => page.url(),
            Self::Agent(agent, address) => format!("snmp://{address}:{}", agent.port()),
        }
    }

    fn monitor(&self, role: Option<&str>) -> String {
        let url = self.url().replace("snmp://", &format!("snmp://{COMMUNITY}@"));
        role.map_or_else(|| url.clone(), |role| format!("{role}={url}"))
    }
}

/// A switch after this time: port 3 sends a fifth of its gigabit, port 7 this share.
fn ports(time_s: f64, share: f64) -> Table {
    const INTERFACES: [u64; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
    let mut table = Table::new();
    let ticks = (time_s * 100.0) as u64;
    table.insert(vec![1, 3, 6, 1, 2, 1, 1, 3, 0], snmp_agent::number(TIME_TICKS, ticks));
    for (port, share) in [(3, 0.2), (7, share)] {
        let octets = snmp_agent::number(COUNTER_64, (125e6 * share * time_s) as u64);
        for (column, value) in [
            (1, snmp_agent::text(&format!("port{port}"))),
            (6, octets.clone()),
            (10, octets),
            (15, snmp_agent::number(GAUGE_32, 1_000)),
        ] {
            table.insert([&INTERFACES[..], &[column, port]].concat(), value);
        }
    }
    table
}

/// Counters of node_exporter after this time.
fn metrics(time_s: f64, figures: Figures, waited_s: f64) -> String {
    let busy = if let Processors(busy) = figures { busy } else { 0.1 };
    let mut page = String::new();
    for cpu in 0..2 {
        for (mode, share) in [("user", busy), ("idle", 1.0 - busy)] {
            let seconds = share * time_s;
            page += &format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}} {seconds}\n");
        }
    }
    if let Disk = figures {
        let busy_s = 0.99 * time_s;
        for (name, value) in [("io_time", busy_s), ("io_time_weighted", waited_s)] {
            page += &format!("node_disk_{name}_seconds_total{{device=\"sda\"}} {value}\n");
        }
    }
    page
}

/// A server that answers one request after the other, and adds the time that each was there.
fn serve(namespaces: &Namespaces, host: usize, waits_ns: &Arc<AtomicU64>) -> DelayServer {
    let (mut law, waits_ns) = (one_at_a_time(|_| SERVICE), Arc::clone(waits_ns));
    let completion = Box::new(move |index, arrival_ns| {
        let done_ns = law(index, arrival_ns);
        waits_ns.fetch_add(done_ns - arrival_ns, Ordering::Relaxed);
        done_ns
    });
    let config = DelayConfig { completion, body_bytes: 10, waiting: Waiting::Sleeping };
    let at = (namespaces.address(host), 0);
    let listener = namespaces.open_in_spoke(host, || TcpListener::bind(at).unwrap());
    DelayServer::start_on(listener, config)
}

/// A run of a scenario, and what it needs.
struct ScenarioRun {
    scenario: &'static Scenario,
    child: Child,
    folder: TempDir,
    _servers: Vec<DelayServer>,
    sources: Vec<Source>,
}

impl ScenarioRun {
    fn start(namespaces: &Namespaces, scenario: &'static Scenario) -> Self {
        let waits_ns = Arc::new(AtomicU64::new(0));
        let server = |host: &usize| serve(namespaces, *host, &waits_ns);
        let servers: Vec<DelayServer> = scenario.targets.iter().map(server).collect();
        let start = |(_, host, figures): &(_, usize, Figures)| {
            Source::start(namespaces, *host, *figures, &waits_ns)
        };
        let sources: Vec<Source> = scenario.sources.iter().map(start).collect();
        let folder = tempfile::tempdir().unwrap();
        let monitors: Vec<String> = sources
            .iter()
            .zip(scenario.sources)
            .map(|(it, (role, ..))| it.monitor(*role))
            .collect();
        let agent = format!("exec:ip netns exec {}", namespaces.spokes()[GENERATOR]);
        let mut more = vec!["--points", "1,8", "--set", "profiles.quick.measure=2s"];
        more.extend(monitors.iter().flat_map(|monitor| ["--monitor", monitor]));
        more.extend(scenario.agent.then_some(["--agents", &agent]).into_iter().flatten());
        let urls: Vec<String> = servers.iter().map(DelayServer::url).collect();
        more.extend(urls[1..].iter().map(String::as_str));
        let bundle = folder.path().join("run");
        let run = command(&short("web-url", &urls[0], &bundle, &more));
        // It must not see the server, which is a thread of this process.
        let mut apart = Command::new("unshare");
        apart.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
        apart.arg(run.get_program()).args(run.get_args());
        let mut apart = namespaces.in_hub(&apart);
        let child = apart.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { scenario, child: child.spawn().unwrap(), folder, _servers: servers, sources }
    }

    /// What is not as it should be; asserts that no innocent host is blamed.
    fn check(self) -> CheckOutcome {
        let ended = wait_for(self.child);
        let name = self.scenario.name;
        assert!(matches!(ended.code, Some(0 | 1)), "{name}: {ended:?}");
        let result = result(&self.folder.path().join("run"));
        let point = &result["points"][1];
        let limit = &point["limit"];
        let location = limit["place"].as_str().unwrap_or_default();
        let host = limit.pointer("/host/source").and_then(Value::as_str);
        let kind = limit["kind"].as_str().unwrap();
        eprintln!("{name}: {kind} {location} {host:?}");
        let url = |host: usize| {
            let named = self.scenario.sources.iter().position(|source| source.1 == host);
            self.sources[named.unwrap()].url()
        };
        let expected =
            self.scenario.limit.map(|(kind, location, host)| (kind, location, host.map(url)));
        let expected = expected.as_ref();
        if expected.is_some_and(|it| (it.0, it.1, it.2.as_deref()) == (kind, location, host)) {
            return CheckOutcome::Right;
        }
        // The generator's own trouble hides a limit, and blames no host.
        let nobody = matches!(kind, "unknown" | "generator" | "disturbed") && host.is_none();
        assert!(nobody, "{name}: {limit}");
        match (expected, kind) {
            (None, _) => CheckOutcome::Right,
            (_, "unknown") => CheckOutcome::from_point(point, [format!("{name}: {limit}")]),
            _ => CheckOutcome::Disturbed(format!("{name}: {limit}")),
        }
    }
}

#[test]
fn no_innocent_host_is_blamed_and_the_full_one_is_named() {
    let Some(namespaces) = Namespaces::start(4) else { return };
    let mut open: Vec<&'static Scenario> = SCENARIOS.iter().collect();
    one_is_right(3, || {
        let runs: Vec<ScenarioRun> =
            open.iter().map(|scenario| ScenarioRun::start(&namespaces, scenario)).collect();
        let (mut wrong, mut disturbed) = (Vec::new(), Vec::new());
        open.clear();
        for run in runs {
            let scenario = run.scenario;
            match run.check() {
                CheckOutcome::Right => continue,
                CheckOutcome::Wrong(how) => wrong.push(how),
                CheckOutcome::Disturbed(how) => disturbed.push(how),
            }
            open.push(scenario);
        }
        match (wrong.is_empty(), disturbed.is_empty()) {
            (true, true) => CheckOutcome::Right,
            (true, false) => CheckOutcome::Disturbed(disturbed.join("\n")),
            (false, _) => CheckOutcome::Wrong(wrong.join("\n")),
        }
    });
}
