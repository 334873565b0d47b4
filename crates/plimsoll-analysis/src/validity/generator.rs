//! Did the generator measure the server, or itself?

use plimsoll_model::event::OpTimes;
use plimsoll_model::finding::{Missing, PartOf, Rule};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use super::agents::of_each;
use super::host::worker_core;
use super::{Evidence, SHORT_WINDOW};
use crate::health::{
    ClientTime, asked_ratio_max, busy_ratio_max, generator_part_of_p50, run_delay_ratio_max,
};
use crate::times::quantile_ns;

/// Share of response p50 that send lag p99 may be when that is more than the suite's limit.
const SEND_LAG_OF_RESPONSE_RATIO: f64 = 0.05;
/// Below this many ops p99 is the maximum again, and one hiccup would decide: p90 is judged.
const SEND_LAG_P99_SAMPLES_MIN: u64 = 100;
/// Share of a figure that may be the generator's own: beyond it more is known of the generator than
/// of the server.
const OWN_PART_MAX_RATIO: f64 = 0.5;
/// Share of one core the monitors may use.
const MONITOR_CPU_MAX_RATIO: f64 = 0.01;
/// What they may use in any window: they look at its borders, however short it is.
const MONITOR_CPU_ALLOWED: Nanos = Nanos::from_millis(10);

/// A worker that asks for more than its core gives reads replies late, in open and closed loads
/// alike. What it asks for is its work and the time it was ready and another thread had the core.
pub(super) fn generator_cpu(e: &Evidence<'_>) -> Option<Rule> {
    if e.window_is_short() { None } else { of_each(e, asked_too_much) }
}

/// The generator's own delays may be all there is to a figure: then it says nothing of the server.
pub(super) fn generator_error(e: &Evidence<'_>) -> Option<Rule> {
    if e.window_is_short() { None } else { own_part_too_large(e) }
}

/// In a window of a few requests connections are opened and one pause of the host is a large part:
/// the intervals are as wide as that makes them, and the point stays valid.
pub(super) fn short_window(e: &Evidence<'_>) -> Option<Rule> {
    let breaks = of_each(e, asked_too_much).or_else(|| own_part_too_large(e));
    let breaks = breaks.filter(|_| e.window_is_short())?;
    Some(Rule::ShortWindow {
        window_ns: e.view.record.measured_ns,
        limit_ns: SHORT_WINDOW,
        breaks: Box::new(breaks),
    })
}

fn asked_too_much(e: &Evidence<'_>) -> Option<Rule> {
    let limit_ratio = e.suite.rules.generator_cpu_max_ratio;
    let record = e.view.record;
    let (Some(busy_ratio), Some(wanted_ratio)) = (busy_ratio_max(record), asked_ratio_max(record))
    else {
        return Some(Rule::MissingEvidence { missing: Missing::WorkerHealth });
    };
    (wanted_ratio > limit_ratio).then(|| Rule::GeneratorCpu {
        wanted_ratio,
        limit_ratio,
        busy_ratio,
        waiting_ratio: run_delay_ratio_max(record).unwrap_or_default(),
        core: worker_core(e),
    })
}

fn own_part_too_large(e: &Evidence<'_>) -> Option<Rule> {
    let times = e.times.filter(|times| !times.response.is_empty())?;
    let Some((p50_ns, own_ns)) = generator_part_of_p50(times) else {
        return Some(Rule::MissingEvidence { missing: Missing::Arrivals });
    };
    let too_large = |part_of, own_ns: f64, of_ns: f64, ops: f64| {
        (own_ns > OWN_PART_MAX_RATIO * of_ns).then(|| Rule::GeneratorError {
            part_of,
            own_ns: Nanos((own_ns / ops) as u64),
            of_ns: Nanos((of_ns / ops) as u64),
            ratio: own_ns / of_ns,
            limit_ratio: OWN_PART_MAX_RATIO,
            core: worker_core(e),
        })
    };
    too_large(PartOf::ResponseP50, own_ns, p50_ns, 1.0).or_else(|| {
        let time = ClientTime::of(e.view.record, times)?;
        let (answering_ns, ops) = (time.answering_ns().max(1.0), times.response.len() as f64);
        too_large(PartOf::ServerTime, time.own_ns, answering_ns, ops)
    })
}

/// Some ops left late. What that did to the figures is in their intervals.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Rule> {
    let lag = lag(e).filter(|lag| lag.own > lag.limit)?;
    Some(Rule::SendLag {
        percentile: lag.percentile.to_owned(),
        own_ns: lag.own,
        limit_ns: lag.limit,
        core: worker_core(e),
    })
}

/// Lateness that is not the generator's: ops waited for a connection. The load was offered and
/// the wait is in the response time, so it is a warning.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Rule> {
    let lag = lag(e).filter(|lag| lag.all > lag.limit && lag.own <= lag.limit)?;
    Some(Rule::Connections {
        percentile: lag.percentile.to_owned(),
        all_ns: lag.all,
        own_ns: lag.own,
        limit_ns: lag.limit,
    })
}

/// What is known of send lag.
struct Lag {
    percentile: &'static str,
    limit: Nanos,
    /// With waits for a connection.
    all: Nanos,
    own: Nanos,
}

fn lag(e: &Evidence<'_>) -> Option<Lag> {
    let times = e.times.filter(|times| !times.send_lag.is_empty())?;
    let (percentile_e2, percentile) = match times.send_lag.len() {
        n if n >= SEND_LAG_P99_SAMPLES_MIN => (9_900, "p99"),
        _ => (9_000, "p90"),
    };
    Some(Lag {
        percentile,
        limit: lateness_limit(e.suite, times),
        all: Nanos(quantile_ns(&times.send_lag, percentile_e2)),
        own: Nanos(quantile_ns(&times.lateness, percentile_e2)),
    })
}

/// The suite's limit, or a twentieth of response p50 when that is more.
pub(crate) fn lateness_limit(suite: &Suite, times: &OpTimes) -> Nanos {
    let response_p50 = quantile_ns(&times.response, 5_000);
    let of_response = Nanos((response_p50 as f64 * SEND_LAG_OF_RESPONSE_RATIO).round() as u64);
    suite.rules.send_lag_p99_max.max(of_response)
}

/// Watching must not change what is watched.
pub(super) fn monitors(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, watched_too_much)
}

fn watched_too_much(e: &Evidence<'_>) -> Option<Rule> {
    let record = e.view.record;
    let used_ratio = record.monitor_cpu_ns as f64 / (record.measured_ns.0 as f64).max(1.0);
    let too_much =
        used_ratio > MONITOR_CPU_MAX_RATIO && record.monitor_cpu_ns > MONITOR_CPU_ALLOWED.0;
    too_much.then_some(Rule::Monitors { used_ratio, limit_ratio: MONITOR_CPU_MAX_RATIO })
}

#[cfg(test)]
mod tests;
