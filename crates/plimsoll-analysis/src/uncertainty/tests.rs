use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{Phase, add_times, new_times};
use plimsoll_model::units::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::analyse;
use crate::health::generator_part_of_p50;
use crate::testing::{PointBuilder, RunBuilder};

fn point_intervals(point: &PointBuilder) -> PointIntervals {
    let times = point.point_times();
    let built = point.build();
    state(&built.suite, &built.record, &times.window_total(), &times)
}

#[test]
fn the_generators_part_lies_below_a_response_time_and_above_a_closed_throughput() {
    // 1 ms of response, of which 0.2 ms lay unread.
    let parts = point_intervals(&PointBuilder::closed(4).receive_lag_ns(200_000));
    let [low, high] = parts.response.unwrap().p50.unwrap();
    assert!((low / 770_000.0 - 1.0).abs() < 0.01, "{low}");
    assert!((high / 1_020_000.0 - 1.0).abs() < 0.002, "{high}");
    // Its own lateness of 10 µs is taken out too: 1 / 0.79.
    let [least, most] = parts.achieved.unwrap();
    assert!((least - 3_920.0).abs() < 1.0, "{least}");
    assert!((most / 4_080.0 - 1.0 / 0.79).abs() < 0.002, "{most}");
    let budget = parts.uncertainty["response_p50_ns"];
    assert!((budget.generator / 210_000.0 - 1.0).abs() < 0.02, "{budget:?}");
}

/// Half of their time the clients think: 8 with 4,000 ops/s of 1 ms, 0.21 of it the generator's.
#[test]
fn where_clients_think_delays_keep_more_of_them_at_work() {
    let point = PointBuilder::closed(4).receive_lag_ns(200_000);
    let times = point.point_times();
    let mut built = point.build();
    let Load::Closed { clients, .. } = &mut built.record.load else { panic!("a closed load") };
    *clients = 8;
    let intervals = state(&built.suite, &built.record, &times.window_total(), &times);
    // 0.79 of 1.79 ms at work, and not one half.
    let factor = 0.79 / 1.79 / 0.5;
    let [low, _] = intervals.response.unwrap().p50.unwrap();
    assert!((low / (790_000.0 * factor - 20_000.0) - 1.0).abs() < 0.01, "{low}");
    let [_, most] = intervals.achieved.unwrap();
    assert!((most / (4_080.0 * 2.0 / (1.0 + 0.79 * factor)) - 1.0).abs() < 0.01, "{most}");
}

#[test]
fn only_a_closed_load_allows_for_the_speed_of_other_runs() {
    let open = point_intervals(&PointBuilder::open(1_000.0)).uncertainty;
    assert!(open.values().all(|parts| parts.other_runs == 0.0), "{open:?}");
    let closed = point_intervals(&PointBuilder::closed(4)).uncertainty;
    assert!(closed.contains_key("service_mean_ns") && closed.contains_key("response_p99_ns"));
    let allowed = |parts: &Uncertainty| (parts.other_runs / parts.value - 0.02).abs() < 1e-9;
    assert!(closed.values().all(allowed), "{closed:?}");
}

/// A closed load whose seconds differ, two and two: 900 ops of 51 to 150 µs, 1,100 of 56 to 155.
fn uneven() -> (PointIntervals, PointTimes) {
    let mut built = PointBuilder::closed(4).build();
    let times = PointTimes::from_seconds((0..12).map(|second| {
        let mut ops = OpTimes::new();
        let (count, least) = if second % 4 < 2 { (900, 51_000) } else { (1_100, 56_000) };
        for nth in 0..count {
            let ns = least + nth % 100 * 1_000;
            let all = [&mut ops.response, &mut ops.service];
            all.into_iter().for_each(|times| times.record(ns).unwrap());
            let lows = [&mut ops.response_low, &mut ops.service_low];
            lows.into_iter().for_each(|times| times.record(ns - 10_000).unwrap());
        }
        let start = Nanos::from_secs(1 + u64::from(second));
        IntervalSlice {
            length: Nanos::from_secs(1),
            second,
            start,
            phase: Phase::Measure,
            ops: vec![ops],
        }
    }));
    (built.record.warm_up_ns, built.record.measured_ns) =
        (Nanos::from_secs(1), Nanos::from_secs(12));
    // Twice the number of response times. Without the cycles of clients, as where some left.
    built.record.totals.done_in_window = 24_000;
    built.record.totals.pieces = 0;
    (state(&built.suite, &built.record, &times.window_total(), &times), times)
}

