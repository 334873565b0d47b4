//! Signs of a known cause ([`Hint`]). A sign needs the times and, where the kernel counts their
//! cause, that its counter rose by as much. Strict: a wrong hint costs its reader more than a
//! missing one.
//!
//! Times that cluster where a timer of TCP ends: 40 ms for a delayed acknowledgement, 200 ms for a
//! segment sent again, a second for a connect tried again. Linux has these as constants
//! (`TCP_DELACK_MIN`, `TCP_RTO_MIN`, `TCP_TIMEOUT_INIT`).

mod drops;

use std::ops::Range;

use drops::{datagrams_dropped, packets_dropped};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{OpTimes, Pause, PointRecord, Times};
use plimsoll_model::hint::{Hint, RunHint};
use plimsoll_model::result::PointResult;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::host_roles::HostEvidence;

/// Inputs of the hints of one load point.
pub(crate) struct HintInput<'a> {
    pub(crate) record: &'a PointRecord,
    /// Of all ops due in the window.
    pub(crate) times: &'a OpTimes,
    pub(crate) disclosure: Option<&'a Disclosure>,
}

impl HintInput<'_> {
    fn seconds(&self) -> f64 {
        self.record.measured_ns.as_secs_f64()
    }

    /// By how much a counter of the generator's host rose in the window; `None` if it was not read.
    fn rose(&self, name: &str) -> Option<f64> {
        let resources = self.record.resources.iter();
        let mut own = resources.filter(|it| it.source.is_none() && it.name == name);
        own.next().map(|it| it.mean * self.seconds())
    }

    /// The same of the monitored host on which it rose most.
    fn rose_anywhere(&self, name: &str) -> Option<u64> {
        let rates = self.record.resources.iter().filter(|it| it.name == name).map(|it| it.mean);
        rates.reduce(f64::max).map(|rate| (rate * self.seconds()).round() as u64)
    }
}

/// The hints of one load point. One cause gives one hint.
pub(crate) fn hints_of_point(input: &HintInput<'_>) -> Vec<Hint> {
    let syn = syn_retransmitted(input);
    let connects = match syn {
        // Waits for the accept queue explain these as well.
        Some(_) => [syn, None],
        None => [retransmitted(input), slow_new_connections(input)],
    };
    let others = [delayed_ack(input), slow_target(input), even_pauses(input)];
    let hosts = HostEvidence::from_record(input.record, input.disclosure).hosts();
    let drops = datagrams_dropped(input, &hosts).into_iter().chain(packets_dropped(input, &hosts));
    connects.into_iter().chain(others).flatten().chain(drops).collect()
}

