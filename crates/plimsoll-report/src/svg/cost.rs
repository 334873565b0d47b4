//! What an op costs over load: panels on the axis of load.

use plimsoll_model::cost::{CostFigure, CostOf};
use plimsoll_model::result::RunResult;

use super::Frame;
use super::load::{base, dot};
use super::stacked::{Panel, Series, Stack, draw};
use crate::text::capitalised;
use crate::view::{CostUnit, cost_name, cost_of_name};

const PANEL_HEIGHT: f64 = 86.0;
/// One point has no course over load.
const POINTS_MIN: usize = 2;
const CLASSES: [&str; 3] = ["s1", "s2", "s3"];

/// What is drawn beside each other: what processors do, and what disks and interfaces do.
pub(crate) const COST_CHARTS: [(&str, &[CostFigure]); 2] = [
    ("Processors: cost of an op", &[CostFigure::CpuPerOp, CostFigure::ContextSwitchesPerOp]),
    (
        "Disks and network: cost of an op",
        &[
            CostFigure::DiskTransfersPerOp,
            CostFigure::DiskBytesPerOp,
            CostFigure::NicPacketsPerOp,
            CostFigure::NicBytesPerOp,
        ],
    ),
];

/// Nothing where the server's cost was seen at one load or none.
pub(crate) fn cost_chart(
    frame: Frame<'_>,
    run: &RunResult,
    (title, figures): (&str, &[CostFigure]),
) -> Option<String> {
    let panels: Vec<Panel> = figures.iter().filter_map(|figure| panel(run, *figure)).collect();
    if panels.is_empty() {
        return None;
    }
    let desc = "Means over the window of each load point. The tables of costs hold the same \
                figures.";
    Some(draw(frame, &Stack { title: title.to_owned(), panels, ..base(run, desc.to_owned()) }))
}

fn panel(run: &RunResult, figure: CostFigure) -> Option<Panel> {
    let value = |of| run.points.iter().filter_map(move |p| Some((p, p.cost_of(of, figure)?.value)));
    let seen = CostOf::SERVERS.into_iter().filter(|of| value(*of).count() >= POINTS_MIN);
    let seen: Vec<CostOf> = seen.filter(|of| value(*of).any(|(_, value)| value > 0.0)).collect();
    let largest = seen.iter().flat_map(|of| value(*of)).map(|(_, value)| value).fold(0.0, f64::max);
    let unit = CostUnit::for_largest(figure, largest);
    let series = seen.iter().zip(CLASSES).map(|(of, class)| {
        let text = |value: f64| format!("{value:.3}\u{a0}{}", unit.name());
        let dots = value(*of).filter_map(|(point, value)| {
            dot(point, Some(point.requested), Some(unit.of(value)), text)
        });
        Series { class, label: cost_of_name(*of).to_owned(), dots: dots.collect() }
    });
    let series: Vec<Series> = series.collect();
    let unit_name = match unit.name() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    let name = capitalised(cost_name(figure));
    (!series.is_empty()).then(|| Panel {
        title: format!("{name}{unit_name}"),
        height: PANEL_HEIGHT,
        top: unit.of(largest),
        series,
        ..Panel::default()
    })
}
