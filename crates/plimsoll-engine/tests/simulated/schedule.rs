//! The whole schedule on a simulated clock and target: every time is known exactly.

use plimsoll_model::assignment::{Assignment, Load, Pacing, WINDOW_SLICES, WorkerGroup};
use plimsoll_model::event::{SliceCounts, WorkerTotals};
use plimsoll_model::outcome::ClientCounts;
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::sim::{SimDriver, Target};

use crate::support::{Observation, assignment, closed, open};

const MS: Nanos = Nanos::from_millis(1);

fn run(assignment: &Assignment, worker: u32, driver: &mut SimDriver<impl Target>) -> Observation {
    crate::support::run(&Echo, assignment, worker, driver)
}

/// Off by at most the histogram's resolution.
fn assert_close(measured: u64, expected: Nanos) {
    let limit = expected.0 / 1_000 + 1;
    assert!(measured.abs_diff(expected.0) <= limit, "{measured} ns, expected {expected:?}");
}

#[test]
fn a_constant_delay_is_measured_to_the_resolution_of_the_histogram() {
    for arrivals in [Arrivals::PerClient, Arrivals::Shared] {
        for inter_arrival in [InterArrival::Uniform, InterArrival::Exponential] {
            let task = assignment(open(1_000.0, 100, arrivals, inter_arrival));
            let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos(10_000_000)));
            let observed = run(&task, 0, &mut driver);
            let response = observed.response();
            assert_eq!(response.len(), observed.totals.due, "{arrivals:?} {inter_arrival:?}");
            assert_eq!(driver.begins, 1, "workers begin together");
            assert!(observed.totals.due.abs_diff(10_000) < 400, "{}", observed.totals.due);
            assert!(observed.totals.done_in_window.abs_diff(observed.totals.due) < 30);
            assert_close(response.value_at_quantile(0.5), MS_10);
            if inter_arrival == InterArrival::Uniform {
                assert_eq!(observed.totals.due, 10_000);
                assert_close(response.value_at_quantile(0.99), MS_10);
                assert_close(response.max(), MS_10);
            }
        }
    }
}

const MS_10: Nanos = Nanos::from_millis(10);

#[test]
fn response_percentiles_are_those_the_target_imposed() {
    // Request n takes n mod 1000 · 50 µs: every percentile is known.
    let mut count = 0u64;
    let mut driver = SimDriver::new(move |now: Nanos| {
        count += 1;
        Some(now + Nanos(count % 1_000 * 50_000))
    });
    let task = assignment(open(1_000.0, 200, Arrivals::Shared, InterArrival::Uniform));
    let observed = run(&task, 0, &mut driver);
    let response = observed.response();
    assert_eq!(response.len(), 10_000);
    for (quantile, expected_us) in [(0.5, 24_950), (0.95, 47_450), (0.99, 49_450)] {
        assert_close(response.value_at_quantile(quantile), Nanos::from_micros(expected_us));
    }
}

#[test]
fn a_stall_delays_every_op_that_was_due_in_it() {
    // Stopped for 1.4 s once, at 100 ops/s: 140 of 1,000 ops wait, evenly from 1.4 s down to 0.
    let (from, to) = (Nanos::from_secs(5), Nanos::from_millis(6_400));
    let stall = |now: Nanos| Some(if now >= from && now < to { to } else { now } + MS);
    let task = assignment(open(100.0, 8, Arrivals::PerClient, InterArrival::Uniform));
    let observed = run(&task, 0, &mut SimDriver::new(stall));
    let response = observed.response();
    assert_eq!(response.len(), 1_000);
    // The tenth-worst of 1,000 was due 0.09 s after the stall began.
    let p99 = response.value_at_quantile(0.99) as f64;
    assert!((p99 / 1.301e9 - 1.0).abs() < 0.05, "{p99}");
    assert!(response.value_at_quantile(0.85) < 50_000_000);
}

