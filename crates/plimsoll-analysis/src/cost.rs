//! Costs of an op on the monitored hosts. Pure.
//!
//! A figure is what the monitors counted in the window, over the ops that completed in it without
//! error. Its interval comes from blocks of the window ([`crate::blocks`]): the count of each
//! sample, and the ops of its time.
//!
//! A host that server and generator share has no processor figures of its own here, since they
//! would include the generator's. The use of the server's processes replaces them.

use std::collections::BTreeMap;

use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{Phase, PointRecord, ResourceUse};
use plimsoll_model::monitored::{MonitoredHost, SourceRole};

use crate::host_roles::{HostEvidence, SERVER};
use crate::standard_error::StandardError;

const NS_PER_S: f64 = 1e9;

/// Costs on each monitored host, this one first.
pub(crate) fn costs(record: &PointRecord, disclosure: Option<&Disclosure>) -> Vec<HostCost> {
    let Some(window) = Window::from_record(record) else { return Vec::new() };
    let evidence = HostEvidence::from_record(record, disclosure);
    let costs = |host: &MonitoredHost| {
        let source = host.source.as_deref();
        let of = match host.role {
            SourceRole::Server if source.is_none() && evidence.generates_here() => {
                CostOf::SharedHost
            }
            SourceRole::Server => CostOf::ServerHost,
            SourceRole::Client => CostOf::GeneratorHost,
            _ => CostOf::OtherHost,
        };
        HostResources::from_record(record, source, &window).costs(of)
    };
    evidence.hosts().iter().flat_map(costs).collect()
}

/// Ops of the window, over time.
struct Window {
    seconds: f64,
    ops: f64,
    /// Begin, end and ops of each part, in seconds from the begin of the window.
    parts: Vec<(f64, f64, f64)>,
}

impl Window {
    /// `None` where nothing was done.
    fn from_record(record: &PointRecord) -> Option<Self> {
        let (seconds, done) = (record.measured_ns.as_secs_f64(), record.totals.done_in_window);
        if seconds <= 0.0 || done == 0 {
            return None;
        }
        let measured = record.seconds.iter().filter(|second| second.phase == Phase::Measure);
        let parts = measured.scan(0.0, |begin, second| {
            let end = *begin + second.length_ns as f64 / NS_PER_S;
            let ops = second.done.saturating_sub(second.errors) as f64;
            Some((std::mem::replace(begin, end), end, ops))
        });
        Some(Self { seconds, ops: done as f64, parts: parts.collect() })
    }

    fn ops_between(&self, from: f64, to: f64) -> f64 {
        let ops = |&(begin, end, ops): &(f64, f64, f64)| {
            let within = to.min(end) - from.max(begin);
            if within > 0.0 { ops * within / (end - begin) } else { 0.0 }
        };
        self.parts.iter().map(ops).sum()
    }
}

/// A resource, and its factor to the unit of the figure.
type Use<'a> = (&'a ResourceUse, f64);

/// The resources of one host.
struct HostResources<'a> {
    source: Option<&'a str>,
    resources: Vec<&'a ResourceUse>,
    window: &'a Window,
}

impl<'a> HostResources<'a> {
    fn from_record(record: &'a PointRecord, source: Option<&'a str>, window: &'a Window) -> Self {
        let of_source = |used: &&ResourceUse| used.source.as_deref() == source;
        let resources = record.resources.iter().filter(of_source).collect();
        Self { source, resources, window }
    }

    fn costs(&self, of: CostOf) -> Vec<HostCost> {
        let has_server = matches!(of, CostOf::ServerHost | CostOf::SharedHost);
        let processes = has_server.then(|| self.of_processes());
        let costs = [processes, Some(self.of_host(of))];
        costs.into_iter().flatten().filter(|cost| !cost.figures.is_empty()).collect()
    }

