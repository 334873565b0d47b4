use plimsoll_model::event::new_times;

use super::*;

/// (C_max, C_min), end of low, end of medium: appendix B of the rules.
const VECTORS: [((u32, u32), [u32; 2]); 14] = [
    ((64, 2), [6, 18]),
    ((128, 2), [7, 27]),
    ((256, 2), [8, 42]),
    ((256, 8), [14, 47]),
    ((512, 8), [16, 71]),
    ((1_024, 8), [18, 109]),
    ((512, 16), [24, 79]),
    ((1_024, 16), [26, 117]),
    ((2_048, 16), [29, 176]),
    ((1_024, 32), [42, 131]),
    ((2_048, 32), [45, 192]),
    ((4_096, 32), [48, 287]),
    ((8_192, 32), [52, 437]),
    ((16_384, 32), [57, 676]),
];

#[test]
fn regions_end_where_the_rules_print_it() {
    for ((c_max, c_min), ends) in VECTORS {
        assert_eq!(region_ends(c_min, c_max), ends, "{c_max}, {c_min}");
    }
}

#[test]
fn a_ladder_wants_seven_points_and_one_in_each_region() {
    let wanting_of = |loads: &[u32]| {
        let (c_min, c_max) = (*loads.iter().min().unwrap(), *loads.iter().max().unwrap());
        wanting(&regions(c_min, c_max, loads), c_max, loads.len() as u32)
    };
    assert_eq!(wanting_of(&[1, 2, 4, 8, 32, 64, 128, 256]), []);
    let few = Wanting::Points { points: 3, points_min: 7 };
    let low = Wanting::Region { name: RegionName::Low };
    assert_eq!(wanting_of(&[1, 8, 256]), [few, low]);
    assert!(wanting_of(&[1, 2, 3, 4, 5, 6, 32]).contains(&Wanting::HighestConcurrency));
}

#[test]
fn the_least_samples_of_each_percentile_are_those_that_the_client_prints() {
    let printed = [
        (5_000, 11),
        (7_500, 24),
        (8_000, 31),
        (9_000, 64),
        (9_500, 130),
        (9_700, 219),
        (9_900, 662),
        (9_990, 6_636),
        (9_999, 66_381),
    ];
    for (percentile, least) in printed {
        assert_eq!(samples_above(least - 1, percentile), None, "{percentile}");
        assert_eq!(samples_above(least, percentile), Some(1), "{percentile}");
    }
    assert_eq!(samples_above(10_000, 9_900), Some(77));
    assert_eq!(samples_above(0, 9_900), None);
}

#[test]
fn an_estimate_lies_above_the_percentile_by_what_the_sample_leaves_open() {
    let mut times = new_times();
    (1..=1_000).for_each(|n| times.record(n).unwrap());
    let [exact, early] = [times.value_at_quantile(0.9), early_stopping(&times, 9_000).unwrap()];
    assert!(early > exact && early < 950, "{exact} {early}");
}

fn passes(values: &[f64]) -> Vec<Pass> {
    let pass = |p50: &f64| Pass { p50_ns: *p50, p90_ns: p50 * 1.2, seconds: 100.0 };
    values.iter().map(pass).collect()
}

fn verdict(values: &[f64]) -> SteadyWindow {
    steady_window(&passes(values), 600.0, 3.0)
}

#[test]
fn a_load_point_without_a_trend_is_steady_from_where_it_is_warm() {
    let window = verdict(&[14.0, 11.0, 10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0, 10.05]);
    assert_eq!(
        (window.status, window.verdict),
        (SteadyStatus::Windowable, Some(SteadyVerdict::Steady))
    );
    assert_eq!((window.first_pass, window.passes, window.seconds), (Some(2), Some(8), Some(800.0)));
}

#[test]
fn a_drift_a_level_shift_and_noise_are_told_apart() {
    let rising: Vec<f64> = (0..12).map(|i| 10.0 + 0.6 * f64::from(i)).collect();
    assert_eq!(verdict(&rising).verdict, Some(SteadyVerdict::DriftingUp));
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    assert_eq!(verdict(&falling).verdict, Some(SteadyVerdict::DriftingDown));
    let mut shifted = [10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0, 10.1].to_vec();
    shifted.extend(shifted.clone().iter().map(|value| value * 1.4));
    let long = steady_window(&passes(&shifted), 1_000.0, 3.0);
    assert_eq!(long.verdict, Some(SteadyVerdict::Anomaly));
    assert_eq!(verdict(&shifted).passes, Some(8), "each level is long enough for 600 s");
    let noisy = [10.0, 14.0, 9.0, 15.0, 8.0, 13.0, 10.0, 15.0, 9.0, 14.0];
    assert_eq!(verdict(&noisy).verdict, Some(SteadyVerdict::NotFound));
}

#[test]
fn too_little_is_said_to_be_too_little() {
    assert_eq!(verdict(&[]).status, SteadyStatus::PartialDataset);
    assert_eq!(verdict(&[10.0; 3]).status, SteadyStatus::InsufficientPasses);
    assert_eq!(verdict(&[10.0; 5]).status, SteadyStatus::InsufficientDuration);
    assert_eq!(
        steady_window(&passes(&[10.0; 5]), 60.0, 200.0).status,
        SteadyStatus::InsufficientDuration
    );
}

#[test]
fn a_trend_is_found_and_noise_is_none() {
    let rising: Vec<f64> = (0..12).map(|i| 10.0 + f64::from(i)).collect();
    let trend = mann_kendall(&rising).unwrap();
    assert!(trend.p < 1e-4 && (trend.slope - 1.0).abs() < 1e-12, "{trend:?}");
    let noise = [5.0, 3.0, 8.0, 1.0, 9.0, 2.0, 7.0, 4.0, 6.0, 5.0];
    assert!(mann_kendall(&noise).unwrap().p > 0.5);
    assert_eq!(mann_kendall(&[2.0; 8]).unwrap(), Trend { p: 1.0, slope: 0.0 });
    assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
}

#[test]
fn the_variance_of_a_series_without_ties_is_the_printed_one() {
    // By hand, n = 10: S = 1 has variance 10·9·25/18 = 125, so z = (|S| − 1)/√125.
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 9.0];
    // S = 43: z = 42/11.18 = 3.757, two-sided p = 1.7e-4.
    let p = mann_kendall(&values).unwrap().p;
    assert!((p / 1.72e-4 - 1.0).abs() < 0.02, "{p}");
}

#[test]
fn neighbours_that_are_alike_make_a_trend_less_sure() {
    let wave: Vec<f64> =
        (0..24).map(|i| (f64::from(i) / 6.0).sin() + f64::from(i) / 40.0).collect();
    let slope = mann_kendall(&wave).unwrap().slope;
    assert!(hamed_rao(&wave, slope) > 1.5);
}

#[test]
fn a_level_shift_is_found_where_it_is() {
    let mut values = vec![10.0, 11.0, 10.5, 10.2, 10.8, 10.4, 10.6, 10.1];
    values.extend([15.0, 15.2, 14.9, 15.4, 15.1, 15.3, 14.8, 15.5]);
    let (at, p) = pettitt(&values).unwrap();
    assert!(at == 8 && p < 0.05, "{at} {p}");
    assert_eq!(pettitt(&[1.0]), None);
}

#[test]
fn the_tail_of_the_normal_distribution_is_that_of_the_tables() {
    for (z, table) in [(0.0, 0.5), (1.0, 0.158_655), (1.96, 0.024_998), (3.0, 0.001_350)] {
        assert!((normal_above(z) - table).abs() < 1e-6, "{z}");
    }
}
