//! What a worker reports besides times: when replies arrived, its own use of time, bytes moved, and
//! the fate of ops whose link or point ended early. On the simulated clock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::clock::{self, RunDelay};
use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::interface::{LinkKind, Script, ScriptContext, Step, TimeKind};
use plimsoll_engine::recorder::{Arrived, Flight, Landing, Recorder, StreamState};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Assignment, Endpoint, Load, Pacing};
use plimsoll_model::event::{Interval, Phase, Times};
use plimsoll_model::outcome::{OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::{Echo, EchoSession};
use plimsoll_testkit::pipeline::Pipeline;
use plimsoll_testkit::sim::{SimDriver, Target};

use crate::support::{Observation, assignment, closed, open, run, run_until};

const MS: Nanos = Nanos::from_millis(1);
const MS_10: Nanos = Nanos::from_millis(10);

/// Every op is answered after 10 ms.
fn steady() -> SimDriver<impl Target> {
    SimDriver::new(|now: Nanos| Some(now + MS_10))
}

/// One client with a schedule of its own, evenly spaced: many ops in flight.
fn even(ops_per_s: f64) -> Assignment {
    assignment(open(ops_per_s, 1, Arrivals::PerClient, InterArrival::Uniform))
}

/// Stands still for 100 ms in the window.
fn stalled() -> SimDriver<impl Target> {
    let mut driver = steady();
    driver.stalls = vec![(Nanos::from_millis(5_005), Nanos::from_millis(5_105))];
    driver
}

fn receive_lag(observed: &Observation) -> Times {
    observed.merged(|i| &i.ops[0].receive_lag)
}

fn at_least(times: &Times, least: Nanos) -> u64 {
    times.count_between(least.0, u64::MAX)
}

fn sum(observed: &Observation, pick: impl Fn(&Interval) -> u64) -> u64 {
    observed.intervals.iter().map(pick).sum()
}

#[test]
fn a_stamped_reply_that_lay_alone_tells_how_late_it_was_read() {
    let mut driver = stalled();
    driver.stamps = true;
    let observed = run(&Echo, &assignment(closed(1, Nanos::ZERO)), 0, &mut driver);
    let totals = &observed.totals;
    assert_eq!((totals.arrived_stamped, totals.arrived_bounded), (totals.ops["echo"].count, 0));
    let lag = receive_lag(&observed);
    // Sent at a multiple of 10 ms, read when the stall was over.
    assert!(lag.max().abs_diff(95_000_000) < 200_000, "{}", lag.max());
    assert_eq!(at_least(&lag, MS), 1);
}

#[test]
fn an_op_that_follows_a_reply_read_late_may_have_had_to_wake_the_server() {
    let below_the_service_time = |load| {
        let mut driver = stalled();
        driver.stamps = true;
        let observed = run(&Echo, &assignment(load), 0, &mut driver);
        let low = observed.merged(|i| &i.ops[0].response_low);
        (low.count_between(0, 9_920_000), low.count_between(0, 9_800_000))
    };
    assert_eq!(below_the_service_time(closed(1, Nanos::ZERO)), (1, 0));
    assert_eq!(below_the_service_time(closed(1, Nanos::from_millis(1))), (1, 0));
}

#[test]
fn without_stamps_a_reply_came_after_the_socket_was_last_found_empty() {
    let observed = run(&Echo, &assignment(closed(1, Nanos::ZERO)), 0, &mut stalled());
    let totals = &observed.totals;
    assert_eq!((totals.arrived_stamped, totals.arrived_bounded), (0, totals.ops["echo"].count));
    assert!(receive_lag(&observed).max() >= 95_000_000, "{}", receive_lag(&observed).max());
}

#[test]
fn the_stamp_of_a_stream_with_more_in_flight_is_nobodys() {
    let mut driver = steady();
    driver.stamps = true;
    let totals = run(&Pipeline::default(), &even(1_000.0), 0, &mut driver).totals;
    // But for the last, with which nothing is in flight any more.
    assert_eq!((totals.arrived_stamped, totals.arrived_bounded), (1, 9_999));
}

#[test]
fn each_datagram_has_its_own_stamp() {
    let mut driver = stalled();
    driver.stamps = true;
    let datagrams = Pipeline { kind: LinkKind::Datagram, room: 256, ..Pipeline::default() };
    let observed = run(&datagrams, &even(1_000.0), 0, &mut driver);
    let totals = &observed.totals;
    assert_eq!((totals.arrived_stamped, totals.arrived_bounded), (10_000, 0));
    let lag = receive_lag(&observed);
    assert_eq!(
        (at_least(&lag, Nanos::from_millis(85)), at_least(&lag, Nanos::from_millis(80))),
        (10, 10)
    );
}

#[test]
fn of_datagrams_without_stamps_none_is_said_to_have_come_later_than_it_did() {
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(50)));
    driver.stalls = vec![(Nanos::from_millis(5_005), Nanos::from_millis(5_105))];
    let datagrams = Pipeline { kind: LinkKind::Datagram, room: 256, ..Pipeline::default() };
    let observed = run(&datagrams, &even(1_000.0), 0, &mut driver);
    // Fifty in flight when the stall began: more than one call receives, and none of them is
    // known to be newer than the stall.
    let late = at_least(&receive_lag(&observed), Nanos::from_millis(95));
    assert!(late >= 49, "{late}");
}

