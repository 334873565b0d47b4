//! Facts about a server from its runs: the cost of an op, its duration and the bottleneck at each
//! load point. The disks, adapters and memory for a load, each from the curve of its demand.

use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::{LimitFacts, LimitKind};
use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_model::size::{Ceiling, CeilingBasis, Ceilings, Need, SizeRequest, TermKind, Unknown};

use super::curve::{Fitted, Observation};
use crate::limit::generator_limited;

const NS_PER_S: f64 = 1e9;
/// From here on the server hardly sleeps between ops.
const AWAKE_MIN_RATIO: f64 = 0.9;
/// Processors of a saturated server that are less busy are not its limit.
const FULL_MIN_RATIO: f64 = 0.8;

/// A load point.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Achieved throughput.
    pub ops_per_s: f64,
    /// Application bytes per second, of suites that count them.
    pub bytes_per_s: Option<f64>,
    /// Iterations per second, where they have several ops.
    pub iterations_per_s: Option<f64>,
    /// The rate of a sustained open load, which by chance may have had fewer ops; else zero.
    pub requested_ops_per_s: f64,
    /// Cores that the server may use, or its quota; `None` where they were not monitored.
    pub cores: Option<f64>,
    /// Processor time of an op, in nanoseconds.
    pub cpu_ns: Option<Cost>,
    /// The disks; `None` where they were not monitored.
    pub disks: Option<Device>,
    /// The network interfaces.
    pub adapters: Option<Device>,
    /// Bytes of memory in use.
    pub memory: Option<Cost>,
    /// Response time.
    pub response: TimeSummary,
    /// Half-width of the interval of its mean, in nanoseconds.
    pub response_error_ns: f64,
    /// Low end of that interval: without the possible part of the generator's own delay.
    pub response_low_ns: f64,
    /// Throughput no longer followed the load, and nothing but processors was named as the cause.
    pub saturated: bool,
    /// Its clients waited for each reply.
    pub closed: bool,
    /// Half-width of the interval of its throughput, as a share.
    pub ops_error_ratio: f64,
    /// Its bottleneck where more hardware would not extend it.
    pub bottleneck: Option<LimitKind>,
    /// Number of the server's threads that waited for a core at a time, whoever had it.
    pub waiting_threads: f64,
    /// The part of the server's processor time that its busiest thread used.
    pub busiest_thread_ratio: Option<f64>,
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
    /// Its capacity in transfers per second, where it is known exactly.
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
        let bounded = interval.filter(|[_, high]| high.is_finite());
        let error = bounded.map(|[low, high]| (high - low) / 2.0).or(response.mean_error);
        let sustained = point.offered_ops_per_s.is_some() && point.counts();
        let used = |column: &str| sum(point, "process.server", column);
        let rates = point.achieved_interval_ops_per_s.filter(|[_, high]| high.is_finite());
        let mut measured = Self {
            ops_per_s,
            bytes_per_s: point.achieved_bytes_per_s,
            iterations_per_s: point
                .iterations
                .zip(point.seconds.filter(|seconds| *seconds > 0.0))
                .map(|(iterations, seconds)| iterations as f64 / seconds),
            requested_ops_per_s: if sustained { point.requested } else { 0.0 },
            busiest_thread_ratio: used(".cpu")
                .filter(|cores| *cores > 0.0)
                .and_then(|cores| Some(used(".busiest_thread")? / cores)),
            cores: whose.and_then(|whose| cores(point, whose)),
            cpu_ns,
            disks: disks(point),
            adapters: adapters(point, ops_per_s),
            memory: point.server_cost(CostFigure::Memory).map(|(_, cost)| cost),
            response,
            response_error_ns: error.unwrap_or_default(),
            response_low_ns: interval.map(|[low, _]| low).or(response.mean).unwrap_or_default(),
            saturated: saturated(point),
            closed: point.offered_ops_per_s.is_none(),
            ops_error_ratio: rates.map_or(0.0, |[low, high]| (high - low) / 2.0 / ops_per_s),
            bottleneck: bottleneck(point),
            waiting_threads: used(".run_delay").unwrap_or_default(),
            throttled_cores: sum(point, "cgroup.server", ".throttled").unwrap_or_default(),
        };
        // More clients bring nothing where the processors are full.
        let is_full = measured.busy_ratio().is_some_and(|busy| busy >= AWAKE_MIN_RATIO);
        measured.saturated |= is_full && point.limit.kind == LimitKind::Clients;
        Some(measured)
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

    /// The processor time that an op needs where the processors are full: of a saturated server
    /// the reciprocal of its throughput, else the observed one if the server hardly slept. With a
    /// quota it sleeps between ops even if it uses all of that.
    pub(super) fn full(&self) -> Option<Observation> {
        let cpu = self.cpu()?;
        if !self.saturated {
            let has_quota = cpu.cores < 1.0 || self.throttled_cores > 0.0;
            let awake = cpu.busy_ratio >= AWAKE_MIN_RATIO && !has_quota;
            return awake.then_some(Observation { busy_ratio: 1.0, ..cpu });
        }
        let value = cpu.cores * NS_PER_S / cpu.ops_per_s;
        let error = value * self.ops_error_ratio;
        let interval = Some([value - error, value + error]);
        (cpu.busy_ratio >= FULL_MIN_RATIO).then_some(Observation {
            busy_ratio: 1.0,
            value,
            interval,
            ..cpu
        })
    }

    /// For a demand without processors.
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

