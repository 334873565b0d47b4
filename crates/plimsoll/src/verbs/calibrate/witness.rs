//! The client's counts and times, against schedule and server's log: each op once, at its place,
//! with the times at which it did leave and its reply did come.
//!
//! What the client says of its own lateness excuses nothing here: it is what is judged. So where
//! other judgements make allowance for that lateness, it did happen. Only the server's own lateness,
//! by its log, leaves one open.

use plimsoll_model::certificate::{Judged, Witness, Witnessed};
use plimsoll_model::event::{OpTimes, Times};
use plimsoll_model::units::Nanos;
use plimsoll_servers::app::calibrated::{Row, Scheduled, joined};

use super::bench::Seen;
use super::server_log::ServerLog;
use super::wire::Wire;

/// The kernel has bytes as the call begins that sends them; both sides stamp when it returns. A
/// mean may be this much shorter than its part.
const HANDED_OVER: Nanos = Nanos::from_micros(20);
/// What the way to a server that looks without sleeping costs at most, and to one that wakes up.
const WAY_MAX: Nanos = Nanos::from_micros(120);
const WAY_WITH_WAKEUP_MAX: Nanos = Nanos::from_micros(300);
/// A server that is late with replies is as late with reading, and with writing down that a reply
/// has left; by chance more, but hardly thrice as much.
const SERVER_LATE_TIMES: f64 = 3.0;
/// A histogram's steps, on either side.
const RESOLUTION_RATIO: f64 = 0.002;
/// Sums of means may be apart by this, and by as much more.
const SUM_ERROR_MAX: Nanos = Nanos::from_micros(2);
/// Chance of fewer than one in 5,000.
const DEVIATIONS: f64 = 3.8;

/// What a schedule says of a load.
pub(super) struct Plan<'a> {
    pub(super) wire: Wire,
    /// From the start of the point.
    pub(super) due_ns: &'a [u64],
    /// What the log calls each, where it has names.
    pub(super) keys: Option<&'a [u32]>,
}

/// Of an open load.
pub(super) fn witness(plan: &Plan<'_>, seen: &Seen, log: &ServerLog) -> Witness {
    let from_ns = seen.record.warm_up_ns.0;
    let until_ns = from_ns + seen.record.measured_ns.0;
    let expected = plan.due_ns.iter().filter(|due| (from_ns..until_ns).contains(due)).count();
    let mut witness = counts(seen, log, expected as u64);
    let origin_ns = seen.origin_ns();
    let rows = log.arrived_within((origin_ns, seen.window_ns.1 + super::bench::DRAIN.0));
    let scheduled: Vec<Scheduled> = plan
        .due_ns
        .iter()
        .enumerate()
        .map(|(place, due_ns)| {
            let key = plan.keys.and_then(|keys| keys.get(place).copied());
            Scheduled { due_ns: origin_ns + due_ns, key }
        })
        .collect();
    // What the log does not know of has been judged as served, or not.
    let Some(found) = joined(rows, &scheduled) else { return witness };
    let ops: Vec<(u64, Row)> = scheduled
        .iter()
        .zip(found)
        .filter(|(op, _)| (seen.window_ns.0..seen.window_ns.1).contains(&op.due_ns))
        .map(|(op, row)| (op.due_ns, *row))
        .collect();
    let way = match plan.wire {
        Wire::App => WAY_MAX,
        _ => WAY_WITH_WAKEUP_MAX,
    };
    let times = &seen.times;
    let mean = |of: &dyn Fn(u64, &Row) -> u64| {
        let sum: u64 = ops.iter().map(|(due_ns, row)| of(*due_ns, row)).sum();
        sum as f64 / ops.len().max(1) as f64
    };
    let there_ns = mean(&|due_ns, row| row.arrival_ns.saturating_sub(due_ns));
    let inside_ns = mean(&|_, row| row.sent_ns.saturating_sub(row.arrival_ns));
    let late_ns = mean(&|_, row| row.sent_ns.saturating_sub(row.departure_ns));
    let on_the_way = OnTheWay { way, late_ns };
    if times.send_lag.is_empty() || times.receive_lag.is_empty() || ops.is_empty() {
        return witness;
    }
    let lag_ns = times.send_lag.mean();
    witness.sent = Some(on_the_way.judge((lag_ns, there_ns), there_ns - lag_ns));
    // Of a bounded arrival only an earlier instant is known.
    if seen.record.totals.arrived_bounded == 0 {
        let reply_ns = times.service.mean() - times.receive_lag.mean();
        witness.arrived = Some(on_the_way.judge((reply_ns, inside_ns), reply_ns - inside_ns));
    }
    witness
}

