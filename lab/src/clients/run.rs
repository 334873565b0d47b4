//! Runs: a client against a server of its own, alternating with the others.

use std::fs;
use std::path::Path;
use std::time::Duration;

use xtask::verb::Result;

use super::client::{Client, InstalledClient, Job};
use super::report::Report;
use super::server::{Law, Server, Truth};
use super::tree::Watched;
use super::{Options, Section};
use crate::bench::median;
use crate::{process, program};

/// A run that takes longer hangs: the slowest client needs a minute to start on one core.
const SECONDS_MAX: u64 = 300;

/// All runs of a client at one number of streams.
pub struct Row {
    pub client: Client,
    pub streams: u32,
    pub runs: Vec<Run>,
    /// Why other rounds gave none.
    pub failures: Vec<String>,
}

/// What one run gave.
pub struct Run {
    pub report: Report,
    pub truth: Truth,
    /// CPU time of all processes of the client, in the truth's window.
    pub cpu: Option<Duration>,
    pub peak_bytes: u64,
}

impl Run {
    pub fn cpu_us_per_chunk(&self) -> Option<f64> {
        Some(self.cpu?.as_secs_f64() * 1e6 / self.truth.chunks)
    }

    /// In cores.
    pub fn cores_used(&self) -> Option<f64> {
        let [from_ns, to_ns] = self.truth.window_ns;
        Some(self.cpu?.as_secs_f64() * 1e9 / (to_ns - from_ns) as f64)
    }
}

impl Row {
    /// A figure's median over the runs that have it.
    pub fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(&self.runs.iter().filter_map(of).collect::<Vec<f64>>())
    }
}

/// Measures a section: each round takes every client at every load once.
pub fn rows(
    section: &Section,
    installed: &[InstalledClient],
    plimsoll: &Path,
    options: &Options,
) -> Result<Vec<Row>> {
    let is_meant = |one: &&InstalledClient| {
        section.clients.is_empty() || section.clients.contains(&one.client)
    };
    let meant: Vec<&InstalledClient> = installed.iter().filter(is_meant).collect();
    let mut rows = Vec::new();
    for streams in section.streams.iter().copied() {
        rows.extend(meant.iter().map(|one| Row {
            client: one.client,
            streams,
            runs: Vec::new(),
            failures: Vec::new(),
        }));
    }
    for round in 1..=options.rounds {
        for row in &mut rows {
            let Some(one) = meant.iter().find(|one| one.client == row.client) else { continue };
            match run(section, one, row.streams, (plimsoll, options.seconds)) {
                Ok(run) => {
                    print_run(row, &run);
                    row.runs.push(run);
                }
                Err(message) => {
                    eprintln!(
                        "FAILED: {} with {} streams: {message}",
                        one.client.name(),
                        row.streams
                    );
                    row.failures.push(message);
                }
            }
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    Ok(rows)
}

fn run(
    section: &Section,
    installed: &InstalledClient,
    streams: u32,
    (plimsoll, seconds): (&Path, u64),
) -> Result<Run> {
    let server = Server::start(plimsoll, &section.law)?;
    let folder = program::temporary()?;
    let job = Job {
        url: &server.url,
        law: section.law,
        streams,
        seconds: seconds.max(enough_s(&section.law, streams)),
        cores: section.cores,
        folder: folder.path(),
    };
    let mut command = installed.command(&job)?;
    let mut watched = Watched::default();
    let limit = Duration::from_secs(SECONDS_MAX);
    let finished = process::run(&mut command, limit, |id, _| watched.look(id))?;
    let truth = server.stop();
    let report = installed.client.read(&finished, folder.path());
    if report.is_err() {
        keep(installed.client, &finished.errors, &finished.output);
    }
    let (report, truth) = (report?, truth?);
    let cpu = watched.cpu_between(truth.window_ns);
    Ok(Run { report, truth, cpu, peak_bytes: watched.peak_bytes() })
}

/// Seconds for a median, and for a 99th percentile with ten requests beyond it if that takes at
/// most half a minute. Long enough for a stream to end and the next to begin.
fn enough_s(law: &Law, streams: u32) -> u64 {
    let seconds =
        |requests: u64| (requests * law.response_ms()).div_ceil(u64::from(streams) * 1_000);
    let a_response = (law.response_ms() * 5 / 4).div_ceil(1_000);
    match seconds(1_050) {
        for_p99 if for_p99 <= 30 => for_p99.max(a_response),
        _ => seconds(24),
    }
}

/// Keeps the output of a client whose report could not be read.
fn keep(client: Client, errors: &str, output: &str) {
    let path = std::env::temp_dir().join(format!("plimsoll-lab-{}.txt", client.folder()));
    if fs::write(&path, format!("{errors}\n{output}")).is_ok() {
        eprintln!("its output: {}", path.display());
    }
}

fn print_run(row: &Row, run: &Run) {
    let Run { report, truth, .. } = run;
    eprintln!(
        "{:16} {:5} streams: first output {:.1} / {:?} ms, truth {:.2} / {:.2} ms; {:.0} chunks/s, {} us \
         CPU a chunk; {:?}",
        row.client.name(),
        row.streams,
        report.first_p50_ms,
        report.first_p99_ms,
        truth.first_p50_ms,
        truth.first_p99_ms,
        truth.chunks_per_s(),
        run.cpu_us_per_chunk().map_or_else(|| "?".to_owned(), |us| format!("{us:.1}")),
        report.limit,
    );
}
