use crate::raw::PointTimes;
use crate::testing::{PointBuilder, Recording, TestPoint, check_counted_out, check_rule};
use plimsoll_model::assignment::Load;
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{OpCounts, OpTimes, Phase, TargetTotals};
use plimsoll_model::finding::Rule;
use plimsoll_model::result::NotCounted;
use plimsoll_model::suite::ThinkDistribution;
use plimsoll_model::units::Nanos;
use plimsoll_report::sentences::finding;

fn changed(change: impl Fn(&mut TestPoint)) -> TestPoint {
    let mut point = PointBuilder::open(1_000.0).build();
    change(&mut point);
    point
}

#[test]
fn achieved_may_differ_from_the_schedule_by_a_twentieth() {
    // 30 s at 1,000 ops/s: 30,000 ops scheduled.
    let done = |n| changed(move |p| p.done_in_window(n));
    check_counted_out(NotCounted::NotHeld, &done(28_499), &done(28_500));
    check_counted_out(NotCounted::NotHeld, &done(31_501), &done(31_500));
    let text = finding::text(&done(24_360).not_counted().unwrap().1);
    assert!(
        text.starts_with(
            "load not held: achieved 812 of 1,000 ops/s scheduled, 18.8 % off (limit 5 %)"
        ),
        "{text}"
    );
}

#[test]
fn replies_after_the_end_of_a_recording_are_no_missed_load_and_late_requests_are() {
    let replayed = |late_s| {
        changed(move |p| {
            p.suite.workload = Recording {}.into();
            p.done_in_window(24_000);
            p.record.totals.last_due = p.record.warm_up_ns + Nanos::from_secs(30);
            p.record.totals.last_sent = p.record.totals.last_due + Nanos::from_secs(late_s);
        })
    };
    check_counted_out(NotCounted::NotHeld, &replayed(2), &replayed(1));
}

#[test]
fn two_ops_under_way_at_a_border_are_forgiven_at_low_rates() {
    let of_twenty = |done| {
        changed(move |p| {
            p.record.totals.due = 20;
            // All in seconds that are too short to be compared.
            p.record.seconds.iter_mut().for_each(|second| second.length_ns /= 2);
            p.done_in_window(done);
        })
    };
    check_counted_out(NotCounted::NotHeld, &of_twenty(17), &of_twenty(18));
}

#[test]
fn a_closed_load_has_no_rate_to_hold() {
    let mut point = PointBuilder::closed(32).build();
    point.done_in_window(point.record.totals.done_in_window / 2);
    assert_eq!(point.not_counted(), None);
}

#[test]
fn ops_that_never_left_explain_a_point_before_those_that_failed() {
    let overloaded = |failed: u64| {
        changed(move |p| {
            p.done_in_window(8_000);
            let totals = &mut p.record.totals;
            (totals.not_sent, totals.unfinished) = (20_980, 20);
            totals.response_age_min = Some(Nanos::from_secs(10));
            totals.errors.insert("timeout".to_owned(), failed);
            totals.ops.values_mut().next().unwrap().count = 9_000;
        })
    };
    let (why, finding) = overloaded(1_000).not_counted().unwrap();
    assert_eq!((why, finding.name()), (NotCounted::NotHeld, "rate"));
    let expected = "of 30,000 ops 20,980 were never sent, 20 had no reply when the drain ended, 1,000 \
                failed";
    assert!(finding::text(&finding).contains(expected), "{finding:?}");
    // Most sent ops failed, so the others waited because of that.
    assert_eq!(overloaded(5_000).not_counted().unwrap().0, NotCounted::Errors);
}

#[test]
fn ops_without_a_reply_are_no_errors_and_leave_a_closed_load_out_where_they_are_many() {
    let unfinished = |ops| {
        let mut point = PointBuilder::closed(32).build();
        point.record.totals.unfinished = ops;
        point
    };
    // 32,000 a second for 30 s, a thousandth.
    check_counted_out(NotCounted::NotHeld, &unfinished(961), &unfinished(960));
    let finding = unfinished(9_600).not_counted().unwrap().1;
    assert_eq!(finding.name(), "unfinished");
    assert!(finding::text(&finding).starts_with("9,600 of 960,000 ops had neither"), "{finding:?}");
}

#[test]
fn one_unsent_op_is_too_many() {
    let unsent = changed(|p| {
        p.record.totals.not_sent = 1;
    });
    check_counted_out(NotCounted::NotHeld, &unsent, &changed(|_| ()));
}

