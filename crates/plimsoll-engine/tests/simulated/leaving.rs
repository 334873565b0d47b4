//! Clients that cannot continue, the load after the window, and sessions that log off after it: on
//! the simulated clock.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::driver::Driver;
use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::event::Phase;
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::pipeline::{FAREWELL, Pipeline};
use plimsoll_testkit::sim::{SimDriver, Target};

use crate::support::streamed::{Second, Streamed};
use crate::support::{Observation, assignment, closed, open, run, run_until};

const MS_10: Nanos = Nanos::from_millis(10);

/// Every op is answered after 10 ms.
fn steady() -> SimDriver<impl Target> {
    SimDriver::new(|now: Nanos| Some(now + MS_10))
}

/// One op per client at a time, no think time; the clients below a number give up.
fn desktop(gives_up: Option<(u32, u64)>) -> Pipeline {
    Pipeline { room: 1, outstanding_max: 1, pieces: true, gives_up, ..Pipeline::default() }
}

fn ended(observed: &Observation) -> u64 {
    observed.totals.ops.values().map(|op| op.count).sum()
}

fn errors(observed: &Observation) -> u64 {
    observed.totals.errors.values().sum()
}

#[test]
fn a_client_that_leaves_a_closed_load_is_named_and_the_others_go_on() {
    // 100 ops/s each; clients 0 and 1 give up after their 500th reply, at 5 s of 12.
    let task = assignment(closed(4, Nanos::ZERO));
    let observed = run(&desktop(Some((2, 500))), &task, 0, &mut steady());
    let totals = &observed.totals;
    let named: Vec<u32> = observed.lost.iter().map(|(client, _)| *client).collect();
    assert_eq!(named, [0, 1]);
    assert_eq!(observed.lost[0].1, "gave up");
    assert_eq!(totals.clients_participating, 2);
    // The window is from 2 s to 12 s: 2 clients for 10 s, 2 for 3 s.
    assert!(totals.done_in_window.abs_diff(2_600) <= 8, "{}", totals.done_in_window);
    assert_eq!(totals.due, ended(&observed), "no further op came due for those that left");
    assert_eq!((totals.not_sent, errors(&observed)), (0, 0));
}

#[test]
fn what_a_leaving_client_had_in_flight_has_failed() {
    let fragile = Pipeline { room: 8, gives_up: Some((1, 300)), ..Pipeline::default() };
    let task = assignment(open(400.0, 2, Arrivals::PerClient, InterArrival::Uniform));
    let mut slow = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(22)));
    // 200 ops/s each: the 300th reply of client 0 comes within the warm-up.
    let observed = run(&fragile, &task, 0, &mut slow);
    assert_eq!(observed.lost.len(), 1);
    // Within the window: 600 replies, 3 s.
    let later = Pipeline { gives_up: Some((1, 600)), ..fragile };
    let observed = run(&later, &task, 0, &mut slow_again());
    let lost = observed.totals.errors["transport"];
    assert!((3..=8).contains(&lost), "{lost}");
    assert_eq!(observed.totals.due, ended(&observed) + observed.totals.not_sent);
    // Nobody issues the rest of its own schedule.
    assert!(observed.totals.not_sent.abs_diff(1_800) < 10, "{}", observed.totals.not_sent);
}

#[test]
fn a_client_that_can_go_no_further_still_has_the_reply_to_its_last_op() {
    // It knows when it has sent the 300th, 30 ms before the reply is whole.
    let mut driver = steady();
    driver.doubled_after = Some(Nanos::from_millis(20));
    let task = assignment(closed(2, Nanos::ZERO));
    let observed = run(&Streamed { sends_max: 300, second: Second::End }, &task, 0, &mut driver);
    assert_eq!((observed.lost.len(), errors(&observed)), (2, 0));
    assert_eq!((observed.requests.len(), driver.closes), (600, 2));
    assert_eq!(observed.totals.due, ended(&observed));
}

fn slow_again() -> SimDriver<impl Target> {
    SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(22)))
}

#[test]
fn in_a_shared_schedule_the_rest_of_the_pool_takes_over() {
    let fragile = Pipeline { room: 1, gives_up: Some((3, 50)), ..Pipeline::default() };
    let task = assignment(open(200.0, 8, Arrivals::Shared, InterArrival::Uniform));
    let observed = run(&Shared(fragile), &task, 0, &mut steady());
    assert_eq!((observed.lost.len(), observed.totals.clients_participating), (3, 5));
    assert_eq!((observed.totals.not_sent, errors(&observed)), (0, 0));
    assert_eq!(observed.totals.due, 2_000);
    assert_eq!(ended(&observed), 2_000);
}

