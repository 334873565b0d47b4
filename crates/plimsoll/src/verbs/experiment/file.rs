//! Reads factors and runs from the file of an experiment, or from the flags of `scale`.

use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use plimsoll_fleet::launcher::split_words;
use plimsoll_model::comparison::RatioFigure;
use plimsoll_model::comparison::experiment::Response;
use plimsoll_model::condition::ConditionFigure as _;
use plimsoll_model::event::ServerLimits;
use plimsoll_model::experiment_file::{ExperimentFile, FactorTable, LevelValue, Resource, SetBy};
use plimsoll_model::suite::Override;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::host::arguments::{parse_count, parse_size};
use plimsoll_run::coordinator::{RunRequest, cores_of_program};
use plimsoll_run::level_commands::LevelCommands;
use plimsoll_run::text_file;
use toml::Value;

use super::design::{Change, Factor, HandSet, Level};
use crate::exit::Failure;
use crate::flags::{Reported, RunArgs};
use crate::verbs::capacity::{self, CapacityArgs};
use crate::verbs::{Cli, Verb, run};

/// Maximum number of cores and service threads in a level.
const CORES_MAX: f64 = 4_096.0;
const THREADS_MAX: f64 = 1_024.0;

/// Reads the file of an experiment.
pub(crate) fn read(file: &Path) -> Result<(String, ExperimentFile), Failure> {
    let text = text_file::read(file).map_err(|e| {
        Failure::wrong(format!("{}: cannot read the experiment: {e}", file.display()))
    })?;
    let parsed = ExperimentFile::parse(&file.display().to_string(), &text)?;
    Ok((text, parsed))
}

/// The run that all cells have in common.
pub(crate) enum CommonRun {
    /// A ladder of loads.
    Ladder(Box<RunArgs>),
    /// A search for the highest load within limits.
    Capacity(Box<CapacityArgs>),
}

impl CommonRun {
    pub(crate) fn args(&mut self) -> &mut RunArgs {
        match self {
            Self::Ladder(args) => args,
            Self::Capacity(args) => &mut args.run,
        }
    }

    pub(crate) fn request(&self) -> Result<RunRequest, Failure> {
        match self {
            Self::Ladder(args) => run::request_of(args),
            Self::Capacity(args) => capacity::request(args),
        }
    }
}

/// Reads the common run as if its options had been typed, with these flags after them.
pub(crate) fn common_run(
    file: &Path,
    experiment: &ExperimentFile,
    flags: &[String],
) -> Result<CommonRun, Failure> {
    let wrong = |why: String| Failure::wrong(format!("{}: options: {why}", file.display()));
    let options = split_words(&experiment.options).map_err(|e| wrong(e.to_string()))?;
    let is_target = |factor: &&FactorTable| factor.set_by == SetBy::Target;
    let first = experiment.factors.iter().find(is_target).and_then(|factor| factor.levels.first());
    let targets = first.map_or_else(|| experiment.targets.clone(), |level| vec![level.text()]);
    let verb = if experiment.within.is_some() { "capacity" } else { "run" };
    let line = ["plimsoll".to_owned(), verb.to_owned(), experiment.suite.clone()];
    let within = experiment.within.iter().flat_map(|it| ["--within".to_owned(), it.clone()]);
    let line = line.into_iter().chain(targets).chain(within).chain(options);
    let line = line.chain(flags.iter().cloned());
    let parsed = Cli::try_parse_from(line).map_err(|e| wrong(e.to_string()))?;
    let mut common = match parsed.verb {
        Verb::Run(args) => CommonRun::Ladder(args),
        Verb::Capacity(args) => CommonRun::Capacity(args),
        _ => return Err(wrong(format!("these are not options of plimsoll {verb}"))),
    };
    let args = common.args();
    let elsewhere = [
        ("--out", args.out.is_some(), "plimsoll experiment takes it"),
        ("--repeat", args.repeat > 1, "write repeats = N"),
        ("--report", args.report == Reported::Last, "every run counts"),
        ("--json", args.output.json, "plimsoll experiment takes it"),
    ];
    if let Some((flag, _, instead)) = elsewhere.into_iter().find(|(_, given, _)| *given) {
        return Err(wrong(format!("{flag}: {instead}")));
    }
    if let CommonRun::Capacity(args) = &common {
        capacity::refuse_ladder(&args.run)?;
    }
    Ok(common)
}

