//! The limits, and who is held against them. Pure.

use plimsoll_analysis::queueing::Queue;
use plimsoll_analysis::queueing::delayed::{Delays, delayed};
use plimsoll_analysis::queueing::finite::Loop;
use plimsoll_analysis::queueing::scatter::{Scatter, figure};
use plimsoll_analysis::times::{quantile_ns, supports};
use plimsoll_model::certificate::{Floor, FloorReading, Judged, Reading, RunVerdict, Statistic};
use plimsoll_model::event::Times;
use plimsoll_model::result::Finding;
use plimsoll_model::units::Nanos;

/// Done over due, and served over due, may differ from 1 by this.
const RATE_ERROR_MAX_RATIO: f64 = 0.005;
/// Client and server may be this far apart …
const TIGHT_ERROR_MAX_RATIO: f64 = 0.02;
/// … or this far, on top of the floor: a histogram's width and a scheduler's tick.
const TIGHT_ERROR_MAX: Nanos = Nanos::from_micros(100);
/// A floor above this share of what was served allows so much that to be within it says nothing.
const TELLING_FLOOR_MAX_RATIO: f64 = 0.2;
/// Rules of validity that ask whether the generator was punctual, or the server steady (it pauses
/// on purpose): to be shown. What that does to the figures is what is judged here.
const SHOWN_RULES: [&str; 5] =
    ["generator_cpu", "send_lag", "monitors", "not_steady", "debug_build"];
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

/// What a run says of itself, as far as it concerns the load point at `position`.
pub(super) fn run_verdict(reasons: &[Finding], position: u32) -> RunVerdict {
    let ours = || reasons.iter().filter(|r| r.point.is_none_or(|point| point == position));
    RunVerdict {
        held: ours().all(|reason| SHOWN_RULES.contains(&reason.rule.as_str())),
        reasons: ours().map(|reason| format!("{}: {}", reason.rule, reason.text)).collect(),
    }
}

/// What something may be: `truth`, and all up to what delays on the way make of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Without any delay.
    pub(super) truth: Nanos,
    /// With all that are known.
    pub(super) delayed: Nanos,
}

impl Span {
    /// How far from the truth it may be, on the side where it is.
    pub(super) fn allowed(self, found: Nanos) -> Nanos {
        let strictly = self.strictly_allowed();
        if found < self.truth { strictly } else { strictly + self.delay() }
    }

    /// How far it might be if nothing were delayed.
    fn strictly_allowed(self) -> Nanos {
        Nanos((self.truth.0 as f64 * TIGHT_ERROR_MAX_RATIO) as u64).max(TIGHT_ERROR_MAX)
    }

    fn delay(self) -> Nanos {
        self.delayed.saturating_sub(self.truth)
    }

    /// Is it close enough? Left open where it is only because delays are long.
    pub(super) fn judge(self, found: Nanos) -> Judged {
        let apart = Nanos(found.0.abs_diff(self.truth.0));
        match apart {
            _ if apart > self.allowed(found) => Judged::Broken,
            _ if telling(self.truth, self.delay()) || apart <= self.strictly_allowed() => {
                Judged::Held
            }
            _ => Judged::NotJudged,
        }
    }
}

/// Does a judgement that allows this floor say anything?
fn telling(served: Nanos, floor: Nanos) -> bool {
    floor.0 as f64 <= served.0 as f64 * TELLING_FLOOR_MAX_RATIO
}

/// Is the throughput of a closed loop, whose mean response was `served`, within its interval? Left
/// open where the floor makes that so wide that it would be with any response.
pub(super) fn throughput(
    ops_per_s: f64,
    (low, high): (f64, f64),
    (served, floor): (Nanos, Nanos),
) -> Judged {
    match (low..=high).contains(&ops_per_s) {
        false => Judged::Broken,
        true if telling(served, floor) => Judged::Held,
        true => Judged::NotJudged,
    }
}

