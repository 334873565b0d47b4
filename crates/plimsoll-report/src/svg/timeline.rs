//! One point second by second: a small drawing, made to fit with others of its kind.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::result::{PointResult, TimelineSecond};
use plimsoll_model::units::BytesPerSec;

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, tick_text, ticks};
use crate::text::TimeUnit;
use crate::view::timeline_time;

const HEIGHT: f64 = 66.0;
const SPACING: f64 = 34.0;
const LEFT: f64 = 60.0;
const MARGIN: f64 = 8.0;

/// What a panel draws of a second.
type Value<'a> = &'a dyn Fn(&TimelineSecond) -> Option<f64>;
/// Title, largest value, and the lines with their classes.
type Panel<'a> = (&'a str, f64, Vec<(Value<'a>, &'a str)>);

/// Rate and response time per second; `top_ops_per_s` is shared by all drawings of a run. Nothing
/// where the window is too short for a curve.
pub(crate) fn timeline_chart(
    frame: Frame<'_>,
    point: &PointResult,
    top_ops_per_s: f64,
) -> Option<String> {
    let last = point.timeline.last()?.second;
    let is_of_window = |s: &&TimelineSecond| !matches!(&s.phase[..], "warm_up" | "drain");
    let mut measured = point.timeline.iter().filter(is_of_window).map(|s| s.second);
    let first = measured.next()?;
    if measured.all(|second| second == first) {
        return None;
    }
    let (time_name, time) = timeline_time(point);
    let top_nanos = point.timeline.iter().filter_map(time).max().unwrap_or(0) as f64;
    let unit = TimeUnit::for_largest(top_nanos);
    let x = Scale::new(f64::from(last) + 1.0, LEFT, frame.width - MARGIN);
    let rate = |s: &TimelineSecond| Some(s.ops_per_s).filter(|v| v.is_finite());
    let response = |s: &TimelineSecond| Some(unit.convert(time(s)? as f64));
    let response_title = match point.timeline.iter().any(|s| s.requested.is_some()) {
        true => format!("response {time_name} and p50, {}", unit.name()),
        false => format!("response {time_name}, {}", unit.name()),
    };

    let mut drawing = Drawing::new();
    let outstanding = |s: &TimelineSecond| s.outstanding_ops.map(|ops| ops as f64);
    let requested = |s: &TimelineSecond| s.requested;
    let median = |s: &TimelineSecond| Some(unit.convert(s.response_p50_ns? as f64));
    let largest = |value: Value<'_>| point.timeline.iter().filter_map(value).reduce(f64::max);
    let most_outstanding = largest(&outstanding);
    let has_requested = largest(&requested).is_some();
    let throughput_title = match has_requested {
        true => "throughput and requested load, per second",
        false => "throughput, ops/s",
    };
    let top_rate = top_ops_per_s.max(largest(&requested).unwrap_or_default());
    let mut panels: Vec<Panel<'_>> = vec![
        (throughput_title, top_rate, vec![(&requested, "s2"), (&rate, "s1")]),
        (&response_title, unit.convert(top_nanos), vec![(&response, "s3")]),
    ];
    if has_requested {
        panels[1].2.push((&median, "s4"));
    }
    if let Some(most) = most_outstanding {
        let lines: Vec<(Value<'_>, &str)> = vec![(&outstanding, "s1")];
        panels.push(("ops that were due and had not ended", most, lines));
    }
    let mut top = 26.0;
    for (number, (title, largest, lines)) in panels.into_iter().enumerate() {
        shade(&mut drawing, point, x, (top, top + HEIGHT), number == 1);
        let y = panel(&mut drawing, frame.width, top, title, largest);
        for (value, class) in lines {
            for piece in pieces(point, (x, y), value) {
                drawing.polyline(&format!("curve thin {class}"), &piece);
            }
        }
        top += HEIGHT + SPACING;
    }
    for used in resource_timelines(point) {
        shade(&mut drawing, point, x, (top, top + HEIGHT), false);
        let y = panel(&mut drawing, frame.width, top, &used.title, used.largest());
        let at =
            |(second, value): &(f64, f64)| (x.pixel(f64::from(first) + second), y.pixel(*value));
        let line: Vec<(f64, f64)> = used.values.iter().map(at).collect();
        drawing.polyline("curve thin s2", &line);
        top += HEIGHT + SPACING;
    }
    let bottom = top - SPACING;
    push_seconds(&mut drawing, x, f64::from(last) + 1.0, bottom);
    let title = match point.position {
        0 => "The load over time, second by second".to_owned(),
        position => format!("Load point {position} second by second"),
    };
    let desc = "Throughput above, response time below it, then what the server used; warm-up and \
                drain are shaded.";
    Some(drawing.finish(frame.id, (frame.width, bottom + 22.0), &title, desc))
}

