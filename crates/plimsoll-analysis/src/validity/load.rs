//! Was the requested load sustained?

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{PointRecord, WorkerTotals};
use plimsoll_model::finding::{CycleCount, ErrorCause, OpsLeft, Rule};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use super::{Evidence, connections};
use crate::sampling::NORMAL_95;
use crate::standard_error::StandardError;

/// Ops that may be missing whatever the tolerance: at low rates one op under way at a border of the
/// window is more than 5 %.
const RATE_SLACK_OPS: u64 = 2;
/// Closed loads: deviation from N = X(R+Z) that rounding and borders explain.
const CLOSED_LOOP_TOLERANCE_RATIO: f64 = 0.02;
/// Standard deviations that chance may be off by.
const CHANCE_DEVIATIONS: f64 = 3.0;
/// Fewer slices do not show how much they vary.
const SLICES_MIN: usize = 5;
/// Standard errors beyond which a deviation of the op mix is not chance (one in a thousand).
const CHANCE_STANDARD_ERRORS: f64 = 3.29;

/// The load was not sustained because ops never reached the server or had no reply, more of them
/// than failed. Where most of the ops that ended had failed, their failures are the cause.
pub(super) fn overload(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let failed = server_failures(totals);
    let ended: u64 = totals.ops.values().map(|counts| counts.count).sum();
    let is_cause = totals.not_sent + totals.unfinished > failed && 2 * failed <= ended;
    is_cause.then(|| not_sustained(e)).flatten()
}

/// Open loads: ops finished in the window against ops scheduled in it. They are not compared with
/// the requested rate, because exponential inter-arrival times scatter. And a scheduled op that was
/// never sent is work the server was spared.
pub(super) fn not_sustained(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let (not_sent_ops, due_ops) = (totals.not_sent, totals.due);
    match missed_ops(e.suite, e.view.record) {
        Some(off) => Some(rate(e, off)),
        None => (not_sent_ops > 0).then_some(Rule::NotSent { not_sent_ops, due_ops }),
    }
}

fn rate(e: &Evidence<'_>, off: u64) -> Rule {
    let totals = &e.view.record.totals;
    let due = totals.due;
    let seconds = e.view.record.measured_ns.as_secs_f64().max(f64::MIN_POSITIVE);
    let [scheduled_ops_per_s, achieved_ops_per_s] =
        match is_missed_by_lateness(e.suite, e.view.record) {
            false => [due, totals.done_in_window].map(|ops| ops as f64 / seconds),
            true => schedule_and_sending(e.view.record).map(|took| due as f64 / took),
        };
    Rule::Rate {
        achieved_ops_per_s,
        scheduled_ops_per_s,
        off_ratio: off as f64 / due.max(1) as f64,
        limit_ratio: e.suite.rules.rate_tolerance_ratio,
        ops: OpsLeft {
            due,
            not_sent: totals.not_sent,
            unfinished: totals.unfinished,
            failed: server_failures(totals),
        },
    }
}

/// By how many ops an open load was missed; `None` when it was sustained.
pub(super) fn missed_ops(suite: &Suite, record: &PointRecord) -> Option<u64> {
    let Load::Open { .. } = record.load else { return None };
    let due = record.totals.due;
    let off = match is_missed_by_lateness(suite, record) {
        false => due.abs_diff(record.totals.done_in_window),
        true => late_part(record),
    };
    let allowed = suite.rules.rate_tolerance_ratio * due as f64;
    (off > RATE_SLACK_OPS && off as f64 > allowed).then_some(off)
}

/// All ops were done, however long it took, so that the lateness of the last one counts: of a window
/// of a number of ops. And of a recording, which ends with the window and began with nothing under
/// way: what is done after its end makes up for nothing.
fn is_missed_by_lateness(suite: &Suite, record: &PointRecord) -> bool {
    record.ops.is_some() || suite.workload.is_recorded()
}

/// Of the requested ops of a window, those for which its schedule had no time.
fn late_part(record: &PointRecord) -> u64 {
    let [scheduled, took] = schedule_and_sending(record);
    (record.totals.due as f64 * (1.0 - scheduled / took).max(0.0)) as u64
}

