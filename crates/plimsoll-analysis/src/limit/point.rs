//! The limit of one load point.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::finding::WorkerCore;
use plimsoll_model::limit::{EarlierService, Evidence, Limit, LimitFacts, LimitKind};
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::{Ladder, LoadSpec, Suite};
use plimsoll_model::units::Nanos;

use super::client_links::{MissedLoad, client_links};
use super::monitored::Scene;
use super::{SATURATED_MAX_RATIO, failed, generator_limited, resources};
use crate::host_roles::HostEvidence;
use crate::point::{FAST_RATE, SLOW_RATE, missed_load};

/// The limit of a point, as far as the evidence goes. `all` are the points of the ladder, including
/// this one, by rising load.
pub(super) fn limit_of(
    suite: &Suite,
    point: &PointResult,
    all: &[&PointResult],
    disclosure: Option<&Disclosure>,
) -> Limit {
    let plain = |facts| Limit::new(facts, Vec::new());
    if point.not_counted == Some(NotCounted::ServerLost) || mostly_failed(point) {
        return plain(LimitFacts::ServerFailed);
    }
    if generator_limited(point) {
        let disturbed = |core: &WorkerCore| LimitFacts::Disturbed { core: core.clone() };
        return plain(disturbance(point).map_or(LimitFacts::Generator, disturbed));
    }
    let lowest = all.first().copied();
    let lower = lowest.filter(|lowest| lowest.stem != point.stem);
    let hosts = HostEvidence::from_result(point, disclosure).hosts();
    let scenes = Scene::all((point, lower), resources::most_running(all), &hosts, disclosure);
    if point.not_counted == Some(NotCounted::Cap) {
        let behind = resources::full(&scenes).into_iter().next().map(Box::new);
        let evidence = behind.as_ref().map(|it| it.evidence.clone()).unwrap_or_default();
        let cap_ms = suite.rules.response_cap_ms.unwrap_or_default();
        return Limit { behind, ..Limit::new(LimitFacts::Cap { cap_ms }, evidence) };
    }
    let (alone, asymptote_ratio) = match saturation(suite, point, lowest) {
        // The server did not cope.
        Saturation::No if failed(point) => (false, None),
        Saturation::No => return plain(LimitFacts::Followed),
        Saturation::Alone => (true, None),
        Saturation::Yes(ratio) => (false, ratio),
    };
    let full = resources::full(&scenes);
    // Clients are busy while their ops wait for slots.
    if let Some(limit) = full.is_empty().then(|| slots_limit(point, all)).flatten() {
        return limit;
    }
    if let Some(limit) = clients_limit(point, all) {
        return limit;
    }
    let mut named = full.into_iter();
    match named.next() {
        Some(first) if alone => Limit { only_load: true, ..first },
        Some(first) => Limit { also: named.collect(), ..first },
        None if alone => plain(LimitFacts::NoneFull),
        None if failed(point) => plain(LimitFacts::ServerFailed),
        None => {
            let tolerance_ratio = suite.rules.rate_tolerance_ratio;
            let load = MissedLoad { point, lower, asymptote_ratio, tolerance_ratio };
            let links = client_links(&load, disclosure);
            links.or_else(|| changing(point)).unwrap_or_else(|| unknown(&scenes))
        }
    }
}

/// Most of its ops failed: the monitors did not see a server at work.
fn mostly_failed(point: &PointResult) -> bool {
    let failed: u64 = point.errors.values().sum();
    let ended: u64 = point.ops.values().map(|op| op.count).sum();
    2 * failed > ended
}

/// Other programs on the generator's core, where that is all that makes the point invalid.
fn disturbance(point: &PointResult) -> Option<&WorkerCore> {
    let mut blamed = point.reasons.iter().map(|it| &it.rule).filter(|rule| rule.is_generators());
    let first = blamed.next()?.disturbance()?;
    blamed.all(|rule| rule.disturbance().is_some()).then_some(first)
}

/// The generator's own observation: throughput that changes within a second.
fn changing(point: &PointResult) -> Option<Limit> {
    let find = |name: &str| point.resources.iter().find(|resource| resource.name == name);
    let (slow, fast) = (find(SLOW_RATE)?, find(FAST_RATE)?);
    let evidence = [slow, fast].map(|resource| Evidence {
        name: resource.name.clone(),
        value: resource.mean,
        unit: resource.unit.clone(),
        ..Evidence::default()
    });
    let facts = LimitFacts::Swings { slow_ops_per_s: slow.mean, fast_ops_per_s: fast.mean };
    Some(Limit::new(facts, evidence.into()))
}

