//! `plimsoll run SUITE TARGET…`.

use std::path::{Path, PathBuf};

use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::bundle::{BundleReader, BundleWriter, write_durably};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{Asked, InARow};
use plimsoll_model::gate::{GateFigure, Gates};
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Changes, Override, ProfileName, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::span_text;
use toml::Value;

use crate::cli::{FailIf, Output, Reported, RunArgs, YesNo};
use crate::clock::{unix_ns, utc_stamp};
use crate::coordinator::{RunEnd, RunRequest, like, run, sources};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::load_file;
use crate::secrets::{command_line, separate};
use crate::signals::Signals;
use crate::suite_source;
use crate::systems;
use crate::terminal::{self, Live};
use crate::verbs::url_flags;

/// Keys that state a fact for the disclosure instead of setting the suite.
const STATEMENT_PREFIX: &str = "disclosure.";
/// Default place of bundles.
const RUNS_DIR: &str = "runs";

/// Makes one run, or several in a row.
pub(crate) fn perform(args: &RunArgs) -> Result<Exit, Failure> {
    if args.repeat == 1 && args.report == Reported::Last {
        return Err(Failure::wrong("--report last: there is one run; write --repeat 3 as well"));
    }
    let request = request_of(args)?;
    let places: Vec<PathBuf> = match args.repeat {
        1 => vec![request.out.clone()],
        count => (1..=count).map(|number| numbered(&request.out, number)).collect(),
    };
    // All of them now: hours may lie before the last run.
    for out in &places {
        BundleWriter::refuse_occupied(out)?;
    }
    let signals = Signals::listen()?;
    let mut worst = Exit::Valid;
    let mut results = Vec::new();
    for (number, out) in (1..).zip(places) {
        let mut one = RunRequest { out, ..request.clone() };
        one.asked.in_a_row = in_a_row(args, number);
        if args.report == Reported::Last && number < args.repeat {
            let end = run_unshown(&one, &signals, args.output)?;
            if end.exit == Exit::Interrupted {
                return Ok(end.exit);
            }
            continue;
        }
        let end = run_and_show(&one, &signals, args.output)?;
        worst = worst.max(end.exit);
        results.push(end.result);
        if end.exit == Exit::Interrupted {
            break;
        }
    }
    write_junit(args, &results)?;
    Ok(worst)
}

/// The place of run `number`, for its report.
fn in_a_row(args: &RunArgs, number: u32) -> Option<InARow> {
    let unreported = match args.report {
        Reported::All => 0,
        Reported::Last => args.repeat - 1,
    };
    (args.repeat > 1).then_some(InARow { number, count: args.repeat, unreported })
}

/// Makes a run that conditions the server for one to come. Its bundle is kept, and nothing more is
/// said of it.
fn run_unshown(request: &RunRequest, signals: &Signals, output: Output) -> Result<RunEnd, Failure> {
    let mut live = Live::new(output.progress);
    let end = run(request, signals, &mut live)?;
    drop(live);
    let run = request.asked.in_a_row.map_or_else(|| "run".to_owned(), |run| run.to_string());
    terminal::note(&format!("{run}: kept in {}", request.out.display()));
    Ok(end)
}

/// Writes the file of `--junit`, where it was asked for.
pub(crate) fn write_junit(args: &RunArgs, results: &[RunResult]) -> Result<(), Failure> {
    let Some(file) = &args.gates.junit else { return Ok(()) };
    Ok(write_durably(file, derive::junit(results)?.as_bytes())?)
}

/// Makes a run and prints its result.
pub(crate) fn run_and_show(
    request: &RunRequest,
    signals: &Signals,
    output: Output,
) -> Result<RunEnd, Failure> {
    let mut live = Live::new(output.progress);
    let end = run(request, signals, &mut live)?;
    // The live line goes before the result comes.
    drop(live);
    show_end(&end, output);
    Ok(end)
}

/// Prints the result of a run.
pub(crate) fn show_end(end: &RunEnd, output: Output) {
    if output.json {
        let style = terminal::stderr_style();
        terminal::note(&terminal::summary(&end.result, Some(&end.report), style));
        terminal::print(&derive::result_text(&end.result));
    } else {
        let style = terminal::stdout_style();
        terminal::print(&terminal::summary(&end.result, Some(&end.report), style));
    }
}

