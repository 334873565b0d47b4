//! What an op costs over load: panels on the axis of load.

use plimsoll_model::cost::{CostFigure, CostOf};
use plimsoll_model::result::RunResult;

use super::Frame;
use super::load::{chart_by_load, dot};
use super::stacked::{Panel, Series};
use crate::text::capitalised;
use crate::view::{CostUnit, cost_name, cost_of_name};

const PANEL_HEIGHT: f64 = 86.0;
/// One point makes no curve over load.
const POINTS_MIN: usize = 2;
const CLASSES: [&str; 3] = ["s1", "s2", "s3"];

/// Figures drawn in one chart: those of processors, and those of disks and interfaces.
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
    let panels = figures.iter().filter_map(|figure| panel(run, *figure)).collect();
    let desc = "Means over the window of each load point. The tables of costs hold the same \
                figures.";
    chart_by_load(frame, run, title, desc, panels)
}

fn panel(run: &RunResult, figure: CostFigure) -> Option<Panel> {
    let value = |of| run.points.iter().filter_map(move |p| Some((p, p.cost_of(of, figure)?.value)));
    let measured = CostOf::SERVERS.into_iter().filter(|of| value(*of).count() >= POINTS_MIN);
    let measured: Vec<CostOf> =
        measured.filter(|of| value(*of).any(|(_, value)| value > 0.0)).collect();
    let largest =
        measured.iter().flat_map(|of| value(*of)).map(|(_, value)| value).fold(0.0, f64::max);
    let unit = CostUnit::for_largest(figure, largest);
    let series = measured.iter().zip(CLASSES).map(|(of, class)| {
        let text = |value: f64| format!("{value:.3}\u{a0}{}", unit.name());
        let dots = value(*of).filter_map(|(point, value)| {
            dot(point, Some(point.requested), Some(unit.convert(value)), text)
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
        top: unit.convert(largest),
        series,
        ..Panel::default()
    })
}
