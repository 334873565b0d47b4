//! The table: a line for each row, a column for each figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::evaluation::{Evaluation, Verdict};
use super::outcome::{Measured, RowRecord};
use super::row::Row;
use super::truth::FIGURES;

/// Where the share of all intervals that contain the truth must lie, in percent.
const MEAN_PERCENT: [f64; 2] = [94.0, 96.0];

/// The table, and what it comes to.
pub struct Summary {
    /// As Markdown.
    pub text: String,
    /// What is not as it should be.
    pub faults: Vec<String>,
}

/// What the runs of a row show of a figure.
struct Cell {
    row: String,
    figure: &'static str,
    evaluation: Evaluation,
}

/// Of the runs so far, the first `runs` of each row.
pub fn summary(rows: &[Row], records: &BTreeMap<String, RowRecord>, runs: u64) -> Summary {
    let mut text = format!(
        "| load | utilisation | window | service | host | runs | {} |\n",
        FIGURES.join(" | ")
    );
    text += &"|---".repeat(6 + FIGURES.len());
    text += "|\n";
    let mut cells = Vec::new();
    for row in rows.iter().map(Row::to_string) {
        let Some(record) = records.get(&row) else { continue };
        let evaluations = evaluations(record, runs);
        let made = record.runs.range(..runs).count();
        let shown = evaluations.map(|it| it.map_or_else(|| "–".to_owned(), |it| cell(&it, made)));
        let _ = writeln!(text, "| {} | {made} | {} |", row.replace("; ", " | "), shown.join(" | "));
        let named = FIGURES.into_iter().zip(evaluations);
        cells.extend(named.filter_map(|(figure, evaluation)| {
            Some(Cell { row: row.clone(), figure, evaluation: evaluation? })
        }));
    }
    let (line, mut faults) = mean(&cells);
    faults.extend(cells.iter().filter_map(fault));
    let _ = write!(text, "\n{line}");
    let refuted = cells.iter().filter(|it| it.evaluation.verdict != Verdict::NotRefuted).count();
    let _ = write!(text, " {refuted} of {} figures are refuted.", cells.len());
    Summary { text, faults }
}

fn evaluations(record: &RowRecord, runs: u64) -> [Option<Evaluation>; FIGURES.len()] {
    std::array::from_fn(|figure| {
        let outcomes = record.runs.range(..runs).map(|(_, outcome)| outcome);
        let measured: Vec<Measured> = outcomes.filter_map(|it| it.figures[figure]).collect();
        Evaluation::from_runs(figure, record.truth.as_ref()?, &measured)
    })
}

/// `95.2 (2.1, 2.7) 1.06; 12 % open; n 355`; in bold where it is refuted.
fn cell(it: &Evaluation, made: usize) -> String {
    let percent = |count: usize| count as f64 / it.runs as f64 * 100.0;
    let mut text = format!("{:.1}", it.percent());
    if it.verdict != Verdict::NotRefuted {
        text = format!("**{text}**");
    }
    let _ = write!(text, " ({:.1}, {:.1})", percent(it.truth_below), percent(it.truth_above));
    if it.is_constant {
        text += "; constant";
    } else {
        let width = it.width.map_or_else(|| "–".to_owned(), |width| format!("{width:.2}"));
        let _ = write!(text, " {width}; n {:.0}", it.effective);
    }
    if it.open > 0 {
        let _ = write!(text, "; {:.0} % open", percent(it.open));
    }
    if it.runs < made {
        let _ = write!(text, "; {} runs", it.runs);
    }
    text
}

/// The share over all figures with two limits and their runs, and the fault that it may be.
fn mean(cells: &[Cell]) -> (String, Vec<String>) {
    let varying = || cells.iter().map(|it| it.evaluation).filter(|it| !it.is_constant);
    let Some(of_all) = percent_of(varying()) else {
        return ("No figure varies.".to_owned(), Vec::new());
    };
    let with_two_limits = || varying().filter(|it| it.has_two_limits);
    let mean = percent_of(with_two_limits()).unwrap_or(of_all);
    let [least, most] = MEAN_PERCENT;
    let line = format!(
        "Of the intervals of {} figures with both limits {mean:.2} % contain the truth ({least:.0} \
         to {most:.0} % are required), of those of all {} figures that vary {of_all:.2} %.",
        with_two_limits().count(),
        varying().count()
    );
    let fault = (!(least..=most).contains(&mean)).then(|| line.clone());
    (line, fault.into_iter().collect())
}

/// Percent of the intervals of these figures that contain the truth; `None` of none.
fn percent_of(evaluations: impl Iterator<Item = Evaluation>) -> Option<f64> {
    let sums =
        evaluations.fold((0, 0), |(covering, runs), it| (covering + it.covering, runs + it.runs));
    (sums.1 > 0).then(|| sums.0 as f64 / sums.1 as f64 * 100.0)
}

fn fault(cell: &Cell) -> Option<String> {
    let Cell { row, figure, evaluation } = cell;
    let than = match evaluation.verdict {
        Verdict::NotRefuted => return None,
        Verdict::Below => "less often than in 93",
        Verdict::Above => "more often than in 97",
    };
    Some(format!(
        "{row}: intervals of {figure} contain the truth {than} of 100 runs: {:.1} % of {}",
        evaluation.percent(),
        evaluation.runs
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::simulated::outcome::{Line, Outcome};
    use crate::coverage::simulated::row::rows;
    use crate::coverage::simulated::truth::Truth;

    fn record(high: impl Fn(u64) -> Option<f64>) -> RowRecord {
        let mut record = RowRecord::default();
        record.add(Line::Truth(Truth {
            mean_ns: 100.0,
            deviation_ns: 100.0,
            percentiles_ns: [100.0; 5],
            limit_ns: 100,
            good_ratio: 0.9,
            closed: None,
        }));
        for run in 0..1_100 {
            let estimate = 95.0 + (run % 11) as f64;
            let mean = Measured { low: 90.0, high: high(run), estimate, share: 0.0, apart: 0.0 };
            let mut figures = [None; FIGURES.len()];
            figures[0] = Some(mean);
            record.add(Line::Run(Box::new(Outcome { run, took_ms: 1.0, figures })));
        }
        record
    }

    #[test]
    fn a_cell_names_misses_widths_and_open_ends_and_a_refuted_figure_is_a_fault() {
        let rows = rows();
        let [right, wrong] = [rows[0].to_string(), rows[1].to_string()];
        // Of twenty intervals one is too low, and one has no upper end; or half of them are.
        let ends = |run: u64| match run % 20 {
            0 => Some(99.0),
            1 => None,
            _ => Some(110.0),
        };
        let half = |run: u64| Some(if run.is_multiple_of(2) { 99.0 } else { 110.0 });
        let records =
            BTreeMap::from([(right.clone(), record(ends)), (wrong.clone(), record(half))]);
        let Summary { text, faults } = summary(&rows, &records, 1_100);
        assert!(text.contains("| 1100 | 95.0 (0.0, 5.0) 2.00; n 1000; 5 % open | – |"), "{text}");
        assert!(text.contains("| **50.0** (0.0, 50.0)"), "{text}");
        assert!(text.contains("both limits 72.50 % contain"), "{text}");
        assert!(text.ends_with("1 of 2 figures are refuted."), "{text}");
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[1].starts_with(&format!("{wrong}: intervals of mean contain the truth less"))
        );
        let few = summary(&rows, &records, 20).text;
        assert!(few.contains("| 20 | 95.0"), "the first runs alone: {few}");
    }
}