/// The pipeline's script checks tickets, which clients of a pool do not keep apart.
struct Shared(Pipeline);

impl plimsoll_engine::workload::Workload for Shared {
    fn op_names(&self) -> plimsoll_model::outcome::OpNames {
        self.0.op_names()
    }
    fn run_worker(&self, context: plimsoll_engine::worker::WorkerContext<'_>) {
        self.0.run_shared(context);
    }
}

#[test]
fn when_all_have_left_an_open_schedule_goes_unsent_and_nothing_hangs() {
    for arrivals in [Arrivals::PerClient, Arrivals::Shared] {
        let fragile = Pipeline { room: 1, gives_up: Some((8, 1)), ..Pipeline::default() };
        let task = assignment(open(200.0, 8, arrivals, InterArrival::Uniform));
        let observed = run(&Shared(fragile), &task, 0, &mut steady());
        assert_eq!(
            (observed.lost.len(), observed.totals.clients_participating),
            (8, 0),
            "{arrivals:?}"
        );
        assert_eq!((observed.totals.due, observed.totals.not_sent), (2_000, 2_000), "{arrivals:?}");
    }
}

#[test]
fn one_that_leaves_after_the_window_took_part_to_its_end() {
    let mut task = assignment(closed(2, Nanos::ZERO));
    task.phases.ramp_down_ns = Nanos::from_secs(5);
    let observed = run(&desktop(Some((1, 1_300))), &task, 0, &mut steady());
    assert_eq!((observed.lost.len(), observed.totals.clients_participating), (1, 2));
}

/// With 5 s of ramp-down, against the same point without.
fn with_and_without_ramp_down(load: Load) -> (Observation, Observation) {
    let with_ramp = |ramp_down_ns: Nanos| {
        let mut task: Assignment = assignment(load.clone());
        task.phases.ramp_down_ns = ramp_down_ns;
        run(&Echo, &task, 0, &mut steady())
    };
    (with_ramp(Nanos::from_secs(5)), with_ramp(Nanos::ZERO))
}

#[test]
fn the_load_goes_on_through_the_ramp_down_and_does_not_count() {
    for load in [
        closed(4, Nanos::from_millis(15)),
        open(300.0, 16, Arrivals::PerClient, InterArrival::Exponential),
        open(300.0, 16, Arrivals::Shared, InterArrival::Uniform),
    ] {
        let (with, without) = with_and_without_ramp_down(load.clone());
        assert_eq!(with.totals, without.totals, "{load:?}");
        assert_eq!(with.response().len(), without.response().len(), "{load:?}");
        let after = |observed: &Observation| -> u64 {
            observed
                .intervals
                .iter()
                .filter(|i| i.record.phase == Phase::Drain)
                .map(|i| i.record.done)
                .sum()
        };
        assert!(after(&with) > 700 && after(&without) < 20, "{load:?}");
        let end = |observed: &Observation| observed.intervals.last().unwrap().end;
        assert!(end(&with) >= Nanos::from_secs(17) && end(&without) < Nanos::from_secs(13));
    }
}

#[test]
fn ops_not_sent_or_not_finished_count_with_their_age_and_are_no_errors() {
    // From the last second of the window on nothing is answered, and the four clients are soon
    // busy.
    let silent = |now: Nanos| (now < Nanos::from_secs(11)).then(|| now + MS_10);
    let task = assignment(open(10.0, 4, Arrivals::Shared, InterArrival::Uniform));
    let observed = run(&Echo, &task, 0, &mut SimDriver::new(silent));
    let totals = &observed.totals;
    assert_eq!((totals.unfinished, totals.not_sent, errors(&observed)), (4, 6, 0));
    assert_eq!((totals.due, totals.ops["echo"].count), (100, 90));
    let last = observed.intervals.last().unwrap();
    let unsent = last.ops[0].unsent.as_deref().unwrap();
    let age = |due_ms: u64| (last.end - Nanos::from_millis(due_ms)).0;
    let near = |actual: u64, age: u64| actual <= age && age - actual < age / 200;
    assert_eq!((unsent.len(), observed.response().len()), (6, 94));
    assert!(near(unsent.min(), age(11_900)) && near(unsent.max(), age(11_400)), "{unsent:?}");
    assert!(observed.response().max().abs_diff(age(11_000)) < age(11_000) / 200);
    assert!(near(totals.response_age_min.unwrap().0, age(11_900)), "{totals:?}");
    // A percentile among the ages lies above what is exact.
    assert!(totals.response_age_min.unwrap().0 <= unsent.value_at_quantile(0.01));
    assert_eq!(totals.service_age_min, Some(Nanos(age(11_300))));
}

