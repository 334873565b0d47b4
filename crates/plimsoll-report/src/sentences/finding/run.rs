//! The whole run.

use plimsoll_model::finding::{Interruption, Rule};
use plimsoll_model::units::grouped;

use super::super::nonconformity;
use super::{Text, advised};

/// Without a finished load point there is nothing that `plimsoll resume` could keep.
const BEGIN_AGAIN: &str = "no load point was finished: begin the run again, with another --out";

pub(super) fn text(rule: &Rule, bundle: &str) -> Option<Text> {
    Some(match rule {
        Rule::Incomplete { finished_points, planned_points } => advised(
            format!("{finished_points} of {planned_points} load points were finished"),
            match finished_points {
                0 => BEGIN_AGAIN.to_owned(),
                _ => format!("`plimsoll resume {bundle}` continues after the last"),
            },
        ),
        Rule::NotStarted => {
            advised("the journal does not say that a run began", "the bundle is empty or damaged")
        }
        Rule::Interrupted { how, nothing_finished } => advised(
            match how {
                Interruption::Stopped => "the run was interrupted",
                Interruption::Killed => "the journal breaks off: the program was killed",
            },
            match nothing_finished {
                true => BEGIN_AGAIN.to_owned(),
                false => format!("`plimsoll resume {bundle}` continues the run"),
            },
        ),
        Rule::Aborted { cause, nothing_finished } => advised(
            format!("the run could not continue: {cause}"),
            match nothing_finished {
                true => format!("mend that; {BEGIN_AGAIN}"),
                false => format!("mend that, then `plimsoll resume {bundle}`"),
            },
        ),
        Rule::DebugBuild => advised(
            "the program was built with debug assertions, its figures are not a measurement",
            "build with --release",
        ),
        Rule::Resumed { times } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            advised(
                format!("the run was resumed {times}"),
                "its points were not measured in one go",
            )
        }
        Rule::Nonconformities { replies } => {
            Text::from(nonconformity::text(replies).unwrap_or_default())
        }
        Rule::ServerAssumed { source } => advised(
            format!(
                "no monitored host is known to be the server's: {source}, the only one left, is \
                 taken for it"
            ),
            format!("say so with --monitor server={source}, or name what it is"),
        ),
        Rule::ForeignCurve => Text::from(
            "the curve was measured elsewhere: only what the file holds was checked, so judge it \
             by its source"
                .to_owned(),
        ),
        Rule::CurvePoint { column } => advised(
            format!("{column} is 0, which nobody can have measured"),
            "mend the line or leave it out",
        ),
        _ => return headline(rule),
    })
}

