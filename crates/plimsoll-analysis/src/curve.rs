//! A curve measured elsewhere: load, throughput and response time as CSV.

use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::result::{
    Axis, PointResult, RESULT_FORMAT, RunResult, Summary, TimeSummary, Verdict,
};

use crate::overall::{CurvePoint, overall_response};

/// Lines a curve may have; no published one has more than some dozens.
pub const CURVE_LINES_MAX: usize = 100_000;
/// Columns every curve has; others are left alone.
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
    #[error("line {line}: {found} fields where the header has {wanted}")]
    Fields {
        /// The line.
        line: usize,
        /// Its fields.
        found: usize,
        /// Fields of the header.
        wanted: usize,
    },
    /// A field is not a number from 0 up.
    #[error("line {line}: {column} is {text:?}; write a number from 0 up, without unit")]
    NotANumber {
        /// The line.
        line: usize,
        /// The column.
        column: &'static str,
        /// What stands there.
        text: String,
    },
    /// A header without points.
    #[error("the curve has a header and no point; write one line per load point")]
    NoPoints,
    /// More lines than [`CURVE_LINES_MAX`].
    #[error("the curve has more than {CURVE_LINES_MAX} lines; is it the right file?")]
    TooLong,
}

/// The result of a curve: overall response time, peak, and the points in the order given. What a
/// curve cannot tell stays `null`. Its verdict is about the file alone, valid when every point has
/// a throughput and a response time; how it was measured nobody here can judge.
pub fn analyse_curve(text: &str) -> Result<RunResult, CurveError> {
    let rows = read(text)?;
    let points: Vec<PointResult> =
        rows.iter().zip(1..).map(|(row, position)| row.result(position)).collect();
    let reasons: Vec<Finding> = points.iter().flat_map(|p| p.reasons.iter().cloned()).collect();
    let curve: Vec<CurvePoint> = rows.iter().map(|row| row.point).collect();
    let peak = curve.iter().map(|point| point.achieved_ops_per_s).reduce(f64::max);
    Ok(RunResult {
        format: RESULT_FORMAT,
        suite: None,
        targets: Vec::new(),
        profile: None,
        seed: None,
        started: None,
        command: Vec::new(),
        gates: Vec::new(),
        verdict: Verdict {
            valid: reasons.is_empty(),
            reasons,
            warnings: vec![Rule::ForeignCurve.of_run()],
        },
        axis: Axis { name: "load".to_owned(), unit: String::new() },
        summary: Summary {
            metric: "peak throughput of the curve".to_owned(),
            value: peak,
            unit: "ops/s".to_owned(),
            peak_ops_per_s: peak,
            overall_response_ms: overall_response(&curve),
            ..Summary::default()
        },
        points,
        probes: Vec::new(),
        hints: Vec::new(),
        departures: Vec::new(),
        method: Vec::new(),
        nonconformities: Nonconformities::default(),
        server_profile: None,
        disclosure: None,
    })
}

/// A point at which nothing was done, or in no time, was not measured.
fn empty(row: &Row, position: u32) -> Option<Finding> {
    let CurvePoint { achieved_ops_per_s, response_ms } = row.point;
    let column = match (achieved_ops_per_s > 0.0, response_ms > 0.0) {
        (true, true) => return None,
        (false, _) => "throughput",
        (true, false) => "response_ms",
    };
    Some(Rule::CurvePoint { column: column.to_owned() }.at(position))
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
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        *place = names
            .iter()
            .position(|name| *name == column)
            .ok_or(CurveError::NoColumn { line, column })?;
    }
    let rows = lines
        .map(|(line, text)| read_row(line, text, names.len(), places))
        .collect::<Result<Vec<Row>, CurveError>>()?;
    if rows.is_empty() { Err(CurveError::NoPoints) } else { Ok(rows) }
}

fn read_row(
    line: usize,
    text: &str,
    wanted: usize,
    places: [usize; COLUMNS.len()],
) -> Result<Row, CurveError> {
    let fields: Vec<&str> = text.split(',').map(clean).collect();
    if fields.len() != wanted {
        return Err(CurveError::Fields { line, found: fields.len(), wanted });
    }
    let number = |i: usize| {
        let text = fields[places[i]];
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

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: &str = "\
# from a published table
load,throughput,response_ms,note
25000,25025,0.9,a
50000,49940,1.2,b
75000,74807,1.3,c
100000,99889,1.5,d
125000,128059,1.4,e
150000,154587,1.6,f
175000,178734,1.8,g
200000,202428,2.2,h
225000,225822,2.5,i
250000,250573,3.0,j
";

    #[test]
    fn a_published_curve_gives_its_published_overall_response_time() {
        let result = analyse_curve(CURVE).unwrap();
        assert_eq!(format!("{:.2}", result.summary.overall_response_ms.origin.unwrap()), "1.58");
        assert_eq!(result.summary.peak_ops_per_s, Some(250_573.0));
        assert_eq!(result.points.len(), 10);
        let last = &result.points[9];
        assert_eq!((last.position, last.requested), (10, 250_000.0));
        assert_eq!(last.achieved_ops_per_s, Some(250_573.0));
        assert_eq!(last.service_ns.unwrap().mean, Some(3_000_000.0));
        assert_eq!((last.response_ns, last.bytes_read), (None, None));
    }

    #[test]
    fn a_sound_file_is_valid_and_says_that_only_the_file_was_judged() {
        let result = analyse_curve(CURVE).unwrap();
        assert!(result.verdict.valid && result.points.iter().all(|p| p.valid));
        assert_eq!(result.verdict.reasons, []);
        assert_eq!(result.verdict.warnings[0].rule.name(), "foreign_curve");
    }

    #[test]
    fn a_point_at_which_nothing_was_measured_makes_the_curve_invalid() {
        for (line, what) in [("2,0,3", "throughput"), ("2,3,0", "response_ms")] {
            let text = format!("load,throughput,response_ms\n1,2,3\n{line}\n");
            let verdict = analyse_curve(&text).unwrap().verdict;
            assert!(!verdict.valid);
            let reason = &verdict.reasons[0];
            assert_eq!((reason.rule.name(), reason.point), ("curve_point", Some(2)));
            assert!(reason.rule.to_string().starts_with(what), "{}", reason.rule);
        }
    }

    #[test]
    fn columns_may_stand_in_any_order_quoted_and_with_line_ends_of_dos() {
        let text = "\u{feff}\"response_ms\", load ,throughput\r\n\"2\",10,9.5\r\n\r\n";
        let result = analyse_curve(text).unwrap();
        assert_eq!(result.points[0].requested, 10.0);
        assert_eq!(result.points[0].achieved_ops_per_s, Some(9.5));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, message: &str| {
            let error = analyse_curve(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        check("", "the curve is empty");
        check("\n# only a comment\n", "the curve is empty");
        check("\nload,throughput\n1,2\n", "line 2: the header has no column \"response_ms\"");
        check("load,throughput,response_ms\n", "no point");
        check("load,throughput,response_ms\n\n1,2\n", "line 3: 2 fields where the header has 3");
        for bad in ["x", "-1", "NaN", "inf", "1e999", ""] {
            let text = format!("load,throughput,response_ms\n1,{bad},3\n");
            check(&text, &format!("line 2: throughput is {bad:?}"));
        }
        check(&"\n".repeat(CURVE_LINES_MAX + 1), "more than 100000 lines");
    }
}
