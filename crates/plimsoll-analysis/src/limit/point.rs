//! The limit of one load point.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::limit::{Evidence, Limit, LimitKind};
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::{grouped, whole_percent};

use super::saturation::{Saturation, saturation};
use super::seen::{Scene, Seen, foremost_text};
use crate::bursts::{FAST_RATE, SLOW_RATE};

use super::clients::clients_limit;
use super::{behind_cap, cap_of, failed, generator_limited, resources};

/// What held a point back, as far as the evidence goes. `all` are the points beside it, itself
/// included, by rising load.
pub(super) fn limit_of(
    suite: &Suite,
    point: &PointResult,
    all: &[&PointResult],
    disclosure: Option<&Disclosure>,
) -> Limit {
    let plain = |kind, text: String| Limit { kind, text, ..Limit::default() };
    if generator_limited(point) {
        let text = "the generator: what the server can do beyond that is unknown".to_owned();
        return plain(LimitKind::Generator, text);
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
        let text = format!("{}{}", cap_of(suite), behind_cap(behind.as_deref()));
        return Limit { evidence, behind, ..plain(LimitKind::Cap, text) };
    }
    let alone = match saturation(suite, point, lowest) {
        // It did not cope.
        Saturation::No if failed(point) => false,
        Saturation::No => {
            let text = "not saturated: throughput follows the load".to_owned();
            return plain(LimitKind::None, text);
        }
        Saturation::Alone => true,
        Saturation::Yes(_) => false,
    };
    if let Some(limit) = clients_limit(point, all) {
        return limit;
    }
    let mut named = scene.as_ref().map(resources::full).unwrap_or_default().into_iter();
    match named.next() {
        Some(first) if alone => at_this_load(first),
        Some(first) => Limit { also: named.collect(), ..first },
        None if alone => plain(
            LimitKind::None,
            "not saturated: no resource was full, as far as one load tells".to_owned(),
        ),
        None if failed(point) => plain(
            LimitKind::Unknown,
            "the server failed ops; which resource is not known".to_owned(),
        ),
        None => changing(point).unwrap_or_else(|| unknown(scene.as_ref())),
    }
}

/// One load tells what was full at it, and not that more would bring no more.
fn at_this_load(limit: Limit) -> Limit {
    Limit { text: format!("{}, at this one load", limit.text), ..limit }
}

/// What the generator alone sees: throughput that changes within a second.
fn changing(point: &PointResult) -> Option<Limit> {
    let find = |name: &str| point.resources.iter().find(|found| found.name == name);
    let (slow, fast) = (find(SLOW_RATE)?, find(FAST_RATE)?);
    let text = format!(
        "saturated; which resource is not known: within a second throughput swings between {} ops/s, \
         in the slowest quarter of the time, and {}, in the fastest: two resources take turns or \
         one pauses, which averages over the window do not show",
        grouped(slow.mean.round()),
        grouped(fast.mean.round()),
    );
    let evidence = [slow, fast].map(|found| Evidence {
        name: found.name.clone(),
        value: found.mean,
        unit: found.unit.clone(),
        ..Evidence::default()
    });
    let kind = LimitKind::Unknown;
    Some(Limit { kind, text, evidence: evidence.into(), ..Limit::default() })
}

fn unknown(scene: Option<&Scene<'_>>) -> Limit {
    let others = scene.and_then(|scene| scene.now.taken_by_others());
    let why = match (scene, &others) {
        (None, _) => "the server's host was not watched".to_owned(),
        (Some(_), Some(others)) => format!(
            "other programs had {} of the server's cores{}",
            whole_percent(others.cores_ratio),
            foremost_text(others),
        ),
        (Some(scene), None) => {
            let none = "none that was watched was full with a queue";
            match resources::nearly_full(&scene.now) {
                Some(nearest) => format!("{none}; nearest to it {nearest}"),
                None => none.to_owned(),
            }
        }
    };
    let text = format!("saturated; which resource is not known: {why}");
    Limit { kind: LimitKind::Unknown, text, others, ..Limit::default() }
}
