//! Had the server settled when the window began?

use plimsoll_model::event::Phase;
use plimsoll_model::finding::Rule;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

use super::Evidence;
use crate::sampling::Moments;

/// Seconds that a half of the window needs before its scatter can be evaluated.
const HALF_SECONDS_MIN: usize = 4;
/// Halves may differ by this share: less does not move a result beyond its other limits.
const DRIFT_MAX_RATIO: f64 = 0.05;
/// Welch's t beyond which a difference is no scatter. Higher than the textbook's 2 because the
/// seconds of a run are not independent of each other.
const DRIFT_T_MIN: f64 = 4.0;
/// Mean response times of the halves may differ by this share before it is reported.
const RESPONSE_DRIFT_MIN_RATIO: f64 = 0.25;
/// A second shorter than this is part of one; its rate scatters more than the others.
const WHOLE_SECOND_NS_MIN: u64 = NANOS_PER_SECOND * 9 / 10;

struct Halves {
    first: f64,
    second: f64,
    /// Difference over its standard error; `None` when the halves are too short.
    t: Option<f64>,
}

impl Halves {
    fn drift_ratio(&self) -> f64 {
        match self.first.max(self.second) {
            0.0 => 0.0,
            larger => (self.second - self.first) / larger,
        }
    }
}

/// Throughput of the window's halves differs by more than its limit and more than scatter.
pub(super) fn not_steady(e: &Evidence<'_>) -> Option<Rule> {
    if !e.is_steady() {
        return None;
    }
    let halves = halves(e)?;
    let beyond_scatter = halves.t? > DRIFT_T_MIN;
    let changed = beyond_scatter && halves.drift_ratio().abs() > DRIFT_MAX_RATIO;
    changed.then(|| Rule::NotSteady {
        first_ops_per_s: halves.first,
        second_ops_per_s: halves.second,
        change_ratio: halves.drift_ratio(),
        limit_ratio: DRIFT_MAX_RATIO,
    })
}

fn halves(e: &Evidence<'_>) -> Option<Halves> {
    if e.suite.workload.is_recorded() {
        return None;
    }
    let rates: Vec<f64> = e
        .view
        .record
        .seconds
        .iter()
        .filter(|s| s.phase == Phase::Measure && s.length_ns >= WHOLE_SECOND_NS_MIN)
        .map(|s| s.done as f64 * NANOS_PER_SECOND as f64 / s.length_ns as f64)
        .collect();
    compare_halves(&rates)
}

/// First against second half of a series of one value a second.
fn compare_halves(values: &[f64]) -> Option<Halves> {
    let half = values.len() / 2;
    if half == 0 {
        return None;
    }
    let (first, second) = (&values[..half], &values[values.len() - half..]);
    let [first, second] = [first, second].map(Moments::from_values);
    let standard_error = ((first.variance + second.variance) / half as f64).sqrt();
    let difference = (second.mean - first.mean).abs();
    let t = match standard_error {
        0.0 if difference == 0.0 => 0.0,
        0.0 => f64::INFINITY,
        error => difference / error,
    };
    let t = (half >= HALF_SECONDS_MIN).then_some(t);
    Some(Halves { first: first.mean, second: second.mean, t })
}

/// An open load's throughput follows the schedule, so a server that is still warming up shows in
/// its response time alone.
pub(super) fn response_drift(e: &Evidence<'_>) -> Option<Rule> {
    if !e.is_steady() {
        return None;
    }
    let seconds = e.seconds.filter(|_| !e.suite.workload.is_recorded())?;
    let batches = seconds.batches(|second| second.response);
    let means: Vec<f64> =
        batches.iter().filter(|b| b.n > 0).map(|b| b.sum_ns / b.n as f64).collect();
    let halves = compare_halves(&means)?;
    let beyond_chance = halves.t.is_some_and(|t| t > DRIFT_T_MIN);
    let changed = beyond_chance && halves.drift_ratio().abs() >= RESPONSE_DRIFT_MIN_RATIO;
    changed.then_some(Rule::ResponseDrift {
        first_ns: Nanos(halves.first as u64),
        second_ns: Nanos(halves.second as u64),
    })
}

