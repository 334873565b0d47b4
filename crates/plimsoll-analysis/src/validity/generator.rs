//! Did the generator measure the server, or itself?

use plimsoll_model::assignment::Pacing;
use plimsoll_model::event::OpTimes;
use plimsoll_model::result::Finding;
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use super::host::mean;
use super::{Evidence, finding, percent};
use crate::health::{busy_ratio_max, run_delay_ratio_max};
use crate::times::quantile_ns;

/// Share of response p50 that send lag p99 may be when that is more than the suite's limit.
const SEND_LAG_OF_RESPONSE_RATIO: f64 = 0.05;
/// Below this many ops p99 is the maximum again, and one hiccup would decide: p90 is judged.
const SEND_LAG_P99_SAMPLES_MIN: u64 = 100;
/// A hundredth of the time lost is enough to make one op in a hundred late.
const LATE_SHARE_MIN_RATIO: f64 = 0.01;
/// Below it a worker has time to spare.
const BUSY_RATIO: f64 = 0.5;
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

/// Ops that leave late are not the load that was asked for. Judged on the generator's own lateness:
/// what an op waited for a connection is the server's answer to an earlier op.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.own <= lag.limit {
        return None;
    }
    finding(
        "send_lag",
        format!(
            "generator late: send lag {} = {} (limit {}), waits for a connection left out; {}",
            lag.percentile,
            lag.own,
            lag.limit,
            remedy(e),
        ),
    )
}

/// What to do about lateness depends on who had the worker's core.
fn remedy(e: &Evidence<'_>) -> String {
    let record = e.view.record;
    let delayed = run_delay_ratio_max(record).filter(|ratio| *ratio >= LATE_SHARE_MIN_RATIO);
    let stolen = mean(e, "host.cpu_steal").filter(|ratio| *ratio >= LATE_SHARE_MIN_RATIO);
    let idle = busy_ratio_max(record).is_some_and(|busy| busy < BUSY_RATIO);
    match (delayed, stolen) {
        (Some(ratio), _) => format!(
            "other programs had a worker's core for {} of the time: end them or keep them off it",
            percent(ratio)
        ),
        (None, Some(ratio)) => format!(
            "the hypervisor kept {} of the processors' time: measure on a host that has its own",
            percent(ratio)
        ),
        (None, None) if idle && record.pacing == Pacing::Spin => {
            "the worker had its core and was not busy: something below the system paused the \
             host; measure on one of your own"
                .to_owned()
        }
        (None, None) if idle => "the worker had its core and was not busy: it woke late; try \
             --pacing spin, or a host that sleeps less deeply"
            .to_owned(),
        (None, None) => "add a worker or lower the rate".to_owned(),
    }
}

/// Lateness that is not the generator's: ops waited for a connection. The load was offered and
/// the wait is in the response time, so it is a warning.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Finding> {
    let lag = lag(e)?;
    if lag.all <= lag.limit || lag.own > lag.limit {
        return None;
    }
    finding(
        "connections",
        format!(
            "ops waited for a free connection: send lag {} = {} (limit {}), of which the \
             generator's own is {}; the wait counts as response time: add clients if users would \
             not wait",
            lag.percentile, lag.all, lag.limit, lag.own,
        ),
    )
}

/// What is known of send lag.
struct Lag {
    percentile: &'static str,
    limit: Nanos,
    /// With waits for a connection.
    all: Nanos,
    /// The generator's own.
    own: Nanos,
}

fn lag(e: &Evidence<'_>) -> Option<Lag> {
    let times = e.times.filter(|times| !times.send_lag.is_empty())?;
    let (percentile_e2, percentile) = match times.send_lag.len() {
        n if n >= SEND_LAG_P99_SAMPLES_MIN => (9_900, "p99"),
        _ => (9_000, "p90"),
    };
    Some(Lag {
        percentile,
        limit: lateness_limit(e.suite, times),
        all: Nanos(quantile_ns(&times.send_lag, percentile_e2)),
        own: Nanos(quantile_ns(&times.lateness, percentile_e2)),
    })
}

/// The suite's limit, or a twentieth of response p50 when that is more.
pub(crate) fn lateness_limit(suite: &Suite, times: &OpTimes) -> Nanos {
    let response_p50 = quantile_ns(&times.response, 5_000);
    let of_response = Nanos((response_p50 as f64 * SEND_LAG_OF_RESPONSE_RATIO).round() as u64);
    suite.rules.send_lag_p99_max.max(of_response)
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
    use plimsoll_model::event::{ResourceUse, WorkerHealth};

    #[test]
    fn a_worker_above_nine_tenths_of_its_core_limits_the_measurement() {
        let at = |busy| PointBuilder::open(1_000.0).worker_busy(busy).build();
        check_rule("generator_cpu", &at(0.91), &at(0.9));
    }

    #[test]
    fn who_had_the_workers_core_decides_what_to_do_about_lateness() {
        let late = |prepare: fn(&mut WorkerHealth), steal: f64| {
            let late = PointBuilder::open(1_000.0).send_lag_ns(5_000_000).worker_busy(0.2);
            let mut point = late.build();
            point.record.workers.iter_mut().flatten().for_each(prepare);
            let (name, unit) = ("host.cpu_steal".to_owned(), String::new());
            point.record.resources = vec![ResourceUse { name, unit, mean: steal, max: steal }];
            let mut reasons = point.verdict().reasons.into_iter();
            reasons.find(|reason| reason.rule == "send_lag").unwrap().text
        };
        let delayed = late(|health| health.run_delay_ns = Some(health.wall_ns / 25), 0.05);
        assert!(delayed.contains("other programs had a worker's core for 4"), "{delayed}");
        let own_core: fn(&mut WorkerHealth) = |health| health.run_delay_ns = Some(0);
        assert!(late(own_core, 0.05).contains("the hypervisor kept 5"));
        assert!(late(own_core, 0.0).contains("woke late; try --pacing spin"));
        let unknown_and_busy: fn(&mut WorkerHealth) = |health| health.cpu_ns = health.wall_ns;
        assert!(late(unknown_and_busy, 0.0).contains("add a worker"));
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
    fn a_wait_for_a_connection_is_a_warning_and_not_the_generators_lateness() {
        let at = |own| PointBuilder::open(1_000.0).send_lag_ns(4_000_000).lateness_ns(own).build();
        check_rule("send_lag", &at(1_010_000), &at(20_000));
        let verdict = at(20_000).verdict();
        assert!(verdict.valid, "{verdict:?}");
        assert_eq!(verdict.warnings[0].rule, "connections");
        assert!(verdict.warnings[0].text.contains("own is 20.0"), "{verdict:?}");
        assert!(at(1_010_000).verdict().warnings.is_empty());
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
