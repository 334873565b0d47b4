//! Was the load that was asked for the load that was held?

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{PointRecord, WorkerHealth, WorkerTotals};
use plimsoll_model::result::Finding;
use plimsoll_model::suite::Suite;
use plimsoll_model::units::{Nanos, grouped, three_digits};

use super::early::EarlyAnswers;
use super::{Evidence, connections, finding, percent};
use crate::blocks::{BLOCKS_MIN, Chance, NORMAL_95, chance_of_ratio};
use crate::point::UNFINISHED;

/// Ops that may be missing whatever the tolerance: at low rates one op under way at a border of
/// the window is more than 5 %.
const RATE_SLACK_OPS: u64 = 2;
/// Closed loads: departure from N = X(R+Z) that rounding and borders explain.
const CLOSED_LOOP_TOLERANCE_RATIO: f64 = 0.02;
/// Standard errors beyond which a departure of the op mix is not chance (one in a thousand).
const CHANCE_STANDARD_ERRORS: f64 = 3.29;

/// The load was not held because ops never reached the server or had no reply, more of them than
/// failed. Where most of the ops that ended had failed, their failures are the cause.
pub(super) fn overload(e: &Evidence<'_>) -> Option<Finding> {
    let totals = &e.view.record.totals;
    let failed = server_failures(totals);
    let ended: u64 = totals.ops.values().map(|counts| counts.count).sum();
    let is_cause = totals.not_sent + totals.unfinished > failed && 2 * failed <= ended;
    is_cause.then(|| not_held(e)).flatten()
}

/// Open loads: ops finished in the window against ops scheduled in it. The schedule, not the
/// requested rate, is the yardstick, because exponential gaps scatter. And an op of the schedule
/// that never left is work the server was spared.
pub(super) fn not_held(e: &Evidence<'_>) -> Option<Finding> {
    let totals = &e.view.record.totals;
    match missed_ops(e.suite, e.view.record) {
        Some(off) => rate(e, off),
        None if totals.not_sent > 0 => finding(
            "not_sent",
            format!(
                "{} of {} ops were never sent (limit 0): every connection was busy and the queue \
                 full or not empty at the end; lower the rate, or add clients",
                grouped(totals.not_sent as f64),
                grouped(totals.due as f64),
            ),
        ),
        None => None,
    }
}

fn rate(e: &Evidence<'_>, off: u64) -> Option<Finding> {
    let due = e.view.record.totals.due;
    let tolerance = e.suite.rules.rate_tolerance_ratio;
    let seconds = e.view.record.measured_ns.as_secs_f64().max(f64::MIN_POSITIVE);
    let [scheduled, achieved] = match e.view.record.ops {
        None => [due, e.view.record.totals.done_in_window].map(|ops| ops as f64 / seconds),
        Some(_) => schedule_and_sending(e.view.record).map(|took| due as f64 / took),
    };
    finding(
        "rate",
        format!(
            "load not held: achieved {} of {} ops/s scheduled, {} off (limit {}){}; ask for less, \
             give the server more resources, or add clients",
            grouped(achieved),
            grouped(scheduled),
            percent(off as f64 / due.max(1) as f64),
            percent(tolerance),
            unanswered(&e.view.record.totals),
        ),
    )
}

/// What became of the ops of an open load that were not done.
fn unanswered(totals: &WorkerTotals) -> String {
    let parts = [
        (totals.not_sent, "were never sent"),
        (totals.unfinished, "had no reply when the drain ended"),
        (server_failures(totals), "failed"),
    ];
    let parts = parts.into_iter().filter(|(ops, _)| *ops > 0);
    let parts: Vec<_> =
        parts.map(|(ops, what)| format!("{} {what}", grouped(ops as f64))).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("; of {} ops {}", grouped(totals.due as f64), parts.join(", ")),
    }
}

/// By how many ops an open load was missed; `None` when it was held.
pub(super) fn missed_ops(suite: &Suite, record: &PointRecord) -> Option<u64> {
    let Load::Open { .. } = record.load else { return None };
    let due = record.totals.due;
    let off = match record.ops {
        None => due.abs_diff(record.totals.done_in_window),
        // All were done, however long it took: what counts is how late the last went out.
        Some(_) => late_part(record),
    };
    let allowed = suite.rules.rate_tolerance_ratio * due as f64;
    (off > RATE_SLACK_OPS && off as f64 > allowed).then_some(off)
}

/// Of the ops that a window was asked to have, those its schedule had no time for.
fn late_part(record: &PointRecord) -> u64 {
    let [wanted, took] = schedule_and_sending(record);
    (record.totals.due as f64 * (1.0 - wanted / took).max(0.0)) as u64
}