fn unknown(scenes: &[Scene<'_>]) -> Limit {
    let scene = scenes.first().filter(|scene| scene.is_of_server());
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

/// State of a load point by its throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Saturation {
    /// Throughput follows the load.
    No,
    /// It does not. For closed loads with the share of the asymptote.
    Yes(Option<f64>),
    /// The only load, or the lowest closed one: there is nothing to compare it with.
    Alone,
}

/// Has throughput left its asymptote at this point? Open loads: it no longer follows the request.
/// Closed loads: it is clearly below N / (D + Z), the throughput of N clients if nobody waited,
/// with D + Z as at the lowest load. `lowest` is that load's point, which may be the same.
fn saturation(suite: &Suite, point: &PointResult, lowest: Option<&PointResult>) -> Saturation {
    if point.offered_ops_per_s.is_some() {
        return if missed_load(point) { Saturation::Yes(None) } else { Saturation::No };
    }
    if matches!(suite.load, LoadSpec::Open { .. }) {
        // The closed probe of a search requests all the server can do.
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
    // Time of an op with its think time at the lowest load, converted to this think time.
    let cycle_s = few / low_rate - thinks(lowest) + thinks(point);
    (cycle_s > 0.0).then(|| rate * cycle_s / clients)
}

/// Share of the clients' time under way from which the clients are all busy.
const CLIENTS_BUSY_MIN_RATIO: f64 = 0.9;
/// A server with a service time longer by this factor than at its lowest load is slowing down.
const SLOWER_MIN_RATIO: f64 = 1.5;

/// The limit of a load that is not the server's: the slots of sessions, as [`limit_of`] found them,
/// or the clients.
pub(super) fn limit_of_load(point: &PointResult, all: &[&PointResult]) -> Option<Limit> {
    let slots = (point.limit.kind == LimitKind::Slots).then(|| point.limit.clone());
    slots.or_else(|| clients_limit(point, all))
}

/// All clients were busy while the server was as fast as with little to do. Then the number of
/// clients was the limit (Little's law), and the server's limit is unknown.
fn clients_limit(point: &PointResult, all: &[&PointResult]) -> Option<Limit> {
    let (requested, achieved) = (point.clients_requested?, point.achieved_ops_per_s?);
    let clients = f64::from(requested);
    let Service { now, low, earlier } = as_fast_service(point, all)?;
    if achieved * now / 1e9 < CLIENTS_BUSY_MIN_RATIO * clients {
        return None;
    }
    let facts = LimitFacts::Clients {
        clients: requested,
        service_ns: rounded(now),
        earlier_ns: rounded(low),
        earlier,
        most_ops_per_s: clients * 1e9 / now,
    };
    let evidence = vec![
        figure("clients", clients, "clients", None),
        figure("service_ns.mean", now, "ns", Some(low)),
    ];
    Some(Limit::new(facts, evidence))
}

/// Share of the time from its issue to its reply that an op waits for a slot, from which the slots
/// limit the load: with more of them, a third more ops would be under way.
const SLOT_WAIT_MIN_RATIO: f64 = 0.25;

/// Ops waited for slots of their sessions while the server was as fast as with little to do.
fn slots_limit(point: &PointResult, all: &[&PointResult]) -> Option<Limit> {
    let waits = point.compound_calls?.slot_wait_ns?;
    let Service { now, low, earlier } = as_fast_service(point, all)?;
    let waited = waits.mean? * waits.n as f64 / point.service_ns?.n as f64;
    if waited < SLOT_WAIT_MIN_RATIO * (waited + now) {
        return None;
    }
    let facts = LimitFacts::Slots {
        waited_ns: rounded(waited),
        service_ns: rounded(now),
        earlier_ns: rounded(low),
        earlier,
    };
    let evidence = vec![
        figure("slot_wait_per_op", waited, "ns", None),
        figure("service_ns.mean", now, "ns", Some(low)),
    ];
    Some(Limit::new(facts, evidence))
}

/// Mean service times, in nanoseconds.
struct Service {
    now: f64,
    /// With little to do.
    low: f64,
    earlier: EarlierService,
}

/// Of a server that answers an open load about as fast as with little to do: as at the lowest load,
/// or at the first ops of a single load.
fn as_fast_service(point: &PointResult, all: &[&PointResult]) -> Option<Service> {
    let service = |p: &PointResult| p.service_ns?.mean;
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
    (now <= SLOWER_MIN_RATIO * low).then_some(Service { now, low, earlier })
}

fn rounded(ns: f64) -> Nanos {
    Nanos(ns.round() as u64)
}

fn figure(name: &str, value: f64, unit: &str, low_load_value: Option<f64>) -> Evidence {
    let (name, unit) = (name.to_owned(), unit.to_owned());
    Evidence { name, value, unit, low_load_value, ..Evidence::default() }
}
