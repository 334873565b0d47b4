use super::*;

fn waiting(pacing: Pacing, own_core: bool) -> Waiting {
    let own = Polls::WhileNobodyTakesTheCore(Preemptions::alone());
    let polls = if own_core { own } else { Polls::Never };
    Waiting { polls, ..Waiting::by(pacing) }
}

fn idle(now: Nanos, timer: Nanos) -> Outlook {
    let look_up = now + Nanos::from_millis(20);
    Outlook { now, timer, look_up, in_flight: false, more: false, gains: false }
}

const US: fn(u64) -> Nanos = Nanos::from_micros;

#[test]
fn auto_with_a_core_of_its_own_polls_when_something_is_near_and_sleeps_otherwise() {
    let mut waiting = waiting(Pacing::Auto, true);
    assert_eq!(waiting.next(&idle(US(0), US(20))), Wait::Poll, "the next op is near");
    assert_eq!(waiting.next(&idle(US(0), US(500))), Wait::Until(US(500) - LEAD_MIN));
    let outstanding = |now, timer| Outlook { in_flight: true, ..idle(now, timer) };
    assert_eq!(waiting.next(&outstanding(US(100), US(9_000))), Wait::Poll);
    let long = waiting.next(&outstanding(US(2_000), US(9_000)));
    assert_eq!(long, Wait::Until(US(9_000) - LEAD_MIN), "no reply for two milliseconds");
    waiting.acted(US(2_100));
    assert_eq!(waiting.next(&outstanding(US(2_100), US(9_000))), Wait::Poll);
    waiting.waited(Wait::Poll, US(4_000), US(4_100), 0);
    assert_ne!(waiting.next(&outstanding(US(4_100), US(9_000))), Wait::Poll, "nothing came");
    waiting.waited(Wait::Poll, US(4_100), US(4_200), 1);
    assert_eq!(waiting.next(&outstanding(US(4_200), US(9_000))), Wait::Poll, "a reply came");
}

#[test]
fn a_worker_on_a_core_that_others_may_want_polls_until_they_have_long_turns() {
    let near = |now: Nanos| idle(now, now + US(20));
    let shared = Polls::WhileNobodyWantsTheCore(Preemptions::shared());
    let mut waiting = Waiting { polls: shared, ..Waiting::by(Pacing::Auto) };
    let mut now = Nanos::ZERO;
    let mut yields = |waiting: &mut Waiting, took: &[Nanos], span: Nanos| {
        let end = now + span;
        for took in took.iter().cycle() {
            waiting.waited(Wait::Yield, now, now + *took, 1);
            now += *took;
            if now >= end {
                return now;
            }
        }
        now
    };
    let at = yields(&mut waiting, &[US(1)], Nanos::from_millis(1_000));
    assert_eq!(waiting.next(&near(at)), Wait::Yield, "nobody came");
    let twentieth = [[US(1); 19].as_slice(), &[US(160)]].concat();
    let at = yields(
        &mut waiting,
        &[twentieth.clone(), vec![US(1); 6_000]].concat(),
        Nanos::from_millis(100),
    );
    assert_eq!(waiting.next(&near(at)), Wait::Yield, "a light load's server has turns");
    let at = yields(&mut waiting, &twentieth, Nanos::from_millis(300));
    assert_eq!(waiting.next(&near(at)), Wait::Until(at + US(20)), "nearly all the time");
    let again = at + SLEEPS.0;
    assert_eq!(waiting.next(&near(again)), Wait::Yield, "for a while only");
}

#[test]
fn a_worker_whose_core_is_wanted_again_and_again_sleeps_for_longer_each_time() {
    let mut now = Nanos::ZERO;
    let mut core = Preemptions::shared();
    for expected in [200, 800, 3_200, 5_000, 5_000] {
        now = now.max(core.sleeps_until) + EVALUATION_SPAN;
        assert!(core.passed(EVALUATION_SPAN, now), "all of it was others'");
        assert_eq!(core.sleeps_until - now, Nanos::from_millis(expected));
    }
    now = core.sleeps_until;
    for _ in 0..1_000_000 {
        now += US(200);
        core.passed(US(1), now);
    }
    assert!(core.next_sleep < Nanos::from_millis(240), "forgotten: {:?}", core.next_sleep);
}

