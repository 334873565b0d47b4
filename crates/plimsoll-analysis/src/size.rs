//! The size of a server for a load, from runs at lower ones: the demand of an op on each resource
//! as a curve over load (`curve`), the response time over the use of the processors (`response`),
//! what may limit it before its hardware does (`doubts`), and the resources' numbers (`needs`).
//!
//! Laws: U = X D (utilisation), N = X (Z + R) (interactive), R of a queue.

mod curve;
mod load;
mod measured;
mod page_cache;
mod response;
#[cfg(test)]
mod tests;

use plimsoll_model::capacity::{Figure, LoadFigure};
use plimsoll_model::event::Bound;
use plimsoll_model::prices::{Money, SystemPrices};
use plimsoll_model::size::{
    Ceiling, CeilingBasis, Estimate, LOAD_MAX_RATIO, MeasuredServer, Need, PeakBound,
    PredictedPeak, Refusal, ResponseAt, SIZING_FORMAT, SizeRequest, SizedMoney, Sizing, TermKind,
    Unknown,
};

use crate::compare::RunInput;
use curve::{Fitted, Observation, loads};
pub use load::{LoadError, RequestedLoad};
use measured::{Demand, Needs};
pub use measured::{Device, Measured};
use response::{Response, doubts, is_doubt};

/// Below this use of its processors their limit is not predicted.
const BUSY_MIN_RATIO: f64 = 0.2;
/// The least cost of an op at the peak, relative to its cost at two fifths of it: 0.46 to 0.56 of
/// nginx and NFS-Ganesha (docs/sizing.md).
const AWAKE_COST_RATIO: f64 = 0.45;
/// Peaks of the same server differ by this from run to run, and by this from its share of the peak
/// at half the quota, at 95 %: standard deviations of 5.3 % and 7.7 % (docs/sizing.md).
const RUNS_RATIO: f64 = 0.10;
const QUOTAS_RATIO: f64 = 0.15;
/// Throughput from this share of the highest on is near the peak.
const PEAK_MIN_RATIO: f64 = 0.8;
/// Sizes that are closer count as one.
const SIZES_MIN_RATIO: f64 = 1.1;
/// From this many loads on the demand is a curve.
const LOADS_MIN: usize = 3;
/// Steps of processor use at which limits are tried.
const BUSY_STEP_RATIO: f64 = 0.005;
const NS_PER_S: f64 = 1e9;
/// An excess below this factor does not round up.
const ROUNDING: f64 = 1.001;

/// The size of server for a load, from runs of one suite on servers of one or more sizes.
pub fn size(
    runs: &[RunInput],
    load: RequestedLoad,
    request: SizeRequest,
) -> Result<Sizing, LoadError> {
    let names = runs.iter().map(|run| run.bundle.clone()).collect();
    let points: Vec<Measured> = runs.iter().flat_map(|run| Measured::of_run(&run.result)).collect();
    let mut sizing = load::size_of_load(&runs[0], &points, load, request)?;
    page_cache::add_page_cache(&mut sizing, runs);
    sizing.measured.runs = names;
    sizing.unknown.extend(runs.iter().filter_map(invalid));
    let suite = |run: &RunInput| {
        let suite = run.result.suite.as_ref();
        suite.map(|suite| suite.name.clone()).unwrap_or_default()
    };
    let other = runs.iter().map(suite).find(|other| *other != suite(&runs[0]));
    if let Some(other) = other {
        sizing.peaks.clear();
        return Ok(refused(sizing, Refusal::Different { first: suite(&runs[0]), other }));
    }
    Ok(sizing)
}

fn invalid(run: &RunInput) -> Option<Unknown> {
    let reason = run.result.verdict.reasons.first().filter(|_| !run.result.verdict.valid)?;
    let rule = reason.rule.name().to_owned();
    Some(Unknown::InvalidRun { bundle: run.bundle.clone(), rule })
}

