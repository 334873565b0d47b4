//! The arguments of a client, and its report: a few requests, not a duration.

use std::fs;
use std::path::Path;

use serde_json::Value;
use xtask::verb::Result;

use super::scenarios::Load;
use crate::clients::client::{Client, InstalledClient};
use crate::clients::hub::{self, PROMPT_TOKENS};
use crate::clients::server::MODEL;
use crate::process::Finished;

/// Timeout of a request, for clients that have the option. An answer takes two seconds at most.
const TIMEOUT_S: u64 = 5;

/// A client's own figures; absent what it does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportedFigures {
    /// Requests.
    pub good: Option<f64>,
    pub failed: Option<f64>,
    /// Median time to the first output.
    pub first_ms: Option<f64>,
    /// Median time of an output token after the first.
    pub token_ms: Option<f64>,
    /// Mean output tokens of a request.
    pub tokens: Option<f64>,
    pub good_per_s: Option<f64>,
}

/// Arguments of a client for a load of requests of a given length. `None` for one that has no
/// chats of a given length.
pub fn arguments(
    installed: &InstalledClient,
    url: &str,
    load: Load,
    tokens: u64,
    folder: &Path,
) -> Result<Option<Vec<String>>> {
    let Load { requests, streams } = load;
    let files = folder.display();
    let text = match installed.client {
        Client::Plimsoll => format!(
            "run llm-chat {url} --clients {streams} -n {requests} --no-check --timeout {TIMEOUT_S}s \
             --input-tokens {PROMPT_TOKENS} --output-tokens {tokens} --progress none --json \
             --out {files}/run"
        ),
        Client::VllmBench => format!(
            "--backend openai-chat --base-url {url} --model {MODEL} --tokenizer {} \
             --dataset-name random --random-input-len {PROMPT_TOKENS} --random-output-len {tokens} \
             --ignore-eos --num-prompts {requests} --max-concurrency {streams} \
             --percentile-metrics ttft,tpot,itl --save-result --result-dir {files} \
             --result-filename out.json",
            installed.tokenizer.display(),
        ),
        Client::Endpoints => {
            hub::prompts(&folder.join("prompts.jsonl"), tokens)?;
            format!(
                "benchmark online --endpoints {url} --model {MODEL} --dataset prompts.jsonl \
                 --load-pattern concurrency --concurrency {streams} --num-samples {requests} \
                 --streaming on --max-output-tokens {tokens} --workers 1 --tokenizer {} \
                 --performance-drain-timeout {TIMEOUT_S} --report-dir {files}/out",
                installed.tokenizer.display(),
            )
        }
        Client::AiPerf => format!(
            "profile -m {MODEL} -u {url} --endpoint-type chat --streaming --concurrency {streams} \
             --request-count {requests} --request-timeout-seconds {TIMEOUT_S} --tokenizer {MODEL} \
             --use-server-token-count --isl {PROMPT_TOKENS} --isl-stddev 0 --osl {tokens} \
             --osl-stddev 0 --extra-inputs ignore_eos:true --no-gpu-telemetry --no-server-metrics \
             --ui none --artifact-dir {files}/out"
        ),
        Client::GuideLlm => {
            hub::prompts(&folder.join("prompts.json"), tokens)?;
            format!(
                "run --backend kind=openai_http,target={url},model={MODEL},timeout={TIMEOUT_S} \
                 --profile kind=concurrent,streams={streams} \
                 --constraint kind=max_requests,count={requests} \
                 --tokenizer kind=huggingface_auto,model={MODEL} \
                 --data kind=json_file,path={files}/prompts.json \
                 --output kind=json,path={files}/out.json --disable-progress"
            )
        }
        Client::PlimsollAsleep | Client::InferencePerf => return Ok(None),
    };
    Ok(Some(text.split_whitespace().map(str::to_owned).collect()))
}

/// Reads the report of a client that wrote into `folder`.
pub fn read(client: Client, finished: &Finished, folder: &Path) -> Result<ReportedFigures> {
    let file = |name: &str| -> Result<Value> {
        let text = fs::read_to_string(folder.join(name)).map_err(|_| failure_message(finished))?;
        serde_json::from_str(&text).map_err(|e| format!("its report: {e}"))
    };
    match client {
        Client::Plimsoll => {
            let result = serde_json::from_str(&finished.output);
            Ok(plimsoll(&result.map_err(|_| failure_message(finished))?))
        }
        Client::VllmBench => Ok(vllm_bench(&file("out.json")?)),
        Client::Endpoints => Ok(endpoints(&file("out/performance/result_summary.json")?)),
        Client::AiPerf => Ok(aiperf(&file("out/profile_export_aiperf.json")?)),
        Client::GuideLlm => Ok(guidellm(&file("out.json")?)),
        Client::PlimsollAsleep | Client::InferencePerf => Err("no report is read".to_owned()),
    }
}

/// Frames of messages on a terminal.
const FRAME: &[char] = &['│', '─', '╭', '╮', '╰', '╯', ' '];
/// Lines that lead to the last one of an error.
const LINES_BEFORE: usize = 3;

/// The exit code of a client that gave no report, and its last error text.
fn failure_message(finished: &Finished) -> String {
    let output = [finished.output.as_str(), &finished.errors].join("\n");
    let lines: Vec<&str> = output
        .lines()
        .map(|line| line.trim_matches(FRAME))
        .filter(|line| !line.is_empty())
        .collect();
    let is_error = |line: &&str| line.to_lowercase().contains("error");
    let last = lines.iter().rposition(is_error).unwrap_or(lines.len().saturating_sub(1));
    let message = lines.get(last.saturating_sub(LINES_BEFORE)..=last).unwrap_or_default().join(" ");
    let code =
        finished.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    format!("{code}: {message}")
}

