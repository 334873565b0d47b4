//! What limited each load point and the run, as far as the evidence goes. The name of a resource
//! takes a load that throughput no longer follows (`saturation`), a resource that is full, and its
//! queue ([`resources`]).
//!
//! A load point is judged by the means of its resources alone, and a resource is found by its name
//! wherever it was read. So another host, a recorded bundle and a test give the same verdict.

mod point;
mod resources;
mod seen;
mod story;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::Bound;
use plimsoll_model::finding::Rule;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::units::{BytesPerSec, clients, grouped, whole_percent};

use self::point::clients_limit;
use crate::metric::{ops_unit, throughput};
use crate::point::missed_load;

pub(crate) use resources::told_of_models;
pub(crate) use story::limit_spans;

/// Throughput that grows by less than this share of what was added in load has stopped growing.
const GROWTH_MIN_RATIO: f64 = 0.5;
/// Closed loads that gain less than this over half as many clients have stopped growing.
const CLOSED_GROWTH_MIN_RATIO: f64 = 0.03;
/// The same where a resource was full with a queue: so much may be scatter then.
const FULL_GROWTH_MIN_RATIO: f64 = 0.15;
/// A closed load that gives less than the peak by this share has fallen; less may be scatter.
pub(crate) const FALL_MIN_RATIO: f64 = 0.1;

/// Gives every load point its limit; `points` and `probes` are judged beside each other.
pub(crate) fn judge_limits(
    suite: &Suite,
    points: &mut [PointResult],
    probes: &mut [PointResult],
    disclosure: Option<&Disclosure>,
) {
    let judged = {
        let all: Vec<&PointResult> = points.iter().chain(&*probes).collect();
        let climb = by_load(suite, all.iter().copied());
        let limit = |point: &&PointResult| point::limit_of(suite, point, &climb, disclosure);
        all.iter().map(limit).collect::<Vec<_>>()
    };
    for (point, limit) in points.iter_mut().chain(probes).zip(judged) {
        point.limit = limit;
    }
}

/// One sentence, or nothing when there is nothing to say. `probes` are the steps of the search for
/// the peak: a searched ladder ends at the peak, so that only they saw the limit. `held_back` is
/// what ended the search before anything was too much.
pub(crate) fn limit_text(
    suite: &Suite,
    points: &[PointResult],
    probes: &[PointResult],
    held_back: Option<&str>,
) -> Option<String> {
    if points.is_empty() {
        return None;
    }
    if let Some(text) = generator_text(suite, points) {
        return Some(text);
    }
    if let Some(point) = points.iter().find(|p| failed(p)) {
        let from = load_text(suite, point);
        let failed = format!("the server failed ops from {from} on; see the error samples");
        return Some(match story::story(suite, &by_load(suite, points)) {
            Some(story) => format!("{failed}; the limit is {story}"),
            None => failed,
        });
    }
    match suite.load {
        LoadSpec::Open { .. } => match ladder_missed(points) {
            None => cap_text(suite, points)
                .or_else(|| held_back.map(str::to_owned))
                .or_else(|| probes_text(suite, points, probes))
                .or_else(|| Some(held_text(suite, points))),
            Some(missed) => missed_text(suite, points, missed),
        },
        LoadSpec::Closed { .. } if points.len() < 2 => {
            points.first().filter(|p| p.limit.kind.is_resource()).map(|p| p.limit.to_string())
        }
        LoadSpec::Closed { .. } => closed_text(suite, points),
    }
}

/// The generator was the limit from one load on; what limited the loads below it is told too.
fn generator_text(suite: &Suite, points: &[PointResult]) -> Option<String> {
    let climb = by_load(suite, points);
    let reached = story::generator_from(&climb)?;
    let (below, first) = (&climb[..reached], climb[reached]);
    let beyond = format!(
        "generator-limited from {} on: what the server can do beyond that is unknown",
        load_text(suite, first),
    );
    Some(match story::story(suite, below) {
        Some(story) => format!("{beyond}; below that the limit is {story}"),
        None => beyond,
    })
}

/// Did the generator set this point's figure?
pub(crate) fn generator_limited(point: &PointResult) -> bool {
    broke(point, Rule::is_generators)
}