/// From the window's begin to when its last op was due, and to when that was sent, in seconds.
fn schedule_and_sending(record: &PointRecord) -> [f64; 2] {
    let since = |at: Nanos| at.saturating_sub(record.warm_up_ns).as_secs_f64();
    let totals = &record.totals;
    [totals.last_due, totals.last_sent].map(|at| since(at).max(f64::MIN_POSITIVE))
}

/// More ops than may fail had neither a reply nor an error when the drain ended.
pub(super) fn unfinished(e: &Evidence<'_>) -> Option<Finding> {
    let totals = &e.view.record.totals;
    let limit = e.suite.rules.errors_max_ratio;
    if totals.unfinished as f64 <= limit * totals.due as f64 {
        return None;
    }
    let silence = connections::silence(e).map(|words| format!("; {words}")).unwrap_or_default();
    finding(
        UNFINISHED,
        format!(
            "{} of {} ops had neither a reply nor an error when the drain ended, {} (limit \
             {}){silence}; see whether the server hangs, or give it a longer drain",
            grouped(totals.unfinished as f64),
            grouped(totals.due as f64),
            percent(totals.unfinished as f64 / totals.due.max(1) as f64),
            percent(limit),
        ),
    )
}

/// Classes of errors that this host made: it had no port or no descriptor left.
const OWN_CLASSES: [&str; 2] = ["ports_exhausted", "descriptors_exhausted"];

/// Failed ops that the server answered for, those that it left without a reply until their timeout
/// included: what a user of it would have met.
pub(super) fn server_errors(e: &Evidence<'_>) -> Option<Finding> {
    let totals = &e.view.record.totals;
    let failed = server_failures(totals);
    let what = "see the error samples and the server's log";
    // Said with the connections that were lost, where some were.
    let silent = totals.errors.contains_key("timeout") && !connections::any_lost(e);
    let what = match connections::silence(e).filter(|_| silent) {
        Some(silence) => format!("{silence}; {what}"),
        None => match EarlyAnswers::of(e).filter(|early| early.ops() * 2 > failed) {
            Some(early) => format!("{early}; {}", early.advice()),
            None => what.to_owned(),
        },
    };
    too_many_failed(e, failed, |class| !OWN_CLASSES.contains(&class), &what)
}

/// Failed ops that the generator's host is to blame for.
pub(super) fn own_errors(e: &Evidence<'_>) -> Option<Finding> {
    let failed = own_failures(&e.view.record.totals);
    let what =
        "this host ran out of ports or descriptors: use fewer connections, or raise its limits";
    too_many_failed(e, failed, |class| OWN_CLASSES.contains(&class), what)
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
    failed: u64,
    counted: impl Fn(&str) -> bool,
    what: &str,
) -> Option<Finding> {
    let totals = &e.view.record.totals;
    let limit = e.suite.rules.errors_max_ratio;
    if failed == 0 || failed as f64 <= limit * totals.due as f64 {
        return None;
    }
    let worst = totals.errors.iter().filter(|(class, _)| counted(class));
    let worst =
        worst.max_by_key(|(_, count)| **count).map_or_else(String::new, |(class, count)| {
            format!(", most of them {class} ({})", grouped(*count as f64))
        });
    finding(
        "errors",
        format!(
            "{} of {} ops failed, {} (limit {}){worst}; {what}",
            grouped(failed as f64),
            grouped(totals.due as f64),
            percent(failed as f64 / totals.due.max(1) as f64),
            percent(limit),
        ),
    )
}

/// Interactive response time law, N = X(R+Z): in a closed loop every client is at work or thinks.
/// The limit grows to one cycle in those a client completed, because the borders cut cycles.
pub(super) fn closed_loop(e: &Evidence<'_>) -> Option<Finding> {
    let Load::Closed { clients, .. } = e.view.record.load else { return None };
    let totals = &e.view.record.totals;
    let window_ns = e.view.record.measured_ns.0 as f64;
    let clients = f64::from(clients);
    if totals.pieces == 0 || window_ns == 0.0 {
        return closed_loop_by_ops(e);
    }
    let present = (totals.piece_ns_total as f64 + totals.think_ns_total as f64) / window_ns;
    // Those that left were there for a part of the window.
    let there = clients * had_work(e.view.record);
    let stayed = f64::from(totals.clients_participating).min(there);
    let off = (present - present.clamp(stayed, there)).abs() / clients;
    let limit = CLOSED_LOOP_TOLERANCE_RATIO.max(clients / totals.pieces as f64)
        + at_its_borders(e)
        + last_replies(e);
    if off <= limit || connections::explain(e, stayed - present) {
        return None;
    }
    finding(
        "closed_loop",
        format!(
            "throughput, response and think time account for {present:.1} of {} clients, {} off \
             (limit {}); clients stood still outside the server: measure longer or add a worker",
            grouped(clients),
            percent(off),
            percent(limit),
        ),
    )
}

