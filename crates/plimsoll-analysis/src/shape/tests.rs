//! Closed formulas, and the figures of Mindcraft's file server comparison of 1998, from
//! `published/netbench-nt-1998.toml` and `published/netbench-sun-1998.toml`.

use plimsoll_model::shape::Scalability;

use super::scalability::law;
use super::*;
use crate::published::published;
use crate::testing::{PointBuilder, RunBuilder};

fn points(pairs: impl IntoIterator<Item = (f64, f64)>) -> Vec<Loaded> {
    let point = |((load, throughput), position)| Loaded { position, load, throughput };
    pairs.into_iter().zip(1..).map(point).collect()
}

/// Clients that took part, and bytes/s.
fn mindcraft(name: &str) -> Vec<Loaded> {
    let report = published(name).unwrap();
    let curve = &report.byte_curves[0];
    points(curve.participating.iter().map(|n| f64::from(*n)).zip(curve.bytes_per_s.iter().copied()))
}

/// Rises by 100 a client to the knee and by `slope` beyond it.
fn broken(knee: f64, slope: f64) -> Vec<Loaded> {
    points(
        [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0]
            .map(|load: f64| (load, 100.0 * load.min(knee) + slope * (load - knee).max(0.0))),
    )
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1e-6)
}

#[test]
fn two_straight_lines_have_their_knee_where_they_meet() {
    for (at, slope) in [(8.0, 0.0), (11.0, 0.0), (11.0, 5.0), (5.5, 20.0)] {
        let result = knee(&broken(at, slope)).unwrap();
        let all = [result.load, result.low, result.high];
        assert!(all.iter().all(|value| (value - at).abs() < 1e-6), "{at} {slope}: {result:?}");
    }
}

#[test]
fn scatter_widens_the_interval_of_a_knee_and_every_time_in_the_same_way() {
    let mut points = broken(11.0, 0.0);
    for (point, sign) in points.iter_mut().zip([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0]) {
        point.throughput *= 1.0 + 0.03 * sign;
    }
    let result = knee(&points).unwrap();
    assert!(
        result.low < 11.0 && 11.0 < result.high && result.high - result.low > 0.2,
        "{result:?}"
    );
    assert!(result.low > 9.0 && result.high < 13.0, "{result:?}");
    assert_eq!(knee(&points), Ok(result));
}

#[test]
fn a_line_that_goes_on_rising_has_no_knee() {
    assert_eq!(knee(&broken(1_000.0, 0.0)), Err(NoKnee::NotReached));
    assert_eq!(knee(&broken(8.0, 60.0)), Err(NoKnee::NotReached));
    let text = closed_shape(&broken(1_000.0, 0.0), "ops/s").unwrap().text;
    assert_eq!(
        text,
        "throughput grows with the clients at every load; no knee reached; highest at 48, the last \
         load"
    );
}

#[test]
fn a_ladder_that_begins_saturated_has_neither_knee_nor_law() {
    let flat = points([8.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0].map(|n| (n, 1_000.0 - n % 3.0)));
    assert_eq!(knee(&flat), Err(NoKnee::BelowLowest));
    assert_eq!(scalability(&flat), None);
    let shape = closed_shape(&flat, "ops/s").unwrap();
    assert_eq!(shape.asymptotes, None);
    assert!(
        shape.text.starts_with(
            "queueing begins at or below 8 clients, the lowest load; no knee among the loads, which \
             begin beyond it; highest at 12 clients, no fall beyond"
        ),
        "{}",
        shape.text
    );
    let three = broken(8.0, 0.0)[..3].to_vec();
    assert_eq!(knee(&three), Err(NoKnee::FewLoads));
}

#[test]
fn asymptotes_cross_where_the_ceiling_is_the_rate_of_clients_who_never_wait() {
    let shape = closed_shape(&broken(12.0, 0.0), "ops/s").unwrap();
    let asymptotes = shape.asymptotes.unwrap();
    assert_eq!((asymptotes.per_client, asymptotes.ceiling), (100.0, 1_200.0));
    assert_eq!(asymptotes.queueing_from, Some(12.0));
    assert_eq!(
        shape.text,
        "queueing must begin at 12 clients; knee at 12 (12–12) clients; highest at 16 clients, on \
         a plateau to 48"
    );
}

#[test]
fn the_law_gives_back_the_parameters_it_was_made_of() {
    for made in [[100.0, 0.05, 0.002], [3_000.0, 0.1, 0.0], [20.0, 0.0, 0.001], [7.0, 0.0, 0.0]] {
        let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let fit = scalability(&points(loads.map(|load| (load, law(made, load))))).unwrap();
        for (actual, made) in [fit.gamma, fit.alpha, fit.beta].into_iter().zip(made) {
            assert!((actual - made).abs() <= 1e-5 * made.max(1e-3), "{made:?}: {fit:?}");
        }
    }
}

