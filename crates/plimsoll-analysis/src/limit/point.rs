//! The limit of one load point.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::limit::{EarlierService, Evidence, Limit, LimitFacts};
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::{Ladder, LoadSpec, Suite};
use plimsoll_model::units::Nanos;

use super::seen::{Scene, Seen};
use super::{failed, generator_limited, resources};
use crate::bursts::{FAST_RATE, SLOW_RATE};
use crate::point::missed_load;

/// What held a point back, as far as the evidence goes. `all` are the points beside it, itself
/// included, by rising load.
pub(super) fn limit_of(
    suite: &Suite,
    point: &PointResult,
    all: &[&PointResult],
    disclosure: Option<&Disclosure>,
) -> Limit {
    let plain = |facts| Limit::new(facts, Vec::new());
    if generator_limited(point) {
        return plain(LimitFacts::Generator);
    }
    let lowest = all.first().copied();
    let scene = Seen::of(point, disclosure).map(|now| Scene {
        now,
        most_running: resources::most_running(all),
        low: lowest
            .filter(|lowest| lowest.stem != point.stem)
            .and_then(|lowest| Seen::of(lowest, disclosure)),
    });
    if point.not_counted == Some(NotCounted::Cap) {
        let full = scene.as_ref().map(resources::full).unwrap_or_default();
        let behind = full.into_iter().next().map(Box::new);
        let evidence = behind.as_ref().map(|it| it.evidence.clone()).unwrap_or_default();
        let cap_ms = suite.rules.response_cap_ms.unwrap_or_default();
        return Limit { behind, ..Limit::new(LimitFacts::Cap { cap_ms }, evidence) };
    }
    let alone = match saturation(suite, point, lowest) {
        // It did not cope.
        Saturation::No if failed(point) => false,
        Saturation::No => return plain(LimitFacts::Followed),
        Saturation::Alone => true,
        Saturation::Yes(_) => false,
    };
    if let Some(limit) = clients_limit(point, all) {
        return limit;
    }
    let mut named = scene.as_ref().map(resources::full).unwrap_or_default().into_iter();
    match named.next() {
        Some(first) if alone => Limit { only_load: true, ..first },
        Some(first) => Limit { also: named.collect(), ..first },
        None if alone => plain(LimitFacts::NoneFull),
        None if failed(point) => plain(LimitFacts::ServerFailed),
        None => changing(point).unwrap_or_else(|| unknown(scene.as_ref())),
    }
}

/// What the generator alone sees: throughput that changes within a second.
fn changing(point: &PointResult) -> Option<Limit> {
    let find = |name: &str| point.resources.iter().find(|found| found.name == name);
    let (slow, fast) = (find(SLOW_RATE)?, find(FAST_RATE)?);
    let evidence = [slow, fast].map(|found| Evidence {
        name: found.name.clone(),
        value: found.mean,
        unit: found.unit.clone(),
        ..Evidence::default()
    });
    let facts = LimitFacts::Swings { slow_ops_per_s: slow.mean, fast_ops_per_s: fast.mean };
    Some(Limit::new(facts, evidence.into()))
}

fn unknown(scene: Option<&Scene<'_>>) -> Limit {
    let others = scene.and_then(|scene| scene.now.taken_by_others());
    let facts = match (scene, &others) {
        (None, _) => LimitFacts::NotWatched,
        (Some(scene), _) if !scene.now.watches_host() => LimitFacts::NotWatched,
        (Some(_), Some(_)) => LimitFacts::OtherPrograms,
        (Some(scene), None) => {
            LimitFacts::NothingFull { nearest: resources::nearly_full(&scene.now) }
        }
    };
    Limit { others, ..Limit::new(facts, Vec::new()) }
}

/// A closed load that gives less than this share of its asymptote is saturated.
const SATURATED_MAX_RATIO: f64 = 0.8;

/// What a load point is, as throughput tells.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Saturation {
    /// Throughput follows the load.
    No,
    /// It does not; of closed loads, with its share of the asymptote.
    Yes(Option<f64>),
    /// The only load, or the lowest closed one: there is nothing to hold it against.
    Alone,
}

