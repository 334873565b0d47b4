//! When sessions and requests began: the rate over time, and whether arrivals are Poisson.

use plimsoll_model::units::Nanos;
use serde::Serialize;

/// Bins of the rate before neighbours are joined.
const BINS_MAX: usize = 100_000;
/// Arrivals of a window that are tested: enough to reject, and no more than fit into memory.
const WINDOW_ARRIVALS_MAX: usize = 20_000;
/// Fewer arrivals than this are no test.
const WINDOW_ARRIVALS_MIN: usize = 20;
/// A² of exponential times whose mean was estimated exceeds this in 5 of 100 samples, after the
/// factor for their number. D'Agostino and Stephens, Goodness-of-Fit Techniques (1986), table 4.11.
const ANDERSON_DARLING_LIMIT: f64 = 1.321;
/// Of 100 windows of a Poisson process this share passes a test.
const PASSES: f64 = 0.95;
/// Passes this improbable reject it: that the only window fails has 5 %, but for rounding.
const REJECTED: f64 = 0.05 + 1e-9;
/// Stamps coarser than this hide the times between arrivals.
pub(crate) const FINE_STAMP: Nanos = Nanos::from_millis(10);

/// Counts of requests and session begins over time.
#[derive(Clone, Debug)]
pub(crate) struct RateBins {
    start: Nanos,
    pub width: Nanos,
    /// Requests, sessions.
    pub counts: Vec<[u32; 2]>,
}

impl RateBins {
    /// Bins of a second from `start` on.
    pub const fn new(start: Nanos) -> Self {
        Self { start, width: Nanos::from_secs(1), counts: Vec::new() }
    }

    /// Counts a request, and whether it begins a session.
    pub fn count(&mut self, at: Nanos, begins_session: bool) {
        let mut bin = (at.saturating_sub(self.start).0 / self.width.0) as usize;
        while bin >= BINS_MAX {
            self.join(2);
            bin /= 2;
        }
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, [0; 2]);
        }
        let counts = &mut self.counts[bin];
        counts[0] = counts[0].saturating_add(1);
        counts[1] += u32::from(begins_session);
    }

    /// Joins each of this many neighbours.
    pub fn join(&mut self, bins: usize) {
        let sum = |chunk: &[[u32; 2]]| {
            chunk.iter().fold([0_u32; 2], |sum, it| {
                [sum[0].saturating_add(it[0]), sum[1].saturating_add(it[1])]
            })
        };
        self.counts = self.counts.chunks(bins).map(sum).collect();
        self.width = Nanos(self.width.0 * bins as u64);
    }
}

/// Are arrivals Poisson? Tested window by window: Paxson and Floyd, Wide-Area Traffic: The Failure of
/// Poisson Modeling, appendix A (ToN 1995).
#[derive(Clone, Debug)]
pub(crate) struct ArrivalTest {
    window: Nanos,
    /// Stamps that coarse hide the times between arrivals: only counts are tested.
    resolution: Nanos,
    start: Nanos,
    times: Vec<Nanos>,
    outcome: ArrivalTestOutcome,
}

/// Outcome of the test.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrivalTestOutcome {
    /// Length of a window.
    pub window_s: f64,
    /// Windows with at least 20 arrivals.
    pub windows: u32,
    /// Of them those whose times between arrivals are exponential by Anderson and Darling's A², at 5
    /// %; absent for stamps that hide them.
    pub exponential: Option<u32>,
    /// Of them those whose consecutive times are not correlated, at 5 %; absent likewise.
    pub independent: Option<u32>,
    /// Of them those whose counts in seconds have the variance of a Poisson process, at 5 %, both
    /// sides; present for stamps that hide the rest.
    pub dispersion: Option<u32>,
    /// A² of the last window, after the factor for its number of arrivals.
    pub last_a2: Option<f64>,
    /// Variance over mean of the counts in seconds of the last window.
    pub last_dispersion: Option<f64>,
}

