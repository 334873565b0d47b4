//! What limited each load point and the run, as far as the evidence goes. To name a resource takes
//! a load that throughput no longer follows (`saturation`), a resource that is full, and its queue
//! ([`resources`]).
//!
//! A load point is evaluated by the means of its resources alone, and a resource is found by its
//! name wherever it was read. So another host, a recorded bundle and a test give the same verdict.

mod client_links;
mod monitored;
mod point;
mod resources;
mod story;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::Bound;
use plimsoll_model::finding::Rule;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::sentences::Sentences;
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::units::{BytesPerSec, clients, grouped, whole_percent};

use self::client_links::limited_by_clients;
use self::point::limit_of_load;
use crate::point::{missed_load, throughput};

pub(crate) use resources::model_uses;
pub(crate) use story::limit_spans;

/// Throughput that grows by less than this share of the added load has stopped growing.
const GROWTH_MIN_RATIO: f64 = 0.5;
/// Closed loads that gain less than this over half as many clients have stopped growing.
const CLOSED_GROWTH_MIN_RATIO: f64 = 0.03;
/// The same where a resource was full with a queue: this much may be scatter then.
const FULL_GROWTH_MIN_RATIO: f64 = 0.15;
/// A closed load that gives less than this share of its asymptote is saturated.
const SATURATED_MAX_RATIO: f64 = 0.8;
/// A closed load that gives less than the peak by this share has fallen; less may be scatter.
pub(crate) const FALL_MIN_RATIO: f64 = 0.1;

/// Gives every load point its limit; `points` and `probes` are evaluated together.
pub(crate) fn assign_limits(
    suite: &Suite,
    points: &mut [PointResult],
    probes: &mut [PointResult],
    disclosure: Option<&Disclosure>,
) {
    let limits = {
        let all: Vec<&PointResult> = points.iter().chain(&*probes).collect();
        let climb = by_load(suite, all.iter().copied());
        let limit = |point: &&PointResult| point::limit_of(suite, point, &climb, disclosure);
        all.iter().map(limit).collect::<Vec<_>>()
    };
    for (point, limit) in points.iter_mut().chain(probes).zip(limits) {
        point.limit = limit;
    }
}

/// One sentence, or `None` when there is nothing to report. `probes` are the steps of the search
/// for the peak: a searched ladder ends at the peak, so only they reached the limit. `ended_by` is
/// what ended the search before any load was too high.
pub(crate) fn limit_text(
    suite: &Suite,
    sentences: &Sentences,
    points: &[PointResult],
    probes: &[PointResult],
    ended_by: Option<&str>,
) -> Option<String> {
    let climb = by_load(suite, points);
    climb.first()?;
    if let Some(text) = generator_text(suite, sentences, &climb) {
        return Some(text);
    }
    let first_failed = story::not_contradicted(&climb).iter().find(|p| failed(p));
    if let Some(point) = first_failed {
        let from = load_text(suite, point);
        let failed = format!("the server failed ops from {from} on; see the error samples");
        return Some(match story::story(suite, sentences, &climb) {
            Some(story) => format!("{failed}; the limit is {story}"),
            None => failed,
        });
    }
    match suite.load {
        LoadSpec::Open { .. } => match ladder_missed(&climb) {
            None => cap_text(suite, sentences, &climb)
                .or_else(|| ended_by.map(str::to_owned))
                .or_else(|| probes_text(suite, sentences, points, probes))
                .or_else(|| Some(sustained_text(suite, points))),
            Some(missed) => missed_text(suite, sentences, &climb, missed),
        },
        LoadSpec::Closed { .. } if points.len() < 2 => {
            let resource = points.first().filter(|point| point.limit.kind.is_resource());
            resource.map(|point| (sentences.limit)(&point.limit))
        }
        LoadSpec::Closed { .. } => closed_text(suite, sentences, points),
    }
}

/// The generator was the limit from one load on; the limit of the loads below it is named too.
fn generator_text(suite: &Suite, sentences: &Sentences, climb: &[&PointResult]) -> Option<String> {
    let reached = story::generator_from(climb)?;
    let (below, first) = (&climb[..reached], climb[reached]);
    let load = load_text(suite, first);
    let beyond = match first.limit.kind {
        LimitKind::Generator => format!(
            "generator-limited from {load} on: what the server can do beyond that is unknown"
        ),
        LimitKind::Network => format!(
            "limited by the clients' side from {load} on: {}; what the server can do beyond that \
             is unknown",
            (sentences.limit_with_others)(&first.limit)
        ),
        _ => format!("from {load} on {}", (sentences.limit)(&first.limit)),
    };
    Some(match story::story(suite, sentences, below) {
        Some(story) => format!("{beyond}; below that the limit is {story}"),
        None => beyond,
    })
}

/// Did the generator, or a link of its hosts, set this point's figure?
pub(crate) fn generator_limited(point: &PointResult) -> bool {
    broke(point, Rule::is_generators) || limited_by_clients(point)
}

