//! Did the generator measure the server, or itself?

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{OpTimes, Times};
use plimsoll_model::result::Finding;
use plimsoll_model::suite::Arrivals;
use plimsoll_model::units::Nanos;

use super::{Evidence, finding, percent};
use crate::health::{backlog_ops_max, backlog_ops_mean, busy_ratio_max};
use crate::times::quantile_ns;

/// Share of response p50 that send lag p99 may be when that is more than the suite's limit.
const SEND_LAG_OF_RESPONSE_RATIO: f64 = 0.05;
/// Below this many ops p99 is the maximum again, and one hiccup would decide: p90 is judged.
const SEND_LAG_P99_SAMPLES_MIN: u64 = 100;
/// Share of the lag that queued ops must explain before the connections are called busy. Half: the
/// queue is seen once a second only.
const QUEUE_OF_LAG_MIN_RATIO: f64 = 0.5;
/// Share of ops that waited from which the text says that they are left out.
const WAITED_SAID_MIN_RATIO: f64 = 0.01;
/// Share of one core the monitors may use.
const MONITOR_CPU_MAX_RATIO: f64 = 0.01;

/// A busy worker delays replies it has not read yet: the figures would be its own.
pub(super) fn generator_cpu(e: &Evidence<'_>) -> Option<Finding> {
    let limit = e.suite.rules.generator_cpu_max_ratio;
    let Some(busy) = busy_ratio_max(e.view.record) else {
        return finding(
            "generator_cpu",
            "the workers' CPU use is not in the journal, so the generator's health is unknown; \
             run the point again"
                .to_owned(),
        );
    };
    if busy <= limit {
        return None;
    }
    finding(
        "generator_cpu",
        format!(
            "generator limited: the busiest worker used {} of its core (limit {}); add a worker \
             or a core, or lower the load",
            percent(busy),
            percent(limit),
        ),
    )
}

/// Ops that leave late are not the load that was asked for. Judged on the ops that found their
/// connection free: what the others waited for is the server's answer to an earlier op.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.own <= lag.limit || lag.queue_explains {
        return None;
    }
    finding(
        "send_lag",
        format!(
            "generator late: send lag {} = {}{} (limit {}); add a worker or lower the rate",
            lag.percentile,
            lag.own,
            if lag.waited_ratio < WAITED_SAID_MIN_RATIO {
                ""
            } else {
                " of ops that need not wait"
            },
            lag.limit,
        ),
    )
}

/// Lateness that is not the generator's: ops stood in the queue for a connection. The load was
/// offered and the wait is in the response time, so it is a warning.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.all <= lag.limit || send_lag(e).is_some() {
        return None;
    }
    finding(
        "connections",
        format!(
            "ops waited for a free connection: send lag {} = {} (limit {}), connections busy {} \
             of the time, up to {} ops in the queue; the wait counts as response time: add \
             clients if users would not wait",
            lag.percentile,
            lag.all,
            lag.limit,
            percent(lag.busy_ratio),
            backlog_ops_max(e.view.record),
        ),
    )
}

/// What is known of send lag.
struct Lag {
    percentile: &'static str,
    limit: Nanos,
    /// Of all ops.
    all: Nanos,
    /// Of the ops that found a connection free: the generator's own lateness.
    own: Nanos,
    busy_ratio: f64,
    waited_ratio: f64,
    queue_explains: bool,
}

