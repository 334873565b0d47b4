//! What runs tell of a server: of each load point what an op cost, how long it took, what held it
//! back.

use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::{LimitFacts, LimitKind};
use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_model::size::{Ceiling, CeilingBasis};

use super::curve::Observation;
use crate::limit::generator_limited;

const NS_PER_S: f64 = 1e9;

/// A load point.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// What was done.
    pub ops_per_s: f64,
    /// Cores that the server may use, or its quota; `None` where nobody watched them.
    pub cores: Option<f64>,
    /// Processor time of an op, in nanoseconds.
    pub cpu_ns: Option<Cost>,
    /// The disks; `None` where nobody watched them.
    pub disks: Option<Device>,
    /// The network interfaces.
    pub adapters: Option<Device>,
    /// Bytes of memory in use.
    pub memory: Option<Cost>,
    /// Response time.
    pub response: TimeSummary,
    /// Half-width of the interval of its mean, in nanoseconds.
    pub response_error_ns: f64,
    /// Low end of that interval: without what may be the generator's own delay.
    pub response_low_ns: f64,
    /// What held it back where more hardware would not extend it.
    pub held_back: Option<LimitKind>,
    /// Of the server's threads, how many waited for a core at a time, whoever had it.
    pub waiting_threads: f64,
    /// Cores that a quota kept from the server's threads.
    pub throttled_cores: f64,
}

/// Disks or adapters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device {
    /// How many.
    pub count: f64,
    /// Transfers of an op; of adapters absent.
    pub transfers: Option<Cost>,
    /// Bytes of an op, of adapters in the busier direction.
    pub bytes: Option<Cost>,
    /// Share of the time with a request.
    pub busy_ratio: Option<f64>,
    /// What one can do in transfers per second, where it is known exactly.
    pub transfers_each: Option<Ceiling>,
    /// The same in bytes per second.
    pub bytes_each: Option<Ceiling>,
    /// It is the loopback interface.
    pub loopback: bool,
}

impl Measured {
    /// The valid load points of a run at which the generator had headroom.
    pub fn of_run(run: &RunResult) -> Vec<Self> {
        let points = run.points.iter().chain(&run.probes);
        let usable = points.filter(|point| point.valid && !generator_limited(point));
        usable.filter_map(Self::of_point).collect()
    }

    fn of_point(point: &PointResult) -> Option<Self> {
        let ops_per_s = point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?;
        let of = CostFigure::CpuPerOp;
        let (whose, cpu_ns) = point.server_cost(of).map_or((None, None), |(whose, cost)| {
            (Some(whose), Some(cost).filter(|cost| cost.value > 0.0))
        });
        let response = point.response_ns?;
        let interval = point.response_interval_ns.and_then(|intervals| intervals.mean);
        let error = interval.map(|[low, high]| (high - low) / 2.0).or(response.mean_error);
        Some(Self {
            ops_per_s,
            cores: whose.and_then(|whose| cores(point, whose)),
            cpu_ns,
            disks: disks(point),
            adapters: adapters(point, ops_per_s),
            memory: point.server_cost(CostFigure::Memory).map(|(_, cost)| cost),
            response,
            response_error_ns: error.unwrap_or_default(),
            response_low_ns: interval.map(|[low, _]| low).or(response.mean).unwrap_or_default(),
            held_back: held_back(point),
            waiting_threads: sum(point, "process.server", ".run_delay").unwrap_or_default(),
            throttled_cores: sum(point, "cgroup.server", ".throttled").unwrap_or_default(),
        })
    }

    /// How busy the server's processors were.
    pub fn busy_ratio(&self) -> Option<f64> {
        Some(self.cpu_ns?.value * self.ops_per_s / NS_PER_S / self.cores?)
    }

    pub(super) fn cpu(&self) -> Option<Observation> {
        let Cost { value, interval } = self.cpu_ns?;
        let (cores, busy_ratio) = (self.cores?, self.busy_ratio()?);
        Some(Observation { ops_per_s: self.ops_per_s, cores, busy_ratio, value, interval })
    }

    /// Of a demand in which the processors play no part.
    pub(super) fn other(&self, cost: Option<Cost>) -> Option<Observation> {
        let Cost { value, interval } = cost.filter(|cost| cost.value > 0.0)?;
        let ops_per_s = self.ops_per_s;
        Some(Observation { ops_per_s, cores: 1.0, busy_ratio: 0.0, value, interval })
    }
}