/// Rules on the headline figure.
fn headline(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::NothingCounts { because } => {
            let because = because.as_deref().map_or("see each point".to_owned(), super::text);
            advised(format!("no load point counts ({because})"), "ask for less, or mend the server")
        }
        Rule::NearCap { cap_ms, points } => {
            let near = points.iter().map(|(mean, point)| format!("{mean} at point {point}"));
            Text::from(format!(
                "the cap of {cap_ms} ms lies within the uncertainty interval of the mean \
                 service time ({}): another run may count these otherwise and have another \
                 peak",
                near.collect::<Vec<_>>().join(", "),
            ))
            .advise("measure longer, or compare several runs (--repeat 3)")
        }
        Rule::NotRepeated { verified_ops_per_s, missed_ops_per_s } => Text::from(format!(
            "the search held {} ops/s when it was verified, the ladder missed {}: the server \
             does not do alike every time",
            grouped(*verified_ops_per_s),
            grouped(*missed_ops_per_s),
        ))
        .advise("compare several runs (--repeat 3)"),
        Rule::NoCapacity { cause: Some(cause) } => Text::from(cause.clone()),
        Rule::NoCapacity { cause: None } => advised("the search has not ended", "run it again"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "incomplete", "finished_points": 0, "planned_points": 5}"#,
            "0 of 5 load points were finished; no load point was finished: begin the run again, \
             with another --out",
        ),
        (
            r#"{"kind": "incomplete", "finished_points": 3, "planned_points": 5}"#,
            "3 of 5 load points were finished; `plimsoll resume DIR` continues after the last",
        ),
        (
            r#"{"kind": "not_started"}"#,
            "the journal does not say that a run began; the bundle is empty or damaged",
        ),
        (
            r#"{"kind": "interrupted", "how": "stopped"}"#,
            "the run was interrupted; `plimsoll resume DIR` continues the run",
        ),
        (
            r#"{"kind": "interrupted", "how": "killed", "nothing_finished": true}"#,
            "the journal breaks off: the program was killed; no load point was finished: begin \
             the run again, with another --out",
        ),
        (
            r#"{"kind": "aborted", "cause": "no space"}"#,
            "the run could not continue: no space; mend that, then `plimsoll resume DIR`",
        ),
        (
            r#"{"kind": "aborted", "cause": "no space", "nothing_finished": true}"#,
            "the run could not continue: no space; mend that; no load point was finished: begin \
             the run again, with another --out",
        ),
        (
            r#"{"kind": "debug_build"}"#,
            "the program was built with debug assertions, its figures are not a measurement; \
             build with --release",
        ),
        (
            r#"{"kind": "resumed", "times": 1}"#,
            "the run was resumed once; its points were not measured in one go",
        ),
        (
            r#"{"kind": "resumed", "times": 2}"#,
            "the run was resumed 2 times; its points were not measured in one go",
        ),
        (
            r#"{"kind": "nothing_counts", "because": null}"#,
            "no load point counts (see each point); ask for less, or mend the server",
        ),
        (
            r#"{"kind": "nothing_counts", "because": {"kind": "response_cap", "mean_ms": 61.27,
               "cap_ms": 50.0}}"#,
            "no load point counts (mean service time 61.3 ms is above the suite's cap of 50 ms: \
             the point is shown but not counted); ask for less, or mend the server",
        ),
        (
            r#"{"kind": "near_cap", "cap_ms": 50.0, "points": [["49.8 ms", 4], ["50.3 ms", 5]]}"#,
            "the cap of 50 ms lies within the uncertainty interval of the mean service time (49.8 \
             ms at point 4, 50.3 ms at point 5): another run may count these otherwise and have \
             another peak; measure longer, or compare several runs (--repeat 3)",
        ),
        (
            r#"{"kind": "not_repeated", "verified_ops_per_s": 10000.0,
               "missed_ops_per_s": 9900.0}"#,
            "the search held 10,000 ops/s when it was verified, the ladder missed 9,900: the \
             server does not do alike every time; compare several runs (--repeat 3)",
        ),
        (r#"{"kind": "no_capacity", "cause": "no load was tried"}"#, "no load was tried"),
        (r#"{"kind": "no_capacity", "cause": null}"#, "the search has not ended; run it again"),
        (
            r#"{"kind": "server_assumed", "source": "ssh://vip"}"#,
            "no monitored host is known to be the server's: ssh://vip, the only one left, is taken \
             for it; say so with --monitor server=ssh://vip, or name what it is",
        ),
        (
            r#"{"kind": "nonconformities", "replies": [{"document": "RFC 1813",
               "section": "3.3.18", "reply_to": "FSSTAT", "kind": "trailing_bytes", "count": 2}]}"#,
            "the server deviates from RFC 1813 in its replies to FSSTAT (section 3.3.18; bytes \
             follow the end of the message, twice); what the replies mean is clear, so they were \
             accepted; report it to the authors of the server",
        ),
        (
            r#"{"kind": "foreign_curve"}"#,
            "the curve was measured elsewhere: only what the file holds was checked, so judge it \
             by its source",
        ),
        (
            r#"{"kind": "curve_point", "column": "response"}"#,
            "response is 0, which nobody can have measured; mend the line or leave it out",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