#[test]
fn on_a_core_of_its_own_that_others_take_it_sleeps_for_replies_and_polls_for_the_next_op() {
    let outstanding =
        |now: Nanos, timer: u64| Outlook { in_flight: true, ..idle(now, now + US(timer)) };
    // Of 200 ms each; a pause of the host is one preemption.
    for (preemptions_ms, sleeps) in [([4, 0, 0], false), ([5, 0, 0], false), ([3, 2, 1], true)] {
        let mut waiting = waiting(Pacing::Auto, true);
        let mut now = US(1_000);
        waiting.polled_empty(US(1), now);
        for preempted_ms in preemptions_ms {
            let took = Nanos::from_millis(preempted_ms).max(PREEMPTION_MIN - Nanos(1));
            now += took;
            waiting.polled_empty(took, now);
        }
        now = EVALUATION_SPAN + US(1_000);
        waiting.polled_empty(US(1), now);
        waiting.acted(now);
        waiting.lead = US(90);
        assert_eq!(
            waiting.next(&outstanding(now, 80)) == Wait::Poll,
            !sleeps,
            "{preemptions_ms:?}"
        );
        let expected = if sleeps { Wait::Until(now + US(900) - LEAD_MIN) } else { Wait::Poll };
        assert_eq!(waiting.next(&outstanding(now, 900)), expected, "{preemptions_ms:?}");
        assert_eq!(waiting.next(&outstanding(now, 20)), Wait::Poll, "the next op is near");
        now += SLEEPS.0;
        waiting.acted(now);
        assert_eq!(waiting.next(&outstanding(now, 900)), Wait::Poll, "it tries again");
    }
    let mut closed = Waiting { polls: Polls::Always, ..Waiting::by(Pacing::Auto) };
    closed.polled_empty(EVALUATION_SPAN, EVALUATION_SPAN);
    closed.acted(EVALUATION_SPAN);
    assert_eq!(
        closed.next(&outstanding(EVALUATION_SPAN, 900)),
        Wait::Poll,
        "its clients wait for it"
    );
    let mut preemptions = Preemptions::alone();
    let mut now = Nanos::ZERO;
    for (quiet, expected) in [(0, 200), (0, 800), (1, 1_600), (5, 200), (0, 800)] {
        for _ in 0..quiet {
            now = now.max(preemptions.sleeps_until) + EVALUATION_SPAN;
            preemptions.passed(Nanos::ZERO, now);
        }
        now = now.max(preemptions.sleeps_until) + EVALUATION_SPAN;
        assert!(preemptions.passed(EVALUATION_SPAN, now), "all of it was others'");
        assert_eq!(preemptions.sleeps_until - now, Nanos::from_millis(expected));
    }
}

#[test]
fn a_gap_is_a_turn_of_others_as_far_as_the_worker_waited_for_its_core() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("schedstat");
    let waited = |us: u64| std::fs::write(&path, format!("9 {} 3\n", us * 1_000)).unwrap();
    waited(100);
    let mut others = Others::from_run_delay(RunDelay::from_file(std::fs::File::open(&path).ok()));
    waited(900);
    assert_eq!(others.preempted_time(INTERRUPTION_MIN - Nanos(1)), Nanos::ZERO, "not looked at");
    assert_eq!(others.preempted_time(US(3_000)), US(800), "the rest was the hypervisor's");
    assert_eq!(others.preempted_time(US(3_000)), Nanos::ZERO);
    waited(9_000);
    assert_eq!(others.preempted_time(US(200)), US(200), "some of it before the gap");
    waited(9_700);
    others.forget();
    assert_eq!(others.preempted_time(US(3_000)), Nanos::ZERO, "that was for a wakeup");
}

#[test]
fn coalescing_sleeps_to_the_next_tick_of_its_grid_where_that_brings_things_together() {
    let mut waiting = waiting(Pacing::Coalesce, false);
    let ahead = Outlook { gains: true, ..idle(US(1_000), US(2_010)) };
    assert_eq!(waiting.next(&ahead), Wait::SleepUntil(US(2_400)), "for the next timer");
    let outstanding = Outlook { in_flight: true, ..ahead };
    assert_eq!(waiting.next(&outstanding), Wait::SleepUntil(US(1_200)), "for replies");
    assert_eq!(waiting.next(&idle(US(1_000), US(2_010))), Wait::Until(US(2_010)));
}

#[test]
fn the_fuller_the_core_the_longer_an_open_load_rests() {
    for (asleep_us, rest_us) in [(16_000, 0), (12_000, 0), (8_000, 200), (4_000, 400)] {
        let mut waiting = waiting(Pacing::Auto, false);
        waiting.rests = true;
        waiting.waited(Wait::Until(US(0)), US(4_900), US(4_900), 1);
        assert_eq!(waiting.rest, US(0), "half of a span tells nothing");
        // Of twenty milliseconds.
        let wait = Wait::Until(US(20_000));
        waiting.waited(wait, US(20_000 - asleep_us), US(20_000), 1);
        assert!(waiting.rest.0.abs_diff(rest_us * 1_000) <= 1, "{asleep_us} {waiting:?}");
    }
}

#[test]
fn a_worker_wakes_early_by_what_its_wakeups_are_late() {
    let mut waiting = waiting(Pacing::Auto, true);
    waiting.waited(Wait::Until(US(100)), US(0), US(160), 0);
    assert_eq!(waiting.next(&idle(US(0), US(500))), Wait::Until(US(500 - 75)));
    waiting.waited(Wait::Until(US(100)), US(0), US(5_000), 0);
    assert!(waiting.lead <= US(75), "a pause of the host is no wakeup");
    waiting.waited(Wait::Until(US(100)), US(0), US(100) + PAUSE_MIN, 0);
    assert!(waiting.lead <= US(75), "nor is the shortest one");
    (0..10_000).for_each(|_| waiting.learn(US(1)));
    assert!(waiting.lead < US(31), "{:?}", waiting.lead);
}

#[test]
fn without_a_core_of_its_own_it_sleeps_and_rests_as_an_open_load_fills_the_core() {
    let mut waiting = waiting(Pacing::Auto, false);
    waiting.rests = true;
    let outlook = Outlook { in_flight: true, ..idle(US(0), US(20)) };
    assert_eq!(waiting.next(&outlook), Wait::Until(US(20)));
    // A tenth of twenty milliseconds asleep.
    waiting.waited(Wait::Until(US(20_000)), US(18_000), US(20_000), 3);
    let outlook = Outlook { in_flight: true, ..idle(US(20_000), US(20_001)) };
    assert_eq!(waiting.next(&outlook), Wait::SleepUntil(US(20_400)));
}
