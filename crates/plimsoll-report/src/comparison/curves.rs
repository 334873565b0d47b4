//! The section of a comparison that draws all groups in one chart.

use minijinja::value::Value;
use plimsoll_model::comparison::Comparison;
use serde::Serialize;

use crate::html::{Chart, chart, half};
use crate::svg::{curve_sample, curves_chart};
use crate::table::Table;
use crate::view::curves::{Quantity, curve_name, curves_note, curves_table, drawn};

const POINTS: &str = "Points of the curves; in brackets the range of the runs";

/// Charts, legend and table; the charts are absent where no curve has two points.
#[derive(Serialize)]
pub(super) struct CurvesSection {
    throughput: Option<Chart>,
    response_mean: Option<Chart>,
    response_p99: Option<Chart>,
    legend: Vec<Entry>,
    note: String,
    /// Every point of every curve.
    points: Table,
}

/// A curve of the legend.
#[derive(Serialize)]
struct Entry {
    /// As at its end in the charts.
    number: usize,
    /// A piece of it; escaped where it was drawn.
    sample: Value,
    name: String,
    /// Where a published one is from; empty of a group.
    source: String,
}

impl CurvesSection {
    pub(super) fn new(it: &Comparison) -> Self {
        let draw = |quantity| move |frame: crate::svg::Frame<'_>| curves_chart(frame, it, quantity);
        let entry = |(number, curve)| Entry {
            number,
            sample: Value::from_safe_string(curve_sample(number, curve)),
            name: curve_name(it, curve),
            source: curve.published.as_ref().map(|it| it.source.clone()).unwrap_or_default(),
        };
        Self {
            throughput: chart("curves-throughput", draw(Quantity::Throughput)),
            response_mean: half("curves-mean", draw(Quantity::ResponseMean)),
            response_p99: half("curves-p99", draw(Quantity::ResponseP99)),
            legend: drawn(it).into_iter().map(entry).collect(),
            note: curves_note(it),
            points: curves_table(POINTS, it, it.curves.iter()),
        }
    }
}

/// The points of published curves, which no other table has.
pub(super) fn published_points(it: &Comparison) -> Table {
    let published = it.curves.iter().filter(|curve| curve.published.is_some());
    curves_table("Points as their sources print them", it, published)
}
