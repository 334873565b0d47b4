//! Figures, ratios and claims as text: the same on the terminal, in HTML and in Markdown.

use plimsoll_model::comparison::{
    Claim, Comparison, FigureRow, GroupFigure, Ratio, RatioFigure, RatioGateResult,
};
use plimsoll_model::cost::CostFigure;
use plimsoll_model::gate::GateState;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, decimals, grouped, percent};

use super::{cost_name, cost_text};
use crate::text::{ABSENT, capitalised};

/// What a figure is called.
pub(crate) fn name(figure: RatioFigure) -> &'static str {
    match figure {
        RatioFigure::Peak => "peak",
        RatioFigure::PeakOpsPerS => "highest rate, ops/s",
        RatioFigure::Score => "score",
        RatioFigure::Capacity => "capacity",
        RatioFigure::OverallResponse => "overall response",
        RatioFigure::AchievedOpsPerS => "throughput",
        RatioFigure::Cost(figure) => cost_name(figure),
        RatioFigure::FirstOutputP90 => "time to first output p90",
        RatioFigure::TpotP90 => "time per output token p90",
        RatioFigure::TokensPerS => "output tokens/s",
        figure => figure.as_str(),
    }
}

/// The name with its load.
pub(crate) fn name_at_load(row: &FigureRow) -> String {
    match row.load {
        None => name(row.figure).to_owned(),
        Some(load) => format!("{} at {}", name(row.figure), grouped(load)),
    }
}

/// A figure of a group, in its unit.
pub(crate) fn value(comparison: &Comparison, figure: RatioFigure, group: &GroupFigure) -> String {
    let Some(mean) = group.mean else { return ABSENT.to_owned() };
    let least = if group.at_least { "at least " } else { "" };
    let text = match figure {
        figure if figure.is_time() => ReportedFigure::new(mean, None).time_text(),
        RatioFigure::Peak if comparison.unit == Metric::Bytes.unit() => {
            BytesPerSec(mean).to_string()
        }
        RatioFigure::Peak => format!("{} {}", grouped(mean), comparison.unit),
        RatioFigure::AchievedOpsPerS | RatioFigure::PeakOpsPerS => {
            format!("{} {}", grouped(mean), Metric::Ops.unit())
        }
        RatioFigure::Cost(figure) => cost_text(figure, mean),
        RatioFigure::TokensPerS => format!("{} tokens/s", grouped(mean)),
        RatioFigure::Goodput => percent(mean),
        _ => grouped(mean),
    };
    format!("{least}{text}")
}

/// How far the runs of a group lie apart.
pub(crate) fn spread(group: &GroupFigure) -> String {
    let percent = |ratio: f64| format!("± {} %", two_digits(ratio * 100.0));
    group.spread_ratio.map_or_else(|| ABSENT.to_owned(), percent)
}

/// A ratio and its interval, `× 1.44 (1.39–1.49)`, or why there is none.
pub(crate) fn ratio(ratio: &Ratio) -> String {
    let Some(value) = ratio.ratio else { return ABSENT.to_owned() };
    match ratio.interval {
        None => format!("× {}", times(value, f64::INFINITY)),
        Some([low, high]) => {
            let text = |bound| times(bound, high / low);
            format!("× {} ({}–{})", text(value), text(low), text(high))
        }
    }
}

/// Where only a larger ratio would have been detected, its figure is replaced by that fact.
const DETECTABLE_MAX: f64 = 10.0;

/// The claim about it, with the ratio that would have been detected.
pub(crate) fn claim_text(row: &FigureRow, index: usize) -> String {
    let Some(it) = row.ratios.get(index) else { return ABSENT.to_owned() };
    let open = (row.groups[0].at_least, row.groups[index + 1].at_least);
    let ratio = |it: &Ratio| match open {
        (true, _) => format!("at most {}", ratio(it)),
        (_, true) => format!("at least {}", ratio(it)),
        _ => ratio(it),
    };
    match it.claim {
        Claim::Differs => ratio(it),
        Claim::NotDetectable => {
            let bounds = it.interval.map(two_sided);
            let detectable = it.detectable.map(|detectable| match detectable {
                ..DETECTABLE_MAX => format!("; {} would have been", difference(detectable)),
                _ => "; not even a tenfold one would have been".to_owned(),
            });
            format!(
                "no difference seen{}{}",
                bounds.unwrap_or_default(),
                detectable.unwrap_or_default()
            )
        }
        Claim::MayBeChance => format!("{} by itself, may be chance", ratio(it)),
        Claim::TooFewRuns => format!("{}, no claim: too few runs", ratio(it)),
        Claim::AtLeast => match open {
            (true, true) => "not known: both may carry more".to_owned(),
            (true, false) => "not known: the first may carry more".to_owned(),
            _ => "not known: it may carry more".to_owned(),
        },
        Claim::Absent => "not in both".to_owned(),
    }
}

