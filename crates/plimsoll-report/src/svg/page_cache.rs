//! Misses over memory: the formula's curve and the measured load points.

use plimsoll_model::result::RunResult;

use super::Frame;
use super::plot::{Outline, Plot};
use super::scale::Axis;
use crate::table::Mark;
use crate::text::{ResourceUnit, load, three_digits};

/// The axis ends at this many times the memory for all that is read: beyond, nothing changes.
const MEMORY_MAX_RATIO: f64 = 1.25;
const RIGHT: f64 = 24.0;

/// The curve is that of the last load point. Nothing where no load point has both.
pub(crate) fn page_cache_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let all = run.points.iter().filter_map(|point| {
        let cache = point.page_cache.as_ref()?;
        Some((point, cache, cache.available_bytes?, cache.predicted.as_ref()?))
    });
    let points: Vec<_> = all.collect();
    let (.., predicted) = points.last()?;
    let largest = predicted.full_bytes * MEMORY_MAX_RATIO;
    let unit = ResourceUnit::for_largest("bytes", largest);
    let percent = |ratio: f64| ratio * 100.0;
    let measured = points.iter().map(|(_, cache, ..)| cache.miss_ratio);
    let top = measured.chain(predicted.curve.iter().map(|(_, ratio)| *ratio)).fold(0.0, f64::max);
    let outline = Outline {
        title: "Misses, % of the bytes that were sent",
        x: Axis::linear(unit.convert(largest), frame.steps()),
        y: Axis::linear(percent(top), 4),
        x_name: &format!("memory for files, {}", unit.name),
        height: 240.0,
        margins: (frame.left(), RIGHT),
    };
    let mut plot = Plot::new(frame, &outline);
    let pixels = |bytes: f64, ratio: f64| {
        plot.area.pixels(unit.convert(bytes).min(plot.area.x.max()), percent(ratio))
    };
    let end = (f64::INFINITY, 0.0);
    let curve = predicted.curve.iter().copied().chain([end]);
    let path: Vec<_> = curve.map(|(bytes, ratio)| pixels(bytes, ratio)).collect();
    let dots: Vec<_> = points
        .iter()
        .map(|(point, cache, bytes, _)| {
            let tip = format!(
                "point {}: {}, {} % with {}",
                point.position,
                load(point.requested, &run.axis),
                three_digits(percent(cache.miss_ratio)),
                unit.named_text(*bytes)
            );
            (pixels(*bytes, cache.miss_ratio), Mark::of_point(point), tip)
        })
        .collect();
    plot.drawing.polyline("curve s1", &path);
    for (at, mark, tip) in &dots {
        plot.drawing.point("s2", *at, *mark, tip);
    }
    let desc = "The line is the prediction, the dots are the measured load points. The table of \
                reads of disks holds the same figures.";
    Some(plot.finish("Misses over memory", desc))
}