impl ArrivalTest {
    /// Nothing tested yet.
    pub fn new(window: Nanos, resolution: Nanos, start: Nanos) -> Self {
        let outcome = ArrivalTestOutcome { window_s: window.as_secs_f64(), ..Default::default() };
        Self { window, resolution, start, times: Vec::new(), outcome }
    }

    /// The next arrival.
    pub fn arrival(&mut self, at: Nanos) {
        if at >= self.start + self.window {
            self.finish_window();
            let windows = at.saturating_sub(self.start).0 / self.window.0;
            self.start = Nanos(self.start.0 + windows * self.window.0);
        }
        if self.times.len() < WINDOW_ARRIVALS_MAX {
            self.times.push(at);
        }
    }

    /// After the last arrival: a window that is not over counts if there was no other.
    pub fn finish(mut self) -> ArrivalTestOutcome {
        if self.outcome.windows == 0 {
            self.finish_window();
        }
        self.outcome
    }

    fn finish_window(&mut self) {
        let times = std::mem::take(&mut self.times);
        if times.len() < WINDOW_ARRIVALS_MIN {
            return;
        }
        self.outcome.windows += 1;
        if self.resolution > FINE_STAMP {
            let (ratio, is_poisson) = dispersion(&times);
            self.outcome.last_dispersion = Some(ratio);
            *self.outcome.dispersion.get_or_insert(0) += u32::from(is_poisson);
            return;
        }
        let between: Vec<f64> =
            times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64()).collect();
        let a2 = anderson_darling(&between);
        let is_independent = lag_one(&between).abs() < 1.96 / (between.len() as f64).sqrt();
        self.outcome.last_a2 = Some(a2);
        *self.outcome.exponential.get_or_insert(0) += u32::from(a2 <= ANDERSON_DARLING_LIMIT);
        *self.outcome.independent.get_or_insert(0) += u32::from(is_independent);
    }
}

impl ArrivalTestOutcome {
    /// As many windows passed each test as of a Poisson process would; `None` without a window.
    pub fn is_poisson(&self) -> Option<bool> {
        let passed = [self.exponential, self.independent, self.dispersion];
        let is_likely = |passed: &u32| at_most(*passed, self.windows) > REJECTED;
        (self.windows > 0).then(|| passed.iter().flatten().all(is_likely))
    }
}

/// Anderson and Darling's A² of exponential times with this mean, times 1 + 0.6/n.
fn anderson_darling(times: &[f64]) -> f64 {
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Two stamps that are equal are no closer than the clock shows.
    let smallest = mean * 1e-9;
    let term = |(i, (low, high)): (usize, (&f64, &f64))| {
        let below = -(-low.max(smallest) / mean).exp_m1();
        (2.0 * i as f64 + 1.0) * (below.ln() - high.max(smallest) / mean)
    };
    let sum: f64 = sorted.iter().zip(sorted.iter().rev()).enumerate().map(term).sum();
    (-n - sum / n) * (1.0 + 0.6 / n)
}

/// Correlation of each time with the one before.
fn lag_one(times: &[f64]) -> f64 {
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let variance: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let both: f64 = times.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { both / variance } else { 1.0 }
}

/// Variance over mean of the counts in whole seconds, and whether a Poisson process has it in 95 of
/// 100 windows.
fn dispersion(times: &[Nanos]) -> (f64, bool) {
    let second = |at: &Nanos| at.0 / 1_000_000_000;
    let (first, last) = (second(&times[0]), second(&times[times.len() - 1]));
    let mut counts = vec![0.0; (last - first + 1) as usize];
    times.iter().for_each(|at| counts[(second(at) - first) as usize] += 1.0);
    // The first and the last second are not whole.
    let whole = if counts.len() > 3 { &counts[1..counts.len() - 1] } else { &counts[..] };
    let n = whole.len() as f64;
    let mean = whole.iter().sum::<f64>() / n;
    let squares: f64 = whole.iter().map(|count| (count - mean).powi(2)).sum();
    let freedom = n - 1.0;
    if freedom < 1.0 || mean == 0.0 {
        return (1.0, true);
    }
    // Wilson and Hilferty's approximation of the chi-squared distribution.
    let limit = |z: f64| {
        let part = 2.0 / (9.0 * freedom);
        freedom * (1.0 - part + z * part.sqrt()).powi(3)
    };
    let statistic = squares / mean;
    (statistic / freedom, (limit(-1.96)..=limit(1.96)).contains(&statistic))
}