#[test]
fn a_throughput_that_varies_is_known_no_better_than_by_its_seconds() {
    let (intervals, _) = uneven();
    let parts = intervals.uncertainty["achieved_ops_per_s"];
    // By hand: six pairs, each 200 off the mean 2,000, t(5) = 2.571; twice that.
    let chance = 2.0 * 2.571 * (6.0 * 200.0_f64.powi(2) * 6.0 / 5.0).sqrt() / 12.0;
    assert!((parts.sample_below / chance - 1.0).abs() < 1e-3, "{parts:?}");
    assert_eq!(parts.sample_below, parts.sample_above);
    let [least, most] = intervals.achieved.unwrap();
    assert!((least - (2_000.0 - chance.hypot(40.0))).abs() < 0.1, "{least}");
    assert!((most - (2_000.0 + chance.hypot(40.0))).abs() < 0.1, "{most}");
}

#[test]
fn the_parts_of_an_interval_make_it_up() {
    let (intervals, _) = uneven();
    let parts = intervals.uncertainty["response_mean_ns"];
    let [low, high] = intervals.response.unwrap().mean.unwrap();
    let Uncertainty { value, generator, sample_below, sample_above, other_runs, resolution } =
        parts;
    assert!((generator - 10_000.0).abs() < 10.0 && sample_below > 0.0, "{parts:?}");
    let lowest = value - generator - sample_below.hypot(other_runs) - resolution;
    let highest = value + sample_above.hypot(other_runs) + resolution;
    assert!((low - lowest).abs() < 1e-3 && (high - highest).abs() < 1e-3, "{low} {high} {parts:?}");
}

/// Response times lie 1 µs apart, a hundredth of them at each.
#[test]
fn the_samples_part_of_a_percentile_is_the_ranks_that_chance_may_move_it_by() {
    let (intervals, times) = uneven();
    let total = times.window_total();
    let slices: Vec<&Coarse> = times.slices().map(|(_, slice)| &slice.response).collect();
    let chance = chance_of_share(&slices, &total.response, 0.5).unwrap();
    let parts = intervals.uncertainty["response_p50_ns"];
    assert!(
        (parts.sample_below - chance.below * 100_000.0).abs() < 1_500.0,
        "{parts:?} {chance:?}"
    );
    let above = parts.sample_above - chance.above * 100_000.0;
    assert!(parts.sample_below > 0.0 && above.abs() < 1_500.0, "{parts:?} {chance:?}");
}

/// Intervals of percentiles of a window of these slices, without a part of the generator.
fn intervals_of<const N: usize>(slices: &[Times], percentiles: [u32; N]) -> [[f64; 2]; N] {
    let mut whole = new_times();
    slices.iter().for_each(|slice| add_times(&mut whole, slice));
    let coarse = |slice: &Times| {
        let mut coarse = Coarse::default();
        coarse.add(slice);
        coarse
    };
    let slices: Vec<Coarse> = slices.iter().map(coarse).collect();
    let slices = slices.iter().collect();
    let (measured, low) = (&whole, &whole);
    let distribution =
        Distribution { name: "response", measured, low, slices, closed: None, exact_to_ns: None };
    percentiles.map(|percentile| of_percentile(&distribution, percentile).unwrap().1)
}

