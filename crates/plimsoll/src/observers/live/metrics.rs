//! What Prometheus is told, in its text format 0.0.4.
//!
//! Series are made of the run's load points and the names of its ops, never of anything a server
//! has sent. The text of finished points is written once and kept.

use std::fmt::Write as _;

use plimsoll_model::assignment::{Load, Purpose};
use plimsoll_model::event::Times;

use super::super::{FinishedPoint, SecondView};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the buckets in nanoseconds, from a cached reply to the patience of a client.
const BUCKETS_NS: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];
/// Pairs of op and load point that are told: some ten megabytes of text. A ladder as long as
/// suites allow, of many ops, has more.
const PAIRS_MAX: usize = 4_096;

/// Name, type and help of what is told of finished points.
const FAMILIES: [(&str, &str, &str); 6] = [
    ("plimsoll_response_seconds", "histogram", "Response time (done - due) in the window."),
    ("plimsoll_ops_total", "counter", "Ops due in the window that ended."),
    ("plimsoll_errors_total", "counter", "Of those, failed."),
    ("plimsoll_requested_ops_per_second", "gauge", "Load asked for, of open loads."),
    ("plimsoll_requested_clients", "gauge", "Load asked for, of closed loads."),
    ("plimsoll_achieved_ops_per_second", "gauge", "Finished without error in the window."),
];
const RESPONSE: usize = 0;
const OPS: usize = 1;
const ERRORS: usize = 2;
const REQUESTED: usize = 3;
const CLIENTS: usize = 4;
const ACHIEVED: usize = 5;

/// Figures of a finished load point, taken between load points.
#[derive(Clone, Debug, Default)]
pub(super) struct PointFigures {
    point: String,
    requested_ops_per_s: Option<f64>,
    clients: Option<u32>,
    achieved_ops_per_s: Option<f64>,
    ops: Vec<OpFigures>,
}

#[derive(Clone, Debug, Default)]
struct OpFigures {
    name: String,
    count: u64,
    errors: u64,
    /// As many as there are buckets, each with those before it.
    within: Vec<u64>,
    responses: u64,
    sum_ns: f64,
}

impl PointFigures {
    /// Of a point that is in the bundle.
    pub(super) fn of(finished: &FinishedPoint<'_>) -> Self {
        // Where a load is searched, points change places as others are found.
        let (kind, point) = match finished.record.point.purpose {
            Purpose::Ladder => ("ladder", finished.point.position),
            Purpose::Probe | Purpose::Verify => ("search", finished.record.point.ordinal),
        };
        let names = finished.op_names.0.iter().zip(finished.times.window());
        let ops = names.filter_map(|(name, times)| {
            let result = finished.point.ops.get(name)?;
            let response = &times.response;
            Some(OpFigures {
                name: name.clone(),
                count: result.count,
                errors: result.errors,
                within: within(response),
                responses: response.len(),
                sum_ns: if response.is_empty() {
                    0.0
                } else {
                    response.mean() * response.len() as f64
                },
            })
        });
        let (requested_ops_per_s, clients) = match &finished.record.load {
            Load::Open { rate_ops_per_s, .. } => (Some(rate_ops_per_s.get()), None),
            Load::Closed { clients, .. } => (None, Some(*clients)),
        };
        Self {
            point: format!("kind=\"{kind}\",point=\"{point}\""),
            requested_ops_per_s,
            clients,
            achieved_ops_per_s: finished.point.achieved_ops_per_s,
            ops: ops.collect(),
        }
    }
}

/// How many lie within each bucket.
fn within(times: &Times) -> Vec<u64> {
    let mut counts = vec![0_u64; BUCKETS_NS.len()];
    for recorded in times.iter_recorded() {
        // Of values that the histogram does not tell apart, the least.
        let value = times.lowest_equivalent(recorded.value_iterated_to());
        let bucket = BUCKETS_NS.partition_point(|bound| *bound < value);
        if let Some(count) = counts.get_mut(bucket) {
            *count += u64::from(recorded.count_at_value());
        }
    }
    let mut sum = 0;
    for count in &mut counts {
        sum += *count;
        *count = sum;
    }
    counts
}

/// All that is told.
#[derive(Default)]
pub(super) struct Metrics {
    families: [String; FAMILIES.len()],
    pairs: usize,
    points: u64,
    points_left_out: u64,
    now: Option<SecondView>,
}

impl Metrics {
    /// The last second of the load point under way.
    pub(super) fn now(&mut self, second: Option<SecondView>) {
        self.now = second;
    }

