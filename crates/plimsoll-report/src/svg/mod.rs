//! Charts as inline SVG: measured dots, labels at the lines themselves. Axes begin at
//! zero, those of response times are logarithmic.
//!
//! Charts are drawn here and not by a script, so that a report is readable without scripts and on
//! paper.

mod bounds;
mod cost;
mod curves;
mod draw;
mod experiment;
mod file;
mod generation;
mod heat;
mod load;
mod ops;
mod page_cache;
mod percentiles;
mod plot;
mod ratios;
mod resources;
mod response_curve;
mod scale;
mod stacked;
mod strip;
mod testbed;
mod timeline;

pub(crate) use bounds::bounds_legend;
pub(crate) use cost::{COST_CHARTS, cost_chart};
pub(crate) use curves::{curve_sample, curves_chart};
pub(crate) use experiment::experiment_chart;
pub use file::charts;
pub(crate) use generation::{chunk_interval_chart, first_output_chart, step_chart, tokens_chart};
pub(crate) use heat::{first_output_heat_chart, heat_chart};
pub(crate) use load::{generator_chart, load_chart, response_chart, throughput_chart};
pub(crate) use ops::ops_chart;
pub(crate) use page_cache::page_cache_chart;
pub(crate) use percentiles::percentile_chart;
pub(crate) use ratios::ratio_chart;
pub(crate) use resources::{resource_chart, resource_topics};
pub(crate) use response_curve::response_curve_chart;
pub(crate) use testbed::testbed_drawing;
pub(crate) use timeline::timeline_chart;

/// Identity and width of one drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Unique on the page; prefix of the ids of title and description.
    pub(crate) id: &'a str,
    pub(crate) width: f64,
}

impl Frame<'_> {
    /// Too narrow for long labels.
    fn is_narrow(self) -> bool {
        self.width < 500.0
    }

    /// Least room left of an upright axis.
    fn left(self) -> f64 {
        if self.is_narrow() { 36.0 } else { 60.0 }
    }

    /// About the number of steps of an axis of load.
    fn steps(self) -> u32 {
        if self.is_narrow() { 4 } else { 8 }
    }
}
