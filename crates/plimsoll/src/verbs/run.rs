//! `plimsoll run SUITE TARGET…`.

use std::path::{Path, PathBuf};

use plimsoll_analysis::precision::pilot_max;
use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::bundle::{BundleReader, BundleWriter, write_durably};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{InARow, RunOptions};
use plimsoll_model::gate::{GateFigure, Gates};
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Changes, Override, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::span_text;
use plimsoll_model::until::Until;
use plimsoll_run::clock::{unix_ns, utc_stamp};
use plimsoll_run::coordinator::{RunEnd, RunRequest, like, run, sources};
use plimsoll_run::secrets::{command_line, separate};
use plimsoll_run::testbed::Testbed;
use plimsoll_run::{Signals, derive, load_file, systems};
use toml::Value;

use crate::exit::{Exit, Failure};
use crate::flags::{FailIf, Output, Reported, RunArgs, STATEMENT_PREFIX, shape};
use crate::interrupts;
use crate::suite_source;
use crate::terminal::{self, Live};

/// Default parent directory of bundles.
const RUNS_DIR: &str = "runs";

/// Makes one run, or several in a row.
pub(crate) fn perform(args: &RunArgs) -> Result<Exit, Failure> {
    if args.repeat == 1 && args.report == Reported::Last {
        return Err(Failure::wrong("--report last: there is one run; write --repeat 3 as well"));
    }
    let request = request_of(args)?;
    let bundle_dirs: Vec<PathBuf> = match args.repeat {
        1 => vec![request.out.clone()],
        count => (1..=count).map(|number| numbered(&request.out, number)).collect(),
    };
    // Check all now: hours may pass before the last run.
    for out in &bundle_dirs {
        BundleWriter::refuse_occupied(out)?;
    }
    let signals = interrupts::listen()?;
    let mut worst = Exit::Valid;
    let mut results = Vec::new();
    for (number, out) in (1..).zip(bundle_dirs) {
        let mut one = RunRequest { out, ..request.clone() };
        one.options.in_a_row = in_a_row(args, number);
        if args.report == Reported::Last && number < args.repeat {
            let end = run_unshown(&one, &signals, args.output)?;
            if end.is_interrupted {
                return Ok(Exit::Interrupted);
            }
            continue;
        }
        let end = run_and_show(&one, &signals, args.output)?;
        worst = worst.max(Exit::from(&end));
        results.push(end.result);
        if end.is_interrupted {
            break;
        }
    }
    write_junit(args, &results)?;
    Ok(worst)
}

/// The number of a run in a series, for its report.
fn in_a_row(args: &RunArgs, number: u32) -> Option<InARow> {
    let unreported = match args.report {
        Reported::All => 0,
        Reported::Last => args.repeat - 1,
    };
    (args.repeat > 1).then_some(InARow { number, count: args.repeat, unreported })
}

/// Makes a run that conditions the server for the next one. Its bundle is kept, but its result is
/// not printed.
fn run_unshown(request: &RunRequest, signals: &Signals, output: Output) -> Result<RunEnd, Failure> {
    let mut live = Live::new(output.progress);
    let end = run(request, signals, &mut live)?;
    drop(live);
    let run = request.options.in_a_row.map_or_else(|| "run".to_owned(), |run| run.to_string());
    terminal::note(&format!("{run}: kept in {}", request.out.display()));
    Ok(end)
}

/// Writes the file of `--junit`, if requested.
pub(crate) fn write_junit(args: &RunArgs, results: &[RunResult]) -> Result<(), Failure> {
    let Some(file) = &args.gates.junit else { return Ok(()) };
    Ok(write_durably(file, plimsoll_report::junit(results)?.as_bytes())?)
}