/// The same from load points, of whatever sizes of the server.
pub fn size_of(points: &[Measured], request: SizeRequest) -> Sizing {
    let server = Server::from_points(points);
    let mut sizing = server.blank(request);
    if points.is_empty() {
        return refused(sizing, Refusal::NothingMeasured);
    }
    sizing.unknown = server.unknown(&sizing.asked);
    sizing.peaks = server.peaks(&sizing.unknown);
    match server.needs(&mut sizing) {
        Ok(()) => sizing,
        Err(refusal) => refused(sizing, refusal),
    }
}

fn refused(mut sizing: Sizing, refusal: Refusal) -> Sizing {
    for need in [
        &mut sizing.processors,
        &mut sizing.disks_by_iops,
        &mut sizing.disks_by_bytes,
        &mut sizing.adapters,
        &mut sizing.memory,
    ] {
        *need = None;
    }
    (sizing.servers, sizing.users, sizing.page_cache) = (None, None, None);
    sizing.response.clear();
    sizing.refused = Some(refusal);
    sizing
}

/// The server according to its points.
struct Server<'a> {
    points: &'a [Measured],
    /// Of the largest size.
    largest: Vec<&'a Measured>,
    /// Cores of each size, rising.
    sizes: Vec<f64>,
    highest_ops_per_s: f64,
    fitted: Option<Fitted>,
    /// The law of full processors; `None` if the largest size was not measured with them.
    full: Option<Fitted>,
}

impl<'a> Server<'a> {
    fn from_points(points: &'a [Measured]) -> Self {
        let sizes = sizes(points);
        let of_largest = |point: &&Measured| match (point.cores, sizes.last()) {
            (Some(cores), Some(largest)) => cores * SIZES_MIN_RATIO > *largest,
            _ => sizes.is_empty(),
        };
        let observed: Vec<Observation> = points.iter().filter_map(Measured::cpu).collect();
        Self {
            points,
            largest: points.iter().filter(of_largest).collect(),
            fitted: fitted(&observed),
            full: full(points, &sizes),
            highest_ops_per_s: points.iter().map(|point| point.ops_per_s).fold(0.0, f64::max),
            sizes,
        }
    }

    fn blank(&self, request: SizeRequest) -> Sizing {
        let busy = self.points.iter().filter_map(Measured::busy_ratio);
        Sizing {
            format: SIZING_FORMAT,
            asked: request,
            measured: MeasuredServer {
                runs: Vec::new(),
                processors: self.sizes.clone(),
                loads: self.points.len(),
                highest_ops_per_s: self.highest_ops_per_s,
                busy_highest_ratio: busy.reduce(f64::max),
            },
            peaks: Vec::new(),
            processors: None,
            disks_by_iops: None,
            disks_by_bytes: None,
            adapters: None,
            memory: None,
            page_cache: None,
            servers: None,
            response: Vec::new(),
            users: None,
            money: None,
            unknown: Vec::new(),
            refused: None,
        }
    }

    fn unknown(&self, request: &SizeRequest) -> Vec<Unknown> {
        let background = |fitted: &Fitted| fitted.curve.coefficient(TermKind::Background);
        let mut unknown = doubts(&self.largest, self.fitted.as_ref().map_or(0.0, background));
        let observed: Vec<Observation> = self.points.iter().filter_map(Measured::cpu).collect();
        if observed.is_empty() {
            unknown.push(Unknown::ProcessorsNotWatched);
        } else if loads(&observed) < LOADS_MIN {
            unknown.push(Unknown::FewLoads { loads: loads(&observed) });
        }
        let busiest = self.largest.iter().filter_map(|point| point.busy_ratio()).reduce(f64::max);
        let limited = unknown.iter().any(|it| matches!(it, Unknown::HeldBack { .. }));
        match busiest {
            Some(busy_ratio) if busy_ratio < BUSY_MIN_RATIO => {
                unknown.push(Unknown::LittleUsed { busy_ratio });
            }
            Some(busy_ratio) if self.full.is_none() && !limited => {
                unknown.push(Unknown::Asleep { busy_ratio });
            }
            _ => {}
        }
        let throttled = self.largest.iter().map(|point| point.throttled_cores).fold(0.0, f64::max);
        if throttled > 0.0 {
            unknown.push(Unknown::Throttled { cores: throttled });
        }
        let limits = request.within.iter().flat_map(|within| within.limits());
        let limits: Vec<LoadFigure> =
            limits.into_iter().map(|limit| limit.figure.clone()).collect();
        if limits.contains(&LoadFigure::Errors) {
            unknown.push(Unknown::Errors);
        }
        let of_streams =
            |it: &LoadFigure| !matches!(it, LoadFigure::Response(_) | LoadFigure::Errors);
        if limits.iter().any(of_streams) {
            unknown.push(Unknown::Streams);
        }
        unknown.push(Unknown::HigherLoads { highest_ops_per_s: self.highest_ops_per_s });
        unknown
    }