/// The hints of all points, each kind once, from the point that shows it most.
pub(crate) fn hints_of_run(points: &[PointResult]) -> Vec<RunHint> {
    let mut all: Vec<RunHint> = Vec::new();
    for point in points {
        for hint in &point.hints {
            match all.iter_mut().find(|listed| listed.hint.is_same_kind(hint)) {
                Some(listed) => {
                    listed.points.push(point.position);
                    if hint.strength() > listed.hint.strength() {
                        listed.hint = hint.clone();
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
/// Fewer new connections give no median, and are not worth a hint.
const NEW_MIN: u64 = 40;

/// A target is slow from this factor over the slowest of the others on.
const TARGET_MIN_FACTOR: f64 = 2.0;
/// And from this difference on: the location of a server moves it by less.
const TARGET_MIN_DIFFERENCE_NS: u64 = 2_000_000;
/// The others are alike up to this factor.
const OTHERS_MAX_FACTOR: f64 = 1.5;
/// Fewer ops of a target give no median.
const TARGET_OPS_MIN: u64 = 100;

/// One median is above the other by both. Medians are compared, since a few long ops move a mean.
fn is_above(slow_ns: u64, fast_ns: u64, factor: f64, difference_ns: u64) -> bool {
    slow_ns as f64 >= factor * fast_ns as f64 && slow_ns >= fast_ns + difference_ns
}

fn slow_new_connections(input: &HintInput<'_>) -> Option<Hint> {
    let signs = &input.record.totals.signs;
    let (new, kept) = (&signs.new_connections, &signs.kept_connections);
    let (new_p50_ns, kept_p50_ns) = (new.median_ns()?, kept.median_ns()?);
    let connections = new.n();
    let enough = connections >= NEW_MIN && kept.n() >= NEW_MIN;
    let slower = is_above(new_p50_ns, kept_p50_ns, NEW_MIN_FACTOR, NEW_MIN_DIFFERENCE_NS);
    (enough && slower).then_some(Hint::SlowNewConnections { connections, new_p50_ns, kept_p50_ns })
}

fn slow_target(input: &HintInput<'_>) -> Option<Hint> {
    let targets = &input.record.totals.per_target;
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

/// Fewer pauses show no rhythm.
const PAUSES_MIN: usize = 5;
/// A pause in which fewer replies are missing may be chance: at random arrivals this many are
/// absent together once in 10^9.
const MISSING_MIN: f64 = 20.0;
/// With fewer ops in flight, one slow op looks like a pause.
const IN_FLIGHT_MIN: u32 = 4;
/// Pauses shorter than this part of the median have other causes: another program on a core.
const USUAL_MIN_RATIO: f64 = 0.5;
/// An interval between pauses is even within this part of the median.
const EVEN_MAX_RATIO: f64 = 0.1;
/// Share of the intervals that must be even.
const EVEN_MIN_SHARE: f64 = 0.8;
/// Where the hypervisor kept the host's processors for this part of the pauses, it may be their
/// cause.
const STOLEN_MAX_RATIO: f64 = 0.5;
/// Interval of our monitors' samples. A rhythm within a twentieth of it may be theirs, unless its
/// pauses are [`SAMPLE_MIN_FACTOR`] times the duration of a sample.
const SAMPLES_NS: f64 = NANOS_PER_SECOND as f64;
const SAMPLE_MIN_FACTOR: f64 = 5.0;

/// No byte of any reply arrives for a while, longer than an op takes, again and again. It uses the
/// kernel's stamps of replies, so a generator that was kept from its core causes no hint.
fn even_pauses(input: &HintInput<'_>) -> Option<Hint> {
    let rate_per_ns = input.record.totals.done_in_window as f64 / input.record.measured_ns.0 as f64;
    let is_one = |pause: &&Pause| {
        let missing = pause.length.0 as f64 * rate_per_ns;
        missing >= MISSING_MIN && pause.in_flight >= IN_FLIGHT_MIN
    };
    let mut pauses: Vec<&Pause> = input.record.totals.signs.pauses.iter().filter(is_one).collect();
    let usual_ns = median(&lengths(&pauses));
    pauses.retain(|pause| pause.length.0 as f64 >= USUAL_MIN_RATIO * usual_ns as f64);
    // A client whose op takes as long waits for that op, not for a server that stands still:
    // clients in step have no replies meanwhile. So do those that connect anew together.
    let op_ns = input.times.service.value_at_quantile(0.5);
    let connect_ns = match slow_new_connections(input) {
        Some(Hint::SlowNewConnections { new_p50_ns, .. }) => new_p50_ns,
        _ => 0,
    };
    if pauses.len() < PAUSES_MIN || usual_ns <= op_ns.max(connect_ns) {
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
        !is_of_host(input, lengths.iter().sum()) && !is_sampling(input, period_ns, length_ns);
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
/// worker that was kept from its core by another thread shows no pause, as replies have stamps.
fn is_of_host(input: &HintInput<'_>, paused_ns: u64) -> bool {
    let throttled = input.rose("host.throttled_periods").is_some_and(|periods| periods >= 1.0);
    let stolen_s = input.rose("host.cpu_steal").unwrap_or(0.0);
    throttled || stolen_s * NANOS_PER_SECOND as f64 >= STOLEN_MAX_RATIO * paused_ns as f64
}

fn is_sampling(input: &HintInput<'_>, period_ns: u64, length_ns: u64) -> bool {
    let sample_ns = input.record.monitor_cpu_ns as f64 / input.seconds().max(1.0);
    let same_period = (period_ns as f64 / SAMPLES_NS - 1.0).abs() <= 0.05;
    same_period && (length_ns as f64) < SAMPLE_MIN_FACTOR * sample_ns
}

/// The kernel must have counted this share of the ops at a timer's end. Rates of samples and ops
/// that straddle the window's ends make it less than all.
const COUNTED_MIN_RATIO: f64 = 0.7;
/// Factor over the number of ops that the times around lead to expect.
const GATHERED_MIN_FACTOR: f64 = 5.0;
/// Acknowledgements are delayed to a tick of the kernel's timer. Chance gives 40 waits half of
/// this.
const TICK_CONCENTRATION_MIN: f64 = 0.6;
/// An op may take this long without its timer.
const BASE_NS_MAX: u64 = 20_000_000;

const MS: u64 = 1_000_000;

/// The range in which ops cluster, and the times around it.
struct Band {
    inside: Range<u64>,
    below: Range<u64>,
    above: Range<u64>,
    /// Fewer ops are chance.
    ops_min: u64,
    /// So is a smaller share of all.
    share_min_ratio: f64,
}

impl Band {
    /// The number of ops in the cluster, if there is one. `count` counts the ops in a range; `all`
    /// is the number of all ops.
    fn gathered(&self, all: u64, count: impl Fn(&Range<u64>) -> u64) -> Option<u64> {
        let width = |range: &Range<u64>| (range.end - range.start) as f64;
        let ops = count(&self.inside);
        let around = (count(&self.below) + count(&self.above)) as f64;
        let expected = around * width(&self.inside) / (width(&self.below) + width(&self.above));
        let enough = ops >= self.ops_min && ops as f64 >= self.share_min_ratio * all as f64;
        (enough && ops as f64 >= GATHERED_MIN_FACTOR * expected).then_some(ops)
    }
}

/// Does a counter explain this many ops?
fn explains(counted: f64, ops: u64) -> bool {
    counted >= COUNTED_MIN_RATIO * ops as f64
}

fn delayed_ack(input: &HintInput<'_>) -> Option<Hint> {
    // The kernel's timer ends with a tick, of 4 ms by default.
    let band = Band {
        inside: 39 * MS..47 * MS,
        below: 24 * MS..38 * MS,
        above: 50 * MS..90 * MS,
        ops_min: 40,
        share_min_ratio: 0.01,
    };
    let signs = &input.record.totals.signs;
    let kept = signs.kept_connections.n();
    let ops = band.gathered(kept, |range| signs.part_waits.waits.between(range.clone()))?;
    let delayed_acks = input.rose("host.tcp_delayed_acks")?;
    let at_ticks = signs.part_waits.tick_concentration()? >= TICK_CONCENTRATION_MIN;
    (at_ticks && explains(delayed_acks, ops)).then(|| Hint::DelayedAck {
        ops,
        share_ratio: ops as f64 / kept as f64,
        between_ns: [band.inside.start, band.inside.end],
        delayed_acks: delayed_acks.round() as u64,
    })
}

fn retransmitted(input: &HintInput<'_>) -> Option<Hint> {
    let service = &input.times.service;
    let base_ns = service.value_at_quantile(0.5);
    if base_ns > BASE_NS_MAX {
        return None;
    }
    let band = Band {
        inside: 198 * MS..240 * MS + base_ns,
        below: 120 * MS..190 * MS,
        above: 270 * MS..380 * MS,
        ops_min: 10,
        share_min_ratio: 0.001,
    };
    let ops = band.gathered(service.len(), |range| count_between(service, range))?;
    let rose = |name| input.rose(name).unwrap_or(0.0);
    // A lone segment is sent again as a probe for a lost tail at the time of its timeout. Connects
    // time out too.
    let timeouts = input.rose("host.tcp_timeouts")? + rose("host.tcp_loss_probes")
        - rose("host.tcp_syn_retransmits");
    explains(timeouts, ops).then(|| Hint::Retransmitted {
        ops,
        share_ratio: ops as f64 / service.len() as f64,
        between_ns: [band.inside.start, band.inside.end],
        timeouts: timeouts.round() as u64,
        listen_overflows: input.rose_anywhere("host.tcp_listen_overflows"),
    })
}

fn syn_retransmitted(input: &HintInput<'_>) -> Option<Hint> {
    let new = &input.record.totals.signs.new_connections;
    let band = Band {
        inside: 985 * MS..1_150 * MS,
        below: 550 * MS..960 * MS,
        above: 1_250 * MS..1_900 * MS,
        ops_min: 10,
        share_min_ratio: 0.002,
    };
    band.gathered(new.n(), |range| new.between(range.clone()))?;
    let syn_retransmits = input.rose("host.tcp_syn_retransmits")?;
    // The second try follows after two seconds; newer kernels have four tries a second apart.
    let ops = new.between(985 * MS..u64::MAX);
    explains(syn_retransmits, ops).then(|| Hint::SynRetransmitted {
        ops,
        share_ratio: ops as f64 / new.n() as f64,
        syn_retransmits: syn_retransmits.round() as u64,
        listen_overflows: input.rose_anywhere("host.tcp_listen_overflows"),
    })
}

fn count_between(times: &Times, range: &Range<u64>) -> u64 {
    let inside = times.iter_recorded().filter(|value| range.contains(&value.value_iterated_to()));
    inside.map(|value| u64::from(value.count_at_value())).sum()
}

#[cfg(test)]
mod tests;
