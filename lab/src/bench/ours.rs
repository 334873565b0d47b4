//! The generators of this repository: how `plimsoll` is run, with one worker on the generator's
//! core, and what it and the bare client report of a run.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use xtask::verb::Result;

use crate::network::{GENERATOR_CORE, Network};
use crate::process::{self, Finished};
use crate::program;

/// What is run against a server.
pub struct Ours<'a> {
    pub program: &'a Path,
    pub suite: &'a str,
    pub url: String,
    /// More arguments of the command line.
    pub arguments: Vec<String>,
    /// Keys of the suite, `KEY=VALUE`.
    pub settings: Vec<String>,
}

impl Ours<'_> {
    /// Runs it for a second of warm-up and these seconds. Exit code 1 means that the run is
    /// invalid: a generator at its limit is the point of a closed loop.
    pub fn run(&self, seconds: u64) -> Result<(Finished, Reading)> {
        let timings = ["warm_up=1s".to_owned(), format!("measure={seconds}s")];
        let finished = self.run_below("", &timings, Duration::from_secs(3 * seconds + 120))?;
        let reading = read_plimsoll(&finished.output).ok_or_else(|| finished.failure())?;
        Ok((finished, reading))
    }

    /// Runs this many ops below another program, `prefix` with its arguments.
    pub fn run_ops(&self, prefix: &str, ops: u64, limit: Duration) -> Result<Finished> {
        let measure = format!("measure={}s", limit.as_secs());
        let timings = ["warm_up=0s".to_owned(), measure, format!("ops={ops}")];
        self.run_below(prefix, &timings, limit)
    }

    fn run_below(&self, prefix: &str, timings: &[String], limit: Duration) -> Result<Finished> {
        let folder = program::temporary()?;
        let program = self.program.to_string_lossy();
        let mut line = prefix.split_whitespace().chain([program.as_ref()]);
        let mut command = Network::Host.pinned(GENERATOR_CORE, line.next().unwrap_or_default());
        command
            .args(line)
            .args(["run", self.suite, &self.url, "--workers", "1"])
            .args(&self.arguments);
        let timings = timings.iter().map(|timing| format!("profiles.standard.{timing}"));
        for setting in timings.chain(self.settings.iter().cloned()) {
            command.args(["--set", &setting]);
        }
        command.args(["--progress", "none", "--json", "--out"]).arg(folder.path().join("run"));
        let finished = process::run(&mut command, limit, |_, _| ())?;
        let good = matches!(finished.code, Some(0 | 1));
        if good { Ok(finished) } else { Err(finished.failure()) }
    }
}

/// A generator's report of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Requests it made in all, warm-up too: its CPU time is divided by these.
    pub requests: f64,
    pub requests_per_s: f64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    /// Of this project: CPU time of the whole process per request while the point ran (not what
    /// came before, such as the second in which the core's own pauses are looked for), and of it
    /// the worker's own without polls that found nothing.
    pub cpu_us: Option<(f64, f64)>,
}

/// Reads a `result.json`; `None` where no op was done.
pub fn read_plimsoll(output: &str) -> Option<Reading> {
    let result: Value = serde_json::from_str(output).ok()?;
    let point = &result["points"][0];
    // Warm-up and window are whole seconds, so each entry stands for one.
    let seconds = point["timeline"].as_array()?.iter().filter(|second| second["phase"] != "drain");
    let requests: f64 = seconds.filter_map(|second| second["ops_per_s"].as_f64()).sum();
    let us = |value: &Value| value.as_f64().map(|ns| ns / 1e3);
    let (times, generator) = (&point["response_ns"], &point["generator"]);
    let reading = Reading {
        requests,
        requests_per_s: point["achieved_ops_per_s"].as_f64()?,
        p50_us: us(&times["p50"]),
        p99_us: us(&times["p99"]),
        p999_us: us(&times["p999"]),
        cpu_us: Some((us(&generator["cpu_ns_per_op"])?, us(&generator["work_ns_per_op"])?)),
    };
    (requests > 0.0).then_some(reading)
}

/// `requests=700000 seconds=5.000012 p50_ns=40000 p99_ns=…`, as the bare client and the rival of
/// NFS print it; `None` where no request was made.
pub fn read_bare(output: &str) -> Option<Reading> {
    let value = |name: &str| {
        let tokens = output.split_whitespace();
        let mut pairs = tokens.filter_map(|word| word.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let requests = value("requests").filter(|requests| *requests > 0.0)?;
    let us = |name: &str| value(name).map(|ns| ns / 1e3);
    Some(Reading {
        requests,
        requests_per_s: requests / value("seconds")?,
        p50_us: us("p50_ns"),
        p99_us: us("p99_ns"),
        p999_us: us("p999_ns"),
        cpu_us: None,
    })
}

/// An error where ops of a `result.json` failed, or ended with another status than expected: their
/// cost is not the cost of the intended ops.
pub fn without_fault(output: &str) -> Result<()> {
    let result: Value = serde_json::from_str(output).map_err(|e| format!("result.json: {e}"))?;
    let point = &result["points"][0];
    let (errors, unexpected) = (&point["errors"], &point["unexpected"]);
    let clean = |errors: &Map<String, Value>, unexpected: &Vec<Value>| {
        errors.values().all(|count| count == 0) && unexpected.is_empty()
    };
    match errors.as_object().zip(unexpected.as_array()) {
        Some((errors, unexpected)) if clean(errors, unexpected) => Ok(()),
        Some(_) => {
            let samples = &point["error_samples"];
            Err(format!("the run had errors {errors}, unexpected {unexpected}, as {samples}"))
        }
        None => Err("result.json does not say which errors there were".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_the_warm_up_count_too_and_those_of_the_drain_do_not() {
        let output = r#"{"points":[{"achieved_ops_per_s":50.0,"response_ns":{"p99":2000},
            "generator":{"cpu_ns_per_op":9000.0,"work_ns_per_op":4000.0},"timeline":[
            {"phase":"warm_up","ops_per_s":40.0},{"phase":"measure","ops_per_s":50.0},
            {"phase":"drain","ops_per_s":1.0}]}]}"#;
        let expected = Reading {
            requests: 90.0,
            requests_per_s: 50.0,
            p99_us: Some(2.0),
            cpu_us: Some((9.0, 4.0)),
            ..Reading::default()
        };
        assert_eq!(read_plimsoll(output), Some(expected));
    }

    #[test]
    fn a_run_with_errors_or_unexpected_statuses_does_not_count() {
        let checked = |point: &str| without_fault(&format!(r#"{{"points":[{{{point}}}]}}"#));
        assert_eq!(checked(r#""errors":{},"unexpected":[]"#), Ok(()));
        let timeouts = checked(r#""errors":{"timeout":2},"unexpected":[]"#).unwrap_err();
        assert!(timeouts.contains(r#"{"timeout":2}"#), "{timeouts}");
        let status = r#""errors":{},"unexpected":[{"op":"read","actual":7,"count":1}]"#;
        assert!(checked(status).unwrap_err().contains(r#""actual":7"#));
        assert!(checked("").is_err());
        assert!(without_fault("no result").is_err());
    }
}