/// Sum of the means of all resources with this begin and end of the name.
fn sum(point: &PointResult, begin: &str, end: &str) -> Option<f64> {
    let named = |used: &&ResourceUse| used.name.starts_with(begin) && used.name.ends_with(end);
    let means: Vec<f64> = point.resources.iter().filter(named).map(|used| used.mean).collect();
    (!means.is_empty()).then(|| means.iter().sum())
}

/// The host of the server, which has its disks and interfaces.
pub(super) fn host(point: &PointResult) -> Option<&HostCost> {
    let of = |expected| point.cost.iter().find(|host| host.of == expected);
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
    let total = |direction: &str| -> f64 {
        let of_direction = |interface: &String| find(interface, direction).map(|used| used.mean);
        host.interfaces.iter().filter_map(of_direction).sum()
    };
    let direction = if total("sent") >= total("received") { "sent" } else { "received" };
    let bytes = Some(total(direction) / ops_per_s).filter(|bytes| *bytes > 0.0);
    // All links of a server are taken to be as fast as its slowest.
    let speed = |interface: &String| {
        let share = find(interface, &format!("{direction}_share"))?.mean;
        let carried = find(interface, direction)?.mean;
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

/// Other resources than processors, clients and the generator say nothing of an op's processor time.
fn saturated(point: &PointResult) -> bool {
    use LimitKind::{Core, Processor, Quota, Unknown};
    let unevaluated = matches!(point.limit.facts, LimitFacts::Unsaid | LimitFacts::NoneFull);
    matches!(point.limit.kind, Core | Processor | Quota | Unknown)
        && !point.limit.only_load
        && !unevaluated
}

/// A lock, a pool, or an unknown limit although the server's host was monitored.
fn bottleneck(point: &PointResult) -> Option<LimitKind> {
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

/// A disk that was less busy does not show its capacity.
const DISK_BUSY_MIN_RATIO: f64 = 0.05;

/// Demands at the points of one size of the server.
pub(super) struct Needs<'a> {
    pub(super) points: &'a [&'a Measured],
    pub(super) request: &'a SizeRequest,
    pub(super) highest_ops_per_s: f64,
}

/// Which demand of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    DiskTransfers,
    DiskBytes,
    AdapterBytes,
}

impl Demand {
    fn device(self, point: &Measured) -> Option<Device> {
        match self {
            Self::AdapterBytes => point.adapters,
            Self::DiskTransfers | Self::DiskBytes => point.disks,
        }
    }

    fn observed(self, point: &Measured) -> Option<Observation> {
        let device = self.device(point)?;
        point.other(match self {
            Self::DiskTransfers => device.transfers,
            Self::DiskBytes | Self::AdapterBytes => device.bytes,
        })
    }

