//! The limits of the judgements, and possible effects of pauses of the host. `evaluate` decides all
//! judgements that can be left open: one is left open if pauses alone can have broken it.
//!
//! Times are compared three times. The client's times are compared with the server's log of the
//! same run. The server's times are compared with the same queue on the arrivals that the seed
//! gives; a tool that waits for replies before it sends fails here. That schedule is compared with
//! theory, within the simulated scatter of a run of its length. Delays of the host are measured and
//! drawn from, reply by reply, because percentiles of delays cannot be added.

use plimsoll_analysis::times::{quantile_ns, supports};
use plimsoll_model::certificate::{Floor, FloorReading, JudgementOutcome, RunVerdict, Statistic};
use plimsoll_model::event::Times;
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::units::Nanos;

use crate::queueing::family;
use crate::queueing::finite::Loop;

/// Done over due, and served over due, may differ from 1 by this.
pub(crate) const RATE_ERROR_MAX_RATIO: f64 = 0.005;
/// Client and server may differ by this …
const TIGHT_ERROR_MAX_RATIO: f64 = 0.02;
/// … or by this, beyond the floor: the width of a histogram's bucket and a scheduler's tick.
const TIGHT_ERROR_MAX: Nanos = Nanos::from_micros(100);
/// With a floor above this share of the served time, agreement says nothing.
const TELLING_FLOOR_MAX_RATIO: f64 = 0.2;
/// The server stamps a reply when the call that sends it has returned, and an arrival when it has
/// read it. A client on another core may be earlier by what that takes.
pub(crate) const HANDOFF_MAX: Nanos = Nanos::from_micros(20);
/// X (R + Z) may differ from N by this.
const CLOSED_ERROR_MAX_RATIO: f64 = 0.02;
/// The p99 of a stall may differ from its exact value by this.
const STALL_ERROR_MAX_RATIO: f64 = 0.05;

/// Judges the distance of two figures: it holds up to `allowed`, and is left open up to `open`,
/// which something other than the instrument explains.
pub(crate) fn evaluate(apart: f64, allowed: f64, open: f64) -> JudgementOutcome {
    match apart {
        apart if apart <= allowed => JudgementOutcome::Held,
        apart if apart <= open => JudgementOutcome::NotJudged,
        _ => JudgementOutcome::Broken,
    }
}

/// How far done and due may differ: the queue can be longer at one end of the window than at the
/// other.
pub(crate) fn rate_allowed_ratio(utilisation: f64, servers: u32, due: u64) -> f64 {
    let inside = family::queue_length_max(utilisation, servers);
    RATE_ERROR_MAX_RATIO.max(inside / due.max(1) as f64)
}

/// Judges a number of ops. Left open if a pause at an end of the window explains the difference.
pub(crate) fn count(
    error_ratio: f64,
    allowed_ratio: f64,
    (pauses, rate_ops_per_s, due): (&Pauses, f64, u64),
) -> JudgementOutcome {
    let paused_ratio = pauses.ops(rate_ops_per_s) / due.max(1) as f64;
    evaluate(error_ratio.abs(), allowed_ratio, allowed_ratio + paused_ratio)
}

pub(crate) fn closed_holds(error_ratio: f64) -> bool {
    error_ratio.abs() <= CLOSED_ERROR_MAX_RATIO
}

/// How far the mean of this many exponential think times may be from their law's.
pub(crate) fn think_allowed(mean: Nanos, pieces: u64) -> Nanos {
    let error_s = family::deviate() * mean.as_secs_f64() / (pieces.max(1) as f64).sqrt();
    Nanos::from_secs_f64(error_s)
}

/// Does the stall have its exact effect?
pub(crate) fn stall_holds(error_ratio: f64) -> bool {
    error_ratio.abs() <= STALL_ERROR_MAX_RATIO
}

