//! A curve measured elsewhere (load, throughput and response time as CSV), and the overall response
//! time: one figure for a whole curve of mean response time over throughput.

use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::{
    Axis, OverallResponse, PointResult, RESULT_FORMAT, RunResult, Summary, TimeSummary, Verdict,
};

/// Lines a curve may have; no published one has more than some dozens.
pub const CURVE_LINES_MAX: usize = 100_000;
/// Columns every curve has; others are ignored.
const COLUMNS: [&str; 3] = ["load", "throughput", "response_ms"];

/// Why a curve cannot be read. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// No line at all.
    #[error("the curve is empty; begin with the header load,throughput,response_ms")]
    Empty,
    /// A column is not in the header.
    #[error(
        "line {line}: the header has no column {column:?}; it needs load, throughput and \
         response_ms"
    )]
    NoColumn {
        /// Line of the header.
        line: usize,
        /// The column that is missing.
        column: &'static str,
    },
    /// A line is shorter than the header.
    #[error("line {line}: {count} fields where the header has {expected}")]
    Fields {
        /// The line.
        line: usize,
        /// Its fields.
        count: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// A field is not a number from 0 up.
    #[error("line {line}: {column} is {text:?}; write a number from 0 up, without unit")]
    NotANumber {
        /// The line.
        line: usize,
        /// The column.
        column: &'static str,
        /// Its text.
        text: String,
    },
    /// A header without points.
    #[error("the curve has a header and no point; write one line per load point")]
    NoPoints,
    /// More lines than [`CURVE_LINES_MAX`].
    #[error("the curve has more than {CURVE_LINES_MAX} lines; is it the right file?")]
    TooLong,
}

/// The result of a curve: overall response time, peak, and the points in the order given. Figures
/// that a curve does not contain are `null`. The verdict is about the file alone: it is valid when
/// every point has a throughput and a response time. How it was measured is not known here.
pub fn analyse_curve(text: &str) -> Result<RunResult, CurveError> {
    let rows = read(text)?;
    let points: Vec<PointResult> =
        rows.iter().zip(1..).map(|(row, position)| row.result(position)).collect();
    let reasons: Vec<Finding> = points.iter().flat_map(|p| p.reasons.iter().cloned()).collect();
    let curve: Vec<CurvePoint> = rows.iter().map(|row| row.point).collect();
    let peak = curve.iter().map(|point| point.achieved_ops_per_s).reduce(f64::max);
    Ok(RunResult {
        format: RESULT_FORMAT,
        verdict: Verdict {
            valid: reasons.is_empty(),
            reasons,
            warnings: vec![Rule::ForeignCurve.of_run()],
        },
        axis: Axis { name: "load".to_owned(), unit: String::new() },
        summary: Summary {
            metric: "highest throughput of the curve".to_owned(),
            value: peak,
            unit: "ops/s".to_owned(),
            peak_ops_per_s: peak,
            overall_response_ms: overall_response(&curve),
            ..Summary::default()
        },
        points,
        ..RunResult::default()
    })
}

/// A point without throughput or response time was not measured.
fn empty(row: &Row, position: u32) -> Option<Finding> {
    let CurvePoint { achieved_ops_per_s, response_ms } = row.point;
    let column = match (achieved_ops_per_s > 0.0, response_ms > 0.0) {
        (true, true) => return None,
        (false, _) => "throughput",
        (true, false) => "response_ms",
    };
    Some(Rule::CurvePoint { column: column.to_owned() }.of_point(position))
}

struct Row {
    load: f64,
    point: CurvePoint,
}

impl Row {
    fn result(&self, position: u32) -> PointResult {
        let mean = Some(self.point.response_ms * 1e6);
        let reasons: Vec<Finding> = empty(self, position).into_iter().collect();
        PointResult {
            position,
            valid: reasons.is_empty(),
            reasons,
            requested: self.load,
            achieved_ops_per_s: Some(self.point.achieved_ops_per_s),
            service_ns: Some(TimeSummary { mean, ..TimeSummary::default() }),
            ..PointResult::default()
        }
    }
}

