//! From the file of an experiment, and from the flags of `scale`, to factors and runs.

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
use plimsoll_protocol::host::arguments::parse_size;
use toml::Value;

use super::design::{Change, Factor, HandSet, Level};
use crate::cli::{Cli, Over, Reported, RunArgs, Verb};
use crate::coordinator::cores_of_program;
use crate::exit::Failure;
use crate::level_commands::LevelCommands;

/// Most cores and service threads that a level may name.
const CORES_MAX: f64 = 4_096.0;
const THREADS_MAX: f64 = 1_024.0;

/// Reads the file of an experiment.
pub(crate) fn read(file: &Path) -> Result<(String, ExperimentFile), Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        Failure::wrong(format!("{}: cannot read the experiment: {e}", file.display()))
    })?;
    let parsed = ExperimentFile::parse(&file.display().to_string(), &text)?;
    Ok((text, parsed))
}

/// The run that all cells have in common, as if its options were typed.
pub(crate) fn run_args(file: &Path, asked: &ExperimentFile) -> Result<RunArgs, Failure> {
    let wrong = |why: String| Failure::wrong(format!("{}: options: {why}", file.display()));
    let options = split_words(&asked.options).map_err(|e| wrong(e.to_string()))?;
    let is_target = |factor: &&FactorTable| factor.set_by == SetBy::Target;
    let first = asked.factors.iter().find(is_target).and_then(|factor| factor.levels.first());
    let targets = match first {
        Some(level) => vec![level.text()],
        None => asked.targets.clone(),
    };
    let line = ["plimsoll".to_owned(), "run".to_owned(), asked.suite.clone()];
    let line = line.into_iter().chain(targets).chain(options);
    let parsed = Cli::try_parse_from(line).map_err(|e| wrong(e.to_string()))?;
    let Verb::Run(args) = parsed.verb else {
        return Err(wrong("these are not options of plimsoll run".into()));
    };
    let elsewhere = [
        ("--out", args.out.is_some(), "plimsoll experiment takes it"),
        ("--repeat", args.repeat > 1, "write repeats = N"),
        ("--report", args.report == Reported::Last, "every run counts"),
        ("--json", args.output.json, "plimsoll experiment takes it"),
    ];
    match elsewhere.into_iter().find(|(_, given, _)| *given) {
        Some((flag, _, instead)) => Err(wrong(format!("{flag}: {instead}"))),
        None => Ok(*args),
    }
}

/// What the effects are of.
pub(crate) fn response(file: &Path, asked: &ExperimentFile) -> Result<Response, Failure> {
    let Some(text) = &asked.response else { return Ok(Response::default()) };
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
pub(crate) fn factors(file: &Path, asked: &ExperimentFile) -> Result<Vec<Factor>, Failure> {
    let of =
        |table| factor(table).map_err(|why| Failure::wrong(format!("{}: {why}", file.display())));
    asked.factors.iter().map(of).collect()
}

fn factor(table: &FactorTable) -> Result<Factor, String> {
    let level = |value: &LevelValue| {
        let change = change(table, value)
            .map_err(|why| format!("factor {}, level {}: {why}", table.name, value.name()))?;
        let value_of = match table.set_by {
            SetBy::Server(Resource::Memory) => parse_size(&value.text()).ok().map(|it| it.0 as f64),
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
        SetBy::Target => Change::Target(value.text()),
        SetBy::Server(resource) => Change::Server(limits(*resource, value)?),
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

/// What a server is held to.
fn limits(resource: Resource, value: &LevelValue) -> Result<ServerLimits, String> {
    let none = ServerLimits::default();
    let number = |max: f64| {
        let number = value.number().filter(|number| (0.01..=max).contains(number));
        number.ok_or_else(|| format!("write a number from 0.01 to {max}"))
    };
    Ok(match resource {
        Resource::Cores => cores(number(CORES_MAX)?),
        Resource::Quota => ServerLimits { quota_cores: Some(number(CORES_MAX)?), ..none },
        Resource::Memory => {
            ServerLimits { memory_bytes: Some(parse_size(&value.text())?.0), ..none }
        }
        Resource::Threads => {
            let whole = Some(number(THREADS_MAX)?).filter(|number| number.fract() == 0.0);
            let threads = whole.ok_or("write a whole number")? as u32;
            ServerLimits { threads: Some(threads), ..none }
        }
    })
}

/// So many cores, the last of them by a quota where it is a part.
fn cores(number: f64) -> ServerLimits {
    let quota_cores = (number.fract() != 0.0).then_some(number);
    ServerLimits { cores: Some(number.ceil() as u32), quota_cores, ..ServerLimits::default() }
}

/// The factor of `plimsoll scale`.
pub(crate) fn factor_of_scale(over: &Over) -> Factor {
    let none = ServerLimits::default();
    let level = |name: String, value: f64, limits: ServerLimits| Level {
        name,
        value: Some(value),
        changes: vec![Change::Server(limits)],
    };
    let levels = match over {
        Over::Cores(list) => list.iter().map(|n| level(n.to_string(), *n, cores(*n))).collect(),
        Over::Memory(list) => {
            let memory = |n: &u64| {
                let limits = ServerLimits { memory_bytes: Some(*n), ..none };
                level(plimsoll_model::units::Bytes(*n).to_string(), *n as f64, limits)
            };
            list.iter().map(memory).collect()
        }
        Over::Threads(list) => {
            let threads = |n: &u32| {
                let limits = ServerLimits { threads: Some(*n), ..none };
                level(n.to_string(), f64::from(*n), limits)
            };
            list.iter().map(threads).collect()
        }
    };
    Factor { name: over.name().to_owned(), unit: None, levels, hand: None, undo: None }
}