/// The verdict of a run, from the reasons that concern a load point.
pub(crate) fn run_verdict(reasons: &[Finding]) -> RunVerdict {
    let text = |reason: &Finding| format!("{}: {}", reason.rule.name(), reason.text);
    RunVerdict {
        held: reasons.iter().all(|reason| is_shown(&reason.rule)),
        reasons: reasons.iter().map(text).collect(),
    }
}

/// The generator was not punctual, or the server not steady (it pauses on purpose). The effect on
/// the figures is judged here, so the run holds.
const fn is_shown(rule: &Rule) -> bool {
    matches!(
        rule,
        Rule::GeneratorCpu { .. }
            | Rule::Monitors { .. }
            | Rule::NotSteady { .. }
            | Rule::DebugBuild
    )
}

/// The possible values of a figure: `truth`, and more by the delays of the round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) truth: Nanos,
    pub(crate) delayed: Nanos,
    /// With the longest delays that pauses of the host can have caused.
    pub(crate) paused: Nanos,
}

impl Span {
    /// How far from the truth it may be, on its side of it.
    pub(crate) fn allowed(self, measured: Nanos) -> Nanos {
        let strictly = self.strictly_allowed();
        if measured < self.truth { strictly } else { strictly + self.delay() }
    }

    /// How far it may be without any delay.
    fn strictly_allowed(self) -> Nanos {
        Nanos((self.truth.0 as f64 * TIGHT_ERROR_MAX_RATIO) as u64).max(TIGHT_ERROR_MAX)
    }

    fn delay(self) -> Nanos {
        self.delayed.saturating_sub(self.truth)
    }

    /// Judges a figure. Left open if it is close only because delays are long, or if pauses of the
    /// host alone can have made it too long.
    pub(crate) fn evaluate(self, measured: Nanos) -> JudgementOutcome {
        let allowed = self.allowed(measured);
        let limit = match telling(self.truth, self.delay()) {
            true => allowed,
            false => self.strictly_allowed(),
        };
        let paused = match measured < self.truth {
            true => Nanos::ZERO,
            false => self.paused.saturating_sub(self.truth),
        };
        let apart = measured.0.abs_diff(self.truth.0) as f64;
        evaluate(apart, limit.0 as f64, allowed.max(paused).0 as f64)
    }
}

/// Is the floor short enough for agreement to mean something?
fn telling(served: Nanos, floor: Nanos) -> bool {
    floor.0 as f64 <= served.0 as f64 * TELLING_FLOOR_MAX_RATIO
}

/// Is the throughput of a closed loop, whose mean response was `served`, within its interval? Left
/// open where the floor makes that so wide that it would be with any response.
pub(crate) fn throughput(
    ops_per_s: f64,
    (low, high): (f64, f64),
    (served, floor): (Nanos, Nanos),
) -> JudgementOutcome {
    match (low..=high).contains(&ops_per_s) {
        false => JudgementOutcome::Broken,
        true if telling(served, floor) => JudgementOutcome::Held,
        true => JudgementOutcome::NotJudged,
    }
}

