//! The figures of each run, and the rows made of them.

use plimsoll_model::capacity::Figure;
use plimsoll_model::comparison::{
    Claim, FigureRow, GroupFigure, RUNS_MIN, Ratio, RatioFigure, load_of_costs,
};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::cost::{CostFigure, CostOf};
use plimsoll_model::event::Bound;
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{NotCounted, PointResult, RunResult};

use super::ratio::Estimate;
use super::{CompareOptions, GroupInput, RunInput};
use crate::sampling::{Moments, leaves_one_out};

/// Two loads this close are the same load point.
const SAME_LOAD_RATIO: f64 = 1e-6;
/// A highest rate this close to the headline is the headline.
const SAME_PEAK_RATIO: f64 = 1e-3;
const NS_PER_MS: f64 = 1e6;
/// Between two load points no further apart the peak is known well enough: `versus` goes a quarter
/// beyond the peak that it found.
const RUNGS_APART_MAX: f64 = 1.26;
/// A load point whose throughput is this close to that of the one below brought no more.
const SAME_RATE_RATIO: f64 = 0.05;

/// Figures of the run first, then load point by load point.
pub(super) fn rows(groups: &[GroupInput], options: CompareOptions<'_>) -> Vec<FigureRow> {
    let ladder = Ladder::from_groups(groups);
    let whole = RatioFigure::all().filter(|figure| !figure.is_of_point());
    let mut rows: Vec<FigureRow> = whole
        .filter(|figure| *figure != RatioFigure::PeakOpsPerS || peaks_apart(groups))
        .map(|figure| row(figure, None, groups, options, ladder.interpolated))
        .collect();
    for load in &ladder.loads {
        let figures = RatioFigure::all().filter(|figure| figure.is_of_point());
        rows.extend(
            figures.map(|figure| row(figure, Some(*load), groups, options, ladder.interpolated)),
        );
    }
    // A row is left out when no group has a value.
    rows.retain(|row| row.groups.iter().any(|group| group.mean.is_some()));
    for index in 0..groups.len().saturating_sub(1) {
        share_chance(&mut rows, index, options.paired);
    }
    rows
}

/// Groups of ratios that share the 5 %.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A score next to a peak.
    Headline,
    /// All other figures of speed.
    OtherSpeed,
    /// Cost of an op at the load at which costs are compared.
    Cost,
    /// And at the other loads.
    OtherCost,
}

impl Kind {
    fn from_row(row: &FigureRow, load_of_costs: Option<f64>) -> Self {
        match row.figure {
            figure if figure.is_headline() => Self::Headline,
            figure if !figure.is_cost() => Self::OtherSpeed,
            _ if row.load == load_of_costs => Self::Cost,
            _ => Self::OtherCost,
        }
    }
}

/// Of a dozen ratios one leaves 1 out by chance every second time. The ratios of a kind share the 5
/// %: none is claimed unless one differs with the shared 5 %. Speed and cost are two questions, so
/// one is not claimed for the other.
fn share_chance(rows: &mut [FigureRow], index: usize, paired: bool) {
    let load = load_of_costs(rows);
    let kinds: Vec<Kind> = rows.iter().map(|row| Kind::from_row(row, load)).collect();
    for question in [[Kind::Headline, Kind::OtherSpeed], [Kind::Cost, Kind::OtherCost]] {
        let holds = question.map(|kind| {
            let mut of_kind: Vec<&mut FigureRow> = Vec::new();
            of_kind.extend(rows.iter_mut().zip(&kinds).filter(|it| *it.1 == kind).map(|it| it.0));
            share_among(&mut of_kind, index, paired)
        });
        if holds.contains(&true) {
            continue;
        }
        for (row, _) in rows.iter_mut().zip(&kinds).filter(|it| question.contains(it.1)) {
            let it = &mut row.ratios[index];
            if it.claim == Claim::Differs {
                it.claim = Claim::MayBeChance;
            }
        }
    }
}

