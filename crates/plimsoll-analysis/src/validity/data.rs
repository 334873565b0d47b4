//! Is the recorded data complete and right?

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::Phase;
use plimsoll_model::finding::{CountRecord, Missing, Progress, Rule, ShortPhase};
use plimsoll_model::units::Nanos;

use super::Evidence;
use super::generator::of_each;
use crate::raw::profile_named;

/// Classes of errors that mean the server sent other data than it was given.
const DATA_CLASSES: [&str; 2] = ["corrupt", "length"];
/// The wall clock may move this much against the monotonic one: the two are not read at the same
/// instant, and a preempted reader sees some milliseconds. A window may be as much shorter than the
/// profile's, for the same reason.
const CLOCK_STEP_MAX: Nanos = Nanos::from_millis(50);

/// Without interval logs no time is known and no rule about times can be checked.
pub(super) fn intervals(e: &Evidence<'_>) -> Option<Rule> {
    e.times.is_none().then(|| Rule::Intervals { files: e.view.record.point.stem() })
}

/// A window without a single op proves nothing.
pub(super) fn nothing_done(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let has_load = e.view.record.phase.as_ref().is_none_or(|it| it.phase.mean > 0.0);
    if !has_load || !e.is_steady() {
        return None;
    }
    let progress = match (totals.due, totals.done_in_window) {
        (0, _) => Progress::NoneDue,
        (_, 0) if totals.errors.is_empty() => Progress::NoReply,
        (_, 0) => Progress::AllFailed,
        _ => return None,
    };
    Some(Rule::NothingDone { progress })
}

/// One wrong byte is one too many, whatever the limit on errors, in warm-up too.
pub(super) fn corrupt(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let replies: u64 = [&totals.errors, &totals.warm_up_errors]
        .into_iter()
        .flat_map(|errors| DATA_CLASSES.iter().filter_map(|class| errors.get(*class)))
        .sum();
    (replies > 0).then_some(Rule::Corrupt { replies })
}

/// The interval logs and the totals are counted separately; they must hold the same ops.
pub(super) fn counts(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let ended: u64 = totals.ops.values().map(|counts| counts.count).sum();
    let times = e.times?;
    let timed = times.response.len() - times.unsent.as_ref().map_or(0, |unsent| unsent.len());
    let without_reply = totals.unfinished + totals.not_sent;
    // Bundles of earlier versions count an unfinished op as one that ended.
    if timed.saturating_sub(totals.unfinished) <= ended && ended <= timed + without_reply {
        return None;
    }
    Some(Rule::Counts {
        record: CountRecord::IntervalLogs,
        recorded_ops: timed,
        total_ops: ended,
        without_reply_ops: without_reply,
    })
}

/// The seconds of the journal and its totals are counted separately, too.
pub(super) fn seconds(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let window = e.view.record.seconds.iter().filter(|second| second.phase == Phase::Measure);
    let (done, ended) = window.fold((0, 0), |(done, ended), second| {
        (done + second.done.saturating_sub(second.errors), ended + second.done)
    });
    let by_op: u64 = totals.ops.values().map(|counts| counts.ended_in_window).sum();
    // A bundle from before ops were counted by when they ended has none.
    let same_ops = by_op == 0 || by_op == ended;
    if done == totals.done_in_window && same_ops {
        return None;
    }
    Some(Rule::Counts {
        record: CountRecord::Seconds,
        recorded_ops: done,
        total_ops: totals.done_in_window,
        without_reply_ops: totals.unfinished + totals.not_sent,
    })
}

/// A window cut short is another method. The steps of a search are short by design, and phases of
/// a shape are as long as the user wrote.
pub(super) fn duration(e: &Evidence<'_>) -> Option<Rule> {
    let is_phase = e.view.record.phase.is_some();
    if e.view.record.point.purpose != Purpose::Ladder || is_phase {
        return None;
    }
    let Some(profile) = profile_named(&e.started.profile) else {
        return Some(Rule::MissingEvidence { missing: Missing::Profile });
    };
    let profile = e.suite.profiles.get(profile);
    let record = e.view.record;
    if let Some(requested_ops) = record.ops.filter(|ops| record.totals.due < *ops) {
        let due_ops = record.totals.due;
        return Some(Rule::TooFewOps {
            due_ops,
            wanted_ops: requested_ops,
            limit_ns: profile.measure,
        });
    }
    let measure = if record.ops.is_some() { Nanos::ZERO } else { profile.measure };
    let phases = [
        (ShortPhase::Window, record.measured_ns, measure),
        (ShortPhase::WarmUp, record.warm_up_ns, profile.warm_up),
    ];
    let is_short = |(_, length, required): &(ShortPhase, Nanos, Nanos)| {
        length.saturating_add(CLOCK_STEP_MAX) < *required
    };
    let (phase, length_ns, required_ns) = phases.into_iter().find(is_short)?;
    Some(Rule::Duration {
        phase,
        length_ns,
        wanted_ns: required_ns,
        profile: e.started.profile.clone(),
    })
}

