//! The result of a run, as a line of a file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RunPlan;

/// Percentiles that are reported.
pub const PERCENTILES: [(&str, f64); 3] = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];
/// A step of the truth's buckets: finer than any uncertainty interval by far.
const STEP: f64 = 1.000_2;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub number: u64,
    pub seed: u64,
    pub window_s: u64,
    pub utilisation: f64,
    pub disturbed: bool,
    /// The run's own verdict.
    pub valid: bool,
    /// By percentile; `None` if the result has none.
    pub intervals: [Option<ReportedInterval>; 3],
    pub truths: Truths,
}

/// An uncertainty interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedInterval {
    pub low_ns: f64,
    /// `None` where the sample shows no upper end.
    pub high_ns: Option<f64>,
    pub value_ns: f64,
    /// The generator's part; `None` if it is not reported.
    pub generator_ns: Option<f64>,
}

/// Times of a run, or of several, from due to the reply handed to the kernel: how many in each
/// bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truths(BTreeMap<u64, u64>);

impl Truths {
    pub fn from_times(times_ns: &[u64]) -> Self {
        let mut buckets = BTreeMap::new();
        for time_ns in times_ns {
            let bucket = ((*time_ns).max(1) as f64).ln() / STEP.ln();
            *buckets.entry(bucket.round() as u64).or_default() += 1;
        }
        Self(buckets)
    }

    pub fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    /// A percentile, in nanoseconds; `None` of nothing.
    pub fn percentile_ns(&self, share: f64) -> Option<f64> {
        let total: u64 = self.0.values().sum();
        let rank = (share * total as f64).ceil() as u64;
        let mut below = 0;
        let bucket = self.0.iter().find(|(_, count)| {
            below += *count;
            below >= rank
        });
        bucket.map(|(bucket, _)| STEP.powf(*bucket as f64))
    }
}

impl ReportedInterval {
    pub fn holds(&self, truth_ns: f64) -> bool {
        truth_ns >= self.low_ns && self.high_ns.is_none_or(|high_ns| truth_ns <= high_ns)
    }

    /// Its width, as a share of the figure.
    pub fn width_ratio(&self) -> Option<f64> {
        Some((self.high_ns? - self.low_ns) / self.value_ns)
    }
}

impl Outcome {
    pub fn is_of(&self, plan: &RunPlan) -> bool {
        let Self { number, seed, window_s, utilisation, disturbed, .. } = *self;
        *plan == RunPlan { number, seed, window_s, utilisation, disturbed }
    }

    /// For a person who waits.
    pub fn line(&self) -> String {
        let shown = self.intervals.iter().zip(PERCENTILES).map(|(interval, (name, share))| {
            let truth = self
                .truths
                .percentile_ns(share)
                .map_or_else(|| "unknown".to_owned(), |truth_ns| format!("{:.0}", truth_ns / 1e3));
            match interval {
                Some(ReportedInterval { low_ns, high_ns: Some(high_ns), .. }) => format!(
                    "{name} {:.0}–{:.0} µs, this run's truth {truth}",
                    low_ns / 1e3,
                    high_ns / 1e3
                ),
                Some(ReportedInterval { low_ns, .. }) => {
                    format!("{name} ≥ {:.0} µs, this run's truth {truth}", low_ns / 1e3)
                }
                None => format!("{name} not stated"),
            }
        });
        format!(
            "run {}: {} s at {}, {}, {}: {}",
            self.number,
            self.window_s,
            self.utilisation,
            if self.disturbed { "disturbed" } else { "quiet" },
            if self.valid { "valid" } else { "invalid" },
            shown.collect::<Vec<_>>().join("; ")
        )
    }

    pub fn json(&self) -> String {
        let intervals = self.intervals.map(|interval| {
            interval.map(|s| json!([s.low_ns, s.high_ns, s.value_ns, s.generator_ns]))
        });
        let truths: Vec<Value> =
            self.truths.0.iter().map(|(bucket, count)| json!([bucket, count])).collect();
        json!({
            "number": self.number, "seed": self.seed, "window_s": self.window_s,
            "utilisation": self.utilisation, "disturbed": self.disturbed, "valid": self.valid,
            "stated": intervals, "truths": truths,
        })
        .to_string()
    }

    pub fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let whole = |key: &str| value.get(key)?.as_u64();
        let interval = |index: usize| {
            let figures = value.get("stated")?.get(index)?;
            let figure = |index: usize| figures.get(index)?.as_f64();
            Some(ReportedInterval {
                low_ns: figure(0)?,
                high_ns: figure(1),
                value_ns: figure(2)?,
                generator_ns: figure(3),
            })
        };
        let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
        let truths: Option<BTreeMap<u64, u64>> =
            value.get("truths")?.as_array()?.iter().map(pair).collect();
        Some(Self {
            number: whole("number")?,
            seed: whole("seed")?,
            window_s: whole("window_s")?,
            utilisation: value.get("utilisation")?.as_f64()?,
            disturbed: value.get("disturbed")?.as_bool()?,
            valid: value.get("valid")?.as_bool()?,
            intervals: [interval(0), interval(1), interval(2)],
            truths: Truths(truths?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_back_and_half_a_line_is_none() {
        let interval = ReportedInterval {
            low_ns: 1.0,
            high_ns: Some(3.5),
            value_ns: 2.0,
            generator_ns: Some(0.25),
        };
        let outcome = Outcome {
            number: 7,
            seed: 8,
            window_s: 3,
            utilisation: 0.6,
            disturbed: true,
            valid: false,
            intervals: [
                Some(interval),
                None,
                Some(ReportedInterval { generator_ns: None, ..interval }),
            ],
            truths: Truths::from_times(&[900_000, 900_001, 5_000_000]),
        };
        let line = outcome.json();
        assert_eq!(Outcome::parse(&line), Some(outcome));
        assert_eq!(Outcome::parse(&line[..line.len() / 2]), None);
    }

    #[test]
    fn percentiles_of_pooled_truths_are_right_to_a_hundredth_of_a_percent() {
        let times: Vec<u64> = (1..=1_000).map(|i| i * 1_000_000).collect();
        let mut pooled = Truths::from_times(&times[..500]);
        pooled.add(&Truths::from_times(&times[500..]));
        for (_, share) in PERCENTILES {
            let percentile_ns = pooled.percentile_ns(share).unwrap();
            assert!(
                (percentile_ns / (share * 1e9) - 1.0).abs() < 1.5e-4,
                "{share}: {percentile_ns}"
            );
        }
        assert_eq!(Truths::default().percentile_ns(0.5), None);
    }
}
