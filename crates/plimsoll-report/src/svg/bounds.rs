//! Asymptotes, knee and peak of a ladder, drawn into its panel of throughput. Words stand at the
//! foot of the panel, where no curve runs.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use super::draw::{Anchor, Drawing};
use super::scale::Scale;
use crate::view::metric;

/// Words closer to each other than this stand back to back.
const ROOM: f64 = 130.0;

/// What the shape of a ladder marks, in the units of the panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Throughput per load, and the highest throughput.
    asymptotes: Option<(f64, f64)>,
    /// Load at which the two cross.
    queueing_from: Option<f64>,
    /// Load, low and high.
    knee: Option<[f64; 3]>,
    /// The load from which throughput no longer follows the request.
    not_followed_from: Option<f64>,
}

impl Bounds {
    pub(super) fn of(run: &RunResult) -> Option<Self> {
        let shape = run.summary.curve.as_ref()?;
        let shown = |value: f64| match metric(run) {
            Metric::Bytes => BytesPerSec(value).mib_per_s(),
            Metric::Ops | Metric::Logons => value,
        };
        let asymptotes = shape.asymptotes;
        Some(Self {
            asymptotes: asymptotes.map(|found| (shown(found.per_client), shown(found.ceiling))),
            queueing_from: asymptotes.and_then(|found| found.queueing_from),
            knee: shape.knee.map(|knee| [knee.load, knee.low, knee.high]),
            not_followed_from: shape.not_followed_from,
        })
    }

    /// Draws what lies behind the curve: to be called before it.
    pub(super) fn draw(&self, drawing: &mut Drawing, area: &PanelArea) {
        if let Some([load, low, high]) = self.knee {
            let (from, to) = (area.x.at(low), area.x.at(high));
            let width = (to - from).max(2.0);
            drawing.rect("band", (from, area.top), (width, area.bottom - area.top));
            let x = area.x.at(load);
            drawing.line("knee", (x, area.top), (x, area.bottom));
        }
        if let Some((per_load, ceiling)) = self.asymptotes.filter(|found| found.0 > 0.0) {
            let end = match self.queueing_from {
                Some(load) => load,
                None => area.x.max(),
            };
            let end = end.min(area.y.max() / per_load).min(area.x.max());
            let corner = (area.x.at(end), area.y.at(end * per_load));
            drawing.line("guide", (area.left, area.bottom), corner);
            if self.queueing_from.is_some() {
                let level = area.y.at(ceiling);
                drawing.line("guide", (corner.0, level), (area.right, level));
                drawing.line("guide", corner, (corner.0, area.bottom));
            }
        }
        if let Some(load) = self.not_followed_from {
            let x = area.x.at(load);
            drawing.line("guide", (x, area.top), (x, area.bottom));
        }
    }

    /// Draws the words: to be called after the curve.
    pub(super) fn label(&self, drawing: &mut Drawing, area: &PanelArea) {
        let mut words: Vec<(f64, &str)> = [
            (self.queueing_from, "queueing"),
            (self.knee.map(|[load, ..]| load), "knee"),
            (self.not_followed_from, "no longer followed"),
        ]
        .into_iter()
        .filter_map(|(load, word)| Some((area.x.at(load?), word)))
        .collect();
        words.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut foot = area.bottom - 6.0;
        let mut before: Option<f64> = None;
        for (x, word) in words {
            if before.is_some_and(|before| x - before < ROOM) {
                foot -= 15.0;
            }
            before = Some(x);
            let (at, anchor) = match x > area.right - ROOM {
                true => ((x - 4.0, foot), Anchor::End),
                false => ((x + 4.0, foot), Anchor::Start),
            };
            drawing.text("guide-name", at, anchor, word);
        }
    }
}

/// Says what the marks are, of those that are drawn.
pub(crate) fn bounds_legend(run: &RunResult) -> String {
    let Some(bounds) = Bounds::of(run) else { return String::new() };
    let crossing = bounds.asymptotes.is_some() && bounds.queueing_from.is_some();
    let words = [
        (
            crossing,
            "Dotted: what the clients would do if none waited for another, and the highest \
             throughput. Where they cross, queueing must begin; that is no number of users.",
        ),
        (
            bounds.asymptotes.is_some() && !crossing,
            "Dotted: what the clients would do if none waited for another.",
        ),
        (
            bounds.knee.is_some(),
            "Line and band: the knee, where two straight lines fit the curve best, with its 95 % \
             interval.",
        ),
        (
            bounds.not_followed_from.is_some(),
            "Dotted upright: from here on throughput no longer follows the request.",
        ),
        (peak(run).is_some(), "Circle: the highest load point that counts."),
    ];
    let said: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
    said.join(" ")
}

/// The highest point that counts, which the headline speaks of.
pub(super) fn peak(run: &RunResult) -> Option<u32> {
    let rate: fn(&PointResult) -> Option<f64> = match metric(run) {
        Metric::Bytes => |p| p.achieved_bytes_per_s,
        Metric::Ops | Metric::Logons => |p| p.achieved_ops_per_s,
    };
    let counted = run.points.iter().filter(|point| point.counts());
    let rates = counted.filter_map(|p| Some((rate(p).filter(|r| r.is_finite())?, p.position)));
    rates.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, position)| position)
}

/// The part of the drawing that a panel takes, with its scales.
pub(super) struct PanelArea {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) edge: f64,
}
