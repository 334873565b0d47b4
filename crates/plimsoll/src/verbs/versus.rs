//! `plimsoll versus SUITE TARGET_A TARGET_B`: both in turn, A B B A A B …, then the comparison.
//! What a host does to one run it does to the next too, so that the runs of a pair have it in
//! common and the order of a pair favours neither.

use std::path::{Path, PathBuf};

use plimsoll_analysis::compare::{GroupInput, Wishes};
use plimsoll_model::bundle::{BundleWriter, write_durably};
use plimsoll_model::comparison::{Comparison, RatioGate};
use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::stated::Stated;
use plimsoll_model::suite::{Ladder, LoadSpec, Override};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::grouped;
use plimsoll_report::comparison_markdown;

use super::compare::{compared, json_text, page, show, write_junit};
use super::groups;
use super::run::{default_out, request_of};
use crate::cli::{FailIf, Reported, RunArgs, VersusArgs, YesNo};
use crate::coordinator::{RunRequest, run};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::{self, Live};

/// The comparison as a page, as text and as a document, beside the bundles.
const REPORT_FILE: &str = "versus.html";
const TABLE_FILE: &str = "versus.md";
const JSON_FILE: &str = "versus.json";
/// Where A's peak is searched.
const SEARCH_DIR: &str = "search";
/// Places of the two sides.
const SIDES: [&str; 2] = ["a", "b"];
/// One load point lies so much beyond the peak of A that was found: a server is at its limit there,
/// and one that carries more shows it.
const BEYOND: f64 = 1.25;

/// Makes the pairs, compares them after each, and shows what came out.
pub(crate) fn perform(args: &VersusArgs) -> Result<Exit, Failure> {
    if args.run.targets.len() != SIDES.len() {
        return Err(Failure::wrong(
            "plimsoll versus takes two servers: SUITE TARGET_A TARGET_B; several targets of one \
             run go to plimsoll run, and runs are compared with plimsoll compare",
        ));
    }
    if args.run.report == Reported::Last {
        return Err(Failure::wrong("--report last: every run of plimsoll versus is compared"));
    }
    let (figures, ratios) = conditions(&args.run);
    let side = |index: usize| request_of(&side_args(args, index, &figures));
    let mut sides = [side(0)?, side(1)?];
    refuse_modes(&sides)?;
    let dir = match &args.run.out {
        Some(out) => out.clone(),
        None => default_out(&format!("versus-{}", sides[0].suite.name)),
    };
    let places = places(&dir, args.run.repeat);
    for place in places.iter().flatten().chain([&dir.join(SEARCH_DIR)]) {
        BundleWriter::refuse_occupied(place)?;
    }
    let signals = Signals::listen()?;
    if let Ladder::Auto { steps, headroom } = sides[0].suite.ladder {
        let found = search(&sides[0], (steps, headroom), &dir.join(SEARCH_DIR), args, &signals)?;
        let Some(ladder) = found else { return Ok(Exit::Interrupted) };
        sides.iter_mut().for_each(|side| side.suite.ladder = ladder.clone());
    }
    let labels = labels(args, &sides);
    let groups = labels.map(|label| GroupInput { label, runs: Vec::new() });
    let mut series = Series {
        dir,
        groups,
        wishes: Wishes {
            paired: true,
            force: args.force,
            gates: &ratios,
            unsure_fails: args.run.gates.fail_if_unsure == YesNo::Yes,
        },
        worst: Exit::Valid,
    };
    let outcome = series.make(&sides, &places, args, &signals);
    let comparison = series.comparison()?;
    if let Some(comparison) = &comparison {
        series.keep(comparison)?;
        series.show(comparison, args)?;
    }
    outcome?;
    let exit = series.worst;
    let fails = comparison.is_some_and(|comparison| comparison.fails());
    Ok(if fails { exit.max(Exit::Invalid) } else { exit })
}

/// What was made so far.
struct Series<'a> {
    dir: PathBuf,
    groups: [GroupInput; 2],
    wishes: Wishes<'a>,
    worst: Exit,
}