    fn get(&self, name: &str) -> Option<&'a ResourceUse> {
        self.resources.iter().copied().find(|used| used.name == name)
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.get(name).map(|used| used.mean)
    }

    /// The keys of a table that have this column: `vda` of `disk.vda.busy`.
    fn keys(&self, table: &str, column: &str) -> Vec<&'a str> {
        self.resources.iter().filter_map(|used| used.key(table, column)).collect()
    }

    /// With all programs that ran on it, unless it is shared.
    fn of_host(&self, of: CostOf) -> HostCost {
        let whole = of != CostOf::SharedHost;
        let mut figures = Figures::default();
        let cores = self.keys("cpu", "busy").len() as f64;
        let cores = Some(cores).filter(|cores| whole && *cores > 0.0);
        if whole {
            let ns = |cores: f64| Some((self.get("host.cpu_busy")?, cores * NS_PER_S));
            figures.add(CostFigure::CpuPerOp, self.per_op(&Vec::from_iter(cores.and_then(ns))));
            let switches = self.get("host.context_switches").map(|used| (used, 1.0));
            figures.add(CostFigure::ContextSwitchesPerOp, self.per_op(&Vec::from_iter(switches)));
            figures.add_plain(CostFigure::CpuBusy, self.mean("host.cpu_busy"));
            figures.add_plain(CostFigure::SystemShare, self.system_share());
            figures.add_plain(CostFigure::Memory, self.mean("host.memory_used"));
            figures.add_plain(CostFigure::PageCache, self.mean("host.memory_cached"));
        }
        let disks = disks(self);
        let of_disks = |columns: &[&str]| self.columns("disk", &disks, columns);
        let transfers = self.per_op(&of_disks(&["reads", "writes"]));
        figures.add(CostFigure::DiskTransfersPerOp, transfers);
        figures.add(CostFigure::DiskBytesPerOp, self.per_op(&of_disks(&["read", "written"])));
        figures.add_plain(CostFigure::DiskBusy, mean_of(&of_disks(&["busy"])));
        let (interfaces, directions) = interfaces(self, of == CostOf::SharedHost);
        let of_networks = |columns: &[&str]| self.columns("network", &interfaces, columns);
        figures.add(CostFigure::NicPacketsPerOp, self.per_op(&of_networks(directions.packets())));
        figures.add(CostFigure::NicBytesPerOp, self.per_op(&of_networks(directions.bytes())));
        let named = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect();
        HostCost {
            source: self.source.map(str::to_owned),
            of,
            cores,
            disks: named(disks),
            interfaces: named(interfaces),
            figures: figures.0,
        }
    }

    /// The server's processes and their descendants.
    fn of_processes(&self) -> HostCost {
        let mut figures = Figures::default();
        let keys = self.keys("process", "cpu").into_iter();
        let servers: Vec<&str> = keys.filter(|key| key.starts_with(SERVER)).collect();
        let of_servers = |column: &str| self.columns("process", &servers, &[column]);
        let in_ns = of_servers("cpu").into_iter().map(|(used, _)| (used, NS_PER_S));
        figures.add(CostFigure::CpuPerOp, self.per_op(&in_ns.collect::<Vec<_>>()));
        let switches = self.per_op(&of_servers("context_switches"));
        figures.add(CostFigure::ContextSwitchesPerOp, switches);
        let sum = |column: &str| {
            let uses = of_servers(column);
            (!uses.is_empty()).then(|| uses.iter().map(|(used, _)| used.mean).sum::<f64>())
        };
        let cpu = sum("cpu").filter(|cpu| *cpu > 0.0);
        // Several servers may share the same cores.
        let cores = sum("cores_allowed").filter(|cores| servers.len() == 1 && *cores > 0.0);
        figures.add_plain(CostFigure::CpuBusy, cpu.zip(cores).map(|(cpu, cores)| cpu / cores));
        let system = cpu.zip(sum("cpu_system")).map(|(cpu, system)| (system / cpu).min(1.0));
        figures.add_plain(CostFigure::SystemShare, system);
        figures.add_plain(CostFigure::Memory, sum("rss"));
        HostCost {
            source: self.source.map(str::to_owned),
            of: CostOf::ServerProcesses,
            cores,
            disks: Vec::new(),
            interfaces: Vec::new(),
            figures: figures.0,
        }
    }

    fn columns(&self, table: &str, keys: &[&str], columns: &[&str]) -> Vec<Use<'a>> {
        let names = keys
            .iter()
            .flat_map(|key| columns.iter().map(move |column| format!("{table}.{key}.{column}")));
        names.filter_map(|name| Some((self.get(&name)?, 1.0))).collect()
    }

    /// Time in the kernel, interrupts included, of the processors' busy time.
    fn system_share(&self) -> Option<f64> {
        let busy = self.mean("host.cpu_busy").filter(|busy| *busy > 0.0)?;
        let system = self.mean("host.cpu_system")?;
        let interrupts = ["host.cpu_irq", "host.cpu_softirq"].iter().filter_map(|it| self.mean(it));
        Some(((system + interrupts.sum::<f64>()) / busy).min(1.0))
    }

    /// The sum of these rates, over the rate of ops. `None` without a sample.
    fn per_op(&self, uses: &[Use<'_>]) -> Option<Cost> {
        if uses.is_empty() {
            return None;
        }
        let rate: f64 = uses.iter().map(|(used, factor)| used.mean * factor).sum();
        let value = rate * self.window.seconds / self.window.ops;
        let standard = StandardError::of_ratio(&self.parts(uses)?, f64::INFINITY);
        let interval = standard.map(|it| [value - it.half_width(), value + it.half_width()]);
        let interval = interval.map(|[low, high]| [low.max(0.0), high]);
        Some(Cost { value, interval })
    }

    /// Count of each sample, and the ops of its time; empty where samples were not kept.
    fn parts(&self, uses: &[Use<'_>]) -> Option<Vec<(f64, f64)>> {
        let (first, _) = uses.first()?;
        let middles: Vec<f64> = first.over_time.iter().map(|(at, _)| *at).collect();
        if middles.len() < 2 || uses.iter().any(|(used, _)| used.over_time.len() != middles.len()) {
            return Some(Vec::new());
        }
        let between = |at: usize| f64::midpoint(middles[at], middles[at + 1]);
        let part = |at: usize| {
            let last = middles.len() - 1;
            // Samples follow each other: the outer ends are as far from the middle as the inner.
            let begin = if at == 0 { 2.0 * middles[0] - between(0) } else { between(at - 1) };
            let end = if at == last { 2.0 * middles[last] - begin } else { between(at) };
            let (begin, end) = (begin.max(0.0), end.min(self.window.seconds));
            let rate: f64 = uses.iter().map(|(used, factor)| used.over_time[at].1 * factor).sum();
            (rate * (end - begin), self.window.ops_between(begin, end))
        };
        Some((0..middles.len()).map(part).collect())
    }
}

fn mean_of(uses: &[Use<'_>]) -> Option<f64> {
    let sum: f64 = uses.iter().map(|(used, _)| used.mean).sum();
    (!uses.is_empty()).then(|| sum / uses.len() as f64)
}

#[derive(Default)]
struct Figures(BTreeMap<CostFigure, Cost>);

impl Figures {
    fn add(&mut self, figure: CostFigure, cost: Option<Cost>) {
        let cost = cost.filter(|cost| cost.value.is_finite());
        self.0.extend(cost.map(|cost| (figure, cost)));
    }

    /// Adds a figure that is reported without an interval.
    fn add_plain(&mut self, figure: CostFigure, value: Option<f64>) {
        self.add(figure, value.map(|value| Cost { value, interval: None }));
    }
}

/// Disks whose transfers lie on other disks, or in memory.
const STACKED_DISKS: [&str; 6] = ["dm-", "md", "loop", "zram", "ram", "bcache"];
/// Interfaces whose packets pass another one too, or never leave the host.
const STACKED_INTERFACES: [&str; 16] = [
    "lo", "veth", "br", "docker", "virbr", "bond", "team", "tun", "tap", "vnet", "dummy", "cali",
    "flannel", "cni", "wg", "kube",
];
const BOTH_DIRECTIONS: [&str; 2] = ["received", "sent"];

/// The underlying disks. If the disks on top of others moved more than these did, they cannot lie
/// on them: a loop device on files in memory.
fn disks<'a>(host: &HostResources<'a>) -> Vec<&'a str> {
    let is_stacked = |disk: &&str| STACKED_DISKS.iter().any(|start| disk.starts_with(start));
    let all = host.keys("disk", "busy");
    let (stacked, below): (Vec<&str>, Vec<&str>) = all.into_iter().partition(is_stacked);
    let bytes = |disk: &str| -> f64 {
        host.columns("disk", &[disk], &["read", "written"]).iter().map(|(used, _)| used.mean).sum()
    };
    let of_stacked = stacked.iter().map(|disk| bytes(disk)).fold(0.0, f64::max);
    let of_below: f64 = below.iter().map(|disk| bytes(disk)).sum();
    match of_stacked > of_below {
        true => {
            stacked.into_iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b))).into_iter().collect()
        }
        false => below,
    }
}