/// Whether one differs when all of them share the 5 %.
fn share_among(rows: &mut [&mut FigureRow], index: usize, paired: bool) -> bool {
    let tested = rows.iter().filter(|row| row.ratios[index].interval.is_some()).count();
    for row in rows.iter_mut() {
        row.ratios[index] = ratio(&row.groups[0], &row.groups[index + 1], paired, tested);
    }
    rows.iter().any(|row| {
        let Ratio { claim, interval_of_all, .. } = row.ratios[index];
        claim == Claim::Differs && interval_of_all.is_some_and(leaves_one_out)
    })
}

/// Whose cost is compared: the first that all runs have, since a host and the processes on it are
/// two things.
fn compared_cost(figure: RatioFigure, groups: &[GroupInput]) -> Option<(CostFigure, CostOf)> {
    let RatioFigure::Cost(figure) = figure else { return None };
    let has =
        |run: &RunInput, of| run.result.points.iter().any(|p| p.cost_of(of, figure).is_some());
    let all_have = |of: &CostOf| groups.iter().flat_map(|it| &it.runs).all(|run| has(run, *of));
    Some((figure, CostOf::with_figure_of_server(figure).find(all_have)?))
}

/// The loads that runs are compared at.
struct Ladder {
    loads: Vec<f64>,
    interpolated: bool,
}

impl Ladder {
    /// Loads that all runs have; without one, those of the first run within the range of all.
    fn from_groups(groups: &[GroupInput]) -> Self {
        let runs = || groups.iter().flat_map(|group| &group.runs).map(|run| &run.result);
        let Some(first) = runs().next() else {
            return Self { loads: Vec::new(), interpolated: false };
        };
        let loads: Vec<f64> = first.points.iter().map(|point| point.requested).collect();
        let shared = |load: &f64| runs().all(|run| point_at(run, *load).is_some());
        let common: Vec<f64> = loads.iter().copied().filter(shared).collect();
        if !common.is_empty() {
            return Self { loads: common, interpolated: false };
        }
        let bounds = |run: &RunResult| {
            let loads = run.points.iter().map(|point| point.requested);
            loads.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], load| {
                [low.min(load), high.max(load)]
            })
        };
        let range = runs().map(bounds).fold([f64::NEG_INFINITY, f64::INFINITY], |all, run| {
            [all[0].max(run[0]), all[1].min(run[1])]
        });
        let within = |load: &f64| (range[0]..=range[1]).contains(load);
        Self { loads: loads.into_iter().filter(within).collect(), interpolated: true }
    }
}

pub(super) fn point_at(run: &RunResult, load: f64) -> Option<&PointResult> {
    run.points.iter().find(|point| is_same_load(point.requested, load))
}

/// Both are one load point.
pub(super) fn is_same_load(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_LOAD_RATIO * one.abs().max(other.abs())
}

/// The highest rate exceeds the headline in some run.
fn peaks_apart(groups: &[GroupInput]) -> bool {
    let apart = |run: &RunInput| {
        let summary = &run.result.summary;
        let both = summary.peak_ops_per_s.zip(summary.value);
        both.is_some_and(|(peak, value)| (peak / value - 1.0).abs() > SAME_PEAK_RATIO)
    };
    groups.iter().flat_map(|group| &group.runs).any(apart)
}

