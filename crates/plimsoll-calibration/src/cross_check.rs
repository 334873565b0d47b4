//! Compares the client's counts and times with the schedule and the server's log: each op was
//! recorded once, and sent and answered at the times that the client recorded.
//!
//! The client's own lateness excuses nothing here, because it is checked here. Other judgements can
//! therefore allow for it. Only the server's lateness, by its log, leaves a judgement open.

use plimsoll_model::certificate::{CheckedTime, CrossCheck, JudgementOutcome};
use plimsoll_model::event::{OpTimes, Times};
use plimsoll_model::units::Nanos;
use plimsoll_servers::log::{Row, Scheduled, joined};

use super::judgement::{self, HANDOFF_MAX};
use super::server_log::ServerLog;
use super::wire::Wire;
use crate::queueing::family;
use crate::trial::Observation;

/// Largest cost of the path to a server that polls without sleeping, and to one that wakes up.
const TRANSIT_MAX: Nanos = Nanos::from_micros(120);
const TRANSIT_WITH_WAKEUP_MAX: Nanos = Nanos::from_micros(300);
/// The kernel stamps a reply while the call runs that sends it, the server when it has returned:
/// 10 to 30 µs here, on a busy host too.
const RETURN_MAX: Nanos = Nanos::from_micros(60);
/// A server that is late with replies is as late with reading, and with logging that a reply was
/// sent; by chance more, but hardly three times as much.
const SERVER_LATE_TIMES: f64 = 3.0;
/// A histogram's steps, on either side.
const RESOLUTION_RATIO: f64 = 0.002;
/// Sums of means may be apart by this, and by as much more.
const SUM_ERROR_MAX: Nanos = Nanos::from_micros(2);

pub(crate) fn cross_check(
    wire: Wire,
    scheduled: &[Scheduled],
    observation: &Observation,
    log: &ServerLog,
) -> CrossCheck {
    let (from_ns, until_ns) = observation.window_ns;
    let in_window = |op: &Scheduled| (from_ns..until_ns).contains(&op.due_ns);
    let expected = scheduled.iter().filter(|op| in_window(op)).count();
    let mut checked = counts(observation, log, expected as u64);
    // An op that is missing in the log was counted as served, or not.
    let Some(rows) = joined(log.arrived_in_point(observation), scheduled) else { return checked };
    let ops: Vec<(u64, Row)> = scheduled
        .iter()
        .zip(rows)
        .filter(|(op, _)| in_window(op))
        .map(|(op, row)| (op.due_ns, *row))
        .collect();
    let times = &observation.times;
    if times.send_lag.is_empty() || times.receive_lag.is_empty() || ops.is_empty() {
        return checked;
    }
    let mean = |of: &dyn Fn(u64, &Row) -> u64| {
        let sum: u64 = ops.iter().map(|(due_ns, row)| of(*due_ns, row)).sum();
        sum as f64 / ops.len() as f64
    };
    let late_ns = mean(&|_, row| row.sent_ns.saturating_sub(row.completion_ns));
    let reads_late_ns = reads_late_ns(&ops, late_ns);
    let there_ns = mean(&|due_ns, row| row.arrival_ns.saturating_sub(due_ns));
    let transit = match wire.its_own() {
        Some(_) => TRANSIT_MAX,
        None => TRANSIT_WITH_WAKEUP_MAX,
    };
    checked.sent = Some(sent(transit, (times.send_lag.mean(), there_ns), reads_late_ns));
    // For a bounded arrival only an earlier instant is known.
    if observation.record.totals.arrived_bounded == 0 {
        let handed_ns = mean(&|due_ns, row| row.sent_ns.saturating_sub(due_ns));
        let reached_ns = times.response.mean() - times.receive_lag.mean();
        checked.arrived = Some(arrived_by(reached_ns, handed_ns, late_ns));
    }
    checked
}