fn lag(e: &Evidence<'_>) -> Option<Lag> {
    let times = e.times?;
    let n = times.send_lag.len();
    if n == 0 {
        return None;
    }
    let (percentile_e2, percentile) = match n {
        n if n >= SEND_LAG_P99_SAMPLES_MIN => (9_900, "p99"),
        _ => (9_000, "p90"),
    };
    let busy_ratio = connections_busy_ratio(e, times);
    let waited_ratio = waited_ratio(&e.view.record.load, busy_ratio);
    let response_p50 = quantile_ns(&times.response, 5_000);
    let of_response = Nanos((response_p50 as f64 * SEND_LAG_OF_RESPONSE_RATIO).round() as u64);
    // Waits are the longest lags, so the ops that did not wait are the lower end of all.
    let own_e2 = (f64::from(percentile_e2) * (1.0 - waited_ratio)).floor() as u32;
    Some(Lag {
        percentile,
        limit: e.suite.rules.send_lag_p99_max.max(of_response),
        all: Nanos(quantile_ns(&times.send_lag, percentile_e2)),
        own: Nanos(quantile_ns(&times.send_lag, own_e2)),
        busy_ratio,
        waited_ratio,
        queue_explains: queue_explains_lag(e, times),
    })
}

/// Share of the window in which a connection had an op under way: time from sent to done, summed
/// over ops, over clients × window.
fn connections_busy_ratio(e: &Evidence<'_>, times: &OpTimes) -> f64 {
    let record = e.view.record;
    let sum = |t: &Times| if t.is_empty() { 0.0 } else { t.mean() * t.len() as f64 };
    let under_way_ns = (sum(&times.response) - sum(&times.send_lag)).max(0.0);
    let clients = f64::from(record.load.clients().max(1));
    (under_way_ns / (clients * record.measured_ns.0.max(1) as f64)).min(1.0)
}

/// Share of ops that found no connection free. A client's own Poisson schedule finds its client
/// busy as often as it is busy (arrivals see time averages); a shared schedule waits only when all
/// are (Erlang's C). A closed client never waits for itself.
fn waited_ratio(load: &Load, busy_ratio: f64) -> f64 {
    match load {
        Load::Closed { .. } => 0.0,
        Load::Open { arrivals: Arrivals::PerClient, .. } => busy_ratio,
        Load::Open { arrivals: Arrivals::Shared, clients, .. } => erlang_c(*clients, busy_ratio),
    }
}

/// Erlang's C formula by the recursion of his B.
fn erlang_c(servers: u32, busy_ratio: f64) -> f64 {
    if busy_ratio >= 1.0 {
        return 1.0;
    }
    let offered = f64::from(servers) * busy_ratio;
    let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    blocked / (1.0 - busy_ratio * (1.0 - blocked))
}

/// Little's law: ops that wait on average `lag` and come at a rate stand `rate × lag` deep in the
/// queue. A late generator has no queue, it sends what is due as soon as it looks.
fn queue_explains_lag(e: &Evidence<'_>, times: &OpTimes) -> bool {
    let window_ns = e.view.record.measured_ns.0.max(1) as f64;
    let depth = times.send_lag.mean() * times.send_lag.len() as f64 / window_ns;
    backlog_ops_mean(e.view.record) >= depth * QUEUE_OF_LAG_MIN_RATIO
}