/// Was the server's own limit reached, by the points or by the search for the peak, whose outcome
/// is `searched`? Where the generator, the clients, the space or the time ended the load, the
/// server carried at least what it did.
pub(crate) fn bound_of(
    suite: &Suite,
    points: &[PointResult],
    probes: &[PointResult],
    searched: Option<Bound>,
) -> Bound {
    // The ladder has the low loads: a search begins near the peak.
    let all: Vec<&PointResult> = points.iter().chain(probes).collect();
    let by_server = |point: &PointResult| {
        let exceeded = missed_load(point) || failed(point) || point.not_counted.is_some();
        exceeded && !generator_limited(point) && limit_of_load(point, &all).is_none()
    };
    let observed = match suite.load {
        LoadSpec::Open { .. } => {
            let by_search = || lowest_missed(probes).is_none_or(by_server);
            let climb = by_load(suite, points);
            let by_ladder = story::not_contradicted(&climb).iter().any(|point| by_server(point));
            by_ladder || (searched == Some(Bound::Exact) && by_search())
        }
        LoadSpec::Closed { .. } => {
            let growth = closed_growth(suite, points);
            let stopped = matches!(growth, Growth::Fell | Growth::Stopped(_) | Growth::Full);
            let by_slots = |point: &PointResult| point.limit.kind == LimitKind::Slots;
            stopped && !points.iter().any(|point| generator_limited(point) || by_slots(point))
        }
    };
    if observed { Bound::Exact } else { Bound::AtLeast }
}

/// The generator, and nothing else, made the point invalid.
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

/// Ops waited to the end: the server was saturated.
fn queued_to_the_end(point: &PointResult) -> bool {
    missed_load(point) && point.not_sent.is_some_and(|ops| ops > 0)
}

/// The first missed load above all that were sustained.
fn ladder_missed(climb: &[&PointResult]) -> Option<usize> {
    let beyond = story::not_contradicted(climb);
    let missed = beyond.iter().position(|point| missed_load(point))?;
    Some(climb.len() - beyond.len() + missed)
}

fn sustained_text(suite: &Suite, points: &[PointResult]) -> String {
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

/// The load was sustained, but too slowly for the suite to count it.
fn cap_text(suite: &Suite, sentences: &Sentences, climb: &[&PointResult]) -> Option<String> {
    let cap_ms = suite.rules.response_cap_ms?;
    let mut beyond = story::not_contradicted(climb).iter();
    let above = beyond.find(|point| point.not_counted == Some(NotCounted::Cap))?;
    let behind = climb.iter().rev().find_map(|point| {
        let resource = (sentences.limit)(point.limit.behind.as_deref()?);
        Some(format!("; behind it {resource} at {}", load_text(suite, point)))
    });
    Some(format!(
        "the suite's cap on response time: from {} on the mean service time is above {cap_ms} ms, \
         though the load was held{}",
        load_text(suite, above),
        behind.unwrap_or_default(),
    ))
}

/// The lowest load of the search above those it sustained. The closed probe requests no load; a
/// miss below a load that was sustained in the end was scatter, and so was one of a load that was
/// sustained when it was tried again.
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

/// The reason at the lowest load that the search could not sustain.
fn probes_text(
    suite: &Suite,
    sentences: &Sentences,
    points: &[PointResult],
    probes: &[PointResult],
) -> Option<String> {
    let missed = lowest_missed(probes)?;
    let load = load_text(suite, missed);
    if generator_limited(missed) && missed.limit.kind != LimitKind::Generator {
        let limit = (sentences.limit)(&missed.limit);
        return Some(format!("in the search for the peak, at {load}, {limit}"));
    }
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
    if let Some(limit) = limit_of_load(missed, &all) {
        return Some((sentences.limit)(&limit));
    }
    // Too much load may bring less than the sustained peak.
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
        resource_text(suite, sentences, &[missed]),
    ))
}

fn missed_text(
    suite: &Suite,
    sentences: &Sentences,
    climb: &[&PointResult],
    missed: usize,
) -> Option<String> {
    let peak = climb.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max)?;
    let first = climb[missed];
    if let Some(limit) = limit_of_load(first, climb) {
        return Some((sentences.limit)(&limit));
    }
    let before = missed.checked_sub(1).map(|i| climb[i]);
    // A queue that was never empty at the end means that the server was saturated.
    let queued = queued_to_the_end(first);
    if !queued && before.is_some_and(|before| still_grew(before, &climb[missed..])) {
        return Some(format!(
            "the requested load was missed from {} on, but throughput still grew there: where it \
             stops was not reached",
            load_text(suite, first),
        ));
    }
    Some(format!(
        "server saturated at about {}: from {} on throughput stopped following the request \
         while the generator had headroom; {}",
        ops_text(suite, peak),
        load_text(suite, first),
        resource_text(suite, sentences, climb),
    ))
}

