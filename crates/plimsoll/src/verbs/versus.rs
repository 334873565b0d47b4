//! `plimsoll versus SUITE TARGET_A TARGET_B`: an experiment of one factor with two levels, A B, B A,
//! A B … What a host does to one run it does to the next too, so that the runs of a pair have it in
//! common and the order of a pair favours neither.

use std::path::Path;

use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::comparison::experiment::Response;
use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Ladder, Override};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::grouped;

use super::experiment::design::{Change, Design, Factor, Level, Order};
use super::experiment::{self, Asked, Begin, refuse_ladders, refuse_occupied, requests};
use super::groups::is_finished;
use super::run::default_out;
use crate::cli::{Reported, VersusArgs};
use crate::coordinator::{RunRequest, run};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::{self, Live};

const VERB: &str = "versus";
/// Where A's peak is searched.
const SEARCH_DIR: &str = "search";
/// Places of the two sides.
const SIDES: [&str; 2] = ["a", "b"];
/// One load point lies so much beyond the peak of A that was found: a server is at its limit there,
/// and one that carries more shows it.
const BEYOND: f64 = 1.25;

/// Makes the pairs, compares them after each, and shows what came out.
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
    let ratios = experiment::split_conditions(&mut base);
    let mut design = Design::new(vec![factor(args)?], args.run.repeat, Order::Alternating);
    design.names = design.factors[0].levels.iter().map(|level| level.name.clone()).collect();
    design.places = SIDES.map(|side| side.to_owned()).to_vec();
    design.flat = false;
    let mut sides = requests(&base, &design)?;
    refuse_ladders(&sides)?;
    let dir = match &args.run.out {
        Some(out) => out.clone(),
        None => default_out(&format!("{VERB}-{}", sides[0].suite.name)),
    };
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
        BundleWriter::refuse_occupied(&dir.join(SEARCH_DIR))?;
    }
    let signals = Signals::listen()?;
    if let Ladder::Auto { steps, headroom } = sides[0].suite.ladder {
        let found = searched(&sides[0], (steps, headroom), &dir.join(SEARCH_DIR), args, &signals)?;
        let Some(ladder) = found else { return Ok(Exit::Interrupted) };
        sides.iter_mut().for_each(|side| side.suite.ladder = ladder.clone());
    }
    let asked = Asked {
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
    let exit = asked.conduct(&signals)?;
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
    let names = labels(args)?;
    let levels = names.into_iter().enumerate().map(level).collect();
    Ok(Factor { name: "server".to_owned(), unit: None, levels, hand: None, undo: None })
}

/// The ladder that both sides get: up to the peak of A, searched once, and one point beyond.
/// `None` when the user asked for the end.
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
            if end.exit == Exit::Interrupted {
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
            result.verdict.reasons.iter().map(|reason| reason.rule.to_string()).collect();
        return Err(Failure::unusable(format!(
            "{}: no peak was found ({}); write --points, or see its report",
            out.display(),
            reasons.join("; ")
        )));
    };
    let mut points = Ladder::evenly(highest, steps);
    // Where the search ended for want of room, time or generator there is nothing to be seen there.
    if result.summary.bound == Bound::Exact {
        points.push((highest * BEYOND).round());
    }
    Ok(Ladder::Points { points })
}

/// Targets, and what is set for one side only; letters where that does not tell them apart.
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
