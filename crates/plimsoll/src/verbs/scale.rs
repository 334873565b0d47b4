//! `plimsoll scale SUITE managed:X|builtin: --over cores=0.5,1,2`: one suite while the server gets
//! more.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::result::{Bound, RunResult};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::{Bytes, grouped, three_digits};
use plimsoll_servers::Confinement;

use super::run::{default_out, request_of};
use crate::cli::{Over, ScaleArgs};
use crate::coordinator::signals::Signals;
use crate::coordinator::{Held, RunRequest, run};
use crate::exit::{Exit, Failure};
use crate::terminal::{self, Live};

/// What was measured, for the eye; each step's bundle has the rest.
const TABLE_FILE: &str = "scale.md";

/// Makes a run for each step, and lays them side by side.
pub fn perform(args: &ScaleArgs) -> Result<Exit, Failure> {
    let request = request_of(&args.run)?;
    if request.targets.iter().any(|target| matches!(target, TargetSpec::Url(_))) {
        return Err(Failure::wrong(
            "plimsoll scale holds a server to less than it could have, so it must start it: write \
             builtin: or managed:NAME",
        ));
    }
    if args.run.repeat > 1 {
        return Err(Failure::wrong("--repeat: plimsoll scale makes one run for each step"));
    }
    if args.run.output.json {
        return Err(Failure::wrong(
            "--json: the result of plimsoll scale is a table; the result.json of each step is in \
             its bundle, below --out",
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
    let mut rows = Vec::new();
    let mut worst = Exit::Valid;
    for step in steps {
        let mut live = Live::new(args.run.output.progress);
        live.line(&format!("{}:", step.name));
        let out = dir.join(&step.place);
        let step_request = RunRequest { out, held: Some(step.held), ..request.clone() };
        let end = run(&step_request, &signals, &mut live)?;
        worst = worst.max(end.exit);
        rows.push(Row { name: step.name, size: step.size, result: end.result });
        if end.exit == Exit::Interrupted {
            break;
        }
    }
    let table = table(&rows);
    terminal::print(&table);
    keep(&dir, &table)?;
    Ok(worst)
}

fn keep(dir: &Path, table: &str) -> Result<(), Failure> {
    let file = dir.join(TABLE_FILE);
    std::fs::write(&file, table).map_err(|e| {
        Failure::unusable(format!("{}: cannot write it: {e}; make room", file.display()))
    })
}

/// One size of the server.
struct Step {
    name: String,
    /// Directory of its bundle.
    place: String,
    size: f64,
    held: Held,
}

fn steps(over: &Over) -> Vec<Step> {
    let step = |what: &str, size: f64, text: String, held: Held| Step {
        name: format!("{what} {text}"),
        place: format!("{what}-{}", text.replace(' ', "")),
        size,
        held,
    };
    match over {
        Over::Cores(list) => {
            let held = |cores: f64| Held {
                cores: Some(cores.ceil() as u32),
                confinement: Confinement {
                    quota_cores: (cores.fract() != 0.0).then_some(cores),
                    memory_bytes: None,
                },
                ..Held::default()
            };
            list.iter().map(|n| step("cores", *n, n.to_string(), held(*n))).collect()
        }
        Over::Memory(list) => {
            let held = |bytes: u64| Held {
                confinement: Confinement { quota_cores: None, memory_bytes: Some(bytes) },
                ..Held::default()
            };
            let text = |bytes: u64| Bytes(bytes).to_string();
            list.iter().map(|n| step("memory", *n as f64, text(*n), held(*n))).collect()
        }
        Over::Threads(list) => {
            let held = |threads: u32| Held { threads: Some(threads), ..Held::default() };
            let step = |n: &u32| step("threads", f64::from(*n), n.to_string(), held(*n));
            list.iter().map(step).collect()
        }
    }
}

/// A step with what was measured.
struct Row {
    name: String,
    size: f64,
    result: RunResult,
}

/// Ratio to the first step that has a figure, and that over the ratio of the sizes.
fn table(rows: &[Row]) -> String {
    let unit = rows.first().map(|row| row.result.summary.unit.clone()).unwrap_or_default();
    let mut out = format!("| step | {unit} | ratio | efficiency | verdict | limit |\n");
    out.push_str("| --- | ---: | ---: | ---: | --- | --- |\n");
    let first = rows.iter().find_map(|row| Some((row.size, row.result.summary.value?)));
    for row in rows {
        let summary = &row.result.summary;
        let ratio = first.zip(summary.value).map(|((_, first), value)| value / first);
        let grown = first.map(|(size, _)| row.size / size);
        let efficiency = ratio.zip(grown).map(|(ratio, grown)| ratio / grown);
        let text = |value: Option<f64>| value.map_or("–".to_owned(), three_digits);
        let least = if summary.bound == Bound::AtLeast { "at least " } else { "" };
        let value = summary.value.map_or("none".to_owned(), |v| format!("{least}{}", grouped(v)));
        let verdict = if row.result.verdict.valid { "valid" } else { "invalid" };
        let limit = summary.limit.as_deref().unwrap_or("–").replace('|', "/");
        let _ = writeln!(
            out,
            "| {} | {value} | {} | {} | {verdict} | {limit} |",
            row.name,
            text(ratio),
            efficiency.map_or("–".to_owned(), |e| format!("{:.0} %", e * 100.0)),
        );
    }
    out
}
