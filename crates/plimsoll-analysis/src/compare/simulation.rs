//! Claims of comparisons of simulated servers with a known true ratio: a thousand of each kind,
//! with the noise of measured runs ([`measured`]), and of worse hosts.

mod measured;

use plimsoll_model::comparison::{Claim, Ratio};
use plimsoll_model::result::{PointResult, RunResult, Summary, TimeSummary, Verdict};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{CompareOptions, GroupInput, RunInput, compare};

const SIMULATIONS: usize = 1_000;

/// How runs of one server scatter.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Standard deviation of a run's logarithm.
    run: f64,
    /// Noise that both runs of a pair share: the host at that hour.
    hour: f64,
    /// Share of the runs that come out slow, and by how much.
    slow: (f64, f64),
}

/// Smooth: 4.5 % from run to run.
const SMOOTH: Noise = Noise { run: 0.045, hour: 0.0, slow: (0.0, 0.0) };
/// With a slow mode of a tenth in one run of twenty.
const MODES: Noise = Noise { run: 0.045, hour: 0.0, slow: (0.05, 0.1) };
/// A host whose speed drifts by more than its runs scatter.
const WANDERING: Noise = Noise { run: 0.03, hour: 0.06, slow: (0.03, 0.06) };

/// Values further from the median than this many standard deviations belong to a slow mode.
const SLOW_MIN: f64 = 3.0;
/// The median deviation times this is the standard deviation of a normal distribution.
const OF_MEDIAN: f64 = 1.4826;

impl Noise {
    /// The noise of runs of one server, made in pairs. Larger is slower.
    fn from_pairs(pairs: &[[f64; 2]]) -> Self {
        let logs: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.map(f64::ln)).collect();
        let middle = median(logs.concat());
        let far = |log: f64| (log - middle).abs();
        let usual = OF_MEDIAN * median(logs.iter().flatten().map(|log| far(*log)).collect());
        let is_slow = |log: &f64| *log - middle > SLOW_MIN * usual;
        let slow: Vec<f64> = logs.iter().flatten().copied().filter(is_slow).collect();
        let calm: Vec<[f64; 2]> =
            logs.iter().copied().filter(|pair| !pair.iter().any(is_slow)).collect();
        let run = mean(calm.iter().map(|[a, b]| (a - b).powi(2) / 2.0));
        let centre = mean(calm.concat().into_iter());
        let of_pairs = mean(calm.iter().map(|[a, b]| ((a + b) / 2.0 - centre).powi(2)));
        Self {
            run: run.sqrt(),
            // Scatter of the pairs beyond that of their runs.
            hour: (of_pairs - run / 2.0).max(0.0).sqrt(),
            slow: match slow.is_empty() {
                true => (0.0, 0.0),
                false => {
                    let share = slow.len() as f64 / (2 * logs.len()) as f64;
                    (share, mean(slow.iter().map(|log| far(*log))))
                }
            },
        }
    }

    /// The same noise for runs that are not made in pairs.
    fn apart(self) -> Self {
        Self { run: self.run.hypot(self.hour), hour: 0.0, ..self }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() / count as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn run(&mut self, noise: Noise, hour: f64, speed: f64) -> f64 {
        let slow = if self.unit() < noise.slow.0 { noise.slow.1 } else { 0.0 };
        30_000.0 * speed * (hour + noise.run * self.normal() - slow).exp()
    }
}

/// One comparison of servers whose speeds have this ratio.
fn compared(random: &mut Random, noise: Noise, runs: usize, paired: bool, truth: f64) -> Ratio {
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let hour = noise.hour * random.normal();
        sides[0].push(random.run(noise, hour, 1.0));
        sides[1].push(random.run(noise, hour, truth));
    }
    let group = |values: &Vec<f64>| GroupInput {
        label: String::new(),
        is_named: false,
        runs: values.iter().map(|value| run(*value)).collect(),
    };
    let groups: Vec<GroupInput> = sides.iter().map(group).collect();
    let comparison =
        compare(&groups, CompareOptions { paired, ..CompareOptions::default() }).unwrap();
    comparison.figures[0].ratios[0].clone()
}

fn run(value: f64) -> RunInput {
    let result = RunResult {
        verdict: Verdict { valid: true, ..Verdict::default() },
        summary: Summary { value: Some(value), ..Summary::default() },
        ..RunResult::default()
    };
    RunInput { bundle: String::new(), result, suite: toml::Table::new() }
}

