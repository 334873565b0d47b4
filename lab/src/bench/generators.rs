//! The generators that are compared: how each is started and how its output is read.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use xtask::command;

use super::ours::{Reading, read_bare, read_plimsoll};
use crate::network::{GENERATOR_CORE, Network, SERVER_CORE};
use crate::nginx::Nginx;

/// One program in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// This project on the generator's core alone, with its pacing.
    Plimsoll(&'static str),
    /// This project with all threads but the worker on the server's core: as a user has it, with
    /// pacing `auto`.
    PlimsollFree,
    Wrk,
    /// wrk2: wrk with a schedule. Its command is also called `wrk`, so `WRK2` is its path.
    Wrk2,
    H2load,
    Ab,
    Oha,
    /// The same two over HTTP/2.
    H2loadHttp2,
    OhaHttp2,
    /// Our yardstick: the exchange and nothing else.
    Bare(&'static str),
}

/// What one run is to do.
#[derive(Clone, Copy)]
pub struct Job {
    pub path: &'static str,
    pub connections: u32,
    pub seconds: u64,
    /// An open load of this many requests per second; `None` keeps every connection busy.
    pub rate: Option<u32>,
    /// Over HTTP/2, with this many requests in flight on each connection.
    pub streams: Option<u32>,
}

impl Generator {
    /// Its name in the tables.
    pub fn name(self) -> String {
        match self {
            Self::Plimsoll(pacing) => format!("**plimsoll** `{pacing}`"),
            Self::PlimsollFree => "**plimsoll**".to_owned(),
            Self::Wrk => "wrk".to_owned(),
            Self::Wrk2 => "wrk2".to_owned(),
            Self::H2load => "h2load `--h1`".to_owned(),
            Self::Ab => "ab `-k`".to_owned(),
            Self::Oha => "oha".to_owned(),
            Self::H2loadHttp2 => "h2load".to_owned(),
            Self::OhaHttp2 => "oha `--http2`".to_owned(),
            Self::Bare(mode) => format!("bare client, {mode}"),
        }
    }

    /// Path of the program, if it is there.
    pub fn program(self, built: &Path) -> Option<String> {
        let path = match self {
            Self::Plimsoll(_) | Self::PlimsollFree => Some(built.join("plimsoll")),
            Self::Bare(_) => Some(built.join("bare")),
            Self::Wrk => command::find("wrk"),
            Self::Wrk2 => std::env::var("WRK2").ok().and_then(|path| command::find(&path)),
            Self::H2load | Self::H2loadHttp2 => command::find("h2load"),
            Self::Ab => command::find("ab"),
            Self::Oha | Self::OhaHttp2 => command::find("oha"),
        };
        path.filter(|p| p.is_file()).map(|p| p.to_string_lossy().into_owned())
    }

    /// The command for a job, pinned to the generator's core. `bundle` is a path that is free.
    pub fn command(
        self,
        program: &str,
        job: &Job,
        server: &Nginx,
        (network, bundle): (&Network, &Path),
    ) -> Command {
        let mut command = match self {
            Self::PlimsollFree => network.pinned_to(&[GENERATOR_CORE, SERVER_CORE], program),
            _ => network.pinned(GENERATOR_CORE, program),
        };
        command.args(self.arguments(job, server));
        if self.is_ours() {
            command.arg("--out").arg(bundle);
        }
        command
    }

    /// This project.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Plimsoll(_) | Self::PlimsollFree)
    }

    fn arguments(self, job: &Job, server: &Nginx) -> Vec<String> {
        let Job { connections, seconds, .. } = *job;
        let url = match job.streams {
            None => server.url(job.path),
            Some(_) => server.http2_url(job.path),
        };
        let streams = job.streams.unwrap_or(1);
        let rate = job.rate.unwrap_or_default();
        let text = match self {
            Self::Plimsoll(_) | Self::PlimsollFree => {
                let pacing = if let Self::Plimsoll(pacing) = self { pacing } else { "auto" };
                let clients = connections * streams;
                let http2 = job.streams.map(|n| format!("--http 2 --streams {n}"));
                let http2 = http2.unwrap_or_default();
                let load = match job.rate {
                    None => format!("--clients {clients} {http2}"),
                    Some(rate) => format!(
                        "--rate {rate} --set load.clients={connections} --set load.gaps=uniform"
                    ),
                };
                format!(
                    "run web-url {url} {load} --for {seconds}s --workers 1 --pacing {pacing} \
                     --set profiles.standard.warm_up=1s --progress none --json"
                )
            }
            Self::Wrk => format!("-t 1 -c {connections} -d {seconds}s --latency {url}"),
            Self::Wrk2 => {
                format!("-t 1 -c {connections} -d {seconds}s -R {rate} --latency {url}")
            }
            Self::H2load => format!("--h1 -t 1 -c {connections} -D {seconds} {url}"),
            Self::H2loadHttp2 => {
                format!("-t 1 -c {connections} -m {streams} -D {seconds} {url}")
            }
            Self::OhaHttp2 => format!(
                "--no-tui --output-format json --http2 -z {seconds}s -c {connections} -p {streams} \
                 {url}"
            ),
            // -t implies a limit of 50,000 requests, which -n lifts when it comes later.
            Self::Ab => {
                format!("-k -q -c {connections} -t {seconds} -n {} {url}", seconds * 400_000)
            }
            Self::Oha if rate > 0 => format!(
                "--no-tui --output-format json -z {seconds}s -c {connections} -q {rate} \
                 --latency-correction {url}"
            ),
            Self::Oha => {
                format!("--no-tui --output-format json -z {seconds}s -c {connections} {url}")
            }
            Self::Bare(mode) => {
                let address = &server.address;
                format!("{mode} {address} {} {connections} {seconds} {rate}", job.path)
            }
        };
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Parses the generator's output. `None` if it is not that of a good run.
    pub fn read(self, output: &str) -> Option<Reading> {
        match self {
            Self::Plimsoll(_) | Self::PlimsollFree => read_plimsoll(output),
            Self::Wrk | Self::Wrk2 => read_wrk(output),
            Self::H2load | Self::H2loadHttp2 => read_h2load(output),
            Self::Ab => read_ab(output),
            Self::Oha | Self::OhaHttp2 => read_oha(output),
            Self::Bare(_) => read_bare(output),
        }
    }
}

/// `  705000 requests in 5.00s, 873.91MB read`, and with `--latency` lines such as
/// ` 50.000%    1.02ms`.
fn read_wrk(output: &str) -> Option<Reading> {
    let line = output.lines().find(|line| line.contains(" requests in "))?;
    let requests: f64 = line.split_whitespace().next()?.parse().ok()?;
    let rate = output.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    // wrk has `50%`, wrk2 `50.000%`.
    let percentile = |name: &str| {
        let names = [format!("{name}%"), format!("{name}.000%")];
        let line =
            output.lines().map(str::trim).find(|line| names.iter().any(|n| line.starts_with(n)))?;
        microseconds(line.split_whitespace().nth(1)?)
    };
    Some(Reading {
        requests,
        requests_per_s: rate.trim().parse().ok()?,
        p50_us: percentile("50"),
        p99_us: percentile("99"),
        p999_us: percentile("99.900"),
        cpu_us: None,
    })
}

/// `950.00us`, `1.84ms`, `1.02s`.
fn microseconds(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7)];
    let (number, scale) = units.iter().find_map(|(u, k)| text.strip_suffix(u).map(|n| (n, k)))?;
    number.parse::<f64>().ok().map(|number| number * scale)
}