/// What all workers of all agents send, each on a clock of its own: the workers are shared out to
/// the agents evenly.
fn sent_by(task: &Assignment, agents: u32) -> Vec<u64> {
    let count = task.workers / agents;
    let group = |agent| Some(WorkerGroup { first: agent * count, count, own_endpoints: false });
    let of_agent = |agent| {
        let task = Assignment { crew: group(agent), ..task.clone() };
        let workers = task.own_workers();
        workers.flat_map(move |worker| {
            run(&task, worker, &mut SimDriver::new(|now: Nanos| Some(now + MS))).requests
        })
    };
    let mut sent: Vec<u64> = (0..agents).flat_map(of_agent).collect();
    sent.sort_unstable();
    sent
}

#[test]
fn any_number_of_workers_and_agents_send_the_same_ops() {
    for (load, ops) in [
        (open(2_000.0, 16, Arrivals::PerClient, InterArrival::Exponential), None),
        (open(2_000.0, 16, Arrivals::PerClient, InterArrival::Uniform), None),
        (open(2_000.0, 16, Arrivals::Shared, InterArrival::Exponential), None),
        (open(2_000.0, 16, Arrivals::Shared, InterArrival::Uniform), None),
        (open(2_000.0, 16, Arrivals::Shared, InterArrival::Exponential), Some(15_001)),
        (closed(16, Nanos::from_millis(5)), None),
    ] {
        let mut task = assignment(load);
        if ops.is_some() {
            // Without a warm-up a worker's part of the ops is that of the schedule's first.
            (task.phases.warm_up_ns, task.phases.ops) = (Nanos::ZERO, ops);
        }
        let one = sent_by(&task, 1);
        assert!(one.len() > 15_000);
        assert!(ops.is_none_or(|ops| one.len() as u64 == ops));
        for (workers, agents) in [(2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (16, 2)] {
            task.workers = workers;
            let many = sent_by(&task, agents);
            assert!(many == one, "{:?}, {workers} workers, {agents} agents", task.load);
        }
    }
}

#[test]
fn a_number_of_ops_is_shared_out_whole_to_any_number_of_agents() {
    for load in [
        open(2_000.0, 16, Arrivals::PerClient, InterArrival::Exponential),
        open(2_000.0, 16, Arrivals::Shared, InterArrival::Exponential),
        closed(16, MS),
    ] {
        let mut task = assignment(load);
        (task.phases.warm_up_ns, task.phases.ops) = (Nanos::ZERO, Some(1_003));
        for (workers, agents) in [(1, 1), (4, 1), (4, 2), (4, 4)] {
            task.workers = workers;
            assert_eq!(sent_by(&task, agents).len(), 1_003, "{:?} {agents}", task.load);
        }
    }
}

#[test]
fn the_closed_loop_keeps_its_identity() {
    let task = assignment(closed(20, Nanos::from_millis(40)));
    let observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS_10)));
    let totals = &observed.totals;
    let pieces = totals.pieces as f64;
    let x = pieces / 10.0;
    let cycle = (totals.piece_ns_total + totals.think_ns_total) as f64 / pieces / 1e9;
    assert!((x * cycle / 20.0 - 1.0).abs() < 0.02, "X {x}, R + Z {cycle}");
    assert!((x / 400.0 - 1.0).abs() < 0.05, "{x}");
}

/// Twenty clients that think for 40 ms and wait for 10 take 50 ms for a piece.
#[test]
fn cycles_are_counted_in_the_slices_of_the_window() {
    let task = assignment(closed(20, Nanos::from_millis(40)));
    let observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS_10)));
    let (totals, slices) = (&observed.totals, &observed.totals.slices);
    assert_eq!(slices.len(), WINDOW_SLICES);
    let sum = |of: fn(&SliceCounts) -> u64| slices.iter().map(of).sum::<u64>();
    assert_eq!(sum(|slice| slice.pieces), totals.pieces);
    assert_eq!(sum(|slice| slice.done), totals.done_in_window);
    let spent_ns = totals.piece_ns_total + totals.think_ns_total;
    assert_eq!(sum(|slice| slice.cycle_ns_total), spent_ns);
    let even = totals.pieces / WINDOW_SLICES as u64;
    assert!(slices.iter().all(|slice| slice.pieces.abs_diff(even) < even / 2), "{slices:?}");
}

