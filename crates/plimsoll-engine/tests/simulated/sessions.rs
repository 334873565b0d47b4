//! Sessions that arrive on a schedule, on a simulated clock.

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_engine::workload::{WorkerContext, Workload};
use plimsoll_model::assignment::Assignment;
use plimsoll_model::outcome::{OpNames, Outcome};
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::{Echo, EchoSession};
use plimsoll_testkit::sim::SimDriver;

use crate::support::{assignment, open, run};

const MS: Nanos = Nanos::from_millis(1);
/// Of a session.
const OPS: u32 = 3;
/// Before each but the first.
const THINK: Nanos = Nanos::from_millis(100);

/// Three ops, with think times between them. An op holds the number of its session.
#[derive(Default)]
struct SessionScript {
    done: u32,
    in_flight: bool,
    thought: bool,
}

impl Script for SessionScript {
    type Op = u64;

    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, context: ScriptContext) -> Step<u64> {
        match self.done {
            _ if self.in_flight => Step::WaitForOutcome,
            OPS => {
                *self = Self::default();
                Step::Think
            }
            1.. if !self.thought => {
                self.thought = true;
                Step::ThinkFor(THINK)
            }
            _ => {
                self.in_flight = true;
                Step::Issue(context.index)
            }
        }
    }

    fn on_outcome(&mut self, _: Ticket, _: &Outcome, _: Nanos) {
        *self = Self { done: self.done + 1, ..Self::default() };
    }
}

struct Sessions;

impl Workload for Sessions {
    fn op_names(&self) -> OpNames {
        Echo.op_names()
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        context.drive(|client| (EchoSession::new(client), SessionScript::default()));
    }
}

fn sessions(rate: f64, clients: u32, inter_arrival: InterArrival) -> Assignment {
    assignment(open(rate, clients, Arrivals::Sessions, inter_arrival))
}

#[test]
fn a_session_begins_when_it_arrives_and_goes_on_after_its_think_times() {
    let task = sessions(100.0, 200, InterArrival::Uniform);
    let observed = run(&Sessions, &task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS)));
    // 100 sessions of three ops a second.
    assert!(observed.totals.due.abs_diff(3_000) <= 6, "{}", observed.totals.due);
    assert_eq!(observed.totals.not_sent, 0);
    let max = observed.response().max();
    assert!(max.abs_diff(MS.0) <= 10_000, "{max}");
    // Each session has its number for all of its ops.
    let mut of_first_second = observed.requests.clone();
    of_first_second.retain(|session| *session < 100);
    of_first_second.sort_unstable();
    assert_eq!(of_first_second, (0..300).map(|op| op / 3).collect::<Vec<u64>>());
}

#[test]
fn sessions_that_arrive_in_a_stall_wait_for_its_end() {
    // 2 s long: of 100 sessions/s 200 arrive in it. Those under way wait too, with one op each.
    let (from, to) = (Nanos::from_secs(5), Nanos::from_secs(7));
    let stall = |now: Nanos| Some(if now >= from && now < to { to } else { now } + MS);
    let task = sessions(100.0, 400, InterArrival::Uniform);
    let observed = run(&Sessions, &task, 0, &mut SimDriver::new(stall));
    let response = observed.response();
    // 200 first ops, and one of each of the 20 sessions that had begun and not ended.
    let slow = response.count_between(10 * MS.0, u64::MAX);
    assert!(slow.abs_diff(220) <= 3, "{slow}");
    assert!((response.max() as f64 / 2.001e9 - 1.0).abs() < 0.01, "{}", response.max());
    let sum: f64 = response
        .iter_recorded()
        .filter(|step| step.value_iterated_to() > 10 * MS.0)
        .map(|step| step.value_iterated_to() as f64 * step.count_at_value() as f64)
        .sum();
    // From 2 s down to 0, evenly, for 200 of them; 20 more in its first tenth of a second.
    let expected = 200.0 * 1e9 + 20.0 * 1.95e9;
    assert!((sum / expected - 1.0).abs() < 0.02, "{sum} {expected}");
}

#[test]
fn sessions_wait_for_a_client_and_those_that_find_none_are_counted() {
    // A session lasts 203 ms: two clients make ten a second. Twenty arrive.
    let task = sessions(20.0, 2, InterArrival::Uniform);
    let observed = run(&Sessions, &task, 0, &mut SimDriver::new(|now: Nanos| Some(now + MS)));
    let totals = &observed.totals;
    assert!(totals.not_sent > 0);
    let begun = observed.requests.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
    // Of 12 s: warm-up and window.
    assert!(begun.abs_diff(12 * 20 / 2) <= 4, "{begun}");
    assert!((begun + totals.not_sent).abs_diff(12 * 20) <= 4, "{begun} {}", totals.not_sent);
    // First ops wait longer and longer; that is no delay of the generator.
    assert!(observed.response().max() > 3_000_000_000, "{}", observed.response().max());
    assert!(observed.lateness().max() < 1_000_000, "{}", observed.lateness().max());
}

#[test]
fn any_number_of_workers_makes_the_same_sessions() {
    let sent = |workers: u32| {
        let mut task = sessions(200.0, 400, InterArrival::Exponential);
        task.workers = workers;
        let of_worker = |worker| {
            let mut driver = SimDriver::new(|now: Nanos| Some(now + MS));
            run(&Sessions, &task, worker, &mut driver).requests
        };
        let mut all: Vec<u64> = (0..workers).flat_map(of_worker).collect();
        all.sort_unstable();
        all
    };
    let one = sent(1);
    assert!(one.len() > 6_500, "{}", one.len());
    assert_eq!(sent(2), one);
    assert_eq!(sent(3), one);
}
