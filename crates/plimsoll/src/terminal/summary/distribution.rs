//! How the response times of a run of one load point are spread.

use std::fmt::Write as _;

use plimsoll_model::capacity::Figure;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::stated::Stated;
use plimsoll_model::units::{BytesPerSec, Nanos};

use super::super::Style;
use super::super::point_line::time;
use super::extent::Extent;

/// Rows of the histogram at most.
const ROWS_MAX: usize = 8;
/// Longest bar, in characters.
const BAR: f64 = 32.0;
/// Rows are spread up to the first; one goes to the second, and one to the longest.
const TAIL_PERCENTILES: [f64; 2] = [95.0, 99.0];

/// Percentiles, bytes and a histogram, where there is one point and room.
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
    let _ = writeln!(out, "{}  {}", extent.gap(), style.dim(&format!("{times}{between}{bytes}")));
    push_chunks(out, point);
    let widest = rows.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    for (label, share) in &rows {
        let bar = "█".repeat((share / widest * BAR).round() as usize);
        let percent = if *share < 0.1 { "< 0.1 %".to_owned() } else { format!("{share:.1} %") };
        let _ = writeln!(out, "  {label:>11}  {bar} {percent}");
    }
}

/// The rows as they are shown. One row has all ops beyond the time up to which the distribution is
/// known, where ops were not sent or not finished.
fn labelled_rows(point: &PointResult) -> Vec<(String, f64)> {
    let rows = rows(&point.response_percentiles);
    let label = |(bound, share): &(Nanos, f64)| (format!("≤ {bound}"), *share);
    let Some(censored) = point.censored else { return rows.iter().map(label).collect() };
    let exact_to = Nanos(censored.response_exact_to_ns);
    let known = rows.iter().take_while(|(bound, _)| *bound <= exact_to);
    let beyond: f64 = rows.iter().skip(known.clone().count()).map(|(_, share)| share).sum();
    let last = known.clone().last().map_or(Nanos::ZERO, |(bound, _)| *bound);
    known.map(label).chain([(format!("> {last}"), beyond)]).collect()
}

/// Where replies were timed chunk by chunk. Those of language models have a table of their own.
fn push_chunks(out: &mut String, point: &PointResult) {
    if point.generation.is_some() {
        return;
    }
    for (name, op) in &point.ops {
        let (Some(first), Some(gap)) = (op.first_piece_ns, op.piece_gap_ns) else { continue };
        let _ = writeln!(
            out,
            "  {name}: first chunk p50 {} p99 {}, chunk gap p50 {} p99 {} max {}",
            time(first.p50),
            time(first.p99),
            time(gap.p50),
            time(gap.p99),
            time(gap.max),
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
        let Some(stated) = Stated::response(point, figure) else { continue };
        let _ = write!(text, "{name} {}  ", stated.bare_time_text());
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

/// Upper bounds with the share of ops in percent between each and the one before.
fn rows(percentiles: &[(f64, u64)]) -> Vec<(Nanos, f64)> {
    let (Some((_, first)), Some((_, last))) = (percentiles.first(), percentiles.last()) else {
        return Vec::new();
    };
    let [bulk, tail] = TAIL_PERCENTILES.map(|wanted| {
        let found = percentiles.iter().find(|(percentile, _)| *percentile >= wanted);
        found.map_or(*last, |(_, ns)| *ns)
    });
    let round = || round_bounds().skip_while(|bound| bound <= first);
    let mut bounds: Vec<u64> = round().take_while(|bound| *bound < bulk).collect();
    bounds.extend(round().find(|bound| *bound >= bulk));
    while bounds.len() > ROWS_MAX - TAIL_PERCENTILES.len() {
        let mut keep = false;
        bounds.retain(|_| {
            keep = !keep;
            keep
        });
    }
    bounds.extend(round().find(|bound| *bound >= tail));
    bounds.push(*last);
    bounds.dedup();
    bounds.retain(|bound| bound <= last);
    let mut below = 0.0;
    let mut rows = Vec::new();
    for bound in bounds {
        let up_to = share_up_to(percentiles, bound);
        rows.push((Nanos(bound), (up_to - below).max(0.0)));
        below = up_to.max(below);
    }
    rows
}

/// 10, 12, 15, 20 … nanoseconds.
fn round_bounds() -> impl Iterator<Item = u64> {
    let steps = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80];
    (0..18).flat_map(move |power| steps.map(|step| step * 10u64.pow(power)))
}

/// Percent of the ops that took no longer.
fn share_up_to(percentiles: &[(f64, u64)], ns: u64) -> f64 {
    let above = percentiles.partition_point(|(_, time)| *time <= ns);
    match (above.checked_sub(1).map(|at| percentiles[at]), percentiles.get(above)) {
        (None, _) => 0.0,
        (Some(_), None) => 100.0,
        (Some((low, from)), Some((high, to))) => {
            let way = (ns - from) as f64 / (to - from) as f64;
            low + (high - low) * way
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::Censored;

    use super::*;

    #[test]
    fn every_op_is_in_one_row_and_no_row_is_a_surprise() {
        let even: Vec<(f64, u64)> =
            (0..=100).map(|p| (f64::from(p), 100_000 + p as u64 * 1_000)).collect();
        let rows = rows(&even);
        let sum: f64 = rows.iter().map(|(_, share)| share).sum();
        assert!((sum - 100.0).abs() < 1e-9, "{rows:?}");
        let (bounds, shares): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        assert_eq!(bounds, [120, 150, 200].map(Nanos::from_micros));
        assert_eq!(shares, [20.0, 30.0, 50.0]);
    }

    #[test]
    fn what_lies_beyond_the_known_times_is_one_row() {
        let point = |exact_to_ms: u64| PointResult {
            response_percentiles: vec![(0.0, 10_000_000), (50.0, 20_000_000), (100.0, 30_000_000)],
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
    fn a_long_tail_takes_one_row() {
        let tailed =
            [(0.0, 20_000), (50.0, 30_000), (99.0, 50_000), (99.9, 90_000), (100.0, 9_000_000)];
        let rows = rows(&tailed);
        assert!(rows.len() <= ROWS_MAX, "{rows:?}");
        assert_eq!(rows.last().map(|(bound, _)| *bound), Some(Nanos(9_000_000)));
        assert_eq!(rows.iter().filter(|(bound, _)| bound.0 > 60_000).count(), 1, "{rows:?}");
        assert!(super::rows(&[]).is_empty());
    }
}
