//! What language-model servers run out of.

use plimsoll_model::limit::LimitFacts;
use plimsoll_model::units::{three_digits, whole_percent};

pub(super) fn text(facts: &LimitFacts) -> Option<String> {
    Some(match facts {
        LimitFacts::Batch { running, running_max, waiting } => format!(
            "the batch: {} of at most {} requests were running and {} waited for a place",
            three_digits(*running),
            three_digits(*running_max),
            three_digits(*waiting),
        ),
        LimitFacts::KvCache { used_ratio, waiting, preempted_per_s } => {
            let preempted = preempted_per_s
                .filter(|rate| *rate > 0.0)
                .map(|rate| format!(", and {} a second lost theirs", three_digits(rate)));
            format!(
                "the KV cache: {} of it was in use and {} requests waited for room{}",
                whole_percent(*used_ratio),
                three_digits(*waiting),
                preempted.unwrap_or_default(),
            )
        }
        LimitFacts::Gpu { gpu, busy_ratio, memory_busy_ratio } => {
            let memory = memory_busy_ratio
                .map(|ratio| format!(", its memory for {} of the time", whole_percent(ratio)));
            format!(
                "GPU {gpu}: it was busy for {} of the time{}",
                whole_percent(*busy_ratio),
                memory.unwrap_or_default(),
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "batch", "running": 63.9, "running_max": 64.0, "waiting": 12.04}"#,
            "the batch: 63.9 of at most 64.0 requests were running and 12.0 waited for a place",
        ),
        (
            r#"{"kind": "kv_cache", "used_ratio": 0.98, "waiting": 3.0, "preempted_per_s": 0.0}"#,
            "the KV cache: 98 % of it was in use and 3.00 requests waited for room",
        ),
        (
            r#"{"kind": "kv_cache", "used_ratio": 0.98, "waiting": 3.0, "preempted_per_s": 2.5}"#,
            "the KV cache: 98 % of it was in use and 3.00 requests waited for room, and 2.50 a \
             second lost theirs",
        ),
        (
            r#"{"kind": "gpu", "gpu": "1", "busy_ratio": 0.97, "memory_busy_ratio": null}"#,
            "GPU 1: it was busy for 97 % of the time",
        ),
        (
            r#"{"kind": "gpu", "gpu": "1", "busy_ratio": 0.97, "memory_busy_ratio": 0.4}"#,
            "GPU 1: it was busy for 97 % of the time, its memory for 40 % of the time",
        ),
    ];

    #[test]
    fn each_limit_has_its_sentence() {
        check(SENTENCES);
    }
}