/// Response times of a queue with one server, in slices of a quarter of a second.
fn slices_of_a_queue(
    random: &mut Xoshiro256PlusPlus,
    (rate, capacity): (f64, f64),
    slices: usize,
) -> Vec<Times> {
    const SLICE_S: f64 = 0.25;
    const WARM_UP_S: f64 = 1.0;
    let mut exponential = |rate: f64| {
        let unit = ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -unit.ln() / rate
    };
    let mut recorded = vec![new_times(); slices];
    let (mut now_s, mut free_s) = (exponential(rate), 0.0_f64);
    while now_s < WARM_UP_S + SLICE_S * slices as f64 {
        free_s = free_s.max(now_s) + exponential(capacity);
        if now_s >= WARM_UP_S {
            let slice = (((now_s - WARM_UP_S) / SLICE_S) as usize).min(slices - 1);
            recorded[slice].saturating_record(((free_s - now_s) * 1e9) as u64);
        }
        now_s += exponential(rate);
    }
    recorded
}

/// M/M/1: response time is exponential with the spare rate of the server.
#[test]
fn intervals_of_a_queue_hold_the_percentiles_of_the_closed_formula() {
    const TRIALS: u32 = 80;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    // Three seconds are thirty times what a queue at 90 % remembers.
    for (utilisation, slices, percent) in
        [(0.6, 12, 92), (0.9, 12, 90), (0.9, 24, 90), (0.9, 40, 90)]
    {
        let (rate, capacity) = (4_000.0 * utilisation, 4_000.0);
        let mut covered = [0; 4];
        let percentiles = [5_000_u32, 9_000, 9_500, 9_900];
        for _ in 0..TRIALS {
            let parts = slices_of_a_queue(&mut random, (rate, capacity), slices);
            let intervals = intervals_of(&parts, percentiles);
            for ((covered, percentile), [low, high]) in
                covered.iter_mut().zip(percentiles).zip(intervals)
            {
                let above = 1.0 - f64::from(percentile) / 10_000.0;
                let truth_ns = -above.ln() / (capacity - rate) * 1e9;
                *covered += u32::from((low..=high).contains(&truth_ns));
            }
        }
        let least = TRIALS * percent / 100;
        assert!(
            covered.iter().all(|covered| *covered >= least),
            "{utilisation} {slices} {covered:?}"
        );
    }
}

/// As an exponential queue has them; one pause of the host at the end changes nothing.
#[test]
fn the_scale_of_an_exponential_tail_is_found_whatever_lies_beyond() {
    let nth = |n: u32| -(1.0 - (f64::from(n) + 0.5) / 10_000.0).ln() * 1e6;
    let mut times = new_times();
    (0..9_950).for_each(|n| times.saturating_record(nth(n) as u64));
    times.saturating_record_n(900_000_000, 50);
    let near = |share: f64, expected: f64| {
        let scale = tail_scale(&times, share) / 1e6;
        assert!((scale / expected - 1.0).abs() < 0.02, "{share}: {scale}");
    };
    [0.9, 0.95, 0.99].into_iter().for_each(|share| near(share, 1.0));
}

#[test]
fn of_a_tail_that_bends_the_flatter_part_gives_the_scale() {
    // Twice as slow in the upper half, or in the slowest twentieth.
    for (from, flat) in [(0.5, [2.0, 2.0]), (0.95, [1.0, 2.0])] {
        let mut times = new_times();
        let bend = -(1.0_f64 - from).ln();
        for n in 0..10_000 {
            let past = -(1.0 - (f64::from(n) + 0.5) / 10_000.0_f64).ln();
            times.saturating_record(((past + (past - bend).max(0.0)) * 1e6) as u64);
        }
        let scales = [0.9, 0.99].map(|share| tail_scale(&times, share) / 1e6);
        let near = |(scale, flat): (f64, f64)| (scale / flat - 1.0).abs() < 0.02;
        assert!(scales.into_iter().zip(flat).all(near), "{from}: {scales:?}");
    }
}

/// A server that is faster in some seconds by one part in a hundred.
#[test]
fn the_median_of_times_that_are_all_alike_is_known_however_they_change_over_the_window() {
    let slices: [Times; 12] = std::array::from_fn(|n| {
        let mut slice = new_times();
        let around = if n * 7 % 12 < 7 { 120_000 } else { 121_500 };
        (0..1_000).for_each(|op| slice.saturating_record(around + op));
        slice.saturating_record_n(30_000, 10);
        slice
    });
    let [[low, high]] = intervals_of(&slices, [5_000]);
    assert!((119_500.0..120_500.0).contains(&low), "{low}");
    assert!((121_400.0..123_000.0).contains(&high), "{high}");
}

