//! Output of a load point: times within replies, lengths, tokens per second, and the share of good
//! ops.

use plimsoll_model::event::{
    GenerationCounts, OpTimes, Phase, PointRecord, SecondRecord, SliceCounts, TimeKind, Times,
};
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::goodput::{GoodLimits, Goodput};
use plimsoll_model::result::{CountSummary, Generation, SteadyWindow, TimeSummary, TokenSource};
use plimsoll_model::suite::{EndpointsRules, Suite};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

use crate::coarse::Coarse;
use crate::endpoints::{Pass, early_stopping, steady_window};
use crate::health::ClientTime;
use crate::point::heatmap;
use crate::raw::PointTimes;
use crate::sampling::NORMAL_95;
use crate::standard_error::StandardError;
use crate::times::{percentile, quantile_ns, summarise};
use crate::uncertainty::{
    Cycles, FigureInterval, OPS_PER_DEGREE, Rate, by_slice, interval_of_share, span,
    stream_intervals,
};
use crate::validity::{output_tokens_per_s, server_output_tokens_per_s};

/// Percentile of MLPerf's per-user figures, in hundredths of a percent.
const P90: u32 = 9_000;

/// The histograms of a time within ops.
pub(crate) const fn kind_of(figure: StreamFigure) -> TimeKind {
    match figure {
        StreamFigure::FirstByte => TimeKind::FirstByte,
        StreamFigure::FirstOutput => TimeKind::FirstOutput,
        StreamFigure::FirstVisible => TimeKind::FirstVisible,
        StreamFigure::ChunkGap => TimeKind::ChunkGap,
        StreamFigure::Tpot => TimeKind::TokenTime,
        StreamFigure::LaterTpot => TimeKind::LaterTokenTime,
    }
}

