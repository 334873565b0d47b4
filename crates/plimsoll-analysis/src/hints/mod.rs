//! Signs that point at a known cause ([`Hint`]). A sign needs the times and, where the kernel
//! counts what causes them, that its counter rose by as much. Strict: a hint that is wrong costs
//! its reader more than one that is missing.

#[cfg(test)]
mod tests;
mod timers;

use plimsoll_model::event::{OpTimes, Pause, PointRecord};
use plimsoll_model::hint::{Hint, RunHint};
use plimsoll_model::result::PointResult;
use plimsoll_model::units::NANOS_PER_SECOND;

/// What the hints of one load point are told from.
pub(crate) struct Seen<'a> {
    pub(crate) record: &'a PointRecord,
    /// Of all ops due in the window.
    pub(crate) times: &'a OpTimes,
}

impl Seen<'_> {
    fn seconds(&self) -> f64 {
        self.record.measured_ns.as_secs_f64()
    }

    /// By how much a counter of the generator's host rose in the window; `None` where nobody read
    /// it.
    fn rose(&self, name: &str) -> Option<f64> {
        let resources = self.record.resources.iter();
        let mut own = resources.filter(|it| it.source.is_none() && it.name == name);
        own.next().map(|it| it.mean * self.seconds())
    }

    /// The same of the watched host on which it rose most.
    fn rose_anywhere(&self, name: &str) -> Option<u64> {
        let resources = self.record.resources.iter().filter(|it| it.name == name);
        let rates = resources.map(|it| it.mean);
        rates.reduce(f64::max).map(|rate| (rate * self.seconds()).round() as u64)
    }
}

/// The hints of one load point. One cause is told once.
pub(crate) fn hints_of_point(seen: &Seen<'_>) -> Vec<Hint> {
    let syn = timers::syn_retransmitted(seen);
    let connects = match syn {
        // Waits for the accept queue explain these as well.
        Some(_) => [syn, None],
        None => [timers::retransmitted(seen), slow_new_connections(seen)],
    };
    let others = [timers::delayed_ack(seen), slow_target(seen), even_pauses(seen)];
    connects.into_iter().chain(others).flatten().collect()
}

/// The hints of all points, each kind once, as the point shows it that shows it most.
pub(crate) fn hints_of_run(points: &[PointResult]) -> Vec<RunHint> {
    let mut all: Vec<RunHint> = Vec::new();
    for point in points {
        for hint in &point.hints {
            match all.iter_mut().find(|known| known.hint.is_same_kind(hint)) {
                Some(known) => {
                    known.points.push(point.position);
                    if hint.strength() > known.hint.strength() {
                        known.hint = hint.clone();
                    }
                }
                None => all.push(RunHint { points: vec![point.position], hint: hint.clone() }),
            }
        }
    }
    all
}

/// A new connection is far slower than a kept one from this factor on.
const NEW_MIN_FACTOR: f64 = 5.0;
/// And from this difference on: a handshake of TLS on a busy processor takes some milliseconds.
const NEW_MIN_DIFFERENCE_NS: u64 = 20_000_000;
/// Fewer new connections tell no median, and are not worth a hint.
const NEW_MIN: u64 = 40;

/// A target is slow from this factor over the slowest of the others on.
const TARGET_MIN_FACTOR: f64 = 2.0;
/// And from this difference on: where a server runs moves it by less.
const TARGET_MIN_DIFFERENCE_NS: u64 = 2_000_000;
/// The others are alike up to this factor.
const OTHERS_MAX_FACTOR: f64 = 1.5;
/// Fewer ops of a target tell no median.
const TARGET_OPS_MIN: u64 = 100;

/// The one median is above the other by both. Medians are compared, since a few long ops move a
/// mean.
fn is_above(slow_ns: u64, fast_ns: u64, factor: f64, difference_ns: u64) -> bool {
    slow_ns as f64 >= factor * fast_ns as f64 && slow_ns >= fast_ns + difference_ns
}

fn slow_new_connections(seen: &Seen<'_>) -> Option<Hint> {
    let signs = &seen.record.totals.signs;
    let (new, kept) = (&signs.new_connections, &signs.kept_connections);
    let (new_p50_ns, kept_p50_ns) = (new.median_ns()?, kept.median_ns()?);
    let connections = new.n();
    let enough = connections >= NEW_MIN && kept.n() >= NEW_MIN;
    let slower = is_above(new_p50_ns, kept_p50_ns, NEW_MIN_FACTOR, NEW_MIN_DIFFERENCE_NS);
    (enough && slower).then_some(Hint::SlowNewConnections { connections, new_p50_ns, kept_p50_ns })
}