/// Was the server's own limit seen, by the points or by the search for the peak, which came to
/// `searched`? Where the generator, the clients, the room or the time ended the load, the server
/// carried at least what it did.
pub(crate) fn bound_of(
    suite: &Suite,
    points: &[PointResult],
    probes: &[PointResult],
    searched: Option<Bound>,
) -> Bound {
    // What low load is, the ladder tells: a search begins near the peak.
    let all: Vec<&PointResult> = points.iter().chain(probes).collect();
    let by_server = |point: &PointResult| {
        let over = missed_load(point) || failed(point) || point.not_counted.is_some();
        over && !generator_limited(point) && clients_limit(point, &all).is_none()
    };
    let seen = match suite.load {
        LoadSpec::Open { .. } => {
            let by_search = || {
                let missed = lowest_missed(probes);
                missed.is_none_or(by_server)
            };
            points.iter().any(by_server) || (searched == Some(Bound::Exact) && by_search())
        }
        LoadSpec::Closed { .. } => {
            let growth = closed_growth(suite, points);
            let stopped = matches!(growth, Growth::Fell | Growth::Stopped(_));
            stopped && !points.iter().any(generator_limited)
        }
    };
    if seen { Bound::Exact } else { Bound::AtLeast }
}

/// The generator, and nothing else, is why the point is invalid.
pub(crate) fn generator_alone(point: &PointResult) -> bool {
    !point.reasons.is_empty() && point.reasons.iter().all(|reason| reason.rule.is_generators())
}

fn broke(point: &PointResult, is_it: impl Fn(&Rule) -> bool) -> bool {
    let left_out = point.not_counted_because.iter();
    point.reasons.iter().chain(left_out).any(|finding| is_it(&finding.rule))
}

fn failed(point: &PointResult) -> bool {
    broke(point, |rule| matches!(rule, Rule::Errors { .. } | Rule::Corrupt { .. }))
}

/// Ops waited to the end: the server got all it could take.
fn queued_to_the_end(point: &PointResult) -> bool {
    missed_load(point) && point.not_sent.is_some_and(|ops| ops > 0)
}

fn ladder_missed(points: &[PointResult]) -> Option<usize> {
    points.iter().position(missed_load)
}

fn held_text(suite: &Suite, points: &[PointResult]) -> String {
    let waited = |p: &&PointResult| {
        p.warnings.iter().any(|warning| matches!(warning.rule, Rule::Connections { .. }))
    };
    match points.iter().find(waited) {
        Some(point) => format!(
            "the load was held, but from {} on ops waited for a free connection; more clients \
             would tell whether that is the server's doing",
            load_text(suite, point),
        ),
        None => "not saturated: throughput still followed the requested load at the last point"
            .to_owned(),
    }
}

/// The load was held, but too slowly for the suite to count it.
fn cap_text(suite: &Suite, points: &[PointResult]) -> Option<String> {
    let cap_ms = suite.rules.response_cap_ms?;
    let above = points.iter().find(|point| point.not_counted == Some(NotCounted::Cap))?;
    let behind = points.iter().rev().find_map(|point| {
        let resource = point.limit.behind.as_deref()?;
        Some(format!("; behind it {resource} at {}", load_text(suite, point)))
    });
    Some(format!(
        "the suite's cap on response time: from {} on the mean service time is above {cap_ms} ms, \
         though the load was held{}",
        load_text(suite, above),
        behind.unwrap_or_default(),
    ))
}

/// The lowest load of the search above those it held. The closed probe asks for no load; a miss
/// below a load that was held in the end was scatter, and so was one of a load that was held when it
/// was tried again.
fn lowest_missed(probes: &[PointResult]) -> Option<&PointResult> {
    let open = || probes.iter().filter(|probe| probe.offered_ops_per_s.is_some());
    let missed = |p: &&PointResult| {
        missed_load(p) || generator_limited(p) || failed(p) || p.not_counted.is_some()
    };
    let verified = open().next_back().filter(|last| !missed(last)).map(|last| last.requested);
    let is_last_of_its_load = |p: &&PointResult| {
        let last = open().rfind(|other| other.requested == p.requested);
        last.is_some_and(|last| std::ptr::eq(last, *p))
    };
    open()
        .filter(is_last_of_its_load)
        .filter(missed)
        .filter(|p| verified.is_none_or(|verified| p.requested > verified))
        .min_by(|a, b| a.requested.total_cmp(&b.requested))
}

