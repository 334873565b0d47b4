//! `plimsoll compare A… --against B…`: groups of runs side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_analysis::compare::{CompareOptions, GroupInput, RunInput, add_published, compare};
use plimsoll_model::bundle::write_durably;
use plimsoll_model::comparison::{Comparison, RUNS_MIN, RatioGate};
use plimsoll_report::{comparison_html, comparison_junit, comparison_markdown, comparison_text};
use serde_json::json;

use super::groups::{self, Named};
use super::prices::Prices;
use super::{published, write};
use crate::exit::{Exit, Failure};
use crate::flags::yes_no;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Bundles of runs, or directories that hold several (a group each; DIR stands for DIR-1, DIR-2
    /// … of run --repeat too). The first is the baseline; with --against all of them are.
    /// published:NAME draws a published curve beside those of the runs; two published results
    /// without runs are compared with each other
    #[arg(value_name = "RUNS", required_unless_present = "label")]
    pub runs: Vec<String>,
    /// Runs of the second group
    #[arg(long, value_name = "RUNS", num_args = 1.., requires = "runs")]
    pub against: Vec<String>,
    /// A group with its name, for comparisons of more than two; may be given often
    #[arg(long, value_name = "NAME=DIR[,DIR…]", value_parser = parse_label)]
    pub label: Vec<Named>,
    /// The runs were made in rounds: the first runs of all groups, then the second ones, and so on,
    /// as plimsoll versus makes them
    #[arg(long)]
    pub paired: bool,
    /// Compare runs of different methods, and invalid ones; every output is marked
    #[arg(long)]
    pub force: bool,
    /// What the systems cost, each by its group's label or by the name of its first directory
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// HTML file to write
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Print the comparison as JSON on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
    /// End with exit code 1 if this holds for the ratio to the first group, for example 'p99 >
    /// 1.05x', 'peak < 0.97x', 'p99@4000 > 1.1x' (one load point); may be given often
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<RatioGate>,
    /// Whether a limit within a ratio's interval fails [default: only if the ratio itself breaks
    /// the limit]
    #[arg(long, value_name = "yes|no", requires = "fail_if", value_parser = yes_no())]
    pub fail_if_unsure: Option<bool>,
    /// Write the conditions as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// `NAME=DIR,DIR`.
fn parse_label(text: &str) -> Result<Named, String> {
    let parts = text.split_once('=').filter(|(name, dirs)| !name.is_empty() && !dirs.is_empty());
    let (name, dirs) = parts.ok_or("write NAME=DIR, for example before=runs/a,runs/b")?;
    let runs = dirs.split(',').filter(|dir| !dir.is_empty()).map(str::to_owned).collect();
    Ok(Named { label: Some(name.to_owned()), runs })
}

/// Compares, shows and writes the requested files; exit code 1 if a condition fails.
pub(crate) fn perform(args: &CompareArgs) -> Result<Exit, Failure> {
    let names: Vec<&String> = args.runs.iter().chain(&args.against).collect();
    // Labelled groups are always runs.
    if args.label.is_empty()
        && let Some(pair) = published::pair(&names)?
    {
        return compare_published(args, pair);
    }
    let curves = published::curves(&names)?;
    let prices = Prices::read(args.prices.as_deref())?;
    let groups = groups::read(&named(args)?)?;
    refuse_unjudged(args, groups.len())?;
    refuse_few(args, &groups)?;
    let options = CompareOptions {
        paired: args.paired,
        force: args.force,
        gates: &args.fail_if,
        unsure_fails: args.fail_if_unsure,
    };
    let mut comparison = compared(&groups, options)?;
    add_published(&mut comparison, curves);
    comparison.prices = prices.map(|prices| prices.compare(&groups)).transpose()?;
    show(&comparison, args.json);
    if let Some(file) = &args.html {
        write(file, &page(&comparison)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &comparison_markdown(&comparison))?;
    }
    write_junit(args.junit.as_deref(), &comparison)?;
    Ok(if comparison.fails() { Exit::Invalid } else { Exit::Valid })
}

fn compare_published(args: &CompareArgs, pair: [&str; 2]) -> Result<Exit, Failure> {
    refuse_of_published(args)?;
    let comparison = published::compare(pair)?;
    terminal::print(&match args.json {
        true => published::json_text(&json!(comparison)),
        false => plimsoll_report::published_comparison_text(&comparison),
    });
    if let Some(file) = &args.html {
        write(file, &plimsoll_report::published_comparison_html(&comparison)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &plimsoll_report::published_comparison_markdown(&comparison))?;
    }
    Ok(Exit::Valid)
}

/// Refuses flags for runs where published results are compared: an unevaluated condition must not
/// look as if it held.
fn refuse_of_published(args: &CompareArgs) -> Result<(), Failure> {
    let given = [
        ("--paired", args.paired),
        ("--force", args.force),
        ("--prices", args.prices.is_some()),
        ("--fail-if", !args.fail_if.is_empty()),
        ("--junit", args.junit.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::wrong(format!(
            "{flag} is for runs, and published results are none: leave it out, or name bundles"
        ))),
        None => Ok(()),
    }
}

/// Refuses conditions on a single group beside published curves: there is no ratio.
fn refuse_unjudged(args: &CompareArgs, groups: usize) -> Result<(), Failure> {
    match groups < 2 && !args.fail_if.is_empty() {
        true => Err(Failure::wrong(
            "--fail-if is for ratios of runs, and here is one group: no ratio to a published \
             result is claimed; name a second group, or leave the condition out",
        )),
        false => Ok(()),
    }
}

/// Refuses conditions with fewer than three runs a side: the ratio's interval could not decide.
fn refuse_few(args: &CompareArgs, groups: &[GroupInput]) -> Result<(), Failure> {
    let Some(gate) = args.fail_if.first() else { return Ok(()) };
    let counts = |run: &&RunInput| run.result.verdict.valid || args.force;
    let mut few = Vec::new();
    for group in groups {
        let usable = group.runs.iter().filter(counts).count();
        let Some(run) = group.runs.first().filter(|_| usable < RUNS_MIN) else { continue };
        let suite = run.result.suite.as_ref().map_or("SUITE", |suite| &suite.name);
        few.push(format!(
            "{} has {usable}: plimsoll run {suite} {} --like {dir} --repeat {} --out {dir}-more",
            group.label,
            run.result.targets.join(" "),
            RUNS_MIN - usable,
            dir = run.bundle,
        ));
    }
    match few.is_empty() {
        true => Ok(()),
        false => Err(Failure::wrong(format!(
            "--fail-if '{gate}': a condition on a ratio needs {RUNS_MIN} valid runs a side. Make \
             those that are missing:\n  {}\nand name them beside the others: plimsoll compare DIR \
             DIR-more --against …",
            few.join("\n  ")
        ))),
    }
}

/// The groups that the arguments name, the first being the baseline. Published results are no
/// groups; with them one group is enough.
fn named(args: &CompareArgs) -> Result<Vec<Named>, Failure> {
    let is_run = |name: &&String| published::name_of(name).is_none();
    let of_runs = |names: &[String]| names.iter().filter(is_run).cloned().collect::<Vec<String>>();
    let unnamed = |runs: &[String]| Named { label: None, runs: runs.to_vec() };
    let (runs, against) = (of_runs(&args.runs), of_runs(&args.against));
    let alone_will_do = runs.len() + against.len() < args.runs.len() + args.against.len();
    let mut named: Vec<Named> = match args.against.is_empty() {
        true => runs.chunks(1).map(unnamed).collect(),
        false => vec![unnamed(&runs), unnamed(&against)],
    };
    named.retain(|group| !group.runs.is_empty());
    named.extend_from_slice(&args.label);
    match named.len() {
        1 if alone_will_do => Ok(named),
        0 | 1 => Err(Failure::wrong(
            "name at least two bundles, or groups: plimsoll compare A… --against B…, or --label \
             NAME=DIR for each",
        )),
        _ => Ok(named),
    }
}

/// Compares groups. Refused comparisons are the user's mistake.
pub(crate) fn compared(
    groups: &[GroupInput],
    options: CompareOptions<'_>,
) -> Result<Comparison, Failure> {
    compare(groups, options).map_err(|error| Failure::wrong(error.to_string()))
}

pub(crate) fn show(comparison: &Comparison, json: bool) {
    let text = comparison_text(comparison);
    if json {
        terminal::note(&text);
        terminal::print(&json_text(comparison));
    } else {
        terminal::print(&text);
    }
}

/// The comparison as JSON: the same comparison gives the same bytes.
pub(crate) fn json_text(comparison: &Comparison) -> String {
    let text = serde_json::to_string_pretty(comparison);
    text.expect("numbers and text become JSON") + "\n"
}

pub(crate) fn page(comparison: &Comparison) -> Result<String, Failure> {
    Ok(comparison_html(comparison)?)
}

/// Writes the file of `--junit`, if requested.
pub(crate) fn write_junit(file: Option<&Path>, comparison: &Comparison) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let text = comparison_junit(comparison)?;
    Ok(write_durably(file, text.as_bytes())?)
}
