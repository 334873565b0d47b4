//! Whether the server recovered from each pulse of a shape: by the second, goodput and a percentile
//! of the response time against those of the hold before it.

use plimsoll_model::event::{Phase, PointRecord, ResourceUse};
use plimsoll_model::load_shape::PhaseKind;
use plimsoll_model::recovery::{
    Recovery, RecoveryOutcome, RecoveryResource, RecoverySpan, healthy_drain, span_of,
};
use plimsoll_model::result::{PhaseResult, PointResult, TimeIntervals, TimeSummary};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

use crate::coarse::Coarse;
use crate::raw::PointTimes;
use crate::sampling::Moments;

/// Standard errors that a span of the same load may be below its mean by chance.
const CHANCE_ERRORS: f64 = 2.0;
/// Seconds of the hold before a pulse that are looked at; a longer one adds only work.
const BEFORE_SECONDS_MAX: usize = 600;
/// Resources of the server that a recovery names.
const RESOURCES: [&str; 3] = ["process.server.cpu", "host.cpu_busy", "process.server.rss"];

/// A second of a phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseSecond {
    length_s: f64,
    good_ops: u64,
    response: Coarse,
}

/// The seconds of a phase; empty where a load point is none.
pub(crate) fn phase_seconds(
    record: &PointRecord,
    times: &PointTimes,
    has_limits: bool,
) -> Vec<PhaseSecond> {
    if record.phase.is_none() {
        return Vec::new();
    }
    let measured = record.seconds.iter().filter(|second| second.phase == Phase::Measure);
    let mut seconds: Vec<(u64, PhaseSecond)> = measured
        .map(|second| {
            let ended = second.done.saturating_sub(second.errors);
            let good_ops = if has_limits { second.good } else { ended };
            let length_s = Nanos(second.length_ns).as_secs_f64();
            let response = Coarse::default();
            (u64::from(second.second), PhaseSecond { length_s, good_ops, response })
        })
        .collect();
    for (start, slice) in times.slices() {
        let number = start.0 / NANOS_PER_SECOND;
        if let Ok(at) = seconds.binary_search_by_key(&number, |(number, _)| *number) {
            seconds[at].1.response.merge(&slice.response);
        }
    }
    seconds.into_iter().map(|(_, second)| second).collect()
}

/// A load point and its seconds.
pub(crate) type ShapedPhase<'a> = (&'a PointResult, &'a [PhaseSecond]);

