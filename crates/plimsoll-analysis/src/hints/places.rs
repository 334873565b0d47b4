//! Where it is slow: on new connections, or at one target of several. Medians are held against each
//! other, since a few long ops move a mean.

use plimsoll_model::hint::Hint;

use super::Seen;

/// A new connection is far slower than a kept one from this factor on.
const NEW_MIN_FACTOR: f64 = 5.0;
/// And from this difference on: a handshake of TLS on a busy processor takes some milliseconds.
const NEW_MIN_DIFFERENCE_NS: u64 = 20_000_000;
/// Fewer new connections tell no median, and are not worth a hint.
const NEW_MIN: u64 = 40;

/// A target is slow from this factor over the slowest of the others on.
const TARGET_MIN_FACTOR: f64 = 2.0;
/// And from this difference on: where a server runs moves it by less.
const TARGET_MIN_DIFFERENCE_NS: u64 = 2_000_000;
/// The others are alike up to this factor.
const OTHERS_MAX_FACTOR: f64 = 1.5;
/// Fewer ops of a target tell no median.
const TARGET_OPS_MIN: u64 = 100;

/// The one median is above the other by both.
fn is_above(slow_ns: u64, fast_ns: u64, factor: f64, difference_ns: u64) -> bool {
    slow_ns as f64 >= factor * fast_ns as f64 && slow_ns >= fast_ns + difference_ns
}

pub(super) fn slow_new_connections(seen: &Seen<'_>) -> Option<Hint> {
    let signs = &seen.record.totals.signs;
    let (new, kept) = (&signs.new_connections, &signs.kept_connections);
    let (new_p50_ns, kept_p50_ns) = (new.median_ns()?, kept.median_ns()?);
    let connections = new.n();
    let enough = connections >= NEW_MIN && kept.n() >= NEW_MIN;
    let slower = is_above(new_p50_ns, kept_p50_ns, NEW_MIN_FACTOR, NEW_MIN_DIFFERENCE_NS);
    (enough && slower).then_some(Hint::SlowNewConnections { connections, new_p50_ns, kept_p50_ns })
}

pub(super) fn slow_target(seen: &Seen<'_>) -> Option<Hint> {
    let targets = &seen.record.totals.per_target;
    let median = |target: &plimsoll_model::event::TargetTotals| {
        let enough = target.service.n() >= TARGET_OPS_MIN;
        target.service.median_ns().filter(|_| enough)
    };
    let mut medians: Vec<u64> = targets.iter().map(median).collect::<Option<_>>()?;
    let slowest = (0..medians.len()).max_by_key(|at| medians[*at])?;
    let p50_ns = medians.swap_remove(slowest);
    let (fastest, others_p50_ns) = (*medians.iter().min()?, *medians.iter().max()?);
    let alike = others_p50_ns as f64 <= OTHERS_MAX_FACTOR * fastest as f64;
    let slow = is_above(p50_ns, others_p50_ns, TARGET_MIN_FACTOR, TARGET_MIN_DIFFERENCE_NS);
    (alike && slow).then(|| Hint::SlowTarget {
        target: targets[slowest].target.clone(),
        p50_ns,
        others: medians.len() as u64,
        others_p50_ns,
    })
}
