//! What limited the run, as far as the evidence goes. The name of a resource takes a measured
//! ceiling and a rising queue; only servers that tell their own figures give that
//! ([`evidence`]), so of others it is never named.

mod evidence;

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::result::{Bound, NotCounted, PointResult};
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::units::{BytesPerSec, grouped};

use crate::analyse::ops_unit;
use crate::summary::throughput;

/// Rules whose breach means that the generator, not the server, set the figure.
const GENERATOR_RULES: [&str; 2] = ["generator_cpu", "generator_error"];
/// Throughput that grows by less than this share of what was added in load has stopped growing.
const GROWTH_MIN_RATIO: f64 = 0.5;
/// Closed loads that gain less than this over half as many clients have stopped growing.
const CLOSED_GROWTH_MIN_RATIO: f64 = 0.03;
/// A closed load that gives less than the peak by this share has fallen; less may be scatter.
const FALL_MIN_RATIO: f64 = 0.1;

/// One sentence, or nothing when there is nothing to say. `probes` are the steps of the search for
/// the peak: a searched ladder ends at the peak, so that only they saw the limit. `held_back` is
/// what ended the search before anything was too much.
pub(crate) fn limit_text(
    suite: &Suite,
    points: &[PointResult],
    probes: &[PointResult],
    held_back: Option<&str>,
    disclosure: Option<&Disclosure>,
) -> Option<String> {
    if points.is_empty() {
        return None;
    }
    if let Some(point) = points.iter().find(|p| generator_limited(p)) {
        return Some(format!(
            "generator-limited from {} on: what the server can do beyond that is unknown",
            load_text(suite, point),
        ));
    }
    if let Some(point) = points.iter().find(|p| failed(p)) {
        return Some(format!(
            "the server failed ops from {} on; see the error samples",
            load_text(suite, point),
        ));
    }
    match suite.load {
        LoadSpec::Open { .. } => match ladder_missed(points) {
            None => held_back
                .map(str::to_owned)
                .or_else(|| probes_text(suite, probes))
                .or_else(|| Some(held_text(suite, points))),
            Some(missed) => missed_text(suite, points, missed),
        },
        LoadSpec::Closed { .. } if points.len() < 2 => None,
        LoadSpec::Closed { .. } => closed_text(suite, points, disclosure),
    }
}

/// Did the generator set this point's figure?
pub(crate) fn generator_limited(point: &PointResult) -> bool {
    GENERATOR_RULES.iter().any(|rule| broke(point, rule))
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
    let by_server = |point: &PointResult, all: &[PointResult]| {
        let over = missed_load(point) || failed(point) || point.not_counted.is_some();
        over && !generator_limited(point) && clients_limit(suite, point, all).is_none()
    };
    let seen = match suite.load {
        LoadSpec::Open { .. } => {
            let by_search = || {
                let missed = lowest_missed(probes);
                missed.is_none_or(|probe| by_server(probe, probes))
            };
            points.iter().any(|point| by_server(point, points))
                || (searched == Some(Bound::Exact) && by_search())
        }
        LoadSpec::Closed { .. } => {
            let stopped = matches!(closed_growth(suite, points), Growth::Fell | Growth::Stopped);
            stopped && !points.iter().any(generator_limited)
        }
    };
    if seen { Bound::Exact } else { Bound::AtLeast }
}

/// The generator, and nothing else, is why the point is invalid.
pub(crate) fn generator_alone(point: &PointResult) -> bool {
    let own = |rule: &str| GENERATOR_RULES.contains(&rule);
    !point.reasons.is_empty() && point.reasons.iter().all(|reason| own(&reason.rule))
}

fn broke(point: &PointResult, rule: &str) -> bool {
    let left_out = point.not_counted_because.iter();
    point.reasons.iter().chain(left_out).any(|finding| finding.rule == rule)
}

fn failed(point: &PointResult) -> bool {
    broke(point, "errors") || broke(point, "corrupt")
}