/// Pieces under way when the window begins count with the time before it, those under way when it
/// ends do not count. At any instant a client is in one of this length on average, and all may be
/// where a server stands still: as a part of the window.
fn at_its_borders(e: &Evidence<'_>) -> f64 {
    let Some(times) = e.times else { return 0.0 };
    let steps = times.response.iter_recorded();
    let (sum, squares) = steps.fold((0.0, 0.0), |(sum, squares), step| {
        let (ns, n) = (step.value_iterated_to() as f64, step.count_at_value() as f64);
        (sum + ns * n, squares + ns * ns * n)
    });
    if sum > 0.0 { squares / sum / e.view.record.measured_ns.0.max(1) as f64 } else { 0.0 }
}

/// Where a number of ops decides how long the window is, clients stand by while the last of them
/// end: for what part of it at most.
fn last_replies(e: &Evidence<'_>) -> f64 {
    let record = e.view.record;
    let longest = e.times.filter(|_| record.ops.is_some()).map_or(0, |times| times.response.max());
    longest as f64 / record.measured_ns.0.max(1) as f64
}

/// The part of a window of a number of ops in which its clients had ops to do: each worker has its
/// share of them, and one that was faster ends before the others.
fn had_work(record: &PointRecord) -> f64 {
    let Some(_) = record.ops else { return 1.0 };
    let (clients, workers) = (record.load.clients() as usize, record.workers.len());
    let of_worker = |(worker, healths): (usize, &Vec<WorkerHealth>)| {
        let ended: u64 = healths.iter().map(|health| health.wall_ns).sum();
        let worked = ended.saturating_sub(record.warm_up_ns.0).min(record.measured_ns.0);
        (worker..clients).step_by(workers).count() as f64 * worked as f64
    };
    let all: f64 = record.workers.iter().enumerate().map(of_worker).sum();
    all / (clients.max(1) as f64 * record.measured_ns.0.max(1) as f64)
}

/// The same law where pieces are longer than the window, by the ops they are made of: each client
/// has at least one op in flight unless it thinks, which without a finished piece it did once at
/// most. The borders cut the ops in flight.
fn closed_loop_by_ops(e: &Evidence<'_>) -> Option<Finding> {
    let Load::Closed { clients, think, .. } = &e.view.record.load else { return None };
    let clients = f64::from(*clients);
    let stayed = f64::from(e.view.record.totals.clients_participating).min(clients);
    let window_ns = e.view.record.measured_ns.0 as f64;
    let response = e.times.map(|times| &times.response).filter(|times| !times.is_empty());
    let Some(response) = response.filter(|_| window_ns > 0.0) else {
        return finding(
            "closed_loop",
            "neither a piece of work nor an op was finished in the window, so the closed loop \
             cannot be checked; measure longer"
                .to_owned(),
        );
    };
    let at_work = response.mean() * response.len() as f64 / window_ns;
    let once = think.mean.0 as f64 + response.mean();
    let limit = CLOSED_LOOP_TOLERANCE_RATIO + once / window_ns;
    let off = (stayed - at_work) / clients;
    if off <= limit || connections::explain(e, stayed - at_work) {
        return None;
    }
    finding(
        "closed_loop",
        format!(
            "no piece of work was finished in the window, and its ops account for {at_work:.1} of \
             {} clients, {} off (limit {}); clients stood still outside the server: measure \
             longer or add a worker",
            grouped(clients),
            percent(off),
            percent(limit),
        ),
    )
}

/// Each op's share of the ops done against the method's.
pub(super) fn op_mix(e: &Evidence<'_>) -> Option<Finding> {
    let worst = worst_share(e)?;
    if worst.points_off <= worst.limit_points.max(worst.chance_points) {
        return None;
    }
    finding(
        "op_mix",
        format!(
            "{}; the work is not the method's: look for an op that fails or stalls",
            worst.describe(),
        ),
    )
}

