//! `bench memory`: does it grow at full speed, and what does an idle client cost.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use xtask::verb::Result;

use super::{Options, record};
use crate::network::{GENERATOR_CORE, Network};
use crate::nginx::Nginx;
use crate::{process, program};

/// Growth counts from here: by then every client has connected and every buffer has its size.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
/// Clients of the full-speed run.
const BUSY_CLIENTS: u32 = 64;
/// Clients of the idle run.
const IDLE_CLIENTS: u32 = 10_000;
/// All idle clients have connected after start delay plus one think time (see `idle`).
const IDLE_SECONDS: u64 = 25;

/// Resident memory of one run over time.
struct Growth {
    settled_bytes: u64,
    last_bytes: u64,
    highest_bytes: u64,
    /// Clients that took part to the end, as the run itself reports.
    clients: u64,
}

/// Measures both and prints one table.
pub fn memory(options: &Options) -> Result<()> {
    let program = program::plimsoll()?.to_string_lossy().into_owned();
    let server = Nginx::start(&Network::Host)?;
    let mut text = String::new();
    if options.wants("growth") {
        text.push_str(&growth(&program, &server, options.seconds())?);
    }
    if options.wants("idle") {
        text.push_str(&idle(&program, &server)?);
    }
    drop(server);
    record::record("memory", &text, options)
}

fn growth(program: &str, server: &Nginx, seconds: u64) -> Result<String> {
    let load = format!("--clients {BUSY_CLIENTS}");
    let growth = watch(program, server, &load, seconds)?;
    let grown = growth.last_bytes as f64 - growth.settled_bytes as f64;
    Ok(format!(
        "### Growth at full speed\n\n{BUSY_CLIENTS} clients without think time, 1 KB replies, \
         {seconds} s.\n\n\
         | resident after {} s | at the end | highest | growth |\n| --- | --- | --- | --- |\n\
         | {} | {} | {} | {:.2} MB |\n\n",
        SETTLED_AFTER.as_secs(),
        megabytes(growth.settled_bytes),
        megabytes(growth.last_bytes),
        megabytes(growth.highest_bytes),
        grown / 1e6
    ))
}

/// A client thinks before its first op, so each connects within start delay and think time.
fn idle(program: &str, server: &Nginx) -> Result<String> {
    let think = "--set load.think.mean=10s --set load.start_delay=5s";
    let many = watch(program, server, &format!("--clients {IDLE_CLIENTS} {think}"), IDLE_SECONDS)?;
    let one = watch(program, server, &format!("--clients 1 {think}"), IDLE_SECONDS)?;
    let per_client =
        many.highest_bytes.saturating_sub(one.highest_bytes) as f64 / f64::from(IDLE_CLIENTS - 1);
    Ok(format!(
        "### Idle clients\n\nEach connected, thinking 10 s between requests.\n\n\
         | clients | highest resident | per client |\n| --- | --- | --- |\n\
         | {} | {} | |\n| {} | {} | {:.2} KB |\n\n",
        one.clients,
        megabytes(one.highest_bytes),
        many.clients,
        megabytes(many.highest_bytes),
        per_client / 1e3
    ))
}

fn watch(program: &str, server: &Nginx, load: &str, seconds: u64) -> Result<Growth> {
    let folder = program::temporary()?;
    let mut command = command(program, server, (load, seconds), &folder.path().join("run"));
    let mut samples: Vec<(Duration, u64)> = Vec::new();
    let settled_after = SETTLED_AFTER.min(Duration::from_secs(seconds) / 2);
    // The end of the run reads the bundle back; what that takes is not growth of the generator.
    let load_ends = Duration::from_secs(seconds);
    let limit = Duration::from_secs(seconds + 120);
    let finished = process::run(&mut command, limit, |id, since_start| {
        let bytes = process::memory_bytes(id, "VmRSS:");
        if since_start <= load_ends
            && let Some(bytes) = bytes
        {
            samples.push((since_start, bytes));
        }
    })?;
    if !matches!(finished.code, Some(0 | 1)) {
        return Err(finished.failure());
    }
    let result: Value = serde_json::from_str(&finished.output)
        .map_err(|e| format!("plimsoll printed no result: {e}"))?;
    let clients = result["points"][0]["clients_participating"].as_u64().unwrap_or_default();
    let settled = samples.iter().find(|(since_start, _)| *since_start >= settled_after);
    let highest = samples.iter().map(|(_, bytes)| *bytes).max();
    match (settled, samples.last(), highest) {
        (Some((_, settled_bytes)), Some((_, last_bytes)), Some(highest_bytes)) => Ok(Growth {
            settled_bytes: *settled_bytes,
            last_bytes: *last_bytes,
            highest_bytes,
            clients,
        }),
        _ => Err("plimsoll ended before its memory could be read".to_owned()),
    }
}

fn command(program: &str, server: &Nginx, (load, seconds): (&str, u64), bundle: &Path) -> Command {
    let mut command = Network::Host.pinned(GENERATOR_CORE, program);
    let arguments = format!(
        "run web-url {} {load} --for {seconds}s --workers 1 --progress none --json \
         --set profiles.standard.warm_up=1s --out",
        server.url("/1k")
    );
    command.args(arguments.split_whitespace()).arg(bundle);
    command
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
