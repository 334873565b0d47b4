//! What may limit the server before its hardware does. A lock or a pool uses nothing that monitors
//! see; it shows as time: an op takes longer than its demands explain, or ever longer under a load
//! under which the processors have hardly a queue.

use plimsoll_model::size::Unknown;

use super::measured::Measured;
use super::response::{exponent, queued};

const NS_PER_S: f64 = 1e9;
/// Time of an op at the lowest load that is not explained: less is the network's and the kernel's.
const WAITS_MIN_NS: f64 = 500_000.0;
/// The same, as a share of its response time.
const WAITS_MIN_RATIO: f64 = 0.5;
/// At a lower use of the processors ops hardly wait for each other.
const IDLE_MAX_RATIO: f64 = 0.5;
/// Services that come in bursts wait so many times as long as the law of a queue says.
const BURSTS_RATIO: f64 = 2.0;
/// A response time that grows by less may be scatter: a share of that of the lowest load, or a time.
const GROWTH_MIN_RATIO: f64 = 0.25;
const GROWTH_MIN_NS: f64 = 100_000.0;
/// Disks that are busier than this explain a growth.
const DISK_BUSY_MIN_RATIO: f64 = 0.3;
/// Processors that are busier than this have a queue of any length.
const BUSY_MAX_RATIO: f64 = 0.9;

/// What of it shows in these points of one size of the server.
pub(super) fn doubts(points: &[&Measured]) -> Vec<Unknown> {
    let held_back = points.iter().filter_map(|point| {
        let at_ops_per_s = point.ops_per_s;
        Some(Unknown::HeldBack { limit: point.held_back?, at_ops_per_s })
    });
    let lowest = held_back.min_by(|a, b| at(a).total_cmp(&at(b)));
    [lowest, waits(points), queue(points)].into_iter().flatten().collect()
}

/// Is it one of these, which make a peak *at most*?
pub(super) const fn is_doubt(unknown: &Unknown) -> bool {
    matches!(unknown, Unknown::HeldBack { .. } | Unknown::Waits { .. } | Unknown::Queue { .. })
}

const fn at(unknown: &Unknown) -> f64 {
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

fn waits(points: &[&Measured]) -> Option<Unknown> {
    let lowest = *by_load(points).first()?;
    let response_ns = lowest.response_low_ns;
    let disk_ns = lowest.disks.map_or(0.0, |disks| {
        disks.busy_ratio.unwrap_or_default() * disks.count * NS_PER_S / lowest.ops_per_s
    });
    // Beyond it an op waits for the others of a closed load, and nothing is told.
    let busy_ratio = lowest.busy_ratio().filter(|busy| *busy < IDLE_MAX_RATIO)?;
    let cores = lowest.cores?;
    let service_ns = lowest.cpu_ns?.value;
    let queued_ns =
        BURSTS_RATIO * service_ns / cores.max(1.0) * queued(busy_ratio, exponent(cores));
    let explained_ns = service_ns + queued_ns + disk_ns;
    let left = response_ns - explained_ns;
    let long = left > WAITS_MIN_NS && left > WAITS_MIN_RATIO * response_ns;
    long.then_some(Unknown::Waits { response_ns, explained_ns })
}

fn queue(points: &[&Measured]) -> Option<Unknown> {
    let sorted = by_load(points);
    let usable = |point: &&&Measured| {
        let disk_busy = point.disks.and_then(|disks| disks.busy_ratio).unwrap_or_default();
        let busy = point.busy_ratio().unwrap_or(1.0);
        busy < BUSY_MAX_RATIO && disk_busy < DISK_BUSY_MIN_RATIO && point.throttled_cores == 0.0
    };
    let low = *sorted.first()?;
    let high = *sorted.iter().rev().find(usable)?;
    let (from_ns, to_ns) = (low.response.mean?, high.response_low_ns);
    let cores = high.cores?;
    let waiting = |point: &Measured| {
        let service_ns = high.cpu_ns?.value / cores.max(1.0);
        Some(service_ns * queued(point.busy_ratio()?, exponent(cores)))
    };
    let explained_ns = BURSTS_RATIO * (waiting(high)? - waiting(low)?).max(0.0);
    let scatter = (GROWTH_MIN_RATIO * from_ns).max(GROWTH_MIN_NS).max(low.response_error_ns);
    (to_ns - from_ns > explained_ns + scatter).then_some(Unknown::Queue {
        from_ns,
        to_ns,
        explained_ns,
    })
}