fn missed_load(point: &PointResult) -> bool {
    point.not_counted == Some(NotCounted::NotHeld)
}

/// Ops waited to the end: the server got all it could take.
fn queued_to_the_end(point: &PointResult) -> bool {
    missed_load(point) && point.not_sent.is_some_and(|ops| ops > 0)
}

fn ladder_missed(points: &[PointResult]) -> Option<usize> {
    points.iter().position(missed_load)
}

fn held_text(suite: &Suite, points: &[PointResult]) -> String {
    if let Some(text) = cap_text(suite, points) {
        return text;
    }
    match points.iter().find(|p| p.warnings.iter().any(|w| w.rule == "connections")) {
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
    Some(format!(
        "the suite's cap on response time: from {} on the mean service time is above {cap_ms} ms, \
         though the load was held",
        load_text(suite, above),
    ))
}

/// Share of the clients' time under way from which the clients are all busy.
const CLIENTS_BUSY_MIN_RATIO: f64 = 0.9;
/// A server that takes this much longer than at its lowest load is slowing down.
const SLOWER_MIN_RATIO: f64 = 1.5;

/// All clients were busy while the server answered as fast as at low load: then the number of
/// clients was the limit (Little's law), and nothing is known of the server's.
fn clients_limit(suite: &Suite, point: &PointResult, all: &[PointResult]) -> Option<String> {
    let service = |p: &PointResult| p.service_ns?.mean;
    let clients = f64::from(point.clients_requested?);
    let busy = point.achieved_ops_per_s? * service(point)? / 1e9;
    let lowest = all
        .iter()
        .filter(|p| p.offered_ops_per_s.is_some())
        .min_by(|a, b| a.requested.total_cmp(&b.requested))?;
    let slower = service(point)? / service(lowest)?;
    let alone = lowest.requested >= point.requested;
    if busy < CLIENTS_BUSY_MIN_RATIO * clients || slower > SLOWER_MIN_RATIO || alone {
        return None;
    }
    Some(format!(
        "the clients: all {clients} were busy while the server answered as fast as at low load; \
         so many carry no more than {}: add clients (--set load.clients=N) to see what the \
         server can do",
        ops_text(suite, point.achieved_ops_per_s?),
    ))
}

/// The lowest load of the search above those it held. The closed probe asks for no load, and a
/// miss below a load that was held in the end was scatter.
fn lowest_missed(probes: &[PointResult]) -> Option<&PointResult> {
    let open = || probes.iter().filter(|probe| probe.offered_ops_per_s.is_some());
    let missed = |p: &&PointResult| {
        missed_load(p) || generator_limited(p) || failed(p) || p.not_counted.is_some()
    };
    let verified = open().next_back().filter(|last| !missed(last)).map(|last| last.requested);
    open()
        .filter(missed)
        .filter(|p| verified.is_none_or(|verified| p.requested > verified))
        .min_by(|a, b| a.requested.total_cmp(&b.requested))
}

/// What the lowest load says that the search could not hold.
fn probes_text(suite: &Suite, probes: &[PointResult]) -> Option<String> {
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
    if let Some(text) = clients_limit(suite, missed, probes) {
        return Some(text);
    }
    Some(format!(
        "server saturated at about {}: in the search for the peak {load} were not held \
         while the generator had headroom; which resource is not known",
        ops_text(suite, missed.achieved_ops_per_s?),
    ))
}

fn missed_text(suite: &Suite, points: &[PointResult], missed: usize) -> Option<String> {
    let peak = points.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max)?;
    if let Some(text) = clients_limit(suite, &points[missed], points) {
        return Some(text);
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
         while the generator had headroom; which resource is not known",
        ops_text(suite, peak),
        load_text(suite, &points[missed]),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// Less than at the peak.
    Fell,
    /// No more than before.
    Stopped,
    Grew,
    /// The load was not doubled.
    Unknown,
}

fn closed_growth(suite: &Suite, points: &[PointResult]) -> Growth {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = climb(suite, points);
    let Some(last) = climb.last() else { return Growth::Unknown };
    let peak = climb.iter().map(|point| rate(point)).fold(0.0, f64::max);
    if rate(last) < peak * (1.0 - FALL_MIN_RATIO) {
        return Growth::Fell;
    }
    let half = closed_load(suite, last) / 2.0;
    match climb.iter().rfind(|point| closed_load(suite, point) <= half) {
        Some(before) if rate(last) <= rate(before) * (1.0 + CLOSED_GROWTH_MIN_RATIO) => {
            Growth::Stopped
        }
        Some(_) => Growth::Grew,
        None => Growth::Unknown,
    }
}

/// The points by rising load.
fn climb<'p>(suite: &Suite, points: &'p [PointResult]) -> Vec<&'p PointResult> {
    let mut climb: Vec<&PointResult> = points.iter().collect();
    climb.sort_by(|a, b| closed_load(suite, a).total_cmp(&closed_load(suite, b)));
    climb
}