#[test]
fn a_connection_with_more_than_its_turn_allows_is_come_back_to() {
    // Over the end of the load: nothing that comes later brings the worker back.
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(300)));
    driver.stalls = vec![(Nanos::from_millis(11_990), Nanos::from_millis(12_400))];
    let small = Pipeline { room: 1_024, read_limit: 8, ..Pipeline::default() };
    let observed = run(&small, &even(1_000.0), 0, &mut driver);
    let totals = &observed.totals;
    assert_eq!((totals.due, totals.ops["first"].count, totals.unfinished), (10_000, 10_000, 0));
    // At once: the first of the 300 in flight when the stall began was sent 710 ms before its end.
    let responses = observed.intervals.iter().flat_map(|interval| &interval.ops);
    let longest = responses.map(|ops| ops.response.max()).max().unwrap();
    assert!(longest < Nanos::from_millis(715).0, "{longest}");
}

#[test]
fn replies_that_are_dropped_unread_end_their_ops_and_are_counted_as_moved() {
    let dropping = Pipeline { discards: true, room: 64, ..Pipeline::default() };
    let observed = run(&dropping, &even(500.0), 0, &mut steady());
    let totals = &observed.totals;
    assert_eq!((totals.due, totals.ops["first"].count, totals.unfinished), (5_000, 5_000, 0));
    assert_eq!(totals.wire_bytes_in, 8 * totals.done_in_window);
    assert!(observed.response().max() <= 10_020_000, "{}", observed.response().max());
}

#[test]
fn what_is_dropped_is_shown_to_nobody() {
    // Every other reply overtakes ten others. One that is read names its op; those that are dropped
    // end the ops in the order in which these were sent.
    let mut overtakes = false;
    let mut driver = SimDriver::new(|now: Nanos| {
        overtakes = !overtakes;
        Some(now + Nanos::from_millis(if overtakes { 10 } else { 30 }))
    });
    let dropping = Pipeline { discards: true, room: 64, ..Pipeline::default() };
    let observed = run(&dropping, &even(500.0), 0, &mut driver);
    assert_eq!((observed.totals.due, observed.totals.ops["first"].count), (5_000, 5_000));
    assert!(observed.response().min() >= 17_000_000, "{}", observed.response().min());
}

#[test]
fn a_service_time_lasts_from_the_send_to_the_reply() {
    let observed = run(&Echo, &even(50.0), 0, &mut steady());
    let service = observed.merged(|i| &i.ops[0].service);
    let bounds = 9_980_000..=10_020_000;
    assert!(service.len() > 400, "{}", service.len());
    assert!(bounds.contains(&service.min()) && bounds.contains(&service.max()), "{service:?}");
}

