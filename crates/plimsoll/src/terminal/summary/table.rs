//! The points of a run, a row for each.

use std::cmp::Ordering;
use std::fmt::Write as _;

use plimsoll_model::capacity::Figure;
use plimsoll_model::limit::Limit;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{NotCounted, PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, grouped, whole_percent};
use plimsoll_report::{limit_name, not_counted_word};

use super::super::Style;
use super::extent::Extent;
use super::metric;

const ABSENT: &str = "–";
/// Between columns.
const SPACE: usize = 2;

/// A column: its title, its cells, and its width if there is room.
struct Column {
    title: String,
    /// Used if room is short.
    short_title: Option<&'static str>,
    cells: Vec<String>,
    /// Cells without intervals, and the rank by which they replace the others: the highest goes
    /// first.
    bare: Option<(u8, Vec<String>)>,
    wide: usize,
    /// The rank by which the column is dropped for lack of room; zero is never dropped.
    spare: u8,
}

impl Column {
    /// Makes it as narrow as its contents.
    fn shrink(&mut self) {
        if let Some(title) = self.short_title.take() {
            self.title = title.to_owned();
        }
        let cells = self.cells.iter().chain([&self.title]);
        self.wide = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
    }

    /// The rank of its next reduction.
    fn drop_rank(&self) -> u8 {
        self.bare.as_ref().map_or(0, |(rank, _)| *rank).max(self.spare)
    }
}

/// The last cell of a point's row.
enum Mark {
    Valid,
    NotCounted(NotCounted),
    Invalid,
    /// A point of a curve from elsewhere.
    NotEvaluated,
}

impl Mark {
    fn for_point(result: &RunResult, point: &PointResult) -> Self {
        match (point.valid, &point.not_counted) {
            (false, _) => Self::Invalid,
            (true, _) if result.suite.is_none() => Self::NotEvaluated,
            (true, Some(why)) => Self::NotCounted(*why),
            (true, None) => Self::Valid,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::NotCounted(why) => not_counted_word(*why),
            Self::Invalid => "invalid",
            Self::NotEvaluated => "",
        }
    }

    fn painted(&self, style: Style) -> String {
        match self {
            Self::Valid => style.good(self.word()),
            Self::NotCounted(_) => style.mixed(self.word()),
            Self::Invalid => style.bad(self.word()),
            Self::NotEvaluated => String::new(),
        }
    }
}

