//! `cargo lab coverage`: do the uncertainty intervals contain the truth as often as they claim?
//!
//! Many ordinary runs against the calibrated server, each with its own seed, in four rows: two
//! utilisations, half of the runs next to a process that takes a fifth of the worker's core. The
//! truth is the percentile, from due to the reply handed to the kernel, of all ops of the quiet
//! runs of that utilisation, by the server's logs. The result of a run is a line of a file, so that
//! an interrupted measurement can resume.

mod measure;
mod outcome;
mod simulated;
mod table;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use xtask::verb::Result;
use xtask::workspace;

use crate::lines;
use crate::page::Table;
use crate::program;
pub use measure::disturb;
use outcome::Outcome;

/// Word that makes this program the disturber.
pub const DISTURBER: &str = "coverage-disturber";
const TABLE: Table<'_> = Table { page: "docs/calibration.md", name: "coverage" };
const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.9];
/// Of the rows of real runs.
const REAL_UTILISATIONS: [f64; 2] = [0.6, 0.9];
/// The window of `--profile quick`.
const QUICK_S: u64 = 3;

/// Options of `cargo lab coverage`.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    /// Runs to make in all.
    #[arg(long, default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Seed of the first run; each run has the next.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seed: u64,
    /// Seconds of the window.
    #[arg(long = "window", value_name = "SECONDS", default_value_t = QUICK_S)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    window_s: u64,
    /// File with the runs made so far; they are not made again. [default: target/coverage.jsonl]
    #[arg(long)]
    file: Option<PathBuf>,
    /// Replace the table in docs/calibration.md.
    #[arg(long)]
    write: bool,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Options of `plimsoll run`.
    #[arg(last = true, value_name = "OPTION")]
    of_run: Vec<String>,
}

/// Runs of another kind.
#[derive(Subcommand)]
enum Part {
    /// Simulate thousands of runs of many loads and servers instead.
    Simulated(simulated::Options),
    /// Simulate runs whose windows last until a figure is precise.
    Until(simulated::until::Options),
}

/// What one run is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RunPlan {
    number: u64,
    seed: u64,
    window_s: u64,
    utilisation: f64,
    disturbed: bool,
}

impl RunPlan {
    /// Rows alternate, so that disturbances of the host are shared by all.
    fn number(number: u64, options: &Options) -> Self {
        Self {
            number,
            seed: options.seed + number,
            window_s: options.window_s,
            utilisation: REAL_UTILISATIONS[(number % 2) as usize],
            disturbed: !(number / 2).is_multiple_of(2),
        }
    }
}

/// Makes the runs that are missing, prints the table, and writes it on request.
pub fn coverage(options: &Options) -> Result<()> {
    match &options.part {
        Some(Part::Simulated(options)) => return simulated::simulated(options),
        Some(Part::Until(options)) => return simulated::until::until(options),
        None => {}
    }
    if options.write {
        TABLE.check()?;
    }
    let program = options.program.clone().map_or_else(program::plimsoll, Ok)?;
    let file = options.file.clone().unwrap_or_else(|| workspace::target().join("coverage.jsonl"));
    let mut outcomes = read(&file)?;
    for number in 0..options.runs {
        let plan = RunPlan::number(number, options);
        if outcomes.iter().any(|outcome| outcome.is_of(&plan)) {
            continue;
        }
        let outcome = measure::run(&program, &plan, &options.of_run)?;
        eprintln!("{}", outcome.line());
        append(&file, &outcome)?;
        outcomes.push(outcome);
    }
    let plans: Vec<RunPlan> = (0..options.runs).map(|n| RunPlan::number(n, options)).collect();
    outcomes.retain(|outcome| plans.iter().any(|plan| outcome.is_of(plan)));
    let text = format!(
        "Command: `cargo lab coverage --runs {} --seed {} --window {}`\n\n{}",
        options.runs,
        options.seed,
        options.window_s,
        table::table(&outcomes)
    );
    println!("{text}");
    if options.write { TABLE.write(&text) } else { Ok(()) }
}

/// The results so far; a truncated line is left out, and its run repeated.
fn read(file: &Path) -> Result<Vec<Outcome>> {
    Ok(lines::read(file)?.lines().filter_map(Outcome::parse).collect())
}

fn append(file: &Path, outcome: &Outcome) -> Result<()> {
    let written = writeln!(lines::append_to(file)?, "{}", outcome.json());
    written.map_err(|e| format!("{}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_quarter_of_the_runs_and_no_seed_is_used_twice() {
        let options = Options::try_parse_from(["coverage", "--runs", "80", "--seed", "5"]).unwrap();
        let all: Vec<RunPlan> = (0..80).map(|n| RunPlan::number(n, &options)).collect();
        let count = |of: &dyn Fn(&RunPlan) -> bool| all.iter().filter(|one| of(one)).count();
        for (utilisation, disturbed) in [(0.6, false), (0.6, true), (0.9, false), (0.9, true)] {
            let of_row = |it: &RunPlan| it.utilisation == utilisation && it.disturbed == disturbed;
            assert_eq!(count(&of_row), 20);
        }
        assert!((5..85).all(|seed| count(&|one| one.seed == seed) == 1));
    }

    #[test]
    fn the_page_has_a_place_for_the_table() {
        assert_eq!(TABLE.check(), Ok(()));
        assert!(Table { name: "no such table", ..TABLE }.check().is_err());
    }

    #[test]
    fn options_behind_two_dashes_are_for_the_runs() {
        let arguments = ["coverage", "--write", "--", "--pacing", "spin"];
        let options = Options::try_parse_from(arguments).unwrap();
        assert!(options.write);
        assert_eq!(options.of_run, ["--pacing", "spin"]);
        assert!(options.part.is_none());
        assert!(Options::try_parse_from(["coverage", "--runs", "0"]).is_err());
        let simulated = Options::try_parse_from(["coverage", "simulated", "--runs", "7"]).unwrap();
        assert!(matches!(simulated.part, Some(Part::Simulated(_))));
    }
}
