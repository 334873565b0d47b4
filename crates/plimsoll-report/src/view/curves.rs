//! Which curves a comparison draws, what their figures are called, and the table of them.

use plimsoll_model::comparison::{Comparison, Curve, CurveFigure, CurvePoint};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BYTES_PER_MIB, grouped};

use crate::table::{Mark, Rows, Table};
use crate::text::{ABSENT, axis_name, three_digits};

/// More curves cannot be distinguished.
const DRAWN_MAX: usize = 8;
const NS_PER_MS: f64 = 1e6;

/// A quantity over load, of which there is a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Throughput,
    ResponseMean,
    ResponseP99,
}

impl Quantity {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::ResponseMean => "Mean response time",
            Self::ResponseP99 => "Response time, p99",
        }
    }

    pub(crate) const fn figure(self, point: &CurvePoint) -> Option<CurveFigure> {
        match self {
            Self::Throughput => point.throughput,
            Self::ResponseMean => point.response_mean_ns,
            Self::ResponseP99 => point.response_p99_ns,
        }
    }

    /// A value as the chart's axis has it.
    pub(crate) fn on_axis(self, value: f64, of: &Comparison) -> f64 {
        match self {
            Self::Throughput if counts_bytes(of) => value / BYTES_PER_MIB,
            _ => value,
        }
    }

    pub(crate) fn text(self, value: f64, of: &Comparison) -> String {
        match self {
            Self::Throughput => {
                format!("{} {}", number(self.on_axis(value, of)), throughput_unit(of))
            }
            _ => ReportedFigure::new(value, None).bare_time_text(),
        }
    }
}

/// Unit of the throughput on the chart's axis.
pub(crate) fn throughput_unit(of: &Comparison) -> &'static str {
    match of.unit.as_str() {
        unit if unit == Metric::Bytes.unit() => "MiB/s",
        unit if unit == Metric::Logons.unit() => Metric::Logons.unit(),
        _ => Metric::Ops.unit(),
    }
}

fn counts_bytes(of: &Comparison) -> bool {
    of.unit == Metric::Bytes.unit()
}

/// The curves of a chart with their numbers from 1: groups first. Where there are too many, the
/// last groups are left out.
pub(crate) fn drawn(comparison: &Comparison) -> Vec<(usize, &Curve)> {
    let non_empty = || comparison.curves.iter().filter(|curve| !curve.points.is_empty());
    let published = non_empty().filter(|curve| curve.published.is_some()).take(DRAWN_MAX);
    let room = DRAWN_MAX - published.clone().count();
    let groups = non_empty().filter(|curve| curve.published.is_none()).take(room);
    (1..).zip(groups.chain(published)).collect()
}

/// Name of a curve among others; a published one with its year.
pub(crate) fn curve_name(comparison: &Comparison, curve: &Curve) -> String {
    match &curve.published {
        Some(published) => format!("{} (published, {})", curve.label, published.year),
        None => comparison.name_of(&curve.label).to_owned(),
    }
}

/// How to read the charts.
pub(crate) fn curves_note(comparison: &Comparison) -> String {
    let mut note = String::from(
        "Each mark is a load point: the geometric mean of the group's runs. A band spans the lowest \
         and the highest run. A hollow mark is a point that was left out of the result of some run. \
         A response time that is known only as a lower bound is left out.",
    );
    if comparison.curves.iter().any(|curve| curve.published.is_some()) {
        note.push_str(" Dashed curves are published figures of their year.");
    }
    let left_out = comparison.curves.len() - drawn(comparison).len();
    if left_out > 0 {
        note.push_str(&format!(
            " {left_out} curves are not drawn; the table has those with points."
        ));
    }
    note
}

/// Every point of these curves.
pub(crate) fn curves_table<'c>(
    caption: &str,
    comparison: &Comparison,
    curves: impl Iterator<Item = &'c Curve>,
) -> Table {
    let cell = |point: &CurvePoint, quantity| figure_text(quantity, point, comparison);
    let points = curves.flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    Rows::new(caption, points)
        .marked(|(_, point)| if point.not_counted { Mark::NotCounted } else { Mark::Sound })
        .text("curve", |(curve, _)| curve_name(comparison, curve))
        .figures(&axis_name(&comparison.axis), "", |(_, point)| grouped(point.load))
        .figures("throughput", throughput_unit(comparison), |(_, point)| {
            cell(point, Quantity::Throughput)
        })
        .figures("mean response", "ms", |(_, point)| cell(point, Quantity::ResponseMean))
        .figures("p99", "ms", |(_, point)| cell(point, Quantity::ResponseP99))
        .table()
        .without_empty_columns()
}

fn figure_text(quantity: Quantity, point: &CurvePoint, of: &Comparison) -> String {
    let Some(figure) = quantity.figure(point) else { return ABSENT.to_owned() };
    let shown = |value: f64| match quantity {
        Quantity::Throughput => number(quantity.on_axis(value, of)),
        _ => three_digits(value / NS_PER_MS),
    };
    match figure.range.map(|range| range.map(shown)) {
        Some([low, high]) if low != high => format!("{} ({low}–{high})", shown(figure.value)),
        _ => shown(figure.value),
    }
}

/// Whole where it is large.
fn number(value: f64) -> String {
    if value >= 1000.0 { grouped(value) } else { three_digits(value) }
}