/// One of two clients has no reply from before the window until after it.
#[test]
fn a_client_that_ends_nothing_in_the_window_adds_its_wait() {
    let task = assignment(closed(2, Nanos::ZERO));
    let window_end = task.phases.window_end();
    let mut first = true;
    let reply = move |now: Nanos| {
        Some(if std::mem::take(&mut first) { window_end + MS_10 } else { now + MS_10 })
    };
    let task = Assignment { op_timeout: Nanos::from_secs(60), ..task };
    let totals = run(&task, 0, &mut SimDriver::new(reply)).totals;
    let cycles_ns: u64 = totals.slices.iter().map(|slice| slice.cycle_ns_total).sum();
    // From the start of the point for the one, from the start of the window for the other.
    let [waited_ns, worked_ns] = [window_end, task.phases.measure_ns].map(|it| it.0);
    assert!(cycles_ns.abs_diff(waited_ns + worked_ns) < 2 * MS_10.0, "{cycles_ns}");
}

#[test]
fn what_each_client_got_done_adds_up_to_the_windows_work() {
    let mut task = assignment(closed(3, Nanos::ZERO));
    let observed = |task: &Assignment, worker| {
        run(task, worker, &mut SimDriver::new(|now: Nanos| Some(now + MS_10)))
    };
    assert!(observed(&task, 0).totals.per_client.is_empty(), "nobody asked");
    task.counts_clients = true;
    task.workers = 2;
    let totals = [observed(&task, 0).totals, observed(&task, 1).totals];
    let clients = |t: &WorkerTotals| t.per_client.iter().map(|c| c.client).collect::<Vec<u32>>();
    assert_eq!(totals.each_ref().map(clients), [vec![0, 2], vec![1]]);
    for totals in totals {
        let done = |counts: &ClientCounts| counts.done[0];
        assert_eq!(totals.per_client.iter().map(done).sum::<u64>(), totals.done_in_window);
        assert!(totals.per_client.iter().all(|counts| counts.done[0].abs_diff(1_000) <= 1));
    }
}

#[test]
fn a_slow_generator_shows_as_send_lag_and_in_the_response_time() {
    let mut driver = SimDriver::new(|now: Nanos| Some(now + MS));
    driver.send_cost = Nanos::from_micros(900);
    let task = assignment(open(1_000.0, 64, Arrivals::Shared, InterArrival::Exponential));
    let observed = run(&task, 0, &mut driver);
    assert!(observed.send_lag().value_at_quantile(0.99) > 4_000_000);
    assert!(observed.response().value_at_quantile(0.99) > 5_000_000);
}

#[test]
fn ops_that_find_no_free_client_wait_and_the_excess_is_counted_as_not_sent() {
    let mut load = open(1_000.0, 1, Arrivals::PerClient, InterArrival::Uniform);
    if let Load::Open { backlog_ops_max, .. } = &mut load {
        *backlog_ops_max = 50;
    }
    // One client, 10 ms a reply: 100 ops/s of the 1,000.
    let observed = run(&assignment(load), 0, &mut SimDriver::new(|now: Nanos| Some(now + MS_10)));
    let totals = &observed.totals;
    assert_eq!(totals.due, 10_000);
    assert_eq!(totals.done_in_window, 1_000);
    assert_eq!(totals.due, totals.not_sent + totals.ops["echo"].count);
    assert!(totals.not_sent > 8_900, "{}", totals.not_sent);
    assert_close(observed.response().max(), Nanos::from_millis(510));
}

