//! The limits, and who is held against them. Pure.

use plimsoll_analysis::queueing::Queue;
use plimsoll_analysis::queueing::scatter::{Scatter, figure};
use plimsoll_analysis::times::{quantile_ns, supports};
use plimsoll_model::certificate::{Floor, FloorReading, Reading, Statistic};
use plimsoll_model::event::Times;
use plimsoll_model::units::Nanos;

/// Done over due may differ from 1 by this.
const RATE_ERROR_MAX_RATIO: f64 = 0.005;
/// Client and server may be this far apart …
const TIGHT_ERROR_MAX_RATIO: f64 = 0.02;
/// … or this far, on top of the floor: a histogram's width and a scheduler's tick.
const TIGHT_ERROR_MAX: Nanos = Nanos::from_micros(100);
/// X (R + Z) may differ from N by this.
const CLOSED_ERROR_MAX_RATIO: f64 = 0.02;
/// The p99 of a stall may differ from what it must be by this.
const STALL_ERROR_MAX_RATIO: f64 = 0.05;

/// Is the rate right?
pub(super) fn rate_held(error_ratio: f64) -> bool {
    error_ratio.abs() <= RATE_ERROR_MAX_RATIO
}

/// Does the interactive law hold?
pub(super) fn closed_held(error_ratio: f64) -> bool {
    error_ratio.abs() <= CLOSED_ERROR_MAX_RATIO
}

/// Does the stall show as it must?
pub(super) fn stall_held(error_ratio: f64) -> bool {
    error_ratio.abs() <= STALL_ERROR_MAX_RATIO
}

/// The figures a sample of this size supports.
fn supported(n: u64) -> impl Iterator<Item = Statistic> {
    Statistic::ALL.into_iter().filter(move |statistic| match statistic.share() {
        None => n > 0,
        Some(share) => supports(n, percentile_e2(share)),
    })
}

/// In hundredths of a percent.
fn percentile_e2(share: f64) -> u32 {
    (share * 10_000.0).round() as u32
}

/// A figure of what the client measured.
pub(super) fn client_ns(times: &Times, statistic: Statistic) -> Nanos {
    match statistic.share() {
        None => Nanos(times.mean().round() as u64),
        Some(share) => Nanos(quantile_ns(times, percentile_e2(share))),
    }
}

/// What the way there and back costs, beyond a service that always takes the same.
pub(super) fn floor(rate_ops_per_s: f64, service_ns: Nanos, times: &Times) -> Floor {
    let reading = |statistic| {
        let beyond_ns = client_ns(times, statistic).saturating_sub(service_ns);
        FloorReading { statistic, beyond_ns }
    };
    let response = supported(times.len()).map(reading).collect();
    Floor { rate_ops_per_s, service_ns, ops: times.len(), response }
}

/// Client, server and theory, side by side.
pub(super) fn readings(
    times: &Times,
    served_s: &mut [f64],
    floor: &Floor,
    queue: &Queue,
    scatter: &Scatter,
) -> Vec<Reading> {
    let n = times.len().min(served_s.len() as u64);
    let reading = |statistic| {
        let served = Nanos::from_secs_f64(figure(served_s, statistic)?);
        let (low, high) = scatter.interval_s(statistic)?;
        let client = client_ns(times, statistic);
        let allowed = Nanos((served.0 as f64 * TIGHT_ERROR_MAX_RATIO) as u64)
            .max(TIGHT_ERROR_MAX + floor.under(statistic));
        let interval = (Nanos::from_secs_f64(low), Nanos::from_secs_f64(high));
        Some(Reading {
            statistic,
            client_ns: client,
            served_ns: served,
            allowed_ns: allowed,
            tight_held: client.0.abs_diff(served.0) <= allowed.0,
            theory_ns: Nanos::from_secs_f64(queue.response_s(statistic)),
            theory_interval_ns: interval,
            theory_held: (interval.0..=interval.1).contains(&served),
        })
    };
    supported(n).filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_analysis::queueing::scatter::{Plan, scatter, simulate};
    use plimsoll_model::calibrated::ServiceLaw;
    use plimsoll_model::event::new_times;

    use super::*;

    fn plan() -> Plan {
        let service: ServiceLaw = "exp:1ms".parse().unwrap();
        Plan { rate_per_s: 2_400.0, service, servers: 4, warm_up_s: 0.2, window_s: 2.0 }
    }

    /// A client that sees every response this much longer.
    fn readings_when_late_by(late_us: u64) -> Vec<Reading> {
        let mut served = simulate(&plan(), 5);
        let mut times = new_times();
        for response_s in &served {
            times.record(Nanos::from_secs_f64(*response_s).0 + late_us * 1_000).unwrap();
        }
        let queue = Queue::of(2_400.0, plan().service, 4).unwrap();
        readings(&times, &mut served, &Floor::default(), &queue, &scatter(&plan()))
    }

    #[test]
    fn a_client_that_sees_what_was_served_holds_and_so_does_the_queue() {
        let readings = readings_when_late_by(20);
        // 4,800 responses say nothing of p99.9.
        assert_eq!(readings.len(), 4);
        assert!(readings.iter().all(|r| r.tight_held && r.theory_held), "{readings:?}");
    }

    #[test]
    fn a_client_that_is_late_breaks_the_tight_judgement_alone() {
        let readings = readings_when_late_by(150);
        assert!(readings.iter().all(|r| !r.tight_held && r.theory_held), "{readings:?}");
    }

    #[test]
    fn the_floor_is_allowed_on_top() {
        let mut times = new_times();
        (0..2_000).for_each(|_| times.record(1_080_000).unwrap());
        let floor = floor(1_000.0, Nanos::from_millis(1), &times);
        assert_eq!(floor.response.len(), 4);
        assert!(floor.under(Statistic::P99).0.abs_diff(80_000) < 1_100);
        assert!(!rate_held(-0.006) && rate_held(0.004));
        assert!(!closed_held(0.03) && closed_held(-0.01) && stall_held(-0.04) && !stall_held(0.06));
    }
}
