//! `plimsoll scale SUITE managed:X|builtin: --over cores=0.5,1,2`: one suite while the server gets
//! more.

use std::path::Path;

use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::event::ServerLimits;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::scaling::{SCALING_FORMAT, Scaling, ScalingStep};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::Bytes;
use plimsoll_report::{scaling_html, scaling_markdown};

use super::run::{default_out, request_of};
use crate::cli::{Over, Reported, ScaleArgs};
use crate::coordinator::{RunRequest, run};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::{self, Live};

/// What was measured, as text, as a document and as a page; each step's bundle has the rest.
const TABLE_FILE: &str = "scale.md";
const JSON_FILE: &str = "scale.json";
const REPORT_FILE: &str = "scale.html";

/// Makes a run for each step, and lays them side by side.
pub(crate) fn perform(args: &ScaleArgs) -> Result<Exit, Failure> {
    let request = request_of(&args.run)?;
    if request.targets.iter().any(|target| matches!(target, TargetSpec::Url(_))) {
        return Err(Failure::wrong(
            "plimsoll scale holds a server to less than it could have, so it must start it: write \
             builtin: or managed:NAME",
        ));
    }
    if args.run.repeat > 1 || args.run.report == Reported::Last {
        return Err(Failure::wrong(
            "--repeat, --report: plimsoll scale makes one run for each step",
        ));
    }
    let dir = match &args.run.out {
        Some(out) => out.clone(),
        None => default_out(&format!("scale-{}", request.suite.name)),
    };
    let steps = steps(&args.over);
    for step in &steps {
        BundleWriter::refuse_occupied(&dir.join(&step.place))?;
    }
    let signals = Signals::listen()?;
    let mut scaling = Scaling {
        format: SCALING_FORMAT,
        suite: request.suite.name.clone(),
        over: args.over.name().to_owned(),
        unit: String::new(),
        steps: Vec::new(),
    };
    let mut worst = Exit::Valid;
    for step in steps {
        let mut live = Live::new(args.run.output.progress);
        live.line(&format!("{}:", step.name));
        let out = dir.join(&step.place);
        let mut step_request = RunRequest { out, ..request.clone() };
        step_request.asked.server_limits = Some(step.limits);
        let end = run(&step_request, &signals, &mut live)?;
        worst = worst.max(end.exit);
        scaling.unit.clone_from(&end.result.summary.unit);
        scaling.steps.push(measured(step, &end.result));
        scaling.compare();
        // After each step: what was measured is not lost with the next.
        keep(&dir, &scaling)?;
        if end.exit == Exit::Interrupted {
            break;
        }
    }
    let table = scaling_markdown(&scaling);
    match args.run.output.json {
        true => {
            terminal::note(&table);
            terminal::print(&json(&scaling));
        }
        false => terminal::print(&table),
    }
    terminal::note(&format!("report: {}\n", dir.join(REPORT_FILE).display()));
    Ok(worst)
}

/// Writes the document, its table and its page.
fn keep(dir: &Path, scaling: &Scaling) -> Result<(), Failure> {
    let page = scaling_html(scaling).map_err(|e| Failure::unusable(e.to_string()))?;
    let files =
        [(TABLE_FILE, scaling_markdown(scaling)), (JSON_FILE, json(scaling)), (REPORT_FILE, page)];
    for (name, text) in files {
        let file = dir.join(name);
        std::fs::write(&file, text).map_err(|e| {
            Failure::unusable(format!("{}: cannot write it: {e}; make room", file.display()))
        })?;
    }
    Ok(())
}

fn json(scaling: &Scaling) -> String {
    let text = serde_json::to_string_pretty(scaling);
    text.expect("numbers and text become JSON") + "\n"
}

/// A step with what its run came to.
fn measured(step: Step, result: &RunResult) -> ScalingStep {
    let summary = &result.summary;
    let counted = result.points.iter().filter(|point| point.counts());
    let rate = |point: &&PointResult| point.achieved_ops_per_s.unwrap_or_default();
    let top = counted.max_by(|a, b| rate(a).total_cmp(&rate(b)));
    ScalingStep {
        name: step.name,
        value: step.size,
        throughput: summary.value,
        interval: summary.value_interval,
        bound: summary.bound,
        ratio: None,
        efficiency: None,
        limit: top.map(|point| point.limit.clone()).unwrap_or_default(),
        limit_text: summary.limit.clone(),
        valid: result.verdict.valid,
        bundle: step.place,
    }
}

/// One size of the server.
struct Step {
    name: String,
    /// Directory of its bundle.
    place: String,
    size: f64,
    limits: ServerLimits,
}

fn steps(over: &Over) -> Vec<Step> {
    let step = |what: &str, size: f64, text: String, limits: ServerLimits| Step {
        name: format!("{what} {text}"),
        place: format!("{what}-{}", text.replace(' ', "")),
        size,
        limits,
    };
    let none = ServerLimits::default();
    let cores = |n: &f64| {
        let quota_cores = (n.fract() != 0.0).then_some(*n);
        let limits = ServerLimits { cores: Some(n.ceil() as u32), quota_cores, ..none };
        step("cores", *n, n.to_string(), limits)
    };
    let memory = |n: &u64| {
        let limits = ServerLimits { memory_bytes: Some(*n), ..none };
        step("memory", *n as f64, Bytes(*n).to_string(), limits)
    };
    let threads = |n: &u32| {
        let limits = ServerLimits { threads: Some(*n), ..none };
        step("threads", f64::from(*n), n.to_string(), limits)
    };
    match over {
        Over::Cores(list) => list.iter().map(cores).collect(),
        Over::Memory(list) => list.iter().map(memory).collect(),
        Over::Threads(list) => list.iter().map(threads).collect(),
    }
}