/// `finished in 5.00s, 139000.00 req/s, 160MB/s` and
/// `requests: 695000 total, 695032 started, 695000 done, …`.
fn read_h2load(output: &str) -> Option<Reading> {
    let finished = output.lines().find(|line| line.starts_with("finished in "))?;
    let rate = finished.split(", ").find_map(|part| part.strip_suffix(" req/s"))?;
    let counts = output.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let requests = counts.split(", ").find_map(|part| part.strip_suffix(" done"))?;
    Some(Reading {
        requests: requests.parse().ok()?,
        requests_per_s: rate.parse().ok()?,
        ..Reading::default()
    })
}

/// `Complete requests:      690000` and `Requests per second:    138000.12 [#/sec] (mean)`.
fn read_ab(output: &str) -> Option<Reading> {
    let value = |name: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Reading {
        requests: value("Complete requests:")?,
        requests_per_s: value("Requests per second:")?,
        ..Reading::default()
    })
}

fn read_oha(output: &str) -> Option<Reading> {
    let result: Value = serde_json::from_str(output).ok()?;
    let summary = &result["summary"];
    let us = |name: &str| result["latencyPercentiles"][name].as_f64().map(|s| s * 1e6);
    let statuses = result["statusCodeDistribution"].as_object()?;
    Some(Reading {
        requests: statuses.values().filter_map(Value::as_f64).sum(),
        requests_per_s: summary["requestsPerSec"].as_f64()?,
        p50_us: us("p50"),
        p99_us: us("p99"),
        p999_us: us("p99.9"),
        cpu_us: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(generator: Generator, output: &str, requests: f64, per_s: f64, p99_us: Option<f64>) {
        let reading = generator.read(output).unwrap();
        assert_eq!((reading.requests, reading.requests_per_s), (requests, per_s));
        assert_eq!(reading.p99_us, p99_us);
    }

    #[test]
    fn every_generator_is_read_as_it_prints() {
        let wrk = "  67408 requests in 1.10s, 81.26MB read\nRequests/sec:  61273.93\n";
        check(Generator::Wrk, wrk, 67_408.0, 61_273.93, None);
        let timed = format!("     50%   33.00us\n     99%    0.11ms\n{wrk}");
        check(Generator::Wrk, &timed, 67_408.0, 61_273.93, Some(110.0));
        let wrk2 = " 50.000%    0.98ms\n 99.000%    1.96ms\n  1968 requests in 1.00s, 2MB read\n\
                    Requests/sec:   1967.50\n";
        check(Generator::Wrk2, wrk2, 1_968.0, 1_967.5, Some(1_960.0));
        let h2load = "finished in 1.00s, 68658.00 req/s, 82.76MB/s\n\
                      requests: 68658 total, 68666 started, 68658 done, 68658 succeeded\n";
        check(Generator::H2load, h2load, 68_658.0, 68_658.0, None);
        let ab = "Complete requests:      61849\nRequests per second:    61847.95 [#/sec] (mean)\n";
        check(Generator::Ab, ab, 61_849.0, 61_847.95, None);
        let oha = r#"{"summary": {"requestsPerSec": 1996.5}, "latencyPercentiles": {"p99": 0.5},
                      "statusCodeDistribution": {"200": 1999}}"#;
        check(Generator::Oha, oha, 1_999.0, 1_996.5, Some(500_000.0));
        let bare = "requests=100 seconds=2.0 p50_ns=40000 p99_ns=90000 p999_ns=99000\n";
        check(Generator::Bare("spin"), bare, 100.0, 50.0, Some(90.0));
    }

    #[test]
    fn what_is_not_a_result_is_not_read() {
        for generator in [Generator::Wrk, Generator::Oha, Generator::PlimsollFree] {
            assert_eq!(generator.read("connection refused"), None);
        }
    }
}