/// Makes a run and prints its result.
pub(crate) fn run_and_show(
    request: &RunRequest,
    signals: &Signals,
    output: Output,
) -> Result<RunEnd, Failure> {
    let mut live = Live::new(output.progress);
    let end = run(request, signals, &mut live)?;
    // Remove the live line before the result is printed.
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

/// The request that the flags describe.
pub(crate) fn request_of(args: &RunArgs) -> Result<RunRequest, Failure> {
    if let Some(shape) = &args.shape {
        shape::refuse_others(args, "--shape")?;
        let mut args = args.clone();
        let length = shape::take_length(&mut args)?;
        let mut request = request_without_until(&args)?;
        shape::add_to(&mut request, &args, (shape, length))?;
        return Ok(request);
    }
    let Some(precision) = &args.until else { return request_without_until(args) };
    // The length is that of all windows of a load point, in every suite.
    let mut args = args.clone();
    let until = Until { precision: precision.clone(), at_most_ns: args.take_length() };
    let mut request = request_without_until(&args)?;
    let suite = &mut request.suite;
    let flag = format!("--until {precision}");
    if suite.workload.is_recorded() {
        return Err(Failure::wrong(format!(
            "{flag}: a replay is as long as its recording; leave it out, or run the model"
        )));
    }
    refuse_streams(suite, &flag, precision.figure.needs_streams())?;
    refuse_goodput(suite, &flag, precision.figure == GateFigure::Goodput)?;
    let profile = suite.profiles.get_mut(request.profile);
    if profile.ops.is_some() {
        return Err(Failure::wrong(format!(
            "{flag}: the window of this run is a number of ops; leave out one of the two"
        )));
    }
    if let Some(at_most) = until.at_most_ns {
        profile.measure = profile.measure.min(pilot_max(at_most));
    }
    request.options.until = Some(until);
    Ok(request)
}

/// The request that the flags besides `--until` describe.
fn request_without_until(args: &RunArgs) -> Result<RunRequest, Failure> {
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
    let testbed = args.testbed.as_deref().map(Testbed::read).transpose()?;
    let (of_agents, others) = sources::agents_apart(&args.monitor);
    let (mut monitors, mut agents) = (sources::parse(&others)?, args.agents.agents.clone());
    if let Some(testbed) = &testbed {
        monitors = testbed.monitors_with(&monitors)?;
        agents = testbed.agents_with(&agents)?;
    }
    let monitors_agents = !of_agents.is_empty();
    if monitors_agents && agents.is_empty() {
        return Err(Failure::wrong("--monitor agents: there are none; name them with --agents"));
    }
    let gates = gates(args, &base.suite)?;
    let options = RunOptions {
        workers: args.workers.or(base.options.workers),
        pacing: match args.pacing {
            Pacing::Auto => base.options.pacing,
            other => other,
        },
        priority: match args.priority {
            Priority::Auto => base.options.priority,
            other => other,
        },
        agents: args.agents.options(agents)?,
        listen_on: args.agents.listen_on,
        sources: args.agents.source.clone(),
        profile_server: args.profile_server,
        until: base.options.until,
        shape: base.options.shape,
        ..RunOptions::default()
    };
    Ok(RunRequest {
        targets,
        out: args.out.clone().unwrap_or_else(|| default_out(&base.suite.name)),
        options,
        loadfile: loadfile.or(base.loadfile),
        monitors,
        monitors_agents,
        observers: args.observers.options()?,
        statements: statements.iter().map(statement).collect(),
        systems: systems::read(&args.system, testbed.as_ref().map(Testbed::declared))?,
        gates,
        command: command_line(),
        ..base
    })
}

/// The request for the suite that the flags name.
fn request_of_suite(args: &RunArgs, mut values: Vec<Override>) -> Result<RunRequest, Failure> {
    let (of_flags, loadfile) = args.changes()?;
    values.extend(of_flags);
    values.extend(args.goodput.iter().flat_map(|limits| good_limits(*limits)));
    let ladder = args.ladder.change();
    let changes = Changes { values: &values, ladder: ladder.as_ref(), without: &[] };
    let (suite, headers) = separate(suite_source::find(&args.suite, changes)?)?;
    let plain = RunRequest::plain(suite, args.profile);
    Ok(RunRequest { headers, seed: args.seed, loadfile, ..plain })
}

/// The limits as values of the suite.
fn good_limits(limits: GoodLimits) -> Vec<Override> {
    let set = |(name, limit)| Override {
        path: format!("goodput.{name}"),
        value: span_text(limit).into(),
    };
    limits.each().map(set).collect()
}

/// A request like that of a bundle, with another target or at another time.
fn request_like(args: &RunArgs, dir: &Path, values: &[Override]) -> Result<RunRequest, Failure> {
    let speed = args.replay.speed.map(|_| "--speed".to_owned());
    if let Some(flag) = args.first_of_url().or_else(|| args.first_of_llm()).or(speed) {
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
    let (requested, recorded) = (suite_source::find(&args.suite, &[])?.name, &as_before.suite.name);
    if requested != *recorded {
        return Err(Failure::wrong(format!(
            "--like {}: that was a run of suite {recorded}, not of {requested}; write plimsoll run {recorded}",
            dir.display()
        )));
    }
    Ok(as_before)
}

/// Refuses a flag for times within replies or tokens, unless the replies are streams.
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

/// Refuses a flag for goodput, unless the suite has limits of a good op.
pub(crate) fn refuse_goodput(suite: &Suite, flag: &str, needed: bool) -> Result<(), Failure> {
    if !needed || suite.goodput.is_some() {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "{flag}: nothing says what a good op is; write --goodput \"response<1s\" as well"
    )))
}

/// The conditions on this run. Refuses those on ratios, which need another run.
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
        unsure_fails: args.gates.fail_if_unsure,
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