/// From the window's begin to when its last op was due, and to when that was sent, in seconds.
fn schedule_and_sending(record: &PointRecord) -> [f64; 2] {
    let since = |at: Nanos| at.saturating_sub(record.warm_up_ns).as_secs_f64();
    let totals = &record.totals;
    [totals.last_due, totals.last_sent].map(|at| since(at).max(f64::MIN_POSITIVE))
}

/// More ops than may fail had neither a reply nor an error when the drain ended.
pub(super) fn unfinished(e: &Evidence<'_>) -> Option<Rule> {
    let (unfinished_ops, due_ops) = (e.view.record.totals.unfinished, e.view.record.totals.due);
    let limit_ratio = e.suite.rules.errors_max_ratio;
    let too_many = unfinished_ops as f64 > limit_ratio * due_ops as f64;
    too_many.then(|| Rule::Unfinished {
        unfinished_ops,
        due_ops,
        limit_ratio,
        silence: connections::silence(e),
    })
}

/// Classes of errors that this host made: it had no port or no descriptor left.
const OWN_CLASSES: [&str; 2] = ["ports_exhausted", "descriptors_exhausted"];

/// Failed ops that are the server's errors, including those that it left without a reply until
/// their timeout: errors that a user of it would have met.
pub(super) fn server_errors(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let failed = server_failures(totals);
    // Reported with the lost connections, where there are some.
    let silent = totals.errors.contains_key("timeout") && !connections::any_lost(e);
    let early = || connections::early_answers(e).filter(|early| early.ops() * 2 > failed);
    let cause = match connections::silence(e).filter(|_| silent) {
        Some(silence) => ErrorCause::Silence(silence),
        None => early().map_or(ErrorCause::Unknown, ErrorCause::EarlyAnswers),
    };
    too_many_failed(e, failed, |class| !OWN_CLASSES.contains(&class), cause)
}

/// Failed ops that the generator's host is to blame for.
pub(super) fn own_errors(e: &Evidence<'_>) -> Option<Rule> {
    let failed = own_failures(&e.view.record.totals);
    too_many_failed(e, failed, |class| OWN_CLASSES.contains(&class), ErrorCause::Generator)
}

fn server_failures(totals: &WorkerTotals) -> u64 {
    let by_class: u64 = totals.errors.values().sum();
    let by_op: u64 = totals.ops.values().map(|counts| counts.errors).sum();
    // Bundles of earlier versions count unfinished ops among the timeouts, and keep no ages.
    let unfinished = if totals.response_age_min.is_none() { totals.unfinished } else { 0 };
    by_class.max(by_op).saturating_sub(own_failures(totals) + unfinished)
}

fn own_failures(totals: &WorkerTotals) -> u64 {
    OWN_CLASSES.iter().filter_map(|class| totals.errors.get(*class)).sum()
}

fn too_many_failed(
    e: &Evidence<'_>,
    failed_ops: u64,
    counted: impl Fn(&str) -> bool,
    cause: ErrorCause,
) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let limit_ratio = e.suite.rules.errors_max_ratio;
    if failed_ops == 0 || failed_ops as f64 <= limit_ratio * totals.due as f64 {
        return None;
    }
    let most = totals.errors.iter().filter(|(class, _)| counted(class));
    let most = most.max_by_key(|(_, count)| **count);
    Some(Rule::Errors {
        failed_ops,
        due_ops: totals.due,
        limit_ratio,
        most: most.map(|(class, count)| (class.clone(), *count)),
        cause,
    })
}