/// Watching must not change what is watched.
pub(super) fn monitors(e: &Evidence<'_>) -> Option<Finding> {
    let record = e.view.record;
    let used = record.monitor_cpu_ns as f64 / (record.measured_ns.0 as f64).max(1.0);
    if used <= MONITOR_CPU_MAX_RATIO {
        return None;
    }
    finding(
        "monitors",
        format!(
            "the monitors used {} of a core (limit {}); sample less often, or watch fewer things",
            percent(used),
            percent(MONITOR_CPU_MAX_RATIO),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::erlang_c;
    use crate::testing::{PointBuilder, TestPoint, check_rule};
    use plimsoll_model::event::WorkerHealth;

    #[test]
    fn a_worker_above_nine_tenths_of_its_core_limits_the_measurement() {
        let at = |busy| PointBuilder::open(1_000.0).worker_busy(busy).build();
        check_rule("generator_cpu", &at(0.91), &at(0.9));
    }

    #[test]
    fn empty_polls_of_a_spinning_worker_are_not_work() {
        let mut point = PointBuilder::open(1_000.0).worker_busy(1.0).build();
        for health in point.record.workers.iter_mut().flatten() {
            health.empty_poll_ns = health.wall_ns / 2;
        }
        assert!(!point.reasons().contains(&"generator_cpu".to_owned()));
    }

    #[test]
    fn a_point_whose_workers_say_nothing_is_not_valid() {
        let mut point = PointBuilder::open(1_000.0).build();
        point.record.workers = vec![Vec::<WorkerHealth>::new()];
        assert!(point.reasons().contains(&"generator_cpu".to_owned()));
    }

    #[test]
    fn send_lag_over_a_millisecond_is_the_generators_lateness() {
        let at = |lag| PointBuilder::open(1_000.0).send_lag_ns(lag).build();
        check_rule("send_lag", &at(1_010_000), &at(990_000));
        let text = at(4_100_000).verdict().reasons[0].text.clone();
        assert!(
            text.starts_with("generator late: send lag p99 = 4.10 ms (limit 1.00 ms)"),
            "{text}"
        );
    }

    #[test]
    fn a_twentieth_of_the_median_response_is_allowed_when_it_is_more() {
        let at =
            |lag| PointBuilder::open(1_000.0).response_ns(100_000_000).send_lag_ns(lag).build();
        check_rule("send_lag", &at(5_100_000), &at(4_900_000));
    }

    #[test]
    fn lag_with_a_queue_is_put_down_to_the_connections() {
        // 1,000 ops/s that wait 4 ms stand 4 deep.
        let queued = |ops| {
            let mut point = PointBuilder::open(1_000.0).send_lag_ns(4_000_000).build();
            for health in point.record.workers.iter_mut().flatten() {
                health.backlog_ops = ops;
            }
            point
        };
        check_rule("send_lag", &queued(1), &queued(4));
        assert!(queued(1).verdict().warnings.is_empty());
        let verdict = queued(4).verdict();
        assert!(verdict.valid, "{verdict:?}");
        assert_eq!(verdict.warnings[0].rule, "connections");
        assert!(verdict.warnings[0].text.contains("up to 4 ops"), "{verdict:?}");
    }

    /// 64 clients with 10 ms an op at 1,280 ops/s: each is busy a fifth of the time.
    fn busy_a_fifth(late_share: f64) -> TestPoint {
        let mut point = PointBuilder::open(1_280.0).response_ns(10_000_000).build();
        let times = point.times.as_mut().unwrap();
        let n = times.send_lag.len();
        let late = (n as f64 * late_share) as u32;
        times.send_lag.reset();
        times.send_lag.record_n(10_000, n as u32 - late).unwrap();
        times.send_lag.record_n(3_000_000, late).unwrap();
        point
    }

    #[test]
    fn ops_that_wait_for_their_own_client_are_not_the_generators_lateness() {
        check_rule("send_lag", &busy_a_fifth(0.22), &busy_a_fifth(0.19));
        assert_eq!(busy_a_fifth(0.19).verdict().warnings[0].rule, "connections");
    }

    #[test]
    fn a_shared_schedule_waits_only_when_every_connection_is_busy() {
        // Tables of Erlang's C: 10 servers, 5 erlang: 0.0361; one server: its utilisation.
        assert!((erlang_c(10, 0.5) - 0.0361).abs() < 1e-4);
        assert!((erlang_c(1, 0.3) - 0.3).abs() < 1e-12);
        assert!(erlang_c(64, 0.2) < 1e-9);
        assert_eq!(erlang_c(64, 1.0), 1.0);
        assert_eq!(erlang_c(64, 0.0), 0.0);
    }

    #[test]
    fn monitors_may_use_one_hundredth_of_a_core() {
        let at = |share: f64| {
            let mut point = PointBuilder::open(1_000.0).build();
            point.record.monitor_cpu_ns = (point.record.measured_ns.0 as f64 * share) as u64;
            point
        };
        check_rule("monitors", &at(0.0101), &at(0.01));
    }
}