fn closed_text(
    suite: &Suite,
    points: &[PointResult],
    disclosure: Option<&Disclosure>,
) -> Option<String> {
    let rate = |point: &PointResult| throughput(suite.metric, point).unwrap_or_default();
    let climb = climb(suite, points);
    let last = *climb.last()?;
    let peak = climb.iter().fold(last, |peak, p| if rate(p) > rate(peak) { p } else { peak });
    let peak_text = rate_text(suite, rate(peak));
    let (more, doubles) = match suite.ladder {
        Ladder::Think { .. } => ("shorter think times", "halve its think time"),
        _ => ("more clients", "double its clients"),
    };
    let resource = || {
        let below = &climb[..climb.len() - 1];
        let place = place_text(suite, last);
        evidence::Plateau { at: last, below, place }.resource(disclosure)
    };
    let resource = || resource().unwrap_or_else(|| "which resource is not known".to_owned());
    Some(match closed_growth(suite, points) {
        Growth::Fell => format!(
            "server saturated at about {peak_text}, reached at {}: past that {more} brought less, \
             {} at {}, while the generator had headroom; {}",
            place_text(suite, peak),
            rate_text(suite, rate(last)),
            place_text(suite, last),
            resource(),
        ),
        Growth::Stopped => format!(
            "server saturated at about {peak_text}: {more} brought no more throughput while the \
             generator had headroom; {}",
            resource(),
        ),
        Growth::Grew => format!(
            "not saturated: throughput still grew with {} at the last points",
            if more == "more clients" { "the clients" } else { more },
        ),
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
        (LoadSpec::Closed { .. }, _) => format!("{} clients", grouped(point.requested)),
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    fn limit(points: impl IntoIterator<Item = PointBuilder>) -> String {
        analyse(&RunBuilder::of(points).raw()).summary.limit.unwrap()
    }

    fn check(points: impl IntoIterator<Item = PointBuilder>, start: &str) {
        let text = limit(points);
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_ladder_that_was_held_is_not_saturated() {
        check([500.0, 1_000.0].map(PointBuilder::open), "not saturated");
    }

    #[test]
    fn a_plateau_with_headroom_is_the_servers() {
        let plateau = [
            PointBuilder::open(1_000.0),
            PointBuilder::open(2_000.0).achieved(1_300),
            PointBuilder::open(3_000.0).achieved(1_290),
        ];
        let text = limit(plateau);
        assert!(text.starts_with("server saturated at about 1,300 ops/s: from 2,000"), "{text}");
        assert!(text.contains("which resource is not known"), "{text}");
    }

    #[test]
    fn clients_that_are_all_busy_on_a_server_that_is_not_slower_are_the_limit() {
        // 64 clients and 100 ms an op: 640 ops/s, whatever the server could do.
        let slow = |rate| PointBuilder::open(rate).response_ns(100_000_000);
        check([slow(300.0), slow(1_000.0).achieved(640)], "the clients: all 64 were busy");
        let slower = PointBuilder::open(1_000.0).response_ns(100_000_000).achieved(640);
        check([PointBuilder::open(300.0), slower], "server saturated at about 640");
    }

    #[test]
    fn a_missed_load_that_still_grew_is_not_called_saturation() {
        let points = [PointBuilder::open(1_000.0), PointBuilder::open(2_000.0).achieved(1_800)];
        check(points, "the requested load was missed from 2,000 ops/s requested on, but");
    }

    #[test]
    fn a_searched_ladder_ends_below_the_limit_and_the_search_tells_of_it() {
        let run = RunBuilder::open(&[500.0, 1_000.0]).with_failed_probe(3_000.0);
        let text = analyse(&run.raw()).summary.limit.unwrap();
        assert!(text.starts_with("server saturated at about 1,500 ops/s: in the search"), "{text}");
        assert!(text.contains("3,000 ops/s requested were not held"), "{text}");
    }

    #[test]
    fn a_load_held_above_the_response_cap_names_the_cap() {
        let slow = PointBuilder::open(1_000.0).response_ns(50_000_000);
        let mut run = RunBuilder::of([PointBuilder::open(500.0), slow]);
        run.suite.rules.response_cap_ms = Some(40.0);
        let text = analyse(&run.raw()).summary.limit.unwrap();
        assert!(text.contains("from 1,000 ops/s requested on the mean service time"), "{text}");
    }

    #[test]
    fn a_search_that_ended_at_the_response_cap_says_so() {
        let mut run = RunBuilder::open(&[500.0, 1_000.0])
            .with_probe(PointBuilder::open(1_200.0).response_ns(50_000_000));
        run.suite.rules.response_cap_ms = Some(40.0);
        let result = analyse(&run.raw());
        assert!(result.verdict.valid, "{:?}", result.verdict);
        let text = result.summary.limit.unwrap();
        assert!(text.contains("1,200 ops/s requested were held, but with a mean"), "{text}");
    }

    #[test]
    fn a_busy_generator_is_named_before_the_server() {
        let points = [
            PointBuilder::open(1_000.0),
            PointBuilder::open(2_000.0).achieved(1_300).worker_busy(0.99),
        ];
        check(points, "generator-limited from 2,000 ops/s requested on");
    }

    #[test]
    fn a_ladder_of_think_times_climbs_as_they_shrink() {
        let sweep = |points: &[(u64, u64)]| {
            let limit = analyse(&RunBuilder::thinking(points).raw()).summary.limit;
            limit.unwrap_or_default()
        };
        let fell = sweep(&[(15, 300), (25, 500), (60, 420), (90, 280)]);
        let begin = "server saturated at about 500 ops/s, reached at 25 s think time: past that \
                     shorter think times brought less, 300 ops/s at 15 s think time";
        assert!(fell.starts_with(begin), "{fell}");
        let rising = sweep(&[(90, 100), (45, 190), (15, 500)]);
        let grew = "not saturated: throughput still grew with shorter think times";
        assert!(rising.starts_with(grew), "{rising}");
        let flat = sweep(&[(90, 490), (45, 500), (15, 498)]);
        assert!(flat.contains("shorter think times brought no more throughput"), "{flat}");
        assert!(sweep(&[(20, 90), (15, 100)]).contains("does not halve its think time"));
    }

    #[test]
    fn closed_loads_are_judged_over_a_doubling_of_clients() {
        let flat = [(8, 8_000), (16, 10_000), (32, 10_100)];
        check(
            flat.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)),
            "server saturated at about 10,100 ops/s",
        );
        let rising = [(8, 8_000), (16, 15_000)];
        check(rising.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)), "not saturated");
        let fell = [(8, 8_000), (16, 10_000), (32, 6_000)];
        check(
            fell.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)),
            "server saturated at about 10,000 ops/s, reached at 16 clients: past that more clients \
             brought less, 6,000 ops/s at 32 clients, while",
        );
        let close = [(8, 8_000), (9, 8_100)];
        check(close.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)), "unknown");
    }
}
