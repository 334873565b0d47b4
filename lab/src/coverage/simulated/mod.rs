//! `cargo lab coverage simulated`: do the uncertainty intervals contain the truth as often as they
//! claim, neither less nor more often, whatever load and server are?
//!
//! Thousands of runs of each row of a covering array. A run is the engine's own worker under
//! simulated time, whose intervals pass through the analysis of a real run. The truth of a row is
//! that of theory, or of a long simulation without either. A disturbed generator stands still now
//! and then; the truth is that without such pauses, as the intervals claim. What an operating
//! system does to a generator is left to real runs (`cargo lab coverage`).
//!
//! | module | content |
//! | --- | --- |
//! | [`row`] | the rows, their clients and seeds |
//! | [`server`] | the simulated server |
//! | [`truth`] | what is true of a row |
//! | [`run`] | one run |
//! | [`outcome`] | the file of truths and runs, so that an interrupted measurement can resume |
//! | [`evaluation`] | what the runs of a row show of a figure |
//! | [`table`] | the table |
//! | [`until`] | windows that last until a figure is precise |

mod evaluation;
mod outcome;
mod row;
mod run;
mod server;
mod table;
mod truth;
pub mod until;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Parser;
use xtask::verb::Result;
use xtask::workspace;

use crate::lines;
use crate::page::Table;
use crate::process::now;
use crate::program;
use outcome::{Line, Outcome, RowRecord};
use row::{ROWS, Row};
use run::RowRunner;
use truth::Truth;

const TABLE: Table<'_> = Table { page: "docs/calibration.md", name: "coverage-simulated" };
/// Progress is printed this often.
const PROGRESS: Duration = Duration::from_secs(20);

/// Options of `cargo lab coverage simulated`.
#[derive(Parser)]
pub struct Options {
    /// Runs of each row.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Rows to make, by their numbers from 1. [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=ROWS as u64))]
    rows: Vec<u64>,
    /// Runs made at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// File with what has been made so far; it is not made again. Another program, or other rows,
    /// need another file. [default: target/coverage-simulated.jsonl]
    #[arg(long)]
    file: Option<PathBuf>,
    /// Print the rows with their numbers, and make none.
    #[arg(long)]
    list: bool,
    /// Replace the table in docs/calibration.md.
    #[arg(long)]
    write: bool,
}

/// Makes the runs that are missing, prints the table, and writes it on request. An error where a
/// figure is refuted.
pub fn simulated(options: &Options) -> Result<()> {
    if options.list {
        (1..).zip(row::rows()).for_each(|(number, row)| println!("{number}: {row}"));
        return Ok(());
    }
    if cfg!(debug_assertions) {
        return optimised();
    }
    if options.write {
        TABLE.check()?;
    }
    let file = options.file.clone();
    let file = file.unwrap_or_else(|| workspace::target().join("coverage-simulated.jsonl"));
    let mut records = outcome::read(&file)?;
    let rows = chosen(options);
    let mut lines = lines::append_to(&file)?;
    add_truths(&rows, options, (&mut records, &mut lines))?;
    add_runs(&rows, options, (&mut records, &mut lines))?;
    print_speeds(&rows, &records);
    let summary = table::summary(&rows, &records, options.runs);
    let text = format!(
        "Command: `cargo lab coverage simulated --runs {}`\n\n{}",
        options.runs, summary.text
    );
    println!("{text}");
    if options.write {
        TABLE.write(&text)?;
    }
    match summary.faults.is_empty() {
        true => Ok(()),
        false => Err(format!("not as claimed:\n{}", summary.faults.join("\n"))),
    }
}

/// The same, by this program's release build: without optimisation runs take ten times as long.
fn optimised() -> Result<()> {
    let program = program::lab()?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    // The histograms of a run take tens of megabytes: the allocator keeps their pages.
    let kept_bytes = (1_u32 << 30).to_string();
    for variable in ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"] {
        command.env(variable, &kept_bytes);
    }
    match command.status().map_err(|e| format!("{}: {e}", program.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("{} ended with {status}", program.display())),
    }
}

fn chosen(options: &Options) -> Vec<Row> {
    let is_chosen = |number| options.rows.is_empty() || options.rows.contains(&number);
    let rows = (1..).zip(row::rows()).filter(|(number, _)| is_chosen(*number));
    rows.map(|(_, row)| row).collect()
}

/// What has been made, and where it is written.
type Made<'m> = (&'m mut BTreeMap<String, RowRecord>, &'m mut File);