fn slow_target(seen: &Seen<'_>) -> Option<Hint> {
    let targets = &seen.record.totals.per_target;
    let median = |target: &plimsoll_model::event::TargetTotals| {
        let enough = target.service.n() >= TARGET_OPS_MIN;
        target.service.median_ns().filter(|_| enough)
    };
    let mut medians: Vec<u64> = targets.iter().map(median).collect::<Option<_>>()?;
    let slowest = (0..medians.len()).max_by_key(|at| medians[*at])?;
    let p50_ns = medians.swap_remove(slowest);
    let (fastest, others_p50_ns) = (*medians.iter().min()?, *medians.iter().max()?);
    let alike = others_p50_ns as f64 <= OTHERS_MAX_FACTOR * fastest as f64;
    let slow = is_above(p50_ns, others_p50_ns, TARGET_MIN_FACTOR, TARGET_MIN_DIFFERENCE_NS);
    (alike && slow).then(|| Hint::SlowTarget {
        target: targets[slowest].target.clone(),
        p50_ns,
        others: medians.len() as u64,
        others_p50_ns,
    })
}

/// Fewer pauses tell no rhythm.
const PAUSES_MIN: usize = 5;
/// A pause in which fewer replies are missing may be chance: at random arrivals so many are absent
/// together once in 10^9.
const MISSING_MIN: f64 = 20.0;
/// With fewer ops in flight, one slow op looks like a pause.
const IN_FLIGHT_MIN: u32 = 4;
/// Pauses shorter than this part of the median are of other causes: another program on a core.
const USUAL_MIN_RATIO: f64 = 0.5;
/// A distance is even within this part of the median.
const EVEN_MAX_RATIO: f64 = 0.1;
/// So many of the distances are.
const EVEN_MIN_SHARE: f64 = 0.8;
/// Where the hypervisor kept the host's processors for this part of the pauses, they may be its.
const STOLEN_MAX_RATIO: f64 = 0.5;
/// Our monitors sample once in so long. A rhythm within a twentieth of that may be theirs, unless
/// its pauses are so many times what a sample takes.
const SAMPLES_NS: f64 = NANOS_PER_SECOND as f64;
const SAMPLE_MIN_FACTOR: f64 = 5.0;

/// All replies stay away for a while, again and again. Seen by the kernel's stamps of replies, so
/// that a generator that was kept from its core is not seen.
fn even_pauses(seen: &Seen<'_>) -> Option<Hint> {
    let rate_per_ns = seen.record.totals.done_in_window as f64 / seen.record.measured_ns.0 as f64;
    let is_one = |pause: &&Pause| {
        let missing = pause.length.0 as f64 * rate_per_ns;
        missing >= MISSING_MIN && pause.in_flight >= IN_FLIGHT_MIN
    };
    let mut pauses: Vec<&Pause> = seen.record.totals.signs.pauses.iter().filter(is_one).collect();
    let usual_ns = median(&lengths(&pauses));
    pauses.retain(|pause| pause.length.0 as f64 >= USUAL_MIN_RATIO * usual_ns as f64);
    if pauses.len() < PAUSES_MIN {
        return None;
    }
    let distances: Vec<u64> =
        pauses.windows(2).map(|pair| pair[1].start.saturating_sub(pair[0].start).0).collect();
    let lengths = lengths(&pauses);
    let (period_ns, length_ns) = (median(&distances), median(&lengths));
    let is_even =
        |distance: &&u64| distance.abs_diff(period_ns) as f64 <= EVEN_MAX_RATIO * period_ns as f64;
    let even = distances.iter().filter(is_even).count() as f64;
    let rhythm = even >= EVEN_MIN_SHARE * distances.len() as f64;
    let theirs =
        !is_of_host(seen, lengths.iter().sum()) && !is_sampling(seen, period_ns, length_ns);
    (rhythm && theirs).then_some(Hint::EvenPauses {
        pauses: pauses.len() as u64,
        period_ns,
        length_ns,
    })
}

fn lengths(pauses: &[&Pause]) -> Vec<u64> {
    pauses.iter().map(|pause| pause.length.0).collect()
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The host stood still, the generator with it: by its control group's quota or the hypervisor. A
/// worker that was kept from its core by another thread makes no pause, as replies have stamps.
fn is_of_host(seen: &Seen<'_>, paused_ns: u64) -> bool {
    let throttled = seen.rose("host.throttled_periods").is_some_and(|periods| periods >= 1.0);
    let stolen_s = seen.rose("host.cpu_steal").unwrap_or(0.0);
    throttled || stolen_s * NANOS_PER_SECOND as f64 >= STOLEN_MAX_RATIO * paused_ns as f64
}

fn is_sampling(seen: &Seen<'_>, period_ns: u64, length_ns: u64) -> bool {
    let sample_ns = seen.record.monitor_cpu_ns as f64 / seen.seconds().max(1.0);
    let same_period = (period_ns as f64 / SAMPLES_NS - 1.0).abs() <= 0.05;
    same_period && (length_ns as f64) < SAMPLE_MIN_FACTOR * sample_ns
}