/// The same in a cell among others.
pub(crate) fn cell(row: &FigureRow, index: usize) -> String {
    let Some(it) = row.ratios.get(index) else { return ABSENT.to_owned() };
    match it.claim {
        Claim::Differs | Claim::AtLeast => claim_text(row, index),
        Claim::NotDetectable | Claim::MayBeChance => match it.interval {
            Some([low, high]) => {
                let text = |bound| times(bound, high / low);
                let word = if it.claim == Claim::MayBeChance { "chance?" } else { "none seen" };
                format!("{word} ({}–{})", text(low), text(high))
            }
            None => ABSENT.to_owned(),
        },
        Claim::TooFewRuns => ratio(it),
        Claim::Absent => ABSENT.to_owned(),
    }
}

/// The group against the first one, in a sentence for each figure of the run, for the response at
/// the highest load that counts in all groups, and for the CPU time of an op.
pub(crate) fn sentences(comparison: &Comparison, index: usize) -> Vec<String> {
    let [first, other] = [0, index + 1].map(|at| comparison.groups[at].name());
    let rows = || comparison.figures.iter();
    let mut counted = rows().filter(|row| row.not_counted.is_empty()).filter_map(|row| row.load);
    let highest = counted.next_back();
    let at_highest = |row: &&FigureRow| {
        let of_response = matches!(row.figure, RatioFigure::P50 | RatioFigure::P99);
        row.load == highest && (of_response || row.figure.is_of_streams())
    };
    let shown = rows().filter(|row| row.load.is_none() || at_highest(row));
    let load_of_costs = comparison.load_of_costs();
    let of_cpu = comparison.rows(RatioFigure::Cost(CostFigure::CpuPerOp));
    let shown = shown.chain(of_cpu.filter(|row| row.load == load_of_costs));
    let sentence = |row: &FigureRow| {
        let it = row.ratios.get(index).filter(|it| it.ratio.is_some())?;
        let [before, after] =
            [0, index + 1].map(|at| value(comparison, row.figure, &row.groups[at]));
        // From a doubling on a ratio is plainer than a percentage.
        let by = match (it.claim, it.ratio?) {
            (Claim::Differs, ratio) if ratio < 2.0 => {
                format!(", {}", more_or_less(row.figure, ratio))
            }
            _ => String::new(),
        };
        let what =
            if row.load.is_none() { capitalised(&name_at_load(row)) } else { name_at_load(row) };
        let claim = claim_text(row, index);
        Some(format!("{what}: {other} {after}, {first} {before}: {claim}{by}."))
    };
    shown.filter_map(sentence).collect()
}

/// `28 % less`, `12 % slower`.
fn more_or_less(figure: RatioFigure, ratio: f64) -> String {
    let how = match (figure.is_time(), ratio > 1.0) {
        (true, true) => "longer",
        (true, false) => "shorter",
        (false, true) => "more",
        (false, false) => "less",
    };
    format!("{} % {how}", percent_off(ratio))
}

/// How far a ratio lies from 1, in percent.
pub(super) fn percent_off(ratio: f64) -> String {
    two_digits((ratio - 1.0).abs() * 100.0)
}

/// An interval in brackets, after a word.
pub(super) fn two_sided([low, high]: [f64; 2]) -> String {
    format!(" ({}–{})", times(low, high / low), times(high, high / low))
}

/// Outcome of a condition.
pub(crate) fn gate(comparison: &Comparison, gate: &RatioGateResult) -> String {
    let group = comparison.name_of(&gate.group);
    let state = gate.state.as_str();
    let Some(ratio) = gate.ratio else {
        return format!("{}: {state}, {group} has no such figure to compare", gate.expr);
    };
    let it = Ratio { ratio: Some(ratio), interval: gate.interval, ..Ratio::default() };
    let at_load = gate.load.map_or(String::new(), |load| format!(" at {}", grouped(load)));
    let why = match (gate.state, gate.interval) {
        (GateState::Unsure, None) => "; fewer than three runs a side",
        (state, _) => state.unsure_text(gate.fails),
    };
    format!("{}: {state}, {group} {}{at_load}{why}", gate.expr, self::ratio(&it))
}

