//! All runs of one generator against one server, and what of a run counts.

use serde_json::Value;

use super::median;
use super::process::Finished;
use crate::Result;

/// One run of one generator against one server.
pub struct Sample {
    pub ops_per_s: f64,
    pub generator_us_per_op: f64,
    pub server_us_per_op: f64,
    pub peak_rss_mb: f64,
}

impl Sample {
    /// Of a run whose server's own cost is not counted.
    pub fn of_generator(finished: &Finished, ops: f64, ops_per_s: f64) -> Self {
        Self {
            ops_per_s,
            generator_us_per_op: finished.cpu.as_secs_f64() * 1e6 / ops,
            server_us_per_op: f64::NAN,
            peak_rss_mb: finished.peak_rss_bytes as f64 / 1e6,
        }
    }
}

/// All runs of one pair.
pub struct Row {
    pub name: String,
    pub samples: Vec<Sample>,
}

impl Row {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), samples: Vec::new() }
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
            Err(message) => eprintln!("FAILED: {}: {message}", self.name),
        }
    }

    pub fn values(&self, of: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(of).collect()
    }

    pub fn median(&self, of: fn(&Sample) -> f64) -> Option<f64> {
        median(&self.values(of))
    }
}

/// Ops in all, and per second of the window, of a `result.json`.
pub fn counted(output: &str) -> Option<(f64, f64)> {
    let result: Value = serde_json::from_str(output).ok()?;
    let point = &result["points"][0];
    let ops_per_s = point["achieved_ops_per_s"].as_f64()?;
    // Warm-up and window are whole seconds, so each entry stands for one.
    let seconds = point["timeline"].as_array()?.iter().filter(|second| second["phase"] != "drain");
    let ops: f64 = seconds.filter_map(|second| second["ops_per_s"].as_f64()).sum();
    (ops > 0.0).then_some((ops, ops_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_the_warm_up_count_too() {
        let output = r#"{"points":[{"achieved_ops_per_s":50.0,"timeline":[
            {"phase":"warm_up","ops_per_s":40.0},{"phase":"measure","ops_per_s":50.0},
            {"phase":"drain","ops_per_s":1.0}]}]}"#;
        assert_eq!(counted(output), Some((90.0, 50.0)));
    }
}
