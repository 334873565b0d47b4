//! Can the figures be trusted. Each rule is a small function that returns what it found, or
//! nothing. A rule that lacks its evidence says so: silence means checked and held.
//!
//! `docs/validity.md` explains the rules, their limits and their sources to users.
//!
//! Rules run after the run, on the bundle. They see everything, can be improved later, and cannot
//! slow the generator down.

mod clients;
mod connections;
mod core;
mod data;
mod early;
mod generator;
mod host;
mod links;
mod load;
mod resent;
mod run;
mod steady;

pub(crate) use generator::lateness_limit;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{OpTimes, PointRecord, RunStarted};
use plimsoll_model::result::{Finding, NotCounted, Verdict};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use crate::raw::{PointTimes, PointView};

pub(crate) use run::{check_capacity, check_run, nonconformities, planned_points};

/// What the rules look at.
pub(crate) struct Evidence<'a> {
    pub suite: &'a Suite,
    pub started: &'a RunStarted,
    pub view: &'a PointView<'a>,
    /// Merged over the window and over ops; `None` when the interval logs are not there.
    pub times: Option<&'a OpTimes>,
    /// By second; `None` when the interval logs are not there.
    pub seconds: Option<&'a PointTimes>,
    pub disclosure: Option<&'a Disclosure>,
}

impl Evidence<'_> {
    fn window_is_short(&self) -> bool {
        self.view.record.measured_ns < SHORT_WINDOW
    }
}

type Rule = fn(&Evidence<'_>) -> Option<Finding>;

/// The rule of whatever could not be checked for want of evidence.
const MISSING_EVIDENCE: &str = "missing_evidence";

/// What is counted in ticks, and what one pause of the host does, says little of shorter ones.
const SHORT_WINDOW: Nanos = Nanos::from_millis(500);

/// Every rule that can make a point invalid, in the order in which a reader wants to know.
const REASONS: [Rule; 19] = [
    run::panicked,
    run::ended_early,
    data::intervals,
    data::nothing_done,
    data::corrupt,
    data::counts,
    generator::generator_cpu,
    generator::generator_error,
    load::own_errors,
    clients::too_few_clients_left,
    load::closed_loop,
    load::op_mix,
    load::target_shares,
    links::link_capacity,
    steady::not_steady,
    generator::monitors,
    data::duration,
    data::clock_stepped,
    data::seconds,
];

/// The first of them that hold for a point that was ended before its time.
const CUT_SHORT_REASONS: usize = 2;

/// Findings about the server that leave a point out of the headline, and the run valid.
const COUNTED: [(NotCounted, Rule); 5] = [
    (NotCounted::NotHeld, load::overload),
    (NotCounted::Errors, load::server_errors),
    (NotCounted::NotHeld, load::not_held),
    (NotCounted::NotHeld, load::unfinished),
    (NotCounted::Cap, load::response_cap),
];

/// Every rule that only warns.
const WARNINGS: [Rule; 16] = [
    connections::connections_lost,
    clients::clients_lost,
    core::core_taken,
    host::other_work,
    host::stolen,
    host::pacing,
    generator::short_window,
    generator::send_lag,
    generator::connections,
    data::warm_up_errors,
    load::op_mix_by_chance,
    links::link_unknown,
    resent::retransmissions,
    resent::ambiguous,
    steady::drifting,
    steady::response_drift,
];

/// Checks every rule on one point.
pub(crate) fn check_point(evidence: &Evidence<'_>) -> Verdict {
    let check = |rules: &[Rule]| -> Vec<Finding> {
        rules.iter().filter_map(|rule| rule(evidence)).map(|f| placed(evidence, f)).collect()
    };
    // What a point that was cut short breaks besides follows from that.
    let cut_short = evidence.view.record.ended_early.is_some();
    let reasons = check(if cut_short { &REASONS[..CUT_SHORT_REASONS] } else { &REASONS });
    Verdict { valid: reasons.is_empty(), reasons, warnings: check(&WARNINGS) }
}

/// Why the point is left out of the headline, valid or not. No fault of the measurement.
pub(crate) fn check_counted(evidence: &Evidence<'_>) -> Option<(NotCounted, Finding)> {
    let found = COUNTED.iter().find_map(|(why, rule)| Some((*why, rule(evidence)?)));
    found.map(|(why, finding)| (why, placed(evidence, finding)))
}

/// The ops that came due in the window were done in it, within the suite's tolerance.
pub(crate) fn load_was_held(suite: &Suite, record: &PointRecord) -> bool {
    load::missed_ops(suite, record).is_none() && record.totals.not_sent == 0
}

fn placed(evidence: &Evidence<'_>, finding: Finding) -> Finding {
    Finding { point: Some(evidence.view.position), ..finding }
}

fn finding(rule: &str, text: String) -> Option<Finding> {
    Some(Finding { rule: rule.to_owned(), text, point: None })
}

/// `0.0512` as `5.12`, in percent.
pub(crate) fn short_percent(ratio: f64) -> String {
    percent(ratio).trim_end_matches(" %").to_owned()
}

/// `0.0512` as `5.12 %`, with as many decimals as it takes to tell it from a limit.
fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    let decimals = match value.abs() {
        v if v >= 10.0 => 1,
        v if v >= 0.1 || v == 0.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::PointBuilder;

    #[test]
    fn a_healthy_point_passes_every_rule() {
        assert_eq!(PointBuilder::open(1_000.0).build().verdict(), valid());
        assert_eq!(PointBuilder::closed(32).build().verdict(), valid());
    }

    fn valid() -> Verdict {
        Verdict { valid: true, ..Verdict::default() }
    }

    #[test]
    fn the_document_for_users_explains_every_rule() {
        let document = include_str!("../../../../docs/validity.md");
        let sources = [
            include_str!("clients.rs"),
            include_str!("connections.rs"),
            include_str!("core.rs"),
            include_str!("data.rs"),
            include_str!("generator.rs"),
            include_str!("host.rs"),
            include_str!("links.rs"),
            include_str!("load.rs"),
            include_str!("resent.rs"),
            include_str!("run.rs"),
            include_str!("steady.rs"),
        ];
        let marker = "finding(\n        \"";
        for source in sources {
            for (at, _) in source.match_indices(marker) {
                let rule = source[at + marker.len()..].split('"').next().unwrap();
                assert!(document.contains(&format!("**`{rule}`**")), "{rule}");
            }
        }
    }

    #[test]
    fn percentages_keep_what_tells_them_from_a_limit() {
        assert_eq!(percent(0.05), "5 %");
        assert_eq!(percent(0.0512), "5.12 %");
        assert_eq!(percent(0.188), "18.8 %");
        assert_eq!(percent(0.000_012), "0.0012 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