/// What may lie between client and server.
struct OnTheWay {
    way: Nanos,
    /// Mean, of the server's replies.
    late_ns: f64,
}

impl OnTheWay {
    /// Client and server, and how much longer the outer of both times is than its part.
    fn judge(&self, (client_ns, server_ns): (f64, f64), longer_ns: f64) -> Witnessed {
        let resolution_ns = client_ns.max(server_ns) * RESOLUTION_RATIO;
        let strictly_ns = resolution_ns
            + match longer_ns < 0.0 {
                true => HANDED_OVER.0 as f64,
                false => self.way.0 as f64,
            };
        let excused_ns = self.late_ns * SERVER_LATE_TIMES;
        let judged = match longer_ns.abs() {
            apart if apart <= strictly_ns => Judged::Held,
            apart if apart <= strictly_ns + excused_ns => Judged::NotJudged,
            _ => Judged::Broken,
        };
        Witnessed {
            client_ns: Nanos(client_ns.max(0.0) as u64),
            server_ns: Nanos(server_ns.max(0.0) as u64),
            allowed_ns: Nanos((strictly_ns + excused_ns) as u64),
            judged,
        }
    }
}

/// Counts, and what must add up.
pub(super) fn counts(seen: &Seen, log: &ServerLog, expected: u64) -> Witness {
    let times = &seen.times;
    let recorded = times.response.len() + seen.record.totals.not_sent;
    let replies = log.replies_within(seen.window_ns);
    let rate_per_s = expected as f64 / seen.record.measured_ns.as_secs_f64().max(1e-9);
    let allowed = on_the_way(rate_per_s, Nanos(times.receive_lag.max()));
    let apart = replies.abs_diff(seen.record.totals.done_in_window);
    let ended = match apart {
        apart if apart <= allowed => Judged::Held,
        // They left at some time between when they should have and when that was written down.
        apart if apart <= allowed + log.across_the_ends(seen.window_ns) => Judged::NotJudged,
        _ => Judged::Broken,
    };
    Witness {
        ops_recorded: recorded,
        ops_expected: expected,
        recorded: Judged::from_held(recorded == expected),
        replies: Some(replies),
        replies_allowed: allowed,
        ended,
        sent: None,
        arrived: None,
        sum: Judged::from_held(adds_up(times)),
    }
}

/// Replies that may be between the server's stamp and the client's at either end of a window.
fn on_the_way(rate_per_s: f64, longest: Nanos) -> u64 {
    let mean = 2.0 * rate_per_s * (longest + WAY_MAX).as_secs_f64();
    (mean + DEVIATIONS * mean.sqrt() + 1.0).ceil() as u64
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

    fn judged(client_us: f64, server_us: f64, longer_us: f64, late_us: f64) -> Judged {
        let way = OnTheWay { way: WAY_MAX, late_ns: late_us * US };
        way.judge((client_us * US, server_us * US), longer_us * US).judged
    }

    #[test]
    fn a_receive_lag_that_is_denied_shows_in_a_reply_that_seems_to_come_late() {
        // Replies lay unread for 0.2 ms; the server had them for 1.02 ms.
        assert_eq!(judged(1_050.0, 1_020.0, 30.0, 3.0), Judged::Held);
        assert_eq!(judged(1_250.0, 1_020.0, 230.0, 3.0), Judged::Broken);
        assert_eq!(judged(1_250.0, 1_020.0, 230.0, 60.0), Judged::NotJudged, "a late server");
    }

    #[test]
    fn lateness_that_is_made_up_is_longer_than_the_way_to_the_server() {
        // Sent 7 µs after it was due, it had arrived after 38: no op arrives before it is sent.
        assert_eq!(judged(7.0, 38.0, 31.0, 3.0), Judged::Held);
        assert_eq!(judged(127.0, 38.0, -89.0, 3.0), Judged::Broken);
        assert_eq!(judged(0.0, 265.0, 265.0, 3.0), Judged::Broken, "due passed for sent");
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
        assert_eq!(on_the_way(1_200.0, Nanos::from_micros(30)), 4);
        assert_eq!(on_the_way(1_200.0, Nanos::from_millis(20)), 76, "a reply lay unread for long");
    }
}
