//! Did the generator measure the server, or itself?

use plimsoll_model::event::OpTimes;
use plimsoll_model::result::Finding;
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

/// Ops that leave late are not the load that was asked for.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Finding> {
    let late = lateness(e)?;
    if late.queued {
        return None;
    }
    finding(
        "send_lag",
        format!("generator late: {}; add a worker or lower the rate", late.describe()),
    )
}

/// The same lateness, but of ops that stood in the queue for a connection: the generator was in
/// time, its clients were all busy.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Finding> {
    let late = lateness(e)?;
    if !late.queued {
        return None;
    }
    finding(
        "connections",
        format!(
            "ops waited for a free connection: {}, up to {} ops in the queue; add clients, or \
             lower the rate",
            late.describe(),
            backlog_ops_max(e.view.record),
        ),
    )
}

/// Send lag over its limit.
struct Lateness {
    percentile: &'static str,
    lag: Nanos,
    limit: Nanos,
    queued: bool,
}

impl Lateness {
    fn describe(&self) -> String {
        format!("send lag {} = {} (limit {})", self.percentile, self.lag, self.limit)
    }
}

fn lateness(e: &Evidence<'_>) -> Option<Lateness> {
    let times = e.times?;
    if times.send_lag.is_empty() {
        return None;
    }
    let (percentile_e2, percentile) = match times.send_lag.len() {
        n if n >= SEND_LAG_P99_SAMPLES_MIN => (9_900, "p99"),
        _ => (9_000, "p90"),
    };
    let lag = Nanos(quantile_ns(&times.send_lag, percentile_e2));
    let response_p50 = quantile_ns(&times.response, 5_000);
    let of_response = Nanos((response_p50 as f64 * SEND_LAG_OF_RESPONSE_RATIO).round() as u64);
    let limit = e.suite.rules.send_lag_p99_max.max(of_response);
    (lag > limit).then(|| Lateness { percentile, lag, limit, queued: queue_explains_lag(e, times) })
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
    use crate::testing::{PointBuilder, check_rule};
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
        check_rule("connections", &queued(4), &queued(1));
        check_rule("send_lag", &queued(1), &queued(4));
        let text = queued(4).verdict().reasons[0].text.clone();
        assert!(text.contains("up to 4 ops"), "{text}");
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