/// A load that changes is followed by what is measured: neither rule above says anything of it.
pub(super) fn changing_load(e: &Evidence<'_>) -> Option<Rule> {
    e.suite.workload.is_recorded().then_some(Rule::ChangingLoad)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::units::Nanos;

    use crate::raw::PointTimes;
    use crate::testing::{PointBuilder, Recording, TestPoint, check_rule};
    use plimsoll_model::bundle::IntervalSlice;
    use plimsoll_model::event::{OpTimes, Phase};

    fn with_rates(rates: impl Fn(usize) -> u64) -> TestPoint {
        let mut point = PointBuilder::closed(32).build();
        let seconds = point.record.seconds.iter_mut();
        for (i, second) in seconds.filter(|s| s.phase == Phase::Measure).enumerate() {
            second.done = rates(i);
        }
        point
    }

    fn with_response(response_ns: impl Fn(u32) -> u64) -> TestPoint {
        let mut point = PointBuilder::open(1_000.0).build();
        let second = |second| {
            let mut times = OpTimes::new();
            times.response.record_n(response_ns(second), 1_000).unwrap();
            let start = Nanos::from_secs(u64::from(second));
            IntervalSlice {
                length: Nanos::from_secs(1),
                second,
                start,
                phase: Phase::Measure,
                ops: vec![times],
            }
        };
        point.seconds = Some(PointTimes::from_seconds((0..30).map(second)));
        point
    }

    #[test]
    fn a_response_time_that_falls_through_the_window_is_a_warning() {
        let warns = |point: &TestPoint| {
            point.verdict().warnings.iter().any(|warning| warning.rule.name() == "response_drift")
        };
        assert!(warns(&with_response(|second| if second < 12 { 40_000_000 } else { 1_000_000 })));
        assert!(!warns(&with_response(|second| 1_000_000 + u64::from(second % 3) * 100_000)));
        let step = |second| if second < 15 { 1_000_000 } else { 1_200_000 };
        assert!(!warns(&with_response(step)), "a fifth is let pass");
    }

    #[test]
    fn a_server_that_still_warms_up_is_not_steady() {
        let rising = with_rates(|i| 1_000 + 20 * i as u64);
        let flat = with_rates(|i| 1_000 + (i as u64 % 3));
        check_rule("not_steady", &rising, &flat);
    }

    #[test]
    fn a_load_that_is_a_recording_need_not_be_steady() {
        let mut rising = with_rates(|i| 1_000 + 20 * i as u64);
        rising.suite.workload = Recording {}.into();
        assert!(!rising.reasons().contains(&"not_steady"));
        let warnings = rising.verdict().warnings;
        assert!(warnings.iter().any(|warning| warning.rule.name() == "changing_load"));
    }

    #[test]
    fn a_step_of_less_than_the_limit_is_let_pass() {
        let step =
            |by: u64| with_rates(move |i| 1_000 + (i as u64 % 2) + if i < 15 { 0 } else { by });
        check_rule("not_steady", &step(56), &step(50));
    }

    #[test]
    fn a_window_too_short_to_tell_scatter_from_drift_is_not_judged() {
        let mut point = with_rates(|i| 1_000 + 500 * i as u64);
        let first_measured = 10;
        point.record.seconds.truncate(first_measured + 3);
        assert!(!point.reasons().contains(&"not_steady"));
    }

    #[test]
    fn noise_alone_does_not_fire() {
        for seed in 1..100u64 {
            // A fixed xorshift: 20 % of scatter around 1,000 ops/s.
            let state = std::cell::Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let noise = |_| {
                let mut x = state.get();
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                state.set(x);
                800 + x % 400
            };
            let point = with_rates(noise);
            assert!(!point.reasons().contains(&"not_steady"), "seed {seed}");
        }
    }
}
