//! Can the figures be trusted? Each rule is a small function that returns its finding, or nothing.
//! A rule that lacks its evidence reports that: silence means checked and passed.
//!
//! `docs/validity.md` explains the rules, their limits and their sources to users.
//!
//! Rules run after the run, on the bundle. They have all its data, can be improved later, and
//! cannot slow the generator down.

mod connections;
mod data;
mod generator;
mod load;
mod run;
mod steady;
mod tokens;

pub(crate) use tokens::{output_tokens_per_s, server_output_tokens_per_s};

pub(crate) use generator::lateness_limit;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{OpTimes, PointRecord, RunStarted};
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::{NotCounted, Verdict};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use crate::point::UNPLACED;
use crate::raw::{PointTimes, PointView};

pub(crate) use run::{check_capacity, check_run, nonconformities, planned_points, server_assumed};

/// Inputs of the rules.
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
    /// The load stays the same: rules of a steady state apply.
    fn is_steady(&self) -> bool {
        self.view.record.phase.as_ref().is_none_or(|shaped| shaped.is_steady())
    }

    fn window_is_short(&self) -> bool {
        self.view.record.measured_ns < SHORT_WINDOW
    }
}

type Check = fn(&Evidence<'_>) -> Option<Rule>;

/// Counts in ticks and single pauses of the host are not meaningful in shorter windows.
const SHORT_WINDOW: Nanos = Nanos::from_millis(500);

/// Every rule that can make a point invalid, most important first.
const REASONS: [Check; 20] = [
    run::panicked,
    run::ended_early,
    data::intervals,
    data::nothing_done,
    data::corrupt,
    data::counts,
    generator::generator_cpu,
    generator::generator_error,
    load::own_errors,
    connections::too_few_clients_left,
    load::closed_loop,
    load::op_mix,
    load::target_shares,
    generator::shares,
    generator::link_capacity,
    steady::not_steady,
    generator::monitors,
    data::duration,
    data::clock_stepped,
    data::seconds,
];

/// The first of them that apply to a point that was ended before its time.
const CUT_SHORT_REASONS: usize = 2;

/// Findings about the server that leave a point out of the headline, and the run valid.
const COUNTED: [(NotCounted, Check); 6] = [
    (NotCounted::ServerLost, connections::server_lost),
    (NotCounted::NotHeld, load::overload),
    (NotCounted::Errors, load::server_errors),
    (NotCounted::NotHeld, load::not_sustained),
    (NotCounted::NotHeld, load::unfinished),
    (NotCounted::Cap, load::response_cap),
];

/// Every rule that only warns.
const WARNINGS: [Check; 23] = [
    connections::connections_lost,
    connections::clients_lost,
    generator::core_taken,
    generator::other_work,
    generator::stolen,
    generator::clock,
    generator::short_window,
    generator::send_lag,
    generator::connections,
    generator::late_ops,
    data::warm_up_errors,
    connections::retransmissions,
    connections::ambiguous,
    connections::sessions_rebuilt,
    connections::unkept,
    tokens::uncounted,
    tokens::mismatched,
    tokens::contradictory,
    tokens::cut_short,
    tokens::cut_at_length,
    tokens::apart,
    steady::response_drift,
    steady::changing_load,
];

/// Checks every rule on one point.
pub(crate) fn check_point(evidence: &Evidence<'_>) -> Verdict {
    let check = |rules: &[Check]| -> Vec<Finding> {
        rules.iter().filter_map(|rule| rule(evidence)).map(|rule| rule.of_point(UNPLACED)).collect()
    };
    // Further breaches of a point that was cut short follow from that.
    let record = evidence.view.record;
    let cut_short = record.ended_early.is_some() || record.server_lost.is_some();
    let reasons = check(if cut_short { &REASONS[..CUT_SHORT_REASONS] } else { &REASONS });
    Verdict { valid: reasons.is_empty(), reasons, warnings: check(&WARNINGS) }
}

/// Why the point is left out of the headline, valid or not. No fault of the measurement.
pub(crate) fn check_counted(evidence: &Evidence<'_>) -> Option<(NotCounted, Rule)> {
    COUNTED.iter().find_map(|(why, rule)| Some((*why, rule(evidence)?)))
}

/// `part` is more than this share of `of`.
fn exceeds(part: u64, ratio: f64, of: u64) -> bool {
    part as f64 > ratio * of.max(1) as f64
}

/// The ops that came due in the window were done in it, within the suite's tolerance.
pub(crate) fn load_was_sustained(suite: &Suite, record: &PointRecord) -> bool {
    load::missed_ops(suite, record).is_none() && record.totals.not_sent == 0
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
}
