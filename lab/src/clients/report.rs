//! What a client reports of its run, read from its own files.

use std::fs;
use std::path::Path;

use serde_json::Value;
use xtask::verb::Result;

use super::client::Client;
use crate::process::Finished;

/// Time to first output, and its notice about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub first_p50_ms: f64,
    /// Plimsoll reports it from 1,000 requests on.
    pub first_p99_ms: Option<f64>,
    /// Intervals around the two, if it reports any.
    pub intervals_ms: [Option<[f64; 2]>; 2],
    /// The two from the instant of sending, where the others run from the due time.
    pub from_sent_ms: [Option<f64>; 2],
    /// Requests that it counts as good.
    pub requests: f64,
    /// Whether it reports that it was itself a limit or late, and how.
    pub limit: LimitNotice,
}

/// Where a client speaks of its own limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LimitNotice {
    /// Nowhere.
    #[default]
    Nothing,
    /// In its report: this text.
    InReport(String),
    /// Only in its log: how many lines, and the last.
    InLog(usize, String),
}

impl Client {
    /// Reads the report of a run that wrote into `folder`.
    pub fn read(self, finished: &Finished, folder: &Path) -> Result<Report> {
        let read = match self {
            Self::Plimsoll | Self::PlimsollAsleep => plimsoll(&parsed(&finished.output)?),
            Self::VllmBench => vllm_bench(&file(&folder.join("out.json"))?),
            Self::Endpoints => {
                let report = file(&folder.join("out/performance/result_summary.json"))?;
                endpoints(&report)
            }
            Self::AiPerf => aiperf(&file(&folder.join("out/profile_export_aiperf.json"))?),
            Self::GuideLlm => guidellm(&file(&folder.join("out.json"))?),
            Self::InferencePerf => {
                inference_perf(&file(&folder.join("out/summary_lifecycle_metrics.json"))?)
            }
        };
        let report = read.filter(|report| report.requests > 0.0);
        let report = report.ok_or_else(|| finished.failure())?;
        let logged = self.logged(finished, folder);
        let limit = if report.limit == LimitNotice::Nothing { logged } else { report.limit };
        Ok(Report { limit, ..report })
    }

    /// Lines of its log and output in which it reports that it is late or lacks resources.
    fn logged(self, finished: &Finished, folder: &Path) -> LimitNotice {
        let signs: &[&str] = match self {
            Self::AiPerf => &["is taking too long to run"],
            Self::Endpoints => &["Not enough physical cores", "behind schedule"],
            Self::InferencePerf
            | Self::Plimsoll
            | Self::PlimsollAsleep
            | Self::VllmBench
            | Self::GuideLlm => &[],
        };
        let log = fs::read_to_string(folder.join("out/logs/aiperf.log"));
        let text = log.unwrap_or_else(|_| [&*finished.output, &finished.errors].join("\n"));
        let is_one = |line: &&str| signs.iter().any(|sign| line.contains(sign));
        let lines: Vec<&str> = text.lines().filter(is_one).collect();
        match lines.last() {
            None => LimitNotice::Nothing,
            Some(last) => {
                let message = last.rsplit(" - ").next().unwrap_or(last);
                LimitNotice::InLog(lines.len(), message.trim().to_owned())
            }
        }
    }
}

fn file(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parsed(&text)
}

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|e| format!("its report: {e}"))
}

/// `result.json`.
fn plimsoll(result: &Value) -> Option<Report> {
    let point = &result["points"][0];
    let generation = &point["generation"];
    let (times, intervals) =
        (&generation["first_output_ns"], &generation["first_output_interval_ns"]);
    let from_sent = &generation["first_output_service_ns"];
    let ms = |value: &Value| value.as_f64().map(|ns| ns / 1e6);
    let interval = |name: &str| Some([ms(&intervals[name][0])?, ms(&intervals[name][1])?]);
    let rules = point["reasons"].as_array()?.iter().filter_map(|reason| reason["text"].as_str());
    let rules: Vec<&str> = rules.collect();
    Some(Report {
        first_p50_ms: ms(&times["p50"])?,
        first_p99_ms: ms(&times["p99"]),
        intervals_ms: [interval("p50"), interval("p99")],
        from_sent_ms: [ms(&from_sent["p50"]), ms(&from_sent["p99"])],
        requests: times["n"].as_f64()?,
        limit: if rules.is_empty() {
            LimitNotice::Nothing
        } else {
            LimitNotice::InReport(rules.join("; "))
        },
    })
}

/// The file of `--save-result`; of a long run its steady part, since it has no warm-up.
fn vllm_bench(result: &Value) -> Option<Report> {
    let steady = &result["steady_state"];
    let p99_of = |pair: &Value| (pair[0].as_f64()? == 99.0).then(|| pair[1].as_f64())?;
    let steady_p99 =
        steady["percentiles_ttft_ms"].as_array().and_then(|pairs| pairs.iter().find_map(p99_of));
    let whole = (result["median_ttft_ms"].as_f64(), result["p99_ttft_ms"].as_f64());
    let (p50, p99) = match (steady["median_ttft_ms"].as_f64(), steady_p99) {
        (Some(p50), Some(p99)) => (Some(p50), Some(p99)),
        _ => whole,
    };
    Some(Report {
        first_p50_ms: p50?,
        first_p99_ms: p99,
        requests: result["completed"].as_f64()?,
        ..Report::default()
    })
}