/// Possible throughputs of a closed loop: lowest where the round trip costs all that a tight
/// judgement allows, highest where it costs nothing.
pub(crate) fn throughputs(
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
pub(crate) fn supported(n: u64) -> impl Iterator<Item = Statistic> {
    Statistic::ALL.into_iter().filter(move |statistic| match statistic.share() {
        None => n > 0,
        Some(share) => supports(n, percentile_e2(share)),
    })
}

/// In hundredths of a percent.
fn percentile_e2(share: f64) -> u32 {
    (share * 10_000.0).round() as u32
}

/// A figure of the client's measurement.
pub(crate) fn client_ns(times: &Times, statistic: Statistic) -> Nanos {
    match statistic.share() {
        None => Nanos(times.mean().round() as u64),
        Some(share) => Nanos(quantile_ns(times, percentile_e2(share))),
    }
}

/// The cost of the round trip, beyond a service that always takes the same.
pub(crate) fn floor(
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

/// Shorter delays are ordinary wakeups.
const PAUSE_MIN: Nanos = Nanos::from_micros(500);

/// Pauses of the host, as client and server recorded them in the same run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    longest: Nanos,
    /// Share of the ops that one of them delayed.
    share: f64,
    /// How many times as long its effect lasts: the queue behind it has to drain.
    drain: f64,
}

impl Pauses {
    /// From delays by cause, at this utilisation of the server.
    pub(crate) fn from_delays(delays: &[&Times], utilisation: f64) -> Self {
        let mut pauses = Self { drain: 1.0 / (1.0 - utilisation.min(0.95)), ..Self::default() };
        for times in delays {
            let paused = times.len() - times.count_between(0, PAUSE_MIN.0).min(times.len());
            if paused > 0 {
                pauses.longest = pauses.longest.max(Nanos(times.max()));
                pauses.share += paused as f64 / times.len() as f64;
            }
        }
        pauses
    }

    /// The longest pause, as text.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "the host took generator or server off their cores for up to {}, which delayed {:.1} % \
             of the ops",
            self.longest,
            self.share.min(1.0) * 100.0
        )
    }

    /// Ops of a load that the longest pause can move out of the window.
    pub(crate) fn ops(&self, rate_ops_per_s: f64) -> f64 {
        self.longest.as_secs_f64() * rate_ops_per_s
    }

    /// Share of the ops that they can have delayed, with those in the queues behind them.
    pub(crate) fn touched(&self) -> f64 {
        self.share * self.drain * 2.0
    }

    /// How much longer they can have made an op, with the queue behind them.
    pub(crate) fn longest_s(&self) -> f64 {
        self.longest.as_secs_f64() * self.drain
    }

    /// How much longer they can have made the mean of all ops.
    pub(crate) fn mean_s(&self) -> f64 {
        self.touched() * self.longest.as_secs_f64()
    }
}

