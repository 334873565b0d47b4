//! Did the generator measure the server, or itself?

use plimsoll_model::event::OpTimes;
use plimsoll_model::result::Finding;
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use super::{Evidence, MISSING_EVIDENCE, SHORT_WINDOW, core, finding, percent};
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
pub(super) fn generator_cpu(e: &Evidence<'_>) -> Option<Finding> {
    if e.window_is_short() { None } else { asked_too_much(e) }
}

/// The generator's own delays may be all there is to a figure: then it says nothing of the server.
pub(super) fn generator_error(e: &Evidence<'_>) -> Option<Finding> {
    if e.window_is_short() { None } else { own_part_too_large(e) }
}

/// In a window of a few requests connections are opened and one pause of the host is a large part:
/// the intervals are as wide as that makes them, and the point stands.
pub(super) fn short_window(e: &Evidence<'_>) -> Option<Finding> {
    let found =
        asked_too_much(e).or_else(|| own_part_too_large(e)).filter(|_| e.window_is_short())?;
    let window = e.view.record.measured_ns;
    finding(
        "short_window",
        format!(
            "the window was {window}, too short to hold this against the run (limit \
             {SHORT_WINDOW}): {}",
            found.text
        ),
    )
}

fn asked_too_much(e: &Evidence<'_>) -> Option<Finding> {
    let limit = e.suite.rules.generator_cpu_max_ratio;
    let record = e.view.record;
    let (Some(busy), Some(asked)) = (busy_ratio_max(record), asked_ratio_max(record)) else {
        return finding(
            MISSING_EVIDENCE,
            "what the workers asked of their cores is not in the journal (their CPU time, or how \
             long they waited for a core: the kernel's schedstat), so the generator's health is \
             unknown; run the point again on a kernel that tells it"
                .to_owned(),
        );
    };
    if asked <= limit {
        return None;
    }
    let waited = run_delay_ratio_max(record).unwrap_or_default();
    finding(
        "generator_cpu",
        format!(
            "generator limited: a worker asked for {} of its core (limit {}; work up to {}, ready \
             and kept waiting up to {}); {}",
            percent(asked),
            percent(limit),
            percent(busy),
            percent(waited),
            core::remedy(e),
        ),
    )
}

fn own_part_too_large(e: &Evidence<'_>) -> Option<Finding> {
    let times = e.times.filter(|times| !times.response.is_empty())?;
    let Some((p50, own)) = generator_part_of_p50(times) else {
        return finding(
            MISSING_EVIDENCE,
            "the interval logs do not say when replies arrived, so the generator's part of the \
             response times is unknown; run the point again"
                .to_owned(),
        );
    };
    if own > OWN_PART_MAX_RATIO * p50 {
        return finding(
            "generator_error",
            format!(
                "the generator's own delays may be {} of response p50 ({} of {}, limit {}): \
                 replies lay unread and ops left late; {}",
                percent(own / p50),
                Nanos(own as u64),
                Nanos(p50 as u64),
                percent(OWN_PART_MAX_RATIO),
                core::remedy(e),
            ),
        );
    }
    let time = ClientTime::of(e.view.record, times)?;
    let own = time.own_ns / time.answering_ns().max(1.0);
    if own <= OWN_PART_MAX_RATIO {
        return None;
    }
    let of_an_op = |ns: f64| Nanos((ns / times.response.len() as f64) as u64);
    finding(
        "generator_error",
        format!(
            "the generator's own delays were {} of the time that the server took ({} an op beside \
             {}, limit {}): clients of a closed load waited for replies that lay unread, and asked \
             the server for less; {}",
            percent(own),
            of_an_op(time.own_ns),
            of_an_op(time.answering_ns()),
            percent(OWN_PART_MAX_RATIO),
            core::remedy(e),
        ),
    )
}

/// Some ops left late. What that did to the figures is in their intervals.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.own <= lag.limit {
        return None;
    }
    finding(
        "send_lag",
        format!(
            "generator late: send lag {} = {} (limit {}), waits for a connection left out; the \
             intervals of the figures are wider for it; {}",
            lag.percentile,
            lag.own,
            lag.limit,
            core::remedy(e),
        ),
    )
}

/// Lateness that is not the generator's: ops waited for a connection. The load was offered and
/// the wait is in the response time, so it is a warning.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.all <= lag.limit || lag.own > lag.limit {
        return None;
    }
    finding(
        "connections",
        format!(
            "ops waited for a free connection: send lag {} = {} (limit {}), of which the \
             generator's own is {}; the wait counts as response time; if your users would not wait, \
             give it more connections (--set load.clients=N)",
            lag.percentile, lag.all, lag.limit, lag.own,
        ),
    )
}

/// What is known of send lag.
struct Lag {
    percentile: &'static str,
    limit: Nanos,
    /// With waits for a connection.
    all: Nanos,
    /// The generator's own.
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
pub(super) fn monitors(e: &Evidence<'_>) -> Option<Finding> {
    let record = e.view.record;
    let used = record.monitor_cpu_ns as f64 / (record.measured_ns.0 as f64).max(1.0);
    if used <= MONITOR_CPU_MAX_RATIO || record.monitor_cpu_ns <= MONITOR_CPU_ALLOWED.0 {
        return None;
    }
    finding(
        "monitors",
        format!(
            "the monitors used {} of a core (limit {}) though they look less often where that is dear; \
             watch fewer hosts and processes, or measure for longer",
            percent(used),
            percent(MONITOR_CPU_MAX_RATIO),
        ),
    )
}

#[cfg(test)]
mod tests;
