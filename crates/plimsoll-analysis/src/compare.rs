//! Results side by side. Ratios of what was measured, and no claim beyond: whether a difference
//! is more than chance takes repeated runs.

use plimsoll_model::result::{PointResult, RunResult};

/// Two loads this close are the same load point.
const SAME_LOAD_RATIO: f64 = 1e-6;

/// A result against the first one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The headline value, its ratio to the first's.
    pub value: Option<Ratio>,
    /// Its unit.
    pub unit: String,
    /// Score of suites that have one.
    pub score: Option<Ratio>,
    /// The highest throughput of any point.
    pub peak_ops_per_s: Option<Ratio>,
    /// Overall response time by the `origin` definition; below 1 is faster.
    pub overall_response_ms: Option<Ratio>,
    /// Load points that both runs have, in the first's order.
    pub points: Vec<PointComparison>,
    /// What a reader must know, for a person.
    pub cautions: Vec<String>,
}

/// Two figures and the second over the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Figure of the first run.
    pub first: f64,
    /// Figure of the other run.
    pub other: f64,
    /// `other / first`.
    pub ratio: f64,
}

impl Ratio {
    fn of(first: Option<f64>, other: Option<f64>) -> Option<Self> {
        let (first, other) = (first?, other?);
        (first > 0.0).then(|| Self { first, other, ratio: other / first })
    }
}

/// The same load in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PointComparison {
    /// The load, on the axis of both.
    pub requested: f64,
    /// Throughput.
    pub achieved_ops_per_s: Option<Ratio>,
    /// Application bytes per second, of suites whose metric it is.
    pub achieved_bytes_per_s: Option<Ratio>,
    /// Mean service time, in nanoseconds.
    pub service_mean_ns: Option<Ratio>,
    /// Median response time, in nanoseconds.
    pub response_p50_ns: Option<Ratio>,
    /// 99th percentile of the response time, in nanoseconds.
    pub response_p99_ns: Option<Ratio>,
    /// Both points are valid.
    pub valid: bool,
}

/// Why two results cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Another method, load or format: a ratio would mean nothing.
    #[error("{what} differ: {first} and {other}; compare runs of the same suite, seed and profile")]
    Different {
        /// What differs.
        what: &'static str,
        /// Of the first run.
        first: String,
        /// Of the other run.
        other: String,
    },
}

/// Compares a result with the first one.
pub fn compare(first: &RunResult, other: &RunResult) -> Result<Comparison, CompareError> {
    refuse_different(first, other)?;
    let (one, two) = (&first.summary, &other.summary);
    let points = first.points.iter().filter_map(|a| {
        let b = other.points.iter().find(|b| same_load(a.requested, b.requested))?;
        Some(compare_points(a, b))
    });
    let points: Vec<PointComparison> = points.collect();
    Ok(Comparison {
        value: Ratio::of(one.value, two.value),
        unit: one.unit.clone(),
        score: Ratio::of(one.score, two.score),
        peak_ops_per_s: Ratio::of(one.peak_ops_per_s, two.peak_ops_per_s),
        overall_response_ms: Ratio::of(
            one.overall_response_ms.origin,
            two.overall_response_ms.origin,
        ),
        cautions: cautions(first, other, points.len()),
        points,
    })
}

fn refuse_different(first: &RunResult, other: &RunResult) -> Result<(), CompareError> {
    let suite = |r: &RunResult| r.suite.as_ref().map_or("none".to_owned(), |s| s.name.clone());
    let seed = |r: &RunResult| r.seed.map_or("none".to_owned(), |seed| seed.to_string());
    let profile = |r: &RunResult| r.profile.clone().unwrap_or_else(|| "none".to_owned());
    let axis = |r: &RunResult| format!("{} ({})", r.axis.name, r.axis.unit);
    let pairs = [
        ("result formats", first.format.to_string(), other.format.to_string()),
        ("suites", suite(first), suite(other)),
        ("profiles", profile(first), profile(other)),
        ("seeds", seed(first), seed(other)),
        ("kinds of load", axis(first), axis(other)),
    ];
    match pairs.into_iter().find(|(_, first, other)| first != other) {
        None => Ok(()),
        Some((what, first, other)) => Err(CompareError::Different { what, first, other }),
    }
}