/// Interactive response time law, N = X(R+Z): in a closed loop every client is at work or thinks.
/// The limit grows to one cycle in those a client completed, because the borders cut cycles; with
/// few clients and random think times, to what chance cuts off at most; where pages of a journey
/// have think times of their own, to the cycle that a client is in at any instant. A window of a
/// number of ops ends when they have ended: some clients are idle while the last ops finish, so the
/// law does not apply.
pub(super) fn closed_loop(e: &Evidence<'_>) -> Option<Rule> {
    if !e.is_steady() {
        return None;
    }
    let Load::Closed { clients, ref think, .. } = e.view.record.load else { return None };
    if e.view.record.ops.is_some() {
        return None;
    }
    let totals = &e.view.record.totals;
    let window_ns = e.view.record.measured_ns.0 as f64;
    if totals.pieces == 0 || window_ns == 0.0 {
        return closed_loop_by_ops(e);
    }
    let of_clients = f64::from(clients);
    let present = (totals.piece_ns_total as f64 + totals.think_ns_total as f64) / window_ns;
    // Those that left were there for a part of the window.
    let stayed = f64::from(totals.clients_participating).min(of_clients);
    let off_ratio = (present - present.clamp(stayed, of_clients)).abs() / of_clients;
    // The cycles that ended add up to the window, plus the part of a cycle that each client had
    // done at its begin, less the part at its end.
    let chance = CHANCE_DEVIATIONS * think.distribution.variation() * (2.0 / of_clients).sqrt();
    let cycle = of_clients / totals.pieces as f64 * chance.max(1.0);
    let cycle = if totals.journeys.is_empty() { cycle } else { cycle.max(cycle_at_a_border(e)) };
    let limit_ratio = CLOSED_LOOP_TOLERANCE_RATIO.max(cycle) + at_its_borders(e);
    if off_ratio <= limit_ratio || connections::explain(e, stayed - present) {
        return None;
    }
    let counted = CycleCount::Iterations;
    Some(Rule::ClosedLoop { counted, present, clients, off_ratio, limit_ratio })
}

/// The cycle that a client is in at any instant, on average, as a part of the window: a long think
/// time is more likely to be cut than a short one.
fn cycle_at_a_border(e: &Evidence<'_>) -> f64 {
    let totals = &e.view.record.totals;
    let spent_ns = (totals.piece_ns_total + totals.think_ns_total).max(1) as f64;
    totals.cycle_ns_squares / spent_ns / e.view.record.measured_ns.0.max(1) as f64
}

/// Pieces under way when the window begins count with the time before it, those under way when it
/// ends do not count. At any instant a client is in one of this length on average, and all may be
/// where a server stands still: as a part of the window.
fn at_its_borders(e: &Evidence<'_>) -> f64 {
    let Some(times) = e.times else { return 0.0 };
    let (sum, squares) = times.response.iter_recorded().fold((0.0, 0.0), |(sum, squares), step| {
        let (ns, n) = (step.value_iterated_to() as f64, step.count_at_value() as f64);
        (sum + ns * n, squares + ns * ns * n)
    });
    if sum > 0.0 { squares / sum / e.view.record.measured_ns.0.max(1) as f64 } else { 0.0 }
}

/// The same law where pieces are longer than the window, by the ops they are made of: each client
/// has at least one op in flight unless it thinks, which without a finished piece it did once at
/// most. The borders cut the ops in flight.
fn closed_loop_by_ops(e: &Evidence<'_>) -> Option<Rule> {
    let Load::Closed { clients, think, .. } = &e.view.record.load else { return None };
    let of_clients = f64::from(*clients);
    let stayed = f64::from(e.view.record.totals.clients_participating).min(of_clients);
    let window_ns = e.view.record.measured_ns.0 as f64;
    let response = e.times.map(|times| &times.response).filter(|times| !times.is_empty());
    let Some(response) = response.filter(|_| window_ns > 0.0) else {
        return Some(Rule::ClosedLoopUnknown);
    };
    let present = response.mean() * response.len() as f64 / window_ns;
    let once = think.mean.0 as f64 + response.mean();
    let limit_ratio = CLOSED_LOOP_TOLERANCE_RATIO + once / window_ns;
    let off_ratio = (stayed - present) / of_clients;
    if off_ratio <= limit_ratio || connections::explain(e, stayed - present) {
        return None;
    }
    let (counted, clients) = (CycleCount::Ops, *clients);
    Some(Rule::ClosedLoop { counted, present, clients, off_ratio, limit_ratio })
}

/// Each op's share of the ops done against the method's.
pub(super) fn op_mix(e: &Evidence<'_>) -> Option<Rule> {
    let worst = worst_share(e)?;
    let off = worst.points_off > worst.limit_points.max(worst.chance_points);
    off.then(|| Rule::OpMix {
        op: worst.op.to_owned(),
        percent: worst.percent,
        wanted_percent: worst.expected_percent,
        limit_points: worst.limit_points,
    })
}