/// The response whose effects are computed.
pub(crate) fn response(file: &Path, experiment: &ExperimentFile) -> Result<Response, Failure> {
    let searched = Response { figure: RatioFigure::Capacity, load: None };
    let text = match (&experiment.response, &experiment.within) {
        (None, None) => return Ok(Response::default()),
        (None, Some(_)) => return Ok(searched),
        (Some(text), None) if text.trim() == RatioFigure::Capacity.as_str() => {
            return Err(Failure::wrong(format!(
                "{}: response is {text:?}, and no run searches one; write within = \"p99<50ms\" or \
                 other limits as well",
                file.display()
            )));
        }
        (Some(text), _) => text,
    };
    let (name, load) = match text.split_once('@') {
        Some((name, load)) => (name, Some(load.trim().parse::<f64>().ok())),
        None => (text.as_str(), None),
    };
    let figure = RatioFigure::all().find(|figure| figure.as_str() == name.trim());
    let response = match (figure, load) {
        (Some(figure), None) if !figure.is_of_point() => Some(Response { figure, load: None }),
        (Some(figure), Some(Some(load))) if figure.is_of_point() => {
            Some(Response { figure, load: Some(load) })
        }
        _ => None,
    };
    response.ok_or_else(|| {
        let of = |of_point: bool| {
            let all = RatioFigure::all().filter(move |it| it.is_of_point() == of_point);
            all.map(RatioFigure::as_str).collect::<Vec<_>>().join(", ")
        };
        Failure::wrong(format!(
            "{}: response is {text:?}; write {}, or with a load point, as in p99@1000: {}",
            file.display(),
            of(false),
            of(true)
        ))
    })
}

/// The factors of a file.
pub(crate) fn factors(file: &Path, experiment: &ExperimentFile) -> Result<Vec<Factor>, Failure> {
    let of =
        |table| factor(table).map_err(|why| Failure::wrong(format!("{}: {why}", file.display())));
    experiment.factors.iter().map(of).collect()
}

fn factor(table: &FactorTable) -> Result<Factor, String> {
    let level = |value: &LevelValue| {
        let change = change(table, value)
            .map_err(|why| format!("factor {}, level {}: {why}", table.name, value.name()))?;
        let value_of = match table.set_by {
            SetBy::Server(resource) => limits(resource, value).ok().map(|it| it.1),
            _ => value.number(),
        };
        Ok::<_, String>(Level { name: value.name(), value: value_of, changes: vec![change] })
    };
    Ok(Factor {
        name: table.name.clone(),
        unit: table.unit.clone(),
        levels: table.levels.iter().map(level).collect::<Result<_, _>>()?,
        hand: match table.set_by {
            SetBy::Hand { once: true } => Some(HandSet::Once),
            SetBy::Hand { once: false } => Some(HandSet::EachBlock),
            _ => None,
        },
        undo: match &table.set_by {
            SetBy::Command { undo, .. } => undo.clone(),
            _ => None,
        },
    })
}

fn change(table: &FactorTable, value: &LevelValue) -> Result<Change, String> {
    let cores = cores_of_program().map_err(|failure| failure.to_string())?.to_vec();
    let commands = |set: Option<&String>| LevelCommands {
        factor: table.name.clone(),
        level: value.text(),
        set: set.cloned(),
        verify: table.verify.clone(),
        settle: span(table.settle),
        timeout: span(table.timeout),
        cores: cores.clone(),
        more: Vec::new(),
    };
    Ok(match &table.set_by {
        SetBy::Command { set, after_start: true, .. } => Change::AfterStart(commands(Some(set))),
        SetBy::Command { set, .. } => Change::Commands(commands(Some(set))),
        SetBy::Hand { .. } => Change::Commands(commands(None)),
        SetBy::Key(key) => {
            Change::Keys(vec![Override { path: key.clone(), value: toml_of(value) }])
        }
        SetBy::Flag(flag) => match value {
            LevelValue::Flag(false) => Change::Flag(None),
            LevelValue::Flag(true) => Change::Flag(Some(flag.clone())),
            value => Change::Flag(Some(format!("{flag}={}", value.text()))),
        },
        SetBy::Target => Change::Target(value.text()),
        SetBy::Server(resource) => Change::Server(limits(*resource, value)?.0),
    })
}