fn row(
    figure: RatioFigure,
    load: Option<f64>,
    groups: &[GroupInput],
    options: CompareOptions<'_>,
    interpolated: bool,
) -> FigureRow {
    let cost = compared_cost(figure, groups);
    let of_point = |point: &PointResult| match cost {
        Some((figure, of)) => point.cost_of(of, figure).map(|cost| cost.value),
        None => of_point(figure, point),
    };
    let value = |run: &RunInput| -> Option<f64> {
        let result = match load {
            None => of_run(figure, run, options.force),
            Some(load) => of_load((figure, &of_point), run, load, options.force),
        };
        result.filter(|value| value.is_finite() && *value > 0.0)
    };
    let group_figure = |group: &GroupInput| {
        let values: Vec<Option<f64>> = group.runs.iter().map(value).collect();
        let at_least = group.runs.iter().zip(&values);
        let at_least =
            at_least.filter(|(_, value)| value.is_some()).any(|(run, _)| is_at_least(figure, run));
        let logs: Vec<f64> = values.iter().flatten().map(|value| value.ln()).collect();
        let moments = Moments::from_values(&logs);
        GroupFigure {
            mean: (!logs.is_empty()).then(|| moments.mean.exp()),
            spread_ratio: (logs.len() > 1).then(|| moments.variance.sqrt().exp_m1()),
            values,
            at_least,
        }
    };
    let figures: Vec<GroupFigure> = groups.iter().map(group_figure).collect();
    let against = |other: &GroupFigure| ratio(&figures[0], other, options.paired, 1);
    let ratios = figures.iter().skip(1).map(against).collect();
    let left_out = |group: &&GroupInput| {
        let at = |run: &RunInput| load.and_then(|load| point_at(&run.result, load)?.not_counted);
        group.runs.iter().any(|run| at(run).is_some())
    };
    FigureRow {
        figure,
        load,
        interpolated: load.is_some() && interpolated,
        not_counted: groups.iter().filter(left_out).map(|group| group.label.clone()).collect(),
        groups: figures,
        ratios,
    }
}

/// A figure of the whole run; none of an invalid one, unless that is forced.
fn of_run(figure: RatioFigure, run: &RunInput, force: bool) -> Option<f64> {
    let summary = &run.result.summary;
    if !run.result.verdict.valid && !force {
        return None;
    }
    match figure {
        RatioFigure::Peak => summary.value,
        RatioFigure::PeakOpsPerS => summary.peak_ops_per_s,
        RatioFigure::Score => summary.score,
        RatioFigure::Capacity => summary.capacity.as_ref().map(|capacity| capacity.value),
        RatioFigure::OverallResponse => summary.overall_response_ms.origin.map(|ms| ms * NS_PER_MS),
        _ => None,
    }
}

/// The server could have carried more than the figure, or nothing showed that it could not.
fn is_at_least(figure: RatioFigure, run: &RunInput) -> bool {
    let summary = &run.result.summary;
    match figure {
        RatioFigure::Peak => summary.bound == Bound::AtLeast || is_rung(&run.result),
        RatioFigure::PeakOpsPerS => summary.bound == Bound::AtLeast,
        RatioFigure::Capacity => summary.capacity.as_ref().is_some_and(|it| it.high.is_none()),
        _ => false,
    }
}

/// The headline of an open load is the highest sustained load point. It is not the peak if the next
/// one lies far above it, unless that one brought the same throughput, nor if it brought more.
fn is_rung(run: &RunResult) -> bool {
    let open = || run.points.iter().filter(|point| point.offered_ops_per_s.is_some());
    let by_load = |a: &&PointResult, b: &&PointResult| a.requested.total_cmp(&b.requested);
    let Some(sustained) = open().filter(|point| point.counts()).max_by(by_load) else {
        return false;
    };
    let above = open().filter(|point| point.requested > sustained.requested).min_by(by_load);
    let Some(above) = above else { return false };
    let is_far = above.requested > sustained.requested * RUNGS_APART_MAX;
    let rates = above.achieved_ops_per_s.zip(sustained.achieved_ops_per_s);
    match rates.map(|(above, sustained)| above / sustained - 1.0) {
        Some(gain) if above.not_counted == Some(NotCounted::NotHeld) => {
            gain > SAME_RATE_RATIO || (gain < -SAME_RATE_RATIO && is_far)
        }
        _ => is_far,
    }
}

/// A figure of a load point.
type OfPoint<'a> = &'a dyn Fn(&PointResult) -> Option<f64>;