#[test]
fn parameters_never_fall_below_zero() {
    let rising_faster = points([1.0, 2.0, 4.0, 8.0, 16.0].map(|n: f64| (n, n.powf(1.2))));
    let fit = scalability(&rising_faster).unwrap();
    assert_eq!((fit.alpha, fit.beta), (0.0, 0.0));
}

#[test]
fn fitted_on_the_rise_the_law_refuses_to_tell_mindcrafts_60_clients_which_it_would_miss_by_82_percent()
 {
    let all = mindcraft("netbench-nt-1998");
    let rise: Vec<Loaded> = all.iter().copied().filter(|point| point.load <= 16.0).collect();
    let fit = scalability(&rise).unwrap();
    let mean = rise.iter().map(|p| p.throughput).sum::<f64>() / rise.len() as f64;
    let left = |p: &Loaded| (p.throughput - predict(&fit, p.load).unwrap()).powi(2);
    let spread: f64 = rise.iter().map(|p| (p.throughput - mean).powi(2)).sum();
    assert!(1.0 - rise.iter().map(left).sum::<f64>() / spread > 0.9998);

    let refused = predict(&fit, 60.0).unwrap_err();
    assert_eq!(refused, PredictError::Extrapolates { load: 60.0, measured_to: 16.0 });
    assert!(refused.to_string().starts_with("60 clients are more than the 16 that were measured"));
    let naive = law([fit.gamma, fit.alpha, fit.beta], 60.0);
    let measured = all.last().unwrap().throughput;
    assert_eq!(format!("{:.0}", 100.0 * (naive / measured - 1.0)), "82");
}

#[test]
fn mindcrafts_peak_is_at_28_clients_as_measured_and_only_beyond_it_the_law_speaks_of_more() {
    let all = mindcraft("netbench-nt-1998");
    let peak = peak(&all).unwrap();
    assert_eq!((peak.load, peak.throughput, peak.falls), (28.0, 8_398_371.0, true));
    let fit: Scalability = scalability(&all).unwrap();
    assert!(fit.past_peak && fit.beta > 0.0);
    assert!(predict(&fit, 64.0).unwrap() < 8_398_371.0);
    let shape = closed_shape(&all, "bytes/s").unwrap();
    assert!(shape.text.ends_with("; peak at 28 clients"), "{}", shape.text);
}

#[test]
fn suns_plateau_is_found_and_clients_that_left_make_neither_peak_nor_knee() {
    let all = mindcraft("netbench-sun-1998");
    let shape = closed_shape(&all, "bytes/s").unwrap();
    let knee = shape.knee.unwrap();
    // From the mix of 24 on clients left; the knee is well before.
    assert!(knee.low >= 1.0 && knee.high < 16.0, "{knee:?}");
    let peak = shape.peak.unwrap();
    assert_eq!((peak.load, peak.falls), (16.0, false));
    assert!(shape.text.ends_with("highest at 16 clients, on a plateau to 28"), "{}", shape.text);
    assert!(near(shape.asymptotes.unwrap().queueing_from.unwrap(), 1_950_885.0 / 448_335.0));
    // The number of clients that took part counts: in any order of the mixes the shape is the same.
    let mut turned = all;
    turned.reverse();
    assert_eq!(closed_shape(&turned, "bytes/s").unwrap(), shape);
}

#[test]
fn a_closed_runs_summary_has_the_shape_and_an_open_runs_has_the_load_it_does_not_follow() {
    let closed = [(1, 1_000), (2, 2_000), (4, 4_000), (8, 5_000), (16, 5_000), (32, 5_000)];
    let closed = closed.map(|(n, ops)| PointBuilder::closed(n).achieved(ops));
    let shape = crate::analyse(&RunBuilder::from_points(closed).raw()).summary.curve.unwrap();
    assert!(near(shape.knee.unwrap().load, 5.0), "{shape:?}");
    let sustained = [1_000.0, 2_000.0].map(PointBuilder::open);
    let missed = PointBuilder::open(3_000.0).achieved(2_100);
    let open = RunBuilder::from_points(sustained.into_iter().chain([missed]));
    let shape = crate::analyse(&open.raw()).summary.curve.unwrap();
    assert_eq!(shape.not_followed_from, Some(3_000.0));
    assert_eq!(shape.knee, None);
}
