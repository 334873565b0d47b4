//! Truths and runs as lines of a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use xtask::verb::Result;

use super::truth::{FIGURES, Truth};
use crate::lines;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Ends of its interval; `None` where it has no upper end.
    pub low: f64,
    pub high: Option<f64>,
    /// The figure itself.
    pub estimate: f64,
    /// Of a percentile, the share of the run's ops at or below the true one; of good ops, theirs.
    pub share: f64,
    /// How far apart the bounds lie that the generator's own delays and the histogram leave.
    pub apart: f64,
}

/// A run of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From 0.
    pub run: u64,
    /// How long it took.
    pub took_ms: f64,
    /// As in [`FIGURES`]; `None` where the result has no interval.
    pub figures: [Option<Measured>; FIGURES.len()],
}

/// What a line of the file has of its row.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The truth.
    Truth(Truth),
    /// One of its runs.
    Run(Box<Outcome>),
}

/// What a file has of a row.
#[derive(Debug, Default)]
pub struct RowRecord {
    /// Its truth.
    pub truth: Option<Truth>,
    /// Its runs by number.
    pub runs: BTreeMap<u64, Outcome>,
}

impl RowRecord {
    /// Takes in a line.
    pub fn add(&mut self, line: Line) {
        match line {
            Line::Truth(truth) => self.truth = Some(truth),
            Line::Run(outcome) => drop(self.runs.insert(outcome.run, *outcome)),
        }
    }
}

/// Rows by name. A truncated line is left out, and what it had is made again.
pub fn read(file: &Path) -> Result<BTreeMap<String, RowRecord>> {
    let mut rows: BTreeMap<String, RowRecord> = BTreeMap::new();
    for (row, line) in lines::read(file)?.lines().filter_map(Line::parse) {
        rows.entry(row).or_default().add(line);
    }
    Ok(rows)
}

impl Line {
    /// For the row of this name.
    pub fn json(&self, row: &str) -> String {
        let line = match self {
            Self::Truth(truth) => json!({ "row": row, "truth": truth.json() }),
            Self::Run(outcome) => {
                let Outcome { run, took_ms, figures } = &**outcome;
                let figures = figures.map(|figure| {
                    figure.map(|it| json!([it.low, it.high, it.estimate, it.share, it.apart]))
                });
                json!({ "row": row, "run": run, "ms": took_ms, "figures": figures })
            }
        };
        line.to_string()
    }

    /// The row's name, and what the line has of it; `None` of a line that is not whole.
    pub fn parse(line: &str) -> Option<(String, Self)> {
        let value: Value = serde_json::from_str(line).ok()?;
        let row = value.get("row")?.as_str()?.to_owned();
        if let Some(truth) = value.get("truth") {
            return Some((row, Self::Truth(Truth::parse(truth)?)));
        }
        let mut figures = [None; FIGURES.len()];
        for (figure, value) in figures.iter_mut().zip(value.get("figures")?.as_array()?) {
            let number = |index: usize| value.get(index).and_then(Value::as_f64);
            let all = (number(0), number(2), number(3), number(4));
            if let (Some(low), Some(estimate), Some(share), Some(apart)) = all {
                *figure = Some(Measured { low, high: number(1), estimate, share, apart });
            }
        }
        let (run, took_ms) = (value.get("run")?.as_u64()?, value.get("ms")?.as_f64()?);
        Some((row, Self::Run(Box::new(Outcome { run, took_ms, figures }))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn line(run: u64) -> Line {
        let mut figures = [None; FIGURES.len()];
        figures[0] =
            Some(Measured { low: 1.5, high: Some(2.5), estimate: 2.0, share: 0.0, apart: 0.25 });
        figures[4] =
            Some(Measured { low: 7.0, high: None, estimate: 9.0, share: 0.98, apart: 0.0 });
        Line::Run(Box::new(Outcome { run, took_ms: 12.25, figures }))
    }

    #[test]
    fn a_whole_line_is_read_back_and_half_a_line_is_none() {
        let text = line(3).json("open");
        assert_eq!(Line::parse(&text), Some(("open".to_owned(), line(3))));
        assert_eq!(Line::parse(&text[..text.len() / 2]), None);
        assert_eq!(Line::parse(""), None);
    }

    #[test]
    fn a_run_whose_line_was_cut_off_is_missing_and_the_next_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines.jsonl");
        assert!(read(&file).unwrap().is_empty());
        let [one, two, three] = [1, 2, 3].map(|run| line(run).json("open"));
        fs::write(&file, format!("{one}\n{}", &two[..two.len() / 2])).unwrap();
        writeln!(lines::append_to(&file).unwrap(), "{three}").unwrap();
        let rows = read(&file).unwrap();
        assert_eq!(rows["open"].runs.keys().copied().collect::<Vec<_>>(), [1, 3]);
    }
}