fn read(text: &str) -> Result<Vec<Row>, CurveError> {
    if text.lines().nth(CURVE_LINES_MAX).is_some() {
        return Err(CurveError::TooLong);
    }
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, text)| !text.trim().is_empty() && !text.trim_start().starts_with('#'));
    let (line, header) = lines.next().ok_or(CurveError::Empty)?;
    let names: Vec<&str> = header.split(',').map(clean).collect();
    let mut indices = [0; COLUMNS.len()];
    for (index, column) in indices.iter_mut().zip(COLUMNS) {
        *index = names
            .iter()
            .position(|name| *name == column)
            .ok_or(CurveError::NoColumn { line, column })?;
    }
    let rows = lines
        .map(|(line, text)| read_row(line, text, names.len(), indices))
        .collect::<Result<Vec<Row>, CurveError>>()?;
    if rows.is_empty() { Err(CurveError::NoPoints) } else { Ok(rows) }
}

fn read_row(
    line: usize,
    text: &str,
    expected: usize,
    indices: [usize; COLUMNS.len()],
) -> Result<Row, CurveError> {
    let fields: Vec<&str> = text.split(',').map(clean).collect();
    if fields.len() != expected {
        return Err(CurveError::Fields { line, count: fields.len(), expected });
    }
    let number = |i: usize| {
        let text = fields[indices[i]];
        let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| CurveError::NotANumber {
            line,
            column: COLUMNS[i],
            text: text.to_owned(),
        })
    };
    Ok(Row {
        load: number(0)?,
        point: CurvePoint { achieved_ops_per_s: number(1)?, response_ms: number(2)? },
    })
}

/// A field without the blanks and quotes around it.
fn clean(field: &str) -> &str {
    field.trim().trim_matches('"')
}

/// One point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Throughput achieved.
    pub achieved_ops_per_s: f64,
    /// Mean service time.
    pub response_ms: f64,
}

/// Fewer points do not make a curve: two of them are a line, whose area does not show how the
/// response time rises.
const POINTS_MIN: usize = 3;

/// Both definitions over the points up to and including the one of highest throughput. Past the
/// peak the curve folds back, so an area there has no meaning.
///
/// `origin` is the area under the curve from an added (0, 0) point to the peak, divided by the
/// peak's throughput (NFS benchmarks of the 3.0 and 2008 era). `span` is the area between first
/// and last point, divided by their distance (the 2020 definition). Both are absent with fewer
/// than three points.
pub fn overall_response(points: &[CurvePoint]) -> OverallResponse {
    let enough = points.len() >= POINTS_MIN;
    let Some(peak) = peak_index(points).filter(|_| enough) else {
        return OverallResponse::default();
    };
    let rising = &points[..=peak];
    let first = rising[0];
    let last = rising[peak];
    let between = area(rising);
    let triangle = first.achieved_ops_per_s * first.response_ms / 2.0;
    let distance = last.achieved_ops_per_s - first.achieved_ops_per_s;
    OverallResponse {
        origin: (last.achieved_ops_per_s > 0.0)
            .then(|| (triangle + between) / last.achieved_ops_per_s),
        span: (distance > 0.0).then(|| between / distance),
    }
}

/// The first point of highest throughput.
fn peak_index(points: &[CurvePoint]) -> Option<usize> {
    let mut peak: Option<usize> = None;
    for (i, point) in points.iter().enumerate() {
        if peak.is_none_or(|p| point.achieved_ops_per_s > points[p].achieved_ops_per_s) {
            peak = Some(i);
        }
    }
    peak
}

fn area(points: &[CurvePoint]) -> f64 {
    points
        .windows(2)
        .map(|pair| {
            let width = pair[1].achieved_ops_per_s - pair[0].achieved_ops_per_s;
            width * (pair[0].response_ms + pair[1].response_ms) / 2.0
        })
        .sum()
}

#[cfg(test)]
mod tests;
