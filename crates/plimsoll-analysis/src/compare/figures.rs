//! The figures of each run, and the rows they make.

use plimsoll_model::capacity::Figure;
use plimsoll_model::comparison::{
    Claim, FigureRow, GroupFigure, RUNS_MIN, Ratio, RatioFigure, load_of_costs,
};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::cost::{CostFigure, CostOf};
use plimsoll_model::event::Bound;
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::stated::Stated;

use super::ratio::{Estimate, Moments};
use super::{GroupInput, RunInput, Wishes};

/// Two loads this close are the same load point.
const SAME_LOAD_RATIO: f64 = 1e-6;
/// A highest rate this close to the headline is the headline.
const SAME_PEAK_RATIO: f64 = 1e-3;
const NS_PER_MS: f64 = 1e6;

/// Figures of the run first, then load point by load point.
pub(super) fn rows(groups: &[GroupInput], wishes: Wishes<'_>) -> Vec<FigureRow> {
    let ladder = Ladder::of(groups);
    let whole = RatioFigure::all().filter(|figure| !figure.is_of_point());
    let mut rows: Vec<FigureRow> = whole
        .filter(|figure| *figure != RatioFigure::PeakOpsPerS || peaks_apart(groups))
        .map(|figure| row(figure, None, groups, wishes, ladder.interpolated))
        .collect();
    for load in &ladder.loads {
        let figures = RatioFigure::all().filter(|figure| figure.is_of_point());
        rows.extend(
            figures.map(|figure| row(figure, Some(*load), groups, wishes, ladder.interpolated)),
        );
    }
    // What no group has is no row.
    rows.retain(|row| row.groups.iter().any(|group| group.mean.is_some()));
    for index in 0..groups.len().saturating_sub(1) {
        share_chance(&mut rows, index, wishes.paired);
    }
    rows
}

/// Ratios that share the 5 %.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A score beside a peak.
    Headline,
    /// All other figures of speed.
    Beside,
    /// What an op costs at the load at which costs are compared.
    Cost,
    /// And at the other loads.
    CostBeside,
}

impl Kind {
    fn of(row: &FigureRow, load_of_costs: Option<f64>) -> Self {
        match row.figure {
            figure if figure.is_headline() => Self::Headline,
            figure if !figure.is_cost() => Self::Beside,
            _ if row.load == load_of_costs => Self::Cost,
            _ => Self::CostBeside,
        }
    }
}

