//! What comparisons claim of servers whose truth is known: a thousand of each kind, with the noise
//! that runs have.

use plimsoll_model::comparison::{Claim, Ratio};
use plimsoll_model::result::{RunResult, Summary, Verdict};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{GroupInput, RunInput, Wishes, compare};

const SIMULATIONS: usize = 1_000;

/// How runs of one server scatter.
#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation of a run's logarithm.
    run: f64,
    /// Of what both runs of a pair have in common: the host at that hour.
    hour: f64,
    /// Share of the runs that come out slow, and by how much.
    slow: (f64, f64),
}

/// Smooth: 4.5 % from run to run.
const SMOOTH: Noise = Noise { run: 0.045, hour: 0.0, slow: (0.0, 0.0) };
/// With a slow mode of a tenth in one run of twenty.
const MODES: Noise = Noise { run: 0.045, hour: 0.0, slow: (0.05, 0.1) };
/// A host whose speed wanders by more than its runs scatter.
const WANDERING: Noise = Noise { run: 0.03, hour: 0.06, slow: (0.03, 0.06) };

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
        runs: values.iter().map(|value| run(*value)).collect(),
    };
    let groups: Vec<GroupInput> = sides.iter().map(group).collect();
    let found = compare(&groups, Wishes { paired, ..Wishes::default() }).unwrap();
    found.figures[0].ratios[0].clone()
}

fn run(value: f64) -> RunInput {
    let result = RunResult {
        verdict: Verdict { valid: true, ..Verdict::default() },
        summary: Summary { value: Some(value), ..Summary::default() },
        ..RunResult::default()
    };
    RunInput { bundle: String::new(), result, suite: toml::Table::new() }
}

/// Shares of the comparisons: the same server claimed different, the interval holds the truth, the
/// difference stated as detectable found when it was there.
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
        let held = [
            same.claim == Claim::Differs,
            low <= TRUTH && TRUTH <= high,
            shifted.claim == Claim::Differs,
        ];
        for (count, held) in counts.iter_mut().zip(held) {
            *count += usize::from(held);
        }
    }
    counts.map(|count| count as f64 / SIMULATIONS as f64)
}

#[track_caller]
fn check(noise: Noise, runs: usize, paired: bool) {
    let [claimed, covered, found] = shares(noise, runs, paired);
    let said = format!("{runs} runs: claimed {claimed}, covered {covered}, found {found}");
    assert!((0.03..=0.07).contains(&claimed), "{said}");
    assert!((0.93..=0.97).contains(&covered), "{said}");
    assert!(found >= 0.8, "{said}");
}

#[test]
fn one_server_twice_is_claimed_to_differ_in_about_one_comparison_of_twenty() {
    // Of three runs a side Welch's t claims a little less than it may.
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
fn pairs_see_less_where_the_host_wanders_than_runs_made_apart_would_miss() {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(9));
    let paired = compared(&mut random, WANDERING, 8, true, 1.0).detectable.unwrap();
    let apart = compared(&mut random, WANDERING, 8, false, 1.0).detectable.unwrap();
    assert!(paired < apart, "{paired} {apart}");
}