/// How late a server reads whose replies are late by `late_ns`. A server that stands still for L is
/// late by L with the request in service, and by L / 2 with all that arrive meanwhile, which are
/// more by the ratio of the pause to a service.
fn reads_late_ns(ops: &[(u64, Row)], late_ns: f64) -> f64 {
    let mean = |of: &dyn Fn(&Row) -> f64| {
        ops.iter().map(|(_, row)| of(row)).sum::<f64>() / ops.len() as f64
    };
    let squares = mean(&|row| (row.sent_ns.saturating_sub(row.completion_ns) as f64).powi(2));
    let service_ns = mean(&|row| row.completion_ns.saturating_sub(row.arrival_ns) as f64).max(1.0);
    late_ns + squares / (2.0 * service_ns)
}

/// Mean send lag, and the mean time from due to the arrival at the server.
fn sent(transit: Nanos, (lag_ns, there_ns): (f64, f64), late_ns: f64) -> CheckedTime {
    let (strictly, excused) = match there_ns < lag_ns {
        true => (HANDOFF_MAX, 0.0),
        false => (transit, late_ns * SERVER_LATE_TIMES),
    };
    compare((lag_ns, there_ns), strictly, excused)
}

/// The mean time from due to the reply's arrival, and until it was handed to the kernel.
fn arrived_by(reached_ns: f64, handed_ns: f64, late_ns: f64) -> CheckedTime {
    let excused = if reached_ns < handed_ns { late_ns * SERVER_LATE_TIMES } else { 0.0 };
    compare((reached_ns, handed_ns), RETURN_MAX, excused)
}

/// Held where both are as close as required, left open where the server's lateness explains the
/// difference.
fn compare((client_ns, server_ns): (f64, f64), strictly: Nanos, excused_ns: f64) -> CheckedTime {
    let strictly_ns = client_ns.max(server_ns) * RESOLUTION_RATIO + strictly.0 as f64;
    let apart_ns = (client_ns - server_ns).abs();
    CheckedTime {
        client_ns: Nanos(client_ns.max(0.0) as u64),
        server_ns: Nanos(server_ns.max(0.0) as u64),
        allowed_ns: Nanos((strictly_ns + excused_ns) as u64),
        judged: judgement::evaluate(apart_ns, strictly_ns, strictly_ns + excused_ns),
    }
}

/// Counts and sums.
pub(crate) fn counts(observation: &Observation, log: &ServerLog, expected: u64) -> CrossCheck {
    let times = &observation.times;
    let recorded = times.response.len() + observation.record.totals.not_sent;
    let replies = log.replies_within(observation.window_ns);
    let rate_per_s = expected as f64 / observation.record.measured_ns.as_secs_f64().max(1e-9);
    let allowed = in_transit(rate_per_s, Nanos(times.receive_lag.max()));
    let ended = replies.abs_diff(observation.record.totals.done_in_window) <= allowed;
    CrossCheck {
        ops_recorded: recorded,
        ops_expected: expected,
        recorded: JudgementOutcome::from_bool(recorded == expected),
        replies: Some(replies),
        replies_allowed: allowed,
        ended: JudgementOutcome::from_bool(ended),
        sent: None,
        arrived: None,
        sum: JudgementOutcome::from_bool(adds_up(times)),
    }
}

/// Replies that may be between the server's stamp and the client's at either end of a window.
fn in_transit(rate_per_s: f64, longest: Nanos) -> u64 {
    let mean = 2.0 * rate_per_s * (longest + TRANSIT_MAX).as_secs_f64();
    (mean + family::deviate() * mean.sqrt() + 1.0).ceil() as u64
}

