//! Asymptotes, knee and peak of a ladder, drawn into its panel of throughput. Labels are at the
//! bottom of the panel, where no curve runs.

use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use super::draw::{Anchor, Drawing};
use super::plot::PanelArea;
use crate::view::{metric, rate};

/// Labels closer to each other than this extend in opposite directions.
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
    pub(super) fn from_run(run: &RunResult) -> Option<Self> {
        let shape = run.summary.curve.as_ref()?;
        let shown = |value: f64| match metric(run) {
            Metric::Bytes => BytesPerSec(value).mib_per_s(),
            Metric::Ops | Metric::Logons => value,
        };
        let asymptotes = shape.asymptotes;
        Some(Self {
            asymptotes: asymptotes.map(|bound| (shown(bound.per_client), shown(bound.ceiling))),
            queueing_from: asymptotes.and_then(|bound| bound.queueing_from),
            knee: shape.knee.map(|knee| [knee.load, knee.low, knee.high]),
            not_followed_from: shape.not_followed_from,
        })
    }

    /// Draws the part behind the curve; call it before drawing the curve.
    pub(super) fn draw(&self, drawing: &mut Drawing, area: &PanelArea) {
        if let Some([load, low, high]) = self.knee {
            let (from, to) = (area.x.pixel(low), area.x.pixel(high));
            let width = (to - from).max(2.0);
            let size = (width, area.bottom - area.top);
            drawing.rect("band", ((from, area.top), size), None);
            let x = area.x.pixel(load);
            drawing.line("knee", (x, area.top), (x, area.bottom));
        }
        if let Some((per_load, ceiling)) = self.asymptotes.filter(|bound| bound.0 > 0.0) {
            let end = self.queueing_from.unwrap_or_else(|| area.x.max());
            let end = end.min(area.y.max() / per_load).min(area.x.max());
            let corner = area.pixels(end, end * per_load);
            drawing.line("guide", (area.left, area.bottom), corner);
            if self.queueing_from.is_some() {
                let level = area.y.pixel(ceiling);
                drawing.line("guide", (corner.0, level), (area.right, level));
                drawing.line("guide", corner, (corner.0, area.bottom));
            }
        }
        if let Some(load) = self.not_followed_from {
            let x = area.x.pixel(load);
            drawing.line("guide", (x, area.top), (x, area.bottom));
        }
    }

    /// Draws the labels; call it after drawing the curve.
    pub(super) fn label(&self, drawing: &mut Drawing, area: &PanelArea) {
        let mut labels: Vec<(f64, &str)> = [
            (self.queueing_from, "queueing"),
            (self.knee.map(|[load, ..]| load), "knee"),
            (self.not_followed_from, "no longer followed"),
        ]
        .into_iter()
        .filter_map(|(load, word)| Some((area.x.pixel(load?), word)))
        .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut foot = area.bottom - 6.0;
        let mut before: Option<f64> = None;
        for (x, word) in labels {
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

/// Explains the marks that are drawn.
pub(crate) fn bounds_legend(run: &RunResult) -> String {
    let Some(bounds) = Bounds::from_run(run) else { return String::new() };
    let crossing = bounds.asymptotes.is_some() && bounds.queueing_from.is_some();
    let sentences = [
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
        (peak(run).is_some(), "Circle: the peak, the highest load point that counts."),
    ];
    let shown: Vec<&str> =
        sentences.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
    shown.join(" ")
}

/// The highest point that counts, where throughput stopped following the load: else more load may
/// bring more, and there is no peak.
pub(super) fn peak(run: &RunResult) -> Option<u32> {
    // The bound of a capacity shows when its limit was broken; a curve from elsewhere has no bound.
    let of_ladder = run.suite.is_some() && run.summary.capacity_search.is_none();
    if !of_ladder || run.summary.bound != Bound::Exact {
        return None;
    }
    let rate = rate(run);
    let counted = run.points.iter().filter(|point| point.counts());
    let rates = counted.filter_map(|p| Some((rate(p).filter(|r| r.is_finite())?, p.position)));
    rates.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, position)| position)
}
