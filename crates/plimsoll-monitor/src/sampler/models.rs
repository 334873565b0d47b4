//! Figures that language-model servers and GPU exporters report, by the names that each kind of
//! server uses. They come with the other figures that servers are polled for.

use std::collections::BTreeSet;

use super::Elapsed;
use super::table::{Column, Rows, Table, Unit};
use crate::parse::Metrics;

pub(super) static MODELS: Table = Table::keyed("model").columns(&[
    Column::drawn("running", Unit::Count),
    Column::drawn("waiting", Unit::Count),
    Column::drawn("kv_cache", Unit::Ratio),
    Column::summed("preemptions", Unit::PerSecond),
    Column::summed("prompt_tokens", Unit::PerSecond),
    Column::summed("output_tokens", Unit::PerSecond),
    Column::summed("prefix_hits", Unit::Ratio),
]);

pub(super) static GPUS: Table = Table::keyed("gpu").columns(&[
    Column::drawn("busy", Unit::Ratio),
    Column::summed("memory_busy", Unit::Ratio),
    Column::summed("memory_used", Unit::Bytes),
    Column::summed("memory_total", Unit::Bytes),
]);

/// A figure that a language-model server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    /// Requests in the batch, now.
    Running,
    /// Requests that wait for a slot in it, now.
    Waiting,
    /// Part of the KV cache that requests use, now.
    KvCache,
    /// Requests that were preempted for lack of KV cache, so far.
    Preemptions,
    /// Prompt tokens so far, cached ones included.
    PromptTokens,
    /// Generated tokens so far.
    OutputTokens,
    /// Prompt tokens that were looked for in the cache of prefixes, so far.
    PrefixQueries,
    /// Those of them that were hits.
    PrefixHits,
}

/// Kinds of servers and the names of their figures: several names are added. Of two lines for a
/// figure the first that the server has is taken, so that older names follow newer ones.
const SERVERS: &[(&str, Names)] = &[
    (
        // vllm/v1/metrics/loggers.py; the client library adds `_total` to counters.
        "vLLM",
        &[
            (Figure::Running, &["vllm:num_requests_running"]),
            (Figure::Waiting, &["vllm:num_requests_waiting"]),
            (Figure::KvCache, &["vllm:kv_cache_usage_perc"]),
            (Figure::KvCache, &["vllm:gpu_cache_usage_perc"]),
            (Figure::Preemptions, &["vllm:num_preemptions_total"]),
            (Figure::PromptTokens, &["vllm:prompt_tokens_total"]),
            (Figure::OutputTokens, &["vllm:generation_tokens_total"]),
            (Figure::PrefixQueries, &["vllm:prefix_cache_queries_total"]),
            (Figure::PrefixQueries, &["vllm:gpu_prefix_cache_queries_total"]),
            (Figure::PrefixHits, &["vllm:prefix_cache_hits_total"]),
            (Figure::PrefixHits, &["vllm:gpu_prefix_cache_hits_total"]),
        ],
    ),
    (
        "SGLang",
        &[
            (Figure::Running, &["sglang:num_running_reqs"]),
            (Figure::Waiting, &["sglang:num_queue_reqs"]),
            (Figure::KvCache, &["sglang:token_usage"]),
            (Figure::Preemptions, &["sglang:num_retracted_requests_total"]),
            (Figure::PromptTokens, &["sglang:prompt_tokens_total"]),
            (Figure::OutputTokens, &["sglang:generation_tokens_total"]),
            (Figure::PrefixQueries, &["sglang:prompt_tokens_total"]),
            (Figure::PrefixHits, &["sglang:cached_tokens_total"]),
        ],
    ),
    (
        // Its counter of prompt tokens leaves cached ones out.
        "llama.cpp",
        &[
            (Figure::Running, &["llamacpp:requests_processing"]),
            (Figure::Waiting, &["llamacpp:requests_deferred"]),
            (Figure::KvCache, &["llamacpp:kv_cache_usage_ratio"]),
            (Figure::PromptTokens, LLAMA_PROMPTS),
            (Figure::OutputTokens, &["llamacpp:tokens_predicted_total"]),
            (Figure::PrefixQueries, LLAMA_PROMPTS),
            (Figure::PrefixHits, &["llamacpp:prompt_tokens_cached_total"]),
        ],
    ),
    (
        // Tokens are sums of histograms.
        "TGI",
        &[
            (Figure::Running, &["tgi_batch_current_size"]),
            (Figure::Waiting, &["tgi_queue_size"]),
            (Figure::PromptTokens, &["tgi_request_input_length_sum"]),
            (Figure::OutputTokens, &["tgi_request_generated_tokens_sum"]),
        ],
    ),
];
const LLAMA_PROMPTS: &[&str] =
    &["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"];