#[cfg(test)]
pub(crate) fn lags(samples: &[(u64, u32)]) -> Times {
    let mut times = plimsoll_model::event::new_times();
    for (lag_us, count) in samples {
        times.record_n(lag_us * 1_000, *count).unwrap();
    }
    times
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::new_times;

    use super::*;

    #[test]
    fn what_only_pauses_of_the_host_can_have_made_so_long_is_left_open() {
        let ms = Nanos::from_millis;
        let check =
            |measured| Span { truth: ms(2), delayed: ms(2), paused: ms(22) }.evaluate(measured);
        assert_eq!(
            (check(ms(2)), check(ms(5))),
            (JudgementOutcome::Held, JudgementOutcome::NotJudged)
        );
        assert_eq!(check(ms(30)), JudgementOutcome::Broken, "longer than any");
        assert_eq!(check(ms(1)), JudgementOutcome::Broken, "pauses make nothing shorter");
    }

    #[test]
    fn counts_may_differ_by_what_a_queue_holds_and_a_pause_leaves_them_open() {
        let (quiet, paused) =
            (Pauses::default(), Pauses::from_delays(&[&lags(&[(20_000, 10)])], 0.3));
        let allowed = rate_allowed_ratio(0.3, 1, 2_100);
        assert!((allowed - 0.005).abs() < 1e-9, "{allowed}");
        assert!(rate_allowed_ratio(0.9, 1, 6_300) > 0.012, "83 ops of 6,300");
        let check = |error, pauses| count(error, allowed, (pauses, 600.0, 2_100));
        assert_eq!(check(0.004, &quiet), JudgementOutcome::Held);
        assert_eq!(check(-0.006, &quiet), JudgementOutcome::Broken);
        assert_eq!(check(-0.006, &paused), JudgementOutcome::NotJudged, "12 ops are due in 20 ms");
        assert_eq!(check(-0.02, &paused), JudgementOutcome::Broken);
    }

    #[test]
    fn a_think_time_shortened_by_a_tenth_is_no_chance() {
        // 7,700 pieces in three seconds.
        let allowed = think_allowed(Nanos::from_millis(5), 7_700);
        assert!(allowed > Nanos::from_micros(200) && allowed < Nanos::from_micros(250));
    }

    #[test]
    fn the_floor_is_allowed_on_top() {
        let mut times = new_times();
        (0..2_000).for_each(|_| times.record(1_080_000).unwrap());
        let floor = floor(1_000.0, Nanos::from_millis(1), &times, RunVerdict::default());
        assert_eq!(floor.response.len(), 4);
        assert!(floor.under(Statistic::P99).0.abs_diff(80_000) < 1_100);
        assert!(
            !closed_holds(0.03) && closed_holds(-0.01) && stall_holds(-0.04) && !stall_holds(0.06)
        );
    }

    #[test]
    fn a_judgement_that_only_a_high_floor_would_let_pass_is_left_open() {
        let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
        let tight = |client, truth, delay: Nanos| {
            Span { truth, delayed: truth + delay, paused: truth }.evaluate(client)
        };
        // p99.9 of M/D/1 at 30 % on a host that was taken away for 8 ms now and then.
        assert_eq!(tight(ms(5), ms(2), ms(8)), JudgementOutcome::NotJudged);
        assert_eq!(tight(ms(12), ms(2), ms(8)), JudgementOutcome::Broken, "too far even for that");
        assert_eq!(
            tight(us(2_090), ms(2), ms(8)),
            JudgementOutcome::Held,
            "close, whatever the floor"
        );
        assert_eq!(
            tight(us(2_480), ms(2), us(400)),
            JudgementOutcome::Held,
            "a fifth is not too much"
        );
        assert_eq!(tight(us(2_480), ms(2), us(401)), JudgementOutcome::NotJudged);
        assert_eq!(
            tight(us(1_890), ms(2), us(400)),
            JudgementOutcome::Broken,
            "delays make nothing shorter"
        );
        assert_eq!(tight(ms(103), ms(100), ms(1)), JudgementOutcome::Held);
        assert_eq!(tight(us(103_001), ms(100), ms(1)), JudgementOutcome::Broken);
    }

    #[test]
    fn a_run_that_was_late_is_shown_and_one_of_another_load_does_not_hold() {
        let late = Rule::Monitors { used_ratio: 0.02, limit_ratio: 0.01 };
        let mut reasons = [late, Rule::DebugBuild].map(Rule::of_run);
        reasons[0].text = "the monitors used 2 %".to_owned();
        reasons[1].text = "the program was built".to_owned();
        let verdict = run_verdict(&reasons);
        assert!(verdict.held);
        let texts = ["monitors: the monitors used 2 %", "debug_build: the program was built"];
        assert_eq!(verdict.reasons, texts);
        let other = Rule::NotSent { not_sent_ops: 1, due_ops: 2 };
        for rule in [Rule::Corrupt { replies: 1 }, Rule::ClosedLoopUnknown, other] {
            assert!(!run_verdict(&[rule.of_run()]).held);
        }
        assert_eq!(run_verdict(&[]), RunVerdict { held: true, reasons: Vec::new() });
    }

    #[test]
    fn a_closed_loop_may_lose_to_the_way_there_and_back_what_is_allowed_and_no_more() {
        let law = Loop { clients: 16, servers: 4, service_s: 1e-3, think_s: 5e-3, delay_s: 0.0 };
        let floor = Nanos::from_micros(80);
        let (low, high) = throughputs(&law, floor, (0.2, 2.0));
        let of = |delay_s| Loop { delay_s, ..law }.throughput_per_s();
        assert!(low < of(180e-6) && of(0.0) < high, "{low} to {high}");
        assert!(of(3e-3) < low, "replies that are seen 3 ms late");
        let check = |x| throughput(x, (low, high), (Nanos::from_millis(1), floor));
        assert_eq!(
            (check(of(80e-6)), check(of(3e-3))),
            (JudgementOutcome::Held, JudgementOutcome::Broken)
        );
        let high_floor = (Nanos::from_millis(1), Nanos::from_millis(10));
        assert_eq!(throughput(of(80e-6), (low, high), high_floor), JudgementOutcome::NotJudged);
    }
}
