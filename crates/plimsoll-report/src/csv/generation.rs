//! Columns of points that generated, and of goodput.

use plimsoll_model::figure::StreamFigure;
use plimsoll_model::result::{Generation, PointResult};

use super::{bounds, headers, interval_headers, intervals, text, time_headers, times};

/// Names of counts and rates, in the order of [`figures`].
const FIGURES: [&str; 17] = [
    "output_tokens_per_s",
    "output_tokens_low_per_s",
    "output_tokens_high_per_s",
    "tokens_per_s_per_user",
    "tps_per_user",
    "chunks_per_s",
    "characters_per_s",
    "prompt_tokens_mean",
    "prompt_tokens_p50",
    "output_tokens_mean",
    "output_tokens_p50",
    "cached_prompt_ratio",
    "counted_requests",
    "uncounted_requests",
    "mismatched_requests",
    "several_a_chunk_requests",
    "cut_short_requests",
];

/// Headers of what a point generated.
pub(super) fn generation_headers() -> impl Iterator<Item = String> {
    let times = StreamFigure::ALL.into_iter().flat_map(|of| {
        let prefix = of.word();
        time_headers(prefix).chain(interval_headers(prefix)).collect::<Vec<_>>()
    });
    headers(&FIGURES).into_iter().chain(times)
}

/// What a point generated, empty where it did not.
pub(super) fn generation_cells(point: &PointResult) -> impl Iterator<Item = String> + use<> {
    let none = Generation::default();
    let generation = point.generation.as_ref();
    let of = generation.unwrap_or(&none);
    let stream = StreamFigure::ALL.map(|figure| {
        let found = of.times(figure);
        let summary = times(found.map(|(times, _)| *times)).into_iter();
        summary.chain(intervals(found.and_then(|(_, it)| it.copied()))).collect::<Vec<_>>()
    });
    figures(generation, of).into_iter().chain(stream.into_iter().flatten())
}

fn figures(generation: Option<&Generation>, of: &Generation) -> Vec<String> {
    let counted = |count: u64| text(generation.map(|_| count));
    let [low, high] = bounds(of.output_tokens_interval_per_s);
    let (prompt, output) = (of.prompt_tokens, of.output_tokens);
    vec![
        text(of.output_tokens_per_s),
        low,
        high,
        text(of.tokens_per_s_per_user),
        text(of.tps_per_user),
        text(of.chunks_per_s),
        text(of.characters_per_s),
        text(prompt.and_then(|it| it.mean)),
        text(prompt.and_then(|it| it.p50)),
        text(output.and_then(|it| it.mean)),
        text(output.and_then(|it| it.p50)),
        text(of.cached_prompt_ratio),
        counted(of.counted_requests),
        counted(of.uncounted_requests),
        counted(of.mismatched_requests),
        counted(of.several_a_chunk_requests),
        counted(of.cut_short_requests),
    ]
}

/// Headers of goodput.
pub(super) fn goodput_headers() -> Vec<String> {
    headers(&["goodput_ratio", "goodput_low_ratio", "goodput_high_ratio", "good_ops_per_s"])
}

/// Goodput of a point, empty where it was not told.
pub(super) fn goodput_cells(point: &PointResult) -> Vec<String> {
    let goodput = point.goodput.as_ref();
    let [low, high] = bounds(goodput.and_then(|it| it.share_interval_ratio));
    let share = text(goodput.and_then(|it| it.share_ratio));
    vec![share, low, high, text(goodput.and_then(|it| it.per_s))]
}