/// The axis of time below the last panel.
fn push_seconds(drawing: &mut Drawing, x: Scale, end: f64, bottom: f64) {
    for tick in ticks(end, 4).iter().filter(|tick| **tick <= end) {
        let at = x.pixel(*tick);
        drawing.line("base", (at, bottom), (at, bottom + 4.0));
        drawing.text("tick", (at, bottom + 16.0), Anchor::Middle, &tick_text(*tick));
    }
    drawing.text("axis-name", (0.0, bottom + 16.0), Anchor::Start, "second");
}

/// Title, grid and ticks of a panel; returns its scale.
fn panel(drawing: &mut Drawing, width: f64, top: f64, title: &str, largest: f64) -> Scale {
    let y_ticks = ticks(largest, 2);
    let y = Scale::new(y_ticks.last().copied().unwrap_or(1.0), top + HEIGHT, top);
    drawing.text("panel small", (0.0, top - 11.0), Anchor::Start, title);
    for tick in &y_ticks {
        let class = if *tick == 0.0 { "base" } else { "grid" };
        drawing.line(class, (LEFT, y.pixel(*tick)), (width - MARGIN, y.pixel(*tick)));
        drawing.text("tick", (LEFT - 6.0, y.pixel(*tick) + 4.0), Anchor::End, &tick_text(*tick));
    }
    y
}

fn shade(
    drawing: &mut Drawing,
    point: &PointResult,
    x: Scale,
    (top, bottom): (f64, f64),
    named: bool,
) {
    for phase in point.timeline.chunk_by(|a, b| a.phase == b.phase) {
        let (Some(first), Some(last)) = (phase.first(), phase.last()) else { continue };
        if first.phase == "measure" {
            continue;
        }
        let (from, to) = (x.pixel(f64::from(first.second)), x.pixel(f64::from(last.second) + 1.0));
        drawing.rect("shade", ((from, top), (to - from, bottom - top)), None);
        let name = first.phase.replace('_', "-");
        if named && to - from > 7.0 * name.len() as f64 {
            let at = (f64::midpoint(from, to), bottom - 5.0);
            drawing.text("phase", at, Anchor::Middle, &name);
        }
    }
}

/// Lines between gaps. Where several seconds share a pixel column, its lowest and highest value
/// are drawn, so that no outlier is lost and the page stays small.
fn pieces(point: &PointResult, (x, y): (Scale, Scale), value: Value<'_>) -> Vec<Vec<(f64, f64)>> {
    let columns: Vec<(f64, Option<(f64, f64)>)> = point
        .timeline
        .chunk_by(|a, b| column(x, a) == column(x, b))
        .filter_map(|seconds| {
            let at = x.pixel(f64::from(seconds.first()?.second) + 0.5);
            let values = || seconds.iter().filter_map(value);
            Some((at, values().reduce(f64::min).zip(values().reduce(f64::max))))
        })
        .collect();
    columns
        .chunk_by(|a, b| a.1.is_some() == b.1.is_some())
        .map(|piece| {
            let ends = piece.iter().filter_map(|(at, ends)| ends.map(|ends| (*at, ends)));
            ends.flat_map(|(at, (low, high))| {
                let low_mark = (at, y.pixel(low));
                [Some(low_mark), (high > low).then(|| (at, y.pixel(high)))].into_iter().flatten()
            })
            .collect()
        })
        .collect()
}

fn column(x: Scale, second: &TimelineSecond) -> i64 {
    x.pixel(f64::from(second.second)).floor() as i64
}

/// Samples that make a line.
const SAMPLES_MIN: usize = 2;
/// A disk or link that was used less than this share, or rate, is not worth a panel.
const DISK_MIN_RATIO: f64 = 0.02;
const NETWORK_MIN_BYTES_PER_S: f64 = 1e5;

