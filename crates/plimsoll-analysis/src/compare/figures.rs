//! The figures of each run, and the rows they make.

use plimsoll_model::capacity::Figure;
use plimsoll_model::comparison::{Claim, FigureRow, GroupFigure, RUNS_MIN, Ratio, RatioFigure};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::event::Bound;
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
    let whole = RatioFigure::ALL.into_iter().filter(|figure| !figure.is_of_point());
    let mut rows: Vec<FigureRow> = whole
        .filter(|figure| *figure != RatioFigure::PeakOpsPerS || peaks_apart(groups))
        .map(|figure| row(figure, None, groups, wishes, ladder.interpolated))
        .collect();
    for load in &ladder.loads {
        let figures = RatioFigure::ALL.into_iter().filter(|figure| figure.is_of_point());
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

/// A dozen ratios have one that leaves 1 out by chance every second time. Headlines (a score beside
/// a peak) share the 5 %, and so do all other ratios: unless one differs where all of its kind
/// share it, none is claimed.
fn share_chance(rows: &mut [FigureRow], index: usize, paired: bool) {
    for is_headline in [true, false] {
        let of_kind = |row: &&mut FigureRow| row.figure.is_headline() == is_headline;
        let tested = rows.iter_mut().filter(of_kind);
        let tested = tested.filter(|row| row.ratios[index].interval.is_some()).count();
        for row in rows.iter_mut().filter(of_kind) {
            row.ratios[index] = ratio(&row.groups[0], &row.groups[index + 1], paired, tested);
        }
    }
    let holds = |row: &FigureRow| {
        let Ratio { claim, interval_of_all, .. } = row.ratios[index];
        claim == Claim::Differs && interval_of_all.is_some_and(leaves_one_out)
    };
    if rows.iter().any(holds) {
        return;
    }
    for row in rows {
        let it = &mut row.ratios[index];
        if it.claim == Claim::Differs {
            it.claim = Claim::MayBeChance;
        }
    }
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

fn point_at(run: &RunResult, load: f64) -> Option<&PointResult> {
    let same = |a: f64, b: f64| (a - b).abs() <= SAME_LOAD_RATIO * a.abs().max(b.abs());
    run.points.iter().find(|point| same(point.requested, load))
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
    let value = |run: &RunInput| -> Option<f64> {
        let found = match load {
            None => of_run(figure, run, wishes.force),
            Some(load) => of_load(figure, run, load, wishes.force),
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

/// A figure at a load: of the point there, or between its neighbours; times between their
/// logarithms. A run that is invalid as a whole has none, and of a point that is invalid none is
/// taken.
fn of_load(figure: RatioFigure, run: &RunInput, load: f64, force: bool) -> Option<f64> {
    let broken = run.result.verdict.reasons.iter().any(|reason| reason.point.is_none());
    if broken && !force {
        return None;
    }
    let sound = |point: &&PointResult| point.valid || force;
    if let Some(point) = point_at(&run.result, load) {
        return Some(point).filter(sound).and_then(|point| of_point(figure, point));
    }
    let mut known: Vec<(f64, f64)> = run
        .result
        .points
        .iter()
        .filter(sound)
        .filter_map(|point| Some((point.requested, of_point(figure, point)?)))
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
    match figure {
        RatioFigure::AchievedOpsPerS => point.achieved_ops_per_s,
        RatioFigure::P50 => nanos(Figure::P50),
        RatioFigure::P90 => nanos(Figure::P90),
        RatioFigure::P95 => nanos(Figure::P95),
        RatioFigure::P99 => nanos(Figure::P99),
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