impl Series<'_> {
    /// All pairs, or as many as came to an end.
    fn make(
        &mut self,
        sides: &[RunRequest; 2],
        places: &[[PathBuf; 2]],
        args: &VersusArgs,
        signals: &Signals,
    ) -> Result<(), Failure> {
        for (number, pair) in (1..).zip(places) {
            let order = if number % 2 == 1 { [0, 1] } else { [1, 0] };
            for side in order {
                let mut live = Live::new(args.run.output.progress);
                let label = &self.groups[side].label;
                live.line(&format!("pair {number}/{}, {label}:", places.len()));
                let out = pair[side].clone();
                let end = run(&RunRequest { out, ..sides[side].clone() }, signals, &mut live)?;
                live.line(&headline(&end.result));
                self.worst = self.worst.max(end.exit);
                if end.exit == Exit::Interrupted {
                    // Usable by itself; the pair is not whole.
                    return Ok(());
                }
                self.groups[side].runs.push(groups::input(&pair[side], end.result)?);
            }
            // After each pair: what was measured is not lost with the next.
            if let Some(comparison) = self.comparison()? {
                self.keep(&comparison)?;
            }
        }
        Ok(())
    }

    /// `None` before both sides have a run.
    fn comparison(&self) -> Result<Option<Comparison>, Failure> {
        if self.groups.iter().any(|group| group.runs.is_empty()) {
            return Ok(None);
        }
        compared(&self.groups, self.wishes).map(Some)
    }

    /// Writes the comparison of the runs there are.
    fn keep(&self, comparison: &Comparison) -> Result<(), Failure> {
        let files = [
            (REPORT_FILE, page(comparison)?),
            (TABLE_FILE, comparison_markdown(comparison)),
            (JSON_FILE, json_text(comparison)),
        ];
        for (name, text) in files {
            write_durably(&self.dir.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    fn show(&self, comparison: &Comparison, args: &VersusArgs) -> Result<(), Failure> {
        show(comparison, args.run.output.json);
        write_junit(args.run.gates.junit.as_deref(), comparison)?;
        let dir = self.dir.display();
        terminal::note(&format!(
            "report: {dir}/{REPORT_FILE}\n\
             to compare again: plimsoll compare {dir}/a --against {dir}/b --paired"
        ));
        Ok(())
    }
}

/// Conditions on the runs, and those on their ratio.
fn conditions(args: &RunArgs) -> (Vec<FailIf>, Vec<RatioGate>) {
    let (ratios, figures): (Vec<FailIf>, Vec<FailIf>) =
        args.gates.fail_if.iter().cloned().partition(|it| matches!(it, FailIf::Ratio(_)));
    let ratios = ratios.into_iter().filter_map(|condition| match condition {
        FailIf::Ratio(gate) => Some(gate),
        FailIf::Figure(_) => None,
    });
    (figures, ratios.collect())
}

/// The arguments of a run of one side.
fn side_args(args: &VersusArgs, index: usize, figures: &[FailIf]) -> RunArgs {
    let mut run = args.run.clone();
    run.targets = args.run.targets.get(index).cloned().into_iter().collect();
    let starts = |text: &String| TargetSpec::parse(text).is_ok_and(|spec| spec.is_started());
    // It is for the server of the other side alone.
    if args.run.targets.iter().any(starts) && !run.targets.iter().any(starts) {
        run.agents.listen_on = None;
    }
    run.set.extend_from_slice(if index == 0 { &args.set_a } else { &args.set_b });
    run.gates.fail_if = figures.to_vec();
    run.repeat = 1;
    run
}

/// A closed load and an open one have no load in common.
fn refuse_modes(sides: &[RunRequest; 2]) -> Result<(), Failure> {
    let closed = |side: &RunRequest| matches!(side.suite.load, LoadSpec::Closed { .. });
    if closed(&sides[0]) != closed(&sides[1]) || sides[0].profile != sides[1].profile {
        return Err(Failure::wrong(
            "--set-a, --set-b: one side has an open load and the other a closed one, which cannot \
             be compared; set load.mode for both with --set",
        ));
    }
    if sides[0].suite.ladder != sides[1].suite.ladder {
        return Err(Failure::wrong(
            "--set-a, --set-b: the two sides would have different ladders; write --points, or set \
             the ladder for both with --set",
        ));
    }
    Ok(())
}

fn places(dir: &Path, pairs: u32) -> Vec<[PathBuf; 2]> {
    let of = |number: u32| SIDES.map(|side| dir.join(side).join(number.to_string()));
    (1..=pairs).map(of).collect()
}

/// The ladder that both sides get: up to the peak of A, searched once, and one point beyond.
/// `None` when the user asked for the end.
fn search(
    request: &RunRequest,
    (steps, headroom): (u32, f64),
    out: &Path,
    args: &VersusArgs,
    signals: &Signals,
) -> Result<Option<Ladder>, Failure> {
    let mut live = Live::new(args.run.output.progress);
    live.line("search for the peak of A, whose ladder both sides get:");
    let mut search = RunRequest { out: out.to_owned(), ..request.clone() };
    search.suite.ladder = Ladder::Auto { steps: 1, headroom };
    let end = run(&search, signals, &mut live)?;
    if end.exit == Exit::Interrupted {
        return Ok(None);
    }
    let Some(highest) = end.result.points.last().map(|point| point.requested) else {
        let reasons: Vec<String> =
            end.result.verdict.reasons.iter().map(|reason| reason.rule.to_string()).collect();
        return Err(Failure::unusable(format!(
            "{}: no peak was found ({}); write --points, or see its report",
            out.display(),
            reasons.join("; ")
        )));
    };
    let mut points = Ladder::evenly(highest, steps);
    // Where the search ended for want of room, time or generator there is nothing to be seen there.
    if end.result.summary.bound == Bound::Exact {
        points.push((highest * BEYOND).round());
    }
    live.line(&format!(
        "ladder of both: {} load points up to {}",
        points.len(),
        grouped(points.iter().copied().fold(0.0, f64::max))
    ));
    Ok(Some(Ladder::Points { points }))
}

fn headline(result: &RunResult) -> String {
    let verdict = if result.verdict.valid { "valid" } else { "invalid" };
    match result.summary.value {
        Some(value) => {
            let value = Stated::new(value, None).throughput_text(&result.summary.unit);
            format!("{value}, {verdict}")
        }
        None => format!("no figure, {verdict}"),
    }
}

/// Targets, and what is set for one side only; letters where that does not tell them apart.
fn labels(args: &VersusArgs, sides: &[RunRequest; 2]) -> [String; 2] {
    let shown =
        |index: usize| sides[index].targets.iter().map(ToString::to_string).collect::<String>();
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
    if labels[0] == labels[1] { SIDES.map(str::to_owned) } else { labels }
}