/// What became of the server after each pulse. `capacity` is the highest load that it sustains, if
/// that was searched.
pub(crate) fn recoveries(phases: &[ShapedPhase<'_>], capacity: Option<f64>) -> Vec<Recovery> {
    let is_pulse = |at: &usize| {
        let phase = phases[*at].0.phase.as_ref();
        phase.is_some_and(|phase| phase.kind == PhaseKind::Pulse)
    };
    (0..phases.len()).filter(is_pulse).map(|at| recovery(phases, at, capacity)).collect()
}

fn recovery(phases: &[ShapedPhase<'_>], pulse_at: usize, capacity: Option<f64>) -> Recovery {
    let pulse = phases[pulse_at].0;
    let pulse_ns = Nanos::from_secs_f64(pulse.seconds.unwrap_or_default());
    let span_ns = span_of(pulse_ns);
    let hold = |point: &PointResult| point.phase.clone().filter(|it| it.kind == PhaseKind::Hold);
    let before = pulse_at.checked_sub(1).map(|at| phases[at]);
    let before = before.and_then(|before| Some((before, hold(before.0)?)));
    let load = before.as_ref().map(|(_, phase)| phase.to);
    let is_back = |phase: &PhaseResult| Some(phase.to) == load;
    let after = phases[pulse_at + 1..].iter();
    let after: Vec<&ShapedPhase<'_>> =
        after.take_while(|(point, _)| hold(point).as_ref().is_some_and(is_back)).collect();
    let seconds: Vec<&PhaseSecond> = after.iter().flat_map(|(_, seconds)| *seconds).collect();
    let load = load.unwrap_or_default();
    let drain = capacity
        .filter(|_| load > 0.0)
        .and_then(|capacity| healthy_drain(load / capacity, pulse.requested / load, pulse_ns));
    let mut recovery = Recovery {
        pulse: pulse.position,
        outcome: RecoveryOutcome::NoHoldBefore,
        recovered_after_ns: None,
        watched_ns: Nanos::from_secs_f64(seconds.iter().map(|second| second.length_s).sum()),
        span_ns,
        healthy_drain_ns: drain,
        load,
        pulse_load: pulse.requested,
        pulse_ns,
        percentile: String::new(),
        goodput_low_ops_per_s: 0.0,
        response_high_ns: None,
        before: RecoverySpan::default(),
        during: RecoverySpan::default(),
        after: RecoverySpan::default(),
        outstanding_ops_max: outstanding(std::iter::once(pulse).chain(after.iter().map(|it| it.0))),
        resources: Vec::new(),
        text: String::new(),
    };
    let Some((before, _)) = before else { return recovery };
    let after_points: Vec<&PointResult> = after.iter().map(|it| it.0).collect();
    recovery.resources = resources(before.0, pulse, after_points.first().copied());
    match Usual::of_hold(before, span_ns) {
        None => {}
        Some(usual) => usual.compare(&mut recovery, (before.0, phases[pulse_at]), &seconds),
    }
    recovery
}

/// Most ops that had not ended at the end of a second.
fn outstanding<'p>(points: impl Iterator<Item = &'p PointResult>) -> Option<u64> {
    points.flat_map(|point| &point.timeline).filter_map(|second| second.outstanding_ops).max()
}

fn resources(
    before: &PointResult,
    pulse: &PointResult,
    after: Option<&PointResult>,
) -> Vec<RecoveryResource> {
    let mean = |point: &PointResult, like: &ResourceUse| {
        let same = |it: &&ResourceUse| it.name == like.name && it.source == like.source;
        point.resources.iter().find(same).map(|it| it.mean)
    };
    let named = before.resources.iter().filter(|it| RESOURCES.contains(&it.name.as_str()));
    named
        .map(|it| RecoveryResource {
            name: it.name.clone(),
            unit: it.unit.clone(),
            before: it.mean,
            during: mean(pulse, it),
            after: after.and_then(|point| mean(point, it)),
        })
        .collect()
}

/// A percentile and the ops that a span needs for it.
struct Percentile {
    name: &'static str,
    share: f64,
    ops_min: u64,
    value: fn(&TimeSummary) -> Option<u64>,
    interval: fn(&TimeIntervals) -> Option<[f64; 2]>,
}

const PERCENTILES: [Percentile; 3] = [
    Percentile {
        name: "p99",
        share: 0.99,
        ops_min: 1_000,
        value: |it| it.p99,
        interval: |it| it.p99,
    },
    Percentile { name: "p90", share: 0.9, ops_min: 100, value: |it| it.p90, interval: |it| it.p90 },
    Percentile { name: "p50", share: 0.5, ops_min: 20, value: |it| it.p50, interval: |it| it.p50 },
];

/// What spans of the load before a pulse are like.
struct Usual {
    span_s: f64,
    percentile: Option<&'static Percentile>,
    goodput_low: f64,
    response_high_ns: Option<f64>,
}

/// Figures of a span of seconds.
struct Span {
    /// From the first second on.
    start_s: f64,
    goodput: f64,
    response: Coarse,
}

/// Every span of this length, each a second later; none where there are too few seconds.
fn spans<'s>(seconds: &'s [&'s PhaseSecond], span_s: f64) -> impl Iterator<Item = Span> + 's {
    let mut start_s = 0.0;
    (0..seconds.len()).map_while(move |first| {
        let mut span = Span { start_s, goodput: 0.0, response: Coarse::default() };
        let mut length_s = 0.0;
        for second in &seconds[first..] {
            if length_s >= span_s {
                break;
            }
            length_s += second.length_s;
            span.goodput += second.good_ops as f64;
            span.response.merge(&second.response);
        }
        start_s += seconds[first].length_s;
        span.goodput /= length_s;
        // A millisecond: borders of seconds are not exact.
        (length_s + 1e-3 >= span_s).then_some(span)
    })
}

impl Usual {
    /// Of the hold before a pulse; `None` where it is shorter than a span. An interval covers the
    /// chance of the whole. That of a span is larger, and a difference has both.
    fn of_hold((point, seconds): ShapedPhase<'_>, span_ns: Nanos) -> Option<Self> {
        let span_s = span_ns.as_secs_f64();
        let from = seconds.len().saturating_sub(BEFORE_SECONDS_MAX);
        let seconds: Vec<&PhaseSecond> = seconds[from..].iter().collect();
        let all: Vec<Span> = spans(&seconds, span_s).collect();
        let fewest = all.iter().map(|span| span.response.n).min()?;
        let rates: Vec<f64> = seconds
            .iter()
            .filter(|second| second.length_s > 0.9)
            .map(|second| second.good_ops as f64 / second.length_s)
            .collect();
        let rates = Moments::from_values(&rates);
        let (whole_s, chance) = (point.seconds.unwrap_or(span_s).max(span_s), CHANCE_ERRORS);
        let by_chance =
            rates.mean - chance * (rates.variance * (1.0 / span_s + 1.0 / whole_s)).sqrt();
        let goodput_low = all.iter().map(|span| span.goodput).fold(by_chance, f64::min);
        let percentile = PERCENTILES.iter().find(|it| fewest >= it.ops_min);
        let response_high_ns = percentile.and_then(|of| {
            let longest = all.iter().filter_map(|it| it.response.quantile_ns(of.share));
            let value = point.response_ns.as_ref().and_then(of.value).map(|ns| ns as f64);
            let interval = point.response_interval_ns.as_ref().and_then(of.interval);
            let wider = (1.0 + whole_s / span_s).sqrt();
            let high = value.zip(interval).map(|(value, it)| {
                let half = (it[1] - value).max(0.0);
                value + half * wider
            });
            let high = high.filter(|high| high.is_finite());
            longest.chain(high).reduce(f64::max)
        });
        Some(Self { span_s, percentile, goodput_low, response_high_ns })
    }

    fn is_like(&self, span: &Span) -> bool {
        let response = self.response_of(&span.response);
        let is_fast = match (self.response_high_ns, response) {
            (Some(high), Some(response)) => response <= high,
            // Nothing ended that was due after the pulse.
            (Some(_), None) => false,
            (None, _) => true,
        };
        span.goodput >= self.goodput_low && is_fast
    }

    fn response_of(&self, times: &Coarse) -> Option<f64> {
        self.percentile.and_then(|of| times.quantile_ns(of.share))
    }

    /// Fills the recovery with the figures, and decides.
    fn compare(
        &self,
        recovery: &mut Recovery,
        (before, pulse): (&PointResult, ShapedPhase<'_>),
        seconds: &[&PhaseSecond],
    ) {
        let of_point = |point: &PointResult| {
            let value = self.percentile.and_then(|of| (of.value)(point.response_ns.as_ref()?));
            value.map(|ns| ns as f64)
        };
        recovery.percentile = self.percentile.map_or("", |of| of.name).to_owned();
        recovery.goodput_low_ops_per_s = self.goodput_low;
        recovery.response_high_ns = self.response_high_ns;
        recovery.before = RecoverySpan {
            goodput_ops_per_s: before.achieved_ops_per_s.unwrap_or_default(),
            response_ns: of_point(before),
        };
        let good: u64 = pulse.1.iter().map(|second| second.good_ops).sum();
        recovery.during = RecoverySpan {
            goodput_ops_per_s: good as f64 / recovery.pulse_ns.as_secs_f64().max(f64::MIN_POSITIVE),
            response_ns: of_point(pulse.0),
        };
        let mut last = None;
        for span in spans(seconds, self.span_s) {
            if recovery.recovered_after_ns.is_none() && self.is_like(&span) {
                recovery.recovered_after_ns = Some(Nanos::from_secs_f64(span.start_s));
            }
            last = Some(span);
        }
        recovery.outcome = match (last, recovery.recovered_after_ns) {
            (None, _) => RecoveryOutcome::NoHoldAfter,
            (Some(last), recovered) => {
                recovery.after = RecoverySpan {
                    goodput_ops_per_s: last.goodput,
                    response_ns: self.response_of(&last.response),
                };
                match recovered {
                    _ if before.not_counted.is_some() => RecoveryOutcome::NotSustainedBefore,
                    Some(_) => RecoveryOutcome::Recovered,
                    None => RecoveryOutcome::NotRecovered,
                }
            }
        };
    }
}

#[cfg(test)]
mod tests;
