//! One run, and the truth of it; the process that disturbs it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_app::host::builtin;
use plimsoll_app::script::shared_seed;
use plimsoll_engine::pacer::Arrivals;
use plimsoll_model::bundle::BundleReader;
use plimsoll_model::event::PointRecord;
use plimsoll_model::suite::InterArrival;
use plimsoll_model::units::OpsPerSec;
use plimsoll_servers::log::{Logged, Scheduled, truths_ns};
use serde_json::Value;
use xtask::verb::Result;
use xtask::workspace;

use super::outcome::{Outcome, ReportedInterval, Truths};
use super::{DISTURBER, RunPlan};
use crate::network::{GENERATOR_CORE, SERVER_CORE};
use crate::process::{Running, now};
use crate::program;

/// The load of `plimsoll calibrate`: one Poisson schedule over enough connections.
const SUITE: &str = "crates/plimsoll-app/src/host/calibration.toml";
/// Four exponential servers, and what they can do.
const SERVICE: &str = "exp:1ms";
const SERVERS: u32 = 4;
const CAPACITY_OPS_PER_S: f64 = 4_000.0;
/// Exit codes of a run that has a result: valid, and invalid.
const WITH_RESULT: [i32; 2] = [0, 1];
/// The wall clock may move by this much against the monotonic one, or the run proves nothing.
const CLOCK_STEP_NS_MAX: u64 = 10_000;

/// Makes one run, with a server of its own.
pub fn run(program: &Path, plan: &RunPlan, options: &[String]) -> Result<Outcome> {
    let folder = program::temporary()?;
    let log = folder.path().join("server.csv");
    let spec = format!("service={SERVICE},servers={SERVERS},seed={}", plan.seed);
    let mut server = builtin(program.to_owned(), &[SERVER_CORE]);
    server.arguments =
        vec!["--calibrated".into(), spec.into(), "--log".into(), log.clone().into_os_string()];
    let server = server.start().map_err(|e| e.to_string())?;
    let before_ns = wall_ahead_ns();
    let disturber = plan.disturbed.then(|| disturber(GENERATOR_CORE)).transpose()?;
    let bundle = folder.path().join("run");
    client(program, plan, (&server.url(), &bundle), options)?;
    drop(disturber);
    let after_ns = wall_ahead_ns();
    server.stop().map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let logged = Logged::parse(&text).ok_or("the server's log ends in the middle")?;
    let reader = BundleReader::open(&bundle).map_err(|e| e.to_string())?;
    let record = reader.journal().points().next().ok_or("the run has no load point")?;
    let ahead_ns = i64::midpoint(before_ns, after_ns);
    let truths = match before_ns.abs_diff(after_ns) {
        0..=CLOCK_STEP_NS_MAX => truths(plan, &logged, record, ahead_ns),
        _ => None,
    };
    let result = bundle.join("result.json");
    let result = std::fs::read_to_string(&result).map_err(|e| format!("result.json: {e}"))?;
    let result: Value = serde_json::from_str(&result).map_err(|e| format!("result.json: {e}"))?;
    Ok(outcome(plan, &result, truths.unwrap_or_default()))
}

fn client(
    program: &Path,
    plan: &RunPlan,
    (url, bundle): (&str, &Path),
    options: &[String],
) -> Result<()> {
    let suite = workspace::root().join(SUITE);
    let rate = plan.utilisation * CAPACITY_OPS_PER_S;
    let mut command = Command::new("taskset");
    command.args(["-c", &GENERATOR_CORE.to_string()]).arg(program).arg("run").arg(suite).arg(url);
    command.args(["--profile", "standard", "--progress", "none", "--workers", "1"]);
    command.args(["--points", &rate.to_string(), "--seed", &plan.seed.to_string()]);
    for (key, value) in [
        ("warm_up", "1s".to_owned()),
        ("measure", format!("{}s", plan.window_s)),
        ("drain", "5s".to_owned()),
    ] {
        command.args(["--set", &format!("profiles.standard.{key}={value}")]);
    }
    command.arg("--out").arg(bundle).args(options);
    let ended = command.output().map_err(|e| format!("taskset: {e}"))?;
    match ended.status.code() {
        Some(code) if WITH_RESULT.contains(&code) => Ok(()),
        _ => Err(format!(
            "run {} ended with {}: {}",
            plan.number,
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        )),
    }
}

/// Times from due to the reply handed to the kernel, of the ops that were due in the window.
fn truths(
    plan: &RunPlan,
    logged: &Logged,
    record: &PointRecord,
    wall_ahead_ns: i64,
) -> Option<Truths> {
    let rate = OpsPerSec::new(plan.utilisation * CAPACITY_OPS_PER_S)?;
    let (warm_up_ns, end_ns) = (record.warm_up_ns.0, record.warm_up_ns.0 + record.measured_ns.0);
    let origin_ns = record.started_unix_ns.saturating_add_signed(-wall_ahead_ns);
    let arrivals = Arrivals::new(rate, InterArrival::Exponential, plan.seed, 0, 1);
    let schedule: Vec<Scheduled> = arrivals
        .take_while(|(_, due)| due.0 < end_ns)
        .filter(|(_, due)| due.0 >= warm_up_ns)
        .map(|(index, due)| Scheduled {
            due_ns: origin_ns + due.0,
            key: Some(shared_seed(plan.seed, index)),
        })
        .collect();
    Some(Truths::from_times(&truths_ns(&logged.rows, &schedule)?))
}

fn outcome(plan: &RunPlan, result: &Value, truths: Truths) -> Outcome {
    let reported = |name: &str| {
        let figure = |path: String| result.pointer(&path).and_then(Value::as_f64);
        let interval = |end: u32| figure(format!("/points/0/response_interval_ns/{name}/{end}"));
        let part = |part: &str| figure(format!("/points/0/uncertainty/response_{name}_ns/{part}"));
        Some(ReportedInterval {
            low_ns: interval(0)?,
            high_ns: interval(1),
            value_ns: figure(format!("/points/0/response_ns/{name}"))?,
            generator_ns: part("generator"),
        })
    };
    Outcome {
        number: plan.number,
        seed: plan.seed,
        window_s: plan.window_s,
        utilisation: plan.utilisation,
        disturbed: plan.disturbed,
        valid: result.pointer("/verdict/valid").and_then(Value::as_bool).unwrap_or_default(),
        intervals: ["p50", "p95", "p99"].map(reported),
        truths,
    }
}

/// How far the wall clock is ahead of the monotonic one; the reading that was least disturbed.
fn wall_ahead_ns() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| {
        let at = clock_gettime(clock);
        at.tv_sec * 1_000_000_000 + at.tv_nsec
    };
    // A preemption between the two readings makes it look less far ahead.
    let ahead = |_| {
        let wall = read(ClockId::Realtime);
        wall - read(ClockId::Monotonic)
    };
    (0..9).map(ahead).max().unwrap_or_default()
}

/// Of each burst, and of the pause after it: a fifth of a core.
const BURST: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Limits how long a core is taken, even if the process that requested it is gone.
const LIFE: Duration = Duration::from_secs(120);

/// Takes its share of whatever core it is on, and ends.
pub fn disturb() {
    let start = now();
    while start.elapsed() < LIFE {
        let burst = now();
        while burst.elapsed() < BURST {
            std::hint::spin_loop();
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts one on a core; it ends when dropped.
pub fn disturber(core: u32) -> Result<Running> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program).arg(DISTURBER);
    let child = command.stdin(Stdio::null()).spawn();
    Ok(Running(child.map_err(|e| format!("taskset: {e}; it is part of util-linux"))?))
}
