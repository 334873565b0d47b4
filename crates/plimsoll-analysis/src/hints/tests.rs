use plimsoll_model::event::{
    CoarseTimes, OpTimes, PartWaits, Pause, PointRecord, ResourceUse, Signs, TargetTotals,
};
use plimsoll_model::units::Nanos;

use super::*;
use crate::testing::PointBuilder;

const MS: u64 = 1_000_000;
/// Of the window of a built point.
const SECONDS: f64 = 30.0;

/// A healthy point of 30,000 ops, its ops and its counters.
struct Point {
    record: PointRecord,
    times: OpTimes,
}

impl Point {
    fn healthy() -> Self {
        let point = PointBuilder::open(1_000.0).build();
        let mut point = Self { record: point.record, times: point.times.unwrap() };
        point.signs().workers = 1;
        point.signs().kept_connections = CoarseTimes(vec![(MS, 30_000)]);
        point
    }

    fn signs(&mut self) -> &mut Signs {
        &mut self.record.totals.signs
    }

    /// A counter rose by `by` in the window.
    fn rose(mut self, name: &str, by: f64) -> Self {
        let rate = by / SECONDS;
        self.record.resources.push(ResourceUse::of_window(name, "1/s", rate, rate));
        self
    }

    fn ops(mut self, ns: u64, n: u32) -> Self {
        self.times.service.record_n(ns, n).unwrap();
        self
    }

    fn part_waits(mut self, waits: &[(u64, u64)], concentration: f64) -> Self {
        let n: u64 = waits.iter().map(|it| it.1).sum();
        let cos_sum = concentration * n as f64;
        let waits = CoarseTimes(waits.to_vec());
        self.signs().part_waits = PartWaits { waits, cos_sum, sin_sum: 0.0 };
        self
    }

    fn new_connections(mut self, times: &[(u64, u64)]) -> Self {
        self.signs().new_connections = CoarseTimes(times.to_vec());
        self
    }

    fn targets(mut self, medians_ms: &[u64]) -> Self {
        let target = |&ms: &u64| TargetTotals {
            target: format!("http://{ms}/"),
            service: CoarseTimes(vec![(ms * MS, 1_000)]),
            ..TargetTotals::default()
        };
        self.record.totals.per_target = medians_ms.iter().map(target).collect();
        self
    }

    /// Pauses of 60 ms at these milliseconds.
    fn pauses(mut self, starts_ms: impl IntoIterator<Item = u64>) -> Self {
        let pause = |start_ms| {
            let [start, length] = [start_ms, 60].map(Nanos::from_millis);
            Pause { start, length, in_flight: 8 }
        };
        self.signs().pauses = starts_ms.into_iter().map(pause).collect();
        self
    }

    fn hints(&self) -> Vec<Hint> {
        hints_of_point(&HintInput { record: &self.record, times: &self.times, disclosure: None })
    }
}

/// The one point has one hint, the others have none.
#[track_caller]
fn check<const N: usize>(is_it: impl Fn(&Hint) -> bool, with: &Point, without: [Point; N]) {
    let hints = with.hints();
    assert!(hints.len() == 1 && is_it(&hints[0]), "{hints:?}");
    for (at, point) in without.iter().enumerate() {
        assert!(point.hints().is_empty(), "{at}: {:?}", point.hints());
    }
}

#[test]
fn a_healthy_point_has_no_hints() {
    let healthy =
        Point::healthy().rose("host.tcp_delayed_acks", 1e6).rose("host.tcp_timeouts", 1e6);
    assert!(healthy.hints().is_empty(), "{:?}", healthy.hints());
}

#[test]
fn delayed_acks_need_the_wait_the_tick_and_the_counter() {
    let waits = [(41 * MS, 300), (43 * MS, 300)];
    let point = |waits: &[(u64, u64)], tick, counted| {
        Point::healthy().part_waits(waits, tick).rose("host.tcp_delayed_acks", counted)
    };
    let spread: Vec<(u64, u64)> = (25..90).map(|ms| (ms * MS, 60)).collect();
    check(
        |hint| matches!(hint, Hint::DelayedAck { ops: 600, .. }),
        &point(&waits, 0.9, 620.0),
        [
            point(&waits, 0.1, 620.0),
            point(&waits, 0.9, 300.0),
            point(&spread, 0.9, 1e6),
            point(&[(41 * MS, 39)], 0.9, 40.0),
            Point::healthy().part_waits(&waits, 0.9),
        ],
    );
}

#[test]
fn retransmissions_need_a_heap_of_times_and_as_many_timeouts() {
    let point = |timeouts, syn| {
        let point = Point::healthy().ops(204 * MS, 50);
        point.rose("host.tcp_timeouts", timeouts).rose("host.tcp_syn_retransmits", syn)
    };
    let spread = (120..380).fold(Point::healthy(), |point, ms| point.ops(ms * MS, 5));
    check(
        |hint| matches!(hint, Hint::Retransmitted { ops: 50, timeouts: 52, .. }),
        &point(52.0, 0.0),
        [
            point(20.0, 0.0),
            point(52.0, 40.0),
            spread.rose("host.tcp_timeouts", 1e6),
            Point::healthy().ops(204 * MS, 60_000).rose("host.tcp_timeouts", 1e6),
            Point::healthy().ops(204 * MS, 50),
        ],
    );
}

