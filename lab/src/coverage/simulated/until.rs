//! `cargo lab coverage until`: do windows that last until a figure is precise (`--until`) contain
//! the truth as often as others, and are they as precise as they were to be?
//!
//! An exponential server with Poisson arrivals, whose truth is that of theory. Pilots and windows
//! follow each other as in a run.

use clap::Parser;
use plimsoll_analysis::precision::{NextWindow, next_window};
use plimsoll_model::gate::GateFigure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::units::{Nanos, percent};
use plimsoll_model::until::Until;
use xtask::verb::Result;

use super::row::{Host, LoadKind, Row, Service};
use super::run::RowRunner;
use super::truth::{MEAN, PERCENTILES, Truth};
use super::{each_in_threads, optimised};
use crate::bench::median;
use crate::coverage::{QUICK_S, UTILISATIONS};
use crate::page::Table;

const TABLE: Table<'_> = Table { page: "docs/calibration.md", name: "coverage-until" };
const PRECISIONS: [&str; 3] = ["mean±5%", "p50±5%", "p99±10%"];
/// More than any of them needs, so that the rule finds the length, not the limit.
const AT_MOST: Nanos = Nanos::from_secs(3_600);
/// Seconds of the simulation beside theory, which is exact here.
const TRUTH_S: u64 = 30;
/// Windows of a run, at most: for their seeds.
const WINDOWS_MAX: u64 = 100;

/// Options of `cargo lab coverage until`.
#[derive(Parser)]
pub struct Options {
    /// Runs of each row.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Runs made at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// Replace the table in docs/calibration.md.
    #[arg(long)]
    write: bool,
}

/// A run: its pilots, and the window that counts.
struct Outcome {
    pilots: Nanos,
    window: Nanos,
    /// Half the width of the interval by the figure; `None` without an upper end.
    half_width: Option<f64>,
    is_reached: bool,
    contains_truth: bool,
}

/// Makes the runs, prints the table, and writes it on request.
pub fn until(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return optimised();
    }
    if options.write {
        TABLE.check()?;
    }
    let mut rows = String::new();
    for precision in PRECISIONS {
        for utilisation in UTILISATIONS {
            rows += &row(precision, utilisation, options)?;
        }
    }
    let text = format!(
        "Command: `cargo lab coverage until --runs {}`\n\n\
         | requested | utilisation | pilots, s | window, s | half width | reached | hold the truth |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n{rows}",
        options.runs
    );
    println!("{text}");
    if options.write { TABLE.write(&text) } else { Ok(()) }
}

/// A line of the table: medians, and counts.
fn row(precision: &str, utilisation: f64, options: &Options) -> Result<String> {
    let row = Row {
        load: LoadKind::Open,
        utilisation,
        window_s: QUICK_S,
        service: Service::Exponential,
        host: Host::Quiet,
    };
    let truth = Truth::from_seconds(&row, TRUTH_S)?;
    let runner = RowRunner::new(row, truth.clone())?;
    let until = Until { precision: precision.parse()?, at_most_ns: Some(AT_MOST) };
    let numbers: Vec<u64> = (0..options.runs).collect();
    let outcome = |number: &u64| outcome(&runner, &truth, *number, &until);
    let mut outcomes = Vec::new();
    each_in_threads(&numbers, options.threads, &outcome, |one| {
        outcomes.push(one);
        Ok(())
    })?;
    let seconds = |of: fn(&Outcome) -> Nanos| {
        let seconds: Vec<f64> = outcomes.iter().map(|it| of(it).as_secs_f64()).collect();
        median(&seconds).unwrap_or_default()
    };
    let widths: Vec<f64> = outcomes.iter().filter_map(|it| it.half_width).collect();
    let count = |of: fn(&Outcome) -> bool| outcomes.iter().filter(|it| of(it)).count();
    Ok(format!(
        "| {precision} | {utilisation} | {:.1} | {:.1} | ±{} | {} | {} of {} |\n",
        seconds(|it| it.pilots),
        seconds(|it| it.window),
        percent(median(&widths).unwrap_or_default()),
        count(|it| it.is_reached),
        count(|it| it.contains_truth),
        options.runs,
    ))
}

fn outcome(runner: &RowRunner, truth: &Truth, number: u64, until: &Until) -> Result<Outcome> {
    let usual = Nanos::from_secs(QUICK_S);
    let mut pilots = Vec::new();
    loop {
        let seed = number * WINDOWS_MAX + pilots.len() as u64;
        let (length, counts) = match next_window(&pilots, usual, until.at_most(usual)) {
            NextWindow::Pilot(length) => (length, false),
            NextWindow::Counted(length) => (length, true),
        };
        let point = runner.window(seed, length, until.clone())?;
        let reached = point.precision.ok_or("a window says nothing of its precision")?;
        if !counts {
            pilots.push((length, reached));
            continue;
        }
        let GateFigure::Response(figure) = until.precision.figure else {
            return Err(format!("{}: no response time", until.precision));
        };
        let of_figure = PERCENTILES.iter().position(|(percentile, _)| *percentile == figure);
        let truth = truth.figure(of_figure.map_or(MEAN, |at| at + 1)).ok_or("no truth")?;
        let reported = ReportedFigure::response(&point, figure).ok_or("no figure")?;
        let [low, high] = reported.interval.ok_or("no interval")?;
        return Ok(Outcome {
            pilots: Nanos(pilots.iter().map(|(length, _)| length.0).sum()),
            window: length,
            half_width: reached.ratio,
            is_reached: reached.is_within(until.precision.ratio),
            contains_truth: (low..=high).contains(&truth),
        });
    }
}