fn same_load(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_LOAD_RATIO * a.abs().max(b.abs())
}

fn compare_points(a: &PointResult, b: &PointResult) -> PointComparison {
    let response = |point: &PointResult, pick: fn(&PointResult) -> Option<u64>| {
        pick(point).map(|ns| ns as f64)
    };
    let p50 = |point: &PointResult| point.response_ns.and_then(|times| times.p50);
    let p99 = |point: &PointResult| point.response_ns.and_then(|times| times.p99);
    let service = |point: &PointResult| point.service_ns.and_then(|times| times.mean);
    PointComparison {
        requested: a.requested,
        achieved_ops_per_s: Ratio::of(a.achieved_ops_per_s, b.achieved_ops_per_s),
        achieved_bytes_per_s: Ratio::of(a.achieved_bytes_per_s, b.achieved_bytes_per_s),
        service_mean_ns: Ratio::of(service(a), service(b)),
        response_p50_ns: Ratio::of(response(a, p50), response(b, p50)),
        response_p99_ns: Ratio::of(response(a, p99), response(b, p99)),
        valid: a.valid && b.valid,
    }
}

fn cautions(first: &RunResult, other: &RunResult, common: usize) -> Vec<String> {
    let mut cautions = vec![
        "one run each: whether a difference is more than chance takes repeated runs".to_owned(),
    ];
    for (name, run) in [("first", first), ("other", other)] {
        if !run.verdict.valid {
            cautions.push(format!("the {name} run is not valid; see its reasons"));
        }
    }
    if common == 0 {
        cautions.push("the runs have no load point in common; give both the same --points".into());
    }
    if first.departures != other.departures {
        cautions.push("the runs depart from the published method in different ways".to_owned());
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    fn run(response_ns: u64) -> RunResult {
        let points = [1_000.0, 2_000.0].map(|r| PointBuilder::open(r).response_ns(response_ns));
        analyse(&RunBuilder::of(points).raw())
    }

    #[test]
    fn ratios_are_of_the_other_run_over_the_first() {
        let comparison = compare(&run(1_000_000), &run(2_000_000)).unwrap();
        assert_eq!(comparison.value.unwrap().ratio, 1.0);
        assert_eq!(comparison.points.len(), 2);
        let ratio = comparison.points[0].response_p50_ns.unwrap().ratio;
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        assert!(comparison.points[0].valid);
        assert_eq!(comparison.cautions.len(), 1);
    }

    #[test]
    fn suites_of_bytes_are_compared_in_bytes() {
        let run = |ops| {
            let mut run = RunBuilder::of([PointBuilder::closed(4).achieved(ops)]);
            run.suite.metric = plimsoll_model::suite::Metric::Bytes;
            analyse(&run.raw())
        };
        let comparison = compare(&run(1_000), &run(3_000)).unwrap();
        assert_eq!(comparison.unit, "bytes/s");
        assert_eq!(comparison.points[0].achieved_bytes_per_s.unwrap().ratio, 3.0);
        assert_eq!(comparison.score, None);
    }

    #[test]
    fn runs_of_other_methods_are_refused() {
        let check = |change: fn(&mut RunResult), what: &str| {
            let mut other = run(1_000_000);
            change(&mut other);
            let error = compare(&run(1_000_000), &other).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        };
        check(|r| r.seed = Some(2), "seeds differ: 1 and 2");
        check(|r| r.profile = Some("quick".into()), "profiles differ: standard and quick");
        check(|r| r.suite.as_mut().unwrap().name = "nfs-v3".into(), "suites differ");
        check(|r| r.format = 2, "result formats differ");
        check(|r| r.axis.unit = "clients".into(), "kinds of load differ");
    }

    #[test]
    fn what_weakens_a_comparison_is_said() {
        let mut other = run(1_000_000);
        other.verdict.valid = false;
        other.departures = vec!["window of 3 s".to_owned()];
        other.points.retain(|_| false);
        let cautions = compare(&run(1_000_000), &other).unwrap().cautions;
        assert_eq!(cautions.len(), 4, "{cautions:?}");
    }
}
