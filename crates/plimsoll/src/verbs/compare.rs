//! `plimsoll compare A B…`: the first run against each other one.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_analysis::compare::{Claim, Comparison, Difference, PointComparison, compare};
use plimsoll_model::stated::Stated;
use plimsoll_model::units::{BytesPerSec, grouped, three_digits};
use plimsoll_report::price_comparison_text;

use super::prices::{Prices, label_of};
use super::published::{self, Wanted};
use crate::cli::CompareArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Shows what may be said of each pair of figures; refuses runs of which nothing may be.
pub(crate) fn perform(args: &CompareArgs) -> Result<Exit, Failure> {
    if let Some(pair) = published::pair(&args.bundles)? {
        let wanted = Wanted { json: args.json, html: args.html.as_deref(), md: args.md.as_deref() };
        return published::compare(pair, &wanted);
    }
    let prices = Prices::read(args.prices.as_deref())?;
    let bundles: Vec<&Path> = args.bundles.iter().map(Path::new).collect();
    let Some((first, others)) = bundles.split_first() else {
        return Err(Failure::wrong("name at least two bundles"));
    };
    let mut groups = vec![(label_of(first), derive::result_of(first)?)];
    for other in others {
        let result = derive::result_of(other)?;
        let (_, base) = &groups[0];
        let comparison = compare(base, &result).map_err(|e| {
            Failure::wrong(format!("{} and {}: {e}", first.display(), other.display()))
        })?;
        terminal::print(&text_of(first, other, &comparison));
        groups.push((label_of(other), result));
    }
    if let Some(prices) = prices {
        let groups = groups.iter().map(|(label, run)| (label.clone(), vec![run]));
        terminal::print(&price_comparison_text(&prices.compare(groups)?));
    }
    Ok(Exit::Valid)
}

fn text_of(first: &Path, other: &Path, it: &Comparison) -> String {
    let mut out = format!("{} → {}\n", first.display(), other.display());
    let headline = format!("headline, {}", it.unit);
    let _ = writeln!(out, "  {headline:<22} {}", said_of(it.value.as_ref(), rate));
    if it.score.is_some() {
        let _ = writeln!(out, "  {:<22} {}", "score", said_of(it.score.as_ref(), rate));
    }
    let _ = writeln!(out, "  {:<22} {}", "peak, ops/s", said_of(it.peak_ops_per_s.as_ref(), rate));
    let overall = said_of(it.overall_response_ns.as_ref(), Stated::time_text);
    let _ = writeln!(out, "  {:<22} {overall}", "overall response");
    for point in &it.points {
        out.push_str(&point_text(point));
    }
    for caution in &it.cautions {
        let _ = writeln!(out, "  caution: {caution}");
    }
    out
}

fn point_text(point: &PointComparison) -> String {
    let mark = if point.valid { "" } else { "  (not both valid)" };
    let mut out = format!("  at {}{mark}\n", grouped(point.requested));
    let mut line = |name: &str, words: String| {
        let _ = writeln!(out, "    {name:<20} {words}");
    };
    line("achieved ops/s", said_of(point.achieved_ops_per_s.as_ref(), rate));
    if point.achieved_bytes_per_s.is_some() {
        let bytes = |stated: &Stated| BytesPerSec(stated.value).to_string();
        line("achieved bytes/s", said_of(point.achieved_bytes_per_s.as_ref(), bytes));
    }
    line("mean service time", said_of(point.service_mean_ns.as_ref(), Stated::time_text));
    line("p50 response time", said_of(point.response_p50_ns.as_ref(), Stated::time_text));
    line("p99 response time", said_of(point.response_p99_ns.as_ref(), Stated::time_text));
    out
}

fn rate(stated: &Stated) -> String {
    stated.rate_text()
}

/// Both figures, and what they allow to be said.
fn said_of(difference: Option<&Difference>, show: impl Fn(&Stated) -> String) -> String {
    let Some(Difference { first, other, claim }) = difference else {
        return "not in both".to_owned();
    };
    let claim = match claim {
        Claim::Ratio { ratio, interval: (low, Some(high)) } => {
            format!("× {} ({}–{})", three_digits(*ratio), three_digits(*low), three_digits(*high))
        }
        Claim::Ratio { ratio, interval: (low, None) } => {
            format!("× {}, at least {}", three_digits(*ratio), three_digits(*low))
        }
        Claim::NotDetectable => "no detectable difference".to_owned(),
        Claim::NotComparable(why) => format!("not comparable: {why}"),
    };
    format!("{} → {}  {claim}", show(first), show(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_ratio_is_never_printed() {
        let of = |claim| {
            let first = Stated::new(100.0, None);
            said_of(Some(&Difference { first, other: Stated::new(200.0, None), claim }), rate)
        };
        let weak = Claim::NotComparable(plimsoll_analysis::compare::Weakness::NoInterval);
        assert_eq!(of(weak), "100 → 200  not comparable: no stated interval on both sides");
        assert_eq!(of(Claim::NotDetectable), "100 → 200  no detectable difference");
        let ratio = Claim::Ratio { ratio: 2.0, interval: (1.9, Some(2.1)) };
        assert_eq!(of(ratio), "100 → 200  × 2.00 (1.90–2.10)");
    }
}
