//! How a run deviates from its method in what was measured, not in what was asked for.
//!
//! The journal has the deviations that were known before the first load point. Whether the server
//! held every load that was requested is known only afterwards.

use plimsoll_model::method::{self, LOADS_HELD, LoadsHeld};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::{LoadSpec, Suite};

/// Names the points of an open ladder that were not held, where the method wants all of them.
///
/// The method compares with the *requested* load and forgives nothing. Rule `rate` compares with
/// the ops that the schedule had in the window, because exponential gaps scatter, forgives two, and
/// leaves a point out.
pub(crate) fn name_loads_not_held(result: &mut RunResult, suite: &Suite) {
    let LoadSpec::Open { .. } = suite.load else { return };
    let tolerance = suite.rules.rate_tolerance_ratio;
    let is_missed = |point: &&PointResult| {
        let off = |achieved: f64| (achieved - point.requested).abs();
        point.achieved_ops_per_s.is_none_or(|rate| off(rate) > tolerance * point.requested)
    };
    let missed = result.points.iter().filter(is_missed).map(|point| point.position);
    let held = LoadsHeld { missed: missed.collect(), of: result.points.len() };
    let row = result.method.iter_mut().find(|row| row.key == LOADS_HELD);
    let Some(row) = row.filter(|row| row.origin.is_the_methods()) else { return };
    if !held.missed.is_empty() {
        row.deviates_by(&held);
        result.departures = method::departures(&result.method);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::method::Parameter;
    use plimsoll_model::suite::Origin;

    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    /// Ten points of 100 to 1,000 ops/s, the last of which reached `last`.
    fn ladder(last: u64, origin: Origin) -> RunBuilder {
        let rates = (1..=10).map(|n| f64::from(n) * 100.0);
        let point = |rate: f64| {
            let achieved = if rate == 1_000.0 { last } else { rate as u64 };
            PointBuilder::open(rate).achieved(achieved)
        };
        let mut run = RunBuilder::of(rates.map(point));
        run.started_mut().method = vec![Parameter {
            key: super::LOADS_HELD.to_owned(),
            name: "requested load held within, as a share".to_owned(),
            value: "0.05".to_owned(),
            method: origin.is_the_methods().then(|| "0.05".to_owned()),
            origin,
            said: String::new(),
            departure: None,
        }];
        run
    }

    #[test]
    fn nine_of_ten_points_held_is_a_deviation_where_the_source_wants_all() {
        let result = analyse(&ladder(900, Origin::Source).raw());
        assert!(result.verdict.valid, "{:?}", result.verdict);
        let text = "requested load held within, as a share: 0.05 at 9 of 10 load points, not at \
                    10; the method has 0.05 at every load point";
        assert_eq!(result.departures, [text]);
        let row = &result.method[0];
        assert_eq!(row.value, "0.05 at 9 of 10 load points, not at 10");
        assert_eq!(row.method.as_deref(), Some("0.05 at every load point"));
    }

    #[test]
    fn a_ladder_that_was_held_and_a_limit_of_ours_are_no_deviation() {
        for (last, origin) in [(1_000, Origin::Source), (955, Origin::Source), (900, Origin::Ours)]
        {
            let result = analyse(&ladder(last, origin).raw());
            assert!(result.departures.is_empty(), "{last} {origin:?}: {:?}", result.departures);
        }
    }
}
