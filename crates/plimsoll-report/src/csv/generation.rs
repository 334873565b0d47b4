//! Columns of points that generated, and of goodput.

use plimsoll_model::figure::StreamFigure;
use plimsoll_model::result::Generation;

use super::sheet::{OfPoint, Sheet};

type Points<'r> = Sheet<OfPoint<'r, ()>>;

/// Adds what a point generated.
pub(super) fn generation_columns(points: Points<'_>) -> Points<'_> {
    type Count = fn(&Generation) -> u64;
    let counts: [(&str, Count); 5] = [
        ("counted_requests", |it| it.counted_requests),
        ("uncounted_requests", |it| it.uncounted_requests),
        ("mismatched_requests", |it| it.mismatched_requests),
        ("several_a_chunk_requests", |it| it.several_a_chunk_requests),
        ("cut_short_requests", |it| it.cut_short_requests),
    ];
    let of = |it: &OfPoint<'_, ()>| it.point.generation.clone();
    let rates = points
        .column("output_tokens_per_s", |it| of(it)?.output_tokens_per_s)
        .bounds(["output_tokens_low_per_s", "output_tokens_high_per_s"], |it| {
            of(it)?.output_tokens_interval_per_s
        })
        .column("tokens_per_s_per_user", |it| of(it)?.tokens_per_s_per_user)
        .column("tps_per_user", |it| of(it)?.tps_per_user)
        .column("chunks_per_s", |it| of(it)?.chunks_per_s)
        .column("characters_per_s", |it| of(it)?.characters_per_s)
        .column("prompt_tokens_mean", |it| of(it)?.prompt_tokens?.mean)
        .column("prompt_tokens_p50", |it| of(it)?.prompt_tokens?.p50)
        .column("output_tokens_mean", |it| of(it)?.output_tokens?.mean)
        .column("output_tokens_p50", |it| of(it)?.output_tokens?.p50)
        .column("cached_prompt_ratio", |it| of(it)?.cached_prompt_ratio);
    let counted = counts
        .into_iter()
        .fold(rates, |points, (name, count)| points.column(name, |it| Some(count(&of(it)?))));
    StreamFigure::ALL.into_iter().fold(counted, |points, figure| {
        points
            .times(figure.as_str(), |it| Some(*of(it)?.times(figure)?.0))
            .intervals(figure.as_str(), |it| of(it)?.times(figure)?.1.copied())
    })
}

/// Adds the goodput of a point.
pub(super) fn goodput_columns(points: Points<'_>) -> Points<'_> {
    points
        .point("goodput_ratio", |p| p.goodput.as_ref()?.share_ratio)
        .bounds(["goodput_low_ratio", "goodput_high_ratio"], |it| {
            it.point.goodput.as_ref()?.share_interval_ratio
        })
        .point("good_ops_per_s", |p| p.goodput.as_ref()?.per_s)
}
