//! The server's own figures, under vLLM's names where it has the same.

use std::fmt::Write as _;

use plimsoll_model::event::Times;

use super::law::Counts;

/// What is told.
pub(super) struct Figures<'a> {
    /// As JSON, which is as Prometheus quotes it.
    pub(super) model: &'a str,
    pub(super) counts: Counts,
    pub(super) kv_tokens: u64,
    pub(super) lateness: &'a Times,
}

impl Figures<'_> {
    /// In Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let Counts { running, waiting, held_tokens, preemptions, .. } = self.counts;
        let Counts { prompt_tokens, generation_tokens, prefix_queries, prefix_hits, .. } =
            self.counts;
        let kv_usage = held_tokens as f64 / self.kv_tokens.max(1) as f64;
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("vllm:num_requests_running", "gauge", "Requests in the batch.", running as f64),
            ("vllm:num_requests_waiting", "gauge", "Requests that wait.", waiting as f64),
            ("vllm:kv_cache_usage_perc", "gauge", "Share of KV tokens held; 1 is all.", kv_usage),
            ("vllm:num_preemptions_total", "counter", "Preemptions.", preemptions as f64),
            ("vllm:prompt_tokens_total", "counter", "Prompt tokens.", prompt_tokens as f64),
            ("vllm:generation_tokens_total", "counter", "Output tokens.", generation_tokens as f64),
            (
                "vllm:prefix_cache_queries_total",
                "counter",
                "Prompt tokens looked up.",
                prefix_queries as f64,
            ),
            ("vllm:prefix_cache_hits_total", "counter", "Those found.", prefix_hits as f64),
        ] {
            let model = self.model;
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            let _ = writeln!(text, "{name}{{model_name={model}}} {value}");
        }
        self.lateness(&mut text);
        text
    }

    fn lateness(&self, text: &mut String) {
        const NAME: &str = "plimsoll:chunk_lateness_seconds";
        let _ = writeln!(
            text,
            "# HELP {NAME} From a chunk's instant by the law until the kernel had it.\n\
             # TYPE {NAME} summary"
        );
        for quantile in [0.5, 0.99, 1.0] {
            let late_s = self.lateness.value_at_quantile(quantile) as f64 / 1e9;
            let _ = writeln!(text, "{NAME}{{quantile=\"{quantile}\"}} {late_s}");
        }
        let _ = writeln!(text, "{NAME}_count {}", self.lateness.len());
    }
}