#[test]
fn bytes_are_counted_where_they_ended_and_on_the_wire() {
    let observed = run(&Echo, &assignment(closed(4, Nanos::ZERO)), 0, &mut steady());
    let totals = &observed.totals;
    let moved = 8 * totals.done_in_window;
    assert_eq!((totals.bytes_read, totals.bytes_written), (moved, moved));
    let target = &totals.per_target[0];
    assert_eq!((target.bytes_read, target.bytes_written), (moved, moved));
    assert_eq!(totals.wire_bytes_in, moved);
    assert!(totals.wire_bytes_out.abs_diff(moved) <= 32, "{}", totals.wire_bytes_out);
    let measured = |i: &Interval| if i.record.phase == Phase::Measure { i.record.done } else { 0 };
    assert_eq!(sum(&observed, measured), totals.done_in_window);
}

#[test]
fn an_op_of_the_warm_up_that_ends_in_the_window_is_none_of_its_times() {
    let mut driver = steady();
    driver.stalls = vec![(Nanos::from_millis(1_905), Nanos::from_millis(2_305))];
    let observed = run(&Echo, &assignment(closed(1, Nanos::ZERO)), 0, &mut driver);
    let late = |i: &Interval| TimeKind::FromWarmUp.times_in(&i.ops[0]).map_or(0, Times::len);
    assert_eq!(sum(&observed, late), 1);
    let window = |i: &Interval| match i.record.phase {
        Phase::Measure => i.ops[0].service.len(),
        _ => 0,
    };
    assert_eq!(sum(&observed, window) + 1, observed.totals.done_in_window);
}

#[test]
fn an_op_belongs_to_the_slice_in_which_it_ended() {
    // Sent before the stall, read a slice after that in which its reply came.
    let mut driver = steady();
    driver.stalls = vec![(Nanos::from_millis(5_205), Nanos::from_millis(5_795))];
    let observed = run(&Echo, &assignment(closed(1, Nanos::ZERO)), 0, &mut driver);
    let done_from = |millis: u64| {
        let of = |i: &&Interval| i.start == Nanos::from_millis(millis);
        observed.intervals.iter().find(of).unwrap().record.done
    };
    assert_eq!([5_000, 5_250, 5_500, 5_750].map(done_from), [21, 0, 0, 21]);
}

#[test]
fn a_worker_with_a_core_of_its_own_polls_for_a_reply_that_is_near_and_sleeps_otherwise() {
    let health = |reply: Nanos| {
        let mut task = assignment(closed(1, Nanos::ZERO));
        (task.pacing, task.own_cores) = (Pacing::Auto, true);
        task.phases.warm_up_ns = Nanos::ZERO;
        task.phases.measure_ns = Nanos::from_millis(200);
        let observed =
            run(&Echo, &task, 0, &mut SimDriver::new(move |now: Nanos| Some(now + reply)));
        let of = |pick: fn(&Interval) -> u64| sum(&observed, pick) as f64 / 200e6;
        let spent = (of(|i| i.health.empty_poll_ns), of(|i| i.health.sleep_ns));
        (spent, sum(&observed, |i| u64::from(i.health.wakeups > 0)))
    };
    let ((polled, slept), _) = health(MS);
    assert!(polled > 0.9 && slept < 0.05, "{polled} {slept}");
    let ((polled, slept), woke_in) = health(Nanos::from_millis(40));
    assert!((0.02..0.2).contains(&polled) && slept > 0.7, "{polled} {slept}");
    assert!(woke_in >= 2, "{woke_in}");
}

#[test]
fn every_interval_tells_how_much_waits_and_for_how_long_the_core_was_anothers() {
    let observed = run(&Echo, &even(125.0), 0, &mut steady());
    let waiting: Vec<u64> = observed.intervals.iter().map(|i| i.health.backlog_ops).collect();
    // 25 a second more than one client can do, for twelve seconds.
    assert!(waiting.iter().max().unwrap().abs_diff(300) <= 5, "{waiting:?}");
    let is_reported = RunDelay::of_this_thread().read().is_some();
    assert!(observed.intervals.iter().all(|i| i.health.run_delay_ns.is_some() == is_reported));
}