/// Throughputs that a closed loop may have: lowest where the way there and back costs all that a
/// tight judgement allows, highest where it costs nothing.
pub(super) fn throughputs(
    law: &Loop,
    floor: Nanos,
    (warm_up_s, window_s): (f64, f64),
) -> (f64, f64) {
    let with = |delay: Nanos| Loop { delay_s: delay.as_secs_f64(), ..*law };
    let (low, _) = with(TIGHT_ERROR_MAX + floor).throughput_interval_per_s(warm_up_s, window_s);
    let (_, high) = with(Nanos::ZERO).throughput_interval_per_s(warm_up_s, window_s);
    (low, high)
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
pub(super) fn floor(
    rate_ops_per_s: f64,
    service_ns: Nanos,
    times: &Times,
    run: RunVerdict,
) -> Floor {
    let reading = |statistic| {
        let beyond_ns = client_ns(times, statistic).saturating_sub(service_ns);
        FloorReading { statistic, beyond_ns }
    };
    let response = supported(times.len()).map(reading).collect();
    Floor { rate_ops_per_s, service_ns, ops: times.len(), response, run }
}

/// What is known of the response times of one case.
pub(super) struct Sides<'a> {
    /// As the client measured them.
    pub(super) measured: &'a Times,
    /// As the server computed them.
    pub(super) served_s: Vec<f64>,
    /// As the same queue gives them when each request arrives as it was due.
    pub(super) scheduled_s: Vec<f64>,
    /// What delays a request or its reply on the way.
    pub(super) delays: &'a [&'a Delays],
}