    const fn declared_ceiling(self, ceilings: &Ceilings) -> Option<f64> {
        match self {
            Self::DiskTransfers => ceilings.disk_transfers_per_s,
            Self::DiskBytes => ceilings.disk_bytes_per_s,
            Self::AdapterBytes => ceilings.adapter_bytes_per_s,
        }
    }

    const fn device_ceiling(self, device: &Device) -> Option<Ceiling> {
        match self {
            Self::DiskTransfers => device.transfers_each,
            Self::DiskBytes | Self::AdapterBytes => device.bytes_each,
        }
    }
}

impl Needs<'_> {
    /// The number of devices, and the unknowns of it.
    pub(super) fn devices(&self, demand: Demand) -> (Option<Need>, Option<Unknown>) {
        let observed = self.points.iter().filter_map(|point| demand.observed(point));
        let observed: Vec<Observation> = observed.collect();
        let may = [TermKind::Background, TermKind::Contention];
        let Some(fitted) = Fitted::from_observations(&observed, &may, &[]) else {
            return (None, None);
        };
        let load = self.request.load_ops_per_s;
        let Some(per_op) = fitted.estimate(|curve| Some(curve.demand(load, 1.0, 0.0))) else {
            return (None, None);
        };
        let total = per_op.times(load);
        let each = self.each(demand);
        let need = Need {
            count: each.map(|each| total.times(1.0 / (each.value * self.request.headroom_ratio))),
            total,
            per_op: Some(per_op),
            each,
            law: fitted.curve.terms,
            load_ratio: load / self.highest_ops_per_s,
        };
        (Some(need), if each.is_none() { self.missing(demand) } else { None })
    }

    /// The capacity of one device: from the user, from the kernel, or from how busy it was.
    fn each(&self, demand: Demand) -> Option<Ceiling> {
        let declared = demand.declared_ceiling(&self.request.stated);
        let declared = declared.map(|value| Ceiling { value, basis: CeilingBasis::Stated });
        let by_device = || {
            let all = self.points.iter().filter_map(|point| demand.device(point));
            all.filter_map(|device| demand.device_ceiling(&device)).next_back()
        };
        declared.or_else(by_device).or_else(|| self.by_utilisation(demand))
    }

    fn by_utilisation(&self, demand: Demand) -> Option<Ceiling> {
        let busy = |point: &Measured| demand.device(point)?.busy_ratio;
        let by_use = |a: &&&Measured, b: &&&Measured| {
            busy(a).unwrap_or_default().total_cmp(&busy(b).unwrap_or_default())
        };
        let busiest = self.points.iter().max_by(by_use)?;
        let busy_ratio = busy(busiest).filter(|busy| *busy >= DISK_BUSY_MIN_RATIO)?;
        let count = demand.device(busiest)?.count;
        let done = demand.observed(busiest)?.value * busiest.ops_per_s / count;
        Some(Ceiling { value: done / busy_ratio, basis: CeilingBasis::Utilisation })
    }

    fn missing(&self, demand: Demand) -> Option<Unknown> {
        let last = self.points.last().and_then(|point| demand.device(point))?;
        Some(match demand {
            Demand::AdapterBytes if last.loopback => Unknown::SharedHost,
            Demand::AdapterBytes => Unknown::AdapterSpeed,
            Demand::DiskTransfers | Demand::DiskBytes => {
                Unknown::DiskIdle { busy_ratio: last.busy_ratio.unwrap_or_default() }
            }
        })
    }

    /// Memory grows in a straight line, if it does.
    pub(super) fn memory(&self) -> Option<Need> {
        let observed = self.points.iter().filter_map(|point| point.other(point.memory));
        let observed: Vec<Observation> = observed.collect();
        let fitted = Fitted::from_observations(&observed, &[TermKind::Contention], &[])?;
        let load = self.request.load_ops_per_s;
        let total = fitted.estimate(|curve| Some(curve.demand(load, 1.0, 0.0)))?;
        let law = fitted.curve.terms;
        let load_ratio = load / self.highest_ops_per_s;
        Some(Need { count: None, total, per_op: None, each: None, law, load_ratio })
    }
}
