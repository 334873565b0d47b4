//! Results side by side. A ratio is claimed only of figures whose stated intervals do not meet, and
//! whether that is more than chance takes repeated runs all the same.

use plimsoll_model::event::Bound;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::stated::{Stated, Time};

/// Two loads this close are the same load point.
const SAME_LOAD_RATIO: f64 = 1e-6;

/// A result against the first one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The headline value.
    pub value: Option<Difference>,
    /// Its unit.
    pub unit: String,
    /// Score of suites that have one.
    pub score: Option<Difference>,
    /// The highest throughput of any point.
    pub peak_ops_per_s: Option<Difference>,
    /// Overall response time by the `origin` definition, in nanoseconds; below 1 is faster.
    pub overall_response_ns: Option<Difference>,
    /// Load points that both runs have, in the first's order.
    pub points: Vec<PointComparison>,
    /// What a reader must know, for a person.
    pub cautions: Vec<String>,
}

/// Two figures, and what may be said of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Figure of the first run.
    pub first: Stated,
    /// Figure of the other run.
    pub other: Stated,
    /// What may be said.
    pub claim: Claim,
}

/// What two figures allow to be said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// Their intervals do not meet: the second over the first.
    Ratio {
        /// Of the figures.
        ratio: f64,
        /// Of the bounds that are nearest and furthest: `[low, high]`; no high where the first's
        /// lower bound is zero.
        interval: (f64, Option<f64>),
    },
    /// Some value lies within both intervals.
    NotDetectable,
    /// A figure carries no weight.
    NotComparable(Weakness),
}

/// Why a figure carries no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Weakness {
    /// How far it may be off is not known.
    #[error("no stated interval on both sides")]
    NoInterval,
    /// Rules were broken.
    #[error("not valid in both runs")]
    Invalid,
    /// The server carried more than that.
    #[error("one of them is no limit of its server: at least")]
    AtLeast,
}

impl Difference {
    fn of(first: Option<Stated>, other: Option<Stated>) -> Option<Self> {
        let (first, other) = (first?, other?);
        Some(Self { first, other, claim: claim(&first, &other) })
    }

    /// The same, unless there is a reason against any claim.
    fn unless(self, weakness: Option<Weakness>) -> Self {
        Self { claim: weakness.map_or(self.claim, Claim::NotComparable), ..self }
    }
}

fn claim(first: &Stated, other: &Stated) -> Claim {
    let (Some([low, high]), Some([other_low, other_high])) = (first.interval, other.interval)
    else {
        return Claim::NotComparable(Weakness::NoInterval);
    };
    if first.value <= 0.0 || (low <= other_high && other_low <= high) {
        return Claim::NotDetectable;
    }
    let furthest = (low > 0.0).then(|| other_high / low);
    Claim::Ratio { ratio: other.value / first.value, interval: (other_low / high, furthest) }
}

