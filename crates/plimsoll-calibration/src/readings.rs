//! Client, server, schedule, theory and uncertainty intervals, statistic by statistic.

use crate::queueing::Queue;
use crate::queueing::delayed::{Delays, delayed};
use crate::queueing::family;
use crate::queueing::scatter::{Scatter, figure};
use plimsoll_model::certificate::{
    IntervalCheck, JudgementOutcome, Reading, ScheduleReading, Statistic,
};
use plimsoll_model::event::Times;
use plimsoll_model::result::TimeIntervals;
use plimsoll_model::units::Nanos;

use super::judgement::{HANDOFF_MAX, Pauses, Span, client_ns, supported};

/// Ranks at which the effect of delays on a percentile is evaluated.
const RANKS: u32 = 16;

/// The response times of one case, from all sides.
pub(crate) struct Sides<'a> {
    pub(crate) measured: &'a Times,
    pub(crate) served_s: Vec<f64>,
    /// Delays of a request or its reply on the network.
    pub(crate) delays: &'a [&'a Delays],
    pub(crate) pauses: Pauses,
    /// By the schedule; `None` for a closed loop.
    pub(crate) schedule: Option<ScheduleSide<'a>>,
    /// The reported intervals, and the truth.
    pub(crate) reported: Option<(TimeIntervals, Vec<f64>)>,
}

/// The schedule of an open load.
pub(crate) struct ScheduleSide<'a> {
    /// Responses of the same queue when each request arrives as it was due.
    pub(crate) responses_s: Vec<f64>,
    pub(crate) queue: &'a Queue,
    pub(crate) scatter: &'a Scatter,
}

/// Client, server, schedule and theory, side by side.
pub(crate) fn readings(mut sides: Sides<'_>) -> Vec<Reading> {
    let n = sides.measured.len().min(sides.served_s.len() as u64);
    let served = Moved::by(std::mem::take(&mut sides.served_s), sides.delays);
    let schedule = sides.schedule.as_mut();
    let scheduled =
        schedule.map(|side| Moved::by(std::mem::take(&mut side.responses_s), sides.delays));
    let reading = |statistic| {
        let client = client_ns(sides.measured, statistic);
        let span = served.span(statistic, &sides.pauses)?;
        let scheduled = match (&sides.schedule, &scheduled) {
            (Some(side), Some(moved)) => {
                let ends = (side, moved.span(statistic, &sides.pauses)?);
                Some(schedule_reading(statistic, ends, span.truth)?)
            }
            _ => None,
        };
        Some(Reading {
            statistic,
            client_ns: client,
            served_ns: span.truth,
            allowed_ns: span.allowed(client),
            tight: span.evaluate(client),
            schedule: scheduled,
            stated: sides
                .reported
                .as_mut()
                .and_then(|(reported, truths_s)| interval_check(statistic, reported, truths_s)),
        })
    };
    supported(n).filter_map(reading).collect()
}

