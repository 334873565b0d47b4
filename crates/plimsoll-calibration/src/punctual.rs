//! The highest rate at which ops leave on time: doubled until they no longer do, then halved
//! towards it. The server answers at once, so that only the generator counts.

use plimsoll_analysis::times::quantile_ns;
use plimsoll_model::certificate::{PunctualProbe, PunctualRate};
use plimsoll_model::units::Nanos;

use super::cases::only;
use crate::trial::{Pattern, Seen, Trial};
use crate::{Bench, Timing};
use plimsoll_protocol::host::HostError;

/// Send lag p99 that is still on time.
const SEND_LAG_P99_MAX: Nanos = Nanos::from_micros(100);
/// Fewer ops done than this share of those due: the server, or we, did not keep up.
const DONE_MIN_RATIO: f64 = 0.98;
const FIRST_OPS_PER_S: f64 = 20_000.0;
const LOWEST_OPS_PER_S: f64 = 100.0;
const HIGHEST_OPS_PER_S: f64 = 1_000_000.0;
/// Of one rate.
const TRIES_MAX: usize = 3;
/// Known well enough.
const STEP_RATIO: f64 = 1.2;
/// In hundredths of a percent.
const P99_E2: u32 = 9_900;

/// Searches; `show` hears of each rate before it is tried.
pub(crate) fn search(
    bench: &dyn Bench,
    timing: &Timing,
    mut show: impl FnMut(f64),
) -> Result<PunctualRate, HostError> {
    let server = bench.start(bench.proper(), "service=const:0,servers=1", None)?;
    let mut bounds = Bounds::default();
    let mut probes: Vec<PunctualProbe> = Vec::new();
    let mut runs = 0;
    while let Some(rate_ops_per_s) = bounds.next() {
        show(rate_ops_per_s);
        let mut tries = Vec::new();
        while wants_another(&tries) {
            runs += 1;
            let trial = Trial {
                name: format!("punctual-{runs:02}"),
                wire: bench.proper(),
                load: Pattern::Poisson,
                points: vec![rate_ops_per_s],
                pacing: None,
                warm_up: timing.probe_warm_up,
                window: timing.probe,
            };
            tries.push(probe(only(&bench.run_on(&trial, &server)?)?, rate_ops_per_s));
        }
        let probe = middle(tries);
        bounds.learn(rate_ops_per_s, probe.punctual);
        probes.push(probe);
    }
    Ok(PunctualRate {
        send_lag_p99_max_ns: SEND_LAG_P99_MAX,
        highest_ops_per_s: bounds.kept,
        missed_ops_per_s: bounds.missed,
        probes,
    })
}

/// Between which rates the answer lies.
#[derive(Debug, Default)]
struct Bounds {
    kept: Option<f64>,
    missed: Option<f64>,
}

impl Bounds {
    /// The next rate to try; `None` when it is known well enough.
    fn next(&self) -> Option<f64> {
        Some(match (self.kept, self.missed) {
            (None, None) => FIRST_OPS_PER_S,
            (Some(kept), None) if kept >= HIGHEST_OPS_PER_S => return None,
            (None, Some(missed)) if missed <= LOWEST_OPS_PER_S => return None,
            (Some(kept), None) => (kept * 2.0).min(HIGHEST_OPS_PER_S),
            (None, Some(missed)) => (missed / 2.0).max(LOWEST_OPS_PER_S),
            (Some(kept), Some(missed)) if missed / kept <= STEP_RATIO => return None,
            // Round figures are easier to read.
            (Some(kept), Some(missed)) => ((kept * missed).sqrt() / 10.0).round() * 10.0,
        })
    }

    fn learn(&mut self, rate: f64, punctual: bool) {
        let bound = if punctual { &mut self.kept } else { &mut self.missed };
        *bound = Some(rate);
    }
}

fn probe(seen: &Seen, rate_ops_per_s: f64) -> PunctualProbe {
    let send_lag_p99_ns = Nanos(quantile_ns(&seen.times.send_lag, P99_E2));
    let done_ratio = seen.done_ratio();
    let punctual =
        send_lag_p99_ns < SEND_LAG_P99_MAX && done_ratio >= DONE_MIN_RATIO && seen.troubles() == 0;
    PunctualProbe { rate_ops_per_s, tries: 1, send_lag_p99_ns, done_ratio, punctual }
}

/// One that was on time is believed. One that was not may have met a pause of the host: the middle
/// of three decides, as soon as it is known.
fn wants_another(tries: &[PunctualProbe]) -> bool {
    let on_time = tries.iter().filter(|probe| probe.punctual).count();
    match tries.len() {
        0 => true,
        1 => on_time == 0,
        n => n < TRIES_MAX && on_time < 2 && n - on_time < 2,
    }
}

/// The middle one by send lag; of two that agree the later is as good.
fn middle(mut tries: Vec<PunctualProbe>) -> PunctualProbe {
    tries.sort_by_key(|probe| (!probe.punctual, probe.send_lag_p99_ns));
    let middle = tries.len() / 2;
    PunctualProbe { tries: tries.len() as u32, ..tries[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(lags_us: &[u64]) -> Vec<PunctualProbe> {
        let probe = |lag_us: &u64| PunctualProbe {
            send_lag_p99_ns: Nanos::from_micros(*lag_us),
            punctual: *lag_us < 100,
            tries: 1,
            ..PunctualProbe::default()
        };
        lags_us.iter().map(probe).collect()
    }

    #[test]
    fn one_unlucky_probe_does_not_end_the_search_and_two_of_three_do() {
        assert!(wants_another(&tried(&[])) && !wants_another(&tried(&[40])));
        assert!(wants_another(&tried(&[9_000])), "a pause of the host, perhaps");
        assert!(!wants_another(&tried(&[9_000, 300])), "two of three, whatever the third");
        assert!(wants_another(&tried(&[9_000, 40])));
        assert!(!wants_another(&tried(&[9_000, 40, 50])));
        assert!(middle(tried(&[9_000, 40, 50])).punctual);
        assert!(!middle(tried(&[9_000, 300])).punctual);
        let late = middle(tried(&[9_000, 40, 300]));
        assert_eq!((late.punctual, late.tries), (false, 3));
    }

    /// Searches a generator that is punctual below `limit`; how many rates were tried.
    fn search_for(limit: f64) -> (Bounds, usize) {
        let mut bounds = Bounds::default();
        let mut tried = 0;
        while let Some(rate) = bounds.next() {
            bounds.learn(rate, rate < limit);
            tried += 1;
            assert!(tried < 20, "{bounds:?}");
        }
        (bounds, tried)
    }

    #[test]
    fn any_limit_is_found_to_a_fifth_in_a_few_steps() {
        for limit in [150.0, 900.0, 5_001.0, 43_000.0, 777_777.0] {
            let (Bounds { kept, missed }, tried) = search_for(limit);
            let (kept, missed) = (kept.unwrap(), missed.unwrap());
            assert!(kept < limit && limit <= missed && missed / kept <= STEP_RATIO, "{limit}");
            assert!(tried <= 13, "{limit}: {tried}");
        }
    }

    #[test]
    fn a_generator_that_is_never_or_always_punctual_ends_the_search() {
        assert_eq!(search_for(0.0).0.kept, None);
        assert_eq!(search_for(f64::INFINITY).0.missed, None);
    }
}
