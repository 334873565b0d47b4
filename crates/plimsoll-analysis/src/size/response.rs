//! Response time over the use of the processors: between two loads the measured curve, beyond them
//! the law of a queue, R = r + q ρ^(√(2(n+1))−1) / (1 − ρ) (Sakasegawa 1977 for n processors).
//! Figures of a distribution keep their measured ratio to the mean.
//!
//! Limits of the server before those of its hardware. A lock or a pool uses nothing that monitors
//! see. It shows as time: an op takes longer than its demands explain, or ever longer under a load
//! at which the processors have hardly a queue.

use plimsoll_model::capacity::Figure;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::TimeSummary;
use plimsoll_model::size::{Estimate, ResponseLaw, Unknown};

use super::measured::Measured;
use crate::sampling::NORMAL_95;

/// Beyond it, and at a saturated server, the response time is made by clients and the window.
const FITTED_BUSY_MAX_RATIO: f64 = 0.95;
/// Even a mean with a smaller error differs by this from run to run.
const ERROR_MIN_RATIO: f64 = 0.03;

/// The response times of one size of the server, by rising use of its processors.
pub(super) struct Response {
    points: Vec<At>,
    /// r and q.
    law: [f64; 2],
    exponent: f64,
    /// The residual of the law.
    error_ratio: f64,
}

struct At {
    busy_ratio: f64,
    times: TimeSummary,
    mean: f64,
    error_ratio: f64,
}

impl Response {
    /// `None` where no load point has both.
    pub(super) fn from_points(points: &[&Measured]) -> Option<Self> {
        let at = |point: &&Measured| {
            let mean = point.response.mean.filter(|mean| *mean > 0.0)?;
            let usable = |busy: &f64| *busy < FITTED_BUSY_MAX_RATIO && !point.saturated;
            let busy_ratio = point.busy_ratio().filter(usable)?;
            let error_ratio = (point.response_error_ns / mean).max(ERROR_MIN_RATIO);
            Some(At { busy_ratio, times: point.response, mean, error_ratio })
        };
        let mut measured: Vec<At> = points.iter().filter_map(at).collect();
        measured.sort_by(|a, b| a.busy_ratio.total_cmp(&b.busy_ratio));
        let cores = points.iter().find_map(|point| point.cores)?;
        let exponent = exponent(cores);
        // For requests of constant service and random arrivals, with the last measured demand.
        let demand = points.iter().rev().find_map(|point| Some(point.cpu_ns?.value))?;
        let least = demand / cores.max(1.0) / 2.0;
        let law = fitted(&measured, exponent, least)?;
        let mut response = Self { points: measured, law, exponent, error_ratio: 0.0 };
        let off = |at: &At| (response.mean(at.busy_ratio) / at.mean - 1.0).powi(2);
        let squares: f64 = response.points.iter().map(off).sum();
        response.error_ratio = (squares / response.points.len() as f64).sqrt();
        Some(response)
    }

    /// The mean by the law, in nanoseconds.
    pub(super) fn mean(&self, busy_ratio: f64) -> f64 {
        self.law[0] + self.law[1] * queued(busy_ratio, self.exponent)
    }

    /// A figure at this use of the processors.
    pub(super) fn estimate(
        &self,
        figure: Figure,
        busy_ratio: f64,
    ) -> Option<(Estimate, ResponseLaw)> {
        let has_figure = |at: &&At| at.times.figure(figure).is_some();
        let points: Vec<&At> = self.points.iter().filter(has_figure).collect();
        let above = points.iter().position(|at| at.busy_ratio >= busy_ratio);
        if let Some(above) = above.filter(|above| *above > 0) {
            let (a, b) = (points[above - 1], points[above]);
            let part = (busy_ratio - a.busy_ratio) / (b.busy_ratio - a.busy_ratio);
            let between = |a: f64, b: f64| a + part * (b - a);
            let interpolated = between(a.times.figure(figure)?, b.times.figure(figure)?);
            let error = a.error_ratio.max(b.error_ratio);
            return Some((around(interpolated, error), ResponseLaw::Measured));
        }
        let nearest = if above == Some(0) { points.first()? } else { points.last()? };
        let to_mean = nearest.times.figure(figure)? / nearest.mean;
        // An error of the law grows as the queue does.
        let grows = (1.0 - nearest.busy_ratio) / (1.0 - busy_ratio.min(FITTED_BUSY_MAX_RATIO));
        let error = NORMAL_95 * self.error_ratio.hypot(nearest.error_ratio) * grows.max(1.0);
        Some((around(self.mean(busy_ratio) * to_mean, error), ResponseLaw::Queue))
    }
}