#[test]
fn every_interval_tells_how_long_it_was_and_how_much_of_the_core_the_worker_used_in_it() {
    let before = clock::thread_cpu();
    let mut driver = steady();
    driver.clock_step_ns = 7;
    let observed = run(&Echo, &even(100.0), 0, &mut driver);
    assert!(observed.intervals.iter().all(|i| i.health.clock_step_ns == 7));
    let spent = (clock::thread_cpu() - before).0;
    assert!(observed.intervals.iter().all(|i| i.health.wall_ns == (i.end - i.start).0));
    assert_eq!(sum(&observed, |i| i.health.wall_ns), observed.intervals.last().unwrap().end.0);
    let used = sum(&observed, |i| i.health.cpu_ns);
    assert!((1..=spent).contains(&used), "{used} ns of {spent} ns");
}

#[test]
fn the_lower_bound_of_a_response_has_no_late_send_of_the_generator_in_it() {
    let mut driver = stalled();
    driver.stamps = true;
    let datagrams = Pipeline { kind: LinkKind::Datagram, room: 256, ..Pipeline::default() };
    let observed = run(&datagrams, &even(1_000.0), 0, &mut driver);
    assert!(observed.response().max() > 109_000_000, "{}", observed.response().max());
    let low = observed.merged(|i| &i.ops[0].response_low);
    assert!(low.max() <= 10_020_000, "{}", low.max());
    // A hundred were late, and ten more were sent on time while these were in flight: what the
    // server made them wait for may have been our bunch.
    let lowered = low.count_between(0, 9_500_000);
    assert!(lowered.abs_diff(110) <= 1, "{lowered}");
}

#[test]
fn a_socket_that_breaks_while_it_is_given_bytes_fails_its_op_at_once_and_is_opened_again() {
    let mut driver = steady();
    driver.breaks = Some((Nanos::from_secs(5), Nanos::from_millis(5_100)));
    let observed = run(&Echo, &assignment(closed(1, Nanos::ZERO)), 0, &mut driver);
    // One attempt every 10 ms.
    let failed = observed.totals.errors["transport"];
    assert!((9..=11).contains(&failed), "{failed}");
    assert!(
        observed.totals.done_in_window.abs_diff(990) <= 3,
        "{}",
        observed.totals.done_in_window
    );
    assert_eq!(observed.totals.connects, failed);
}

#[test]
fn a_client_that_leaves_closes_its_connection_and_ends_the_wait_for_its_ops() {
    let fragile = Pipeline { room: 64, gives_up: Some((1, 600)), ..Pipeline::default() };
    for clients in [1, 2] {
        let task = assignment(open(100.0, clients, Arrivals::PerClient, InterArrival::Uniform));
        let mut driver = steady();
        let observed = run(&fragile, &task, 0, &mut driver);
        assert_eq!((observed.lost.len(), driver.closes), (1, 1));
        let last = observed.intervals.last().unwrap().end;
        assert!(last <= Nanos::from_millis(12_020), "{last:?}");
    }
}

#[test]
fn clients_take_targets_and_sources_in_turn() {
    let mut task = assignment(closed(6, Nanos::ZERO));
    let address = |last: u8, port: u16| SocketAddr::from(([127, 0, 0, last], port));
    task.endpoints = [1, 2]
        .map(|port| Endpoint { target: port.to_string(), address: address(1, port), unix: None })
        .to_vec();
    task.sources = [1, 2, 3].map(|last| address(last, 0).ip()).to_vec();
    let mut driver = steady();
    let observed = run(&Echo, &task, 0, &mut driver);
    let mut routes: Vec<_> =
        driver.routes.iter().map(|route| (route.from.unwrap(), route.to.port())).collect();
    routes.sort_unstable();
    let each = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)];
    assert_eq!(routes, each.map(|(last, port)| (address(last, 0).ip(), port)));
    let done: Vec<u64> = observed.totals.per_target.iter().map(|of| of.done_in_window).collect();
    assert!(done.len() == 2 && done[0].abs_diff(done[1]) <= 3 && done[0] > 1_000, "{done:?}");
}

