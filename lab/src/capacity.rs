//! `cargo lab capacity`: does a claim of `plimsoll capacity` hold, and is it not too low? Five runs
//! at the claim and five at 1.1 times the claim, by the figures of the program itself; on an nginx
//! under a CPU quota, and on a queue of known law, for which theory gives the right claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use plimsoll_app::host::builtin;
use serde_json::Value;
use xtask::verb::Result;
use xtask::workspace;

use crate::confinement::Group;
use crate::network::{Network, SERVER_CORE};
use crate::nginx::Nginx;
use crate::{process, program};

/// Of one second of a core.
const QUOTA_US: u32 = 30_000;
/// p99 of an M/D/1 queue crosses twenty service times at this load, of 500 ops/s.
const THEORY_OPS_PER_S: f64 = 442.8;
const THEORY_RATIO: f64 = 0.02;
const RUNS: usize = 5;
const ABOVE_RATIO: f64 = 1.1;
/// Of five runs above the claim, at least this many must exceed the limit.
const FAILED_MIN: usize = 4;
const SUITE: &str = "crates/plimsoll-app/src/host/calibration.toml";
const RUN_LIMIT: Duration = Duration::from_secs(1_800);
/// Windows of the queue: a percentile near the edge needs its ops.
const LONG: [&str; 6] = [
    "--profile",
    "standard",
    "--set",
    "profiles.standard.warm_up=2s",
    "--set",
    "profiles.standard.measure=60s",
];
/// Windows of nginx; a run lasts as long as a re-run of the search.
const QUICK: [&str; 2] = ["--profile", "quick"];
const QUICK_RUN: [&str; 4] = ["--profile", "quick", "--set", "profiles.quick.measure=6s"];

/// A server and its arguments.
struct Case<'a> {
    suite: &'a str,
    target: &'a str,
    limit_ns: f64,
    within: &'a str,
    search: &'a [&'a str],
    run: &'a [&'a str],
}

/// Options of `cargo lab capacity`.
#[derive(Parser)]
pub struct Options {
    /// Measure this server alone.
    #[arg(long, value_parser = ["nginx", "queue"])]
    only: Option<String>,
    /// Claims on the queue.
    #[arg(long, default_value_t = RUNS)]
    times: usize,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Measures both servers, or the requested one.
pub fn capacity(options: Options) -> Result<()> {
    let Options { only, times, program } = options;
    let program = program.map_or_else(program::plimsoll, Ok)?;
    let folder = program::temporary_in(&workspace::target())?;
    let scratch = folder.path();
    let mut sound = true;
    if only.as_ref().is_none_or(|only| only == "nginx") {
        sound &= nginx(&program, scratch)?;
    }
    if only.as_ref().is_none_or(|only| only == "queue") {
        for number in 1..=times {
            println!("queue {number} of {times}");
            sound &= queue(&program, scratch)?;
        }
    }
    if sound { Ok(()) } else { Err("a claim did not hold, or was too low".to_owned()) }
}

fn nginx(program: &Path, scratch: &Path) -> Result<bool> {
    let server = Nginx::start(&Network::Host)?;
    let group = Group::new("cpu", &[("cpu.cfs_quota_us", QUOTA_US.to_string())])?;
    for id in server.ids() {
        group.add(id)?;
    }
    let url = server.url("/1k");
    let case = Case {
        suite: "web-url",
        target: &url,
        limit_ns: 400e6,
        within: "p99<400ms",
        search: &QUICK,
        run: &QUICK_RUN,
    };
    let claim = search(program, scratch, &case)?;
    let sound = around(program, scratch, &case, claim)?;
    drop(server);
    drop(group);
    Ok(sound)
}

fn queue(program: &Path, scratch: &Path) -> Result<bool> {
    let mut server = builtin(program.to_owned(), &[SERVER_CORE]);
    server.arguments = ["--calibrated", "service=const:2ms,servers=1"].map(Into::into).to_vec();
    let server = server.start().map_err(|e| e.to_string())?;
    let target = server.url();
    let suite = workspace::root().join(SUITE);
    let case = Case {
        suite: &suite.to_string_lossy(),
        target: &target,
        limit_ns: 40e6,
        within: "p99<40ms",
        search: &LONG,
        run: &LONG,
    };
    let claim = search(program, scratch, &case)?;
    let off = claim / THEORY_OPS_PER_S - 1.0;
    println!("theory {THEORY_OPS_PER_S} ops/s: the claim is {:.1} % off", off * 100.0);
    drop(server);
    Ok(off.abs() < THEORY_RATIO)
}

/// The claim; prints how it was found.
fn search(program: &Path, scratch: &Path, case: &Case<'_>) -> Result<f64> {
    let begun = process::now();
    let arguments = ["capacity", case.suite, case.target, "--within", case.within];
    let result = measured(program, scratch, &[&arguments, case.search].concat())?;
    let summary = &result["summary"];
    let claim = &summary["capacity"];
    println!(
        "{} of {} re-runs within {}, {} s: {}",
        claim["passed"],
        claim["tries"],
        case.within,
        begun.elapsed().as_secs(),
        summary["capacity_search"]["how"].as_str().unwrap_or_default(),
    );
    claim["value"].as_f64().ok_or_else(|| "no load within the limits".to_owned())
}

/// Five runs at the claim and five above it.
fn around(program: &Path, scratch: &Path, case: &Case<'_>, claim: f64) -> Result<bool> {
    let at = passed(program, scratch, case, claim)?;
    let above = passed(program, scratch, case, (claim * ABOVE_RATIO).floor())?;
    println!("at the claim {at} of {RUNS} within the limit; at 1.1 times {above} of {RUNS}");
    Ok(at == RUNS && RUNS - above >= FAILED_MIN)
}

fn passed(program: &Path, scratch: &Path, case: &Case<'_>, rate: f64) -> Result<usize> {
    let rate = rate.to_string();
    let mut passed = 0;
    for seed in 1..=RUNS {
        let seed = seed.to_string();
        let arguments = ["run", case.suite, case.target, "--rate", &rate, "--seed", &seed];
        let result = measured(program, scratch, &[&arguments, case.run].concat())?;
        let point = &result["points"][0];
        // A load that was not sustained has no figure.
        let sustained = point["not_counted"].is_null();
        let p99 = point["response_ns"]["p99"].as_f64();
        let within = sustained && p99.is_some_and(|p99| p99 < case.limit_ns);
        println!(
            "{rate} ops/s: {} (p99 {:.1} ms)",
            if within { "within" } else { "beyond" },
            p99.unwrap_or_default() / 1e6
        );
        passed += usize::from(within);
    }
    Ok(passed)
}

/// `result.json` of a run.
fn measured(program: &Path, scratch: &Path, arguments: &[&str]) -> Result<Value> {
    let bundle = scratch.join("run");
    let _ = fs::remove_dir_all(&bundle);
    let mut command = Command::new(program);
    command.args(arguments).args(["--progress", "none", "--out"]).arg(&bundle);
    let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
    program::result(&bundle, &finished)
}
