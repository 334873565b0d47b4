//! The server, and the truth of a run from its log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use xtask::verb::Result;

use crate::network::{Network, SERVER_CORE};
use crate::process::{self, Running};
use crate::program;

/// Name of the model, which is that of the tokenizer too: some clients look for one by the other.
pub const MODEL: &str = "local/tok";
/// Head of the log's table.
const TITLES: &str = "number,arrival_ns,";

/// Times of every request: its first chunk so long after its arrival, the others a step apart.
#[derive(Clone, Copy)]
pub struct Law {
    pub first_ms: u64,
    pub step_ms: u64,
    pub chunks: u64,
}

impl Law {
    /// From arrival to the last chunk.
    pub fn response_ms(&self) -> u64 {
        self.first_ms + (self.chunks - 1) * self.step_ms
    }
}

/// A server that runs.
pub struct Server {
    running: Running,
    folder: TempDir,
    pub url: String,
}

impl Server {
    /// Starts one on its core.
    pub fn start(plimsoll: &Path, law: &Law) -> Result<Self> {
        let folder = program::temporary()?;
        let mut command = Network::Host.pinned(SERVER_CORE, &plimsoll.to_string_lossy());
        command.args(["serve", "llm", "--listen", "127.0.0.1:0", "--model", MODEL]);
        command.args(["--cores", &SERVER_CORE.to_string()]);
        command.args(["--first", &format!("{}ms", law.first_ms)]);
        command.args(["--step", &format!("{}ms", law.step_ms)]);
        command.arg("--log").arg(log_of(&folder));
        let (running, line) = process::first_line(command)?;
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.ok_or_else(|| format!("serve llm said: {line}"))?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { running, folder, url })
    }

    /// Stops it and reads its log.
    pub fn stop(mut self) -> Result<Truth> {
        let id = self.running.0.id().to_string();
        let signalled = Command::new("kill").args(["-INT", &id]).status();
        if !signalled.is_ok_and(|status| status.success()) {
            return Err("serve llm could not be stopped".to_owned());
        }
        self.running.0.wait().map_err(|e| format!("serve llm: {e}"))?;
        let path = log_of(&self.folder);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Truth::read(&text).ok_or_else(|| "the server's log has too few requests".to_owned())
    }
}

fn log_of(folder: &TempDir) -> PathBuf {
    folder.path().join("log.csv")
}

/// The truth of a run from the server's log. Times are of its middle half, so that neither start
/// nor end counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// Start and end of that half, of CLOCK_MONOTONIC.
    pub window_ns: [u64; 2],
    /// From arrival to the first chunk in the kernel's hands, of requests that arrived in it.
    pub first_p50_ms: f64,
    pub first_p99_ms: f64,
    /// Chunks sent in it.
    pub chunks: f64,
    /// Of requests that arrived in it.
    pub chunks_per_request: f64,
}

/// A line of the log, in nanoseconds.
#[derive(Clone, Copy)]
struct Row {
    arrival: u64,
    first_sent: u64,
    last_sent: u64,
    chunks: u64,
}

impl Truth {
    pub fn chunks_per_s(&self) -> f64 {
        let [from_ns, to_ns] = self.window_ns;
        self.chunks * 1e9 / (to_ns - from_ns) as f64
    }

    pub fn requests_per_s(&self) -> f64 {
        self.chunks_per_s() / self.chunks_per_request
    }

    fn read(text: &str) -> Option<Self> {
        let lines = text.lines().skip_while(|line| !line.starts_with(TITLES)).skip(1);
        let rows: Vec<Row> = lines.filter_map(row).collect();
        let window_ns = middle_half(&rows)?;
        let [from_ns, to_ns] = window_ns;
        let is_within = |row: &&Row| (from_ns..to_ns).contains(&row.arrival);
        let mut within: Vec<&Row> = rows.iter().filter(is_within).collect();
        if within.is_empty() {
            // Streams as long as the run, which all begin at its start.
            within = rows.iter().collect();
        }
        let mut times: Vec<u64> = within.iter().map(|row| row.first_sent - row.arrival).collect();
        times.sort_unstable();
        let chunks: u64 = within.iter().map(|row| row.chunks).sum();
        Some(Self {
            window_ns,
            first_p50_ms: percentile_ms(&times, 0.5)?,
            first_p99_ms: percentile_ms(&times, 0.99)?,
            chunks: rows.iter().map(|row| row.chunks_within(window_ns)).sum(),
            chunks_per_request: chunks as f64 / within.len() as f64,
        })
    }
}

impl Row {
    /// Its chunks are evenly spaced.
    fn chunks_within(&self, [from_ns, to_ns]: [u64; 2]) -> f64 {
        let (first, last) = (self.first_sent.max(from_ns), self.last_sent.min(to_ns));
        let whole = (self.last_sent - self.first_sent).max(1);
        self.chunks as f64 * last.saturating_sub(first) as f64 / whole as f64
    }
}

/// `number,arrival_ns,first_due_ns,first_sent_ns,last_due_ns,last_sent_ns,prompt_tokens,…,chunks,…`
/// of a request that got its first chunk.
fn row(line: &str) -> Option<Row> {
    let fields: Vec<u64> = line.split(',').map_while(|field| field.parse().ok()).collect();
    let [_, arrival, _, first_sent, _, last_sent, _, _, _, chunks] = fields.try_into().ok()?;
    (first_sent > 0).then_some(Row { arrival, first_sent, last_sent, chunks })
}

/// Of the span from the first arrivals to the last, without the first and last few: a client may
/// have sent a request long before.
fn middle_half(rows: &[Row]) -> Option<[u64; 2]> {
    let mut arrivals: Vec<u64> = rows.iter().map(|row| row.arrival).collect();
    arrivals.sort_unstable();
    let left_out = arrivals.len() / 20 + 1;
    let kept = arrivals.get(left_out..arrivals.len().checked_sub(left_out)?)?;
    let (first, last) = (*kept.first()?, *kept.last()?);
    let quarter = (last - first) / 4;
    (quarter > 0).then_some([first + quarter, last - quarter])
}

fn percentile_ms(sorted: &[u64], percentile: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * percentile).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map(|ns| *ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_the_times_and_chunks_of_the_middle_half() {
        let mut text = "# a law\nnumber,arrival_ns,first_due_ns,…\n".to_owned();
        for number in 0..100_u64 {
            let arrival = 1_000_000_000 * (number + 1);
            let (first, last) = (arrival + 80_000_000, arrival + 570_000_000);
            text += &format!("{number},{arrival},{first},{first},{last},{last},70,0,50,50,whole\n");
        }
        let truth = Truth::read(&text).unwrap();
        assert_eq!((truth.first_p50_ms, truth.first_p99_ms), (80.0, 80.0));
        assert_eq!(truth.chunks_per_request, 50.0);
        assert!((truth.requests_per_s() - 1.0).abs() < 0.05, "{}", truth.requests_per_s());
        let [from_ns, to_ns] = truth.window_ns;
        assert!((40..48).contains(&((to_ns - from_ns) / 1_000_000_000)));
    }

    #[test]
    fn requests_without_a_chunk_and_short_logs_give_nothing() {
        assert!(row("3,5,0,0,0,0,70,0,0,0,gone").is_none());
        assert_eq!(Truth::read("number,arrival_ns,\n1,5,6,6,7,7,70,0,50,50,whole\n"), None);
    }
}
