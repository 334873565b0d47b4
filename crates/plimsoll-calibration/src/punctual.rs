//! The highest rate at which ops are sent on time: doubled until they no longer are, then halved
//! towards it. The server answers at once, so that only the generator counts.

use plimsoll_analysis::climb::{
    Bracket, Ceiling, ClimbConfig, Level, LevelState, Next, Policy, levels, next,
};
use plimsoll_analysis::times::quantile_ns;
use plimsoll_model::certificate::{PunctualProbe, PunctualRate};
use plimsoll_model::units::Nanos;

use super::cases::only;
use crate::trial::{Observation, Pattern, Trial};
use crate::{Bench, Timing};
use plimsoll_protocol::host::HostError;

/// Send lag p99 that is still on time.
const SEND_LAG_P99_MAX: Nanos = Nanos::from_micros(100);
/// Fewer ops done than this share of those due: the server, or the generator, did not keep up.
const DONE_MIN_RATIO: f64 = 0.98;
/// The first rate, and the bounds of the search.
const CLIMB: ClimbConfig = ClimbConfig {
    first: 20_000.0,
    growth_ratio: 2.0,
    top: 0.0,
    // Precise enough: within a fifth of the lower rate.
    resolution_ratio: 1.0 / 6.0,
    loads_max: u32::MAX,
    claims_max: 0,
    min: 100.0,
    max: 1_000_000.0,
    whole_from: f64::INFINITY,
};
/// In hundredths of a percent.
const P99_E2: u32 = 9_900;

/// Searches; `show` is called with each rate before it is tried.
pub(crate) fn search(
    bench: &dyn Bench,
    timing: &Timing,
    mut show: impl FnMut(f64),
) -> Result<PunctualRate, HostError> {
    let server = bench.start(bench.proper(), "service=const:0,servers=1", None)?;
    let mut tries: Vec<PunctualProbe> = Vec::new();
    loop {
        let levels = by_rate(&tries);
        let rate_ops_per_s = match next(&OnTime, &levels, u32::MAX) {
            Next::Try(rate_ops_per_s) => rate_ops_per_s,
            Next::Done(Bracket { sustained, missed }) => {
                return Ok(PunctualRate {
                    send_lag_p99_max_ns: SEND_LAG_P99_MAX,
                    highest_ops_per_s: sustained,
                    missed_ops_per_s: missed.map(|(missed, _)| missed.load),
                    probes: levels.iter().map(middle).collect(),
                });
            }
        };
        if levels.last().is_none_or(|last| last.load != rate_ops_per_s) {
            show(rate_ops_per_s);
        }
        let trial = Trial {
            name: format!("punctual-{:02}", tries.len() + 1),
            wire: bench.proper(),
            load: Pattern::Poisson,
            points: vec![rate_ops_per_s],
            pacing: None,
            warm_up: timing.probe_warm_up,
            window: timing.probe,
        };
        tries.push(probe(only(&bench.run_on(&trial, &server)?)?, rate_ops_per_s));
    }
}

fn by_rate(tries: &[PunctualProbe]) -> Vec<Level<'_, PunctualProbe>> {
    levels(tries.iter().map(|probe| (probe.rate_ops_per_s, probe)))
}

/// Rates at which ops are sent on time.
struct OnTime;

impl Policy for OnTime {
    type Try = PunctualProbe;

    fn climb_config(&self) -> ClimbConfig {
        CLIMB
    }

    /// One that was on time is believed. One that was not may have met a pause of the host: the
    /// middle of three decides, as soon as it is known.
    fn level_state(&self, level: &Level<'_, PunctualProbe>) -> LevelState {
        let on_time = level.tries.iter().filter(|probe| probe.punctual).count();
        match (on_time, level.tries.len() - on_time) {
            (_, 0) | (2.., _) => LevelState::Sustained,
            (_, 2..) => LevelState::Missed(Ceiling::Generator),
            _ => LevelState::Doubtful(Ceiling::Generator),
        }
    }

