use super::*;

const US: u64 = 1_000;

/// 2 ms a step and 0.1 ms for each request in it; 1,000 prompt tokens take 10 ms.
fn spec() -> BatchSpec {
    BatchSpec {
        slots: 4,
        prefill_tokens_per_s: 100_000.0,
        step: Nanos::from_millis(2),
        step_per_slot: Nanos::from_micros(100),
        chunk_tokens: 512,
        kv_tokens: 100_000,
        has_prefix_cache: false,
    }
}

fn token_request(prompt_tokens: u32, output_tokens: u32) -> TokenRequest {
    TokenRequest { prompt_tokens, output_tokens, blocks: Vec::new() }
}

fn batch(arrivals: &[(u64, TokenRequest)]) -> (Vec<Vec<u64>>, Counts) {
    run(&LawSpec::Batch(spec()), arrivals)
}

/// The tokens of requests that arrive at these instants, in order; number and instant in µs.
fn run(spec: &LawSpec, arrivals: &[(u64, TokenRequest)]) -> (Vec<Vec<u64>>, Counts) {
    let mut law = Law::new(spec);
    let mut tokens = vec![Vec::new(); arrivals.len()];
    let mut give = |token: Token| {
        let of = &mut tokens[token.id as usize];
        of.push(token.at_ns / US);
        assert_eq!(of.len(), token.number as usize);
    };
    for (id, (at_us, request)) in arrivals.iter().enumerate() {
        law.advance(at_us * US, &mut give);
        law.arrive(at_us * US, id as u64, request.clone());
    }
    while let Some(next_ns) = law.next_event_ns() {
        law.advance(next_ns, &mut give);
    }
    (tokens, law.counts())
}

/// `clients` that ask again 50 µs after each answer: answers within the second half of `span_us`.
fn closed_loop(spec: BatchSpec, clients: u64, request: &TokenRequest, span_us: u64) -> f64 {
    let mut law = Law::new(&LawSpec::Batch(spec));
    let mut arrivals: Vec<(u64, u64)> = (0..clients).map(|id| (id, id)).collect();
    let mut done = 0_u32;
    loop {
        let next_us = arrivals.iter().map(|(at_us, _)| *at_us).min().unwrap_or(u64::MAX);
        let event_us = law.next_event_ns().map_or(u64::MAX, |at_ns| at_ns / US);
        let now_us = next_us.min(event_us);
        if now_us > span_us {
            return f64::from(done) / (span_us as f64 / 2e6);
        }
        law.advance(now_us * US, &mut |token: Token| {
            if token.number == request.output_tokens {
                arrivals.push((now_us + 50, token.id));
                done += u32::from(now_us > span_us / 2);
            }
        });
        let (now, later) = arrivals.into_iter().partition(|(at_us, _)| *at_us <= now_us);
        arrivals = later;
        let now: Vec<(u64, u64)> = now;
        now.iter().for_each(|(_, id)| law.arrive(now_us * US, *id, request.clone()));
    }
}

#[test]
fn one_request_alone_takes_what_the_formula_says() {
    // 1,000 tokens are two chunks: 2 · 2 ms + 0.1 ms + 10 ms.
    let (tokens, counts) = batch(&[(7, token_request(1_000, 4))]);
    assert_eq!(tokens, [[14_107, 16_207, 18_307, 20_407]]);
    assert_eq!((counts.prompt_tokens, counts.generation_tokens), (1_000, 4));
    assert_eq!((counts.running, counts.waiting, counts.reserved_tokens), (0, 0, 0));
}

#[test]
fn who_comes_during_a_step_waits_for_its_end_and_makes_the_next_longer_for_all() {
    let (tokens, _) = batch(&[(0, token_request(100, 3)), (1_000, token_request(200, 1))]);
    // 2 + 0.1 + 1; then 2 + 0.2 + 2 with both; then 2.1.
    assert_eq!(tokens, [vec![3_100, 7_300, 9_400], vec![7_300]]);
}

#[test]
fn whoever_finds_no_slot_waits_until_one_is_free() {
    let one = BatchSpec { slots: 1, ..spec() };
    let (tokens, _) =
        run(&LawSpec::Batch(one), &[(0, token_request(100, 2)), (0, token_request(100, 2))]);
    assert_eq!(tokens, [[3_100, 5_200], [8_300, 10_400]]);
}

