//! `plimsoll demo`: a short tour on the built-in servers.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::bundle::write_durably;
use plimsoll_model::event::{RunOptions, ServerLimits};
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::{Ladder, LoadSpec, Override, ProfileName};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::Nanos;
use plimsoll_run::coordinator::{RunRequest, cores_of_program, run};

use crate::exit::{Exit, Failure};
use crate::flags::Output;
use crate::interrupts;
use crate::suite_source;
use crate::terminal::{self, Live};
use crate::verbs::run::{default_out, show_end};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the bundles go [default: runs/demo-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// A suite of the tour.
struct Stop {
    suite: &'static str,
    /// Additional work of its server on one core: it ends each load line well below what the
    /// generator can send. Of a language model, the time of a step.
    work: Nanos,
    /// Changed settings, so that it takes no longer than the others.
    changes: &'static [&'static str],
}

const TOUR: [Stop; 5] = [
    Stop { suite: "web-static", work: Nanos::from_micros(200), changes: &[] },
    Stop { suite: "nfs-v3", work: Nanos::from_micros(200), changes: &[] },
    Stop { suite: "disk-mix", work: Nanos::from_micros(50), changes: &[] },
    Stop { suite: "transactions", work: Nanos::from_micros(50), changes: &[] },
    // By its law the knee is at eight clients.
    Stop {
        suite: "llm-chat",
        work: Nanos::from_millis(4),
        changes: &[
            "workload.input_tokens=32",
            "workload.output_tokens=16",
            "ladder.points=[1, 2, 4, 8, 16, 32]",
        ],
    },
];
/// Load points of a ladder of rates.
const STEPS: u32 = 10;
/// The page with all of them.
const OVERVIEW_FILE: &str = "index.html";

/// Runs each suite on its built-in server, prints a line for each, and shows the page's path.
pub(crate) fn perform(args: &DemoArgs) -> Result<Exit, Failure> {
    let out = args.out.clone().unwrap_or_else(|| default_out("demo"));
    let signals = interrupts::listen()?;
    terminal::note(
        "Five servers of our own on one core each: four spend 50 to 200 us on a request, and the \
         last writes text in steps of 4 ms. Where does each end?",
    );
    let mut worst = Exit::Valid;
    let mut results = Vec::new();
    for stop in &TOUR {
        let mut live = Live::new(args.output.progress).passing_only();
        let end = run(&request(stop, &out)?, &signals, &mut live)?;
        drop(live);
        worst = worst.max(Exit::from(&end));
        if args.output.json || end.is_interrupted {
            show_end(&end, args.output);
        } else {
            terminal::print(&terminal::story(&end.result, terminal::stdout_style()));
        }
        results.push((stop.suite.to_owned(), end.result));
        if end.is_interrupted {
            break;
        }
    }
    write_overview(&out, &results)?;
    Ok(worst)
}

fn request(stop: &Stop, out: &Path) -> Result<RunRequest, Failure> {
    let work = stop.work;
    let change = |text: &&str| Override::parse(text).expect("each is a path and a value");
    let changes: Vec<Override> = stop.changes.iter().map(change).collect();
    let mut suite = suite_source::find(stop.suite, &changes[..])?;
    if matches!(suite.load, LoadSpec::Open { .. }) {
        // The rate of a core that only did this work. It has other work too, so the last load point
        // is just too high.
        suite.ladder = Ladder::Peak { peak: 1.0 / work.as_secs_f64(), steps: STEPS };
    }
    let cores = (cores_of_program()?.len() > 1).then_some(1);
    let limits = ServerLimits { work: Some(work), cores, ..ServerLimits::default() };
    Ok(RunRequest {
        targets: vec![TargetSpec::Builtin],
        out: out.join(stop.suite),
        options: RunOptions { server_limits: Some(limits), ..RunOptions::default() },
        ..RunRequest::plain(suite, ProfileName::Demo)
    })
}

fn write_overview(out: &Path, results: &[(String, RunResult)]) -> Result<(), Failure> {
    let runs: Vec<_> = results.iter().map(|(name, result)| (name.clone(), result)).collect();
    let page = out.join(OVERVIEW_FILE);
    let text = plimsoll_report::overview_html("Five servers, five load lines", &runs)?;
    write_durably(&page, text.as_bytes())?;
    terminal::note(&format!("Open {}", page.display()));
    Ok(())
}
