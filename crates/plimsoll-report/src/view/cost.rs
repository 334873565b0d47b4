//! What an op costs: the words for its figures, and a table for each host and what ran on it.

use plimsoll_model::cost::{CostFigure, CostOf, HostCost};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::stated::Stated;

use super::THIS_HOST;
use crate::table::{Column, Mark, Table, figures};
use crate::text::{ABSENT, ResourceUnit, TimeUnit, number, three_digits};

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

    pub(crate) fn of(&self, value: f64) -> f64 {
        match self {
            Self::Time(unit) => unit.of(value),
            Self::Other(unit) => unit.of(value),
        }
    }

    /// With its interval, where it has one.
    fn stated(&self, value: f64, interval: Option<[f64; 2]>) -> String {
        let in_unit = |value| self.of(value);
        Stated::new(in_unit(value), interval.map(|ends| ends.map(in_unit))).text_in(1.0)
    }
}

/// One value with its unit.
pub(crate) fn cost_text(figure: CostFigure, value: f64) -> String {
    let unit = CostUnit::for_largest(figure, value);
    match unit.name() {
        "" => three_digits(value),
        name => format!("{} {name}", three_digits(unit.of(value))),
    }
}

/// Whose cost it is, in a word or two.
pub(crate) const fn cost_of_name(of: CostOf) -> &'static str {
    match of {
        CostOf::ServerHost => "host",
        CostOf::ServerProcesses => "processes",
        CostOf::SharedHost => "shared host",
        CostOf::GeneratorHost => "generator's host",
        CostOf::OtherHost => "another host",
    }
}

/// A table for each host and what is told apart on it.
pub(super) fn cost_tables(run: &RunResult) -> Vec<Table> {
    let mut kinds: Vec<(CostOf, Option<&str>)> = Vec::new();
    for cost in run.points.iter().flat_map(|point| &point.cost) {
        let kind = (cost.of, cost.source.as_deref());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().map(|kind| cost_table(run, kind)).collect()
}

fn cost_table(run: &RunResult, (of, source): (CostOf, Option<&str>)) -> Table {
    let found = |point: &'_ PointResult| -> Option<HostCost> {
        point.cost.iter().find(|it| it.of == of && it.source.as_deref() == source).cloned()
    };
    let rows: Vec<_> = run.points.iter().map(|point| (point, found(point))).collect();
    let known = || rows.iter().filter_map(|(_, cost)| cost.as_ref());
    let units = CostFigure::ALL.map(|figure| {
        let values = known().filter_map(|cost| cost.figures.get(&figure));
        CostUnit::for_largest(figure, values.map(|cost| cost.value).fold(0.0, f64::max))
    });
    let mut columns: Vec<Column> = vec![figures("requested", &run.axis.unit)];
    let names = CostFigure::ALL.iter().zip(&units);
    columns.extend(names.map(|(figure, unit)| figures(cost_name(*figure), unit.name())));
    // What memory stands beside.
    let set = |point: &PointResult| point.data_set_bytes.map(|bytes| bytes as f64);
    let largest = run.points.iter().filter_map(set).fold(0.0, f64::max);
    let set_unit = CostUnit::for_largest(CostFigure::Memory, largest);
    columns.push(figures("data set", set_unit.name()));
    let mut table = Table::new(caption(of, source, known().next()), columns);
    for (point, cost) in &rows {
        let mut cells = vec![number(Some(point.requested))];
        cells.extend(CostFigure::ALL.iter().zip(&units).map(|(figure, unit)| {
            let cost = cost.as_ref().and_then(|cost| cost.figures.get(figure));
            cost.map_or_else(|| ABSENT.to_owned(), |it| unit.stated(it.value, it.interval))
        }));
        let has_memory =
            cost.as_ref().is_some_and(|it| it.figures.contains_key(&CostFigure::Memory));
        let beside = set(point).filter(|_| has_memory);
        cells.push(beside.map_or_else(|| ABSENT.to_owned(), |bytes| set_unit.stated(bytes, None)));
        table.push_marked(cells, Mark::of(point));
    }
    table.without_empty_columns()
}

fn caption(of: CostOf, source: Option<&str>, example: Option<&HostCost>) -> String {
    let place = source.unwrap_or(THIS_HOST);
    let whose = match of {
        CostOf::ServerHost => format!("The server's host ({place}), all that ran on it."),
        CostOf::ServerProcesses => format!("The server's processes ({place})."),
        CostOf::SharedHost => format!(
            "The host of server and generator ({place}): what its disks and interfaces carried is \
             that of both."
        ),
        CostOf::GeneratorHost => format!("The generator's host ({place}), all that ran on it."),
        CostOf::OtherHost => format!("Another host that was watched ({place})."),
    };
    let counted = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" {what}: {}.", names.join(", ")),
    };
    let (disks, interfaces) =
        example.map(|it| (&it.disks[..], &it.interfaces[..])).unwrap_or_default();
    format!("{whose}{}{}", counted("Disks", disks), counted("Interfaces", interfaces))
}