/// The interfaces, and the directions that are counted. In a network namespace of its own the
/// server has its own; to a generator on the same host all traffic passes the loopback interface,
/// which counts each packet as sent and as received.
fn interfaces<'a>(host: &HostResources<'a>, shared: bool) -> (Vec<&'a str>, Directions) {
    let all = host.keys("network", "sent");
    let is_inside = |key: &&&str| key.contains(':') && !key.ends_with(":lo");
    let inside: Vec<&str> = all.iter().filter(is_inside).copied().collect();
    if !inside.is_empty() {
        return (inside, Directions::Both);
    }
    if shared {
        return (all.into_iter().filter(|key| *key == "lo").collect(), Directions::Sent);
    }
    let is_stacked = |key: &str| {
        key.contains('.') || STACKED_INTERFACES.iter().any(|start| key.starts_with(start))
    };
    let outside = |key: &&str| !key.contains(':') && *key != "lo";
    let outside: Vec<&str> = all.into_iter().filter(outside).collect();
    let below: Vec<&str> = outside.iter().copied().filter(|key| !is_stacked(key)).collect();
    (if below.is_empty() { outside } else { below }, Directions::Both)
}

/// Which directions of an interface are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directions {
    /// What is sent is also received.
    Sent,
    /// In and out.
    Both,
}

impl Directions {
    /// Columns of bytes.
    fn bytes(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &BOTH_DIRECTIONS[1..],
            Self::Both => &BOTH_DIRECTIONS,
        }
    }

    /// Columns of packets.
    fn packets(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &["sent_packets"],
            Self::Both => &["received_packets", "sent_packets"],
        }
    }
}

#[cfg(test)]
mod tests;