#[test]
fn errors_up_to_the_limit_are_allowed() {
    let timeouts = |n| {
        changed(move |p| {
            p.record.totals.errors.insert("timeout".to_owned(), n);
        })
    };
    check_counted_out(NotCounted::Errors, &timeouts(31), &timeouts(30));
    let text = finding::text(&timeouts(300).not_counted().unwrap().1);
    assert!(text.contains("300 of 30,000 ops failed, 1 % (limit 0.1 %)"), "{text}");
    assert!(text.contains("timeout (300)"), "{text}");
}

#[test]
fn errors_of_this_host_are_a_fault_of_the_measurement() {
    let ports = |n| {
        changed(move |p| {
            p.record.totals.errors.insert("ports_exhausted".to_owned(), n);
        })
    };
    check_rule("errors", &ports(31), &ports(30));
    assert_eq!(ports(31).not_counted(), None, "nothing was found of the server");
}

#[test]
fn a_client_that_left_is_missed() {
    let left = changed(|p| p.record.totals.clients_participating -= 1);
    assert!(left.verdict().valid, "as in the published tables");
    let warning = |point: &TestPoint| point.verdict().warnings.swap_remove(0).rule;
    assert_eq!(warning(&left).name(), "clients_lost");
    let explained = changed(|p| {
        p.record.totals.clients_participating -= 1;
        p.lost.push("no port free".to_owned());
    });
    assert!(
        finding::text(&warning(&explained)).contains("63 of 64 clients took part"),
        "{}",
        finding::text(&warning(&explained))
    );
    assert!(
        finding::text(&warning(&explained)).contains("(no port free)"),
        "{}",
        finding::text(&warning(&explained))
    );
    let later = changed(|p| p.lost.push("no port free".to_owned()));
    assert!(finding::text(&warning(&later)).contains("1 left after it (no port free)"));
    assert!(changed(|_| ()).verdict().warnings.is_empty());
}

#[test]
fn a_point_that_all_clients_have_left_is_invalid() {
    let left = changed(|p| p.record.totals.clients_participating = 0);
    check_rule("clients_lost", &left, &changed(|_| ()));
    assert!(left.verdict().warnings.is_empty(), "said once");
}

#[test]
fn a_closed_load_with_less_than_a_fifth_of_its_clients_is_another_load() {
    let left = |stayed| {
        let mut point = PointBuilder::closed(100).build();
        point.record.totals.clients_participating = stayed;
        point
    };
    check_rule("clients_lost", &left(19), &left(20));
    let text = |stayed| finding::text(&left(stayed).verdict().reasons[0].rule);
    assert!(text(19).starts_with("19 of 100 clients took part"), "{}", text(19));
    assert!(text(0).starts_with("none of 100 clients took part"), "{}", text(0));
    let open = changed(|p| p.record.totals.clients_participating = 1);
    assert!(open.verdict().valid, "the others' share was sent");
}

#[test]
fn a_number_of_ops_was_held_when_the_last_left_in_time() {
    let point = |late_ms: u64| {
        changed(move |p| {
            p.record.ops = Some(10);
            let begin = p.record.warm_up_ns;
            p.record.totals.last_due = begin + Nanos::from_secs(10);
            p.record.totals.last_sent = begin + Nanos::from_millis(10_000 + late_ms);
        })
    };
    check_counted_out(NotCounted::NotHeld, &point(600), &point(400));
}

#[test]
fn clients_that_left_were_there_for_a_part_of_the_window() {
    let present = |ratio: f64| {
        let mut point = PointBuilder::closed(32).build();
        point.record.totals.clients_participating = 24;
        let window_ns = point.record.measured_ns.0 as f64;
        point.record.totals.piece_ns_total = (32.0 * ratio * window_ns) as u64;
        point
    };
    check_rule("closed_loop", &present(0.72), &present(0.76));
    check_rule("closed_loop", &present(1.021), &present(0.9));
}

#[test]
fn a_closed_loop_must_account_for_its_clients() {
    let present = |ratio: f64| {
        let mut point = PointBuilder::closed(32).build();
        let window_ns = point.record.measured_ns.0 as f64;
        // They think for a third of it.
        let think_ns = (32.0 * ratio * window_ns / 3.0) as u64;
        point.record.totals.piece_ns_total = 2 * think_ns;
        point.record.totals.think_ns_total = think_ns;
        point
    };
    check_rule("closed_loop", &present(0.979), &present(0.981));
    check_rule("closed_loop", &present(1.021), &present(1.019));
}

#[test]
fn a_server_that_stands_still_at_a_border_of_the_window_is_no_fault_of_the_clients() {
    let present = |ratio: f64| {
        let mut point = PointBuilder::closed(32).build();
        let window_ns = point.record.measured_ns.0;
        // One op in a hundred takes a twentieth of the window: at any instant a client is likely in
        // one of these.
        let times = &mut point.times.as_mut().unwrap().response;
        let n = times.len() as u32;
        times.reset();
        times.record_n(1_000_000, n - n / 100).unwrap();
        times.record_n(window_ns / 20, n / 100).unwrap();
        point.record.totals.piece_ns_total = (32.0 * ratio * window_ns as f64) as u64;
        point.record.totals.think_ns_total = 0;
        point
    };
    check_rule("closed_loop", &present(1.075), &present(1.05));
    check_rule("closed_loop", &present(0.925), &present(0.95));
}

