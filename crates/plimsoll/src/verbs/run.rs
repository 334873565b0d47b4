//! `plimsoll run SUITE TARGET…`.

use std::path::{Path, PathBuf};

use plimsoll_model::bundle::{BundleReader, BundleWriter, write_durably};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::gate::Gates;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Ladder, LoadSpec, Override, ProfileName, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::Nanos;
use toml::Value;

use crate::cli::{FailIf, LadderArgs, Output, PacingArg, Peak, Reported, RunArgs, YesNo};
use crate::clock::{unix_ns, utc_stamp};
use crate::coordinator::signals::Signals;
use crate::coordinator::{RunEnd, RunRequest, like, run, sources};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::load_file;
use crate::secrets::{command_line, separate};
use crate::suite_source;
use crate::systems;
use crate::terminal::{self, Live};
use crate::verbs::url_flags;

/// Keys that state a fact for the disclosure instead of setting the suite.
const STATEMENT_PREFIX: &str = "disclosure.";
/// Longest think time that may be asked for: a day.
const SECONDS_MAX: f64 = 86_400.0;
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
        let in_a_row = in_a_row(args, number);
        let one = RunRequest { out, in_a_row, ..request.clone() };
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
fn in_a_row(args: &RunArgs, number: u32) -> Option<String> {
    let reported = match args.report {
        Reported::All => "each is reported",
        Reported::Last => "the last is reported, those before it condition the server",
    };
    (args.repeat > 1).then(|| format!("run {number} of {}; {reported}", args.repeat))
}

/// Makes a run that conditions the server for one to come. Its bundle is kept, and nothing more is
/// said of it.
fn run_unshown(request: &RunRequest, signals: &Signals, output: Output) -> Result<RunEnd, Failure> {
    let mut live = Live::new(output.progress);
    let end = run(request, signals, &mut live)?;
    drop(live);
    let place = request.out.display();
    terminal::note(&format!("{}: kept in {place}", request.in_a_row.as_deref().unwrap_or("run")));
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
    if let Some(dir) = &args.like {
        return request_like(args, dir);
    }
    let targets =
        args.targets.iter().map(|text| TargetSpec::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let (statements, mut overrides): (Vec<_>, Vec<_>) =
        args.set.iter().cloned().partition(|item| item.path.starts_with(STATEMENT_PREFIX));
    let profile = ProfileName::from(args.profile);
    overrides.extend(url_flags::overrides(args, profile)?);
    let suite = suite_source::find(&args.suite, &overrides)?;
    let (suite, headers) = separate(with_ladder(suite, &args.ladder)?)?;
    let loadfile = args.replay.loadfile.as_deref();
    let loadfile = loadfile.map(|file| load_file::read(file, &suite)).transpose()?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&suite.name));
    Ok(RunRequest {
        suite,
        headers,
        profile,
        targets,
        seed: args.seed,
        out,
        workers: args.workers,
        pacing: args.pacing.into(),
        priority: args.priority.into(),
        loadfile,
        monitors: sources::parse(&args.monitor)?,
        observers: args.observers.wishes()?,
        statements: statements.iter().map(statement).collect(),
        systems: systems::read(&args.system)?,
        capacity: None,
        gates: gates(args)?,
        held: None,
        in_a_row: None,
        command: command_line(),
    })
}

/// A run like that of a bundle, of another target or at another time.
fn request_like(args: &RunArgs, dir: &Path) -> Result<RunRequest, Failure> {
    if let Some(flag) = args.url.first_given() {
        return Err(Failure::wrong(format!(
            "{flag}: with --like the requests are those of that run; change a value with --set"
        )));
    }
    let (statements, overrides): (Vec<_>, Vec<_>) =
        args.set.iter().cloned().partition(|item| item.path.starts_with(STATEMENT_PREFIX));
    let as_before = like(&BundleReader::open(dir)?, &overrides)?;
    let (asked, found) = (suite_source::find(&args.suite, &[])?.name, &as_before.suite.name);
    if asked != *found {
        return Err(Failure::wrong(format!(
            "--like {}: that was a run of suite {found}, not of {asked}; write plimsoll run {found}",
            dir.display()
        )));
    }
    let parse = |text: &String| TargetSpec::parse(text);
    Ok(RunRequest {
        targets: args.targets.iter().map(parse).collect::<Result<_, _>>()?,
        out: args.out.clone().unwrap_or_else(|| default_out(found)),
        workers: args.workers.or(as_before.workers),
        pacing: match args.pacing {
            PacingArg::Auto => as_before.pacing,
            other => other.into(),
        },
        monitors: sources::parse(&args.monitor)?,
        observers: args.observers.wishes()?,
        statements: statements.iter().map(statement).collect(),
        systems: systems::read(&args.system)?,
        gates: gates(args)?,
        in_a_row: None,
        command: command_line(),
        ..as_before
    })
}