/// The run that the flags ask for.
pub(crate) fn request_of(args: &RunArgs) -> Result<RunRequest, Failure> {
    let targets = args.targets.iter().map(|text| TargetSpec::parse(text));
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let (statements, values): (Vec<_>, Vec<_>) =
        args.set.iter().cloned().partition(|item| item.path.starts_with(STATEMENT_PREFIX));
    let base = match &args.like {
        Some(dir) => {
            let good = args.goodput.iter().flat_map(|limits| good_limits(*limits));
            request_like(args, dir, &values.into_iter().chain(good).collect::<Vec<_>>())?
        }
        None => request_of_suite(args, values)?,
    };
    if args.agents.listen_on.is_some() && !targets.iter().any(TargetSpec::is_started) {
        return Err(Failure::wrong(
            "--listen-on: this run starts no server; leave it out, or name builtin: or \
             managed:NAME as the target",
        ));
    }
    let good = base.suite.goodput.is_some_and(GoodLimits::need_streams);
    refuse_streams(&base.suite, "--goodput with first_output or tpot", good)?;
    let loadfile = args.replay.loadfile.as_deref();
    let loadfile = loadfile.map(|file| load_file::read(file, &base.suite)).transpose()?;
    let (of_agents, others) = sources::agents_apart(&args.monitor);
    let monitors_agents = !of_agents.is_empty();
    if monitors_agents && args.agents.agents.is_empty() {
        return Err(Failure::wrong("--monitor agents: there are none; name them with --agents"));
    }
    let gates = gates(args, &base.suite)?;
    let asked = Asked {
        workers: args.workers.or(base.asked.workers),
        pacing: match args.pacing.into() {
            Pacing::Auto => base.asked.pacing,
            other => other,
        },
        priority: match args.priority.into() {
            Priority::Auto => base.asked.priority,
            other => other,
        },
        agents: args.agents.asked(),
        listen_on: args.agents.listen_on,
        sources: args.agents.source.clone(),
        profile_server: args.profile_server,
        ..Asked::default()
    };
    Ok(RunRequest {
        targets,
        out: args.out.clone().unwrap_or_else(|| default_out(&base.suite.name)),
        asked,
        loadfile: loadfile.or(base.loadfile),
        monitors: sources::parse(&others)?,
        monitors_agents,
        observers: args.observers.wishes()?,
        statements: statements.iter().map(statement).collect(),
        systems: systems::read(&args.system)?,
        gates,
        command: command_line(),
        ..base
    })
}

/// A run of the suite that the flags name.
fn request_of_suite(args: &RunArgs, mut values: Vec<Override>) -> Result<RunRequest, Failure> {
    let profile = ProfileName::from(args.profile);
    let flags = url_flags::changes(args, profile)?;
    values.extend(flags.values);
    values.extend(args.goodput.iter().flat_map(|limits| good_limits(*limits)));
    let ladder = args.ladder.change();
    let changes = Changes { values: &values, ladder: ladder.as_ref() };
    let (suite, headers) = separate(suite_source::find(&args.suite, changes)?)?;
    let plain = RunRequest::plain(suite, profile);
    Ok(RunRequest { headers, seed: args.seed, loadfile: flags.trace, ..plain })
}

/// Each as a value of the suite.
fn good_limits(limits: GoodLimits) -> Vec<Override> {
    let set = |(name, limit)| Override {
        path: format!("goodput.{name}"),
        value: span_text(limit).into(),
    };
    limits.each().map(set).collect()
}

/// A run like that of a bundle, of another target or at another time.
fn request_like(args: &RunArgs, dir: &Path, values: &[Override]) -> Result<RunRequest, Failure> {
    if let Some(flag) = args.url.first_given().or(args.llm.first_given()) {
        return Err(Failure::wrong(format!(
            "{flag}: with --like the requests are those of that run; change a value with --set"
        )));
    }
    let reader = BundleReader::open(dir)?;
    let as_before = like(&reader, values)?;
    if let Some(started) = reader.journal().started().filter(|started| started.asked.is_none()) {
        terminal::note(&format!(
            "{}: the journal of plimsoll {} does not have workers, pacing, priority and load file \
             of the run; for these, the flags of this command count",
            dir.display(),
            started.version
        ));
    }
    let (asked, found) = (suite_source::find(&args.suite, &[])?.name, &as_before.suite.name);
    if asked != *found {
        return Err(Failure::wrong(format!(
            "--like {}: that was a run of suite {found}, not of {asked}; write plimsoll run {found}",
            dir.display()
        )));
    }
    Ok(as_before)
}

/// Only answers in streams have times within them and tokens.
pub(crate) fn refuse_streams(suite: &Suite, flag: &str, needed: bool) -> Result<(), Failure> {
    if !needed || suite.workload.generates() {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "{flag}: the replies of suite {} are no streams of output, so it has no such figure; \
         suites of language models have it (plimsoll suites)",
        suite.name
    )))
}

/// A part of good ops needs limits of a good one.
pub(crate) fn refuse_goodput(suite: &Suite, flag: &str, needed: bool) -> Result<(), Failure> {
    if !needed || suite.goodput.is_some() {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "{flag}: nothing says what a good op is; write --goodput \"response<1s\" as well"
    )))
}

/// Conditions on this run; those on ratios need another one.
fn gates(args: &RunArgs, suite: &Suite) -> Result<Gates, Failure> {
    let gate = |condition: &FailIf| match condition {
        FailIf::Figure(gate) => {
            let needed = gate.figure.needs_streams();
            refuse_streams(suite, &format!("--fail-if '{gate}'"), needed)?;
            refuse_goodput(
                suite,
                &format!("--fail-if '{gate}'"),
                gate.figure == GateFigure::Goodput,
            )?;
            Ok(gate.clone())
        }
        FailIf::Ratio(gate) => Err(Failure::wrong(format!(
            "--fail-if '{gate}': one run has no ratio; write it for plimsoll compare or plimsoll \
             versus"
        ))),
    };
    Ok(Gates {
        all: args.gates.fail_if.iter().map(gate).collect::<Result<_, _>>()?,
        unsure_fails: args.gates.fail_if_unsure == YesNo::Yes,
    })
}

fn statement(item: &Override) -> Setting {
    let name = item.path.trim_start_matches(STATEMENT_PREFIX);
    let text = match &item.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Setting::new(name, text)
}

/// `runs/web-static-20261121-201530`.
pub(crate) fn default_out(name: &str) -> PathBuf {
    Path::new(RUNS_DIR).join(format!("{name}-{}", utc_stamp(unix_ns())))
}

fn numbered(out: &Path, number: u32) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(format!("-{number}"));
    PathBuf::from(name)
}