#[test]
fn a_window_of_a_number_of_ops_ends_with_clients_that_stand_by() {
    let half_there = |ops: Option<u64>| {
        let mut point = PointBuilder::closed(32).build();
        point.record.totals.piece_ns_total /= 2;
        point.record.ops = ops;
        point
    };
    check_rule("closed_loop", &half_there(None), &half_there(Some(1)));
}

/// Eight clients that are 35 % off: random think times may do that where a window holds four
/// cycles.
#[test]
fn what_chance_does_to_the_think_times_of_few_clients_is_no_fault_of_theirs() {
    let thinking = |distribution| {
        let mut point = PointBuilder::closed(8).build();
        let Load::Closed { think, .. } = &mut point.record.load else { unreachable!() };
        think.distribution = distribution;
        point.record.totals.pieces = 32;
        point.record.totals.piece_ns_total = point.record.measured_ns.0 * 8 * 65 / 100;
        point
    };
    let [constant, exponential] =
        [ThinkDistribution::Constant, ThinkDistribution::Exponential].map(thinking);
    check_rule("closed_loop", &constant, &exponential);
}

#[test]
fn few_cycles_per_client_widen_the_closed_loops_limit() {
    let cycles = |pieces| {
        let mut point = PointBuilder::closed(32).build();
        point.record.totals.pieces = pieces;
        point.record.totals.piece_ns_total =
            (32.0 * 0.9 * point.record.measured_ns.0 as f64) as u64;
        point.record.totals.think_ns_total = 0;
        point
    };
    check_rule("closed_loop", &cycles(32 * 11), &cycles(32 * 9));
}

/// A page with a think time of three eighths of the window, among nine without.
#[test]
fn a_long_think_time_of_a_journey_may_be_cut_by_the_borders() {
    let cut = |present: f64| {
        let mut point = PointBuilder::closed(32).build();
        let window_ns = point.record.measured_ns.0 as f64;
        let totals = &mut point.record.totals;
        totals.pieces = 32 * 10;
        totals.journeys.begun = 32;
        totals.piece_ns_total = 0;
        totals.think_ns_total = (32.0 * present * window_ns) as u64;
        let cycle_ns = 3.0 * window_ns / 8.0;
        totals.cycle_ns_squares = totals.think_ns_total as f64 * cycle_ns;
        point
    };
    check_rule("closed_loop", &cut(0.6), &cut(0.65));
    let mut without = cut(0.65);
    without.record.totals.cycle_ns_squares = 0.0;
    check_rule("closed_loop", &without, &cut(0.65));
}

#[test]
fn a_loop_without_a_finished_piece_is_judged_by_its_ops() {
    // Each client does 1,000 ops a second, so it is at work for nine tenths of the window.
    let thinking = |share_of_window: f64| {
        let mut point = PointBuilder::closed(32).response_ns(900_000).build();
        point.record.totals.pieces = 0;
        let window_ns = point.record.measured_ns.0 as f64;
        if let Load::Closed { think, .. } = &mut point.record.load {
            think.mean = Nanos((share_of_window * window_ns) as u64);
        }
        point
    };
    check_rule("closed_loop", &thinking(0.07), &thinking(0.09));
    // Three of the 32 clients and a bit are missing.
    let lost = |connections: u64| {
        let mut point = thinking(0.07);
        point.record.totals.errors.insert("transport".to_owned(), connections);
        point
    };
    check_rule("closed_loop", &lost(3), &lost(4));
}

/// The method's mix, and the measured one.
fn three_gets_to_a_head(p: &mut TestPoint, gets: OpCounts, heads: OpCounts) {
    p.started.op_names.0.push("head".to_owned());
    p.started.op_shares = Some(vec![75.0, 25.0]);
    p.record.totals.ops.extend([("get".to_owned(), gets), ("head".to_owned(), heads)]);
}

#[test]
fn each_op_keeps_its_share_of_the_mix() {
    let mix = |get: u64, head: u64| {
        changed(move |p| {
            let counts = |count| OpCounts { count, ..OpCounts::default() };
            three_gets_to_a_head(p, counts(get), counts(head));
        })
    };
    // One percentage point of 30,000 ops is 300.
    check_rule("op_mix", &mix(22_800, 7_200), &mix(22_790, 7_210));
    // Three points off in 300 ops is within chance.
    assert!(!mix(216, 84).reasons().contains(&"op_mix"));
}