/// `result_summary.json`; it counts failed requests among the completed ones.
fn endpoints(summary: &Value) -> Option<Report> {
    let ms = |value: &Value| value.as_f64().map(|ns| ns / 1e6);
    let count = |name: &str| summary[name].as_f64();
    Some(Report {
        first_p50_ms: ms(&summary["ttft"]["median"])?,
        first_p99_ms: ms(&summary["ttft"]["percentiles"]["99.0"]),
        requests: count("n_samples_completed")? - count("n_samples_failed")?,
        ..Report::default()
    })
}

/// `profile_export_aiperf.json`.
fn aiperf(export: &Value) -> Option<Report> {
    let times = &export["time_to_first_token"];
    Some(Report {
        first_p50_ms: times["p50"].as_f64()?,
        first_p99_ms: times["p99"].as_f64(),
        requests: export["request_count"]["avg"].as_f64()?,
        ..Report::default()
    })
}

/// The report as JSON, which has the warnings that its console shows.
fn guidellm(report: &Value) -> Option<Report> {
    let benchmark = &report["benchmarks"][0];
    let times = &benchmark["metrics"]["time_to_first_token_ms"]["successful"];
    let warning = |warning: &Value| {
        let text = |name: &str| warning[name].as_str().unwrap_or_default();
        format!("{} {}", text("message"), text("note"))
    };
    let warnings: Vec<String> = benchmark["warnings"].as_array()?.iter().map(warning).collect();
    Some(Report {
        first_p50_ms: times["percentiles"]["p50"].as_f64()?,
        first_p99_ms: times["percentiles"]["p99"].as_f64(),
        requests: times["count"].as_f64()?,
        limit: match warnings.is_empty() {
            true => LimitNotice::Nothing,
            false => LimitNotice::InReport(warnings.join("; ")),
        },
        ..Report::default()
    })
}

/// `summary_lifecycle_metrics.json`, in seconds. Its `schedule_delay` means nothing here: all
/// requests of a closed loop are due at the start.
fn inference_perf(summary: &Value) -> Option<Report> {
    let successes = &summary["successes"];
    let times = &successes["latency"]["time_to_first_token"];
    let ms = |value: &Value| value.as_f64().map(|s| s * 1e3);
    Some(Report {
        first_p50_ms: ms(&times["median"])?,
        first_p99_ms: ms(&times["p99"]),
        requests: successes["count"].as_f64()?,
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(read: fn(&Value) -> Option<Report>, text: &str, expected: (f64, f64, f64)) -> Report {
        let report = read(&serde_json::from_str(text).unwrap()).unwrap();
        let (p50, p99, requests) = expected;
        assert_eq!((report.first_p50_ms, report.first_p99_ms), (p50, Some(p99)));
        assert_eq!(report.requests, requests);
        report
    }

    #[test]
    fn every_client_is_read_as_it_writes() {
        let plimsoll_text = r#"{"points":[{"reasons":[{"rule":"lag","text":"late"}],"generation":{
            "first_output_ns":{"n":7,"p50":80000000,"p99":90000000},
            "first_output_interval_ns":{"p50":[79e6,81e6],"p99":[89e6,91e6]}}}]}"#;
        let report = check(plimsoll, plimsoll_text, (80.0, 90.0, 7.0));
        assert_eq!(report.intervals_ms, [Some([79.0, 81.0]), Some([89.0, 91.0])]);
        assert_eq!(report.limit, LimitNotice::InReport("late".to_owned()));
        let vllm = r#"{"median_ttft_ms":80.5,"p99_ttft_ms":91.5,"completed":100}"#;
        check(vllm_bench, vllm, (80.5, 91.5, 100.0));
        let steady = r#"{"median_ttft_ms":80.5,"p99_ttft_ms":91.5,"completed":100,"steady_state":{
            "median_ttft_ms":80.1,"percentiles_ttft_ms":[[90.0,82.0],[99.0,83.0]]}}"#;
        check(vllm_bench, steady, (80.1, 83.0, 100.0));
        let mlc = r#"{"n_samples_completed":17,"n_samples_failed":2,
            "ttft":{"median":80000000.0,"percentiles":{"99.0":90000000.0}}}"#;
        check(endpoints, mlc, (80.0, 90.0, 15.0));
        let nvidia = r#"{"time_to_first_token":{"unit":"ms","p50":126.9,"p99":163.4},
            "request_count":{"unit":"requests","avg":13.0}}"#;
        check(aiperf, nvidia, (126.9, 163.4, 13.0));
        let guide = r#"{"benchmarks":[{"metrics":{"time_to_first_token_ms":{"successful":{"count":12,
            "percentiles":{"p50":156.8,"p99":230.3}}}},"warnings":[
            {"code":"root_late","message":"p95 was late.","note":"So it was."}]}]}"#;
        let kubernetes = r#"{"successes":{"count":17,"latency":{"time_to_first_token":{"median":0.5,
            "p99":0.75}}}}"#;
        check(inference_perf, kubernetes, (500.0, 750.0, 17.0));
        let report = check(guidellm, guide, (156.8, 230.3, 12.0));
        assert_eq!(report.limit, LimitNotice::InReport("p95 was late. So it was.".to_owned()));
    }
}