#[test]
fn silence_is_a_timeout_and_the_drain_is_bounded() {
    let mut task = assignment(open(100.0, 200, Arrivals::PerClient, InterArrival::Uniform));
    task.op_timeout = Nanos::from_secs(1);
    let observed = run(&task, 0, &mut SimDriver::new(|_: Nanos| None));
    let totals = &observed.totals;
    assert_eq!(totals.done_in_window, 0);
    assert_eq!(totals.errors["timeout"], totals.ops["echo"].count);
    assert_eq!(totals.due, totals.ops["echo"].count + totals.not_sent);
    assert!((1..=5).contains(&observed.samples.len()));
    let last = observed.intervals.last().unwrap();
    assert!(last.end <= Nanos::from_millis(17_100), "{:?}", last.end);
}

#[test]
fn a_refused_connection_is_tried_again_after_a_pause() {
    struct Refusing;
    impl Target for Refusing {
        fn completion(&mut self, now: Nanos) -> Option<Nanos> {
            Some(now + MS)
        }
        fn refuses(&mut self, now: Nanos) -> bool {
            now < Nanos::from_secs(4)
        }
    }
    let observed = run(&assignment(closed(2, Nanos::ZERO)), 0, &mut SimDriver::new(Refusing));
    let refused = observed.totals.errors["transport"];
    // Two clients, 2 s of the window, one attempt every 10 ms.
    assert!(refused.abs_diff(400) <= 4, "{refused}");
    assert!(observed.totals.done_in_window > 15_000, "{}", observed.totals.done_in_window);
}

#[test]
fn every_pacing_sends_the_same_ops() {
    let mut sent = Vec::new();
    for pacing in [Pacing::Spin, Pacing::Precise, Pacing::Coalesce] {
        let mut task = assignment(open(500.0, 64, Arrivals::Shared, InterArrival::Exponential));
        task.pacing = pacing;
        let mut observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS)));
        let lag = Nanos(observed.send_lag().max());
        let limit = if pacing == Pacing::Coalesce { 400 } else { 2 };
        assert!(lag <= Nanos::from_micros(limit * 1_001 / 1_000 + 1), "{pacing:?} {lag:?}");
        observed.requests.sort_unstable();
        sent.push(observed.requests);
    }
    assert!(sent[0] == sent[1] && sent[1] == sent[2]);
}

#[test]
fn ops_that_come_due_while_the_generator_stands_still_are_not_forgotten() {
    // Over the end of the window, with nothing in flight: the last second is due all the same.
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos(50_000)));
    driver.stalls = vec![(Nanos::from_secs(11), Nanos::from_millis(12_500))];
    let task = assignment(open(1_000.0, 64, Arrivals::Shared, InterArrival::Uniform));
    let observed = run(&task, 0, &mut driver);
    assert_eq!((observed.totals.due, observed.totals.ops["echo"].count), (10_000, 10_000));
    assert!(observed.totals.done_in_window < 9_010, "{}", observed.totals.done_in_window);
    assert!(observed.lateness().max() > 1_400_000_000, "the generator's own lateness");
}

#[test]
fn coalescing_counts_what_is_due_between_the_last_tick_and_the_end() {
    let mut task = assignment(open(20_000.0, 64, Arrivals::Shared, InterArrival::Uniform));
    task.pacing = Pacing::Coalesce;
    let observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + Nanos(50_000))));
    assert_eq!((observed.totals.due, observed.totals.ops["echo"].count), (200_000, 200_000));
}

#[test]
fn a_wait_for_a_busy_client_is_not_the_generators_lateness() {
    // One client, 10 ms a reply, evenly spaced at 8 ms: every op waits, none because of the
    // generator.
    let task = assignment(open(125.0, 1, Arrivals::PerClient, InterArrival::Uniform));
    let observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS_10)));
    assert!(observed.send_lag().value_at_quantile(0.5) > 1_000_000_000);
    assert_eq!(observed.lateness().max(), 0);
}