/// What the lowest load says that the search could not hold.
fn probes_text(suite: &Suite, points: &[PointResult], probes: &[PointResult]) -> Option<String> {
    let missed = lowest_missed(probes)?;
    let load = load_text(suite, missed);
    if generator_limited(missed) {
        return Some(format!(
            "generator-limited: in the search for the peak {load} were too much for the \
             generator; what the server can do beyond that is unknown"
        ));
    }
    if !missed_load(missed) {
        return Some(format!(
            "the suite's cap on response time: in the search for the peak {load} were held, but \
             with a mean service time above the cap",
        ));
    }
    let all: Vec<&PointResult> = points.iter().chain(probes).collect();
    if let Some(limit) = clients_limit(missed, &all) {
        return Some(limit.to_string());
    }
    // Too much load may bring less than the peak that was held.
    let came = missed.achieved_ops_per_s?;
    let most = points.iter().filter_map(|p| p.achieved_ops_per_s).fold(came, f64::max);
    let less = match most > came {
        true => format!(" and brought {}", ops_text(suite, came)),
        false => String::new(),
    };
    Some(format!(
        "server saturated at about {}: in the search for the peak {load} were not held{less} \
         while the generator had headroom; {}",
        ops_text(suite, most),
        resource_text(suite, &[missed]),
    ))
}

fn missed_text(suite: &Suite, points: &[PointResult], missed: usize) -> Option<String> {
    let peak = points.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max)?;
    let all: Vec<&PointResult> = points.iter().collect();
    if let Some(limit) = clients_limit(&points[missed], &all) {
        return Some(limit.to_string());
    }
    let before = missed.checked_sub(1).map(|i| &points[i]);
    // A queue that was never empty at the end means that the server got all it could take.
    let queued = queued_to_the_end(&points[missed]);
    if !queued && before.is_some_and(|before| still_grew(before, &points[missed..])) {
        return Some(format!(
            "the requested load was missed from {} on, but throughput still grew there: where it \
             stops was not reached",
            load_text(suite, &points[missed]),
        ));
    }
    Some(format!(
        "server saturated at about {}: from {} on throughput stopped following the request \
         while the generator had headroom; {}",
        ops_text(suite, peak),
        load_text(suite, &points[missed]),
        resource_text(suite, &by_load(suite, points)),
    ))
}

/// Did most of the load added from the last point held to the last of the ladder come through?
fn still_grew(held: &PointResult, missed: &[PointResult]) -> bool {
    let Some(last) = missed.last() else { return false };
    match (held.achieved_ops_per_s, last.achieved_ops_per_s) {
        (Some(from), Some(to)) if last.requested > held.requested => {
            (to - from) / (last.requested - held.requested) >= GROWTH_MIN_RATIO
        }
        _ => false,
    }
}

/// What came of the last doubling of a closed load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth<'p> {
    /// Less than at the peak.
    Fell,
    /// No more than before, but for this part.
    Stopped(f64),
    /// From this point on, at half the last one's load.
    GrewFrom(&'p PointResult),
    /// The load was not doubled.
    Unknown,
}

fn closed_growth<'p>(suite: &Suite, points: &'p [PointResult]) -> Growth<'p> {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = by_load(suite, points);
    let Some(last) = climb.last() else { return Growth::Unknown };
    let peak = climb.iter().map(|point| rate(point)).fold(0.0, f64::max);
    if rate(last) < peak * (1.0 - FALL_MIN_RATIO) {
        return Growth::Fell;
    }
    // The highest of the loads that the last is at least twice of.
    let half = closed_load(suite, last) / 2.0;
    match climb.iter().rfind(|point| closed_load(suite, point) <= half) {
        Some(before) => {
            let gain = rate(last) / rate(before) - 1.0;
            let least = match last.limit.kind.is_resource() {
                true => FULL_GROWTH_MIN_RATIO,
                false => CLOSED_GROWTH_MIN_RATIO,
            };
            if gain > least { Growth::GrewFrom(before) } else { Growth::Stopped(gain) }
        }
        None => Growth::Unknown,
    }
}