    /// Of each size, and of twice the largest.
    fn peaks(&self, unknown: &[Unknown]) -> Vec<PredictedPeak> {
        let asleep = self.full.is_none();
        let law = self.full.as_ref().or(self.fitted.as_ref());
        let (Some(fitted), Some(largest)) = (law, self.sizes.last()) else {
            return Vec::new();
        };
        if unknown.iter().any(|it| matches!(it, Unknown::LittleUsed { .. })) {
            return Vec::new();
        }
        let doubted = unknown.iter().any(is_doubt);
        let peak = |processors: f64, measured: bool| {
            let ops_per_s = fitted.estimate(|curve| curve.carried(processors, 1.0))?;
            let ops_per_s = widened(ops_per_s, if measured { RUNS_RATIO } else { QUOTAS_RATIO });
            let near = if measured { processors } else { *largest };
            let of_size = |point: &&Measured| point.cores.is_some_and(|cores| same(cores, near));
            let highest = self.points.iter().filter(of_size).map(|point| point.ops_per_s);
            let load_ratio = ops_per_s.value / highest.fold(f64::MIN_POSITIVE, f64::max);
            let limited = doubted || (!measured && self.assumes(processors));
            let (ops_per_s, bound) = match (limited, asleep) {
                (true, true) => (ops_per_s.at_least(), PeakBound::Open),
                (true, false) => (ops_per_s, PeakBound::AtMost),
                (false, true) => (ops_per_s.at_least(), PeakBound::AtLeast),
                (false, false) => (ops_per_s, PeakBound::Exact),
            };
            Some(PredictedPeak { processors, measured, ops_per_s, bound, load_ratio })
        };
        let measured = self.sizes.iter().filter_map(|cores| peak(*cores, true));
        measured.chain(peak(2.0 * largest, false)).collect()
    }

    /// Whether the share of each further processor is an assumption.
    fn assumes(&self, processors: f64) -> bool {
        let parallel = |cores: Option<&f64>| cores.map_or(1.0, |cores| cores.max(1.0));
        let (least, most) = (parallel(self.sizes.first()), parallel(self.sizes.last()));
        processors > most * ROUNDING && same(least, most)
    }

    fn needs(&self, sizing: &mut Sizing) -> Result<(), Refusal> {
        let load = sizing.asked.load_ops_per_s;
        let highest_ops_per_s = self.highest_ops_per_s;
        let requested = self.points.iter().map(|point| point.requested_ops_per_s);
        let reached_ops_per_s = requested.fold(highest_ops_per_s, f64::max);
        if self.sizes.len() < 2 && load > LOAD_MAX_RATIO * reached_ops_per_s {
            return Err(Refusal::TooFar { highest_ops_per_s: reached_ops_per_s });
        }
        for unknown in &sizing.unknown {
            if let Unknown::HeldBack { limit, at_ops_per_s } = *unknown
                && load > highest_ops_per_s
            {
                return Err(Refusal::HeldBack { limit, at_ops_per_s });
            }
        }
        let busy_ratio = self.processors(sizing)?;
        let needs = Needs { points: &self.largest, request: &sizing.asked, highest_ops_per_s };
        let (by_iops, iops_open) = needs.devices(Demand::DiskTransfers);
        let (by_bytes, _) = needs.devices(Demand::DiskBytes);
        let (adapters, adapters_open) = needs.devices(Demand::AdapterBytes);
        let memory = needs.memory();
        (sizing.disks_by_iops, sizing.disks_by_bytes) = (by_iops, by_bytes);
        (sizing.adapters, sizing.memory) = (adapters, memory);
        sizing.unknown.extend(iops_open.into_iter().chain(adapters_open));
        let servers = self.servers(load, busy_ratio);
        sizing.servers = servers.map(|servers| self.if_awake(servers));
        Ok(())
    }

