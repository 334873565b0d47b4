//! The clients: the path of each, its version, and the command that makes it run a job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use xtask::verb::Result;
use xtask::{command, workspace};

use super::hub::{self, PROMPT_TOKENS};
use super::server::{Law, MODEL};
use crate::network::Network;

/// Requests of those that want a number and not a time: a slow one is done at some point.
const SLOW_REQUESTS_MAX: u64 = 2_000;
/// Of those that have a warm-up.
const WARM_UP_S: u64 = 2;

/// One of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// As a user has it: it stays awake while chunks are due.
    Plimsoll,
    /// The same, asleep between chunks as the others are, for what a chunk costs.
    PlimsollAsleep,
    /// The client of vLLM that is written in Rust, with the output of `vllm bench serve`.
    VllmBench,
    /// The reference client of MLPerf Endpoints.
    Endpoints,
    AiPerf,
    GuideLlm,
    InferencePerf,
}

/// What one run is to do.
pub struct Job<'a> {
    pub url: &'a str,
    pub law: Law,
    pub streams: u32,
    pub seconds: u64,
    pub cores: &'a [u32],
    /// For its files; empty.
    pub folder: &'a Path,
}

impl Job<'_> {
    /// The number that a client without delays sends in the seconds.
    fn requests(&self) -> u64 {
        u64::from(self.streams) * (self.seconds * 1_000).div_ceil(self.law.response_ms())
    }
}

/// A client that is installed.
pub struct InstalledClient {
    pub client: Client,
    program: PathBuf,
    pub version: String,
    /// A cache of the Hugging Face hub with the tokenizer, and the tokenizer's folder in it.
    hub: PathBuf,
    pub tokenizer: PathBuf,
}

impl Client {
    pub const ALL: [Self; 7] = [
        Self::Plimsoll,
        Self::PlimsollAsleep,
        Self::VllmBench,
        Self::Endpoints,
        Self::AiPerf,
        Self::GuideLlm,
        Self::InferencePerf,
    ];

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plimsoll => "Plimsoll",
            Self::PlimsollAsleep => "Plimsoll `--pacing coalesce`",
            Self::VllmBench => "vLLM's bench in Rust",
            Self::Endpoints => "MLCommons endpoints",
            Self::AiPerf => "AIPerf",
            Self::GuideLlm => "GuideLLM",
            Self::InferencePerf => "inference-perf",
        }
    }

    /// Its name among the rivals: a virtual environment, or the program.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::PlimsollAsleep => "asleep",
            Self::VllmBench => "vllm-bench",
            Self::Endpoints => "endpoints",
            Self::AiPerf => "aiperf",
            Self::GuideLlm => "guidellm",
            Self::InferencePerf => "infperf",
        }
    }

    /// Its package and its command, if it is a Python program.
    fn package(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Plimsoll | Self::PlimsollAsleep | Self::VllmBench => None,
            Self::Endpoints => Some(("inference-endpoint", "inference-endpoint")),
            Self::AiPerf => Some(("aiperf", "aiperf")),
            Self::GuideLlm => Some(("guidellm", "guidellm")),
            Self::InferencePerf => Some(("inference-perf", "inference-perf")),
        }
    }

    /// Where it is, if it is installed: below the folder of the rivals, else on the PATH.
    pub fn find(self, rivals: Option<&Path>, plimsoll: &Path) -> Option<InstalledClient> {
        let rival_folder = rivals.map(|rivals| rivals.join(self.folder()));
        let name = self.package().map_or(self.folder(), |(_, command)| command);
        let program = match (self, rival_folder) {
            (Self::Plimsoll | Self::PlimsollAsleep, _) => Some(plimsoll.to_owned()),
            (Self::VllmBench, Some(program)) => Some(program),
            (_, Some(environment)) => Some(environment.join("bin").join(name)),
            (_, None) => command::find(name),
        };
        let program = program.filter(|program| program.is_file())?;
        let version = self.version(&program).unwrap_or_else(|| "version not known".to_owned());
        let hub = workspace::target().join("lab-clients/hub");
        let tokenizer = hub::tokenizer(&hub).ok()?;
        Some(InstalledClient { client: self, program, version, hub, tokenizer })
    }

    fn version(self, program: &Path) -> Option<String> {
        let mut query = match self.package() {
            None => Command::new(program),
            Some(_) => Command::new(program.with_file_name("python")),
        };
        match self.package() {
            None => query.arg("--version"),
            Some((package, _)) => query.args([
                "-c",
                &format!("import importlib.metadata as m; print(m.version('{package}'))"),
            ]),
        };
        let printed = command::output(&mut query).ok()?;
        printed
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
            .map(str::to_owned)
    }
}

impl InstalledClient {
    /// The command for a job, pinned to its cores.
    pub fn command(&self, job: &Job) -> Result<Command> {
        Ok(self.with(&self.arguments(job)?, job.cores, job.folder))
    }

    /// The program with these arguments, pinned to these cores, with its files below `folder`.
    pub fn with(&self, arguments: &[String], cores: &[u32], folder: &Path) -> Command {
        let mut command = Network::Host.pinned_to(cores, &self.program.to_string_lossy());
        command.args(arguments).env("HF_HUB_OFFLINE", "1").env("HF_HUB_CACHE", &self.hub);
        command.env("HF_HOME", folder.join("hf")).current_dir(folder);
        command
    }