struct Used {
    title: String,
    /// Second of the window and value.
    values: Vec<(f64, f64)>,
    top_min: f64,
}

impl Used {
    fn largest(&self) -> f64 {
        self.values.iter().map(|(_, value)| *value).fold(self.top_min, f64::max)
    }
}

/// Figures that a model server reports of its queue and memory.
const MODEL: [(&str, &str, f64); 3] = [
    ("model.running", "requests in the batch", 1.0),
    ("model.waiting", "requests waiting", 1.0),
    ("model.kv_cache", "KV cache in use", 1.0),
];

/// The server's processors, the busiest disk and the busiest network, where they were watched, and
/// a model server's own figures.
fn resource_timelines(point: &PointResult) -> Vec<Used> {
    let drawn = || point.resources.iter().filter(|used| used.over_time.len() >= SAMPLES_MIN);
    let of = |used: &ResourceUse| match &used.source {
        Some(source) => format!(" of {source}"),
        None => String::new(),
    };
    let busiest = |start: &str, end: &[&str], least: f64| {
        let fits = |used: &&ResourceUse| {
            let rest = used.name.strip_prefix(start);
            rest.is_some_and(|rest| end.iter().any(|end| rest.ends_with(end))) && used.mean >= least
        };
        drawn().filter(fits).max_by(|a, b| a.mean.total_cmp(&b.mean))
    };
    let key = |used: &ResourceUse| used.name.split('.').nth(1).unwrap_or_default().to_owned();
    let mut timelines = Vec::new();
    if let Some(used) = busiest("process.server", &[".cpu"], 0.0) {
        let title = format!("processors of the server{}, cores", of(used));
        timelines.push(Used { title, values: used.over_time.clone(), top_min: 1.0 });
    }
    if let Some(used) = busiest("disk.", &[".busy"], DISK_MIN_RATIO) {
        let title = format!("disk {}{}, share of time busy", key(used), of(used));
        timelines.push(Used { title, values: used.over_time.clone(), top_min: 1.0 });
    }
    if let Some(used) = busiest("network.", &[".sent", ".received"], NETWORK_MIN_BYTES_PER_S) {
        let direction = if used.name.ends_with(".sent") { "sent" } else { "received" };
        let title = format!("network {}{}, MiB/s {direction}", key(used), of(used));
        let mib = |&(at, value): &(f64, f64)| (at, BytesPerSec(value).mib_per_s());
        timelines.push(Used {
            title,
            values: used.over_time.iter().map(mib).collect(),
            top_min: 0.0,
        });
    }
    for (name, title, top_min) in MODEL {
        let reported = drawn().find(|used| used.name == name && used.max > 0.0);
        timelines.extend(reported.map(|used| Used {
            title: format!("{title}{}", of(used)),
            values: used.over_time.clone(),
            top_min,
        }));
    }
    timelines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_processors_and_the_busiest_disk_and_network_are_drawn() {
        let used = |name: &str, mean: f64| ResourceUse {
            name: name.to_owned(),
            mean,
            over_time: vec![(0.5, mean), (1.5, mean)],
            ..ResourceUse::default()
        };
        let resources = vec![
            used("process.server.cpu", 0.9),
            used("process.generator.cpu", 1.0),
            used("disk.vda.busy", 0.01),
            used("disk.vdb.busy", 0.5),
            used("network.lo.sent", 2e6),
            used("network.lo.received", 1e6),
            ResourceUse { over_time: Vec::new(), ..used("network.eth0.sent", 9e9) },
            ResourceUse { max: 4.0, ..used("model.running", 3.5) },
            used("model.waiting", 0.0),
        ];
        let point = PointResult { resources, ..PointResult::default() };
        let timelines = resource_timelines(&point);
        let titles: Vec<&str> = timelines.iter().map(|used| used.title.as_str()).collect();
        let expected = [
            "processors of the server, cores",
            "disk vdb, share of time busy",
            "network lo, MiB/s sent",
            "requests in the batch",
        ];
        assert_eq!(titles, expected);
        assert!(resource_timelines(&PointResult::default()).is_empty());
    }
}
