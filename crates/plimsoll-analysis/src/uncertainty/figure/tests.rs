use plimsoll_model::event::{add_times, new_times};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;

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
    let distribution = Distribution {
        name: "response",
        figure: None,
        measured,
        low,
        slices,
        closed: None,
        degrees_max: f64::INFINITY,
        exact_to_ns: None,
    };
    let all = distribution.percentiles();
    let of = |percentile| PERCENTILES.iter().position(|it| it.0 == percentile).unwrap();
    percentiles.map(|percentile| all[of(percentile)].as_ref().unwrap().interval)
}

/// Response times of a queue with one server, in slices of a twentieth of a second.
fn slices_of_a_queue(
    random: &mut Xoshiro256PlusPlus,
    (rate, capacity): (f64, f64),
    slices: usize,
) -> Vec<Times> {
    const SLICE_S: f64 = 0.05;
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

/// M/M/1: response time is exponential with the spare rate of the server. Of 400 trials that hold
/// 95 in a hundred, 368 to 392 do (three standard errors); short windows of a full queue hold less,
/// as do percentiles with few ops beyond them more. `cargo lab coverage simulated` has more rows.
#[test]
fn intervals_of_a_queue_hold_the_percentiles_of_the_closed_formula() {
    const TRIALS: u32 = 400;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    for (utilisation, slices, expected) in
        [(0.6, 60, 368..=398), (0.9, 60, 352..=396), (0.9, 200, 362..=398)]
    {
        let (rate, capacity) = (2_000.0 * utilisation, 2_000.0);
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
        assert!(
            covered.iter().all(|covered| expected.contains(covered)),
            "{utilisation} {slices} {covered:?}"
        );
    }
}

/// A full queue seen for three seconds has about sixteen independent ops beyond p90, and one or two
/// beyond p99.
#[test]
fn a_short_window_of_a_full_queue_leaves_p99_open_and_p90_not() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut open = [0; 2];
    for _ in 0..50 {
        let parts = slices_of_a_queue(&mut random, (1_800.0, 2_000.0), 60);
        let intervals = intervals_of(&parts, [9_000, 9_900]);
        for (open, [low, high]) in open.iter_mut().zip(intervals) {
            assert!(low > 0.0);
            *open += u32::from(high.is_infinite());
        }
    }
    assert!(open[0] == 0 && open[1] > 10, "{open:?}");
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
    assert!((119_500.0..120_700.0).contains(&low), "{low}");
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

/// 1 to 1,000 µs, a thousand in each of 48 slices: chance moves p90 by three ranks in a thousand.
#[test]
fn where_the_tail_was_seen_p90_reaches_no_further_than_the_ranks_that_chance_may_move() {
    let mut slice = new_times();
    (1..=1_000).for_each(|us| slice.saturating_record(us * 1_000));
    let [[_, high]] = intervals_of(&vec![slice; 48], [9_000]);
    assert!((902_000.0..905_000.0).contains(&high), "{high}");
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

/// In one of 48 slices all clients waited together: p99 is their wait, and may be that of the others.
#[test]
fn a_percentile_on_one_slow_wave_may_be_that_of_the_other_waves() {
    let mut slices = vec![new_times(); 48];
    for (n, slice) in slices.iter_mut().enumerate() {
        slice.saturating_record_n(if n == 20 { 90_000_000 } else { 10_000_000 }, 100);
    }
    let [[low, _]] = intervals_of(&slices, [9_900]);
    assert!((9_900_000.0..=10_000_000.0).contains(&low), "{low}");
}

/// Times that are all alike lie in one step of the histogram, whose end stands for them.
#[test]
fn the_interval_of_constant_times_is_their_step_of_the_histogram() {
    let mut slice = new_times();
    slice.saturating_record_n(30_000_000, 1_000);
    for [low, high] in intervals_of(&vec![slice; 48], [5_000, 9_000, 9_500, 9_900, 9_990]) {
        assert!(low <= 30_000_000.0 && 30_000_000.0 <= high, "{low} {high}");
        assert!(high - low < 0.002 * 30_000_000.0, "{low} {high}");
    }
}

#[test]
fn a_tail_of_which_more_may_be_missing_goes_on_for_longer() {
    assert!((reach(0.5) - 2.0_f64.ln()).abs() < 1e-9);
    assert!((reach(0.9) - 10.0_f64.ln()).abs() < 1e-9);
    assert!((reach(2.4) - 10.0_f64.ln() - 1.5).abs() < 1e-9);
}