#[test]
fn throughput_of_a_closed_loop_follows_the_formula_up_to_the_slots_and_no_further() {
    let (spec, one) = (BatchSpec { slots: 32, ..spec() }, token_request(256, 20));
    let (step_s, each_s, prompt_s) = (2e-3, 20.0 * 1e-4, 256.0 / 1e5);
    for clients in [1_u32, 8, 32] {
        let n = f64::from(clients);
        let steps = if clients == 1 { 20.0 } else { 21.0 };
        let expected = n / (steps * step_s + n * (each_s + prompt_s));
        let rate = closed_loop(spec, clients.into(), &one, 20_000_000);
        assert!((rate / expected - 1.0).abs() < 0.02, "{clients}: {rate} for {expected}");
    }
    let expected = 32.0 / (20.0 * step_s + 32.0 * (each_s + prompt_s));
    let rate = closed_loop(spec, 96, &one, 20_000_000);
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} for {expected}");
}

#[test]
fn without_room_the_newest_is_preempted_and_computed_again() {
    // Both are admitted with 101 of 205 tokens each, and the second loses its when they grow.
    let small = BatchSpec { kv_tokens: 205, ..spec() };
    let (tokens, counts) =
        run(&LawSpec::Batch(small), &[(0, token_request(100, 5)), (0, token_request(100, 5))]);
    assert_eq!(counts.preemptions, 1);
    assert_eq!(tokens.map_len(), [5, 5]);
    let (roomy, _) = batch(&[(0, token_request(100, 5)), (0, token_request(100, 5))]);
    assert!(tokens[0][4] <= roomy[0][4] && tokens[1][4] > roomy[1][4]);
}

trait MapLen {
    fn map_len(&self) -> Vec<usize>;
}

impl MapLen for Vec<Vec<u64>> {
    fn map_len(&self) -> Vec<usize> {
        self.iter().map(Vec::len).collect()
    }
}

#[test]
fn a_prompt_that_began_like_another_is_computed_from_where_they_part() {
    let cached = BatchSpec { has_prefix_cache: true, ..spec() };
    let blocks = |last| TokenRequest { blocks: vec![1, 2, 3, last], ..token_request(64, 1) };
    let mut law = Law::new(&LawSpec::Batch(cached));
    let mut observed = Vec::new();
    for (id, last) in [(0, 4), (1, 5), (2, 5)] {
        law.arrive(id * 1_000_000_000, id, blocks(last));
        law.advance(u64::MAX, &mut |token| {
            observed.push((token.cached_tokens, token.at_ns / US % 1_000_000))
        });
    }
    // The last token is computed always: of four blocks in the cache three count.
    assert_eq!(observed, [(0, 2_740), (48, 2_260), (48, 2_260)]);
    let counts = law.counts();
    assert_eq!((counts.prefix_queries, counts.prefix_hits), (192, 96));
}

#[test]
fn the_prefix_cache_forgets_what_was_needed_longest_ago() {
    let mut cache = batch::PrefixCache::new(64);
    cache.keep(&[1, 2, 3]);
    cache.keep(&[1, 9]);
    assert_eq!(cache.leading(&[1, 2, 3]), 3);
    cache.keep(&[7]);
    assert_eq!((cache.leading(&[1, 9]), cache.leading(&[1, 2, 3])), (1, 3));
}

#[test]
fn who_has_gone_leaves_the_batch_and_the_queue() {
    let mut law = Law::new(&LawSpec::Batch(BatchSpec { slots: 1, ..spec() }));
    let mut ids = Vec::new();
    (0..3).for_each(|id| law.arrive(0, id, token_request(10, 2)));
    law.cancel(0);
    law.cancel(1);
    law.advance(u64::MAX, &mut |token| ids.push(token.id));
    assert_eq!(ids, [2, 2]);
    assert_eq!(law.counts().generation_tokens, 2);
}

#[test]
fn alone_every_request_keeps_its_own_time() {
    let step = Nanos::from_millis(2);
    let alone = LawSpec::Alone(First::After(Nanos::from_millis(80)), step);
    let (tokens, counts) = run(&alone, &[(0, token_request(9, 3)), (500, token_request(9_000, 2))]);
    assert_eq!(tokens, [vec![80_000, 82_000, 84_000], vec![80_500, 82_500]]);
    assert_eq!(counts.generation_tokens, 5);
    let mut law = Law::new(&alone);
    law.arrive(0, 1, token_request(1, 5));
    law.cancel(1);
    assert_eq!(law.counts().running, 0);
    law.advance(u64::MAX, &mut |_| panic!("it has gone"));
    assert_eq!(law.next_event_ns(), None);
}

#[test]
fn behind_a_queue_first_tokens_come_as_the_queue_serves_them() {
    let one = "service=const:5ms,servers=1".parse().unwrap();
    let queue = LawSpec::Alone(First::Queue(one), Nanos::from_millis(1));
    let (tokens, _) = run(&queue, &[(0, token_request(9, 2)), (2_000, token_request(9, 1))]);
    assert_eq!(tokens, [vec![5_000, 6_000], vec![10_000]]);
}
