//! What a log is said to have against another program: `scipy/scipy_judge.py` drew think times,
//! popularities and arrivals, and recorded how scipy fits and tests them.

use plimsoll_model::units::Nanos;
use serde::Deserialize;

use crate::arrivals::ArrivalTest;
use crate::fit::{Sample, ZipfFit};

const EXPECTED: &str = include_str!("scipy/scipy.json");
/// Three digits.
const SAME_RATIO: f64 = 5e-4;

#[derive(Deserialize)]
struct Cases {
    thinks: Vec<ThinkCase>,
    popularities: Vec<PopularityCase>,
    arrivals: Vec<ArrivalCase>,
}

#[derive(Deserialize)]
struct ThinkCase {
    name: String,
    micros: Vec<u64>,
    mean: f64,
    log_mean: f64,
    log_deviation: f64,
    distance: f64,
    closest: String,
}

#[derive(Deserialize)]
struct PopularityCase {
    counts: Vec<u64>,
    exponent: f64,
}

#[derive(Deserialize)]
struct ArrivalCase {
    name: String,
    at_ns: Vec<u64>,
    a2: f64,
    p: f64,
}

#[track_caller]
fn assert_same(ours: f64, theirs: f64, what: &str) {
    assert!((ours / theirs - 1.0).abs() < SAME_RATIO, "{what}: {ours}, scipy {theirs}");
}

#[test]
fn laws_and_tests_say_what_scipy_says() {
    let cases: Cases = serde_json::from_str(EXPECTED).unwrap();
    for case in cases.thinks {
        let mut sample = Sample::default();
        case.micros.iter().for_each(|micros| sample.insert(*micros));
        let (log_mean, log_deviation) = sample.log_moments().unwrap();
        assert_same(sample.mean().unwrap(), case.mean, &case.name);
        assert_same(log_mean, case.log_mean, &case.name);
        assert_same(log_deviation, case.log_deviation, &case.name);
        let fitted = sample.fit().unwrap();
        // Values are kept to three digits.
        assert!((fitted.distance - case.distance).abs() < 2e-3, "{}: {fitted:?}", case.name);
        let is_close = case.distance < 1.36 / (case.micros.len() as f64).sqrt();
        let expected = if is_close { case.closest.as_str() } else { "quantiles of the log" };
        assert_eq!(fitted.law.name(), expected, "{}", case.name);
    }
    for case in cases.popularities {
        let fit = ZipfFit::from_counts(case.counts.iter().copied()).unwrap();
        assert_same(fit.exponent, case.exponent, "exponent");
    }
    for case in cases.arrivals {
        let mut test = ArrivalTest::new(Nanos::from_secs(3_600), Nanos(1), Nanos::ZERO);
        case.at_ns.iter().for_each(|at| test.arrival(Nanos(*at)));
        let outcome = test.finish();
        let n = (case.at_ns.len() - 1) as f64;
        assert_same(outcome.last_a2.unwrap(), case.a2 * (1.0 + 0.6 / n), &case.name);
        assert_eq!(outcome.exponential == Some(1), case.p > 0.05, "{}", case.name);
    }
}