/// The truths that are missing.
fn add_truths(rows: &[Row], options: &Options, (records, lines): Made<'_>) -> Result<()> {
    let is_missing = |row: &&Row| {
        let record = records.get(&row.to_string());
        record.is_none_or(|record| record.truth.is_none())
    };
    let missing: Vec<Row> = rows.iter().filter(is_missing).copied().collect();
    let begin = now();
    let truth =
        |row: &Row| -> Result<(Row, Line)> { Ok((*row, Line::Truth(Truth::from_row(row)?))) };
    each_in_threads(&missing, options.threads, &truth, |(row, line)| {
        add(row, line, (&mut *records, &mut *lines))
    })?;
    if !missing.is_empty() {
        eprintln!("{} truths in {:.0} s", missing.len(), begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The runs that are missing: the first of each row, then the second.
fn add_runs(rows: &[Row], options: &Options, (records, lines): Made<'_>) -> Result<()> {
    let mut runners = Vec::new();
    for row in rows {
        let truth = records.get(&row.to_string()).and_then(|record| record.truth.clone());
        runners.push(RowRunner::new(*row, truth.ok_or("a row has no truth")?)?);
    }
    let is_missing = |(run, at): &(u64, usize)| {
        let record = records.get(&rows[*at].to_string());
        record.is_none_or(|record| !record.runs.contains_key(run))
    };
    let all = (0..options.runs).flat_map(|run| (0..rows.len()).map(move |at| (run, at)));
    let missing: Vec<(u64, usize)> = all.filter(is_missing).collect();
    let (begin, mut printed, mut made) = (now(), Duration::ZERO, 0_u32);
    let outcome = |&(run, at): &(u64, usize)| -> Result<(Row, Line)> {
        let begin = now();
        let figures = runners[at].run(run)?;
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        Ok((rows[at], Line::Run(Box::new(Outcome { run, took_ms, figures }))))
    };
    each_in_threads(&missing, options.threads, &outcome, |(row, line)| {
        made += 1;
        let elapsed = begin.elapsed();
        if elapsed >= printed + PROGRESS {
            printed = elapsed;
            let per_s = f64::from(made) / elapsed.as_secs_f64();
            let left_min = (missing.len() as f64 - f64::from(made)) / per_s / 60.0;
            eprintln!(
                "{made} of {} runs: {per_s:.1} a second, {left_min:.0} min left",
                missing.len()
            );
        }
        add(row, line, (&mut *records, &mut *lines))
    })
}

fn add(row: Row, line: Line, (records, lines): Made<'_>) -> Result<()> {
    let name = row.to_string();
    writeln!(lines, "{}", line.json(&name)).map_err(|e| format!("the file of runs: {e}"))?;
    records.entry(name).or_default().add(line);
    Ok(())
}

/// Does `work` for each task, several at a time, and hands the results to `take` as they come. Ends
/// at the first error.
fn each_in_threads<T: Sync, R: Send>(
    tasks: &[T],
    threads: u64,
    work: &(dyn Fn(&T) -> Result<R> + Sync),
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let next = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (results, received) = channel();
        for _ in 0..threads {
            let results = results.clone();
            scope.spawn(move || {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver goes away at an error.
                    if results.send(work(task)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        received.into_iter().try_for_each(|result| take(result?))
    })
}

/// How fast each row's runs were, and how long those of all rows take.
fn print_speeds(rows: &[Row], records: &BTreeMap<String, RowRecord>) {
    let mut all_ms = 0.0;
    for row in rows {
        let Some(record) = records.get(&row.to_string()) else { continue };
        let took_ms: f64 = record.runs.values().map(|outcome| outcome.took_ms).sum();
        let mean_ms = took_ms / record.runs.len().max(1) as f64;
        all_ms += mean_ms;
        eprintln!("{:6.1} runs a second and thread: {row}", 1e3 / mean_ms);
    }
    let seconds = all_ms * 2_000.0 / 1e3;
    eprintln!("2,000 runs of each row take {:.0} min of one thread", seconds / 60.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_section_for_the_table() {
        assert_eq!(TABLE.check(), Ok(()));
    }

    #[test]
    fn rows_are_chosen_by_their_numbers() {
        let options = |arguments: &[&str]| {
            Options::try_parse_from([&["simulated"][..], arguments].concat()).map_err(|e| e.kind())
        };
        assert_eq!(chosen(&options(&[]).unwrap()), row::rows());
        let some = chosen(&options(&["--rows", "2,48"]).unwrap());
        assert_eq!(some, [row::rows()[1], row::rows()[47]]);
        assert!(options(&["--rows", "49"]).is_err());
    }

    #[test]
    fn every_task_is_done_once_and_the_first_error_ends_them() {
        let tasks: Vec<u64> = (0..100).collect();
        let mut sum = 0;
        each_in_threads(&tasks, 4, &|task| Ok(*task), |task| {
            sum += task;
            Ok(())
        })
        .unwrap();
        assert_eq!(sum, 4_950);
        let wrong = |task: &u64| if *task == 7 { Err("seven".to_owned()) } else { Ok(*task) };
        let ended = each_in_threads(&tasks, 4, &wrong, |_| Ok(()));
        assert_eq!(ended, Err("seven".to_owned()));
    }
}
