//! `cargo lab fleet scale`: what it takes to start many agents on this machine, and what one sends.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use xtask::verb::Result;

use super::meter::{METER, Sums, read};
use super::target::Target;
use super::{Options, PAGE};
use crate::page::Table;
use crate::process::{self, cpu_of, memory_bytes};
use crate::program;

const TABLE: Table<'_> = Table { page: PAGE, name: "fleet scale" };
const NUMBERS: [usize; 3] = [16, 64, 256];
const RUN_LIMIT: Duration = Duration::from_secs(240);
/// Ops per second and seconds of window of the load point whose stream is measured.
const METERED: (u32, u32) = (1_000, 30);

/// Starts the agents and prints the table.
pub fn scale(program: &Path, options: &Options) -> Result<()> {
    if options.write {
        TABLE.check()?;
    }
    let folder = program::temporary()?;
    let target = Target::start([127, 0, 0, 1].into())?;
    let mut text = String::from(
        "| agents | seconds until all were there | its controller's CPU s | its memory MB | \
         in a run: its CPU s | memory MB | clock bound µs, median (largest) | clocks outside their \
         bounds | starts apart µs, as the clocks tell | in truth |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for agents in NUMBERS {
        let start = start(program, agents)?;
        let row =
            format!("| {agents} | {start} | {} |\n", run(program, &target, agents, folder.path())?);
        eprint!("{row}");
        text.push_str(&row);
    }
    text.push_str(&format!("\n{}", stream(program, &target, folder.path())?));
    println!("{text}");
    if options.write {
        TABLE.write(&text)?;
    }
    Ok(())
}

fn exec(agents: usize) -> Vec<String> {
    vec!["exec:env".to_owned(); agents]
}

/// `plimsoll agents check`: time, CPU time and memory of the controller.
fn start(program: &Path, agents: usize) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["agents", "check", "--json", "--progress", "none"]).args(exec(agents));
    let (began, mut cpu) = (process::now(), Duration::ZERO);
    let finished = process::run(&mut command, RUN_LIMIT, |id, _| cpu = cpu_of(id).unwrap_or(cpu))?;
    let seconds = began.elapsed().as_secs_f64();
    let checked: Value = serde_json::from_str(&finished.output).unwrap_or_default();
    let there = checked["agents"].as_array().map_or(0, Vec::len);
    if finished.code != Some(0) || there != agents {
        return Err(format!("{there} of {agents} agents: {}", finished.failure()));
    }
    let memory = finished.peak_rss_bytes as f64 / 1e6;
    Ok(format!("{seconds:.1} | {:.2} | {memory:.0}", cpu.as_secs_f64()))
}

/// A run with an op a second from each agent: next to no load.
fn run(program: &Path, target: &Target, agents: usize, folder: &Path) -> Result<String> {
    let bundle = folder.join(format!("run-{agents}"));
    let mut command = Command::new(program);
    command.args(["run", "web-url", &format!("http://{}/", target.address), "--workers", "1"]);
    command.args(exec(agents).iter().flat_map(|at| ["--agents", at]));
    command.args(["--points", &agents.to_string(), "--profile", "quick"]);
    command.args(["--set", "load.mode=\"open\"", "--set", &format!("load.clients={agents}")]);
    command.args(["--progress", "none", "--out"]).arg(&bundle);
    let (mut cpu, mut memory) = (Duration::ZERO, 0);
    let finished = process::run(&mut command, RUN_LIMIT, |id, _| {
        cpu = cpu_of(id).unwrap_or(cpu);
        memory = memory_bytes(id, "VmHWM:").unwrap_or(memory);
    })?;
    let result = program::result(&bundle, &finished)?;
    let clocks = Clocks::from_point(&result["points"][0]).ok_or_else(|| finished.failure())?;
    Ok(format!("{:.2} | {:.0} | {}", cpu.as_secs_f64(), memory as f64 / 1e6, clocks.cells()))
}

