//! A CSV file under construction: a row for each item, and one column after the other.

use plimsoll_model::result::{PointResult, RunResult, TimeIntervals, TimeSummary};

pub(crate) struct Sheet<T> {
    items: Vec<T>,
    /// The header first.
    rows: Vec<Vec<String>>,
}

/// An item of a load point.
pub(super) struct OfPoint<'r, T> {
    /// `ladder`, or `probe` of the search.
    pub(super) kind: &'static str,
    pub(super) point: &'r PointResult,
    pub(super) item: T,
}

impl<T> Sheet<T> {
    pub(crate) fn new(items: impl IntoIterator<Item = T>) -> Self {
        let items = Vec::from_iter(items);
        Self { rows: vec![Vec::new(); items.len() + 1], items }
    }

    /// Adds a column; absent values are empty.
    pub(crate) fn column<C: ToString>(
        mut self,
        name: &str,
        cell: impl Fn(&T) -> Option<C>,
    ) -> Self {
        let cells =
            self.items.iter().map(|item| cell(item).map_or_else(String::new, |it| it.to_string()));
        let named = std::iter::once(name.to_owned()).chain(cells);
        self.rows.iter_mut().zip(named).for_each(|(row, cell)| row.push(cell));
        self
    }

    /// Adds what `columns` adds, only where `shown`.
    pub(super) fn columns_if(self, shown: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if shown { columns(self) } else { self }
    }

    /// Adds both ends of an interval.
    pub(super) fn bounds(
        self,
        [low, high]: [&str; 2],
        interval: impl Fn(&T) -> Option<[f64; 2]>,
    ) -> Self {
        self.column(low, |it| Some(interval(it)?[0]))
            .column(high, |it| Some(interval(it)?[1]).filter(|high| high.is_finite()))
    }

    /// Adds the figures of times, which begin with `prefix`.
    pub(super) fn times(self, prefix: &str, times: impl Fn(&T) -> Option<TimeSummary>) -> Self {
        type Figure = fn(TimeSummary) -> Option<u64>;
        let percentiles: [(&str, Figure); 6] = [
            ("p50", |it| it.p50),
            ("p90", |it| it.p90),
            ("p95", |it| it.p95),
            ("p99", |it| it.p99),
            ("p999", |it| it.p999),
            ("max", |it| it.max),
        ];
        let begin = self
            .column(&format!("{prefix}_n"), |it| Some(times(it)?.n))
            .column(&format!("{prefix}_mean_ns"), |it| times(it)?.mean)
            .column(&format!("{prefix}_mean_error_ns"), |it| times(it)?.mean_error);
        percentiles.into_iter().fold(begin, |sheet, (name, figure)| {
            sheet.column(&format!("{prefix}_{name}_ns"), |it| figure(times(it)?))
        })
    }

    /// Adds the uncertainty intervals of times.
    pub(super) fn intervals(
        self,
        prefix: &str,
        intervals: impl Fn(&T) -> Option<TimeIntervals>,
    ) -> Self {
        type Figure = fn(TimeIntervals) -> Option<[f64; 2]>;
        let figures: [(&str, Figure); 6] = [
            ("mean", |it| it.mean),
            ("p50", |it| it.p50),
            ("p90", |it| it.p90),
            ("p95", |it| it.p95),
            ("p99", |it| it.p99),
            ("p999", |it| it.p999),
        ];
        figures.into_iter().fold(self, |sheet, (name, figure)| {
            let [low, high] = ["low", "high"].map(|end| format!("{prefix}_{name}_{end}_ns"));
            sheet.bounds([&low, &high], |it| figure(intervals(it)?))
        })
    }

    pub(crate) fn text(self) -> String {
        let line =
            |row: Vec<String>| row.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        self.rows.into_iter().map(line).collect()
    }
}

impl<'r, T> Sheet<OfPoint<'r, T>> {
    /// A row for each of the items of each point; the columns of the point come first.
    pub(super) fn of_points<I: IntoIterator<Item = T>>(
        run: &'r RunResult,
        items: impl Fn(&'r PointResult) -> I,
    ) -> Self {
        let all = all(run).flat_map(|(kind, point)| {
            items(point).into_iter().map(move |item| OfPoint { kind, point, item })
        });
        let unit = run.axis.unit.replace('/', "_per_").replace(' ', "_");
        let requested = format!("requested_{unit}");
        Self::new(all)
            .column("kind", |it| Some(it.kind))
            .point("position", |point| Some(point.position))
            .point(requested.trim_end_matches('_'), |point| Some(point.requested))
    }

    /// Adds a column of the point itself.
    pub(super) fn point<C: ToString>(
        self,
        name: &str,
        cell: impl Fn(&'r PointResult) -> Option<C>,
    ) -> Self {
        self.column(name, |it| cell(it.point))
    }

    /// Adds a column of the item.
    pub(super) fn item<C: ToString>(self, name: &str, cell: impl Fn(&T) -> Option<C>) -> Self {
        self.column(name, |it| cell(&it.item))
    }
}

/// Points of ladder and probes, each with its kind.
pub(super) fn all(run: &RunResult) -> impl Iterator<Item = (&'static str, &PointResult)> {
    run.points.iter().map(|p| ("ladder", p)).chain(run.probes.iter().map(|p| ("probe", p)))
}

/// RFC 4180.
fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}
