//! Curves over load: of each group from its runs' own points, and of published systems. Rows of
//! figures hold only loads that all groups have; a curve holds all loads of its group.

use plimsoll_model::capacity::Figure;
use plimsoll_model::comparison::{Comparison, Curve, CurveFigure, CurvePoint, RatioFigure};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Metric;

use super::figures::{is_same_load, of_load, point_at};
use super::{GroupInput, RunInput};
use crate::published::PublishedCurve;

/// A curve of each group, in their order. A curve may be empty: no run of the group counts.
pub(super) fn of_groups(groups: &[GroupInput], force: bool) -> Vec<Curve> {
    let curve = |group: &GroupInput| Curve {
        label: group.label.clone(),
        published: None,
        points: points(&group.runs, force),
    };
    groups.iter().map(curve).collect()
}

fn points(runs: &[RunInput], force: bool) -> Vec<CurvePoint> {
    let all = loads(runs).into_iter().map(|load| CurvePoint {
        load,
        throughput: across_runs(runs, load, force, (RatioFigure::AchievedOpsPerS, throughput)),
        response_mean_ns: across_runs(runs, load, force, (RatioFigure::P99, mean)),
        response_p99_ns: across_runs(runs, load, force, (RatioFigure::P99, p99)),
        not_counted: runs.iter().any(|run| left_out(run, load)),
    });
    all.filter(|point| point.throughput.is_some()).collect()
}

/// Every load of any run, each once.
fn loads(runs: &[RunInput]) -> Vec<f64> {
    let mut loads: Vec<f64> = Vec::new();
    for run in runs {
        let is_listed = |load: f64| loads.iter().any(|other| is_same_load(load, *other));
        let new = run.result.points.iter().map(|point| point.requested);
        let new: Vec<f64> = new.filter(|load| load.is_finite() && !is_listed(*load)).collect();
        loads.extend(new);
    }
    loads.sort_by(f64::total_cmp);
    loads
}

type OfPoint = fn(&PointResult) -> Option<f64>;

/// Mean and range of the runs that reach this load. Between two points of a run its figure is
/// interpolated linearly.
fn across_runs(
    runs: &[RunInput],
    load: f64,
    force: bool,
    (figure, of_point): (RatioFigure, OfPoint),
) -> Option<CurveFigure> {
    let value = |run: &RunInput| of_load((figure, &of_point), run, load, force);
    let is_positive = |value: &f64| value.is_finite() && *value > 0.0;
    let values: Vec<f64> = runs.iter().filter_map(value).filter(is_positive).collect();
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let range = (values.len() > 1).then_some([low, high]);
    Some(CurveFigure { value: (logs / values.len() as f64).exp(), range })
}

/// Suites whose headline counts bytes give them at each point.
fn throughput(point: &PointResult) -> Option<f64> {
    point.achieved_bytes_per_s.or(point.achieved_ops_per_s)
}

fn mean(point: &PointResult) -> Option<f64> {
    exact(point, Figure::Mean)
}

fn p99(point: &PointResult) -> Option<f64> {
    exact(point, Figure::P99)
}

/// A lower bound is left out of a curve.
fn exact(point: &PointResult, figure: Figure) -> Option<f64> {
    ReportedFigure::response(point, figure)
        .filter(|reported| !reported.lower_bound)
        .map(|reported| reported.value)
}

fn left_out(run: &RunInput, load: f64) -> bool {
    point_at(&run.result, load).is_some_and(|point| point.not_counted.is_some())
}

/// Adds published curves to those of the groups, as far as they have the same axis and unit and
/// follow the same method. Notes name the omitted curves and the reasons.
pub fn add_published(comparison: &mut Comparison, published: Vec<PublishedCurve>) {
    let mut at_achieved = Vec::new();
    for it in published {
        match why_not(comparison, &it) {
            Some(why) => comparison.notes.push(format!("{} is not drawn: {why}", it.curve.label)),
            None => {
                at_achieved.extend(it.at_achieved.then(|| it.curve.label.clone()));
                comparison.curves.push(it.curve);
            }
        }
    }
    if !at_achieved.is_empty() {
        comparison.notes.push(format!(
            "the source prints no requested loads, so each point is drawn at the rate it achieved: \
             {}",
            at_achieved.join("; ")
        ));
    }
    if comparison.curves.iter().any(|curve| curve.published.is_some()) {
        comparison.notes.push(
            "published curves are context of their time and no comparison: other servers, networks, \
             clients and software; no ratio to them is claimed"
                .to_owned(),
        );
    }
}

fn why_not(comparison: &Comparison, it: &PublishedCurve) -> Option<String> {
    if it.curve.points.is_empty() {
        return Some("its source prints no load points".to_owned());
    }
    if !it.suites.contains(&comparison.suite) {
        let (own, suite) = (it.suites.join(", "), &comparison.suite);
        return Some(format!("it follows the method of {own}, and the runs are of {suite}"));
    }
    if it.axis_unit != comparison.axis.unit {
        let (own, axis) = (&it.axis_unit, &comparison.axis.unit);
        return Some(format!("its load is in {own}, and that of the runs in {axis}"));
    }
    let unit = match comparison.unit == Metric::Bytes.unit() {
        true => Metric::Bytes.unit(),
        false => Metric::Ops.unit(),
    };
    (it.unit != unit)
        .then(|| format!("its throughput is in {}, and that of the runs in {unit}", it.unit))
}