/// The same load in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PointComparison {
    /// The load, on the axis of both.
    pub requested: f64,
    /// Throughput.
    pub achieved_ops_per_s: Option<Difference>,
    /// Application bytes per second, of suites whose metric it is.
    pub achieved_bytes_per_s: Option<Difference>,
    /// Mean service time, in nanoseconds.
    pub service_mean_ns: Option<Difference>,
    /// Median response time, in nanoseconds.
    pub response_p50_ns: Option<Difference>,
    /// 99th percentile of the response time, in nanoseconds.
    pub response_p99_ns: Option<Difference>,
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
    let at_least = [one, two].iter().any(|summary| summary.bound == Bound::AtLeast);
    let invalid = [first, other].iter().any(|run| !run.verdict.valid);
    let weakness = match (invalid, at_least) {
        (true, _) => Some(Weakness::Invalid),
        (false, true) => Some(Weakness::AtLeast),
        (false, false) => None,
    };
    let figure = |of: fn(&RunResult) -> Option<Stated>| {
        Difference::of(of(first), of(other)).map(|figures| figures.unless(weakness))
    };
    let overall = [one, two].map(|summary| Stated::overall(summary, |overall| overall.origin));
    Ok(Comparison {
        value: figure(|run| Stated::headline(&run.summary)),
        unit: one.unit.clone(),
        score: figure(|run| Stated::score(&run.summary)),
        peak_ops_per_s: figure(|run| reached(run, run.summary.peak_ops_per_s?)),
        overall_response_ns: Difference::of(overall[0], overall[1])
            .map(|figures| figures.unless(weakness.filter(|why| *why == Weakness::Invalid))),
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

/// A rate with the interval of the point that reached it, where its rate has one.
fn reached(run: &RunResult, value: f64) -> Option<Stated> {
    let rates = run.points.iter().filter_map(Stated::achieved);
    let of_point = rates.into_iter().find(|rate| rate.value == value);
    Some(of_point.unwrap_or(Stated::new(value, None)))
}

fn same_load(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_LOAD_RATIO * a.abs().max(b.abs())
}

fn compare_points(a: &PointResult, b: &PointResult) -> PointComparison {
    let valid = a.valid && b.valid;
    let weakness = (!valid).then_some(Weakness::Invalid);
    let figure = |of: &dyn Fn(&PointResult) -> Option<Stated>| {
        Difference::of(of(a), of(b)).map(|figures| figures.unless(weakness))
    };
    let bytes = |point: &PointResult| Some(Stated::new(point.achieved_bytes_per_s?, None));
    PointComparison {
        requested: a.requested,
        achieved_ops_per_s: figure(&Stated::achieved),
        achieved_bytes_per_s: figure(&bytes),
        service_mean_ns: figure(&|point| Stated::service(point, Time::Mean)),
        response_p50_ns: figure(&|point| Stated::response(point, Time::P50)),
        response_p99_ns: figure(&|point| Stated::response(point, Time::P99)),
        valid,
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
    use plimsoll_model::result::TimeIntervals;

    use super::*;
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    fn run(response_ns: u64) -> RunResult {
        let points = [1_000.0, 2_000.0].map(|r| PointBuilder::open(r).response_ns(response_ns));
        analyse(&RunBuilder::of(points).raw())
    }

    /// The same with intervals of a tenth to either side.
    fn stated(response_ns: u64) -> RunResult {
        let mut run = run(response_ns);
        for point in &mut run.points {
            let around = |value: f64| Some([value * 0.9, value * 1.1]);
            let p50 = point.response_ns.and_then(|times| times.p50).unwrap() as f64;
            let intervals = TimeIntervals { p50: around(p50), ..TimeIntervals::default() };
            point.response_interval_ns = Some(intervals);
            point.achieved_interval_ops_per_s = around(point.achieved_ops_per_s.unwrap());
        }
        // As if the server had not held the next load.
        run.summary.bound = Bound::Exact;
        run.summary.value_interval = run.summary.value.map(|value| [value * 0.9, value * 1.1]);
        run
    }

    fn p50_claim(first: &RunResult, other: &RunResult) -> Claim {
        compare(first, other).unwrap().points[0].response_p50_ns.unwrap().claim
    }

    #[test]
    fn a_ratio_is_claimed_of_figures_whose_intervals_do_not_meet() {
        let Claim::Ratio { ratio, interval: (low, Some(high)) } =
            p50_claim(&stated(1_000_000), &stated(2_000_000))
        else {
            panic!("twice as slow is a difference")
        };
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        assert!((low - 1.636).abs() < 0.01 && (high - 2.444).abs() < 0.01, "{low} to {high}");
    }

    #[test]
    fn figures_whose_intervals_meet_have_no_detectable_difference() {
        assert_eq!(p50_claim(&stated(1_000_000), &stated(1_150_000)), Claim::NotDetectable);
        let comparison = compare(&stated(1_000_000), &stated(2_000_000)).unwrap();
        assert_eq!(comparison.value.unwrap().claim, Claim::NotDetectable);
        assert_eq!(comparison.points.len(), 2);
        assert_eq!(comparison.cautions.len(), 1);
    }

    #[test]
    fn nothing_is_claimed_of_figures_that_carry_no_weight() {
        let without = Claim::NotComparable(Weakness::NoInterval);
        let mut bare = stated(1_000_000);
        bare.points[0].response_interval_ns = None;
        assert_eq!(p50_claim(&bare, &stated(2_000_000)), without);
        let mut invalid = stated(2_000_000);
        invalid.points[0].valid = false;
        let broken = Claim::NotComparable(Weakness::Invalid);
        assert_eq!(p50_claim(&stated(1_000_000), &invalid), broken);
        let mut more = stated(1_000_000);
        more.summary.bound = Bound::AtLeast;
        let value = compare(&stated(1_000_000), &more).unwrap().value.unwrap();
        assert_eq!(value.claim, Claim::NotComparable(Weakness::AtLeast));
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
        let bytes = comparison.points[0].achieved_bytes_per_s.unwrap();
        assert_eq!((bytes.first.value, bytes.other.value), (1_000_000.0, 3_000_000.0));
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