/// A figure at a load: of the point there, or interpolated between its neighbours; times between
/// their logarithms. An invalid run has none, and invalid points are not used.
pub(super) fn of_load(
    (figure, of_point): (RatioFigure, OfPoint<'_>),
    run: &RunInput,
    load: f64,
    force: bool,
) -> Option<f64> {
    let broken = run.result.verdict.reasons.iter().any(|reason| reason.point.is_none());
    if broken && !force {
        return None;
    }
    let sound = |point: &&PointResult| point.valid || force;
    if let Some(point) = point_at(&run.result, load) {
        return Some(point).filter(sound).and_then(of_point);
    }
    let mut curve_points: Vec<(f64, f64)> = run
        .result
        .points
        .iter()
        .filter(sound)
        .filter_map(|point| Some((point.requested, of_point(point)?)))
        .collect();
    curve_points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (before, behind) = curve_points.windows(2).find_map(|pair| match pair {
        [a, b] if (a.0..=b.0).contains(&load) && a.0 < b.0 => Some((*a, *b)),
        _ => None,
    })?;
    let part = (load - before.0) / (behind.0 - before.0);
    Some(match figure.is_time() {
        true => (before.1.ln() + part * (behind.1.ln() - before.1.ln())).exp(),
        false => before.1 + part * (behind.1 - before.1),
    })
}

fn of_point(figure: RatioFigure, point: &PointResult) -> Option<f64> {
    let response = |figure| ReportedFigure::response(point, figure);
    let stream = |of| ReportedFigure::stream(point, of, Figure::P90);
    let reported = match figure {
        RatioFigure::AchievedOpsPerS => ReportedFigure::achieved(point),
        RatioFigure::P50 => response(Figure::P50),
        RatioFigure::P90 => response(Figure::P90),
        RatioFigure::P95 => response(Figure::P95),
        RatioFigure::P99 => response(Figure::P99),
        RatioFigure::FirstOutputP90 => stream(StreamFigure::FirstOutput),
        RatioFigure::TpotP90 => stream(StreamFigure::Tpot),
        RatioFigure::TokensPerS => ReportedFigure::tokens_per_s(point),
        RatioFigure::Goodput => ReportedFigure::goodput(point),
        _ => None,
    };
    // A lower bound cannot be compared.
    reported.filter(|reported| !reported.lower_bound).map(|reported| reported.value)
}

/// The interval of a group's ratio at one of several loads, which share what chance may take.
pub(super) fn interval_of_shared(
    row: &FigureRow,
    index: usize,
    paired: bool,
    loads: usize,
) -> Option<[f64; 2]> {
    ratio(&row.groups[0], &row.groups[index], paired, loads).interval_of_all
}

/// The second over the first. `tested` ratios share the 5 %.
fn ratio(first: &GroupFigure, other: &GroupFigure, paired: bool, tested: usize) -> Ratio {
    let measured =
        |group: &GroupFigure| group.values.iter().copied().flatten().collect::<Vec<f64>>();
    let (firsts, others): (Vec<f64>, Vec<f64>) = match paired {
        false => (measured(first), measured(other)),
        true => first.values.iter().zip(&other.values).filter_map(|(a, b)| (*a).zip(*b)).unzip(),
    };
    let runs = [firsts.len(), others.len()];
    if firsts.is_empty() || others.is_empty() {
        return Ratio { runs, ..Ratio::default() };
    }
    let mean = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let estimate = match paired {
        true => Estimate::paired(&firsts, &others, tested),
        false => Estimate::apart(&firsts, &others, tested),
    };
    let interval = estimate.map(|estimate| estimate.interval());
    let ratio = (mean(&others) - mean(&firsts)).exp();
    Ratio {
        ratio: Some(ratio),
        interval,
        interval_of_all: estimate.map(|estimate| estimate.interval_of_all()),
        method: estimate.map(|estimate| estimate.method),
        runs,
        detectable: estimate.map(|estimate| estimate.detectable()),
        claim: match (first.at_least, other.at_least, interval.unwrap_or([ratio; 2])) {
            (true, true, _) => Claim::AtLeast,
            // The first carries at least its figure: the ratio is at most this.
            (true, false, [_, high]) if high >= 1.0 => Claim::AtLeast,
            (false, true, [low, _]) if low <= 1.0 => Claim::AtLeast,
            _ => claim(interval, runs),
        },
    }
}

fn claim(interval: Option<[f64; 2]>, runs: [usize; 2]) -> Claim {
    match interval {
        Some(interval) if leaves_one_out(interval) => Claim::Differs,
        Some(_) => Claim::NotDetectable,
        None if runs.iter().any(|count| *count < RUNS_MIN) => Claim::TooFewRuns,
        None => Claim::Absent,
    }
}
