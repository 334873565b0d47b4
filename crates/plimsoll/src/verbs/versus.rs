//! `plimsoll versus SUITE TARGET_A TARGET_B`: an experiment of one factor with two levels, A B, B
//! A, A B … Conditions of the host affect adjacent runs alike, so both runs of a pair share them,
//! and the order of a pair favours neither.

use std::path::Path;

use clap::Args;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::comparison::experiment::Response;
use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Ladder, Override};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::grouped;
use plimsoll_report::sentences::finding;
use plimsoll_run::coordinator::{RunRequest, run};
use plimsoll_run::{RunProgress as _, Signals, derive};

use super::experiment::design::{Change, Design, Factor, Level, Order};
use super::experiment::file::CommonRun;
use super::experiment::{
    self, Begin, ExperimentRequest, refuse_ladders, refuse_occupied, requests,
};
use super::groups::is_finished;
use super::run::default_out;
use crate::exit::{Exit, Failure};
use crate::flags::values::parse_override;
use crate::flags::{Reported, RunArgs};
use crate::interrupts;
use crate::terminal::{self, Live};

const VERB: &str = "versus";
/// Directory of the search for A's peak.
const SEARCH_DIR: &str = "search";
/// Directories of the two sides.
const SIDES: [&str; 2] = ["a", "b"];
/// One load point is this factor above A's peak: a server is at its limit there, and a better one
/// shows it.
const BEYOND: f64 = 1.25;

#[derive(Debug, Args)]
#[command(
    mut_arg("targets", |arg| arg.value_names(["TARGET_A", "TARGET_B"]).num_args(2)),
    mut_arg("report", |arg| arg.hide(true)),
    mut_arg("repeat", |arg| arg.default_value("5").help(
        "Pairs of runs to make: A B, B A, A B …; fewer than three claim nothing")),
    mut_arg("out", |arg| arg.help(
        "Where the bundles go: DIR/a/1, DIR/b/1 … [default: runs/versus-SUITE-TIME]")),
    mut_arg("json", |arg| arg.help(
        "Print the comparison as JSON on standard output, everything else on standard error")),
    mut_arg("junit", |arg| arg.help("Write conditions on ratios as JUnit XML")),
    mut_arg("fail_if", |arg| arg.help(
        "End with exit code 1 if this is so: of the ratio of B to A ('p99 > 1.05x', \
         'peak < 0.97x'), or of any run ('errors > 0.1%'); may be given often")),
)]
pub(crate) struct VersusArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Set a value of the suite for A only; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override, help_heading = "Options")]
    pub set_a: Vec<Override>,
    /// Set a value of the suite for B only; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override, help_heading = "Options")]
    pub set_b: Vec<Override>,
    /// Compare invalid runs too; every output is marked
    #[arg(long, help_heading = "Options")]
    pub force: bool,
}

/// Makes the pairs, compares them after each, and shows the outcome.
pub(crate) fn perform(args: &VersusArgs, begin: Begin) -> Result<Exit, Failure> {
    if args.run.targets.len() != SIDES.len() {
        return Err(Failure::wrong(
            "plimsoll versus takes two servers: SUITE TARGET_A TARGET_B; several targets of one \
             run go to plimsoll run, and runs are compared with plimsoll compare",
        ));
    }
    if args.run.report == Reported::Last {
        return Err(Failure::wrong("--report last: every run of plimsoll versus is compared"));
    }
    let mut base = args.run.clone();
    let ratios = experiment::split_conditions(&mut base, args.run.repeat)?;
    let mut design = Design::new(vec![factor(args)?], args.run.repeat, Order::Alternating);
    design.names = design.factors[0].levels.iter().map(|level| level.name.clone()).collect();
    design.cell_dirs = SIDES.map(|side| side.to_owned()).to_vec();
    design.flat = false;
    let mut sides = requests(&design, |_| Ok(CommonRun::Ladder(Box::new(base.clone()))))?;
    refuse_ladders(&sides)?;
    let dir = match &args.run.out {
        Some(out) => out.clone(),
        None => default_out(&format!("{VERB}-{}", sides[0].suite.name)),
    };
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
        BundleWriter::refuse_occupied(&dir.join(SEARCH_DIR))?;
    }
    let signals = interrupts::listen()?;
    if let Ladder::Auto { steps, headroom } = sides[0].suite.ladder {
        let search_result =
            searched(&sides[0], (steps, headroom), &dir.join(SEARCH_DIR), args, &signals)?;
        let Some(ladder) = search_result else { return Ok(Exit::Interrupted) };
        sides.iter_mut().for_each(|side| side.suite.ladder = ladder.clone());
    }
    let request = ExperimentRequest {
        verb: VERB,
        dir: &dir,
        begin,
        design: &design,
        requests: &sides,
        response: Response::default(),
        ratios: &ratios,
        gates: &args.run.gates,
        force: args.force,
        output: args.run.output,
    };
    let exit = request.conduct(&signals)?;
    let dir = dir.display();
    terminal::note(&format!(
        "to compare again: plimsoll compare {dir}/a --against {dir}/b --paired"
    ));
    Ok(exit)
}

