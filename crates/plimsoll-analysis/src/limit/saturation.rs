//! Has throughput left its asymptote at a load point? Open loads: it no longer follows the request.
//! Closed loads: it is clearly below N / (D + Z), the line that N clients would climb if nobody
//! waited, with D + Z as at the lowest load.

use plimsoll_model::result::PointResult;
use plimsoll_model::suite::{Ladder, LoadSpec, Suite};

use crate::point::missed_load;

/// A closed load that gives less than this share of its asymptote is saturated.
pub(super) const SATURATED_MAX_RATIO: f64 = 0.8;

/// What a load point is, as throughput tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Saturation {
    /// Throughput follows the load.
    No,
    /// It does not; of closed loads, with its share of the asymptote.
    Yes(Option<f64>),
    /// The only load, or the lowest closed one: there is nothing to hold it against.
    Alone,
}

/// Judges one point; `lowest` is the point of the lowest load, which may be itself.
pub(super) fn saturation(
    suite: &Suite,
    point: &PointResult,
    lowest: Option<&PointResult>,
) -> Saturation {
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