/// Did most of the load added between the last sustained point and the last of the ladder come
/// through?
fn still_grew(sustained: &PointResult, missed: &[&PointResult]) -> bool {
    let Some(last) = missed.last() else { return false };
    match (sustained.achieved_ops_per_s, last.achieved_ops_per_s) {
        (Some(from), Some(to)) if last.requested > sustained.requested => {
            (to - from) / (last.requested - sustained.requested) >= GROWTH_MIN_RATIO
        }
        _ => false,
    }
}

/// The effect of the last doubling of a closed load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth<'p> {
    /// Less than at the peak.
    Fell,
    /// No more than before, except for this part.
    Stopped(f64),
    /// From this point on, at half the last one's load.
    GrewFrom(&'p PointResult),
    /// The load was not doubled, but at the last one a resource of the server was full.
    Full,
    /// The load was not doubled.
    Unknown,
}

fn closed_growth<'p>(suite: &Suite, points: &'p [PointResult]) -> Growth<'p> {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = by_load(suite, points);
    let Some(last) = climb.last() else { return Growth::Unknown };
    let is_below = |peak: &PointResult| {
        let intervals = last.achieved_interval_ops_per_s.zip(peak.achieved_interval_ops_per_s);
        intervals.is_none_or(|([_, high], [low, _])| high < low)
    };
    let fell = |peak: &&&PointResult| {
        rate(last) < rate(peak) * (1.0 - FALL_MIN_RATIO)
            && closed_load(suite, peak) < closed_load(suite, last)
            && is_below(peak)
    };
    if climb.iter().any(|peak| fell(&peak)) {
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
        None if last.limit.kind.is_resource() => Growth::Full,
        None => Growth::Unknown,
    }
}

/// The points by rising load; the closed probe of a search, which requests all there is, comes
/// last. A load whose server was lost is left out.
fn by_load<'p>(
    suite: &Suite,
    points: impl IntoIterator<Item = &'p PointResult>,
) -> Vec<&'p PointResult> {
    let load = |point: &PointResult| match (&suite.load, point.offered_ops_per_s) {
        (LoadSpec::Open { .. }, None) => f64::INFINITY,
        (LoadSpec::Open { .. }, Some(_)) => point.requested,
        (LoadSpec::Closed { .. }, _) => closed_load(suite, point),
    };
    let was_there = |point: &&PointResult| point.not_counted != Some(NotCounted::ServerLost);
    let mut climb: Vec<&PointResult> = points.into_iter().filter(was_there).collect();
    climb.sort_by(|a, b| load(a).total_cmp(&load(b)));
    climb
}

/// The resource, and the load from which on it was the limit.
fn resource_text(suite: &Suite, sentences: &Sentences, climb: &[&PointResult]) -> String {
    match story::story(suite, sentences, climb) {
        Some(story) => format!("the limit is {story}"),
        None => match climb.iter().rev().find(|p| p.limit.kind == LimitKind::Unknown) {
            Some(point) => (sentences.unknown_limit)(&point.limit),
            None => "which resource is not known".to_owned(),
        },
    }
}

fn closed_text(suite: &Suite, sentences: &Sentences, points: &[PointResult]) -> Option<String> {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = by_load(suite, points);
    let last = *climb.last()?;
    let peak = climb.iter().fold(last, |peak, p| if rate(p) > rate(peak) { p } else { peak });
    let peak_text = rate_text(suite, rate(peak));
    let (more, doubles) = match suite.ladder {
        Ladder::Think { .. } => ("shorter think times", "halve its think time"),
        _ => ("more clients", "double its clients"),
    };
    let resource = || resource_text(suite, sentences, &climb);
    Some(match closed_growth(suite, points) {
        Growth::Fell => format!(
            "server saturated at about {peak_text}, reached at {}: past that {more} brought less, \
             {} at {}, while the generator had headroom; {}",
            position_text(suite, peak),
            rate_text(suite, rate(last)),
            position_text(suite, last),
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
            let (from, to) = (position_text(suite, before), position_text(suite, last));
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
        Growth::Full => format!("server saturated at about {peak_text}: {}", resource()),
        Growth::Unknown => {
            format!("unknown: the ladder does not {doubles}, so growth cannot be judged")
        }
    })
}

/// The load that a closed point requests, on a scale of its own: clients, or thinks per second.
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
    format!("{} {}", grouped(rate), suite.metric.ops_unit())
}

fn load_text(suite: &Suite, point: &PointResult) -> String {
    match suite.load {
        LoadSpec::Open { .. } => {
            format!("{} {} requested", grouped(point.requested), suite.load.unit(suite.metric))
        }
        LoadSpec::Closed { .. } => position_text(suite, point),
    }
}

/// A point's position on its ladder.
pub(crate) fn position_text(suite: &Suite, point: &PointResult) -> String {
    match (&suite.load, &suite.ladder) {
        (LoadSpec::Open { .. }, _) => {
            format!("{} {}", grouped(point.requested), suite.load.unit(suite.metric))
        }
        (LoadSpec::Closed { .. }, Ladder::Think { .. }) => {
            format!("{} s think time", grouped(point.requested))
        }
        (LoadSpec::Closed { .. }, _) => clients(point.requested),
    }
}

#[cfg(test)]
mod tests;