    /// Processors and response time, and how busy the processors may be.
    fn processors(&self, sizing: &mut Sizing) -> Result<f64, Refusal> {
        let request = &sizing.asked;
        let response = Response::from_points(&self.largest);
        let busy_ratio = match &response {
            Some(response) => busy_within(response, request)?,
            None => request.headroom_ratio,
        };
        let load = request.load_ops_per_s;
        let Some(fitted) = &self.fitted else { return Ok(busy_ratio) };
        let cores_for = |curve: &curve::Curve| curve.cores_for(load, busy_ratio);
        let count = fitted.estimate(cores_for).ok_or(Refusal::NoNumber)?;
        let mut count = self.if_awake(count);
        let doubted = sizing.unknown.iter().any(is_doubt) && load > self.highest_ops_per_s;
        if self.assumes(count.value) {
            let measured = self.sizes.last().copied().unwrap_or_default();
            sizing.unknown.push(Unknown::MoreProcessors { measured });
            count = count.at_least();
        } else if doubted {
            count = count.at_least();
        }
        let per_op =
            fitted.estimate(|curve| Some(curve.demand(load, cores_for(curve)?, busy_ratio)));
        let per_op = self.if_awake(per_op.ok_or(Refusal::NoNumber)?);
        sizing.processors = Some(Need {
            count: Some(count),
            total: per_op.times(load / NS_PER_S),
            per_op: Some(per_op),
            each: Some(Ceiling { value: 1.0, basis: CeilingBasis::Time }),
            law: fitted.curve.terms.clone(),
            load_ratio: load / self.highest_ops_per_s,
        });
        if let Some(response) = &response {
            // Whole processors have more capacity than their share; a quota need not be whole.
            let room = match self.sizes.last() {
                Some(cores) if *cores >= 1.0 => count.value / count.whole(),
                _ => 1.0,
            };
            sizing.response = response_at(response, &sizing.asked, busy_ratio * room);
            let mean = sizing.response.first().map(|at| at.ns.value / NS_PER_S);
            let think = sizing.asked.think.map(|think| think.as_secs_f64());
            sizing.users = think.zip(mean).map(|(think, mean)| load * (think + mean));
        }
        Ok(busy_ratio)
    }

    /// Servers of the largest size.
    fn servers(&self, load: f64, busy_ratio: f64) -> Option<Estimate> {
        let cores = *self.sizes.last()?;
        self.fitted.as_ref()?.estimate(|curve| Some(load / curve.carried(cores, busy_ratio)?))
    }

    /// The demand of an op, or its result, may be lower by as much as an op saves that finds the
    /// server awake.
    fn if_awake(&self, demand: Estimate) -> Estimate {
        match self.full {
            None => Estimate { low: demand.low * AWAKE_COST_RATIO, ..demand },
            Some(_) => demand,
        }
    }
}

/// With a further error of this share, independent of its own.
fn widened(estimate: Estimate, ratio: f64) -> Estimate {
    let Estimate { value, low, high } = estimate;
    let factor = |end: f64| (end / value).ln().hypot(ratio.ln_1p()).exp();
    Estimate { value, low: value / factor(low), high: high.map(|high| value * factor(high)) }
}

/// From the loads near the peak of each size at which its processors were full: the highest one
/// alone would be so by chance.
fn full(points: &[Measured], sizes: &[f64]) -> Option<Fitted> {
    let of_size = |cores: &f64| {
        let of_size = points.iter().filter(|it| it.cores.is_some_and(|own| same(own, *cores)));
        let full: Vec<Observation> = of_size.filter_map(Measured::full).collect();
        let highest = full.iter().map(|it| it.ops_per_s).fold(0.0, f64::max);
        full.into_iter().filter(|it| it.ops_per_s >= PEAK_MIN_RATIO * highest).collect()
    };
    let by_size: Vec<Vec<Observation>> = sizes.iter().map(of_size).collect();
    by_size.last().filter(|largest| !largest.is_empty())?;
    fitted(&by_size.concat())
}