struct ShareOff<'a> {
    op: &'a str,
    percent: f64,
    expected_percent: f64,
    points_off: f64,
    limit_points: f64,
    chance_points: f64,
}

/// The op furthest from its share, relative to the allowed deviation. `None` without a fixed mix.
fn worst_share<'a>(e: &'a Evidence<'_>) -> Option<ShareOff<'a>> {
    let shares = e.started.op_shares.as_ref()?;
    let weight_sum: f64 = shares.iter().sum();
    let counts = e.view.record.totals.mix();
    let done: u64 = counts.values().sum();
    if done == 0 || weight_sum <= 0.0 {
        return None;
    }
    let limit_points = e.suite.rules.op_mix_max_points;
    let offs =
        e.started.op_names.0.iter().zip(shares).enumerate().map(|(index, (op, expected))| {
            let expected = expected / weight_sum;
            let share = counts.get(op.as_str()).copied().unwrap_or(0) as f64 / done as f64;
            let points_off = (share - expected).abs() * 100.0;
            let alone = (expected * (1.0 - expected) / done as f64).sqrt();
            // Ops of a kind may come in runs, as those of a program do: then a window has fewer of
            // these than of ops.
            let scatter = (points_off > limit_points).then(|| scatter_of_share(e, index)).flatten();
            let scatter = scatter.unwrap_or_default();
            ShareOff {
                op,
                percent: share * 100.0,
                expected_percent: expected * 100.0,
                points_off,
                limit_points,
                chance_points: CHANCE_STANDARD_ERRORS * alone.max(scatter) * 100.0,
            }
        });
    let excess = |o: &ShareOff<'_>| o.points_off - o.limit_points.max(o.chance_points);
    offs.max_by(|a, b| excess(a).total_cmp(&excess(b)))
}

/// Standard error of an op's share of the work, by how it varies over the window.
fn scatter_of_share(e: &Evidence<'_>, op: usize) -> Option<f64> {
    let parts = e.seconds?.parts_of_op(op);
    // With two slices Student's t would make chance of nearly everything.
    let parts = Some(parts).filter(|parts| parts.len() >= SLICES_MIN)?;
    Some(StandardError::of_ratio(&parts, f64::INFINITY)?.half_width() / NORMAL_95)
}

/// Each target's ops against an equal part of all: the load is to be spread evenly.
pub(super) fn target_shares(e: &Evidence<'_>) -> Option<Rule> {
    let limit = e.suite.rules.target_share_max_ratio?;
    let targets = &e.view.record.totals.per_target;
    let done: u64 = targets.iter().map(|target| target.done_in_window).sum();
    if targets.len() < 2 || done == 0 {
        return None;
    }
    let equal = done as f64 / targets.len() as f64;
    let off = |ops: u64| (ops as f64 - equal).abs() / equal;
    let worst =
        targets.iter().max_by(|a, b| off(a.done_in_window).total_cmp(&off(b.done_in_window)))?;
    let chance = chance_of_share(1.0 / targets.len() as f64, done);
    if off(worst.done_in_window) <= limit.max(chance) {
        return None;
    }
    Some(Rule::TargetShares {
        target: worst.target.clone(),
        ops: worst.done_in_window,
        equal_ops: equal.round() as u64,
        off_ratio: off(worst.done_in_window),
        limit_ratio: limit,
    })
}

/// How far from `share` of all ops chance may bring a part, as a share of that part.
pub(super) fn chance_of_share(share: f64, all_ops: u64) -> f64 {
    CHANCE_STANDARD_ERRORS * ((1.0 - share) / (share * all_ops as f64)).sqrt()
}

/// Mean service time over the suite's cap: the point is not counted, the run stays valid.
pub(super) fn response_cap(e: &Evidence<'_>) -> Option<Rule> {
    let cap_ms = e.suite.rules.response_cap_ms?;
    let service = &e.times?.service;
    if service.is_empty() {
        return None;
    }
    let mean_ms = service.mean() / 1e6;
    (mean_ms > cap_ms).then_some(Rule::ResponseCap { mean_ms, cap_ms })
}

#[cfg(test)]
mod tests;
