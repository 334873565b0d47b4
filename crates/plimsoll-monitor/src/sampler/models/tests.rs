use plimsoll_model::units::NANOS_PER_SECOND;

use super::*;
use crate::parse::parse_prometheus;

/// Rows of two texts, two seconds apart.
fn sampled(texts: [&str; 2]) -> (Rows, Rows) {
    let (mut models, mut gpus) = (Rows::new(&MODELS), Rows::new(&GPUS));
    let mut was = None;
    for text in texts {
        models.clear();
        gpus.clear();
        let samples = parse_prometheus(text);
        let metrics = Metrics::from_samples(&samples);
        let is = ModelTotals::from_metrics(&metrics);
        sample(("", &metrics), (was, is), (&mut models, &mut gpus));
        was = Some((Elapsed::from_ns(2 * NANOS_PER_SECOND), is));
    }
    (models, gpus)
}

#[track_caller]
fn check(texts: [&str; 2], expected: &[(&str, Option<f64>)]) {
    let (models, _) = sampled(texts);
    for (column, value) in expected {
        assert_eq!(models.value("", column), *value, "{column}");
    }
}

const VLLM: &str = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 30\n\
    vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 34\n\
    vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7\n\
    vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.5\n\
    vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.7\n\
    vllm:num_preemptions_total{engine=\"0\",model_name=\"m\"} 3\n\
    vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 1000\n\
    vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 200\n\
    vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 1000\n\
    vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 400\n";

#[test]
fn vllm_tells_its_batch_its_cache_and_tokens_as_rates_over_all_engines() {
    let later = VLLM
        .replace("total{engine=\"0\",model_name=\"m\"} 1000", "total{engine=\"0\"} 3000")
        .replace("tokens_total{engine=\"0\",model_name=\"m\"} 200", "tokens_total 700")
        .replace("hits_total{engine=\"0\",model_name=\"m\"} 400", "hits_total 900");
    check(
        [VLLM, &later],
        &[
            ("running", Some(64.0)),
            ("waiting", Some(7.0)),
            ("kv_cache", Some(0.6)),
            ("preemptions", Some(0.0)),
            ("prompt_tokens", Some(1_000.0)),
            ("output_tokens", Some(250.0)),
            ("prefix_hits", Some(0.25)),
        ],
    );
    check([VLLM, "vllm:gpu_cache_usage_perc 0.25\n"], &[("kv_cache", Some(0.25))]);
}

#[test]
fn a_server_that_was_started_anew_has_no_rate_and_one_without_a_figure_no_zero() {
    let restarted = VLLM.replace("} 200\n", "} 20\n");
    check([VLLM, &restarted], &[("output_tokens", None), ("prefix_hits", None)]);
    check([VLLM, "vllm:num_requests_running 1\n"], &[("running", Some(1.0)), ("waiting", None)]);
}

/// As build 11549 writes it, without its comments.
const LLAMA: &str = "llamacpp:prompt_tokens_total 18\nllamacpp:prompt_tokens_cached_total 0\n\
    llamacpp:tokens_predicted_total 6\nllamacpp:n_decode_total 6\n\
    llamacpp:requests_processing 4\nllamacpp:requests_deferred 12\n";

#[test]
fn the_prompts_of_llama_cpp_include_what_it_found_in_its_cache() {
    let later = LLAMA
        .replace("tokens_total 18", "tokens_total 28")
        .replace("cached_total 0", "cached_total 30")
        .replace("predicted_total 6", "predicted_total 106");
    check(
        [LLAMA, &later],
        &[
            ("running", Some(4.0)),
            ("waiting", Some(12.0)),
            ("kv_cache", None),
            ("prompt_tokens", Some(20.0)),
            ("output_tokens", Some(50.0)),
            ("prefix_hits", Some(0.75)),
        ],
    );
}

#[test]
fn sglang_and_tgi_are_known_by_their_names() {
    let sglang = "sglang:num_running_reqs{model_name=\"m\"} 8\nsglang:num_queue_reqs 4\n\
                  sglang:token_usage 0.52\n";
    let expected = [("running", Some(8.0)), ("waiting", Some(4.0)), ("kv_cache", Some(0.52))];
    check([sglang; 2], &expected);
    let tgi = "tgi_batch_current_size 3\ntgi_queue_size 2\ntgi_request_generated_tokens_sum 10\n";
    check([tgi; 2], &[("running", Some(3.0)), ("waiting", Some(2.0)), ("kv_cache", None)]);
}

/// As dcgm-exporter writes it, with fewer labels.
const DCGM: &str = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",modelName=\"T4\"} 97\n\
    DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",modelName=\"T4\"} 40\n\
    DCGM_FI_DEV_FB_USED{gpu=\"0\",modelName=\"T4\"} 3072\n\
    DCGM_FI_DEV_FB_FREE{gpu=\"0\",modelName=\"T4\"} 1024\n\
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",modelName=\"T4\"} 0.9\n\
    DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\",modelName=\"T4\"} 0.8\n";

#[test]
fn gpus_have_a_row_each_and_the_profiled_figure_where_there_is_one() {
    let (models, gpus) = sampled([DCGM; 2]);
    assert!(models.rows().is_empty());
    assert_eq!((gpus.value("0", "busy"), gpus.value("1", "busy")), (Some(0.9), Some(0.4)));
    assert_eq!((gpus.value("0", "memory_busy"), gpus.value("1", "memory_busy")), (Some(0.8), None));
    let memory = ["memory_used", "memory_total"].map(|column| gpus.value("0", column));
    assert_eq!(memory, [Some(3.0 * 1024.0 * MIB), Some(4.0 * 1024.0 * MIB)]);
}

#[test]
fn other_texts_are_nobodys() {
    let who = |text: &str| exporter_name(&Metrics::from_samples(&parse_prometheus(text)));
    assert_eq!(who("node_load1 3\nvllm_like 2\n"), None);
    assert_eq!((who(VLLM), who(DCGM)), (Some("vLLM"), Some("DCGM exporter")));
}