/// Agents' clocks of a load point. All are this machine's, so that each offset is in truth zero.
struct Clocks {
    /// In ascending order.
    bounds_ns: Vec<i64>,
    outside: usize,
    skew_ns: i64,
    true_skew_ns: i64,
}

impl Clocks {
    fn from_point(point: &Value) -> Option<Self> {
        let agents = point["agents"].as_array()?;
        let all = |path: &str| -> Option<Vec<i64>> {
            agents.iter().map(|agent| agent.pointer(path)?.as_i64()).collect()
        };
        let (offsets, mut bounds_ns) = (all("/clock/offset_ns")?, all("/clock/bound_ns")?);
        let pairs = offsets.iter().zip(&bounds_ns);
        let outside = pairs.filter(|(offset, bound)| offset.abs() > **bound).count();
        bounds_ns.sort_unstable();
        let skew_ns = all("/start_skew_ns")?.into_iter().max()?;
        let true_skew_ns = offsets.iter().max()? - offsets.iter().min()?;
        Some(Self { bounds_ns, outside, skew_ns, true_skew_ns })
    }

    fn cells(&self) -> String {
        let us = |ns: i64| ns as f64 / 1e3;
        let Self { bounds_ns, outside, skew_ns, true_skew_ns } = self;
        let (middle, largest) = (bounds_ns[bounds_ns.len() / 2], bounds_ns[bounds_ns.len() - 1]);
        format!(
            "{:.0} ({:.0}) | {outside} | {:.0} | {:.0}",
            us(middle),
            us(largest),
            us(*skew_ns),
            us(*true_skew_ns)
        )
    }
}

/// The messages between an agent and its controller in a run of one load point.
fn stream(program: &Path, target: &Target, folder: &Path) -> Result<String> {
    let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let (bundle, sums) = (folder.join("metered"), folder.join("sums.json"));
    let (rate, seconds) = METERED;
    let mut command = Command::new(program);
    command.args(["run", "web-url", &format!("http://{}/", target.address), "--workers", "1"]);
    command.arg("--agents");
    command.arg(format!("exec:{} {METER} {}", own.display(), sums.display()));
    command.args(["--points", &rate.to_string(), "--set", "load.mode=\"open\""]);
    command.args(["--set", "profiles.standard.warm_up=\"1s\""]);
    command.args(["--set", &format!("profiles.standard.measure=\"{seconds}s\"")]);
    command.args(["--progress", "none", "--out"]).arg(&bundle);
    let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
    program::result(&bundle, &finished)?;
    let stored = fs::read_dir(bundle.join("intervals")).into_iter().flatten().flatten();
    let stored: u64 = stored.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    Ok(stream_table(&read(&sums)?, stored))
}

fn stream_table(sums: &Sums, stored_bytes: u64) -> String {
    let (rate, seconds) = METERED;
    let mut text = format!(
        "One agent, one load point of {seconds} s at {rate} ops/s; its interval log has \
         {stored_bytes} bytes.\n\n| message | frames | bytes |\n| --- | --- | --- |\n"
    );
    for (kind, (frames, bytes)) in sums {
        text.push_str(&format!("| {kind} | {frames} | {bytes} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_judged_by_what_they_share() {
        let point = serde_json::json!({"agents": [
            {"start_skew_ns": 0, "clock": {"offset_ns": -4_000, "bound_ns": 5_000}},
            {"start_skew_ns": 2_000, "clock": {"offset_ns": 9_000, "bound_ns": 7_000}},
            {"start_skew_ns": 1_000, "clock": {"offset_ns": 0, "bound_ns": 6_000}},
        ]});
        assert_eq!(Clocks::from_point(&point).unwrap().cells(), "6 (7) | 1 | 2 | 13");
        assert!(Clocks::from_point(&serde_json::json!({"agents": []})).is_none());
    }
}
