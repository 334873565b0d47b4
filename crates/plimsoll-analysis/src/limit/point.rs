//! The limit of one load point.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::limit::{Evidence, Limit, LimitFacts};
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::Suite;

use super::saturation::{Saturation, saturation};
use super::seen::{Scene, Seen};
use crate::bursts::{FAST_RATE, SLOW_RATE};

use super::clients::clients_limit;
use super::{failed, generator_limited, resources};

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
        (Some(_), Some(_)) => LimitFacts::OtherPrograms,
        (Some(scene), None) => {
            LimitFacts::NothingFull { nearest: resources::nearly_full(&scene.now) }
        }
    };
    Limit { others, ..Limit::new(facts, Vec::new()) }
}