#[test]
fn connects_tried_again_are_told_once_and_name_the_accept_queue() {
    let times = [(MS, 900), (1_010 * MS, 60), (3_030 * MS, 20)];
    let point = |tried| {
        let point = Point::healthy().new_connections(&times).rose("host.tcp_timeouts", 150.0);
        point.ops(204 * MS, 50).rose("host.tcp_syn_retransmits", tried)
    };
    let queue = point(85.0).rose("host.tcp_listen_overflows", 90.0);
    check(
        |hint| {
            matches!(
                hint,
                Hint::SynRetransmitted {
                    ops: 80,
                    syn_retransmits: 85,
                    listen_overflows: Some(90),
                    ..
                }
            )
        },
        &queue,
        [Point::healthy().new_connections(&times).rose("host.tcp_syn_retransmits", 10.0)],
    );
}

#[test]
fn slow_new_connections_and_slow_targets_need_a_factor_and_a_difference() {
    check(
        |hint| matches!(hint, Hint::SlowNewConnections { connections: 100, .. }),
        &Point::healthy().new_connections(&[(50 * MS, 100)]),
        [
            Point::healthy().new_connections(&[(8 * MS, 100)]),
            Point::healthy().new_connections(&[(50 * MS, 30)]),
        ],
    );
    check(
        |hint| matches!(hint, Hint::SlowTarget { target, others: 2, .. } if target == "http://9/"),
        &Point::healthy().targets(&[2, 9, 2]),
        [
            Point::healthy().targets(&[9]),
            Point::healthy().targets(&[2, 3, 2]),
            Point::healthy().targets(&[1, 4, 9]),
        ],
    );
}

#[test]
fn pauses_need_a_rhythm_of_their_own() {
    let even = || Point::healthy().pauses((0..10).map(|n| n * 500 + n % 2 * 10));
    let uneven = [0, 100, 350, 400, 1_400, 1_700, 2_600, 2_700, 4_000];
    let one_client = {
        let mut point = even();
        point.signs().pauses.iter_mut().for_each(|pause| pause.in_flight = 1);
        point
    };
    let slow_load = {
        let mut point = even();
        point.record.totals.done_in_window = 3_000;
        point
    };
    let with_a_short_one = {
        let mut point = even();
        let short = Pause { length: Nanos::from_millis(21), ..point.signs().pauses[3] };
        let start = short.start + Nanos::from_millis(170);
        point.signs().pauses.insert(4, Pause { start, ..short });
        point
    };
    check(
        |hint| {
            let Hint::EvenPauses { pauses, period_ns, length_ns } = hint else { return false };
            (*pauses, *length_ns) == (10, 60 * MS) && period_ns.abs_diff(500 * MS) <= 10 * MS
        },
        &with_a_short_one,
        [
            Point::healthy().pauses(uneven),
            Point::healthy().pauses((0..4).map(|n| n * 500)),
            even().rose("host.throttled_periods", 60.0),
            even().rose("host.cpu_steal", 0.4),
            one_client,
            slow_load,
        ],
    );
}

/// A steady server whose clients began together has no replies for as long as each op takes.
#[test]
fn clients_that_go_in_step_are_no_pauses_of_the_server() {
    // Of 60 ms every 500 ms; ops of 60 ms, of 1.06 s, and of 30 ms, which do not explain it.
    for (op_ms, is_reported) in [(60, false), (1_060, false), (30, true)] {
        let mut point = Point::healthy().pauses((0..10).map(|n| n * 500));
        point.times.service.reset();
        let hints = point.ops(op_ms * MS, 30_000).hints();
        assert_eq!(hints.len(), usize::from(is_reported), "{op_ms} ms: {hints:?}");
    }
}

#[test]
fn clients_that_connect_anew_in_step_are_no_pauses_of_the_server() {
    let pauses = || Point::healthy().pauses((0..10).map(|n| n * 500));
    let hints = |connect_ms| pauses().new_connections(&[(connect_ms * MS, 100)]).hints();
    let [Hint::SlowNewConnections { .. }] = hints(62)[..] else { panic!("{:?}", hints(62)) };
    let [Hint::SlowNewConnections { .. }, Hint::EvenPauses { .. }] = hints(50)[..] else {
        panic!("{:?}", hints(50))
    };
}

#[test]
fn a_run_tells_each_hint_once_with_its_points() {
    let hints = |length_ns| vec![Hint::EvenPauses { pauses: 9, period_ns: 500, length_ns }];
    let point = |position, length_ns| PointResult {
        position,
        hints: hints(length_ns),
        ..PointResult::default()
    };
    let run = hints_of_run(&[point(1, 10), PointResult::default(), point(3, 60), point(4, 20)]);
    assert_eq!(run, [RunHint { points: vec![1, 3, 4], hint: hints(60).remove(0) }]);
}