fn plimsoll(result: &Value) -> ReportedFigures {
    let point = &result["points"][0];
    let (chat, generation) = (&point["ops"]["chat"], &point["generation"]);
    let ms = |times: &str| generation[times]["p50"].as_f64().map(|ns| ns / 1e6);
    let failed = chat["errors"].as_f64();
    ReportedFigures {
        good: chat["count"].as_f64().zip(failed).map(|(count, failed)| count - failed),
        failed,
        first_ms: ms("first_output_ns"),
        token_ms: ms("later_token_time_ns"),
        tokens: generation["output_tokens"]["mean"].as_f64(),
        good_per_s: point["achieved_ops_per_s"].as_f64(),
    }
}

fn vllm_bench(result: &Value) -> ReportedFigures {
    let good = result["completed"].as_f64();
    let tokens = result["total_output_tokens"].as_f64();
    ReportedFigures {
        good,
        failed: result["failed"].as_f64(),
        first_ms: result["median_ttft_ms"].as_f64(),
        token_ms: result["median_tpot_ms"].as_f64(),
        tokens: tokens.zip(good).map(|(tokens, good)| tokens / good),
        good_per_s: result["request_throughput"].as_f64(),
    }
}

/// It counts failed requests among the completed ones.
fn endpoints(summary: &Value) -> ReportedFigures {
    let ms = |times: &str| summary[times]["median"].as_f64().map(|ns| ns / 1e6);
    let (all, failed) =
        (summary["n_samples_completed"].as_f64(), summary["n_samples_failed"].as_f64());
    ReportedFigures {
        good: all.zip(failed).map(|(all, failed)| all - failed),
        failed,
        first_ms: ms("ttft"),
        token_ms: ms("tpot"),
        tokens: summary["output_sequence_lengths"]["avg"].as_f64(),
        good_per_s: summary["qps"].as_f64(),
    }
}

fn aiperf(export: &Value) -> ReportedFigures {
    let of = |metric: &str, which: &str| export[metric][which].as_f64();
    ReportedFigures {
        good: of("request_count", "avg"),
        failed: of("error_request_count", "avg"),
        first_ms: of("time_to_first_token", "p50"),
        token_ms: of("inter_token_latency", "p50"),
        tokens: of("output_sequence_length", "avg"),
        good_per_s: of("request_throughput", "avg"),
    }
}

fn guidellm(report: &Value) -> ReportedFigures {
    let metrics = &report["benchmarks"][0]["metrics"];
    let totals = &metrics["request_totals"];
    let of = |metric: &str| &metrics[metric]["successful"];
    ReportedFigures {
        good: totals["successful"].as_f64(),
        failed: totals["errored"].as_f64(),
        first_ms: of("time_to_first_token_ms")["percentiles"]["p50"].as_f64(),
        token_ms: of("inter_token_latency_ms")["percentiles"]["p50"].as_f64(),
        tokens: of("output_token_count")["mean"].as_f64(),
        good_per_s: of("requests_per_second")["mean"].as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_read_as_it_writes() {
        let check = |read: fn(&Value) -> ReportedFigures, text: &str| {
            let figures = read(&serde_json::from_str(text).unwrap());
            let expected = ReportedFigures {
                good: Some(15.0),
                failed: Some(1.0),
                first_ms: Some(80.0),
                token_ms: Some(10.0),
                tokens: Some(20.0),
                good_per_s: Some(4.0),
            };
            assert_eq!(figures, expected, "{text}");
        };
        let ours = r#"{"points":[{"achieved_ops_per_s":4.0,"ops":{"chat":{"count":16,"errors":1}},
            "generation":{"first_output_ns":{"p50":80000000},"later_token_time_ns":{"p50":10000000},
            "output_tokens":{"mean":20.0}}}]}"#;
        check(plimsoll, ours);
        let vllm = r#"{"completed":15,"failed":1,"median_ttft_ms":80.0,"median_tpot_ms":10.0,
            "total_output_tokens":300,"request_throughput":4.0}"#;
        check(vllm_bench, vllm);
        let mlc = r#"{"n_samples_completed":16,"n_samples_failed":1,"ttft":{"median":80000000.0},
            "tpot":{"median":10000000.0},"output_sequence_lengths":{"avg":20.0},"qps":4.0}"#;
        check(endpoints, mlc);
        let nvidia = r#"{"request_count":{"avg":15.0},"error_request_count":{"avg":1.0},
            "time_to_first_token":{"p50":80.0},"inter_token_latency":{"p50":10.0},
            "output_sequence_length":{"avg":20.0},"request_throughput":{"avg":4.0}}"#;
        check(aiperf, nvidia);
        let guide = r#"{"benchmarks":[{"metrics":{"request_totals":{"successful":15,"errored":1},
            "time_to_first_token_ms":{"successful":{"percentiles":{"p50":80.0}}},
            "inter_token_latency_ms":{"successful":{"percentiles":{"p50":10.0}}},
            "output_token_count":{"successful":{"mean":20.0}},
            "requests_per_second":{"successful":{"mean":4.0}}}}]}"#;
        check(guidellm, guide);
    }
}
