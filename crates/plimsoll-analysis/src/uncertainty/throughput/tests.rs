use plimsoll_model::assignment::WINDOW_SLICES;
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::Phase;
use plimsoll_model::units::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::testing::PointBuilder;
use crate::uncertainty::state;

/// A closed load whose clients all begin a piece of work of `step_s` ± `scatter_ratio` at zero, in
/// batches of `at_a_time` or alone; the window begins after 2.3 s.
struct InStep {
    clients: u32,
    step_s: f64,
    scatter_ratio: f64,
    batch: bool,
}

impl InStep {
    /// Throughput as counted, and its interval.
    fn throughput_interval(&self, seed: u64, window_s: f64) -> (f64, [f64; 2]) {
        const BEGIN_S: f64 = 2.3;
        const SLICE_S: f64 = 0.1;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let mut normal = move || (0..12).map(|_| unit()).sum::<f64>() - 6.0;
        let mut built = PointBuilder::closed(self.clients).build();
        let mut slices: Vec<OpTimes> = vec![OpTimes::new(); (window_s / SLICE_S).round() as usize];
        let totals = &mut built.record.totals;
        (totals.pieces, totals.piece_ns_total, totals.done_in_window) = (0, 0, 0);
        totals.slices = vec![SliceCounts::default(); WINDOW_SLICES];
        let mut now_s = vec![0.0; self.clients as usize];
        while now_s.iter().any(|now| *now < BEGIN_S + window_s) {
            let of_batch = normal();
            for now in &mut now_s {
                let scatter = if self.batch { of_batch } else { normal() };
                let took_s = self.step_s * (1.0 + self.scatter_ratio * scatter);
                let (due_s, done_s) = (*now - BEGIN_S, *now - BEGIN_S + took_s);
                *now += took_s;
                if !(0.0..window_s).contains(&done_s) {
                    continue;
                }
                totals.pieces += 1;
                totals.done_in_window += 1;
                totals.piece_ns_total += (took_s * 1e9) as u64;
                let slice = (done_s / window_s * WINDOW_SLICES as f64) as usize;
                let slice = &mut totals.slices[slice];
                slice.done += 1;
                slice.pieces += 1;
                slice.cycle_ns_total += (took_s * 1e9) as u64;
                if due_s >= 0.0 {
                    let slice = &mut slices[(done_s / SLICE_S) as usize];
                    for times in [&mut slice.response, &mut slice.response_low] {
                        times.record((took_s * 1e9) as u64).unwrap();
                    }
                }
            }
        }
        let start = |at: usize| Nanos((at as f64 * SLICE_S * 1e9) as u64);
        let times = PointTimes::from_seconds(slices.into_iter().enumerate().map(|(at, ops)| {
            let (length, phase) = (start(1), Phase::Measure);
            IntervalSlice { length, second: 0, start: start(at), phase, ops: vec![ops] }
        }));
        (built.record.warm_up_ns, built.record.measured_ns) =
            (Nanos::ZERO, Nanos((window_s * 1e9) as u64));
        let intervals = state(&built.suite, &built.record, &times.window_total(), &times);
        (built.record.totals.done_in_window as f64 / window_s, intervals.achieved.unwrap())
    }
}

/// Staged servers gave 80 ops/s (7.93–152) and 500 (0–1,483): a window of few waves. Widths are
/// those that the clients' scatter leaves, however the window cuts their waves.
#[test]
fn a_closed_load_whose_clients_go_in_step_is_known_by_its_cycles() {
    const TRIALS: u64 = 100;
    let waves = InStep { clients: 32, step_s: 0.4, scatter_ratio: 0.01, batch: false };
    let pairs = InStep { clients: 200, step_s: 0.9, scatter_ratio: 0.02, batch: false };
    let batches = InStep { clients: 8, step_s: 0.5, scatter_ratio: 0.1, batch: true };
    for (load, window_s, width_max) in
        [(&waves, 1.1, 0.03), (&waves, 10.0, 0.005), (&pairs, 3.0, 0.03), (&batches, 10.0, 0.15)]
    {
        let truth = f64::from(load.clients) / load.step_s;
        let (mut covered, mut widths) = (0, Vec::new());
        for seed in 0..TRIALS {
            let (_, [low, high]) = load.throughput_interval(seed, window_s);
            widths.push((high - low) / truth);
            covered += u32::from((low..=high).contains(&truth));
        }
        widths.sort_by(f64::total_cmp);
        assert!(widths[TRIALS as usize / 2] < width_max, "{window_s} s: {widths:?}");
        assert!(covered >= 88, "{window_s} s: {covered}");
    }
}

#[test]
fn bundles_without_counts_of_slices_have_the_mean_response_time_instead() {
    let mut built = PointBuilder::closed(4).build();
    built.record.totals.slices.clear();
    let times = PointBuilder::closed(4).point_times();
    let total = times.window_total();
    let rate = Cycles::from_record(&built.record, &total, &times).unwrap().answers(&built.record);
    let [low, high] = span(&rate.uncertainty(None));
    assert!(low <= 4_000.0 && (4_000.0..4_400.0).contains(&high), "{low} {high}");
}