/// Client, server, schedule and theory, side by side.
pub(super) fn readings(sides: Sides<'_>, queue: &Queue, scatter: &Scatter) -> Vec<Reading> {
    let Sides { measured, mut served_s, mut scheduled_s, delays } = sides;
    let n = measured.len().min(served_s.len() as u64);
    let mut served_delayed_s = delayed(&served_s, delays);
    let mut scheduled_delayed_s = delayed(&scheduled_s, delays);
    let of = |values: &mut [f64], statistic| figure(values, statistic).map(Nanos::from_secs_f64);
    let reading = |statistic| {
        let client = client_ns(measured, statistic);
        let served = Span {
            truth: of(&mut served_s, statistic)?,
            delayed: of(&mut served_delayed_s, statistic)?,
        };
        let scheduled = Span {
            truth: of(&mut scheduled_s, statistic)?,
            delayed: of(&mut scheduled_delayed_s, statistic)?,
        };
        let (low, high) = scatter.interval_s(statistic)?;
        let interval = (Nanos::from_secs_f64(low), Nanos::from_secs_f64(high));
        Some(Reading {
            statistic,
            client_ns: client,
            served_ns: served.truth,
            allowed_ns: served.allowed(client),
            tight: served.judge(client),
            scheduled_ns: scheduled.truth,
            on_schedule: scheduled.judge(served.truth),
            theory_ns: Nanos::from_secs_f64(queue.response_s(statistic)),
            theory_interval_ns: interval,
            theory_held: (interval.0..=interval.1).contains(&scheduled.truth),
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

    /// A client that sees every response this much longer, and a server that serves so much later
    /// than by schedule.
    fn readings_when_late_by(late_us: u64, off_schedule_us: u64) -> Vec<Reading> {
        let scheduled_s = simulate(&plan(), 5);
        let later = |response_s: &f64| response_s + off_schedule_us as f64 * 1e-6;
        let served_s: Vec<f64> = scheduled_s.iter().map(later).collect();
        let mut times = new_times();
        for response_s in &served_s {
            times.record(Nanos::from_secs_f64(*response_s).0 + late_us * 1_000).unwrap();
        }
        let queue = Queue::of(2_400.0, plan().service, 4).unwrap();
        let sides = Sides { measured: &times, served_s, scheduled_s, delays: &[] };
        readings(sides, &queue, &scatter(&plan()))
    }

    #[test]
    fn a_client_that_sees_what_was_served_holds_and_so_does_the_queue() {
        let readings = readings_when_late_by(20, 20);
        // 4,800 responses say nothing of p99.9.
        assert_eq!(readings.len(), 4);
        let held = |r: &Reading| (r.tight, r.on_schedule, r.theory_held);
        let all = (Judged::Held, Judged::Held, true);
        assert!(readings.iter().all(|r| held(r) == all), "{readings:?}");
    }

    #[test]
    fn a_client_that_is_late_breaks_the_tight_judgement_alone() {
        let readings = readings_when_late_by(150, 0);
        let broken = |r: &Reading| r.tight == Judged::Broken && r.on_schedule == Judged::Held;
        assert!(readings.iter().all(|r| broken(r) && r.theory_held), "{readings:?}");
    }

    #[test]
    fn requests_that_arrive_otherwise_than_due_break_the_schedule_alone() {
        let readings = readings_when_late_by(0, 150);
        let broken = |r: &Reading| r.tight == Judged::Held && r.on_schedule == Judged::Broken;
        assert!(readings.iter().all(|r| broken(r) && r.theory_held), "{readings:?}");
    }

    #[test]
    fn the_floor_is_allowed_on_top() {
        let mut times = new_times();
        (0..2_000).for_each(|_| times.record(1_080_000).unwrap());
        let floor = floor(1_000.0, Nanos::from_millis(1), &times, RunVerdict::default());
        assert_eq!(floor.response.len(), 4);
        assert!(floor.under(Statistic::P99).0.abs_diff(80_000) < 1_100);
        assert!(!rate_held(-0.006) && rate_held(0.004));
        assert!(!closed_held(0.03) && closed_held(-0.01) && stall_held(-0.04) && !stall_held(0.06));
    }

    #[test]
    fn a_judgement_that_only_a_high_floor_would_let_pass_is_left_open() {
        let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
        let tight = |client, served, delay: Nanos| {
            Span { truth: served, delayed: served + delay }.judge(client)
        };
        // p99.9 of M/D/1 at 30 % on a host that was taken away for 8 ms now and then.
        assert_eq!(tight(ms(5), ms(2), ms(8)), Judged::NotJudged);
        assert_eq!(tight(ms(12), ms(2), ms(8)), Judged::Broken, "too far even for that");
        assert_eq!(tight(us(2_090), ms(2), ms(8)), Judged::Held, "close, whatever the floor");
        assert_eq!(tight(us(2_480), ms(2), us(400)), Judged::Held, "a fifth is not too much");
        assert_eq!(tight(us(2_480), ms(2), us(401)), Judged::NotJudged);
        assert_eq!(tight(us(1_890), ms(2), us(400)), Judged::Broken, "delays make nothing shorter");
        assert_eq!(tight(ms(103), ms(100), ms(1)), Judged::Held);
        assert_eq!(tight(us(103_001), ms(100), ms(1)), Judged::Broken);
    }

    #[test]
    fn a_run_that_was_late_is_shown_and_one_of_another_load_does_not_hold() {
        let finding = |rule: &str, point| Finding {
            rule: rule.to_owned(),
            text: "see above".to_owned(),
            point,
        };
        let late = [finding("send_lag", Some(2)), finding("debug_build", None)];
        let verdict = run_verdict(&late, 2);
        assert!(verdict.held);
        assert_eq!(verdict.reasons, ["send_lag: see above", "debug_build: see above"]);
        assert_eq!(run_verdict(&late, 1).reasons, ["debug_build: see above"]);
        for rule in ["rate", "errors", "not_sent", "clock_stepped", "a rule to come"] {
            assert!(!run_verdict(&[finding(rule, Some(2))], 2).held, "{rule}");
            assert!(run_verdict(&[finding(rule, Some(1))], 2).held, "{rule}, but of another load");
        }
        assert_eq!(run_verdict(&[], 1), RunVerdict { held: true, reasons: Vec::new() });
    }

    #[test]
    fn a_closed_loop_may_lose_to_the_way_there_and_back_what_is_allowed_and_no_more() {
        let law = Loop { clients: 16, servers: 4, service_s: 1e-3, think_s: 5e-3, delay_s: 0.0 };
        let floor = Nanos::from_micros(80);
        let (low, high) = throughputs(&law, floor, (0.2, 2.0));
        let of = |delay_s| Loop { delay_s, ..law }.throughput_per_s();
        assert!(low < of(180e-6) && of(0.0) < high, "{low} to {high}");
        assert!(of(3e-3) < low, "replies that are seen 3 ms late");
        let judged = |x| throughput(x, (low, high), (Nanos::from_millis(1), floor));
        assert_eq!((judged(of(80e-6)), judged(of(3e-3))), (Judged::Held, Judged::Broken));
        let high_floor = (Nanos::from_millis(1), Nanos::from_millis(10));
        assert_eq!(throughput(of(80e-6), (low, high), high_floor), Judged::NotJudged);
    }
}