#[test]
fn the_first_ops_are_those_sent_before_a_quarter_of_the_clients_were_busy() {
    let first = |load| {
        let totals = run(&Echo, &assignment(load), 0, &mut steady()).totals;
        (totals.first_ops, totals.first_service_ns_total)
    };
    // Ten at a time at most: all of them met a server with little to do, 12 s long.
    assert_eq!(first(open(100.0, 16, Arrivals::Shared, InterArrival::Uniform)).0, 1_200);
    // A hundred wait for each of the sixteen: the fifth op found four in flight.
    let (ops, total) = first(open(10_000.0, 16, Arrivals::Shared, InterArrival::Uniform));
    assert!(ops == 4 && total.abs_diff(40_000_000) < 1_000_000, "{ops} {total}");
    assert_eq!(first(closed(3, Nanos::ZERO)), (0, 0), "too few clients to tell");
}

#[test]
fn ops_due_in_the_window_have_the_ramp_down_and_the_drain_to_finish() {
    // Everything sent in the last second of the window is answered 7 s later.
    let late = |now: Nanos| {
        let slow = now >= Nanos::from_secs(11) && now < Nanos::from_secs(12);
        Some(now + if slow { Nanos::from_secs(7) } else { MS_10 })
    };
    let mut task = assignment(open(10.0, 64, Arrivals::Shared, InterArrival::Uniform));
    assert_eq!(run(&Echo, &task, 0, &mut SimDriver::new(late)).totals.unfinished, 10);
    task.phases.ramp_down_ns = Nanos::from_secs(3);
    assert_eq!(run(&Echo, &task, 0, &mut SimDriver::new(late)).totals.unfinished, 0);
}

/// Of the sessions of a load point, how many said farewell.
fn farewells(observed: &Observation) -> usize {
    observed.requests.iter().filter(|number| **number == FAREWELL).count()
}

#[test]
fn sessions_log_off_after_the_load_and_nothing_of_it_is_recorded() {
    let task = assignment(closed(3, Nanos::ZERO));
    let ends = |logs_off: bool| {
        let mut driver = steady();
        let observed = run(&Pipeline { logs_off, ..desktop(None) }, &task, 0, &mut driver);
        (observed, driver.now())
    };
    let ((silent, end), (polite, later)) = (ends(false), ends(true));
    assert_eq!((farewells(&silent), farewells(&polite)), (0, 3));
    assert_eq!(polite.requests[polite.requests.len() - 3..], [FAREWELL; 3]);
    assert_eq!(silent.totals, polite.totals);
    assert_eq!(later, end + MS_10, "until the replies have come");
    let end_of = |observed: &Observation| observed.intervals.last().unwrap().end;
    assert_eq!(end_of(&silent), end_of(&polite));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_longer_than_a_second() {
    let silent = |now: Nanos| (now < Nanos::from_secs(11)).then(|| now + MS_10);
    let mut driver = SimDriver::new(silent);
    let polite = Pipeline { logs_off: true, ..desktop(None) };
    let task = assignment(closed(2, Nanos::ZERO));
    let observed = run(&polite, &task, 0, &mut driver);
    assert_eq!((farewells(&observed), observed.totals.unfinished), (2, 2));
    let end = observed.intervals.last().unwrap().end;
    assert_eq!(driver.now(), end + Nanos::from_secs(1));
}

#[test]
fn neither_clients_that_have_left_nor_those_of_a_stopped_load_point_log_off() {
    let task = assignment(closed(4, Nanos::ZERO));
    let polite = Pipeline { logs_off: true, ..desktop(Some((3, 100))) };
    let observed = run(&polite, &task, 0, &mut steady());
    assert_eq!((observed.lost.len(), farewells(&observed)), (3, 1));
    let stop = AtomicBool::new(false);
    let mut driver = SimDriver::new(|now: Nanos| {
        stop.store(now >= Nanos::from_secs(5), Ordering::Relaxed);
        Some(now + MS_10)
    });
    let polite = Pipeline { logs_off: true, ..desktop(None) };
    let observed = run_until(&stop, &polite, &task, 0, &mut driver);
    assert_eq!(farewells(&observed), 0);
}