/// Beyond the limit, but no further than chance takes a sample of this size.
pub(super) fn op_mix_by_chance(e: &Evidence<'_>) -> Option<Finding> {
    let worst = worst_share(e)?;
    if worst.points_off <= worst.limit_points || worst.points_off > worst.chance_points {
        return None;
    }
    finding(
        "op_mix",
        format!(
            "{}; chance explains it in a {}: measure longer to be sure",
            worst.describe(),
            if worst.in_runs {
                "window this short, since ops of a kind come in runs"
            } else {
                "sample this small"
            },
        ),
    )
}

struct ShareOff<'a> {
    op: &'a str,
    share_points: f64,
    wanted_points: f64,
    points_off: f64,
    limit_points: f64,
    chance_points: f64,
    /// Of which more is said by how the share varies over the window than by the number of ops.
    in_runs: bool,
}

impl ShareOff<'_> {
    fn describe(&self) -> String {
        format!(
            "op {} is {:.2} % of the ops done, the method wants {:.2} %: {:.2} points off \
             (limit {})",
            self.op, self.share_points, self.wanted_points, self.points_off, self.limit_points,
        )
    }
}

/// The op furthest from its share, measured against what may be. `None` without a fixed mix.
fn worst_share<'a>(e: &'a Evidence<'_>) -> Option<ShareOff<'a>> {
    let shares = e.started.op_shares.as_ref()?;
    let wanted_sum: f64 = shares.iter().sum();
    let counts = e.view.record.totals.mix();
    let done: u64 = counts.values().sum();
    if done == 0 || wanted_sum <= 0.0 {
        return None;
    }
    let limit_points = e.suite.rules.op_mix_max_points;
    let offs = e.started.op_names.0.iter().zip(shares).enumerate().map(|(index, (op, wanted))| {
        let wanted = wanted / wanted_sum;
        let share = counts.get(op.as_str()).copied().unwrap_or(0) as f64 / done as f64;
        let points_off = (share - wanted).abs() * 100.0;
        let alone = (wanted * (1.0 - wanted) / done as f64).sqrt();
        // Ops of a kind may come in runs, as those of a program do: then a window has fewer of
        // these than of ops.
        let scatter = (points_off > limit_points).then(|| scatter_of_share(e, index)).flatten();
        let scatter = scatter.unwrap_or_default();
        ShareOff {
            op,
            share_points: share * 100.0,
            wanted_points: wanted * 100.0,
            points_off,
            limit_points,
            chance_points: CHANCE_STANDARD_ERRORS * alone.max(scatter) * 100.0,
            in_runs: scatter > alone,
        }
    });
    let excess = |o: &ShareOff<'_>| o.points_off - o.limit_points.max(o.chance_points);
    offs.max_by(|a, b| excess(a).total_cmp(&excess(b)))
}

/// Standard error of an op's share of the work, by how it varies over the window.
fn scatter_of_share(e: &Evidence<'_>, op: usize) -> Option<f64> {
    let parts = e.seconds?.parts_of_op(op);
    // Of two slices Student's t would make chance of nearly everything.
    let parts = Some(parts).filter(|parts| parts.len() >= BLOCKS_MIN)?;
    let Chance { below, above } = chance_of_ratio(&parts)?;
    Some(below.max(above) / NORMAL_95)
}

/// Each target's ops against an equal part of all: the load is to be spread evenly.
pub(super) fn target_shares(e: &Evidence<'_>) -> Option<Finding> {
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
    let share = 1.0 / targets.len() as f64;
    let chance = CHANCE_STANDARD_ERRORS * ((1.0 - share) / (share * done as f64)).sqrt();
    if off(worst.done_in_window) <= limit.max(chance) {
        return None;
    }
    finding(
        "target_shares",
        format!(
            "target {} did {} ops where an equal part is {}: {} off (limit {}); make the number \
             of clients a multiple of the targets, and see whether one of them is slower",
            worst.target,
            grouped(worst.done_in_window as f64),
            grouped(equal),
            percent(off(worst.done_in_window)),
            percent(limit),
        ),
    )
}

/// Mean service time over the suite's cap: the point is not counted, the run stays valid.
pub(super) fn response_cap(e: &Evidence<'_>) -> Option<Finding> {
    let cap_ms = e.suite.rules.response_cap_ms?;
    let service = &e.times?.service;
    if service.is_empty() {
        return None;
    }
    let mean_ms = service.mean() / 1e6;
    if mean_ms <= cap_ms {
        return None;
    }
    finding(
        "response_cap",
        format!(
            "mean service time {} ms is above the suite's cap of {cap_ms} ms: the point \
             is shown but not counted",
            three_digits(mean_ms),
        ),
    )
}

#[cfg(test)]
mod tests;