/// Has throughput left its asymptote at this point? Open loads: it no longer follows the request.
/// Closed loads: it is clearly below N / (D + Z), the line that N clients would climb if nobody
/// waited, with D + Z as at the lowest load. `lowest` is the point of that, which may be itself.
fn saturation(suite: &Suite, point: &PointResult, lowest: Option<&PointResult>) -> Saturation {
    if point.offered_ops_per_s.is_some() {
        return if missed_load(point) { Saturation::Yes(None) } else { Saturation::No };
    }
    if matches!(suite.load, LoadSpec::Open { .. }) {
        // The closed probe of a search asks for all the server can do.
        return Saturation::Yes(None);
    }
    let ratio = lowest.and_then(|lowest| asymptote_ratio(suite, point, lowest));
    match ratio {
        None => Saturation::Alone,
        Some(ratio) if ratio <= SATURATED_MAX_RATIO => Saturation::Yes(Some(ratio)),
        Some(_) => Saturation::No,
    }
}

/// Achieved throughput over N / (D + Z).
fn asymptote_ratio(suite: &Suite, point: &PointResult, lowest: &PointResult) -> Option<f64> {
    if point.position == lowest.position && point.stem == lowest.stem {
        return None;
    }
    let of = |point: &PointResult| {
        let clients = f64::from(point.clients_participating.or(point.clients_requested)?);
        let rate = point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?;
        Some((clients, rate))
    };
    let (clients, rate) = of(point)?;
    let (few, low_rate) = of(lowest)?;
    let thinks = |point: &PointResult| match suite.ladder {
        Ladder::Think { .. } => point.think_s.unwrap_or(point.requested),
        _ => 0.0,
    };
    // What an op takes with its think time, and from it what it takes at this think time.
    let cycle_s = few / low_rate - thinks(lowest) + thinks(point);
    (cycle_s > 0.0).then(|| rate * cycle_s / clients)
}

/// Share of the clients' time under way from which the clients are all busy.
const CLIENTS_BUSY_MIN_RATIO: f64 = 0.9;
/// A server that takes this much longer than at its lowest load is slowing down.
const SLOWER_MIN_RATIO: f64 = 1.5;

/// All clients were busy while the server answered as fast as with little to do: at the lowest load,
/// or of a single load at its first ops. Then the number of clients was the limit (Little's law), and
/// nothing is known of the server's.
pub(super) fn clients_limit(point: &PointResult, all: &[&PointResult]) -> Option<Limit> {
    let service = |p: &PointResult| p.service_ns?.mean;
    let (requested, achieved) = (point.clients_requested?, point.achieved_ops_per_s?);
    let clients = f64::from(requested);
    let now = service(point)?;
    let lowest = all
        .iter()
        .copied()
        .filter(|p| p.offered_ops_per_s.is_some())
        .min_by(|a, b| a.requested.total_cmp(&b.requested))?;
    let (low, earlier) = match lowest.requested < point.requested {
        true => (service(lowest)?, EarlierService::LowLoad),
        false => (point.first_service_ns?, EarlierService::FirstOps),
    };
    let busy = achieved * now / 1e9;
    if busy < CLIENTS_BUSY_MIN_RATIO * clients || now > SLOWER_MIN_RATIO * low {
        return None;
    }
    let time = |ns: f64| Nanos(ns.round() as u64);
    let evidence = |name: &str, value: f64, unit: &str, low_load_value| Evidence {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        low_load_value,
        ..Evidence::default()
    };
    let facts = LimitFacts::Clients {
        clients: requested,
        service_ns: time(now),
        earlier_ns: time(low),
        earlier,
        most_ops_per_s: clients * 1e9 / now,
    };
    let evidence = vec![
        evidence("clients", clients, "clients", None),
        evidence("service_ns.mean", now, "ns", Some(low)),
    ];
    Some(Limit::new(facts, evidence))
}
