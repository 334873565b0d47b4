//! What an op costs: the names of its figures, and a table for each host and what ran on it.

use plimsoll_model::cost::{CostFigure, CostOf, HostCost};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};

use super::{THIS_HOST, disks};
use crate::table::{Mark, Rows, Table};
use crate::text::{ResourceUnit, TimeUnit, number, three_digits};

/// What the tables mean.
pub(crate) const COST_NOTE: &str = "What the monitors saw in the window, over the ops that were \
    done in it without error. In brackets the 95 % interval from how it varies within the window. \
    A host's figures hold everything that ran on it, the kernel and the monitors included; those of \
    the server's processes hold neither the kernel's own threads nor what it does in interrupts.";

/// What a figure is called.
pub(crate) const fn cost_name(figure: CostFigure) -> &'static str {
    match figure {
        CostFigure::CpuPerOp => "CPU per op",
        CostFigure::ContextSwitchesPerOp => "context switches per op",
        CostFigure::DiskTransfersPerOp => "disk transfers per op",
        CostFigure::DiskBytesPerOp => "disk bytes per op",
        CostFigure::NicPacketsPerOp => "NIC packets per op",
        CostFigure::NicBytesPerOp => "NIC bytes per op",
        CostFigure::CpuBusy => "processors busy",
        CostFigure::SystemShare => "CPU time in the kernel",
        CostFigure::DiskBusy => "disks busy",
        CostFigure::DataDisksBusy => "data disks busy",
        CostFigure::LogDisksBusy => "log disks busy",
        CostFigure::DatabaseDisksBusy => "database disks busy",
        CostFigure::Memory => "memory",
        CostFigure::PageCache => "page cache",
    }
}

/// Its values are written in one unit, that of the largest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CostUnit {
    Time(TimeUnit),
    Other(ResourceUnit),
}

impl CostUnit {
    pub(crate) fn for_largest(figure: CostFigure, largest: f64) -> Self {
        let other = |unit| Self::Other(ResourceUnit::for_largest(unit, largest));
        match figure {
            CostFigure::CpuPerOp => Self::Time(TimeUnit::for_largest(largest)),
            CostFigure::DiskBytesPerOp
            | CostFigure::NicBytesPerOp
            | CostFigure::Memory
            | CostFigure::PageCache => other("bytes"),
            figure if figure.is_share() => other("ratio"),
            _ => other(""),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Time(unit) => unit.name(),
            Self::Other(unit) => &unit.name,
        }
    }

    pub(crate) fn convert(&self, value: f64) -> f64 {
        match self {
            Self::Time(unit) => unit.convert(value),
            Self::Other(unit) => unit.convert(value),
        }
    }

    /// With its interval, where it has one.
    fn figure_text(&self, value: f64, interval: Option<[f64; 2]>) -> String {
        let in_unit = |value| self.convert(value);
        ReportedFigure::new(in_unit(value), interval.map(|ends| ends.map(in_unit))).text_in(1.0)
    }
}

/// One value with its unit.
pub(crate) fn cost_text(figure: CostFigure, value: f64) -> String {
    let unit = CostUnit::for_largest(figure, value);
    match unit.name() {
        "" => three_digits(value),
        name => format!("{} {name}", three_digits(unit.convert(value))),
    }
}

/// Short name of whose cost it is.
pub(crate) const fn cost_of_name(of: CostOf) -> &'static str {
    match of {
        CostOf::ServerHost => "host",
        CostOf::ServerProcesses => "processes",
        CostOf::SharedHost => "shared host",
        CostOf::GeneratorHost => "generator's host",
        CostOf::OtherHost => "another host",
    }
}

/// A table for each host and each separate part of it, and one of the disks.
pub(super) fn cost_tables(run: &RunResult) -> Vec<Table> {
    let mut kinds: Vec<(CostOf, Option<&str>)> = Vec::new();
    for cost in run.points.iter().flat_map(|point| &point.cost) {
        let kind = (cost.of, cost.source.as_deref());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().map(|kind| cost_table(run, kind)).chain(disks::disk_table(run)).collect()
}

fn cost_table(run: &RunResult, (of, source): (CostOf, Option<&str>)) -> Table {
    let cost_of = |point: &'_ PointResult| -> Option<HostCost> {
        point.cost.iter().find(|it| it.of == of && it.source.as_deref() == source).cloned()
    };
    let rows: Vec<_> = run.points.iter().map(|point| (point, cost_of(point))).collect();
    let costs = || rows.iter().filter_map(|(_, cost)| cost.as_ref());
    let begin = Rows::new(caption(of, source, costs().next()), &rows)
        .marked(|(point, _)| Mark::of_point(point))
        .figures("requested", &run.axis.unit, |(point, _)| number(Some(point.requested)));
    let all = CostFigure::ALL.into_iter().fold(begin, |rows, figure| {
        let values = costs().filter_map(|cost| cost.figures.get(&figure));
        let largest = values.map(|cost| cost.value).fold(0.0, f64::max);
        let unit = CostUnit::for_largest(figure, largest);
        rows.figures(cost_name(figure), unit.name(), |(_, cost)| {
            let it = cost.as_ref()?.figures.get(&figure)?;
            Some(unit.figure_text(it.value, it.interval))
        })
    });
    // The data set, to compare memory with.
    let set = |point: &PointResult| point.data_set_bytes.map(|bytes| bytes as f64);
    let largest = run.points.iter().filter_map(set).fold(0.0, f64::max);
    let unit = CostUnit::for_largest(CostFigure::Memory, largest);
    let all = all.figures("data set", unit.name(), |(point, cost)| {
        cost.as_ref()?.figures.get(&CostFigure::Memory)?;
        Some(unit.figure_text(set(point)?, None))
    });
    all.table().without_empty_columns()
}

fn caption(of: CostOf, source: Option<&str>, example: Option<&HostCost>) -> String {
    let host = source.unwrap_or(THIS_HOST);
    let whose = match of {
        CostOf::ServerHost => format!("The server's host ({host}), all that ran on it."),
        CostOf::ServerProcesses => format!("The server's processes ({host})."),
        CostOf::SharedHost => format!(
            "The host of server and generator ({host}): what its disks and interfaces carried is \
             that of both."
        ),
        CostOf::GeneratorHost => format!("The generator's host ({host}), all that ran on it."),
        CostOf::OtherHost => format!("Another host that was watched ({host})."),
    };
    let counted = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" {what}: {}.", names.join(", ")),
    };
    let (disks, interfaces) =
        example.map(|it| (&it.disks[..], &it.interfaces[..])).unwrap_or_default();
    format!("{whose}{}{}", counted("Disks", disks), counted("Interfaces", interfaces))
}
