//! The distribution of response times in a run of one load point.

use std::fmt::Write as _;

use plimsoll_model::capacity::Figure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::units::{BytesPerSec, Nanos};

use super::super::Style;
use super::super::point_line::time;
use super::extent::Extent;

/// Maximum number of histogram rows.
const ROWS_MAX: usize = 8;
/// Longest bar, in characters.
const BAR: f64 = 32.0;

/// Percentiles, bytes and a histogram, if there is one point and room.
pub(super) fn push(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let [point] = &result.points[..] else { return };
    if !extent.distribution || result.suite.is_none() {
        return;
    }
    let rows = labelled_rows(point);
    if rows.is_empty() {
        return;
    }
    let (times, bytes) = (times(point), bytes(point));
    let fits = extent.columns.is_none_or(|room| times.len() + bytes.len() + 4 <= room);
    let between = if fits { "  " } else { "\n  " };
    let _ =
        writeln!(out, "{}  {}", extent.separator(), style.dim(&format!("{times}{between}{bytes}")));
    push_chunks(out, point);
    let widest = rows.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    for (label, share) in &rows {
        let bar = "█".repeat((share / widest * BAR).round() as usize);
        let percent = if *share < 0.1 { "< 0.1 %".to_owned() } else { format!("{share:.1} %") };
        let _ = writeln!(out, "  {label:>11}  {bar} {percent}");
    }
}

/// The rows as shown. If ops were not sent or not finished, one row has all ops beyond the time up
/// to which the distribution is known.
fn labelled_rows(point: &PointResult) -> Vec<(String, f64)> {
    let rows = rows(&point.response_histogram);
    let label = |(bound, share): &(Nanos, f64)| (format!("≤ {bound}"), *share);
    let Some(censored) = point.censored else { return rows.iter().map(label).collect() };
    let exact_to = Nanos(censored.response_exact_to_ns);
    let exact = rows.iter().take_while(|(bound, _)| *bound <= exact_to);
    let beyond: f64 = rows.iter().skip(exact.clone().count()).map(|(_, share)| share).sum();
    let last = exact.clone().last().map_or(Nanos::ZERO, |(bound, _)| *bound);
    exact.map(label).chain([(format!("> {last}"), beyond)]).collect()
}

/// Printed if replies were timed chunk by chunk. Those of language models have their own table.
fn push_chunks(out: &mut String, point: &PointResult) {
    if point.generation.is_some() {
        return;
    }
    for (name, op) in &point.ops {
        let (Some(first), Some(interval)) = (op.first_piece_ns, op.piece_gap_ns) else { continue };
        let _ = writeln!(
            out,
            "  {name}: first chunk p50 {} p99 {}, chunk gap p50 {} p99 {} max {}",
            time(first.p50),
            time(first.p99),
            time(interval.p50),
            time(interval.p99),
            time(interval.max),
        );
    }
}

fn times(point: &PointResult) -> String {
    let mut text = String::new();
    let all = [
        ("p50", Figure::P50),
        ("p90", Figure::P90),
        ("p95", Figure::P95),
        ("p99", Figure::P99),
        ("p99.9", Figure::P999),
        ("max", Figure::Max),
    ];
    for (name, figure) in all {
        let Some(reported) = ReportedFigure::response(point, figure) else { continue };
        let _ = write!(text, "{name} {}  ", reported.bare_time_text());
    }
    text.trim_end().to_owned()
}

fn bytes(point: &PointResult) -> String {
    let rate = |bytes: Option<u64>| {
        let rate = BytesPerSec(bytes? as f64 / point.seconds.filter(|seconds| *seconds > 0.0)?);
        Some(format!("{:.2} MiB/s", rate.mib_per_s()))
    };
    match (rate(point.bytes_read), rate(point.bytes_written)) {
        (Some(read), Some(written)) => format!("{read} read, {written} written"),
        _ => String::new(),
    }
}

