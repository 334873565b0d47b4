//! Servers of language models, by their own reports.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::limit::LimitKind;
use plimsoll_report::sentences::limit;

use super::{IDLE, ResourceMeans, here, idle_and, last, limit_at, limits, run};

/// Reports of a server with 64 slots with these numbers of requests running and waiting, and this
/// part of its memory in use.
fn model_means(running: f64, waiting: f64, kv_cache: f64) -> Vec<(&'static str, f64)> {
    idle_and(&[
        ("model.running", running),
        ("model.waiting", waiting),
        ("model.kv_cache", kv_cache),
        ("model.preemptions", 0.0),
    ])
}

fn kind(low: ResourceMeans<'_>, high: ResourceMeans<'_>) -> LimitKind {
    last(low, high).0
}

#[test]
fn a_batch_that_stays_at_its_most_while_requests_wait_is_the_limit() {
    let (low, high) = (model_means(4.0, 0.0, 0.05), model_means(63.5, 20.0, 0.6));
    assert_eq!(last(&low, &high), (LimitKind::Batch, None));
    let result = run(&[(800, &low), (990, &high), (1_000, &high)], here(), None);
    let text = result.summary.limit.unwrap();
    let expected =
        "the batch: 63.5 of at most 63.5 requests were running and 20.0 waited for a place";
    assert!(text.contains(expected), "{text}");
    let evidence = &result.points[2].limit.evidence;
    assert_eq!(evidence[1].low_load_value, Some(0.0), "{evidence:?}");
}

#[test]
fn a_batch_whose_size_goes_up_and_down_is_not_full() {
    let (low, middle, high) =
        (model_means(4.0, 0.0, 0.05), model_means(60.0, 2.0, 0.4), model_means(40.0, 20.0, 0.3));
    let kinds = limits(&[(800, &low), (990, &middle), (1_000, &high)]);
    assert_eq!(kinds[2].0, LimitKind::Unknown, "{kinds:?}");
    assert_eq!(kind(&low, &model_means(32.0, 0.2, 0.3)), LimitKind::Unknown, "nobody waits");
}

#[test]
fn a_cache_without_room_for_one_more_request_is_the_limit_and_not_the_batch() {
    let low = model_means(4.0, 0.0, 0.1);
    assert_eq!(kind(&low, &model_means(40.0, 20.0, 0.95)), LimitKind::KvCache);
    assert_eq!(kind(&low, &model_means(9.0, 20.0, 0.92)), LimitKind::KvCache, "a tenth is needed");
    assert_eq!(kind(&low, &model_means(9.0, 20.0, 0.85)), LimitKind::Batch);
    let mut preempting = model_means(40.0, 0.0, 0.97);
    preempting.retain(|(name, _)| *name != "model.preemptions");
    assert_eq!(kind(&low, &preempting), LimitKind::Unknown, "nobody waits");
    preempting.push(("model.preemptions", 3.0));
    let result = run(&[(800, &low), (990, &preempting), (1_000, &preempting)], here(), None);
    let text = limit::text(&result.points[2].limit);
    assert!(text.contains("the KV cache: 97 % of it was in use"), "{text}");
    assert!(text.contains("3.00 a second lost theirs"), "{text}");
}

#[test]
fn a_gpu_that_is_always_busy_is_the_limit_and_stands_behind_a_full_batch() {
    let gpu = [("gpu.0.busy", 0.97), ("gpu.0.memory_busy", 0.81), ("gpu.1.busy", 0.3)];
    let low = [model_means(4.0, 0.0, 0.05), vec![("gpu.0.busy", 0.5)]].concat();
    let high = [model_means(64.0, 0.0, 0.5), gpu.to_vec()].concat();
    assert_eq!(last(&low, &high), limit_at(LimitKind::Gpu, "GPU 0"));
    let both = [model_means(64.0, 30.0, 0.5), gpu.to_vec()].concat();
    let result = run(&[(800, &low), (990, &both), (1_000, &both)], here(), None);
    let limit = &result.points[2].limit;
    assert_eq!((limit.kind, limit.also[0].kind), (LimitKind::Batch, LimitKind::Gpu));
    let text = limit::text_with_others(limit);
    assert!(
        text.ends_with("GPU 0: it was busy for 97 % of the time, its memory for 81 % of the time")
    );
}

#[test]
fn full_processors_are_told_beside_a_full_batch() {
    let busy = [
        ("process.server.cores_allowed", 2.0),
        ("process.server.cores_busy", 1.98),
        ("process.server.cpu", 1.95),
        ("model.running", 4.0),
        ("model.waiting", 12.0),
    ];
    let low = [&IDLE[..], &[("model.running", 3.0), ("model.waiting", 0.0)]].concat();
    let result = run(&[(800, &low), (990, &busy), (1_000, &busy)], here(), None);
    let limit = &result.points[2].limit;
    assert_eq!((limit.kind, limit.also[0].kind), (LimitKind::Batch, LimitKind::Processor));
}

#[test]
fn a_server_elsewhere_tells_of_itself_and_our_own_processors_are_not_taken_for_its() {
    let ours = [("cpu.0.busy", 1.0), ("host.runnable", 9.0)];
    let low = [&ours[..], &[("model.running", 4.0), ("model.waiting", 0.0)]].concat();
    let named = |high: ResourceMeans<'_>| {
        let points = [(800, low.as_slice()), (990, high), (1_000, high)];
        run(&points, Some(Disclosure::default()), None).points[2].limit.clone()
    };
    let full = [&ours[..], &[("model.running", 16.0), ("model.waiting", 8.0)]].concat();
    assert_eq!((named(&full).kind, named(&full).also.len()), (LimitKind::Batch, 0));
    let free = [&ours[..], &[("model.running", 16.0), ("model.waiting", 0.0)]].concat();
    assert!(limit::text(&named(&free)).ends_with("the server's host was not watched"));
}
