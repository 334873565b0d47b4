use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn parse_queue(text: &str) -> ServiceQueue {
    ServiceQueue::new(&text.parse().unwrap())
}

fn passages(text: &str, arrivals: impl IntoIterator<Item = u64>) -> Vec<Passage> {
    let mut queue = parse_queue(text);
    arrivals.into_iter().map(|at| queue.arrive(at)).collect()
}

fn service_of(text: &str, index: u64) -> u64 {
    let spec: CalibratedSpec = text.parse().unwrap();
    service_ns(spec.service, spec.seed, index)
}

#[test]
fn a_constant_service_at_a_low_rate_never_waits() {
    for passage in passages("service=const:1ms,servers=1", (0..100).map(|i| i * 2 * MS)) {
        assert_eq!(passage.completion_ns, passage.arrival_ns + MS);
    }
}

#[test]
fn two_servers_serve_two_and_the_third_waits() {
    let ends: Vec<u64> = passages("service=const:1ms,servers=2", [0, 0, 0, 5 * MS])
        .iter()
        .map(|passage| passage.completion_ns)
        .collect();
    assert_eq!(ends, [MS, MS, 2 * MS, 6 * MS]);
}

#[test]
fn nothing_departs_within_a_stall_and_what_was_begun_goes_on_after_it() {
    // The stall is from 10 to 20 ms; the second request has had 0.5 of its 1 ms by then.
    let observed = passages(
        "service=const:1ms,servers=1,stall=10ms@10ms",
        [0, 9 * MS + MS / 2, 15 * MS, 30 * MS],
    );
    let ends: Vec<u64> = observed.iter().map(|passage| passage.completion_ns).collect();
    assert_eq!(ends, [MS, 20 * MS + MS / 2, 21 * MS + MS / 2, 31 * MS]);
}

#[test]
fn what_ends_as_the_stall_begins_leaves_after_it() {
    let observed = passages("service=const:1ms,servers=1,stall=10ms@5ms", [0, 4 * MS]);
    assert_eq!(observed[1].completion_ns, 15 * MS);
}

#[test]
fn the_seed_and_the_number_of_a_request_decide_its_service() {
    let spec = "service=exp:1ms,servers=1,seed=5";
    let far_apart = |n: u64| n * 1_000 * MS;
    let once = passages(spec, (0..50).map(far_apart));
    assert_eq!(once, passages(spec, (0..50).map(far_apart)));
    let other = passages("service=exp:1ms,servers=1,seed=6", (0..50).map(far_apart));
    let same = once.iter().zip(&other).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0);
}

#[test]
fn draws_of_neighbouring_requests_are_unrelated() {
    let n = 100_000;
    let draws: Vec<f64> = (0..n).map(|i| service_of("service=exp:1ms", i) as f64 / 1e6).collect();
    let mean = draws.iter().sum::<f64>() / n as f64;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
    let pairs = draws.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
    let correlation = pairs / (n - 1) as f64 / variance;
    assert!((mean - 1.0).abs() < 0.015 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    assert!(correlation.abs() < 0.015, "{correlation}");
}

proptest! {
    #[test]
    fn one_server_is_lindleys_recursion(inter_arrivals in prop::collection::vec(0_u64..3 * MS, 1..200)) {
        let text = "service=exp:1ms,servers=1,seed=3";
        let mut now = 0;
        let arrivals: Vec<u64> = inter_arrivals.iter().map(|inter_arrival| { now += inter_arrival; now }).collect();
        let mut wait = 0;
        let mut last: Option<(u64, u64)> = None;
        for (index, passage) in passages(text, arrivals.clone()).into_iter().enumerate() {
            let service = service_of(text, index as u64);
            if let Some((arrival, before)) = last {
                wait = (wait + before).saturating_sub(arrivals[index] - arrival);
            }
            prop_assert_eq!(passage.completion_ns, arrivals[index] + wait + service);
            last = Some((arrivals[index], service));
        }
    }

    #[test]
    fn starts_are_in_order_and_no_server_idles_while_somebody_waits(
        inter_arrivals in prop::collection::vec(0_u64..MS, 1..200),
        servers in 1_u32..6,
        stall_ms in 0_u64..20,
    ) {
        let text = format!("service=exp:2ms,servers={servers},stall={stall_ms}ms@10ms,seed=9");
        let mut queue = parse_queue(&text);
        let mut now = 0;
        let mut busy: Vec<(u64, u64)> = Vec::new();
        let mut last_start = 0;
        for (index, inter_arrival) in inter_arrivals.iter().enumerate() {
            now += inter_arrival;
            let passage = queue.arrive(now);
            let (from, until) = queue.stall().unwrap();
            let service = service_of(&text, index as u64);
            prop_assert!(passage.completion_ns >= now + service);
            prop_assert!(passage.completion_ns < from || passage.completion_ns >= until);
            let (arrived, end) = (queue.working(now), {
                let stalled = if passage.completion_ns >= until { until - from } else { 0 };
                passage.completion_ns - stalled
            });
            let start = end - service;
            prop_assert!(start >= last_start && start >= arrived);
            let at_work = |t: u64| busy.iter().filter(|(s, e)| *s <= t && t < *e).count();
            prop_assert!(at_work(start) < servers as usize);
            if start > arrived {
                prop_assert_eq!(at_work(arrived), servers as usize);
                prop_assert_eq!(at_work(start - 1), servers as usize);
            }
            busy.push((start, end));
            last_start = start;
        }
    }
}