fn span(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

/// The value of a key of a suite.
fn toml_of(value: &LevelValue) -> Value {
    match value {
        LevelValue::Number(number) if number.fract() == 0.0 => Value::Integer(*number as i64),
        LevelValue::Number(number) => Value::Float(*number),
        LevelValue::Flag(flag) => Value::Boolean(*flag),
        LevelValue::Text(text) => Value::String(text.clone()),
        LevelValue::Named { value, .. } => toml_of(value),
    }
}

/// The limits of a server, and the level as a number: cores, bytes, or a rate in its basic unit.
fn limits(resource: Resource, value: &LevelValue) -> Result<(ServerLimits, f64), String> {
    let none = ServerLimits::default();
    let text = value.text();
    let number = |max: f64| {
        let number = value.number().or_else(|| text.parse().ok());
        let number = number.filter(|number| (0.01..=max).contains(number));
        number.ok_or_else(|| format!("write a number from 0.01 to {max}"))
    };
    Ok(match resource {
        Resource::Cores => {
            let number = number(CORES_MAX)?;
            // A quota limits the last core if the number is fractional.
            let quota_cores = (number.fract() != 0.0).then_some(number);
            (ServerLimits { cores: Some(number.ceil() as u32), quota_cores, ..none }, number)
        }
        Resource::Quota => {
            let number = number(CORES_MAX)?;
            (ServerLimits { quota_cores: Some(number), ..none }, number)
        }
        Resource::Memory => {
            let bytes = parse_size(&text)?.0;
            (ServerLimits { memory_bytes: Some(bytes), ..none }, bytes as f64)
        }
        Resource::DiskRate => {
            let size = text.strip_suffix("/s").and_then(|size| parse_size(size).ok());
            let bytes = size.ok_or("write bytes per second, such as 50MiB/s")?.0;
            (ServerLimits { disk_bytes_per_s: Some(bytes), ..none }, bytes as f64)
        }
        Resource::DiskTransfers => {
            let transfers = parse_count(&text)?;
            (ServerLimits { disk_transfers_per_s: Some(transfers), ..none }, transfers as f64)
        }
        Resource::LinkRate => {
            let rate = text.strip_suffix("bit/s").and_then(|rate| parse_count(rate).ok());
            let bits = rate.ok_or("write bits per second, such as 100Mbit/s")?;
            (ServerLimits { link_bits_per_s: Some(bits), ..none }, bits as f64)
        }
        Resource::Threads => {
            let whole = Some(number(THREADS_MAX)?).filter(|number| number.fract() == 0.0);
            let threads = whole.ok_or("write a whole number")?;
            (ServerLimits { threads: Some(threads as u32), ..none }, threads)
        }
    })
}

/// The factor of `plimsoll scale`, written as `cores=0.5,1,2`.
pub(crate) fn parse_scaled_resource(text: &str) -> Result<Factor, String> {
    const HOW: &str = "write cores=0.5,1,2 or memory=256MiB,1GiB or disk_rate=50MiB/s,100MiB/s or \
                       link_rate=100Mbit/s,1000Mbit/s or threads=1,4,16";
    let (name, list) = text.split_once('=').ok_or(HOW)?;
    let name = name.trim();
    let resource: Resource = Value::String(name.to_owned())
        .try_into()
        .map_err(|_| format!("{name:?} cannot be scaled; {HOW}"))?;
    let level = |text: &str| {
        let text = text.trim();
        let level = limits(resource, &LevelValue::Text(text.to_owned()));
        let (limits, value) = level.map_err(|why| match resource {
            Resource::Cores => format!("{text:?} is no number of cores: {why}; {HOW}"),
            _ => format!("{name}: {text:?}: {why}; {HOW}"),
        })?;
        let changes = vec![Change::Server(limits)];
        Ok(Level { name: text.to_owned(), value: Some(value), changes })
    };
    let levels = list.split(',').map(level).collect::<Result<_, String>>()?;
    Ok(Factor { name: name.to_owned(), unit: None, levels, hand: None, undo: None })
}