/// The percentile that is reported where the next higher one is not, and bounds nothing.
#[test]
fn p90_of_few_ops_reaches_no_further_than_the_tail_of_all() {
    let mut slices = vec![new_times(); 12];
    for n in 0..150_u64 {
        slices[(n * 7 % 12) as usize].saturating_record((100 + 10 * n) * 1_000);
    }
    let [[_, high]] = intervals_of(&slices, [9_000]);
    assert!((1_450_000.0..4_000_000.0).contains(&high), "{high}");
}

/// 1 to 1,000 µs, a thousand in each of twelve slices: chance moves p90 by 5.4 ranks in a thousand.
#[test]
fn where_the_tail_was_seen_p90_reaches_no_further_than_the_ranks_that_chance_may_move() {
    let mut slice = new_times();
    (1..=1_000).for_each(|us| slice.saturating_record(us * 1_000));
    let [[_, high]] = intervals_of(&vec![slice; 12], [9_000]);
    assert!((903_000.0..908_000.0).contains(&high), "{high}");
}

/// The ops just beyond p99 came in two of twelve slices alone: next time they may be p99 itself.
#[test]
fn p99_reaches_to_the_slow_ops_just_beyond_it() {
    let slices: [Times; 12] = std::array::from_fn(|n| {
        let mut slice = new_times();
        (0..1_000).for_each(|op| slice.saturating_record(1_000_000 + op));
        slice.saturating_record_n(100_000_000, if n < 2 { 48 } else { 0 });
        slice
    });
    let [[_, high]] = intervals_of(&slices, [9_900]);
    assert!(high > 99_000_000.0, "{high}");
}

#[test]
fn a_tail_of_which_more_may_be_missing_goes_on_for_longer() {
    assert!((reach(0.5) - 2.0_f64.ln()).abs() < 1e-9);
    assert!((reach(0.9) - 10.0_f64.ln()).abs() < 1e-9);
    assert!((reach(2.4) - 10.0_f64.ln() - 1.5).abs() < 1e-9);
}

#[test]
fn an_open_load_that_was_held_has_an_exact_throughput() {
    assert_eq!(point_intervals(&PointBuilder::open(1_000.0)).achieved, Some([1_000.0, 1_000.0]));
}

#[test]
fn an_open_load_of_which_some_ops_were_not_sent_has_none() {
    let point = PointBuilder::open(1_000.0);
    let mut built = point.build();
    assert!(load_was_sustained(&built.suite, &built.record));
    // Within the suite's limit.
    built.record.totals.not_sent = 1;
    assert!(!load_was_sustained(&built.suite, &built.record));
}

#[test]
fn the_interval_of_a_percentile_lies_nowhere_below_that_of_a_lower_one() {
    let wide = [Some([5.0, 8.0]), None, Some([6.0, 90.0]), Some([1.0, 70.0])];
    let ordered = [Some([5.0, 8.0]), None, Some([6.0, 70.0]), Some([6.0, 70.0])];
    assert_eq!(in_order(wide), ordered);
}

#[test]
fn the_headline_and_the_overall_response_have_intervals_too() {
    let points = [1_000.0, 2_000.0, 3_000.0].map(PointBuilder::open);
    let summary = analyse(&RunBuilder::from_points(points).raw()).summary;
    assert_eq!(summary.value_interval, Some([3_000.0, 3_000.0]));
    let [low, high] = summary.overall_response_interval_ms.unwrap();
    let measured = summary.overall_response_ms;
    assert!(low.span < measured.span && measured.span < high.span, "{low:?} {high:?}");
    assert!(low.origin < measured.origin && measured.origin < high.origin);
}

