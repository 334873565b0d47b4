//! A load point of 16 users: each answer has 100 tokens in 100 chunks, 10 ms apart, the first after
//! 200 ms.

use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::capacity::{CapacityRequest, Figure, TryOutcome};
use plimsoll_model::gate::GateState;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult, SteadyVerdict};
use plimsoll_model::units::Nanos;
use plimsoll_report::sentences::capacity::why;

use super::*;
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

const MS: u64 = 1_000_000;
/// Answers that end in a second.
const ANSWERS: u32 = 14;
const CHUNKS: u32 = 100 * ANSWERS;

fn streamed() -> RunBuilder {
    let mut run = RunBuilder::from_points([PointBuilder::closed(16).achieved(u64::from(ANSWERS))]);
    let times = |second: &IntervalSlice| {
        let mut second = IntervalSlice { ops: second.ops.clone(), ..*second };
        let op = &mut second.ops[0];
        let mut add = |kind: TimeKind, value: u64, n: u32| {
            kind.of_mut(op).record_n(value, n).unwrap();
        };
        add(TimeKind::FirstOutput, 200 * MS, ANSWERS);
        add(TimeKind::FirstOutputLow, 199 * MS, ANSWERS);
        add(TimeKind::FirstVisible, 200 * MS, ANSWERS);
        add(TimeKind::ChunkGap, 10 * MS, CHUNKS - ANSWERS);
        add(TimeKind::TokenTime, 10 * MS, ANSWERS);
        add(TimeKind::LaterTokenTime, 10 * MS, ANSWERS);
        add(TimeKind::OutputTokens, 100, ANSWERS);
        add(TimeKind::PromptTokens, 512, ANSWERS);
        second
    };
    let stem = run.finished_mut(0).point.stem();
    let plain = PointBuilder::closed(16).achieved(u64::from(ANSWERS));
    let slices: Vec<IntervalSlice> = plain.slices().iter().map(times).collect();
    run.histograms.insert(stem, PointTimes::from_seconds(slices));
    let record = run.finished_mut(0);
    let seconds = record.measured_ns.0 / 1_000_000_000;
    let answers = u64::from(ANSWERS) * seconds;
    record.totals.generation = GenerationCounts {
        chunks: 100 * answers,
        characters: 500 * answers,
        counted_requests: answers,
        output_tokens: 100 * answers,
        counted_characters: 500 * answers,
        counted_chunks: 100 * answers,
        prompt_tokens: 512 * answers,
        cached_said_requests: answers,
        cached_prompt_tokens: 128 * answers,
        cached_of_prompt_tokens: 512 * answers,
        ..GenerationCounts::default()
    };
    record.totals.good = answers * 9 / 10;
    record.totals.good_in_window = answers * 9 / 10;
    for second in &mut record.seconds {
        (second.chunks, second.good) = (u64::from(CHUNKS), second.done * 9 / 10);
    }
    run
}

fn point(run: &RunBuilder) -> PointResult {
    let RunResult { points, .. } = analyse(&run.raw());
    points.into_iter().next().unwrap()
}

fn generated(run: &RunBuilder) -> Generation {
    point(run).generation.unwrap()
}

/// Within the resolution of the histograms.
fn is_near(value: f64, truth: f64) -> bool {
    (value / truth - 1.0).abs() < 2e-3
}

#[test]
fn a_point_of_streams_says_when_output_came_how_long_it_was_and_how_much_a_second() {
    let generation = generated(&streamed());
    let p90 = |times: Option<TimeSummary>| times.and_then(|it| it.p90).unwrap() as f64;
    assert!(
        is_near(p90(generation.first_output_ns), 200e6)
            && is_near(p90(generation.token_time_ns), 10e6)
    );
    assert_eq!(generation.output_tokens.unwrap().p50, Some(100));
    assert!(is_near(generation.output_tokens_per_s.unwrap(), 1_400.0));
    assert!(is_near(generation.tokens_per_s_per_user.unwrap(), 100.0));
    assert!(is_near(generation.tps_per_user.unwrap(), 100.0));
    assert_eq!(generation.cached_prompt_ratio, Some(0.25));
    assert_eq!(generation.token_source, Some(TokenSource::Usage));
    let [low, high] = generation.output_tokens_interval_per_s.unwrap();
    assert!(low <= 1_400.0 && 1_400.0 < high && high < 1_500.0, "{low} {high}");
}

#[test]
fn the_generators_own_part_of_a_first_output_lies_below_it_and_gaps_have_none() {
    let generation = generated(&streamed());
    let [low, high] = generation.first_output_interval_ns.unwrap().p90.unwrap();
    assert!(low < 199.5e6 && high < 206e6, "{low} {high}");
    assert_eq!(generation.first_visible_interval_ns, generation.first_output_interval_ns);
    let [low, high] = generation.chunk_gap_interval_ns.unwrap().p90.unwrap();
    assert!(low > 9.5e6 && high < 10.3e6, "{low} {high}");
}

#[test]
fn without_usage_there_are_chunks_and_characters_and_no_tokens() {
    let mut run = streamed();
    let counts = &mut run.finished_mut(0).totals.generation;
    *counts = GenerationCounts {
        chunks: counts.chunks,
        characters: counts.characters,
        uncounted_requests: counts.counted_requests,
        ..GenerationCounts::default()
    };
    let generation = generated(&run);
    assert!(generation.output_tokens_per_s.is_none() && generation.token_source.is_none());
    assert!(is_near(generation.chunks_per_s.unwrap(), 1_400.0));
    assert!(is_near(generation.characters_per_s.unwrap(), 7_000.0));
}