/// The table, thinned to the rows of `extent` and narrowed to its columns.
pub(super) fn push(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    if result.points.is_empty() {
        return;
    }
    let points = thinned_of(result, extent);
    let marks: Vec<Mark> = points.iter().map(|point| Mark::for_point(result, point)).collect();
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
    let _ = writeln!(out, "{}  {}", extent.separator(), style.dim(&titles));
    for (at, mark) in marks.iter().enumerate() {
        let row = line(&|column| column.cells[at].clone());
        let line = format!("  {row}  {}", mark.painted(style));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if result.points.len() > points.len() {
        let _ = writeln!(out, "  {}", style.dim("(some points left out; the report has all)"));
    }
}

/// Makes columns as narrow as their cells, then leaves out intervals and columns, until a row fits.
fn narrow(columns: &mut Vec<Column>, room: usize) {
    let width = |columns: &[Column]| columns.iter().map(|c| SPACE + c.wide).sum::<usize>();
    if width(columns) <= room {
        return;
    }
    columns.iter_mut().for_each(Column::shrink);
    while width(columns) > room {
        let rank = columns.iter().map(Column::drop_rank).max().unwrap_or(0);
        if rank == 0 {
            return;
        }
        columns.retain(|column| column.spare != rank);
        for column in columns.iter_mut() {
            if let Some((_, cells)) = column.bare.take_if(|(of, _)| *of == rank) {
                column.cells = cells;
                column.shrink();
            }
        }
    }
}

/// A column's cell for a point, if there is a value.
type Cell<'c> = &'c dyn Fn(&PointResult) -> Option<String>;

/// The points of the rows.
struct Rows<'p>(&'p [&'p PointResult]);

impl Rows<'_> {
    fn cells(&self, cell: Cell<'_>) -> Vec<String> {
        self.0.iter().map(|p| cell(p).unwrap_or_else(|| ABSENT.to_owned())).collect()
    }

    fn column(&self, title: &str, wide: usize, spare: u8, cell: Cell<'_>) -> Column {
        let (title, cells) = (title.to_owned(), self.cells(cell));
        Column { title, short_title: None, cells, bare: None, wide, spare }
    }

    /// A column of response times that drops its intervals at rank `bare` and itself at rank
    /// `spare`.
    fn times(&self, title: &str, (bare, spare): (u8, u8), figure: Figure) -> Column {
        let reported = |p: &PointResult| ReportedFigure::response(p, figure);
        let short = |p: &PointResult| reported(p).map(|time| time.bare_time_text());
        Column {
            bare: Some((bare, self.cells(&short))),
            ..self.column(title, 9, spare, &|p| reported(p).map(|time| time.time_text()))
        }
    }
}

fn columns(result: &RunResult, points: &[&PointResult]) -> Vec<Column> {
    let (rows, metric) = (Rows(points), metric(result));
    let ops = match metric {
        Metric::Bytes => Metric::Ops.unit(),
        other => other.unit(),
    };
    let requested = match result.axis.name.as_str() {
        "think time" => "think time s",
        // The other column shows the unit.
        _ if result.axis.unit == ops => "requested",
        name if result.axis.unit.is_empty() => name,
        _ => &result.axis.unit,
    };
    let phase = |p: &PointResult| Some(p.phase.as_ref()?.name.clone());
    let mut columns = vec![match result.load_shape.is_some() {
        true => rows.column("phase", 14, 0, &phase),
        false => rows.column(requested, 12, 0, &|p| Some(grouped(p.requested))),
    }];
    if metric == Metric::Bytes {
        let rate = |p: &PointResult| {
            Some(format!("{:.2}", BytesPerSec(p.achieved_bytes_per_s?).mib_per_s()))
        };
        let took_part = |p: &PointResult| Some(p.clients_participating?.to_string());
        columns.push(rows.column("took part", 9, 0, &took_part));
        columns.push(rows.column("MiB/s", 9, 0, &rate));
    }
    let rate = |p: &PointResult| ReportedFigure::achieved(p).map(|rate| rate.rate_text());
    columns.push(Column {
        short_title: (metric != Metric::Logons).then_some("achieved/s"),
        bare: Some((9, rows.cells(&|p| p.achieved_ops_per_s.map(grouped)))),
        ..rows.column(&format!("achieved {ops}"), 14, 0, &rate)
    });
    if result.points.iter().any(|point| point.score.is_some()) {
        columns.push(rows.column("score", 9, 0, &|p| p.score.map(grouped)));
    }
    if result.suite.is_none() {
        let mean =
            |p: &PointResult| ReportedFigure::service(p, Figure::Mean).map(|mean| mean.time_text());
        columns.push(rows.column("mean response", 14, 0, &mean));
        return columns;
    }
    columns.push(rows.times("p50", (5, 2), Figure::P50));
    columns.push(rows.times("p95", (8, 6), Figure::P95));
    columns.push(rows.times("p99", (4, 1), Figure::P99));
    let errors = |p: &PointResult| Some(p.errors.values().sum::<u64>().to_string());
    columns.push(rows.column("errors", 7, 0, &errors));
    let busy = |p: &PointResult| p.generator.cpu_busy_ratio_max.map(whole_percent);
    columns.push(rows.column("busy", 5, 7, &busy));
    // Without any evaluation the text would be the same for all.
    if result.points.iter().any(|point| point.limit != Limit::default()) {
        let first =
            |p: &PointResult| Some(limit_name(&Limit { also: Vec::new(), ..p.limit.clone() }));
        columns.push(Column {
            bare: Some((6, rows.cells(&first))),
            ..rows.column("limit", 13, 3, &|p| Some(limit_name(&p.limit)))
        });
    }
    columns
}

/// The points of a run that have a row here.
pub(super) fn thinned_of<'r>(result: &'r RunResult, extent: &Extent) -> Vec<&'r PointResult> {
    thinned(&result.points, metric(result), extent.rows_max)
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