/// The points by rising load; the closed probe of a search, which asks for all there is, comes
/// last.
fn by_load<'p>(
    suite: &Suite,
    points: impl IntoIterator<Item = &'p PointResult>,
) -> Vec<&'p PointResult> {
    let load = |point: &PointResult| match (&suite.load, point.offered_ops_per_s) {
        (LoadSpec::Open { .. }, None) => f64::INFINITY,
        (LoadSpec::Open { .. }, Some(_)) => point.requested,
        (LoadSpec::Closed { .. }, _) => closed_load(suite, point),
    };
    let mut climb: Vec<&PointResult> = points.into_iter().collect();
    climb.sort_by(|a, b| load(a).total_cmp(&load(b)));
    climb
}

/// Which resource it was, and from which load on.
fn resource_text(suite: &Suite, climb: &[&PointResult]) -> String {
    match story::story(suite, climb) {
        Some(story) => format!("the limit is {story}"),
        None => match climb.iter().rev().find(|p| p.limit.kind == LimitKind::Unknown) {
            Some(point) => point.limit.unknown_text(),
            None => "which resource is not known".to_owned(),
        },
    }
}

fn closed_text(suite: &Suite, points: &[PointResult]) -> Option<String> {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = by_load(suite, points);
    let last = *climb.last()?;
    let peak = climb.iter().fold(last, |peak, p| if rate(p) > rate(peak) { p } else { peak });
    let peak_text = rate_text(suite, rate(peak));
    let (more, doubles) = match suite.ladder {
        Ladder::Think { .. } => ("shorter think times", "halve its think time"),
        _ => ("more clients", "double its clients"),
    };
    let resource = || resource_text(suite, &climb);
    Some(match closed_growth(suite, points) {
        Growth::Fell => format!(
            "server saturated at about {peak_text}, reached at {}: past that {more} brought less, \
             {} at {}, while the generator had headroom; {}",
            place_text(suite, peak),
            rate_text(suite, rate(last)),
            place_text(suite, last),
            resource(),
        ),
        Growth::Stopped(gain) => {
            let brought = match gain > CLOSED_GROWTH_MIN_RATIO {
                true => format!("only {} more at the last doubling", whole_percent(gain)),
                false => "no more throughput".to_owned(),
            };
            format!(
                "server saturated at about {peak_text}: {more} brought {brought} while the \
                 generator had headroom; {}",
                resource(),
            )
        }
        Growth::GrewFrom(before) => {
            let (from, to) = (place_text(suite, before), place_text(suite, last));
            let grew = format!("throughput still grew from {from} to {to}");
            let behind = climb.iter().rev().take_while(|p| p.limit.kind != LimitKind::None).last();
            match behind {
                None => format!("not saturated: {grew}"),
                Some(first) => format!(
                    "{grew}, though no longer in step with the load from {} on; {}",
                    load_text(suite, first),
                    resource(),
                ),
            }
        }
        Growth::Unknown => {
            format!("unknown: the ladder does not {doubles}, so growth cannot be judged")
        }
    })
}

/// How much a closed point asks for, on a scale of its own: clients, or thinks per second.
fn closed_load(suite: &Suite, point: &PointResult) -> f64 {
    match suite.ladder {
        Ladder::Think { .. } => point.requested.recip(),
        _ => point.requested,
    }
}

/// A throughput in the suite's metric.
fn rate_text(suite: &Suite, rate: f64) -> String {
    match suite.metric {
        Metric::Bytes => BytesPerSec(rate).to_string(),
        Metric::Ops | Metric::Logons => ops_text(suite, rate),
    }
}

fn ops_text(suite: &Suite, rate: f64) -> String {
    format!("{} {}", grouped(rate), ops_unit(suite.metric))
}

fn load_text(suite: &Suite, point: &PointResult) -> String {
    match suite.load {
        LoadSpec::Open { .. } => {
            format!("{} {} requested", grouped(point.requested), ops_unit(suite.metric))
        }
        LoadSpec::Closed { .. } => place_text(suite, point),
    }
}

/// A point's place on its ladder.
pub(crate) fn place_text(suite: &Suite, point: &PointResult) -> String {
    match (&suite.load, &suite.ladder) {
        (LoadSpec::Open { .. }, _) => {
            format!("{} {}", grouped(point.requested), ops_unit(suite.metric))
        }
        (LoadSpec::Closed { .. }, Ladder::Think { .. }) => {
            format!("{} s think time", grouped(point.requested))
        }
        (LoadSpec::Closed { .. }, _) => clients(point.requested),
    }
}

#[cfg(test)]
mod tests;