/// A clock step separates the run's time stamps from those of the server and the monitors.
pub(super) fn clock_stepped(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, stepped_here)
}

fn stepped_here(e: &Evidence<'_>) -> Option<Rule> {
    let step_ns = Nanos(e.view.record.clock_step_ns.unsigned_abs());
    let stepped = step_ns > CLOCK_STEP_MAX;
    stepped.then_some(Rule::ClockStepped { step_ns, limit_ns: CLOCK_STEP_MAX })
}

/// Errors before the window are not counted, but are reported.
pub(super) fn warm_up_errors(e: &Evidence<'_>) -> Option<Rule> {
    let failed_ops: u64 = e.view.record.totals.warm_up_errors.values().sum();
    (failed_ops > 0).then_some(Rule::WarmUpErrors { failed_ops })
}

#[cfg(test)]
mod tests {
    use crate::testing::{PointBuilder, TestPoint, check_rule};
    use plimsoll_model::assignment::Purpose;
    use plimsoll_model::units::Nanos;

    fn changed(change: impl Fn(&mut TestPoint)) -> TestPoint {
        let mut point = PointBuilder::open(1_000.0).build();
        change(&mut point);
        point
    }

    fn healthy() -> TestPoint {
        changed(|_| ())
    }

    #[test]
    fn missing_interval_logs_make_a_point_invalid() {
        check_rule("intervals", &changed(|p| p.times = None), &healthy());
    }

    #[test]
    fn a_window_without_ops_proves_nothing() {
        let idle = changed(|p| p.record.totals.due = 0);
        check_rule("nothing_done", &idle, &healthy());
        let failed = changed(|p| p.done_in_window(0));
        check_rule("nothing_done", &failed, &healthy());
    }

    #[test]
    fn one_corrupt_reply_is_too_many_even_in_warm_up() {
        let error = |class: &'static str| {
            changed(move |p| {
                p.record.totals.errors.insert(class.to_owned(), 1);
            })
        };
        check_rule("corrupt", &error("corrupt"), &error("timeout"));
        check_rule("corrupt", &error("length"), &healthy());
        let warm_up = changed(|p| {
            p.record.totals.warm_up_errors.insert("corrupt".to_owned(), 1);
        });
        check_rule("corrupt", &warm_up, &healthy());
    }

    #[test]
    fn logs_and_totals_must_tell_of_the_same_ops() {
        let count = |p: &mut TestPoint| p.record.totals.ops.values_mut().next().unwrap().count += 1;
        let unfinished = changed(|p| {
            count(p);
            p.record.totals.unfinished = 1;
        });
        check_rule("counts", &changed(count), &unfinished);
        let lost = changed(|p| p.record.totals.ops.values_mut().next().unwrap().count -= 1);
        check_rule("counts", &lost, &healthy());
    }

    #[test]
    fn the_seconds_and_the_totals_must_tell_of_the_same_ops() {
        let inflated = changed(|p| p.record.totals.done_in_window *= 100);
        check_rule("counts", &inflated, &healthy());
        let ended = |ops| {
            changed(move |p| {
                let counts = p.record.totals.ops.values_mut().next().unwrap();
                counts.ended_in_window = ops;
            })
        };
        check_rule("counts", &ended(29_999), &ended(30_000));
    }

    #[test]
    fn a_window_shorter_than_the_profiles_is_another_method() {
        let cut = |by: Nanos| {
            changed(move |p| p.record.measured_ns = p.record.measured_ns.saturating_sub(by))
        };
        check_rule("duration", &cut(Nanos::from_millis(51)), &cut(Nanos::from_millis(50)));
        check_rule("duration", &changed(|p| p.record.warm_up_ns = Nanos::ZERO), &healthy());
        let unknown = changed(|p| p.started.profile = "hasty".into());
        check_rule("missing_evidence", &unknown, &healthy());
        let probe = changed(|p| {
            p.record.measured_ns = Nanos::from_secs(3);
            p.record.point.purpose = Purpose::Probe;
        });
        assert!(!probe.reasons().contains(&"duration"));
    }

    #[test]
    fn a_stepped_clock_is_found_in_either_direction() {
        let step = |ms: i64| changed(move |p| p.record.clock_step_ns = ms * 1_000_000);
        check_rule("clock_stepped", &step(51), &step(50));
        check_rule("clock_stepped", &step(-51), &step(-50));
    }

    #[test]
    fn errors_in_warm_up_are_a_warning() {
        let point = changed(|p| {
            p.record.totals.warm_up_errors.insert("timeout".to_owned(), 3);
        });
        assert!(point.verdict().valid);
        assert_eq!(point.verdict().warnings[0].rule.name(), "warm_up_errors");
    }
}