    /// Round figures are easier to read.
    fn between(&self, sustained: f64, missed: f64) -> f64 {
        ((sustained * missed).sqrt() / 10.0).round() * 10.0
    }
}

fn probe(observation: &Observation, rate_ops_per_s: f64) -> PunctualProbe {
    let send_lag_p99_ns = Nanos(quantile_ns(&observation.times.send_lag, P99_E2));
    let done_ratio = observation.done_ratio();
    let punctual = send_lag_p99_ns < SEND_LAG_P99_MAX
        && done_ratio >= DONE_MIN_RATIO
        && observation.troubles() == 0;
    PunctualProbe { rate_ops_per_s, tries: 1, send_lag_p99_ns, done_ratio, punctual }
}

/// The middle one by send lag; of two that agree the later is as good.
fn middle(level: &Level<'_, PunctualProbe>) -> PunctualProbe {
    let mut tries = level.tries.clone();
    tries.sort_by_key(|probe| (!probe.punctual, probe.send_lag_p99_ns));
    PunctualProbe { tries: tries.len() as u32, ..*tries[tries.len() / 2] }
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

    fn state_of(lags_us: &[u64]) -> LevelState {
        OnTime.level_state(&by_rate(&tried(lags_us))[0])
    }

    fn middle_of(lags_us: &[u64]) -> PunctualProbe {
        middle(&by_rate(&tried(lags_us))[0])
    }

    #[test]
    fn one_unlucky_probe_does_not_end_the_search_and_two_of_three_do() {
        let again = LevelState::Doubtful(Ceiling::Generator);
        assert_eq!(state_of(&[40]), LevelState::Sustained);
        assert_eq!(state_of(&[9_000]), again, "a pause of the host, perhaps");
        let missed = LevelState::Missed(Ceiling::Generator);
        assert_eq!(state_of(&[9_000, 300]), missed, "two of three, whatever the third");
        assert_eq!(state_of(&[9_000, 40]), again);
        assert_eq!(state_of(&[9_000, 40, 50]), LevelState::Sustained);
        assert!(middle_of(&[9_000, 40, 50]).punctual);
        assert!(!middle_of(&[9_000, 300]).punctual);
        let late = middle_of(&[9_000, 40, 300]);
        assert_eq!((late.punctual, late.tries), (false, 3));
    }

    /// Searches a generator that is punctual below `limit`: the highest rate kept, the lowest
    /// missed, how many rates were tried.
    fn search_for(limit: f64) -> (Option<f64>, Option<f64>, usize) {
        let mut tries = Vec::new();
        loop {
            let levels = by_rate(&tries);
            let rate_ops_per_s = match next(&OnTime, &levels, u32::MAX) {
                Next::Try(rate) => rate,
                Next::Done(Bracket { sustained, missed }) => {
                    return (sustained, missed.map(|(missed, _)| missed.load), levels.len());
                }
            };
            let punctual = rate_ops_per_s < limit;
            tries.push(PunctualProbe { rate_ops_per_s, punctual, ..PunctualProbe::default() });
            assert!(tries.len() < 40, "{tries:?}");
        }
    }

    #[test]
    fn any_limit_is_found_to_a_fifth_in_a_few_steps() {
        for limit in [150.0, 900.0, 5_001.0, 43_000.0, 777_777.0] {
            let (kept, missed, tried) = search_for(limit);
            let (kept, missed) = (kept.unwrap(), missed.unwrap());
            assert!(kept < limit && limit <= missed && missed / kept <= 1.2001, "{limit}");
            assert!(tried <= 13, "{limit}: {tried}");
        }
    }

    #[test]
    fn a_generator_that_is_never_or_always_punctual_ends_the_search() {
        assert_eq!(search_for(0.0).0, None);
        assert_eq!(search_for(f64::INFINITY).1, None);
    }
}
