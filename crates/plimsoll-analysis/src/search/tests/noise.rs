//! Searches on machines that are not quiet: the results must lie together.

use super::*;

/// Searches of a simulation.
const SEARCHES: u64 = 200;
/// A peak agrees with the others when it is this close to their median.
const TOGETHER_RATIO: f64 = 0.1;
/// Share of the peaks that must agree.
const TOGETHER_MIN_RATIO: f64 = 0.8;
/// Steps for which a quick run has time.
const QUICK_STEPS: u32 = 14;

/// A stream of numbers in 0..1 (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1, near enough to normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// A server on a machine where other things happen.
#[derive(Clone, Copy)]
struct Machine {
    capacity: f64,
    /// Standard deviation of the throughput of a point.
    scatter: f64,
    /// Share of points in which the machine stands still for a good part of the window.
    hiccups: f64,
    /// Share of points that the generator invalidates.
    spoiled: f64,
    /// The highest load the generator can send at all.
    generator: f64,
    /// Capacity on the small data set of the first probe, as a share.
    small_set_ratio: f64,
}

const QUIET: Machine = Machine {
    capacity: 50_000.0,
    scatter: 0.01,
    hiccups: 0.0,
    spoiled: 0.0,
    generator: f64::INFINITY,
    small_set_ratio: 1.0,
};

impl Machine {
    fn run(&self, draws: &mut Draws, step: &SearchStep) -> ProbeOutcome {
        let hiccup = if draws.next() < self.hiccups { 0.4 + 0.5 * draws.next() } else { 1.0 };
        let scatter = 1.0 + self.scatter * draws.normal();
        let spoiled = draws.next() < self.spoiled;
        let capacity = self.capacity * scatter * hiccup;
        match load_of(step) {
            None => closed((capacity * self.small_set_ratio).min(self.generator * 1.1)),
            Some(load) if spoiled || load > self.generator * scatter => {
                outcome(load, load.min(capacity), Holding::Generator)
            }
            Some(load) => server(capacity, load),
        }
    }

    fn peaks(&self) -> Vec<PeakAnswer> {
        (0..SEARCHES)
            .map(|seed| {
                let mut draws = Draws(seed);
                let config = PeakSearchConfig::default();
                *expect_answer(search(config, QUICK_STEPS, |step| self.run(&mut draws, step)).0)
            })
            .collect()
    }

    /// Asserts that the peaks lie together, and their median near `expected`. Returns them.
    #[track_caller]
    fn check(&self, expected: f64) -> Vec<PeakAnswer> {
        let answers = self.peaks();
        let mut peaks: Vec<f64> = answers.iter().map(|answer| answer.peak).collect();
        peaks.sort_by(f64::total_cmp);
        let median = peaks[peaks.len() / 2];
        let near = |peak: &&f64| (*peak / median - 1.0).abs() <= TOGETHER_RATIO;
        let together = peaks.iter().filter(near).count() as f64 / peaks.len() as f64;
        assert!(together >= TOGETHER_MIN_RATIO, "{together} of {median}: {peaks:?}");
        assert!((median / expected - 1.0).abs() < 0.08, "{median} instead of {expected}");
        answers
    }

    /// Share of the peaks that a further point at that load holds.
    fn holds(&self, answers: &[PeakAnswer]) -> f64 {
        let mut draws = Draws(1 << 40);
        let sustained = answers.iter().filter(|answer| {
            let step = SearchStep::Verify { load: answer.peak, number: 1 };
            self.run(&mut draws, &step).holding == Holding::Sustained
        });
        sustained.count() as f64 / answers.len() as f64
    }
}

#[test]
fn searches_of_a_quiet_machine_lie_together_and_their_peaks_hold_again() {
    let answers = QUIET.check(50_000.0);
    assert!(answers.iter().all(|answer| answer.bound == Bound::Exact), "{answers:?}");
    assert!(QUIET.holds(&answers) >= 0.98);
}

#[test]
fn searches_of_a_machine_that_scatters_lie_together_and_their_peaks_hold_again() {
    let machine = Machine { scatter: 0.04, ..QUIET };
    let answers = machine.check(50_000.0);
    let holds = machine.holds(&answers);
    assert!(holds >= 0.8, "{holds}");
}

#[test]
fn searches_of_a_machine_that_stands_still_now_and_then_lie_together() {
    Machine { scatter: 0.03, hiccups: 0.15, ..QUIET }.check(50_000.0);
}

#[test]
fn searches_lie_together_where_the_generator_spoils_one_point_in_five() {
    Machine { scatter: 0.03, spoiled: 0.2, ..QUIET }.check(50_000.0);
}

#[test]
fn searches_that_end_at_the_generator_lie_together_and_are_lower_bounds() {
    let machine = Machine { scatter: 0.03, generator: 30_000.0, spoiled: 0.05, ..QUIET };
    let answers = machine.check(29_000.0);
    let at_least = answers.iter().filter(|answer| answer.bound == Bound::AtLeast).count();
    assert!(at_least as f64 > 0.95 * answers.len() as f64, "{at_least}");
}

#[test]
fn searches_lie_together_where_the_first_probe_ran_on_a_smaller_data_set() {
    let answers = Machine { scatter: 0.03, small_set_ratio: 1.3, ..QUIET }.check(50_000.0);
    assert!(answers.iter().all(|answer| answer.peak < 56_000.0), "{answers:?}");
}