/// The law of processor time, with a term for further processors where sizes with several differ.
fn fitted(observed: &[Observation]) -> Option<Fitted> {
    let several = |it: &Observation| it.cores.max(1.0);
    let (least, most) = observed.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), it| {
        (least.min(several(it)), most.max(several(it)))
    });
    let may = [TermKind::WakeUps, TermKind::Background, TermKind::Contention];
    let with = || Fitted::from_observations(observed, &may, &[TermKind::Processors]);
    let differ = most > least * SIZES_MIN_RATIO;
    differ.then(with).flatten().or_else(|| Fitted::from_observations(observed, &may, &[]))
}

fn same(a: f64, b: f64) -> bool {
    a.max(b) < a.min(b) * SIZES_MIN_RATIO
}

/// Cores of each size, rising.
fn sizes(points: &[Measured]) -> Vec<f64> {
    let mut all: Vec<f64> = points.iter().filter_map(|point| point.cores).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|next, before| same(*next, *before));
    all
}

/// How busy the processors may be: as the headroom allows, or less where a limit requires it.
fn busy_within(response: &Response, request: &SizeRequest) -> Result<f64, Refusal> {
    let limits: Vec<(Figure, f64)> = limits(request).collect();
    let holds = |busy_ratio: f64, (figure, below): &(Figure, f64)| {
        response.estimate(*figure, busy_ratio).is_none_or(|(ns, _)| ns.value < *below)
    };
    let steps = (request.headroom_ratio / BUSY_STEP_RATIO).floor().max(1.0) as u32;
    let tried = (0..steps).map(|step| request.headroom_ratio - f64::from(step) * BUSY_STEP_RATIO);
    let mut tried = tried.filter(|busy| *busy > 0.0);
    tried.find(|busy| limits.iter().all(|limit| holds(*busy, limit))).ok_or_else(|| {
        let idle = BUSY_STEP_RATIO;
        let broken = limits.iter().find(|limit| !holds(idle, limit));
        let (figure, below_ns) = broken.copied().unwrap_or((Figure::Mean, 0.0));
        let idle_ns = response.estimate(figure, idle).map_or(0.0, |(ns, _)| ns.value);
        Refusal::TooSlow { figure, idle_ns, below_ns }
    })
}

fn limits(request: &SizeRequest) -> impl Iterator<Item = (Figure, f64)> {
    request.within.iter().flat_map(|within| within.limits()).filter_map(|limit| {
        match limit.figure {
            LoadFigure::Response(figure) => Some((figure, limit.limit)),
            _ => None,
        }
    })
}

/// The mean, and every figure that has a limit.
fn response_at(response: &Response, request: &SizeRequest, busy_ratio: f64) -> Vec<ResponseAt> {
    let limited: Vec<(Figure, Option<f64>)> =
        limits(request).map(|(figure, below)| (figure, Some(below))).collect();
    let mean = limited.iter().find(|(figure, _)| *figure == Figure::Mean).copied();
    let others = limited.iter().filter(|(figure, _)| *figure != Figure::Mean).copied();
    let all = std::iter::once(mean.unwrap_or((Figure::Mean, None))).chain(others);
    let at = |(figure, below_ns)| {
        let (ns, law) = response.estimate(figure, busy_ratio)?;
        Some(ResponseAt { figure, ns, below_ns, busy_ratio, law })
    };
    all.filter_map(at).collect()
}

/// Adds the price of the servers; nothing where their number is not known.
pub fn price(sizing: &mut Sizing, system: &SystemPrices) {
    let Some(count) = sizing.servers else { return };
    let servers = count.whole();
    let one = system.total;
    let Some(total) = Money::times(one.units(), servers as u64, 0.0, one.currency()) else {
        return;
    };
    let least = sizing.unknown.iter().any(is_doubt);
    sizing.money = Some(SizedMoney {
        system: system.name.clone(),
        one,
        servers,
        bound: if least { Bound::AtLeast } else { Bound::Exact },
        total,
        per_thousand_ops_per_s: total.units() / sizing.asked.load_ops_per_s * 1e3,
    });
}
