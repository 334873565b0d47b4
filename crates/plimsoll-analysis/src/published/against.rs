//! Two published results against each other: ratios of peaks and prices, as the printed figures
//! give them and as the unrounded ones do, beside what a report prints of the pair.

use plimsoll_model::units::grouped;

use super::bytes::ByteCurve;
use super::{Published, PublishedError, Table, published};
use crate::price::{Peak, Priced};

/// Separates a result's name from that of one of its configurations.
const PART: char = '#';

/// One server of a published result.
struct Part {
    /// The file.
    of: Published,
    name: String,
    peak: f64,
    /// Of file throughput, which has prices.
    curve: Option<ByteCurve>,
}

/// The second over the first; each is `NAME` or `NAME#CONFIGURATION`.
///
/// # Errors
/// When a name is not known, or leaves open which configuration is meant.
pub fn against(first: &str, other: &str) -> Result<Table, PublishedError> {
    let (first, other) = (part(first)?, part(other)?);
    if first.of.unit != other.of.unit || first.of.suite != other.of.suite {
        return Err(PublishedError::Inconsistent {
            name: other.of.name.clone(),
            what: format!(
                "it is of {} in {}, and {} of {} in {}: these have no ratio",
                other.of.suite, other.of.unit, first.of.name, first.of.suite, first.of.unit
            ),
        });
    }
    let mut rows = Vec::new();
    let mut row = |what: &str, values: [String; 2], ratio: Option<f64>, basis: &str| {
        let ratio = ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let [a, b] = values;
        rows.push(vec![what.to_owned(), a, b, ratio, basis.to_owned()]);
    };
    match (&first.curve, &other.curve) {
        (Some(a), Some(b)) => {
            for peak in Peak::BOTH {
                let mb = |part: &Part| peak.mb_per_s(part.peak);
                let text = |value: f64| match peak {
                    Peak::Rounded => format!("{value:.1}"),
                    Peak::Unrounded => format!("{value:.3}"),
                };
                let (own, others) = (mb(&first), mb(&other));
                let ratio = (own > 0.0).then(|| others / own);
                row("peak, MB/s of 2^20 bytes", [text(own), text(others)], ratio, peak.as_str());
            }
            let (a, b) = (a.priced(), b.priced());
            if let (Some(a), Some(b)) = (a, b) {
                let prices = [a, b].map(|it| grouped(it.price));
                row("price, US $", prices, Some(b.price / a.price), "");
                for peak in Peak::BOTH {
                    let per = |it: &Priced| it.per_mb_per_s(peak);
                    let texts = [a, b]
                        .map(|it| per(&it).map(|usd| format!("{usd:.2}")).unwrap_or_default());
                    let dearer = per(&a).zip(per(&b)).map(|(a, b)| b / a);
                    row("US $ per MB/s", texts, dearer, peak.as_str());
                    let better = b.times_the_price_performance(&a, peak);
                    let none = [String::new(), String::new()];
                    row("price/performance", none, better, peak.as_str());
                }
            }
        }
        _ => {
            let peaks = [first.peak, other.peak].map(grouped);
            let what = format!("peak, {}", first.of.unit);
            row(&what, peaks, Some(other.peak / first.peak), "as printed");
        }
    }
    for (printed, of) in printed(&first, &other).into_iter().chain(printed(&other, &first)) {
        row(&format!("printed of {of}"), [String::new(), String::new()], None, &printed);
    }
    Ok(Table {
        name: format!("{} over {}", other.name, first.name),
        columns: ["figure", &first.name, &other.name, "ratio, computed", "from peaks; printed"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    })
}

/// What the report of one prints of it against the other.
fn printed(one: &Part, other: &Part) -> Vec<(String, String)> {
    let of_pair = one.of.comparisons.iter().filter(|comparison| {
        one.of.name == other.of.name && comparison.from == one.name && comparison.to == other.name
    });
    let mut found: Vec<(String, String)> =
        of_pair.map(|comparison| (comparison.printed.clone(), comparison.name.clone())).collect();
    let rival = one.curve.as_ref().and_then(|curve| curve.rival.as_ref());
    found.extend(
        rival.filter(|rival| rival.name == other.of.name).map(|rival| {
            (rival.printed.clone(), format!("{} against {}", one.of.name, rival.name))
        }),
    );
    found
}

fn part(text: &str) -> Result<Part, PublishedError> {
    let (name, wanted) = match text.split_once(PART) {
        Some((name, wanted)) => (name, Some(wanted)),
        None => (text, None),
    };
    let of = published(name)?;
    let mut parts: Vec<(String, f64, Option<ByteCurve>)> = Vec::new();
    parts.extend(of.configurations.iter().map(|it| (it.name.clone(), it.peak_ops_per_s, None)));
    parts.extend(of.results.iter().map(|it| (it.label(), it.peak_ops_per_s, None)));
    parts.extend(
        of.byte_curves
            .iter()
            .filter_map(|curve| Some((curve.name.clone(), curve.peak()?.1, Some(curve.clone())))),
    );
    let names: Vec<String> = parts.iter().map(|(name, ..)| format!("{name:?}")).collect();
    let found = match wanted {
        Some(wanted) => parts.into_iter().find(|(name, ..)| name == wanted),
        None if parts.len() == 1 => parts.pop(),
        None => None,
    };
    let Some((part, peak, curve)) = found else {
        return Err(PublishedError::Inconsistent {
            name: name.to_owned(),
            what: format!("write {name}{PART}CONFIGURATION, one of {}", names.join(", ")),
        });
    };
    Ok(Part { of, name: part, peak, curve })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(first: &str, other: &str) -> Vec<(String, String)> {
        let table = against(first, other).unwrap();
        table.rows.into_iter().map(|row| (row[3].clone(), row[4].clone())).collect()
    }

    #[test]
    fn mindcrafts_comparison_comes_out_as_printed_and_as_computed() {
        let found = ratios("netbench-sun-1998", "netbench-nt-1998");
        let of = |what: &str| -> Vec<&str> {
            found.iter().filter(|(_, basis)| basis == what).map(|(r, _)| r.as_str()).collect()
        };
        // Peak, US $ per MB/s, price/performance.
        assert_eq!(of(Peak::Rounded.as_str()), ["4.211", "0.089", "11.222"]);
        assert_eq!(of(Peak::Unrounded.as_str()), ["4.305", "0.087", "11.474"]);
        assert!(found.iter().any(|(_, said)| said.starts_with("over 4.2 times")), "{found:?}");
    }

    #[test]
    fn a_second_processor_is_what_the_peaks_give() {
        let part = |name: &str| format!("web-n440bx-1998#{name}");
        let found = ratios(&part("1 CPU 350 MHz"), &part("2 CPU 350 MHz"));
        assert_eq!(found[0], ("1.661".to_owned(), "as printed".to_owned()));
        assert_eq!(found[1].1, "1.6x, 60 %");
    }

    #[test]
    fn a_name_that_leaves_it_open_is_answered_with_those_there_are() {
        let said = |a, b| against(a, b).unwrap_err().to_string();
        assert!(said("web-n440bx-1998", "netbench-nt-1998").contains("\"1 CPU 350 MHz\""));
        assert!(said("netbench-nt-1998", "web-n440bx-1998#1 CPU 350 MHz").contains("no ratio"));
        assert!(said("nothing", "netbench-nt-1998").contains("no published result"));
    }
}
