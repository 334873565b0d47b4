//! Loads that change, on a simulated clock and target.

use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::event::Phase;
use plimsoll_model::load_shape::LoadShape;
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::sim::SimDriver;

use crate::support::{Observation, assignment, closed, open};

const MS: Nanos = Nanos::from_millis(1);

fn shaped(load: Load, text: &str) -> Assignment {
    let shape = LoadShape::parse(text, None).unwrap();
    let mut task = Assignment { shape: Some(shape), ..assignment(load) };
    let shape = task.shape.as_ref().unwrap();
    task.phases.measure_ns = shape.length();
    task
}

fn run(task: &Assignment, worker: u32, reply: impl Fn(Nanos) -> Nanos + 'static) -> Observation {
    crate::support::run(&Echo, task, worker, &mut SimDriver::new(move |now| Some(reply(now))))
}

#[test]
fn ops_belong_to_the_phase_in_which_they_were_due_and_ends_to_that_in_which_they_ended() {
    let load = open(100.0, 200, Arrivals::Shared, InterArrival::Uniform);
    let task = shaped(load, "hold 50 for 4s, pulse 100 for 2s, hold 50 for 4s");
    // Nothing is answered in the pulse and the second after it; the warm-up takes 2 s.
    let (from, to) = (Nanos::from_secs(6), Nanos::from_secs(9));
    let observed = run(&task, 0, move |now| if now >= from && now < to { to } else { now } + MS);
    let due: Vec<u64> = observed.windows.iter().map(|totals| totals.due).collect();
    assert_eq!(due, [200, 200, 200]);
    let done: Vec<u64> = observed.windows.iter().map(|totals| totals.done_in_window).collect();
    assert_eq!(done, [200, 0, 400], "the backlog ends in the phase after the pulse");
    let times = |window: usize| {
        let own = observed.intervals.iter().filter(|it| it.window == window);
        let own = own.filter(|it| it.record.phase != Phase::WarmUp && !it.ops.is_empty());
        own.map(|it| it.ops[0].response.len()).sum::<u64>()
    };
    assert_eq!([times(0), times(1), times(2)], [200, 200, 200], "times follow the due time");
    let in_flight = observed.intervals.iter().filter_map(|it| it.health.in_flight_ops);
    let waiting = observed.intervals.iter().map(|it| it.health.backlog_ops);
    assert!(in_flight.zip(waiting).map(|(a, b)| a + b).max() >= Some(200));
}

#[test]
fn the_schedule_of_a_shape_is_the_same_for_any_number_of_workers() {
    let load = open(100.0, 40, Arrivals::Shared, InterArrival::Exponential);
    let one = shaped(load, "ramp 0..100 in 5s, hold 3s");
    let due = |task: &Assignment, worker| -> Vec<u64> {
        run(task, worker, |now| now + MS).windows.iter().map(|totals| totals.due).collect()
    };
    let whole = due(&one, 0);
    let three = Assignment { workers: 3, ..one };
    let parts: Vec<Vec<u64>> = (0..3).map(|worker| due(&three, worker)).collect();
    let sums: Vec<u64> = (0..2).map(|phase| parts.iter().map(|part| part[phase]).sum()).collect();
    assert_eq!(sums, whole);
    assert!(whole[0].abs_diff(250) < 64 && whole[1].abs_diff(300) < 70, "{whole:?}");
}

#[test]
fn clients_come_with_a_rising_load_and_leave_after_their_piece_of_work() {
    let task = shaped(closed(4, Nanos::ZERO), "hold 1 for 4s, hold 4 for 2s, hold 2 for 4s");
    let observed = run(&task, 0, |now| now + Nanos::from_millis(100));
    let done: Vec<u64> = observed.windows.iter().map(|totals| totals.done_in_window).collect();
    // Ten a second for each client; two of them end one more after the load has fallen.
    assert!(done[0].abs_diff(40) <= 1 && done[1].abs_diff(80) <= 4, "{done:?}");
    assert!(done[2].abs_diff(80) <= 3, "{done:?}");
}