/// An interval of a factor to either side.
fn around(value: f64, error_ratio: f64) -> Estimate {
    let factor = 1.0 + error_ratio;
    Estimate { value, low: value / factor, high: Some(value * factor) }
}

pub(super) fn exponent(cores: f64) -> f64 {
    (2.0 * (cores.max(1.0) + 1.0)).sqrt() - 1.0
}

/// The queue, in services of one of the processors.
pub(super) fn queued(busy_ratio: f64, exponent: f64) -> f64 {
    busy_ratio.max(0.0).powf(exponent) / (1.0 - busy_ratio).max(1e-3)
}

/// r and q by weighted least squares, q no less than `least`, r no less than zero.
fn fitted(points: &[At], exponent: f64, least: f64) -> Option<[f64; 2]> {
    let [mut n, mut x, mut y, mut xx, mut xy] = [0.0; 5];
    for at in points {
        let (weight, queued) =
            ((at.error_ratio * at.mean).powi(-2), queued(at.busy_ratio, exponent));
        n += weight;
        x += weight * queued;
        y += weight * at.mean;
        xx += weight * queued * queued;
        xy += weight * queued * at.mean;
    }
    let determinant = n * xx - x * x;
    let slope = if determinant > 1e-9 * n * xx { (n * xy - x * y) / determinant } else { 0.0 };
    let q = slope.max(least);
    (n > 0.0).then(|| [((y - q * x) / n).max(0.0), q])
}

const NS_PER_S: f64 = 1e9;
/// Unexplained time of an op at the lowest load: less is the network's and the kernel's.
const WAITS_MIN_NS: f64 = 500_000.0;
/// The same, as a share of its response time.
const WAITS_MIN_RATIO: f64 = 0.5;
/// At a lower use of the processors ops hardly wait for each other.
const IDLE_MAX_RATIO: f64 = 0.5;
/// Services that come in bursts wait up to this many times as long as the law of a queue predicts.
const BURSTS_RATIO: f64 = 2.0;
/// A response time that grows by less may be scatter: a share of that of the lowest load, or a
/// time.
const GROWTH_MIN_RATIO: f64 = 0.25;
const GROWTH_MIN_NS: f64 = 100_000.0;
/// Disks that are busier than this explain a growth.
const DISK_BUSY_MIN_RATIO: f64 = 0.3;
/// More clients bring no more where throughput grows by less.
const STOPPED_MAX_RATIO: f64 = 0.1;
/// Processors that are busier than this have a queue of any length.
const BUSY_MAX_RATIO: f64 = 0.9;

/// Threads share their work so unevenly that only this part of the processors could be full.
const THREADS_MIN_RATIO: f64 = 0.6;

/// Doubts from the points of one size of the server, which uses this processor time without any
/// load.
pub(super) fn doubts(points: &[&Measured], background_ns_per_s: f64) -> Vec<Unknown> {
    let bottlenecks = points.iter().filter_map(|point| {
        let at_ops_per_s = point.ops_per_s;
        let limit = point.bottleneck.or_else(|| idle_limit(points, point))?;
        Some(Unknown::HeldBack { limit, at_ops_per_s })
    });
    let lowest = bottlenecks.min_by(|a, b| rate_ops_per_s(a).total_cmp(&rate_ops_per_s(b)));
    let unknowns = [lowest, waits(points, background_ns_per_s), queue(points), few_threads(points)];
    unknowns.into_iter().flatten().collect()
}

/// Processors with spare capacity are not what limits a saturated server. Clients that wait bring
/// more until twice as many bring no more.
fn idle_limit(points: &[&Measured], point: &Measured) -> Option<LimitKind> {
    let is_idle = |it: &Measured| it.saturated && it.cpu().is_some() && it.full().is_none();
    let no_more = |other: &&Measured| {
        let gain = other.ops_per_s / point.ops_per_s - 1.0;
        !std::ptr::eq(*other, point) && is_idle(other) && gain.abs() < STOPPED_MAX_RATIO
    };
    let stopped = !point.closed || points.iter().any(no_more);
    let full = points.iter().any(|it| it.full().is_some());
    (is_idle(point) && stopped && !full).then_some(LimitKind::Unknown)
}

