//! Columns of points that generated, and of goodput.

use plimsoll_model::figure::StreamFigure;
use plimsoll_model::result::{Generation, PointResult};

use super::{bounds, headers, interval_headers, intervals, text, time_headers, times};

type Figure = (&'static str, fn(&Generation) -> String);

/// Counts and rates.
const FIGURES: [Figure; 17] = [
    ("output_tokens_per_s", |it| text(it.output_tokens_per_s)),
    ("output_tokens_low_per_s", |it| bound(it, 0)),
    ("output_tokens_high_per_s", |it| bound(it, 1)),
    ("tokens_per_s_per_user", |it| text(it.tokens_per_s_per_user)),
    ("tps_per_user", |it| text(it.tps_per_user)),
    ("chunks_per_s", |it| text(it.chunks_per_s)),
    ("characters_per_s", |it| text(it.characters_per_s)),
    ("prompt_tokens_mean", |it| text(it.prompt_tokens.and_then(|of| of.mean))),
    ("prompt_tokens_p50", |it| text(it.prompt_tokens.and_then(|of| of.p50))),
    ("output_tokens_mean", |it| text(it.output_tokens.and_then(|of| of.mean))),
    ("output_tokens_p50", |it| text(it.output_tokens.and_then(|of| of.p50))),
    ("cached_prompt_ratio", |it| text(it.cached_prompt_ratio)),
    ("counted_requests", |it| it.counted_requests.to_string()),
    ("uncounted_requests", |it| it.uncounted_requests.to_string()),
    ("mismatched_requests", |it| it.mismatched_requests.to_string()),
    ("several_a_chunk_requests", |it| it.several_a_chunk_requests.to_string()),
    ("cut_short_requests", |it| it.cut_short_requests.to_string()),
];

fn bound(generation: &Generation, at: usize) -> String {
    text(generation.output_tokens_interval_per_s.map(|interval| interval[at]))
}

/// Headers of what a point generated.
pub(super) fn generation_headers() -> impl Iterator<Item = String> {
    let times = StreamFigure::ALL.into_iter().flat_map(|of| {
        let prefix = of.as_str();
        time_headers(prefix).chain(interval_headers(prefix)).collect::<Vec<_>>()
    });
    FIGURES.iter().map(|(name, _)| (*name).to_owned()).chain(times)
}

/// What a point generated, empty where it did not.
pub(super) fn generation_cells(point: &PointResult) -> impl Iterator<Item = String> {
    let generation = point.generation.as_ref();
    let figures = FIGURES.iter().map(move |(_, cell)| generation.map_or_else(String::new, cell));
    let times = StreamFigure::ALL.into_iter().flat_map(move |figure| {
        let found = generation.and_then(|of| of.times(figure));
        let summary = times(found.map(|(times, _)| *times)).into_iter();
        summary.chain(intervals(found.and_then(|(_, it)| it.copied()))).collect::<Vec<_>>()
    });
    figures.chain(times)
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