/// `None` where replies are no streams of output. `total` is merged over window and ops.
pub(crate) fn generation(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Option<Generation> {
    let counts = &record.totals.generation;
    if *counts == GenerationCounts::default() && TimeKind::FirstOutput.times_in(total).is_none() {
        return None;
    }
    let of = |kind: TimeKind| kind.times_in(total).map(|times| summarise(times, &[]));
    let intervals = |kind| stream_intervals(record, total, times, kind);
    let mut generation = Generation {
        first_byte_ns: of(TimeKind::FirstByte),
        first_byte_service_ns: of(TimeKind::FirstByteService),
        first_output_ns: of(TimeKind::FirstOutput),
        first_output_service_ns: of(TimeKind::FirstOutputService),
        first_output_interval_ns: intervals(TimeKind::FirstOutput),
        first_visible_ns: of(TimeKind::FirstVisible),
        first_visible_service_ns: of(TimeKind::FirstVisibleService),
        first_visible_interval_ns: intervals(TimeKind::FirstVisible),
        chunk_gap_ns: of(TimeKind::ChunkGap),
        chunk_gap_interval_ns: intervals(TimeKind::ChunkGap),
        token_time_ns: of(TimeKind::TokenTime),
        token_time_interval_ns: intervals(TimeKind::TokenTime),
        later_token_time_ns: of(TimeKind::LaterTokenTime),
        later_token_time_interval_ns: intervals(TimeKind::LaterTokenTime),
        later_token_time_p90_early_ns: TimeKind::LaterTokenTime
            .times_in(total)
            .and_then(|times| early_stopping(times, P90)),
        first_output_over_time: heatmap(record, times, |slice| slice.stream(TimeKind::FirstOutput)),
        prompt_tokens: TimeKind::PromptTokens.times_in(total).map(counted),
        output_tokens: TimeKind::OutputTokens.times_in(total).map(counted),
        counted_requests: counts.counted_requests,
        uncounted_requests: counts.uncounted_requests,
        mismatched_requests: counts.mismatched_requests,
        several_a_chunk_requests: counts.several_a_chunk_requests,
        estimated_first_chunks: counts.estimated_first_chunks,
        failed_chunks: counts.failed_chunks,
        failed_characters: counts.failed_characters,
        contradictory_requests: counts.contradictory_requests,
        cut_short_requests: counts.cut_short_requests,
        cut_at_length_requests: counts.cut_at_length_requests,
        steady: suite.endpoints.map(|rules| steady(rules, record, total, times)),
        ..Generation::default()
    };
    let cycles =
        Cycles::from_record(record, total, times).zip(TimeKind::OutputTokens.times_in(total));
    rates(&mut generation, record, (ClientTime::from_record(record, total), cycles));
    Some(generation)
}

/// How the clients of a closed load spent their time, and their cycles with the tokens of each.
type OfClients<'t> = (Option<ClientTime>, Option<(Cycles<'t>, &'t Times)>);

/// Rates per second, in total and per user.
fn rates(generation: &mut Generation, record: &PointRecord, closed: OfClients<'_>) {
    let counts = &record.totals.generation;
    let seconds = record.measured_ns.as_secs_f64();
    if seconds <= 0.0 {
        return;
    }
    generation.chunks_per_s = Some(counts.chunks as f64 / seconds);
    generation.characters_per_s = Some(counts.characters as f64 / seconds);
    generation.output_tokens_per_s = output_tokens_per_s(record);
    generation.server_output_tokens_per_s = server_output_tokens_per_s(record);
    generation.token_source = (counts.counted_requests > 0).then_some(TokenSource::Usage);
    generation.output_tokens_interval_per_s =
        generation.output_tokens_per_s.and_then(|rate| rate_interval(rate, record, closed));
    let cached = (counts.cached_said_requests > 0 && counts.cached_of_prompt_tokens > 0)
        .then(|| counts.cached_prompt_tokens as f64 / counts.cached_of_prompt_tokens as f64);
    generation.cached_prompt_ratio = cached;
    let per_second = |ns: f64| (ns > 0.0).then(|| NANOS_PER_SECOND as f64 / ns);
    let mean = |times: TimeSummary| times.mean;
    let p90 = |times: TimeSummary| times.p90.map(|ns| ns as f64);
    generation.tokens_per_s_per_user = generation.token_time_ns.and_then(mean).and_then(per_second);
    generation.tps_per_user = generation.later_token_time_ns.and_then(p90).and_then(per_second);
}

/// From the chunks of each slice; of a closed load from the cycles of its clients, with the cost of
/// the generator's delays.
fn rate_interval(
    value: f64,
    record: &PointRecord,
    (closed, cycles): OfClients<'_>,
) -> Option<[f64; 2]> {
    let rate = match cycles {
        Some((cycles, tokens)) => {
            let scatter = NORMAL_95 * tokens.stdev() / (tokens.len() as f64).sqrt() / tokens.mean();
            cycles.answers(record).times(tokens.mean(), scatter)
        }
        None => Rate::from_counts(value, &counts(record, |it| it.chunks, |it| it.chunks))?,
    };
    Some(span(&rate.uncertainty(closed)))
}

/// The count of each slice of the window and its length; of each second in bundles whose slices
/// were not counted.
fn counts(
    record: &PointRecord,
    of_slice: impl Fn(&SliceCounts) -> u64,
    of_second: impl Fn(&SecondRecord) -> u64,
) -> Vec<(f64, f64)> {
    match record.totals.slices.is_empty() {
        false => by_slice(record, |slice| of_slice(slice) as f64),
        true => of_window(record, |second| of_second(second) as f64),
    }
}

/// The count of each second of the window, and its length.
fn of_window(record: &PointRecord, count: impl Fn(&SecondRecord) -> f64) -> Vec<(f64, f64)> {
    let window = record.seconds.iter().filter(|second| second.phase == Phase::Measure);
    window.map(|it| (count(it), it.length_ns as f64 / NANOS_PER_SECOND as f64)).collect()
}

/// The share of the ops due in the window that kept the limits, and their rate per second.
pub(crate) fn goodput(
    limits: GoodLimits,
    record: &PointRecord,
    (times, p90): (Option<&OpTimes>, Option<&FigureInterval>),
    cycles: Option<Cycles<'_>>,
) -> Goodput {
    let totals = &record.totals;
    let share = |ops: u64| (totals.due > 0).then(|| ops as f64 / totals.due as f64);
    let seconds = record.measured_ns.as_secs_f64();
    let rate = (seconds > 0.0).then(|| totals.good_in_window as f64 / seconds);
    let by_counts = |rate| Rate::from_counts(rate, &counts(record, |it| it.good, |it| it.good));
    let good = rate.and_then(|rate| {
        cycles.and_then(|cycles| cycles.rate(|slice| slice.good as f64)).or_else(|| by_counts(rate))
    });
    Goodput {
        limits,
        share_ratio: share(totals.good),
        share_interval_ratio: share(totals.good).and_then(|value| {
            let delayed = times.map_or(0, |times| delayed_beyond(limits, record, times));
            share_interval(value, record, (delayed, p90.map(|it| it.effective_ops)))
        }),
        per_s: rate,
        interval_per_s: good.map(|good| span(&good.uncertainty(None))),
    }
}

/// Ops that kept no limit and may have kept all but for the generator's own delays.
fn delayed_beyond(limits: GoodLimits, record: &PointRecord, times: &OpTimes) -> u64 {
    let queue_ratio = ClientTime::from_record(record, times).map_or(1.0, |it| it.queue_ratio());
    let of_kinds = [
        (limits.response, TimeKind::Response, TimeKind::ResponseLow),
        (limits.first_output, TimeKind::FirstOutput, TimeKind::FirstOutputLow),
    ];
    let beyond = |(limit, measured, low): (Option<Nanos>, TimeKind, TimeKind)| {
        let limit_ns = limit?.0;
        let within = |kind: TimeKind, ns| kind.times_in(times).map(|it| it.count_between(0, ns));
        let low_limit_ns = (limit_ns as f64 / queue_ratio) as u64;
        within(low, low_limit_ns)?.checked_sub(within(measured, limit_ns)?)
    };
    of_kinds.into_iter().filter_map(beyond).sum()
}

/// From the variation of the share between slices. Any unfinished op may be good or not, and so may
/// any that the generator delayed beyond a limit. Where few ops are not good, their own variation
/// says little, and the tenth that is slowest says how many ops are independent.
fn share_interval(
    value: f64,
    record: &PointRecord,
    (delayed, slow_ops): (u64, Option<f64>),
) -> Option<[f64; 2]> {
    let totals = &record.totals;
    let ops = totals.due as f64;
    let good = counts(record, |it| it.good, |it| it.good);
    let done = counts(record, |it| it.done, |it| it.done);
    let parts: Vec<_> = good.iter().zip(&done).map(|(good, done)| (good.0, done.0)).collect();
    let standard = StandardError::of_ratio(&parts, ops / OPS_PER_DEGREE)?;
    let most = (value + (totals.unfinished + delayed) as f64 / ops).min(1.0);
    let slow_share = 1.0 - f64::from(P90) / 1e4;
    let independent = slow_ops
        .filter(|_| 1.0 - value < slow_share)
        .map_or(ops, |slow_ops| ops.min(slow_ops * (1.0 - slow_share) / slow_share));
    Some(interval_of_share([value, most], independent, standard))
}

fn counted(times: &Times) -> CountSummary {
    let n = times.len();
    CountSummary {
        n,
        mean: (n > 0).then(|| times.mean()),
        p50: percentile(times, 5_000),
        p90: percentile(times, P90),
        p99: percentile(times, 9_900),
        max: (n > 0).then(|| times.max()),
    }
}

/// Equal parts of the window replace passes over the data set.
fn steady(
    rules: EndpointsRules,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> SteadyWindow {
    let slices: Vec<&Coarse> =
        times.slices().filter_map(|(_, slice)| slice.stream(TimeKind::LaterTokenTime)).collect();
    let parts = slices.chunks(slices.len().div_ceil(rules.passes.max(1) as usize).max(1));
    let share = record.measured_ns.as_secs_f64() / slices.len().max(1) as f64;
    let pass = |slices: &[&Coarse]| {
        let mut whole = Coarse::default();
        slices.iter().for_each(|slice| whole.merge(slice));
        Some(Pass {
            p50_ns: whole.quantile_ns(0.5)?,
            p90_ns: whole.quantile_ns(0.9)?,
            seconds: share * slices.len() as f64,
        })
    };
    let passes: Vec<Pass> = parts.filter_map(pass).collect();
    let p99_s = quantile_ns(&total.response, 9_900) as f64 / NANOS_PER_SECOND as f64;
    steady_window(&passes, rules.steady_min.as_secs_f64(), p99_s)
}

#[cfg(test)]
mod tests;