/// Conditions on this run; those on ratios need another one.
fn gates(args: &RunArgs) -> Result<Gates, Failure> {
    let gate = |condition: &FailIf| match condition {
        FailIf::Figure(gate) => Ok(gate.clone()),
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

/// The ladder the flags ask for. It replaces the file's whole: keys of a ladder of another kind
/// would be left over otherwise.
fn with_ladder(mut suite: Suite, args: &LadderArgs) -> Result<Suite, Failure> {
    const STEPS_DEFAULT: u32 = 10;
    const HEADROOM_DEFAULT: f64 = 1.0;
    let closed = matches!(suite.load, LoadSpec::Closed { .. });
    let steps = args.steps.unwrap_or(STEPS_DEFAULT);
    let (flag, ladder) = match (&args.points[..], args.peak) {
        ([], None) => ("--steps", with_steps(&suite.ladder, args.steps)?),
        ([], Some(_)) if matches!(suite.ladder, Ladder::Think { .. }) => {
            return Err(Failure::wrong(format!(
                "--peak: the ladder of suite {} is a list of think times; write --points, in \
                 seconds",
                suite.name
            )));
        }
        ([], Some(Peak::At(peak))) => ("--peak", Ladder::Peak { peak, steps }),
        ([], Some(Peak::Auto)) if closed => {
            return Err(Failure::wrong(format!(
                "--peak auto: suite {} has a closed load, whose ladder is a list of clients; \
                 write --points",
                suite.name
            )));
        }
        ([], Some(Peak::Auto)) => match suite.ladder {
            Ladder::Auto { headroom, .. } => ("--peak", Ladder::Auto { steps, headroom }),
            _ => ("--peak", Ladder::Auto { steps, headroom: HEADROOM_DEFAULT }),
        },
        (points, _) => ("--points", with_points(&suite.ladder, points)?),
    };
    suite.ladder = ladder;
    // Read again: the rules for loads are those of suite files.
    suite_source::parse(flag, &suite.to_toml(), &[]).map_err(|e| {
        let help = e.help.map(|help| format!("; {help}")).unwrap_or_default();
        Failure::wrong(format!("{flag}: {}{help}", e.message))
    })
}

/// Loads, or seconds where the ladder is one of think times.
fn with_points(ladder: &Ladder, points: &[f64]) -> Result<Ladder, Failure> {
    let Ladder::Think { clients, .. } = ladder else {
        return Ok(Ladder::Points { points: points.to_vec() });
    };
    if let Some(bad) = points.iter().find(|seconds| !(0.0..=SECONDS_MAX).contains(*seconds)) {
        return Err(Failure::wrong(format!(
            "--points: {bad} is not a think time; a load point of this suite is a number of \
             seconds from 0 to {SECONDS_MAX}"
        )));
    }
    let thinks = points.iter().map(|seconds| Nanos::from_secs_f64(*seconds)).collect();
    Ok(Ladder::Think { clients: *clients, thinks })
}

fn with_steps(ladder: &Ladder, steps: Option<u32>) -> Result<Ladder, Failure> {
    Ok(match (ladder.clone(), steps) {
        (ladder, None) => ladder,
        (Ladder::Peak { peak, .. }, Some(steps)) => Ladder::Peak { peak, steps },
        (Ladder::Auto { headroom, .. }, Some(steps)) => Ladder::Auto { steps, headroom },
        (Ladder::Points { .. }, Some(_)) => {
            return Err(Failure::wrong(
                "--steps: this suite's ladder is a list of loads; write --points or --peak",
            ));
        }
        (Ladder::Think { .. }, Some(_)) => {
            return Err(Failure::wrong(
                "--steps: this suite's ladder is a list of think times; write --points",
            ));
        }
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
