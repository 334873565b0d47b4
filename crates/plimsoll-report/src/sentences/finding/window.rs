//! Was the window long and steady enough?

use plimsoll_model::finding::{Rule, ShortPhase};
use plimsoll_model::units::{grouped, percent};

use super::{Text, advised, count};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::Duration { phase, length_ns, wanted_ns: required_ns, profile } => {
            let what = match phase {
                ShortPhase::Window => "measured",
                ShortPhase::WarmUp => "warmed up",
            };
            advised(
                format!("{what} for {length_ns}, the {profile} profile requires {required_ns}"),
                "run the point again to its end",
            )
        }
        Rule::TooFewOps { due_ops, wanted_ops: requested_ops, limit_ns } => Text::from(format!(
            "{} of {} ops came due within {limit_ns}, the most the window may take",
            count(*due_ops),
            count(*requested_ops),
        ))
        .advise("allow it more (--for), or ask for fewer"),
        Rule::ShortWindow { window_ns, limit_ns, breaks } => Text::from(format!(
            "the window was {window_ns}, too short to hold this against the run (limit \
             {limit_ns}): {}",
            super::text(breaks),
        )),
        Rule::ClockStepped { step_ns, limit_ns } => advised(
            format!("the wall clock was moved by {step_ns} during the point (limit {limit_ns})"),
            "let the clock settle (chrony, ntpd) and run the point again",
        ),
        Rule::NotSteady { first_ops_per_s, second_ops_per_s, change_ratio, limit_ratio } => {
            Text::from(format!(
                "throughput changed by {} from the first half of the window ({} ops/s) to \
                 the second ({} ops/s) (limit {})",
                percent(*change_ratio),
                grouped(*first_ops_per_s),
                grouped(*second_ops_per_s),
                percent(*limit_ratio),
            ))
            .advise("warm up longer, or look for what came and went on the server")
        }
        Rule::WideInterval { figure, value_ns, low_ns, high_ns, limit_ratio, window_needed_ns } => {
            let limit = percent(*limit_ratio);
            let text = match high_ns {
                Some(high_ns) => format!(
                    "the interval of {figure} is wide: {value_ns}, known to lie between {low_ns} \
                     and {high_ns} (limit {limit} of it)"
                ),
                None => format!(
                    "too few slow ops to know how high {figure} may be: {value_ns}, known to be at \
                     least {low_ns}"
                ),
            };
            let advice = match window_needed_ns {
                Some(needed_ns) => {
                    format!("measure {needed_ns}, or find out what disturbed the run")
                }
                None => "measure longer, or find out what disturbed the run".to_owned(),
            };
            Text::from(text).advise(advice)
        }
        Rule::ChangingLoad => Text::from(
            "the load is a recording and changes, so whether throughput and response times were \
             steady was not judged"
                .to_owned(),
        ),
        Rule::ResponseDrift { first_ns, second_ns } => Text::from(format!(
            "mean response time went from {first_ns} in the first half of the window to \
             {second_ns} in the second"
        ))
        .advise(if second_ns > first_ns { SLOWER } else { FASTER }),
        _ => return None,
    })
}

const SLOWER: &str = "a queue grew, or the server slowed down: measure longer and compare";
const FASTER: &str =
    "the server was still warming up, or a queue went away: warm up longer and compare";

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "wide_interval", "figure": "p99", "value_ns": 41000000,
               "low_ns": 35000000, "high_ns": null, "limit_ratio": 0.333,
               "window_needed_ns": 12000000000}"#,
            "too few slow ops to know how high p99 may be: 41.0 ms, known to be at least 35.0 ms; \
             measure 12.0 s, or find out what disturbed the run",
        ),
        (
            r#"{"kind": "duration", "phase": "window", "length_ns": 2000000000,
               "wanted_ns": 10000000000, "profile": "quick"}"#,
            "measured for 2.00 s, the quick profile requires 10.0 s; run the point again to its \
             end",
        ),
        (
            r#"{"kind": "duration", "phase": "warm_up", "length_ns": 2000000000,
               "wanted_ns": 10000000000, "profile": "quick"}"#,
            "warmed up for 2.00 s, the quick profile requires 10.0 s; run the point again to its \
             end",
        ),
        (
            r#"{"kind": "too_few_ops", "due_ops": 900, "wanted_ops": 10000,
               "limit_ns": 60000000000}"#,
            "900 of 10,000 ops came due within 60.0 s, the most the window may take; allow it \
             more (--for), or ask for fewer",
        ),
        (
            r#"{"kind": "clock_stepped", "step_ns": 3000000000, "limit_ns": 1000000}"#,
            "the wall clock was moved by 3.00 s during the point (limit 1.00 ms); let the clock \
             settle (chrony, ntpd) and run the point again",
        ),
        (
            r#"{"kind": "short_window", "window_ns": 300000000, "limit_ns": 500000000,
               "breaks": {"kind": "debug_build"}}"#,
            "the window was 300 ms, too short to hold this against the run (limit 500 ms): the \
             program was built with debug assertions, its figures are not a measurement; build \
             with --release",
        ),
        (
            r#"{"kind": "not_steady", "first_ops_per_s": 9000.0, "second_ops_per_s": 8000.0,
               "change_ratio": 0.11, "limit_ratio": 0.05}"#,
            "throughput changed by 11 % from the first half of the window (9,000 ops/s) to the \
             second (8,000 ops/s) (limit 5 %); warm up longer, or look for what came and went on \
             the server",
        ),
        (
            r#"{"kind": "wide_interval", "figure": "response p99", "value_ns": 5000000,
               "low_ns": 2000000, "high_ns": 9000000, "limit_ratio": 0.25}"#,
            "the interval of response p99 is wide: 5.00 ms, known to lie between 2.00 ms and 9.00 \
             ms (limit 25 % of it); measure longer, or find out what disturbed the run",
        ),
        (
            r#"{"kind": "changing_load"}"#,
            "the load is a recording and changes, so whether throughput and response times were \
             steady was not judged",
        ),
        (
            r#"{"kind": "response_drift", "first_ns": 1000000, "second_ns": 2000000}"#,
            "mean response time went from 1.00 ms in the first half of the window to 2.00 ms in \
             the second; a queue grew, or the server slowed down: measure longer and compare",
        ),
        (
            r#"{"kind": "response_drift", "first_ns": 2000000, "second_ns": 1000000}"#,
            "mean response time went from 2.00 ms in the first half of the window to 1.00 ms in \
             the second; the server was still warming up, or a queue went away: warm up longer and \
             compare",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