    fn arguments(&self, job: &Job) -> Result<Vec<String>> {
        let Job { url, law, streams, seconds, folder, .. } = job;
        let (chunks, files) = (law.chunks, folder.display());
        let text = match self.client {
            Client::Plimsoll | Client::PlimsollAsleep => format!(
                "run llm-chat {url} --clients {streams} --for {seconds}s --warm-up {WARM_UP_S}s \
                 --input-tokens {PROMPT_TOKENS} --output-tokens {chunks} --progress none --json \
                 --out {files}/run {}",
                if self.client == Client::PlimsollAsleep { "--pacing coalesce" } else { "" }
            ),
            Client::VllmBench => format!(
                "--backend openai-chat --base-url {url} --model {MODEL} --tokenizer {} \
                 --dataset-name random --random-input-len {PROMPT_TOKENS} --random-output-len {chunks} \
                 --ignore-eos --num-prompts {} --max-concurrency {streams} --percentile-metrics ttft \
                 --metric-percentiles 99 --save-result --result-dir {files} --result-filename out.json",
                self.tokenizer.display(),
                job.requests(),
            ),
            Client::Endpoints => {
                hub::prompts(&folder.join("prompts.jsonl"), chunks)?;
                // By default it starts ten workers, which share the core with each other.
                let workers = if job.cores.len() == 1 { "--workers 1" } else { "" };
                format!(
                    "benchmark online --endpoints {url} --model {MODEL} --dataset prompts.jsonl \
                     --load-pattern concurrency --concurrency {streams} --num-samples {} \
                     --streaming on --max-output-tokens {chunks} {workers} --warmup \
                     --warmup-requests {} --report-dir {files}/out",
                    job.requests().min(2 * SLOW_REQUESTS_MAX),
                    2 * streams,
                )
            }
            Client::AiPerf => format!(
                "profile -m {MODEL} -u {url} --endpoint-type chat --streaming --concurrency {streams} \
                 --benchmark-duration {seconds} --warmup-duration {WARM_UP_S} --tokenizer {MODEL} \
                 --use-server-token-count \
                 --isl {PROMPT_TOKENS} --isl-stddev 0 --osl {chunks} --osl-stddev 0 \
                 --extra-inputs ignore_eos:true --no-gpu-telemetry --no-server-metrics --ui none \
                 --artifact-dir {files}/out"
            ),
            Client::GuideLlm => {
                hub::prompts(&folder.join("prompts.json"), chunks)?;
                format!(
                    "run --backend kind=openai_http,target={url},model={MODEL} \
                     --profile kind=concurrent,streams={streams},warmup={WARM_UP_S} \
                     --constraint kind=max_duration,seconds={} \
                     --tokenizer kind=huggingface_auto,model={MODEL} \
                     --data kind=json_file,path={files}/prompts.json \
                     --output kind=json,path={files}/out.json --disable-progress",
                    seconds + WARM_UP_S,
                )
            }
            Client::InferencePerf => {
                let path = folder.join("config.yml");
                let written = fs::write(&path, inference_perf(job));
                written.map_err(|e| format!("{}: {e}", path.display()))?;
                format!("--config_file {files}/config.yml")
            }
        };
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    /// The command as a reader may type it, for the page.
    pub fn shown(&self) -> Result<String> {
        let folder = crate::program::temporary()?;
        let law = super::FAST;
        let job = Job {
            url: "http://127.0.0.1:8000",
            law,
            streams: 100,
            seconds: 10,
            cores: &[0],
            folder: folder.path(),
        };
        let mut arguments = self.arguments(&job)?.join(" ");
        if self.client == Client::InferencePerf {
            arguments += &format!("   # which holds {}", inference_perf(&job));
        }
        let arguments = arguments
            .replace(&*folder.path().to_string_lossy(), "DIR")
            .replace(&*self.tokenizer.to_string_lossy(), "TOKENIZER");
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(format!("{name} {arguments}"))
    }
}

/// Its configuration is a file: YAML, of which JSON is a part. Its random prompts are for
/// completions only. One worker has at most 100 requests at a time by default.
fn inference_perf(job: &Job) -> String {
    let (streams, chunks) = (job.streams, job.law.chunks);
    let always = |tokens| json!({ "min": tokens, "max": tokens, "mean": tokens, "std_dev": 0 });
    let requests = job.requests().min(SLOW_REQUESTS_MAX);
    let workers = job.cores.len() as u32;
    json!({
        "api": { "type": "completion", "streaming": true },
        "data": {
            "type": "random",
            "input_distribution": always(u64::from(PROMPT_TOKENS)),
            "output_distribution": always(chunks),
        },
        "load": {
            "type": "concurrent",
            "num_workers": workers,
            "worker_max_concurrency": streams.div_ceil(workers),
            "interval": 0,
            "stages": [{ "num_requests": requests, "concurrency_level": streams }],
        },
        "server": {
            "type": "vllm",
            "model_name": MODEL,
            "base_url": job.url,
            "ignore_eos": true,
        },
        "tokenizer": { "pretrained_model_name_or_path": MODEL },
        "report": {
            "request_lifecycle": {
                "summary": true,
                "per_stage": false,
                "per_request": false,
                "use_server_output_tokens": true,
            },
        },
        "storage": { "local_storage": { "path": job.folder.join("out") } },
    })
    .to_string()
}
