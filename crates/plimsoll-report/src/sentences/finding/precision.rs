//! Is the figure of `--until` as precise as it was to be?

use plimsoll_model::finding::Rule;
use plimsoll_model::precision::Never;
use plimsoll_model::units::{Nanos, percent, span_text};

use super::Text;

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::PrecisionNotReached { requested, reached, window_ns } => {
            let interval = match reached.ratio {
                Some(ratio) => format!("is ±{}", percent(ratio)),
                None => "has no upper end".to_owned(),
            };
            let text =
                format!("{requested} was not reached: the figure {interval} after {window_ns}");
            match (reached.never, reached.window_needed_ns) {
                (Some(never), _) => Text::from(text).advise(why_never(never)),
                (None, Some(needed)) => {
                    let least = if reached.ratio.is_none() { "at least " } else { "" };
                    let allowed =
                        span_text(Nanos::from_secs_f64((needed.as_secs_f64() * 2.5).ceil()));
                    let advice = format!(
                        "a window of {least}{needed} is needed: allow {least}{allowed} with its \
                         pilots (--for)"
                    );
                    Text::from(text).advise(advice)
                }
                (None, None) => Text::from(text),
            }
        }
        Rule::HeavyTail { p99_ns, p999_ns, limit_ratio } => Text::from(format!(
            "the tail is heavy: p99.9 is {p999_ns} and p99 {p99_ns} (limit {limit_ratio} times as \
             much): a few very slow ops decide the mean and p99.9, and their intervals may hold \
             the truth less often than 95 times in 100"
        ))
        .advise("state p99, or measure much longer"),
        _ => return None,
    })
}

/// Why no window makes a figure precise enough.
pub fn why_never(never: Never) -> &'static str {
    match never {
        Never::NotHeld => "no window is long enough: the server does not sustain the load",
        Never::Drifts => {
            "no window is long enough: the figure drifts, so there is no steady state to measure"
        }
        Never::Generator => {
            "no window is long enough: the generator's own delays leave more open than that"
        }
        Never::NoFigure => "this load point has no such figure",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "precision_not_reached", "requested": "p99±5%", "window_ns": 20000000000,
               "reached": {"ratio": 0.08, "window_needed_ns": 51200000000}}"#,
            "p99±5% was not reached: the figure is ±8 % after 20.0 s; a window of 51.2 s is \
             needed: allow 128s with its pilots (--for)",
        ),
        (
            r#"{"kind": "precision_not_reached", "requested": "p999±5%", "window_ns": 20000000000,
               "reached": {"ratio": null, "window_needed_ns": 80000000000}}"#,
            "p999±5% was not reached: the figure has no upper end after 20.0 s; a window of at \
             least 80.0 s is needed: allow at least 200s with its pilots (--for)",
        ),
        (
            r#"{"kind": "precision_not_reached", "requested": "mean±1%", "window_ns": 3000000000,
               "reached": {"ratio": 0.4, "never": "not_held"}}"#,
            "mean±1% was not reached: the figure is ±40 % after 3.00 s; no window is long enough: \
             the server does not sustain the load",
        ),
        (
            r#"{"kind": "heavy_tail", "p99_ns": 2000000, "p999_ns": 9000000,
               "limit_ratio": 2.15}"#,
            "the tail is heavy: p99.9 is 9.00 ms and p99 2.00 ms (limit 2.15 times as much): a few \
             very slow ops decide the mean and p99.9, and their intervals may hold the truth less \
             often than 95 times in 100; state p99, or measure much longer",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