fn schedule_reading(
    statistic: Statistic,
    (side, scheduled): (&ScheduleSide<'_>, Span),
    served: Nanos,
) -> Option<ScheduleReading> {
    let (low, high) = side.scatter.interval_s(statistic)?;
    let interval = (Nanos::from_secs_f64(low), Nanos::from_secs_f64(high));
    Some(ScheduleReading {
        scheduled_ns: scheduled.truth,
        on_schedule: scheduled.evaluate(served),
        theory_ns: Nanos::from_secs_f64(side.queue.response_s(statistic)),
        theory_interval_ns: interval,
        theory_held: (interval.0..=interval.1).contains(&scheduled.truth),
    })
}

/// Is the truth in the reported interval?
fn interval_check(
    statistic: Statistic,
    reported: &TimeIntervals,
    truths_s: &mut [f64],
) -> Option<IntervalCheck> {
    let [low, high] = match statistic {
        Statistic::Mean => reported.mean,
        Statistic::P50 => reported.p50,
        Statistic::P95 => reported.p95,
        Statistic::P99 => reported.p99,
        Statistic::P999 => reported.p999,
    }?;
    let truth = Nanos::from_secs_f64(figure(truths_s, statistic)?);
    let interval = (Nanos(low.max(0.0).floor() as u64), Nanos(high.max(0.0).ceil() as u64));
    let contains_truth = interval.0 <= truth && truth.saturating_sub(HANDOFF_MAX) <= interval.1;
    Some(IntervalCheck {
        interval_ns: interval,
        truth_ns: truth,
        interval: JudgementOutcome::from_bool(contains_truth),
    })
}

/// Responses, and the same with delays.
struct Moved {
    plain_s: Vec<f64>,
    delayed_s: Vec<f64>,
    /// Mean of the delays, and as much more as a sample of that size may have.
    mean_shift_s: f64,
}

impl Moved {
    fn by(mut plain_s: Vec<f64>, delays: &[&Delays]) -> Self {
        let mut delayed_s = delayed(&plain_s, delays);
        let n = plain_s.len().max(1) as f64;
        let shifts = || delayed_s.iter().zip(&plain_s).map(|(delayed, plain)| delayed - plain);
        let mean = shifts().sum::<f64>() / n;
        let variance = shifts().map(|shift| (shift - mean).powi(2)).sum::<f64>() / n;
        let mean_shift_s = mean + family::deviate() * (variance / n).sqrt();
        plain_s.sort_unstable_by(f64::total_cmp);
        delayed_s.sort_unstable_by(f64::total_cmp);
        Self { plain_s, delayed_s, mean_shift_s }
    }

    /// A statistic without the delays, and with all their possible effect: which ops they hit is
    /// chance, so the ranks just above count too.
    fn span(&self, statistic: Statistic, pauses: &Pauses) -> Option<Span> {
        let of = |truth_s: f64, shift_s: f64, paused_s: f64| {
            let ns = Nanos::from_secs_f64;
            Some(Span { truth: ns(truth_s), delayed: ns(truth_s + shift_s), paused: ns(paused_s) })
        };
        let n = self.plain_s.len();
        if n == 0 {
            return None;
        }
        let Some(share) = statistic.share() else {
            let mean_s = self.plain_s.iter().sum::<f64>() / n as f64;
            return of(mean_s, self.mean_shift_s, mean_s + pauses.mean_s());
        };
        let at = |values: &[f64], share: f64| {
            values[((share * n as f64).ceil() as usize).clamp(1, n) - 1]
        };
        let above = family::upper_rank(share, n) - share;
        let shift_s = (0..=RANKS)
            .map(|step| share + above * f64::from(step) / f64::from(RANKS))
            .map(|rank| at(&self.delayed_s, rank) - at(&self.plain_s, rank))
            .fold(0.0, f64::max);
        let truth_s = at(&self.plain_s, share);
        // All ops that a pause touched may have ended beyond the percentile.
        let untouched = 1.0 - pauses.touched();
        let paused_s = match untouched > share {
            true => at(&self.plain_s, share / untouched),
            false => truth_s + pauses.longest_s(),
        };
        of(truth_s, shift_s, paused_s)
    }
}

#[cfg(test)]
mod tests {
    use crate::queueing::scatter::{Plan, scatter, simulate};
    use plimsoll_model::calibrated::ServiceLaw;
    use plimsoll_model::event::new_times;

    use super::super::judgement::lags;
    use super::*;

    fn plan() -> Plan {
        let service: ServiceLaw = "exp:1ms".parse().unwrap();
        Plan { rate_per_s: 2_400.0, service, servers: 4, warm_up_s: 0.2, window_s: 2.0 }
    }

    /// A client that measures every response this much longer, and a server that serves this much
    /// later than by schedule.
    fn readings_when_late_by(late_us: u64, off_schedule_us: u64) -> Vec<Reading> {
        readings_that_state(TimeIntervals::default(), (late_us, off_schedule_us), Pauses::default())
    }

    fn readings_that_state(
        reported: TimeIntervals,
        (late_us, off_schedule_us): (u64, u64),
        pauses: Pauses,
    ) -> Vec<Reading> {
        let scheduled_s = simulate(&plan(), 5);
        let later = |response_s: &f64| response_s + off_schedule_us as f64 * 1e-6;
        let served_s: Vec<f64> = scheduled_s.iter().map(later).collect();
        let mut times = new_times();
        for response_s in &served_s {
            times.record(Nanos::from_secs_f64(*response_s).0 + late_us * 1_000).unwrap();
        }
        let queue = Queue::from_rate(2_400.0, plan().service, 4).unwrap();
        let scatter = scatter(&plan());
        let schedule =
            ScheduleSide { responses_s: scheduled_s.clone(), queue: &queue, scatter: &scatter };
        readings(Sides {
            measured: &times,
            served_s,
            delays: &[],
            pauses,
            schedule: Some(schedule),
            reported: Some((reported, scheduled_s)),
        })
    }

    fn on_schedule(reading: &Reading) -> JudgementOutcome {
        reading.schedule.unwrap().on_schedule
    }

    fn theory_holds(reading: &Reading) -> bool {
        reading.schedule.unwrap().theory_held
    }

    #[test]
    fn an_interval_that_holds_the_truth_holds_and_one_beside_it_does_not() {
        let truth = readings_when_late_by(20, 0)[1].served_ns.0 as f64;
        let interval_judgement = |low: f64, high: f64| {
            let p50 = Some([truth + low, truth + high]);
            let reported = TimeIntervals { p50, ..TimeIntervals::default() };
            let results = readings_that_state(reported, (20, 0), Pauses::default());
            assert!(results[0].stated.is_none(), "of the mean nothing is stated");
            results[1].stated.unwrap().interval
        };
        assert_eq!(interval_judgement(-5e3, 15e3), JudgementOutcome::Held);
        assert_eq!(
            interval_judgement(10e3, 30e3),
            JudgementOutcome::Broken,
            "all of it above the truth"
        );
        assert_eq!(
            interval_judgement(-60e3, -15e3),
            JudgementOutcome::Held,
            "handed over before it was stamped"
        );
        assert_eq!(interval_judgement(-60e3, -25e3), JudgementOutcome::Broken);
    }

    #[test]
    fn a_client_that_sees_what_was_served_holds_and_so_does_the_queue() {
        let readings = readings_when_late_by(20, 20);
        // 4,800 responses do not support p99.9.
        assert_eq!(readings.len(), 4);
        let judgements = |r: &Reading| (r.tight, on_schedule(r), theory_holds(r));
        let all = (JudgementOutcome::Held, JudgementOutcome::Held, true);
        assert!(readings.iter().all(|r| judgements(r) == all), "{readings:?}");
    }

    #[test]
    fn a_client_that_is_late_breaks_the_tight_judgement_alone() {
        let readings = readings_when_late_by(150, 0);
        let broken = |r: &Reading| {
            r.tight == JudgementOutcome::Broken && on_schedule(r) == JudgementOutcome::Held
        };
        assert!(readings.iter().all(|r| broken(r) && theory_holds(r)), "{readings:?}");
    }

    #[test]
    fn requests_that_arrive_otherwise_than_due_break_the_schedule_alone() {
        let readings = readings_when_late_by(0, 150);
        let broken = |r: &Reading| {
            r.tight == JudgementOutcome::Held && on_schedule(r) == JudgementOutcome::Broken
        };
        assert!(readings.iter().all(|r| broken(r) && theory_holds(r)), "{readings:?}");
    }

    /// One op in a hundred is delayed by 8 ms. At 0.9 the queues behind such pauses take ten times
    /// as many to drain, and those that waited in them may all lie beyond the median.
    #[test]
    fn the_median_may_move_by_the_ranks_that_the_queues_behind_pauses_take() {
        let paused = Pauses::from_delays(&[&lags(&[(30, 990), (8_000, 10)])], 0.9);
        let p50 = |off_us: u64, pauses: Pauses| {
            let readings = readings_that_state(TimeIntervals::default(), (0, off_us), pauses);
            on_schedule(&readings[1])
        };
        assert_eq!(p50(200, Pauses::default()), JudgementOutcome::Broken);
        assert_eq!(p50(200, paused), JudgementOutcome::NotJudged);
        assert_eq!(p50(600, paused), JudgementOutcome::Broken);
    }
}