/// A dozen ratios have one that leaves 1 out by chance every second time. Those of a kind share the
/// 5 %: unless one differs where all of its kind share it, none is claimed. Speed and cost are two
/// questions, so that one is not claimed for the other.
fn share_chance(rows: &mut [FigureRow], index: usize, paired: bool) {
    let load = load_of_costs(rows);
    let kinds: Vec<Kind> = rows.iter().map(|row| Kind::of(row, load)).collect();
    for question in [[Kind::Headline, Kind::Beside], [Kind::Cost, Kind::CostBeside]] {
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

/// Whether one differs where all of them share the 5 %.
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
    Some((figure, CostOf::SERVERS.into_iter().find(all_have)?))
}

fn leaves_one_out([low, high]: [f64; 2]) -> bool {
    low > 1.0 || high < 1.0
}

/// The loads that runs are compared at.
struct Ladder {
    loads: Vec<f64>,
    interpolated: bool,
}

impl Ladder {
    /// Loads that all runs have; without one, those of the first run within the range of all.
    fn of(groups: &[GroupInput]) -> Self {
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

/// They are one load point.
pub(super) fn is_same_load(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_LOAD_RATIO * one.abs().max(other.abs())
}

/// The highest rate says more than the headline in some run.
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
    wishes: Wishes<'_>,
    interpolated: bool,
) -> FigureRow {
    let cost = compared_cost(figure, groups);
    let of_point = |point: &PointResult| match cost {
        Some((figure, of)) => point.cost_of(of, figure).map(|cost| cost.value),
        None => of_point(figure, point),
    };
    let value = |run: &RunInput| -> Option<f64> {
        let found = match load {
            None => of_run(figure, run, wishes.force),
            Some(load) => of_load((figure, &of_point), run, load, wishes.force),
        };
        found.filter(|value| value.is_finite() && *value > 0.0)
    };
    let group_figure = |group: &GroupInput| {
        let values: Vec<Option<f64>> = group.runs.iter().map(value).collect();
        let at_least = group.runs.iter().zip(&values);
        let at_least =
            at_least.filter(|(_, value)| value.is_some()).any(|(run, _)| is_at_least(figure, run));
        let logs: Vec<f64> = values.iter().flatten().map(|value| value.ln()).collect();
        let moments = Moments::of(&logs);
        GroupFigure {
            mean: (!logs.is_empty()).then(|| moments.mean.exp()),
            spread_ratio: (logs.len() > 1).then(|| moments.variance.sqrt().exp_m1()),
            values,
            at_least,
        }
    };
    let figures: Vec<GroupFigure> = groups.iter().map(group_figure).collect();
    let against = |other: &GroupFigure| ratio(&figures[0], other, wishes.paired, 1);
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

/// The server would have carried more than the figure says.
fn is_at_least(figure: RatioFigure, run: &RunInput) -> bool {
    let summary = &run.result.summary;
    match figure {
        RatioFigure::Peak | RatioFigure::PeakOpsPerS => summary.bound == Bound::AtLeast,
        RatioFigure::Capacity => summary.capacity.as_ref().is_some_and(|it| it.high.is_none()),
        _ => false,
    }
}

/// A figure of a load point.
type OfPoint<'a> = &'a dyn Fn(&PointResult) -> Option<f64>;

/// A figure at a load: of the point there, or between its neighbours; times between their
/// logarithms. A run that is invalid as a whole has none, and of a point that is invalid none is
/// taken.
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
    let mut known: Vec<(f64, f64)> = run
        .result
        .points
        .iter()
        .filter(sound)
        .filter_map(|point| Some((point.requested, of_point(point)?)))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (before, behind) = known.windows(2).find_map(|pair| match pair {
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
    // A lower bound cannot be compared.
    let nanos = |figure: Figure| {
        Stated::response(point, figure).filter(|stated| !stated.lower_bound).map(|it| it.value)
    };
    let stream = |of: StreamFigure| {
        let p90 = Stated::stream(point, of, Figure::P90).filter(|stated| !stated.lower_bound);
        p90.map(|stated| stated.value)
    };
    match figure {
        RatioFigure::AchievedOpsPerS => point.achieved_ops_per_s,
        RatioFigure::P50 => nanos(Figure::P50),
        RatioFigure::P90 => nanos(Figure::P90),
        RatioFigure::P95 => nanos(Figure::P95),
        RatioFigure::P99 => nanos(Figure::P99),
        RatioFigure::FirstOutputP90 => stream(StreamFigure::FirstOutput),
        RatioFigure::TpotP90 => stream(StreamFigure::Tpot),
        RatioFigure::TokensPerS => Stated::tokens_per_s(point).map(|stated| stated.value),
        RatioFigure::Goodput => Stated::goodput(point).map(|stated| stated.value),
        _ => None,
    }
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

/// The second over the first. So many `tested` ratios share what chance may take.
fn ratio(first: &GroupFigure, other: &GroupFigure, paired: bool, tested: usize) -> Ratio {
    let known = |group: &GroupFigure| group.values.iter().copied().flatten().collect::<Vec<f64>>();
    let (firsts, others): (Vec<f64>, Vec<f64>) = match paired {
        false => (known(first), known(other)),
        true => first.values.iter().zip(&other.values).filter_map(|(a, b)| (*a).zip(*b)).unzip(),
    };
    let runs = [firsts.len(), others.len()];
    if firsts.is_empty() || others.is_empty() {
        return Ratio { runs, ..Ratio::default() };
    }
    let mean = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let found = match paired {
        true => Estimate::paired(&firsts, &others, tested),
        false => Estimate::apart(&firsts, &others, tested),
    };
    let interval = found.map(|found| found.interval());
    Ratio {
        ratio: Some((mean(&others) - mean(&firsts)).exp()),
        interval,
        interval_of_all: found.map(|found| found.interval_of_all()),
        method: found.map(|found| found.method),
        runs,
        detectable: found.map(|found| found.detectable()),
        claim: claim(interval, first.at_least, other.at_least, runs),
    }
}

fn claim(interval: Option<[f64; 2]>, first: bool, other: bool, runs: [usize; 2]) -> Claim {
    let Some(interval @ [low, high]) = interval else {
        let few = runs.iter().any(|count| *count < RUNS_MIN);
        return if few { Claim::TooFewRuns } else { Claim::Absent };
    };
    match (first, other) {
        (true, true) => Claim::AtLeast,
        // The first carries at least its figure: the ratio is at most this.
        (true, false) if high >= 1.0 => Claim::AtLeast,
        (false, true) if low <= 1.0 => Claim::AtLeast,
        _ if leaves_one_out(interval) => Claim::Differs,
        _ => Claim::NotDetectable,
    }
}