/// Shares of the comparisons: the same server claimed different, the interval holds the true ratio,
/// the detectable difference found when it was there.
fn shares(noise: Noise, runs: usize, paired: bool) -> [f64; 3] {
    const TRUTH: f64 = 1.2;
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(runs as u64));
    let mut counts = [0; 3];
    for _ in 0..SIMULATIONS {
        let same = compared(&mut random, noise, runs, paired, 1.0);
        let other = compared(&mut random, noise, runs, paired, TRUTH);
        let detectable = same.detectable.unwrap();
        let shifted = compared(&mut random, noise, runs, paired, detectable);
        let [low, high] = other.interval.unwrap();
        let outcomes = [
            same.claim == Claim::Differs,
            low <= TRUTH && TRUTH <= high,
            shifted.claim == Claim::Differs,
        ];
        for (count, outcome) in counts.iter_mut().zip(outcomes) {
            *count += usize::from(outcome);
        }
    }
    counts.map(|count| count as f64 / SIMULATIONS as f64)
}

#[track_caller]
fn check(noise: Noise, runs: usize, paired: bool) {
    let [claimed, covered, detected] = shares(noise, runs, paired);
    let message =
        format!("{noise:?}, {runs} runs: claimed {claimed}, covered {covered}, found {detected}");
    assert!((0.03..=0.07).contains(&claimed), "{message}");
    assert!((0.93..=0.97).contains(&covered), "{message}");
    assert!(detected >= 0.8, "{message}");
}

#[test]
fn one_server_twice_is_claimed_to_differ_in_about_one_comparison_of_twenty() {
    // With three runs a side Welch's t claims a little less often than it may.
    for (noise, runs) in [(SMOOTH, 3), (SMOOTH, 5), (SMOOTH, 10), (MODES, 5), (MODES, 15)] {
        check(noise, runs, false);
    }
}

#[test]
fn pairs_hold_the_same_where_the_host_wanders() {
    for runs in [3, 5, 10, 15] {
        check(WANDERING, runs, true);
    }
}

#[test]
fn with_the_noise_of_measured_runs_claims_are_as_right_as_they_say() {
    for pairs in measured::CALM {
        let noise = Noise::from_pairs(pairs);
        check(noise, 5, true);
        check(noise.apart(), 5, false);
    }
}

#[test]
fn where_some_runs_are_many_times_slower_less_is_claimed_and_not_more() {
    let noise = Noise::from_pairs(measured::WEB_P50_AT_20000);
    assert!(noise.slow.1 > 2.0 && noise.run < 0.1, "{noise:?}");
    for (noise, paired) in [(noise, true), (noise.apart(), false)] {
        let [claimed, covered, detected] = shares(noise, 5, paired);
        assert!(
            claimed <= 0.05 && covered >= 0.95 && detected >= 0.7,
            "{claimed} {covered} {detected}"
        );
    }
}

/// Two load points of a run whose figures scatter each by itself.
fn run_of_points(random: &mut Random, noise: Noise) -> RunInput {
    let mut point = |requested: f64| {
        let mut figure = || random.run(noise, 0.0, 1.0);
        let mut time = || Some(figure() as u64);
        let (p50, p90, p95, p99) = (time(), time(), time(), time());
        let times = TimeSummary { p50, p90, p95, p99, ..TimeSummary::default() };
        PointResult {
            valid: true,
            requested,
            achieved_ops_per_s: Some(figure()),
            response_ns: Some(times),
            ..PointResult::default()
        }
    };
    let points = vec![point(100.0), point(200.0)];
    let verdict = Verdict { valid: true, ..Verdict::default() };
    let result = RunResult { verdict, points, ..RunResult::default() };
    RunInput { bundle: String::new(), result, suite: toml::Table::new() }
}

#[test]
fn ten_figures_of_one_server_are_claimed_to_differ_no_more_often_than_one() {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(10));
    let (mut claimed, mut leave_one_out) = (0, 0);
    for _ in 0..SIMULATIONS {
        let groups = [(); 2].map(|()| GroupInput {
            label: String::new(),
            is_named: false,
            runs: (0..5).map(|_| run_of_points(&mut random, SMOOTH)).collect(),
        });
        let comparison =
            compare(&groups, CompareOptions { paired: true, ..CompareOptions::default() }).unwrap();
        assert_eq!(comparison.figures.len(), 10);
        let is_some =
            |claim: Claim| comparison.figures.iter().any(|row| row.ratios[0].claim == claim);
        claimed += usize::from(is_some(Claim::Differs));
        leave_one_out += usize::from(is_some(Claim::Differs) || is_some(Claim::MayBeChance));
    }
    let [claimed, leave_one_out] = [claimed, leave_one_out].map(|n| n as f64 / SIMULATIONS as f64);
    assert!((0.03..=0.07).contains(&claimed), "{claimed}");
    assert!(leave_one_out > 0.3, "{leave_one_out}: it is by sharing that they are so few");
}

#[test]
fn pairs_see_less_where_the_host_wanders_than_runs_made_apart_would_miss() {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(9));
    let paired = compared(&mut random, WANDERING, 8, true, 1.0).detectable.unwrap();
    let apart = compared(&mut random, WANDERING, 8, false, 1.0).detectable.unwrap();
    assert!(paired < apart, "{paired} {apart}");
}