#[test]
fn a_full_backlog_does_not_turn_away_ops_that_a_free_client_could_send() {
    let mut load = open(20_000.0, 64, Arrivals::Shared, InterArrival::Uniform);
    if let Load::Open { backlog_ops_max, .. } = &mut load {
        *backlog_ops_max = 1;
    }
    let mut task = assignment(load);
    // Eight ops come due per tick.
    task.pacing = Pacing::Coalesce;
    let observed = run(&task, 0, &mut SimDriver::new(|now: Nanos| Some(now + Nanos(50_000))));
    assert_eq!(observed.totals.not_sent, 0);
}

#[test]
fn bytes_behind_a_reply_that_was_recorded_as_good_are_an_error_of_its_op_once() {
    // 20 clients have an op every 200 ms each, a reply after 10 ms, and that again 20 ms later.
    let mut task = assignment(open(100.0, 20, Arrivals::PerClient, InterArrival::Uniform));
    task.phases.ramp_down_ns = Nanos::from_secs(1);
    let mut driver = SimDriver::new(|now: Nanos| Some(now + MS_10));
    driver.doubled_after = Some(Nanos::from_millis(20));
    let observed = run(&task, 0, &mut driver);
    let totals = &observed.totals;
    assert_eq!((totals.due, totals.ops["echo"].count), (1_000, 1_000));
    assert_eq!(totals.errors, [("surplus".to_owned(), 1_000)].into());
    assert_eq!((totals.ops["echo"].errors, totals.per_target[0].errors), (1_000, 1_000));
    assert_eq!(totals.warm_up_errors, [("surplus".to_owned(), 200)].into());
    assert!(totals.done_in_window >= 990, "{}: the replies did come", totals.done_in_window);
    assert_eq!(observed.response().len(), 1_000);
    assert_eq!(observed.samples, ["8 bytes too many"; 5]);
}

#[test]
fn a_window_of_a_number_of_ops_has_just_these_over_all_workers() {
    let loads = [
        closed(7, Nanos::ZERO),
        closed(7, MS),
        open(1_000.0, 70, Arrivals::Shared, InterArrival::Exponential),
        open(1_000.0, 70, Arrivals::PerClient, InterArrival::Exponential),
    ];
    for load in loads {
        for (ops, workers, warm_up) in [(1, 1, 0), (100, 1, 0), (101, 3, 0), (1_000, 2, 500)] {
            let mut task = assignment(load.clone());
            task.workers = workers;
            task.phases.warm_up_ns = Nanos::from_millis(warm_up);
            task.phases.measure_ns = Nanos::from_secs(3_600);
            task.phases.ops = Some(ops);
            let mut ended = Nanos::ZERO;
            let (mut due, mut done) = (0, 0);
            for worker in 0..workers {
                let mut driver = SimDriver::new(|now: Nanos| Some(now + MS_10));
                let observed = run(&task, worker, &mut driver);
                assert_eq!(observed.totals.not_sent, 0);
                due += observed.totals.due;
                done += observed.totals.done_in_window;
                ended = ended.max(observed.intervals.last().map_or(Nanos::ZERO, |last| last.end));
            }
            assert_eq!(due, ops, "{load:?} {workers}");
            // Those in flight when the window began end in it, too.
            let in_flight = if warm_up > 0 { 30 } else { 0 };
            assert!((ops..=ops + in_flight).contains(&done), "{done} of {ops}, {load:?}");
            assert!(ended < Nanos::from_secs(12), "as long as they take: {ended}, {load:?}");
        }
    }
}

#[test]
fn a_window_of_more_ops_than_it_has_time_for_ends_with_its_time() {
    let mut task = assignment(closed(2, Nanos::ZERO));
    task.phases.ops = Some(1_000_000);
    let mut driver = SimDriver::new(|now: Nanos| Some(now + MS_10));
    let observed = run(&task, 0, &mut driver);
    assert_eq!(observed.totals.done_in_window, 2_000);
    assert_eq!(observed.intervals.last().unwrap().end, Nanos::from_secs(12));
}
