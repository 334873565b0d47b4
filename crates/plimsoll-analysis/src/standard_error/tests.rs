use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;

/// The share of trials in which the interval of the mean of `count` slices holds the truth, zero.
/// Each slice is `alike` times the one before it plus noise.
fn coverage(count: usize, alike: f64) -> f64 {
    const TRIALS: u32 = 1_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut unit = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut normal = move || (0..12).map(|_| unit()).sum::<f64>() - 6.0;
    let covered = (0..TRIALS).filter(|_| {
        let mut state = normal() / (1.0 - alike * alike).sqrt();
        let slices: Vec<(f64, f64)> = (0..count)
            .map(|_| {
                state = alike * state + normal();
                (state, 1.0)
            })
            .collect();
        let mean = slices.iter().map(|slice| slice.0).sum::<f64>() / count as f64;
        mean.abs() <= StandardError::of_ratio(&slices, f64::INFINITY).unwrap().half_width()
    });
    covered.count() as f64 / f64::from(TRIALS)
}

/// Of a thousand trials that hold 95 in a hundred, 93 to 97 in a hundred do.
#[test]
fn intervals_of_independent_slices_hold_the_truth_nineteen_times_in_twenty() {
    for count in [3, 12, 36, 60] {
        let covered = coverage(count, 0.0);
        assert!((0.93..=0.97).contains(&covered), "{count} slices: {covered}");
    }
}

/// Until what they have in common lasts as long as a twelfth of the window.
#[test]
fn so_do_those_of_slices_that_depend_on_each_other() {
    for (count, alike, least) in [(36, 0.2, 0.92), (60, 0.4, 0.92), (36, 0.5, 0.85)] {
        let covered = coverage(count, alike);
        assert!((least..=0.97).contains(&covered), "{count} slices, {alike}: {covered}");
    }
}

#[test]
fn the_error_of_independent_ops_is_known_and_that_of_slices_is_not() {
    let estimated = StandardError { error: 1.0, degrees: DEGREES_MAX, drifts: false };
    let half_width = |independent: f64| estimated.at_least(independent).half_width();
    assert_eq!([0.5, 1.1].map(half_width), [2.179, 2.179]);
    assert!((half_width(1.2) - 1.2 * 1.96).abs() < 1e-9, "{}", half_width(1.2));
    // Too few degrees to know that it is luck.
    let few = StandardError { degrees: 1, ..estimated };
    assert_eq!(few.at_least(1.2).half_width(), 12.706 * 1.2);
}

/// With as many frequencies as there are slices but one, the squares of all deviations count once.
#[test]
fn two_and_three_slices_have_the_textbooks_error() {
    let error = StandardError::of_ratio(&[(1.0, 1.0), (3.0, 1.0)], f64::INFINITY).unwrap();
    assert!((error.error - 1.0).abs() < 1e-12, "{error:?}");
    assert_eq!((error.degrees, error.t()), (1, 12.706));
    let slices = [(2.0, 2.0), (6.0, 2.0), (10.0, 2.0)];
    let error = StandardError::of_ratio(&slices, f64::INFINITY).unwrap();
    // Ratios of 1, 3 and 5: a deviation of 2, over the square root of three.
    assert!((error.error - 2.0 / 3.0_f64.sqrt()).abs() < 1e-12, "{error:?}");
    assert_eq!(error.degrees, 2);
}

#[test]
fn degrees_of_freedom_follow_slices_ops_and_waves() {
    let degrees = |slices: usize, most: f64| {
        StandardError::of_ratio(&vec![(1.0, 1.0); slices], most).unwrap().degrees
    };
    assert_eq!([degrees(48, f64::INFINITY), degrees(480, f64::INFINITY)], [12, 12]);
    assert_eq!([degrees(12, f64::INFINITY), degrees(5, f64::INFINITY)], [6, 4]);
    assert_eq!([degrees(48, 3.7), degrees(48, 0.2)], [3, 1]);
}

#[test]
fn nothing_counted_and_a_single_slice_say_nothing() {
    let of = |slices: &[(f64, f64)]| StandardError::of_ratio(slices, f64::INFINITY);
    assert_eq!((of(&[]), of(&[(1.0, 1.0)]), of(&[(0.0, 0.0); 9])), (None, None, None));
}

#[test]
fn bounds_without_a_sampling_error_need_nothing_beyond_them() {
    let error = StandardError { error: 0.0, degrees: 12, drifts: false };
    assert_eq!((error.half_width(), error.beyond(5.0)), (0.0, error.t()));
    let error = StandardError { error: 2.0, degrees: 12, drifts: false };
    assert!((error.beyond(1.0) - 1.980).abs() < 1e-3, "{}", error.beyond(1.0));
}