/// The longest time of each row with the row's share of the ops in percent. If there are more
/// buckets than rows, the closest buckets with the fewest ops are joined.
fn rows(histogram: &[(u64, u64)]) -> Vec<(Nanos, f64)> {
    let mut rows = histogram.to_vec();
    let all: u64 = rows.iter().map(|(_, ops)| ops).sum();
    let cost = |pair: &[(u64, u64)]| {
        let [(from, few), (to, more)] = [pair[0], pair[1]];
        (few + more) as f64 * (to as f64 / from.max(1) as f64).ln()
    };
    while rows.len() > ROWS_MAX {
        let costs = rows.windows(2).map(cost).enumerate();
        let Some((at, _)) = costs.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        let (_, ops) = rows.remove(at);
        rows[at].1 += ops;
    }
    rows.into_iter().map(|(ns, ops)| (Nanos(ns), ops as f64 * 100.0 / all as f64)).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::Censored;

    use super::*;

    fn shown(histogram: &[(u64, u64)]) -> Vec<(String, f64)> {
        labelled_rows(&PointResult {
            response_histogram: histogram.to_vec(),
            ..PointResult::default()
        })
    }

    #[test]
    fn no_row_has_a_time_that_no_op_had() {
        let texts = |histogram: &[(u64, u64)]| -> Vec<String> {
            shown(histogram).iter().map(|(label, share)| format!("{label} {share:.1}")).collect()
        };
        let staged = [(116_000_000, 59), (4_000_000_000, 1)];
        assert_eq!(texts(&staged), ["≤ 116 ms 98.3", "≤ 4.00 s 1.7"]);
        // A server with two speeds, and one with three.
        assert_eq!(
            texts(&[(1_000_000, 50), (80_000_000, 50)]),
            ["≤ 1.00 ms 50.0", "≤ 80.0 ms 50.0"]
        );
        let three = [(20_000, 700), (9_000_000, 200), (1_000_000_000, 100)];
        assert_eq!(texts(&three), ["≤ 20.0 µs 70.0", "≤ 9.00 ms 20.0", "≤ 1.00 s 10.0"]);
    }

    #[test]
    fn every_op_is_in_one_row_and_close_buckets_become_one() {
        let mut wide: Vec<(u64, u64)> = (1..=20).map(|n| (n * 50_000, 50)).collect();
        wide.push((4_000_000_000, 20));
        let rows = rows(&wide);
        let sum: f64 = rows.iter().map(|(_, share)| share).sum();
        assert!(rows.len() == ROWS_MAX && (sum - 100.0).abs() < 1e-9, "{rows:?}");
        assert_eq!(rows[ROWS_MAX - 2].0, Nanos::from_millis(1), "the gap stays: {rows:?}");
    }

    #[test]
    fn what_lies_beyond_the_known_times_is_one_row() {
        let point = |exact_to_ms: u64| PointResult {
            response_histogram: vec![(10_000_000, 1), (20_000_000, 1), (30_000_000, 2)],
            censored: Some(Censored {
                response_exact_to_ns: exact_to_ms * 1_000_000,
                ..Censored::default()
            }),
            ..PointResult::default()
        };
        let last = |exact_to_ms| labelled_rows(&point(exact_to_ms)).pop().unwrap();
        assert_eq!(last(20), ("> 20.0 ms".to_owned(), 50.0));
        assert_eq!(last(5), ("> 0 s".to_owned(), 100.0));
    }

    #[test]
    fn a_long_tail_takes_few_rows() {
        let bulk = (0..10).map(|n| (20_000 + n * 3_000, 100));
        let tail = (1..=20).map(|n| (100_000 * n, 1));
        let rows = rows(&bulk.chain(tail).collect::<Vec<_>>());
        assert!(rows.len() <= ROWS_MAX, "{rows:?}");
        assert_eq!(rows.last().map(|(bound, _)| *bound), Some(Nanos(2_000_000)));
        let of_tail = rows.iter().filter(|(bound, _)| bound.0 > 60_000).count();
        assert!((1..=2).contains(&of_tail), "{rows:?}");
        assert!(super::rows(&[]).is_empty());
    }
}