/// Does it make a peak *at most*?
pub(super) const fn is_doubt(unknown: &Unknown) -> bool {
    matches!(
        unknown,
        Unknown::HeldBack { .. }
            | Unknown::Waits { .. }
            | Unknown::Queue { .. }
            | Unknown::FewThreads { .. }
    )
}

const fn rate_ops_per_s(unknown: &Unknown) -> f64 {
    match unknown {
        Unknown::HeldBack { at_ops_per_s, .. } => *at_ops_per_s,
        _ => f64::INFINITY,
    }
}

fn by_load<'m>(points: &[&'m Measured]) -> Vec<&'m Measured> {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s));
    points
}

fn waits(points: &[&Measured], background_ns_per_s: f64) -> Option<Unknown> {
    let lowest = *by_load(points).first()?;
    let response_ns = lowest.response_low_ns;
    let disk_ns = lowest.disks.map_or(0.0, |disks| {
        disks.busy_ratio.unwrap_or_default() * disks.count * NS_PER_S / lowest.ops_per_s
    });
    // Beyond it an op waits for the others of a closed load, and its wait shows nothing.
    let busy_ratio = lowest.busy_ratio().filter(|busy| *busy < IDLE_MAX_RATIO)?;
    let cores = lowest.cores?;
    // No op waits for background work.
    let service_ns = (lowest.cpu_ns?.value - background_ns_per_s / lowest.ops_per_s).max(0.0);
    let queued_ns =
        BURSTS_RATIO * service_ns / cores.max(1.0) * queued(busy_ratio, exponent(cores));
    let explained_ns = service_ns + queued_ns.max(for_cores(lowest)) + disk_ns;
    let left = response_ns - explained_ns;
    let long = left > WAITS_MIN_NS && left > WAITS_MIN_RATIO * response_ns;
    long.then_some(Unknown::Waits { response_ns, explained_ns })
}

fn queue(points: &[&Measured]) -> Option<Unknown> {
    let sorted = by_load(points);
    let usable = |point: &&&Measured| {
        let disk_busy = point.disks.and_then(|disks| disks.busy_ratio).unwrap_or_default();
        let busy = point.busy_ratio().unwrap_or(1.0);
        let alone = disk_busy < DISK_BUSY_MIN_RATIO && point.throttled_cores == 0.0;
        !point.saturated && busy < BUSY_MAX_RATIO && alone
    };
    let low = *sorted.first()?;
    let high = *sorted.iter().rev().find(usable)?;
    let (from_ns, to_ns) = (low.response.mean?, high.response_low_ns);
    let cores = high.cores?;
    let waiting = |point: &Measured| {
        let service_ns = high.cpu_ns?.value / cores.max(1.0);
        let by_law = BURSTS_RATIO * service_ns * queued(point.busy_ratio()?, exponent(cores));
        Some(by_law.max(for_cores(point)))
    };
    let explained_ns = (waiting(high)? - waiting(low)?).max(0.0);
    let scatter = (GROWTH_MIN_RATIO * from_ns).max(GROWTH_MIN_NS).max(low.response_error_ns);
    (to_ns - from_ns > explained_ns + scatter).then_some(Unknown::Queue {
        from_ns,
        to_ns,
        explained_ns,
    })
}

/// A thread uses one processor at a time: at the highest load the other threads have too little to
/// do for all processors to become full.
fn few_threads(points: &[&Measured]) -> Option<Unknown> {
    let highest = *by_load(points).last()?;
    let (share_ratio, cores) = (highest.busiest_thread_ratio?, highest.cores?);
    let few = share_ratio * THREADS_MIN_RATIO * cores > 1.0 && cores > 1.0;
    few.then_some(Unknown::FewThreads { share_ratio, cores })
}

/// How long an op waited for cores, as the kernel counted it: other programs may have had them.
fn for_cores(point: &Measured) -> f64 {
    point.waiting_threads * NS_PER_S / point.ops_per_s
}
