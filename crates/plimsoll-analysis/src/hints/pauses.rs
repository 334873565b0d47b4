//! Pauses at even distances: all replies stay away for a while, again and again. Seen by the
//! kernel's stamps of replies, so that a generator that was kept from its core is not seen.

use plimsoll_model::event::Pause;
use plimsoll_model::hint::Hint;
use plimsoll_model::units::NANOS_PER_SECOND;

use super::Seen;

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

pub(super) fn even_pauses(seen: &Seen<'_>) -> Option<Hint> {
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