/// Label of NVIDIA's DCGM exporter for each GPU. Its figures are percent, MiB and ratios.
const GPU: &str = "gpu";
const GPU_UTIL: &str = "DCGM_FI_DEV_GPU_UTIL";
const GPU_ENGINE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const GPU_DRAM: &str = "DCGM_FI_PROF_DRAM_ACTIVE";
const GPU_MEMORY_USED: &str = "DCGM_FI_DEV_FB_USED";
const GPU_MEMORY_FREE: &str = "DCGM_FI_DEV_FB_FREE";
const MIB: f64 = 1024.0 * 1024.0;

/// The kind of server or exporter that reports these; `None` where it is unknown.
pub(crate) fn exporter_name(metrics: &Metrics<'_>) -> Option<&'static str> {
    server_of(metrics).map(|(name, _)| name).or_else(|| {
        let gpus = [GPU_UTIL, GPU_ENGINE, GPU_DRAM, GPU_MEMORY_USED];
        gpus.iter().any(|name| metrics.has(name)).then_some("DCGM exporter")
    })
}

type Names = &'static [(Figure, &'static [&'static str])];

fn server_of(metrics: &Metrics<'_>) -> Option<(&'static str, Names)> {
    let has_any =
        |names: &Names| names.iter().any(|(_, of)| of.iter().any(|name| metrics.has(name)));
    SERVERS.iter().copied().find(|(_, names)| has_any(names))
}

/// Totals of which rates are made.
const TOTALS: [Figure; 5] = [
    Figure::Preemptions,
    Figure::PromptTokens,
    Figure::OutputTokens,
    Figure::PrefixQueries,
    Figure::PrefixHits,
];

/// Their values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ModelTotals([Option<f64>; TOTALS.len()]);

impl ModelTotals {
    pub(super) fn from_metrics(metrics: &Metrics<'_>) -> Self {
        let names = server_of(metrics).map_or(&[][..], |(_, names)| names);
        Self(TOTALS.map(|figure| figure_total(metrics, (names, figure))))
    }

    fn get(&self, figure: Figure) -> Option<f64> {
        self.0[TOTALS.iter().position(|of| *of == figure)?]
    }
}

/// Sum over the names of a figure, and over their labels: a server with several engines has a line
/// for each.
fn figure_total(metrics: &Metrics<'_>, (names, requested): (Names, Figure)) -> Option<f64> {
    let mut matching = names.iter().filter(|(figure, _)| *figure == requested);
    let sum = |(_, of): &(Figure, &[&str])| {
        of.iter().filter_map(|name| metrics.sum(name)).reduce(|a, b| a + b)
    };
    matching.find_map(sum)
}

/// The rows of a text; `was` are the totals of the text before and the time since then.
pub(super) fn sample(
    (key, metrics): (&str, &Metrics<'_>),
    (was, is): (Option<(Elapsed, ModelTotals)>, ModelTotals),
    (models, gpus): (&mut Rows, &mut Rows),
) {
    if let Some((_, names)) = server_of(metrics) {
        let gauge = |figure| figure_total(metrics, (names, figure));
        let grown = |figure| {
            let (_, was) = was.as_ref()?;
            Some(is.get(figure)? - was.get(figure)?).filter(|grown| *grown >= 0.0)
        };
        let rate = |figure| Some(grown(figure)? / was.as_ref()?.0.0?);
        let queries = grown(Figure::PrefixQueries).filter(|queries| *queries > 0.0);
        let hits = grown(Figure::PrefixHits);
        models.push(
            key,
            &[
                gauge(Figure::Running),
                gauge(Figure::Waiting),
                kv_cache(metrics, names),
                rate(Figure::Preemptions),
                rate(Figure::PromptTokens),
                rate(Figure::OutputTokens),
                hits.zip(queries).map(|(hits, queries)| hits / queries),
            ],
        );
    }
    sample_gpus(metrics, gpus);
}

/// Mean over the engines, each of which has its own cache.
fn kv_cache(metrics: &Metrics<'_>, names: Names) -> Option<f64> {
    let matching = names.iter().filter(|(figure, _)| *figure == Figure::KvCache);
    matching.flat_map(|(_, of)| of.iter()).find_map(|name| metrics.mean(name))
}

fn sample_gpus(metrics: &Metrics<'_>, gpus: &mut Rows) {
    let by = |name| metrics.by(name, GPU);
    let (util, engine, dram) = (by(GPU_UTIL), by(GPU_ENGINE), by(GPU_DRAM));
    let (used, free) = (by(GPU_MEMORY_USED), by(GPU_MEMORY_FREE));
    let keys: BTreeSet<&String> =
        [&util, &engine, &dram, &used].into_iter().flat_map(|of| of.keys()).collect();
    for key in keys {
        let used = used.get(key).map(|mib| mib * MIB);
        let free = free.get(key).map(|mib| mib * MIB);
        gpus.push(
            key,
            &[
                engine.get(key).copied().or_else(|| util.get(key).map(|percent| percent / 100.0)),
                dram.get(key).copied(),
                used,
                used.zip(free).map(|(used, free)| used + free),
            ],
        );
    }
}

#[cfg(test)]
mod tests;