/// The two sides as levels.
fn factor(args: &VersusArgs) -> Result<Factor, Failure> {
    let level = |(index, name): (usize, String)| {
        let set = if index == 0 { &args.set_a } else { &args.set_b };
        let target = Change::Target(args.run.targets[index].clone());
        Level { name, value: None, changes: vec![target, Change::Keys(set.clone())] }
    };
    let levels = labels(args)?.into_iter().enumerate().map(level).collect();
    Ok(Factor { name: "server".to_owned(), unit: None, levels, hand: None, undo: None })
}

/// The ladder that both sides get: up to the peak of A, searched once, and one point beyond. `None`
/// if the user requested the end.
fn searched(
    request: &RunRequest,
    (steps, headroom): (u32, f64),
    out: &Path,
    args: &VersusArgs,
    signals: &Signals,
) -> Result<Option<Ladder>, Failure> {
    let mut live = Live::new(args.run.output.progress);
    let result = match is_finished(out) {
        true => derive::result_of(out)?,
        false => {
            live.line("search for the peak of A, whose ladder both sides get:");
            let mut search = RunRequest { out: out.to_owned(), ..request.clone() };
            search.suite.ladder = Ladder::Auto { steps: 1, headroom };
            let end = run(&search, signals, &mut live)?;
            if end.is_interrupted {
                return Ok(None);
            }
            end.result
        }
    };
    let ladder = ladder_of(&result, steps, out)?;
    if let Ladder::Points { points } = &ladder {
        live.line(&format!(
            "ladder of both: {} load points up to {}",
            points.len(),
            grouped(points.iter().copied().fold(0.0, f64::max))
        ));
    }
    Ok(Some(ladder))
}

fn ladder_of(result: &RunResult, steps: u32, out: &Path) -> Result<Ladder, Failure> {
    let Some(highest) = result.points.last().map(|point| point.requested) else {
        let reasons: Vec<String> =
            result.verdict.reasons.iter().map(|reason| finding::text(&reason.rule)).collect();
        return Err(Failure::unusable(format!(
            "{}: no peak was found ({}); write --points, or see its report",
            out.display(),
            reasons.join("; ")
        )));
    };
    let mut points = Ladder::evenly(highest, steps);
    // If room, time or the generator ended the search, a point beyond would show nothing.
    if result.summary.bound == Bound::Exact {
        points.push((highest * BEYOND).round());
    }
    Ok(Ladder::Points { points })
}

/// Targets, and settings of one side only; letters if those are the same.
fn labels(args: &VersusArgs) -> Result<[String; 2], Failure> {
    let targets = args.run.targets.iter().map(|text| TargetSpec::parse(text));
    let targets: Vec<TargetSpec> = targets.collect::<Result<_, _>>()?;
    let shown = |index: usize| targets[index].to_string();
    let set = |overrides: &[Override]| -> String {
        // A header field may be secret.
        let value = |it: &Override| match (&it.value, it.path.contains("header")) {
            (_, true) => "…".to_owned(),
            (toml::Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        };
        overrides.iter().map(|it| format!(" {}={}", it.path, value(it))).collect()
    };
    let same_target = shown(0) == shown(1);
    let name = |index: usize, overrides: &[Override]| match (same_target, overrides.is_empty()) {
        (false, _) => shown(index) + &set(overrides),
        (true, false) => set(overrides).trim().to_owned(),
        (true, true) => shown(index),
    };
    let labels = [name(0, &args.set_a), name(1, &args.set_b)];
    Ok(if labels[0] == labels[1] { SIDES.map(str::to_owned) } else { labels })
}