/// Probability of at most `passed` passes in `windows`.
fn at_most(passed: u32, windows: u32) -> f64 {
    let mut probability = (1.0 - PASSES).powi(windows as i32);
    if probability == 0.0 {
        // Of more windows than that a normal distribution does.
        let n = f64::from(windows);
        let z = (f64::from(passed) + 0.5 - n * PASSES) / (n * PASSES * (1.0 - PASSES)).sqrt();
        return if z > -1.645 { 1.0 } else { 0.0 };
    }
    let mut sum = probability;
    for k in 0..passed {
        let odds = PASSES / (1.0 - PASSES);
        probability *= f64::from(windows - k) / f64::from(k + 1) * odds;
        sum += probability;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times between arrivals drawn by `draw`, for an hour.
    fn outcome(resolution: Nanos, mut draw: impl FnMut(f64) -> f64) -> ArrivalTestOutcome {
        let mut test = ArrivalTest::new(Nanos::from_secs(60), resolution, Nanos::ZERO);
        let (mut state, mut at) = (7_u64, 0.0);
        while at < 3_600.0 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            at += draw((state >> 11) as f64 / (1_u64 << 53) as f64);
            test.arrival(Nanos::from_secs_f64(at));
        }
        test.finish()
    }

    #[test]
    fn a_poisson_process_passes_and_others_do_not() {
        let exponential = |unit: f64| -(1.0 - unit).ln() / 20.0;
        for resolution in [Nanos(1), Nanos::from_secs(1)] {
            let poisson = outcome(resolution, exponential);
            assert!(poisson.windows >= 59 && poisson.is_poisson() == Some(true), "{poisson:?}");
            let even = outcome(resolution, |_| 0.0499);
            assert_eq!(even.is_poisson(), Some(false), "{even:?}");
            let bursts = outcome(resolution, |unit| if unit < 0.9 { 0.001 } else { 0.49 });
            assert_eq!(bursts.is_poisson(), Some(false), "{bursts:?}");
        }
        assert_eq!(ArrivalTestOutcome::default().is_poisson(), None);
    }

    #[test]
    fn a_single_window_is_enough_to_reject() {
        let outcome = |exponential| ArrivalTestOutcome {
            windows: 1,
            exponential: Some(exponential),
            ..ArrivalTestOutcome::default()
        };
        assert_eq!([0, 1].map(|passed| outcome(passed).is_poisson()), [Some(false), Some(true)]);
    }

    #[test]
    fn bins_are_joined_when_a_log_is_long() {
        let mut bins = RateBins::new(Nanos::ZERO);
        for second in 0..150_000 {
            bins.count(Nanos::from_secs(second), second % 10 == 0);
        }
        assert_eq!((bins.width, bins.counts.len()), (Nanos::from_secs(2), 75_000));
        assert!(bins.counts.iter().all(|counts| counts[0] == 2));
    }

    #[test]
    fn probabilities_of_passes_are_binomial() {
        assert!((at_most(10, 10) - 1.0).abs() < 1e-9);
        assert!((at_most(9, 10) - (1.0 - 0.95_f64.powi(10))).abs() < 1e-9);
        assert!(at_most(500, 1_000) < 0.05 && at_most(950, 1_000) > 0.05);
    }
}
