//! `plimsoll compare A… --against B…`: groups of runs side by side.

use std::path::Path;

use plimsoll_analysis::compare::{GroupInput, Wishes, add_published, compare};
use plimsoll_model::bundle::write_durably;
use plimsoll_model::comparison::Comparison;
use plimsoll_report::{comparison_html, comparison_junit, comparison_markdown, comparison_text};

use super::groups::{self, Named};
use super::prices::Prices;
use super::published::{self, Wanted};
use super::write;
use crate::cli::{CompareArgs, YesNo};
use crate::derive::cannot_render;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Compares, shows and writes what was asked for; exit code 1 where a condition fails.
pub(crate) fn perform(args: &CompareArgs) -> Result<Exit, Failure> {
    let names: Vec<&String> = args.runs.iter().chain(&args.against).collect();
    // A label names runs.
    if args.label.is_empty()
        && let Some(pair) = published::pair(&names)?
    {
        refuse_of_published(args)?;
        let wanted = Wanted { json: args.json, html: args.html.as_deref(), md: args.md.as_deref() };
        return published::compare(pair, &wanted);
    }
    let curves = published::curves(&names)?;
    let prices = Prices::read(args.prices.as_deref())?;
    let groups = groups::read(&named(args)?)?;
    refuse_unjudged(args, groups.len())?;
    let wishes = Wishes {
        paired: args.paired,
        force: args.force,
        gates: &args.fail_if,
        unsure_fails: args.fail_if_unsure == YesNo::Yes,
    };
    let mut comparison = compared(&groups, wishes)?;
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

/// What takes runs is not passed over where published results are compared: a condition that nobody
/// judged must not look like one that held.
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

/// A group alone beside published curves has no ratio that a condition could be of.
fn refuse_unjudged(args: &CompareArgs, groups: usize) -> Result<(), Failure> {
    match groups < 2 && !args.fail_if.is_empty() {
        true => Err(Failure::wrong(
            "--fail-if is for ratios of runs, and here is one group: no ratio to a published \
             result is claimed; name a second group, or leave the condition out",
        )),
        false => Ok(()),
    }
}

/// The groups that the arguments name: the first, and those it is compared with. Published results
/// are no groups; beside them one will do.
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
    named.extend(
        args.label.iter().map(|labelled| Named {
            label: Some(labelled.name.clone()),
            runs: labelled.runs.clone(),
        }),
    );
    match named.len() {
        1 if alone_will_do => Ok(named),
        0 | 1 => Err(Failure::wrong(
            "name at least two bundles, or groups: plimsoll compare A… --against B…, or --label \
             NAME=DIR for each",
        )),
        _ => Ok(named),
    }
}

/// Compares groups; what must not be compared is the user's mistake.
pub(crate) fn compared(groups: &[GroupInput], wishes: Wishes<'_>) -> Result<Comparison, Failure> {
    compare(groups, wishes).map_err(|error| Failure::wrong(error.to_string()))
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

/// The comparison as text: the same comparison gives the same bytes.
pub(crate) fn json_text(comparison: &Comparison) -> String {
    let text = serde_json::to_string_pretty(comparison);
    text.expect("numbers and text become JSON") + "\n"
}

pub(crate) fn page(comparison: &Comparison) -> Result<String, Failure> {
    comparison_html(comparison).map_err(|e| cannot_render(&e))
}

/// Writes the file of `--junit`, where it was asked for.
pub(crate) fn write_junit(file: Option<&Path>, comparison: &Comparison) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let text = comparison_junit(comparison).map_err(|e| cannot_render(&e))?;
    Ok(write_durably(file, text.as_bytes())?)
}
