//! All runs of one generator against one server, and what of a run counts.

use serde_json::{Map, Value};
use xtask::verb::Result;

use super::median;
use super::process::Finished;

/// One run of one generator against one server.
pub struct Sample {
    pub ops_per_s: f64,
    /// User and system time of the whole process.
    pub generator_us_per_op: f64,
    /// Of it, what the worker did besides polls that found nothing; of this project alone.
    pub work_us_per_op: Option<f64>,
    pub server_us_per_op: f64,
    pub peak_rss_mb: f64,
}

/// What a `result.json` says of its load point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// In all, warm-up too.
    pub ops: f64,
    pub ops_per_s: f64,
    /// Of the whole process while the point ran: not what came before, such as the second in which
    /// the core's own pauses are looked for.
    pub cpu_us_per_op: f64,
    pub work_us_per_op: f64,
}

impl Sample {
    /// Of this project, its server's own cost not counted.
    pub fn of_ours(finished: &Finished, counted: &Counted) -> Self {
        Self {
            ops_per_s: counted.ops_per_s,
            generator_us_per_op: counted.cpu_us_per_op,
            work_us_per_op: Some(counted.work_us_per_op),
            server_us_per_op: f64::NAN,
            peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
        }
    }

    /// Of a rival, its server's own cost not counted.
    pub fn of_generator(finished: &Finished, ops: f64, ops_per_s: f64) -> Self {
        Self {
            ops_per_s,
            generator_us_per_op: finished.cpu.as_secs_f64() * 1e6 / ops,
            work_us_per_op: None,
            server_us_per_op: f64::NAN,
            peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
        }
    }
}

/// All runs of one pair.
pub struct Row {
    name: String,
    samples: Vec<Sample>,
    /// Rounds that gave no sample.
    failed: usize,
}

impl Row {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), samples: Vec::new(), failed: 0 }
    }

    pub fn take(&mut self, outcome: Result<Sample>) {
        match outcome {
            Ok(sample) => {
                eprintln!(
                    "{:24} {:9.0}/s {:7.2} µs generator {:7.2} µs server",
                    self.name,
                    sample.ops_per_s,
                    sample.generator_us_per_op,
                    sample.server_us_per_op
                );
                self.samples.push(sample);
            }
            Err(message) => {
                eprintln!("FAILED: {}: {message}", self.name);
                self.failed += 1;
            }
        }
    }

    /// What its line in a table is called.
    pub fn label(&self) -> String {
        label(&self.name, self.samples.len(), self.failed)
    }

    pub fn values(&self, of: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(of).collect()
    }

    pub fn median(&self, of: fn(&Sample) -> f64) -> Option<f64> {
        median(&self.values(of))
    }

    /// Median work per op.
    pub fn work(&self) -> Option<f64> {
        median(&self.samples.iter().filter_map(|s| s.work_us_per_op).collect::<Vec<_>>())
    }
}

/// The name of a row; where rounds failed, with the number of those that its figures come from.
pub fn label(name: &str, counted: usize, failed: usize) -> String {
    match failed {
        0 => name.to_owned(),
        _ => format!("{name} ({counted} of {} rounds counted)", counted + failed),
    }
}

/// An error where ops of a `result.json` failed, or ended with another status than expected: what
/// they cost is not the cost of what was asked for.
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

/// Reads a `result.json`; `None` where no op was done.
pub fn counted(output: &str) -> Option<Counted> {
    let result: Value = serde_json::from_str(output).ok()?;
    let point = &result["points"][0];
    let ops_per_s = point["achieved_ops_per_s"].as_f64()?;
    // Warm-up and window are whole seconds, so each entry stands for one.
    let seconds = point["timeline"].as_array()?.iter().filter(|second| second["phase"] != "drain");
    let ops: f64 = seconds.filter_map(|second| second["ops_per_s"].as_f64()).sum();
    let us = |name: &str| Some(point["generator"][name].as_f64()? / 1e3);
    let (cpu_us_per_op, work_us_per_op) = (us("cpu_ns_per_op")?, us("work_ns_per_op")?);
    (ops > 0.0).then_some(Counted { ops, ops_per_s, cpu_us_per_op, work_us_per_op })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_the_warm_up_count_too() {
        let output = r#"{"points":[{"achieved_ops_per_s":50.0,
            "generator":{"cpu_ns_per_op":9000.0,"work_ns_per_op":4000.0},"timeline":[
            {"phase":"warm_up","ops_per_s":40.0},{"phase":"measure","ops_per_s":50.0},
            {"phase":"drain","ops_per_s":1.0}]}]}"#;
        let (ops, ops_per_s) = (90.0, 50.0);
        let (cpu_us_per_op, work_us_per_op) = (9.0, 4.0);
        let expected = Counted { ops, ops_per_s, cpu_us_per_op, work_us_per_op };
        assert_eq!(counted(output), Some(expected));
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

    #[test]
    fn a_row_with_failed_rounds_says_how_many_counted() {
        let sample = Sample {
            ops_per_s: 1.0,
            generator_us_per_op: 1.0,
            work_us_per_op: None,
            server_us_per_op: 1.0,
            peak_rss_mb: 1.0,
        };
        let mut row = Row::new("ours");
        row.take(Ok(sample));
        assert_eq!(row.label(), "ours");
        row.take(Err("it failed".to_owned()));
        assert_eq!(row.label(), "ours (1 of 2 rounds counted)");
    }
}
