//! The points of a run, a row for each.

use std::cmp::Ordering;
use std::fmt::Write as _;

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, grouped};

use super::super::Style;
use super::super::point_line::time;
use super::extent::Extent;
use super::metric;

const ABSENT: &str = "–";
/// Between columns.
const SPACE: usize = 2;

/// A column: its title, its cells, and how wide it is where there is room.
struct Column {
    title: String,
    cells: Vec<String>,
    wide: usize,
    /// The first to go where there is none: the highest; zero stays.
    spare: u8,
}

/// What a point's row ends with.
enum Mark {
    Valid,
    NotCounted,
    Invalid,
}

impl Mark {
    fn of(point: &PointResult) -> Self {
        match (point.valid, &point.not_counted) {
            (false, _) => Self::Invalid,
            (true, Some(_)) => Self::NotCounted,
            (true, None) => Self::Valid,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::NotCounted => "not counted",
            Self::Invalid => "invalid",
        }
    }

    fn painted(&self, style: Style) -> String {
        match self {
            Self::Valid => style.good(self.word()),
            Self::NotCounted => style.mixed(self.word()),
            Self::Invalid => style.bad(self.word()),
        }
    }
}

/// The table, thinned to the rows of `extent` and narrowed to its columns.
pub(super) fn push(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    if result.points.is_empty() {
        return;
    }
    let points = thinned(&result.points, metric(result), extent.rows_max);
    let marks: Vec<Mark> = points.iter().map(|point| Mark::of(point)).collect();
    let mut columns = columns(result, &points);
    if let Some(room) = extent.columns {
        let mark = marks.iter().map(|mark| SPACE + mark.word().len()).max().unwrap_or(0);
        narrow(&mut columns, room.saturating_sub(mark));
    }
    let line = |cell: &dyn Fn(&Column) -> String| {
        let cells = columns.iter().map(|column| format!("{:>1$}", cell(column), column.wide));
        cells.collect::<Vec<_>>().join("  ")
    };
    let titles = line(&|column| column.title.clone());
    let _ = writeln!(out, "{}  {}", extent.gap(), style.dim(&titles));
    for (at, mark) in marks.iter().enumerate() {
        let row = line(&|column| column.cells[at].clone());
        let _ = writeln!(out, "  {row}  {}", mark.painted(style));
    }
    if result.points.len() > points.len() {
        let _ = writeln!(out, "  {}", style.dim("(some points left out; the report has all)"));
    }
}

/// Makes columns as narrow as their cells, then leaves some out, until a row fits.
fn narrow(columns: &mut Vec<Column>, room: usize) {
    let width = |columns: &[Column]| columns.iter().map(|c| SPACE + c.wide).sum::<usize>();
    if width(columns) <= room {
        return;
    }
    for column in columns.iter_mut() {
        let cells = column.cells.iter().chain([&column.title]);
        column.wide = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
    }
    while width(columns) > room {
        let spare = columns.iter().map(|column| column.spare).max().unwrap_or(0);
        if spare == 0 {
            return;
        }
        columns.retain(|column| column.spare != spare);
    }
}

fn columns(result: &RunResult, points: &[&PointResult]) -> Vec<Column> {
    let metric = metric(result);
    let column = |title: &str, wide, spare, cell: &dyn Fn(&PointResult) -> Option<String>| Column {
        title: title.to_owned(),
        cells: points.iter().map(|p| cell(p).unwrap_or_else(|| ABSENT.to_owned())).collect(),
        wide,
        spare,
    };
    let unit = match result.axis.name.as_str() {
        "think time" => "think time s",
        _ => &result.axis.unit,
    };
    let ops = match metric {
        Metric::Bytes => Metric::Ops.unit(),
        other => other.unit(),
    };
    let mut columns = vec![column(unit, 12, 0, &|p| Some(grouped(p.requested)))];
    if metric == Metric::Bytes {
        let rate = |p: &PointResult| {
            Some(format!("{:.2}", BytesPerSec(p.achieved_bytes_per_s?).mib_per_s()))
        };
        let took_part = |p: &PointResult| Some(p.clients_participating?.to_string());
        columns.push(column("took part", 9, 0, &took_part));
        columns.push(column("MiB/s", 9, 0, &rate));
    }
    columns.push(column(ops, 12, 0, &|p| p.achieved_ops_per_s.map(grouped)));
    if result.points.iter().any(|point| point.score.is_some()) {
        columns.push(column("score", 9, 0, &|p| p.score.map(grouped)));
    }
    let times = |p: &PointResult| p.response_ns.unwrap_or_default();
    columns.push(column("p50", 9, 2, &|p| Some(time(times(p).p50))));
    columns.push(column("p95", 9, 3, &|p| Some(time(times(p).p95))));
    columns.push(column("p99", 9, 1, &|p| Some(time(times(p).p99))));
    columns.push(column("errors", 7, 0, &|p| Some(p.errors.values().sum::<u64>().to_string())));
    let busy = |p: &PointResult| Some(format!("{:.0} %", p.generator.cpu_busy_ratio_max? * 100.0));
    columns.push(column("busy", 5, 4, &busy));
    columns
}

/// At most `rows_max` points, evenly chosen: the first, the last and the best of those that count
/// are among them.
fn thinned(points: &[PointResult], metric: Metric, rows_max: usize) -> Vec<&PointResult> {
    if points.len() <= rows_max {
        return points.iter().collect();
    }
    let last = points.len() - 1;
    let mut chosen: Vec<usize> = (0..rows_max).map(|k| k * last / (rows_max - 1)).collect();
    let value = |at: &usize| match metric {
        Metric::Bytes => points[*at].achieved_bytes_per_s,
        _ => points[*at].achieved_ops_per_s,
    };
    let counting = (0..=last).filter(|at| points[*at].counts());
    let best = counting.max_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal));
    if let Some(best) = best.filter(|best| (1..last).contains(best))
        && let Some(near) = chosen[1..rows_max - 1].iter_mut().min_by_key(|at| at.abs_diff(best))
    {
        *near = best;
    }
    chosen.into_iter().map(|at| &points[at]).collect()
}
