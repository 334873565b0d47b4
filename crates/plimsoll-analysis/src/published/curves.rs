//! Published systems as curves and as lines of a table of results.

use plimsoll_model::board::{BoardPrice, BoardRow, BoardSource};
use plimsoll_model::comparison::{Curve, CurveFigure, CurvePoint, PublishedSource};
use plimsoll_model::suite::Metric;

use super::systems::{System, file_of};
use super::{Published, PublishedError};

/// Stands for all files.
const ALL: &str = "all";

/// A published curve, and what decides whether it may be drawn beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCurve {
    /// Empty where the source prints no load points. No source here prints response times.
    pub curve: Curve,
    /// Suites that follow its method.
    pub suites: Vec<String>,
    /// Unit of its loads.
    pub axis_unit: String,
    /// Unit of its throughput.
    pub unit: String,
    /// The source prints no requested loads: each point is at the rate it achieved.
    pub at_achieved: bool,
}

/// The curve of a system, `NAME` of a file with one, or `NAME/SYSTEM`.
///
/// # Errors
/// When the name is not known, or not of one system.
pub fn curve(name: &str) -> Result<PublishedCurve, PublishedError> {
    let file = file_of(name)?;
    let system = file.system(name)?;
    Ok(file.curve_of(name, &system))
}

impl Published {
    fn curve_of(&self, name: &str, system: &System<'_>) -> PublishedCurve {
        let label = self.label_of(system);
        let point = |(load, throughput): (f64, f64)| CurvePoint {
            load,
            throughput: Some(CurveFigure { value: throughput, range: None }),
            ..CurvePoint::default()
        };
        let clients = system.bytes.map(|bytes| bytes.clients.iter().copied().map(f64::from));
        let points: Vec<CurvePoint> = match clients {
            Some(clients) => clients.zip(system.values()).map(point).collect(),
            // Of an open load the request is not printed, only what came of it.
            None => system.values().map(|rate| point((rate, rate))).collect(),
        };
        let open = system.bytes.is_none() && !points.is_empty();
        let published =
            PublishedSource { name: name.to_owned(), year: self.year, source: self.source.clone() };
        PublishedCurve {
            curve: Curve { label, published: Some(published), points },
            suites: self.suites.clone(),
            axis_unit: if open { Metric::Ops.unit() } else { "clients" }.to_owned(),
            unit: self.unit.clone(),
            at_achieved: open,
        }
    }

    /// What a system of this file is called among systems of others: a configuration says nothing
    /// of its server.
    pub(super) fn label_of(&self, system: &System<'_>) -> String {
        match self.configuration(&system.label) {
            Some(_) => format!("{}, {}", self.name, system.label),
            None => system.label.clone(),
        }
    }
}

/// A line for each system that `asked` names: `NAME`, `NAME/SYSTEM`, or `all` of all files. Figures
/// are as printed.
///
/// # Errors
/// When the name is not known.
pub fn board_rows(asked: &str) -> Result<Vec<BoardRow>, PublishedError> {
    if asked == ALL {
        let files: Result<Vec<_>, _> = super::names().map(super::published).collect();
        return Ok(files?.iter().flat_map(Published::board_rows).collect());
    }
    let file = file_of(asked)?;
    if asked == file.name {
        return match file.board_rows() {
            rows if rows.is_empty() => Err(PublishedError::NoFigures { name: file.name }),
            rows => Ok(rows),
        };
    }
    Ok(vec![file.board_row(&file.system(asked)?)])
}

impl Published {
    fn board_rows(&self) -> Vec<BoardRow> {
        self.systems().iter().map(|system| self.board_row(system)).collect()
    }

    fn board_row(&self, system: &System<'_>) -> BoardRow {
        let printed = system.bytes.and_then(|bytes| bytes.printed_usd_per_mb_per_s);
        let price = printed.map(|per_unit| BoardPrice {
            currency: "USD".to_owned(),
            per_unit,
            unit: "MiB/s".to_owned(),
            at_most: false,
        });
        BoardRow {
            source: BoardSource::Published(self.name_of(system)),
            date: Some(self.year.to_string()),
            system: self.label_of(system),
            suite: self.suites.join(", "),
            processors: system.processors,
            peak: Some(system.peak),
            unit: self.unit.clone(),
            price,
            ..BoardRow::default()
        }
    }
}