#[test]
fn the_op_furthest_beyond_what_may_be_is_named() {
    let named = |counts: [u64; 3]| {
        let point = changed(|p| {
            p.started.op_names.0 = ["half", "rest", "rare"].map(str::to_owned).to_vec();
            p.started.op_shares = Some(vec![50.0, 49.0, 1.0]);
            p.record.totals.ops.clear();
            for (name, count) in p.started.op_names.0.iter().zip(counts) {
                let counts = OpCounts { count, ..OpCounts::default() };
                p.record.totals.ops.insert(name.clone(), counts);
            }
        });
        let reasons = point.verdict().reasons;
        let mix = reasons.into_iter().find_map(|reason| match reason.rule {
            Rule::OpMix { op, percent, wanted_percent: expected_percent, .. } => {
                Some((op, percent, expected_percent))
            }
            _ => None,
        });
        mix.unwrap()
    };
    // Six points off, but within chance, against five beyond it.
    assert_eq!(named([132, 150, 18]), ("rare".to_owned(), 6.0, 1.0));
    // By points, not by the ratio to the allowed deviation.
    assert_eq!(named([240, 27, 33]), ("rest".to_owned(), 9.0, 49.0));
}

#[test]
fn ops_that_come_in_runs_may_be_further_from_their_share() {
    // 27 % of 30,000 ops, evenly or five seconds with few and five with many.
    let mix = |few: u32, many: u32| {
        changed(move |p| {
            let counts = |count| OpCounts { count, ..OpCounts::default() };
            three_gets_to_a_head(p, counts(21_900), counts(8_100));
            p.seconds = Some(PointTimes::from_seconds((0..30).map(|second| {
                let head = if second % 10 < 5 { few } else { many };
                let ops = [1_000 - head, head].map(|count| {
                    let mut times = OpTimes::new();
                    times.response.record_n(1_000_000, count).unwrap();
                    times
                });
                let start = Nanos::from_secs(u64::from(second));
                IntervalSlice {
                    length: Nanos::from_secs(1),
                    second,
                    phase: Phase::Measure,
                    start,
                    ops: ops.to_vec(),
                }
            })));
        })
    };
    check_rule("op_mix", &mix(270, 270), &mix(120, 420));
    check_rule("op_mix", &mix(264, 276), &mix(240, 300));
}

#[test]
fn the_mix_is_that_of_the_work_done_in_the_window() {
    let mix = |get: u64, head: u64| {
        changed(move |p| {
            // Of those due in the window, most were not sent in it.
            let counts =
                |ended_in_window| OpCounts { count: 5_000, ended_in_window, ..OpCounts::default() };
            three_gets_to_a_head(p, counts(get), counts(head));
        })
    };
    check_rule("op_mix", &mix(22_800, 7_200), &mix(22_500, 7_500));
}

#[test]
fn the_response_cap_is_on_the_mean_service_time() {
    let at = |response_ns| {
        let mut point = PointBuilder::open(1_000.0).response_ns(response_ns).build();
        point.suite.rules.response_cap_ms = Some(40.0);
        point
    };
    let (why, above) = at(41_000_000).not_counted().unwrap();
    assert_eq!((why, above.name()), (NotCounted::Cap, "response_cap"));
    assert!(finding::text(&above).contains("is above the suite's cap of 40 ms"), "{above:?}");
    assert_eq!(at(39_000_000).not_counted(), None);
}

#[test]
fn targets_share_the_load_evenly_where_the_suite_wants_it() {
    let shares = |first: u64, limit: Option<f64>| {
        changed(move |p| {
            p.suite.rules.target_share_max_ratio = limit;
            let target = |name: &str, done_in_window| TargetTotals {
                target: name.to_owned(),
                done_in_window,
                ..TargetTotals::default()
            };
            p.record.totals.per_target = vec![target("a", first), target("b", 30_000 - first)];
        })
    };
    // A twentieth of 15,000 ops is 750.
    check_rule("target_shares", &shares(14_240, Some(0.05)), &shares(14_250, Some(0.05)));
    check_rule("target_shares", &shares(15_760, Some(0.05)), &shares(10_000, None));
    let few = |first: u64| {
        let mut point = shares(first, Some(0.05));
        point.record.totals.per_target[1].done_in_window = 300 - first;
        point
    };
    // Of 150 ops, chance may move 3.29 standard errors: 28.
    check_rule("target_shares", &few(121), &few(123));
    let text = finding::text(&shares(12_000, Some(0.05)).verdict().reasons[0].rule);
    assert!(text.contains("ops where an equal part is 15,000: 20 % off (limit 5 %)"), "{text}");
}