#[test]
fn a_point_that_is_stopped_early_counts_what_came_due_until_then() {
    let stop = AtomicBool::new(false);
    let reply = |now: Nanos| {
        stop.store(now >= Nanos::from_secs(5), Ordering::Relaxed);
        Some(now + MS_10)
    };
    let mut driver = SimDriver::new(reply);
    // What comes due in it is noticed at its end, which is the end of the point.
    driver.stalls = vec![(Nanos::from_millis(5_000), Nanos::from_millis(5_500))];
    let observed = run_until(&stop, &Echo, &even(50.0), 0, &mut driver);
    let totals = &observed.totals;
    let ended = totals.ops["echo"].count;
    assert_eq!(totals.due, totals.not_sent + totals.unfinished + ended);
    assert!(totals.due.abs_diff(175) <= 3, "{}", totals.due);
    assert!(observed.intervals.last().unwrap().end < Nanos::from_secs(6));
}

/// After each op requests a sleep until an instant that has passed.
struct Sleeper {
    sleeps: bool,
}

impl Script for Sleeper {
    type Op = u64;

    fn next(&mut self, context: ScriptContext) -> Step<u64> {
        self.sleeps = !self.sleeps;
        if self.sleeps { Step::SleepUntil(Nanos::ZERO) } else { Step::Issue(context.index) }
    }
}

struct Sleepers;

impl Workload for Sleepers {
    fn op_names(&self) -> OpNames {
        Echo.op_names()
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        context.drive(|client| (EchoSession::new(client), Sleeper { sleeps: false }));
    }
}

#[test]
fn a_script_that_sleeps_until_an_instant_that_has_passed_is_asked_again_at_once() {
    let observed = run(&Sleepers, &assignment(closed(2, Nanos::ZERO)), 0, &mut steady());
    assert!(
        observed.totals.done_in_window.abs_diff(2_000) <= 2,
        "{}",
        observed.totals.done_in_window
    );
}

#[test]
fn clients_of_a_closed_load_begin_spread_over_the_start_delay() {
    let mut load = closed(64, Nanos::ZERO);
    if let Load::Closed { start_delay_ns, .. } = &mut load {
        *start_delay_ns = Nanos::from_secs(2);
    }
    let mut early = 0;
    let mut driver = SimDriver::new(|now: Nanos| {
        early += u32::from(now < Nanos::from_secs(1));
        Some(now + Nanos::from_secs(3))
    });
    run(&Echo, &assignment(load), 0, &mut driver);
    drop(driver);
    assert!((16..=48).contains(&early), "{early} of 64 in the first half");
}

#[test]
fn coalescing_does_not_hold_a_closed_load_of_one_op_per_client_to_its_grid() {
    let mut task = assignment(closed(1, Nanos::ZERO));
    task.pacing = Pacing::Coalesce;
    let observed = run(&Echo, &task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS)));
    assert!(
        observed.totals.done_in_window.abs_diff(10_000) <= 2,
        "{}",
        observed.totals.done_in_window
    );
}

#[test]
fn an_unexpected_status_is_counted_with_the_one_that_was_expected() {
    let task = assignment(closed(1, Nanos::ZERO));
    let names = OpNames(vec!["get".to_owned(), "put".to_owned()]);
    let fresh = FreshTimes::on_the_spot(2);
    let mut recorder = Recorder::new(0, task.phases, names, &["a".to_owned()], fresh);
    let at = Nanos::from_secs(3);
    while recorder.boundary() <= at {
        recorder.roll(recorder.boundary());
    }
    let (kind, status) = (OpKind(1), OpStatus::Unexpected { expected: 200, actual: 404 });
    let outcome = Outcome { kind, status, bytes_read: 0, bytes_written: 0, ambiguous: true };
    let flight = Flight {
        kind,
        due: at,
        free: at,
        sent: at,
        server_wakeup: Nanos::ZERO,
        late_max: Nanos::ZERO,
        stream: StreamState::default(),
    };
    let landing = Landing { done: at, arrived: Arrived::Never, late_max: Nanos::ZERO };
    recorder.record(flight, &outcome, 0, landing);
    recorder.record(flight, &outcome, 0, landing);
    let totals = recorder.into_totals(Nanos::MAX);
    let unexpected = &totals.unexpected[0];
    assert_eq!((unexpected.op.as_str(), unexpected.count), ("put", 2));
    assert_eq!((unexpected.expected, unexpected.actual), (200, 404));
    assert_eq!((totals.ops["put"].errors, totals.per_target[0].errors), (2, 2));
    assert_eq!(totals.ambiguous, 2);
}