/// Service and send lag are the response where no op failed; the response without the generator's
/// delays is no longer than without receive lag.
fn adds_up(times: &OpTimes) -> bool {
    let OpTimes { response, service, send_lag, receive_lag, response_low, .. } = times;
    let mean = |times: &Times| times.mean();
    let allowed = SUM_ERROR_MAX.0 as f64 + response.mean() * RESOLUTION_RATIO;
    let all = [service, send_lag, response_low].iter().all(|t| t.len() == response.len());
    let parts = mean(service) + mean(send_lag);
    let read = if receive_lag.is_empty() { 0.0 } else { mean(receive_lag) };
    all && (parts - mean(response)).abs() <= allowed
        && mean(response_low) <= mean(response) - read + allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: f64 = 1e3;

    #[test]
    fn a_receive_lag_that_is_denied_shows_in_a_reply_that_came_after_it_was_sent() {
        let check = |reached_us: f64, handed_us: f64, late_us: f64| {
            arrived_by(reached_us * US, handed_us * US, late_us * US).judged
        };
        // Replies lay unread for 0.2 ms; the server handed them over 1.28 ms after they were due.
        assert_eq!(check(1_270.0, 1_280.0, 3.0), JudgementOutcome::Held);
        assert_eq!(check(1_480.0, 1_280.0, 3.0), JudgementOutcome::Broken);
        assert_eq!(
            check(1_480.0, 1_280.0, 900.0),
            JudgementOutcome::Broken,
            "a late server is no excuse"
        );
        assert_eq!(
            check(1_080.0, 1_280.0, 3.0),
            JudgementOutcome::Broken,
            "a lag that it did not have"
        );
        assert_eq!(
            check(1_080.0, 1_280.0, 60.0),
            JudgementOutcome::NotJudged,
            "stamped late, perhaps"
        );
    }

    #[test]
    fn a_server_that_stands_still_for_long_reads_later_than_it_replies() {
        // One of 100 services of 0.5 ms ended in a pause of 8 ms, in which 16 others came.
        let row = |late_ns| {
            let (arrival_ns, completion_ns) = (0, 500_000);
            Row { arrival_ns, completion_ns, sent_ns: completion_ns + late_ns, key: None }
        };
        let mut ops = vec![(0, row(0)); 99];
        ops.push((0, row(8_000_000)));
        assert!((reads_late_ns(&ops, 80.0 * US) - 720.0 * US).abs() < 1.0);
    }

    #[test]
    fn an_op_does_not_arrive_before_it_is_sent_nor_long_after() {
        let check = |lag_us: f64, there_us: f64, late_us: f64| {
            sent(TRANSIT_MAX, (lag_us * US, there_us * US), late_us * US).judged
        };
        assert_eq!(check(7.0, 38.0, 3.0), JudgementOutcome::Held);
        assert_eq!(check(127.0, 38.0, 90.0), JudgementOutcome::Broken, "sent passed for later");
        assert_eq!(check(0.0, 265.0, 3.0), JudgementOutcome::Broken, "due passed for sent");
        assert_eq!(check(7.0, 265.0, 80.0), JudgementOutcome::NotJudged, "the server reads late");
    }

    fn times(response: u64, service: u64, receive_lag: u64, low: u64) -> OpTimes {
        let mut times = OpTimes::new();
        for _ in 0..100 {
            times.response.record(response).unwrap();
            times.service.record(service).unwrap();
            times.send_lag.record(response.saturating_sub(service)).unwrap();
            times.receive_lag.record(receive_lag).unwrap();
            times.response_low.record(low).unwrap();
        }
        times
    }

    #[test]
    fn times_of_the_same_ops_add_up() {
        assert!(adds_up(&times(1_400_000, 1_200_000, 200_000, 1_000_000)));
        assert!(!adds_up(&times(1_400_000, 1_200_000, 200_000, 1_400_000)), "as long as measured");
        let mut other = times(1_400_000, 1_200_000, 0, 1_000_000);
        other.service = times(1_400_000, 1_300_000, 0, 0).service;
        assert!(!adds_up(&other), "the service of other ops");
        let mut fewer = times(1_400_000, 1_200_000, 0, 1_000_000);
        fewer.service.reset();
        assert!(!adds_up(&fewer));
    }

    #[test]
    fn only_replies_on_their_way_at_an_end_of_the_window_may_be_counted_otherwise() {
        assert_eq!(in_transit(1_200.0, Nanos::from_micros(30)), 4);
        assert_eq!(in_transit(1_200.0, Nanos::from_millis(20)), 76, "a reply lay unread for long");
    }
}