#[test]
fn the_interval_of_the_headline_is_that_of_the_point_it_speaks_of() {
    let points = [(8, 300_000), (16, 0), (4, 100_000)]
        .map(|(clients, lag_ns)| PointBuilder::closed(clients).receive_lag_ns(lag_ns));
    let result = analyse(&RunBuilder::from_points(points).raw());
    let best = &result.points[1];
    assert_eq!(result.summary.value, best.achieved_ops_per_s);
    let interval = best.achieved_interval_ops_per_s.unwrap();
    let reported = result.summary.value_interval.unwrap();
    assert!(reported.iter().zip(interval).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{reported:?}");
}

#[test]
fn an_overall_response_whose_ends_change_places_has_no_interval() {
    // Throughput falls after the first point, so that its time is taken off the span.
    let of = |first_ms: [f64; 2]| {
        let points = [(3_000.0, first_ms), (1_000.0, [1.0; 2]), (4_000.0, [1.0; 2])];
        let points = points.map(|(achieved, mean_ms)| PointResult {
            achieved_ops_per_s: Some(achieved),
            service_interval_ns: Some(TimeIntervals {
                mean: Some(mean_ms.map(|ms| ms * 1e6)),
                ..TimeIntervals::default()
            }),
            ..PointResult::default()
        });
        // By hand, of 1 ms at each point.
        let measured = OverallResponse { origin: Some(0.625), span: Some(1.0) };
        let summary = Summary { overall_response_ms: measured, ..Summary::default() };
        overall_interval(&summary, points.iter())
    };
    let [low, high] = of([1.0, 1.0]).unwrap();
    assert_eq!((low.origin, high.span), (Some(0.625), Some(1.0)));
    // Half a millisecond at the first point makes it 1.5.
    assert_eq!(of([0.5, 1.0]), None);
}

#[test]
fn without_arrivals_nothing_is_stated() {
    let mut times = PointBuilder::open(1_000.0).build().times.unwrap();
    times.response_low.reset();
    assert_eq!(generator_part_of_p50(&times), None);
}

#[test]
fn a_percentile_above_the_age_of_an_op_without_a_reply_has_no_interval() {
    let built = PointBuilder::open(1_000.0).build();
    let times = PointBuilder::open(1_000.0).point_times();
    let response_intervals = |age_ns: u64| {
        let mut record = built.record.clone();
        record.totals.unfinished = 1;
        record.totals.response_age_min = Some(Nanos(age_ns));
        state(&built.suite, &record, &times.window_total(), &times).response.unwrap()
    };
    // Every op took a millisecond.
    let intervals = response_intervals(2_000_000);
    assert!(
        intervals.p50.is_some() && intervals.p99.is_some() && intervals.mean.is_none(),
        "{intervals:?}"
    );
    assert_eq!(response_intervals(900_000), TimeIntervals::default());
}

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

/// Staged servers gave 80 ops/s (7.93–152) and 500 (0–1,483): a window of few waves.
#[test]
fn a_closed_load_whose_clients_go_in_step_has_no_absurd_interval() {
    let waves = InStep { clients: 32, step_s: 0.4, scatter_ratio: 0.01, batch: false };
    let pairs = InStep { clients: 200, step_s: 0.9, scatter_ratio: 0.02, batch: false };
    let batches = InStep { clients: 8, step_s: 0.5, scatter_ratio: 0.1, batch: true };
    for (load, window_s, width_max) in
        [(&waves, 1.1, 0.5), (&waves, 10.0, 0.15), (&pairs, 3.0, 0.4), (&batches, 10.0, 0.3)]
    {
        let truth = f64::from(load.clients) / load.step_s;
        let mut covered = 0;
        for seed in 0..40 {
            let (counted, [low, high]) = load.throughput_interval(seed, window_s);
            assert!(low <= counted && counted <= high, "{counted} {low} {high}");
            assert!((high - low) / truth < width_max, "{window_s} s: {counted} {low} {high}");
            covered += u32::from((low..=high).contains(&truth));
        }
        assert!(covered >= 36, "{window_s} s: {covered}");
    }
}