/// How many runs, and whether they are paired.
pub(crate) fn runs(comparison: &Comparison) -> String {
    let counts: Vec<usize> = comparison.groups.iter().map(|group| group.runs.len()).collect();
    match (comparison.paired, counts.as_slice()) {
        (true, [1, ..]) => "one pair of runs".to_owned(),
        (true, [first, ..]) => format!("{first} pairs of runs made in turn"),
        (false, [first, rest @ ..]) if rest.iter().all(|count| count == first) => match first {
            1 => "one run each".to_owned(),
            count => format!("{count} runs each"),
        },
        _ => counts.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ") + " runs",
    }
}

/// How much more than 1, in percent; a factor where that is clearer.
fn difference(ratio: f64) -> String {
    const FACTOR_MIN: f64 = 2.0;
    if ratio >= FACTOR_MIN {
        return format!("a factor of {}", times(ratio, f64::INFINITY));
    }
    format!("{} %", two_digits((ratio - 1.0) * 100.0))
}

fn two_digits(value: f64) -> String {
    let decimals = decimals(value, 2);
    format!("{value:.decimals$}")
}

/// A ratio with as many decimals as its interval justifies: high bound over low is `width`.
pub(crate) fn times(value: f64, width: f64) -> String {
    match (value, width) {
        (value, _) if value >= 99.5 => grouped(value.round()),
        (value, _) if value >= 9.95 => format!("{value:.1}"),
        (_, width) if width < 1.01 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

/// The rows that a chart of ratios shows: figures of the run, of the load points the median, the
/// 99th percentile and, where it is not simply the requested load, the throughput, and costs at the
/// load of the peak.
pub(crate) fn charted(it: &Comparison, index: usize) -> impl Iterator<Item = &FigureRow> {
    const TRIVIAL: f64 = 0.005;
    let throughput_differs = it.rows(RatioFigure::AchievedOpsPerS).any(move |row| {
        let ratio = row.ratios.get(index).and_then(|it| it.ratio);
        ratio.is_some_and(|ratio| (ratio - 1.0).abs() > TRIVIAL)
    });
    let shown = move |figure| match figure {
        RatioFigure::AchievedOpsPerS => throughput_differs,
        RatioFigure::P90 | RatioFigure::P95 => false,
        _ => true,
    };
    let by_figure = RatioFigure::all().filter(move |figure| shown(*figure));
    let load_of_costs = it.load_of_costs();
    let rows = by_figure.flat_map(|figure| it.rows(figure));
    rows.filter(move |row| !row.figure.is_cost() || row.load == load_of_costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(claim: Claim, interval: Option<[f64; 2]>) -> FigureRow {
        let it = Ratio {
            ratio: Some(1.44),
            interval,
            detectable: Some(1.052),
            claim,
            ..Ratio::default()
        };
        FigureRow {
            figure: RatioFigure::P99,
            load: Some(4_000.0),
            interpolated: false,
            not_counted: Vec::new(),
            groups: vec![GroupFigure::default(), GroupFigure::default()],
            ratios: vec![it],
        }
    }

    #[test]
    fn a_claim_comes_with_its_interval_and_its_absence_with_what_would_have_been_seen() {
        let bounds = Some([1.39, 1.492]);
        assert_eq!(claim_text(&row(Claim::Differs, bounds), 0), "× 1.44 (1.39–1.49)");
        assert_eq!(
            claim_text(&row(Claim::NotDetectable, Some([0.97, 1.05])), 0),
            "no difference seen (0.97–1.05); 5.2 % would have been"
        );
        assert_eq!(claim_text(&row(Claim::TooFewRuns, None), 0), "× 1.44, no claim: too few runs");
        let mut open = row(Claim::Differs, bounds);
        open.groups[1].at_least = true;
        assert_eq!(claim_text(&open, 0), "at least × 1.44 (1.39–1.49)");
    }

    #[test]
    fn ratios_have_the_digits_their_interval_leaves() {
        assert_eq!((times(1.0004, 1.002), times(11.22, 2.0)), ("1.000".into(), "11.2".into()));
        assert_eq!((times(0.0123, 1.2), times(250.4, 1.1)), ("0.01".into(), "250".into()));
    }
}
