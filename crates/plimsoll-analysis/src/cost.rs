//! What an op cost the hosts that were watched. Pure.
//!
//! A figure is what the monitors saw in the window, over the ops that were done in it without error.
//! Its interval comes from blocks of the window ([`crate::blocks`]): of each sample what it saw, and
//! the ops of its time.
//!
//! A host that server and generator share has no processor figures of its own here: they would be
//! the generator's too. What the server's processes used stands in their place.

mod counted;
mod hosts;

use std::collections::BTreeMap;

use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{Phase, PointRecord, ResourceUse};

use crate::blocks::chance_of_ratio;
use counted::{disks, interfaces};
use hosts::{Place, SERVER, place_of};

const NS_PER_S: f64 = 1e9;

/// Of each host that was watched, this one first.
pub(crate) fn costs(record: &PointRecord, disclosure: Option<&Disclosure>) -> Vec<HostCost> {
    let Some(window) = Window::of(record) else { return Vec::new() };
    let mut sources: Vec<Option<&str>> = Vec::new();
    for source in record.resources.iter().map(|resource| resource.source.as_deref()) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources.sort_unstable();
    let place = |source| Some((source, place_of(source, &sources, record, disclosure)?));
    let placed = sources.iter().copied().filter_map(place);
    let seen = |source| Seen::of(record, source, &window);
    placed.flat_map(|(source, place)| seen(source).costs(place)).collect()
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
    fn of(record: &PointRecord) -> Option<Self> {
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

/// A resource, and what one of it is in the unit of the figure.
type Use<'a> = (&'a ResourceUse, f64);

/// What was seen of one host.
struct Seen<'a> {
    source: Option<&'a str>,
    resources: Vec<&'a ResourceUse>,
    window: &'a Window,
}

impl<'a> Seen<'a> {
    fn of(record: &'a PointRecord, source: Option<&'a str>, window: &'a Window) -> Self {
        let of_source = |used: &&ResourceUse| used.source.as_deref() == source;
        let resources = record.resources.iter().filter(of_source).collect();
        Self { source, resources, window }
    }

    fn costs(&self, place: Place) -> Vec<HostCost> {
        let (host, whole) = match place {
            Place::Server => (CostOf::ServerHost, true),
            Place::Shared => (CostOf::SharedHost, false),
            Place::Generator => (CostOf::GeneratorHost, true),
            Place::Other => (CostOf::OtherHost, true),
        };
        let has_server = matches!(place, Place::Server | Place::Shared);
        let processes = has_server.then(|| self.of_processes());
        let found = [processes, Some(self.of_host(host, whole))];
        found.into_iter().flatten().filter(|cost| !cost.figures.is_empty()).collect()
    }

    fn get(&self, name: &str) -> Option<&'a ResourceUse> {
        self.resources.iter().copied().find(|used| used.name == name)
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.get(name).map(|used| used.mean)
    }

    /// The things of a table of which this column was seen: `vda` of `disk.vda.busy`.
    fn keys(&self, table: &str, column: &str) -> Vec<&'a str> {
        let key = |used: &&'a ResourceUse| {
            let rest = used.name.strip_prefix(table)?.strip_prefix('.')?;
            rest.strip_suffix(column)?.strip_suffix('.')
        };
        self.resources.iter().filter_map(key).collect()
    }

    /// With all programs that ran on it, where `whole` says that these are wanted.
    fn of_host(&self, of: CostOf, whole: bool) -> HostCost {
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
        let (interfaces, ways) = interfaces(self, of == CostOf::SharedHost);
        let of_networks = |columns: &[&str]| self.columns("network", &interfaces, columns);
        figures.add(CostFigure::NicPacketsPerOp, self.per_op(&of_networks(ways.packets())));
        figures.add(CostFigure::NicBytesPerOp, self.per_op(&of_networks(ways.bytes())));
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
        // Of several servers nobody knows whether they have the same cores.
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

    /// The sum of these rates, over the rate of ops. `None` where nothing was seen.
    fn per_op(&self, uses: &[Use<'_>]) -> Option<Cost> {
        if uses.is_empty() {
            return None;
        }
        let rate: f64 = uses.iter().map(|(used, factor)| used.mean * factor).sum();
        let value = rate * self.window.seconds / self.window.ops;
        let chance = chance_of_ratio(&self.parts(uses)?);
        let interval = chance.map(|it| [(value - it.below).max(0.0), value + it.above]);
        Some(Cost { value, interval })
    }

    /// What each sample saw, and the ops of its time: empty where samples were not kept.
    fn parts(&self, uses: &[Use<'_>]) -> Option<Vec<(f64, f64)>> {
        let (first, _) = uses.first()?;
        let middles: Vec<f64> = first.over_time.iter().map(|(at, _)| *at).collect();
        if middles.len() < 2 || uses.iter().any(|(used, _)| used.over_time.len() != middles.len()) {
            return Some(Vec::new());
        }
        let between = |at: usize| f64::midpoint(middles[at], middles[at + 1]);
        let part = |at: usize| {
            let last = middles.len() - 1;
            // Samples follow each other: the outer ends lie as far from the middle as the inner.
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

    /// One that is not told with an interval.
    fn add_plain(&mut self, figure: CostFigure, value: Option<f64>) {
        self.add(figure, value.map(|value| Cost { value, interval: None }));
    }
}

#[cfg(test)]
mod tests;