#[test]
fn output_that_never_came_is_a_lower_bound() {
    let mut run = streamed();
    let totals = &mut run.finished_mut(0).totals;
    totals.unfinished = 3;
    totals.response_age_min = Some(Nanos::from_millis(50));
    let point = point(&run);
    let generation = point.generation.as_ref().unwrap();
    assert_eq!(generation.first_output_interval_ns.unwrap().p90, None);
    let reported = ReportedFigure::stream(&point, StreamFigure::FirstOutput, Figure::P90).unwrap();
    assert!(reported.lower_bound);
}

#[test]
fn the_share_of_good_ops_is_of_all_that_were_due() {
    let mut run = streamed();
    run.suite.goodput = Some("first_output<500ms".parse().unwrap());
    let goodput = point(&run).goodput.unwrap();
    let [low, high] = goodput.share_interval_ratio.unwrap();
    let share = goodput.share_ratio.unwrap();
    assert!((share - 0.9).abs() < 1e-9 && low < share && share < high, "{low} {share} {high}");
    run.finished_mut(0).totals.unfinished = 42;
    let open = point(&run).goodput.unwrap().share_interval_ratio.unwrap();
    assert!(open[1] > high + 0.05, "an op that is unfinished may be a good one: {open:?}");
}

#[test]
fn what_only_the_generator_delayed_beyond_a_limit_may_be_good() {
    let mut run = streamed();
    let mut high_end = |limit: &str| {
        run.suite.goodput = Some(limit.parse().unwrap());
        point(&run).goodput.unwrap().share_interval_ratio.unwrap()[1]
    };
    let certain = high_end("first_output<500ms");
    // All came after 200 ms, and after 199 ms without the generator's delays.
    assert_eq!(high_end("first_output<199.5ms"), 1.0);
    assert!(certain < 0.97, "{certain}");
    assert_eq!(high_end("first_output<150ms"), certain);
}

#[test]
fn few_bad_ops_are_no_more_independent_than_slow_ones() {
    let record = streamed().finished_mut(0).clone();
    let share = |slow_ops| share_interval(0.95, &record, (0, slow_ops)).unwrap();
    let (alone, many, few) = (share(None), share(Some(1e6)), share(Some(2.0)));
    assert_eq!(alone, many, "the slices say more");
    assert!(few[0] < alone[0] - 0.2 && few[1] > alone[1], "{few:?} {alone:?}");
}

#[test]
fn a_suite_that_follows_mlperf_has_its_regions_and_says_what_is_wanting() {
    let mut run = streamed();
    let steady_min = Nanos::from_secs(10);
    run.suite.endpoints = Some(EndpointsRules { passes: 5, steady_min });
    let endpoints = analyse(&run.raw()).summary.endpoints.unwrap();
    assert_eq!((endpoints.c_min, endpoints.c_max, endpoints.wanting.is_empty()), (16, 16, false));
    let [only] = &endpoints.points[..] else { panic!("{endpoints:?}") };
    assert!(is_near(only.tpot_p90_ns.unwrap() as f64, 10e6), "{only:?}");
    assert_eq!(only.steady.verdict, Some(SteadyVerdict::Steady), "{:?}", only.steady);
    assert!(only.tpot_p90_early_ns >= only.tpot_p90_ns);
}

#[test]
fn a_point_without_streams_says_nothing_of_generation() {
    let mut run = RunBuilder::open(&[500.0]);
    assert!(point(&run).generation.is_none() && point(&run).goodput.is_none());
    run.suite.endpoints = Some(EndpointsRules { passes: 8, steady_min: Nanos::from_secs(1) });
    assert!(analyse(&run.raw()).summary.endpoints.is_none());
}

#[test]
fn a_load_is_held_against_what_its_users_get() {
    let mut run = streamed();
    run.suite.goodput = Some("first_output<500ms".parse().unwrap());
    let mut evaluate = |within: &str| {
        let within = within.parse().unwrap();
        let request = CapacityRequest { within, think: None, users_per_client: Some(1.0) };
        run.started_mut().capacity = Some(request);
        let search = analyse(&run.raw()).summary.capacity_search.unwrap();
        (search.tries[0].standing, why(&search.tries[0]))
    };
    let (outcome, why) = evaluate("first_output.p90<500ms,tpot.p90<50ms,goodput>0.8");
    assert_eq!(outcome, TryOutcome::Within, "{why}");
    assert_eq!(
        why,
        "first_output.p90 200 ms < 500 ms, tpot.p90 10.0 ms < 50.0 ms, goodput 90 % > 80 %"
    );
    let (outcome, why) = evaluate("tpot.p90<5ms");
    assert_eq!((outcome, why.as_str()), (TryOutcome::NotWithin, "tpot.p90 10.0 ms ≥ 5.00 ms"));
    let (outcome, why) = evaluate("goodput>0.99");
    assert_eq!(outcome, TryOutcome::NotWithin, "{why}");
    assert!(why.contains("≤ 99 %"), "{why}");
}

#[test]
fn a_gate_is_held_against_what_users_get() {
    let mut run = streamed();
    run.suite.goodput = Some("first_output<500ms".parse().unwrap());
    let mut state = |expr: &str| {
        run.started_mut().gates.all = vec![expr.parse().unwrap()];
        analyse(&run.raw()).gates[0].state
    };
    assert_eq!(state("first_output.p90 > 500ms"), GateState::Held);
    assert_eq!(state("first_output.p90@16 > 100ms"), GateState::Failed);
    assert_eq!(state("chunk_gap.p99 > 5ms"), GateState::Failed);
    assert_eq!(state("tokens_per_s < 1000"), GateState::Held);
    assert_eq!(state("goodput < 95%"), GateState::Failed);
    assert_eq!(state("first_byte.p90 > 1s"), GateState::Unknown, "no first byte was marked");
}
