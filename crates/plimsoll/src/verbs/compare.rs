//! `plimsoll compare A B…`: the first run against each other one.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_analysis::compare::{Comparison, PointComparison, Ratio, compare};
use plimsoll_model::units::{BytesPerSec, Nanos, grouped};

use crate::cli::CompareArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Shows ratios; refuses runs whose ratio would mean nothing.
pub fn perform(args: &CompareArgs) -> Result<Exit, Failure> {
    let Some((first, others)) = args.bundles.split_first() else {
        return Err(Failure::wrong("name at least two bundles"));
    };
    let base = derive::result_of(first)?;
    for other in others {
        let result = derive::result_of(other)?;
        let comparison = compare(&base, &result).map_err(|e| {
            Failure::wrong(format!("{} and {}: {e}", first.display(), other.display()))
        })?;
        terminal::print(&text_of(first, other, &comparison));
    }
    Ok(Exit::Valid)
}

fn text_of(first: &Path, other: &Path, it: &Comparison) -> String {
    let mut out = format!("{} → {}\n", first.display(), other.display());
    let headline = format!("headline, {}", it.unit);
    let _ = writeln!(out, "  {headline:<22} {}", ratio_text(it.value, grouped));
    if it.score.is_some() {
        let _ = writeln!(out, "  {:<22} {}", "score", ratio_text(it.score, grouped));
    }
    let rows =
        [("peak, ops/s", it.peak_ops_per_s), ("overall response, ms", it.overall_response_ms)];
    for (name, ratio) in rows {
        let _ = writeln!(out, "  {name:<22} {}", ratio_text(ratio, grouped));
    }
    for point in &it.points {
        out.push_str(&point_text(point));
    }
    for caution in &it.cautions {
        let _ = writeln!(out, "  caution: {caution}");
    }
    out
}

fn point_text(point: &PointComparison) -> String {
    let time = |ns: f64| Nanos(ns.round() as u64).to_string();
    let mark = if point.valid { "" } else { "  (not both valid)" };
    let mut out = format!("  at {}{mark}\n", grouped(point.requested));
    let _ =
        writeln!(out, "    achieved ops/s       {}", ratio_text(point.achieved_ops_per_s, grouped));
    if point.achieved_bytes_per_s.is_some() {
        let bytes = |rate| BytesPerSec(rate).to_string();
        let ratio = ratio_text(point.achieved_bytes_per_s, bytes);
        let _ = writeln!(out, "    achieved bytes/s     {ratio}");
    }
    let _ = writeln!(out, "    mean service time    {}", ratio_text(point.service_mean_ns, time));
    let _ = writeln!(out, "    p50 response time    {}", ratio_text(point.response_p50_ns, time));
    let _ = writeln!(out, "    p99 response time    {}", ratio_text(point.response_p99_ns, time));
    out
}

fn ratio_text(ratio: Option<Ratio>, show: impl Fn(f64) -> String) -> String {
    match ratio {
        Some(Ratio { first, other, ratio }) => {
            format!("{} → {}  (× {ratio:.3})", show(first), show(other))
        }
        None => "not in both".to_owned(),
    }
}
