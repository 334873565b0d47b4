//! From the load points of a bundle to the capacity: the same tries give the same answer.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{Capacity, CapacityAsked, CapacitySearch, CapacityTry, TryStanding};
use plimsoll_model::event::Bound;
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::result::{OverallResponse, PointResult, Summary};
use plimsoll_model::suite::{LoadSpec, ProfileName, Suite};
use plimsoll_model::units::grouped;

use super::{Answer, Config, Search};
use crate::metric::ops_unit;
use crate::raw::{RunView, profile_named};

/// Puts the capacity in the place of the headline; why there is none, where that is so. `tries` are
/// in order of time.
pub(crate) fn summarise(
    summary: &mut Summary,
    (suite, view): (&Suite, &RunView),
    tries: Vec<CapacityTry>,
    (points, probes): (&[PointResult], &[PointResult]),
) {
    let Some(asked) = &view.started.capacity else { return };
    let profile = profile_named(&view.started.profile).unwrap_or(ProfileName::Standard);
    let mut search = Search::new(Config::of(suite, profile));
    if let Some(achieved) = probes.first().and_then(|probe| probe.achieved_ops_per_s) {
        search.saturated(achieved);
    }
    tries.iter().for_each(|attempt| search.report(attempt.clone()));
    let answer = search.answer();
    let unit = match suite.load {
        LoadSpec::Open { .. } => ops_unit(suite.metric),
        LoadSpec::Closed { .. } => "clients",
    };
    summary.metric = format!("capacity within {}", asked.within);
    summary.unit = unit.to_owned();
    summary.value = answer.map(|answer| answer.value);
    summary.value_interval = answer.and_then(|answer| Some([answer.value, answer.high?]));
    summary.bound = answer.map(|answer| answer.bound).unwrap_or_default();
    // Those of a ladder: the tries crowd where the limits are.
    summary.overall_response_ms = OverallResponse::default();
    summary.overall_response_interval_ms = None;
    (summary.score, summary.score_interval, summary.score_note) = (None, None, None);
    if let Some(text) = answer.and_then(|answer| limit_text(&tries, &answer, points, unit)) {
        summary.limit = Some(text);
    }
    summary.capacity = answer.map(|answer| Capacity {
        value: answer.value,
        unit: unit.to_owned(),
        low: answer.value,
        high: answer.high,
        within: asked.within.clone(),
        passed: answer.passed,
        tries: answer.tries,
        users: users(suite, asked, answer.value, &reruns(&tries, &answer, points)),
        limit: limit(&tries, &answer, points),
    });
    summary.capacity_search =
        Some(CapacitySearch { asked: asked.clone(), how: view.capacity.clone(), tries });
}

/// The load points that re-ran the claim.
fn reruns<'p>(
    tries: &[CapacityTry],
    answer: &Answer,
    points: &'p [PointResult],
) -> Vec<&'p PointResult> {
    let of_claim = |attempt: &&CapacityTry| {
        attempt.purpose == Purpose::Verify && attempt.load == answer.value && attempt.passed
    };
    tries.iter().filter(of_claim).filter_map(|attempt| point_of(attempt, points)).collect()
}

fn point_of<'p>(attempt: &CapacityTry, points: &'p [PointResult]) -> Option<&'p PointResult> {
    points.get((attempt.point as usize).checked_sub(1)?)
}

/// Clients stand for users; ops do by the time between two of one user (the interactive law).
fn users(suite: &Suite, asked: &CapacityAsked, value: f64, reruns: &[&PointResult]) -> Option<f64> {
    match suite.load {
        LoadSpec::Closed { .. } => Some(value * asked.users_per_client),
        LoadSpec::Open { .. } => {
            let think_s = asked.think?.as_secs_f64();
            let means: Vec<f64> =
                reruns.iter().filter_map(|point| point.response_ns?.mean).collect();
            let mean_s = means.iter().sum::<f64>() / means.len().max(1) as f64 / 1e9;
            Some(value * (think_s + mean_s))
        }
    }
}

/// Tries at which the measurement was at fault were repeated: they do not limit the answer, unless
/// nothing else did.
fn limit_text(
    tries: &[CapacityTry],
    answer: &Answer,
    points: &[PointResult],
    unit: &str,
) -> Option<String> {
    let high = answer.high.filter(|_| answer.bound == Bound::Exact)?;
    let named = Some(limit(tries, answer, points).to_string()).filter(|text| !text.is_empty());
    let why = || Some(beyond(tries, high)?.why());
    named.or_else(|| Some(format!("{} {unit} was too much: {}", grouped(high), why()?)))
}

/// What held back the lowest load that was too much.
fn limit(tries: &[CapacityTry], answer: &Answer, points: &[PointResult]) -> Limit {
    let Some(high) = answer.high else {
        return Limit::new(LimitFacts::NoneTooMuch, Vec::new());
    };
    beyond(tries, high)
        .and_then(|attempt| point_of(attempt, points))
        .map(|point| point.limit.clone())
        .unwrap_or_default()
}

/// The first try of that load that was beyond a limit; else one that could not be judged.
fn beyond(tries: &[CapacityTry], high: f64) -> Option<&CapacityTry> {
    let mut failed = tries.iter().filter(|attempt| attempt.load == high && !attempt.passed);
    let judged = |attempt: &&CapacityTry| attempt.standing != TryStanding::NotJudged;
    failed.clone().find(judged).or_else(|| failed.next())
}