/// Cores of all the server's hosts, or its quota where that is less.
fn cores(point: &PointResult, whose: CostOf) -> Option<f64> {
    let hosts = point.cost.iter().filter(|host| host.of == whose);
    let counted = hosts.filter(|host| host.figures.contains_key(&CostFigure::CpuPerOp));
    let cores: f64 = counted.map(|host| host.cores).sum::<Option<f64>>()?;
    let quota = sum(point, "cgroup.server", ".quota").filter(|quota| *quota > 0.0);
    Some(quota.map_or(cores, |quota| quota.min(cores))).filter(|cores| *cores > 0.0)
}

/// Means of all resources whose names begin and end so.
fn sum(point: &PointResult, begin: &str, end: &str) -> Option<f64> {
    let named = |used: &&ResourceUse| used.name.starts_with(begin) && used.name.ends_with(end);
    let found: Vec<f64> = point.resources.iter().filter(named).map(|used| used.mean).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// The host of the server, which has its disks and interfaces.
fn host(point: &PointResult) -> Option<&HostCost> {
    let of = |wanted| point.cost.iter().find(|host| host.of == wanted);
    of(CostOf::ServerHost).or_else(|| of(CostOf::SharedHost))
}

fn disks(point: &PointResult) -> Option<Device> {
    let host = host(point)?;
    let figure = |figure: CostFigure| host.figures.get(&figure).copied();
    let limit = |columns: [&str; 2]| {
        let limits = columns.map(|column| sum(point, "storage.server", column));
        let least = limits.into_iter().flatten().reduce(f64::min).filter(|limit| *limit > 0.0);
        least.map(|value| Ceiling { value, basis: CeilingBasis::Limit })
    };
    let transfers = figure(CostFigure::DiskTransfersPerOp);
    (!host.disks.is_empty()).then(|| Device {
        count: host.disks.len() as f64,
        transfers,
        bytes: figure(CostFigure::DiskBytesPerOp),
        busy_ratio: figure(CostFigure::DiskBusy).map(|busy| busy.value),
        transfers_each: limit([".reads_max", ".writes_max"]),
        bytes_each: limit([".read_max", ".written_max"]),
        loopback: false,
    })
}

/// Links are used in both directions at once: the busier one counts.
fn adapters(point: &PointResult, ops_per_s: f64) -> Option<Device> {
    let host = host(point).filter(|host| !host.interfaces.is_empty())?;
    let find = |interface: &str, column: &str| {
        let name = format!("network.{interface}.{column}");
        let of_host = |used: &&ResourceUse| used.source == host.source && used.name == name;
        point.resources.iter().find(of_host)
    };
    let total = |way: &str| -> f64 {
        let of_way = |interface: &String| find(interface, way).map(|used| used.mean);
        host.interfaces.iter().filter_map(of_way).sum()
    };
    let way = if total("sent") >= total("received") { "sent" } else { "received" };
    let bytes = Some(total(way) / ops_per_s).filter(|bytes| *bytes > 0.0);
    // All links of a server are taken to be as fast as its slowest.
    let speed = |interface: &String| {
        let share = find(interface, &format!("{way}_share"))?.mean;
        let carried = find(interface, way)?.mean;
        (share > 0.0 && carried > 0.0).then(|| carried / share)
    };
    let speed = host.interfaces.iter().filter_map(speed).reduce(f64::min);
    Some(Device {
        count: host.interfaces.len() as f64,
        bytes: bytes.map(|value| Cost { value, interval: None }),
        bytes_each: speed.map(|value| Ceiling { value, basis: CeilingBasis::LinkSpeed }),
        loopback: host.interfaces.iter().any(|name| name == "lo" || name.ends_with(":lo")),
        ..Device::default()
    })
}

/// A lock, a pool, or what nobody knows though the server's host was watched.
fn held_back(point: &PointResult) -> Option<LimitKind> {
    match (&point.limit.kind, &point.limit.facts) {
        (
            kind @ (LimitKind::Lock
            | LimitKind::Pool
            | LimitKind::Batch
            | LimitKind::KvCache
            | LimitKind::Gpu),
            _,
        ) => Some(*kind),
        // Processors that were nearly full are the likelier limit.
        (
            LimitKind::Unknown,
            LimitFacts::NothingFull { nearest: None } | LimitFacts::Swings { .. },
        ) => Some(LimitKind::Unknown),
        _ => None,
    }
}