    /// A load point is over.
    pub(super) fn add(&mut self, figures: &PointFigures) {
        self.points += 1;
        if self.pairs + figures.ops.len() > PAIRS_MAX {
            self.points_left_out += 1;
            return;
        }
        self.pairs += figures.ops.len();
        let point = &figures.point;
        let of_point = [
            (REQUESTED, figures.requested_ops_per_s),
            (CLIENTS, figures.clients.map(f64::from)),
            (ACHIEVED, figures.achieved_ops_per_s),
        ];
        for (family, value) in of_point {
            if let Some(value) = value {
                self.line(family, "", point, value);
            }
        }
        for op in &figures.ops {
            let labels = format!("{point},op=\"{}\"", escaped(&op.name));
            self.line(OPS, "", &labels, op.count as f64);
            self.line(ERRORS, "", &labels, op.errors as f64);
            for (bound_ns, count) in BUCKETS_NS.iter().zip(&op.within) {
                let bound = format!("{labels},le=\"{}\"", *bound_ns as f64 / 1e9);
                self.line(RESPONSE, "_bucket", &bound, *count as f64);
            }
            let all = format!("{labels},le=\"+Inf\"");
            self.line(RESPONSE, "_bucket", &all, op.responses as f64);
            self.line(RESPONSE, "_sum", &labels, op.sum_ns / 1e9);
            self.line(RESPONSE, "_count", &labels, op.responses as f64);
        }
    }

    fn line(&mut self, family: usize, ending: &str, labels: &str, value: f64) {
        let name = FAMILIES[family].0;
        let _ = writeln!(self.families[family], "{name}{ending}{{{labels}}} {value}");
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for ((name, kind, help), lines) in FAMILIES.iter().zip(&self.families) {
            if !lines.is_empty() {
                head(&mut text, name, kind, help);
                text += lines;
            }
        }
        let now = self.now.as_ref();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                head(&mut text, name, "gauge", help);
                let _ = writeln!(text, "{name} {value}");
            }
        };
        gauge("plimsoll_points_finished", "Load points finished.", Some(self.points as f64));
        gauge(
            "plimsoll_points_left_out",
            "Of those, not told: there would be too many series.",
            Some(self.points_left_out as f64),
        );
        gauge(
            "plimsoll_now_ops_per_second",
            "Finished without error in the last second of the load point under way.",
            now.map(|now| now.ops_per_s),
        );
        gauge(
            "plimsoll_now_response_p99_seconds",
            "99th percentile of response time in that second.",
            now.and_then(|now| now.response_p99_ns).map(|ns| ns as f64 / 1e9),
        );
        gauge("plimsoll_now_errors", "Failed in that second.", now.map(|now| now.errors as f64));
        gauge(
            "plimsoll_now_generator_busy_ratio",
            "Busiest worker of the generator in that second.",
            now.map(|now| now.generator_busy_ratio),
        );
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Of a label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::new_times;

    use super::*;

    fn figures(point: u32, ops: usize) -> PointFigures {
        let mut times = new_times();
        for ns in [50_000, 100_000, 2_000_000, 90_000_000_000] {
            times.record(ns).unwrap();
        }
        let op = |number| OpFigures {
            name: format!("op {number} \"\\\n"),
            count: 4,
            errors: 1,
            within: within(&times),
            responses: times.len(),
            sum_ns: 90_002_150_000.0,
        };
        PointFigures {
            point: format!("kind=\"ladder\",point=\"{point}\""),
            requested_ops_per_s: Some(1_000.5),
            clients: None,
            achieved_ops_per_s: Some(999.25),
            ops: (0..ops).map(op).collect(),
        }
    }

    #[test]
    fn buckets_hold_all_below_them() {
        let mut metrics = Metrics::default();
        metrics.add(&figures(3, 1));
        let text = metrics.text();
        let labels = r#"kind="ladder",point="3",op="op 0 \"\\\n""#;
        for (le, count) in [("0.0001", 2), ("0.001", 2), ("0.0025", 3), ("60", 3), ("+Inf", 4)] {
            let line =
                format!("plimsoll_response_seconds_bucket{{{labels},le=\"{le}\"}} {count}\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        assert!(text.contains(&format!("plimsoll_response_seconds_sum{{{labels}}} 90.00215\n")));
        assert!(text.contains(&format!("plimsoll_errors_total{{{labels}}} 1\n")));
        let achieved = "plimsoll_achieved_ops_per_second{kind=\"ladder\",point=\"3\"} 999.25\n";
        assert!(text.contains(achieved));
        assert!(!text.contains("plimsoll_now"), "nothing is under way");
    }

    #[test]
    fn points_beyond_the_limit_are_counted() {
        let mut metrics = Metrics::default();
        for point in 1..=5 {
            metrics.add(&figures(point, PAIRS_MAX / 4));
        }
        let text = metrics.text();
        assert!(text.contains("\nplimsoll_points_finished 5\n"));
        assert!(text.contains("\nplimsoll_points_left_out 1\n"));
        assert!(!text.contains("point=\"5\""));
    }
}
