//! Can the figures be trusted. Each rule is a small function that returns what it found, or
//! nothing. A rule that lacks its evidence says so: silence means checked and held.
//!
//! `docs/validity.md` explains the rules, their limits and their sources to users.
//!
//! Rules run after the run, on the bundle. They see everything, can be improved later, and cannot
//! slow the generator down.

mod agents;
mod connections;
mod data;
mod generator;
mod host;
mod load;
mod run;
mod steady;
mod tokens;

pub(crate) use generator::lateness_limit;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{OpTimes, PointRecord, RunStarted};
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::{NotCounted, Verdict};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use crate::point::UNPLACED;
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

type Check = fn(&Evidence<'_>) -> Option<Rule>;

/// What is counted in ticks, and what one pause of the host does, says little of shorter ones.
const SHORT_WINDOW: Nanos = Nanos::from_millis(500);

/// Every rule that can make a point invalid, in the order in which a reader wants to know.
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
    agents::shares,
    host::link_capacity,
    steady::not_steady,
    generator::monitors,
    data::duration,
    data::clock_stepped,
    data::seconds,
];

/// The first of them that hold for a point that was ended before its time.
const CUT_SHORT_REASONS: usize = 2;

/// Findings about the server that leave a point out of the headline, and the run valid.
const COUNTED: [(NotCounted, Check); 5] = [
    (NotCounted::NotHeld, load::overload),
    (NotCounted::Errors, load::server_errors),
    (NotCounted::NotHeld, load::not_held),
    (NotCounted::NotHeld, load::unfinished),
    (NotCounted::Cap, load::response_cap),
];

/// Every rule that only warns.
const WARNINGS: [Check; 18] = [
    connections::connections_lost,
    connections::clients_lost,
    host::core_taken,
    host::other_work,
    host::stolen,
    agents::clock,
    generator::short_window,
    generator::send_lag,
    generator::connections,
    data::warm_up_errors,
    connections::retransmissions,
    connections::ambiguous,
    connections::unkept,
    tokens::uncounted,
    tokens::mismatched,
    tokens::cut_short,
    tokens::apart,
    steady::response_drift,
];

/// Checks every rule on one point.
pub(crate) fn check_point(evidence: &Evidence<'_>) -> Verdict {
    let check = |rules: &[Check]| -> Vec<Finding> {
        let found = rules.iter().filter_map(|rule| rule(evidence));
        found.map(|rule| rule.at(UNPLACED)).collect()
    };
    // What a point that was cut short breaks besides follows from that.
    let cut_short = evidence.view.record.ended_early.is_some();
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
pub(crate) fn load_was_held(suite: &Suite, record: &PointRecord) -> bool {
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
