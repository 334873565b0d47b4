//! Many ops in flight, ops that follow from others, scripts that wait, sends that leave together:
//! on the simulated clock, where every number is known.

use plimsoll_engine::interface::LinkKind;
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Assignment, Load, Pacing};
use plimsoll_model::event::{Interval, Phase, TimeKind, Times, new_times};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::pipeline::Pipeline;
use plimsoll_testkit::sim::{Congestion, MESSAGE_BYTES, SimDriver, Target};

use crate::support::streamed::{Second, Streamed};
use crate::support::{Observation, assignment, closed, open, run};

const MS: Nanos = Nanos::from_millis(1);
const MS_10: Nanos = Nanos::from_millis(10);

/// Every op is answered after 10 ms.
fn steady() -> SimDriver<impl Target> {
    SimDriver::new(|now: Nanos| Some(now + MS_10))
}

/// A load at which every client has a schedule of its own, evenly spaced.
fn even(ops_per_s: f64, clients: u32) -> Assignment {
    assignment(open(ops_per_s, clients, Arrivals::PerClient, InterArrival::Uniform))
}

fn ended(observed: &Observation) -> u64 {
    observed.totals.ops.values().map(|op| op.count).sum()
}

fn failed(observed: &Observation) -> u64 {
    observed.totals.ops.values().map(|op| op.errors).sum()
}

#[test]
fn a_follow_on_comes_due_when_the_op_before_it_ends_and_counts_as_an_op() {
    let pipeline = Pipeline { follow_ons: 2, ops_per_arrival: 3.0, ..Pipeline::default() };
    let mut driver = steady();
    driver.send_cost = Nanos(100);
    let observed = run(&pipeline, &even(3_000.0, 4), 0, &mut driver);
    let count = |name: &str| observed.totals.ops[name].count;
    // 1,000 arrivals a second for 10 s. The last ones' follow-ons come due after the window, and
    // the first ones' belong to arrivals before it.
    assert_eq!(count("first"), 10_000);
    assert_eq!(count("follow_on"), 20_000);
    assert_eq!(observed.totals.due, 30_000);
    assert_eq!(observed.totals.not_sent + observed.totals.unfinished, 0);
    assert_eq!((ended(&observed), failed(&observed)), (30_000, 0));
    assert!(
        observed.totals.done_in_window.abs_diff(30_000) < 40,
        "{}",
        observed.totals.done_in_window
    );
    // Each is on its own: the second does not inherit the time of the first.
    let response = observed.response_of(1);
    assert!(response.min() >= 9_990_000 && response.max() <= 10_020_000, "{response:?}");
    assert!(observed.lateness().max() < 1_000, "{}", observed.lateness().max());
}

#[test]
fn what_each_client_got_done_is_told_by_kind() {
    let pipeline = Pipeline { follow_ons: 1, ops_per_arrival: 2.0, ..Pipeline::default() };
    let mut task = even(300.0, 3);
    task.counts_clients = true;
    let observed = run(&pipeline, &task, 0, &mut steady());
    let clients = &observed.totals.per_client;
    assert_eq!(clients.iter().map(|counts| counts.client).collect::<Vec<_>>(), [0, 1, 2]);
    for counts in clients {
        assert!(counts.done.iter().all(|done| done.abs_diff(500) <= 1), "{clients:?}");
    }
}

#[test]
fn nothing_follows_after_the_window_and_the_drain_is_short() {
    let pipeline = Pipeline { follow_ons: 100, room: 512, ..Pipeline::default() };
    let observed = run(&pipeline, &even(100.0, 1), 0, &mut steady());
    let totals = &observed.totals;
    assert_eq!(totals.due, ended(&observed));
    assert_eq!((totals.not_sent, totals.unfinished), (0, 0));
    let last = observed.intervals.last().unwrap();
    assert!(last.end <= Nanos::from_millis(12_020), "{:?}", last.end);
}

/// Reports that each arrival brings this many ops.
struct Several(f64);

impl Workload for Several {
    fn op_names(&self) -> OpNames {
        Echo.op_names()
    }
    fn ops_per_arrival(&self) -> f64 {
        self.0
    }
    fn run_worker(&self, context: WorkerContext<'_>) {
        Echo.run_worker(context);
    }
}

#[test]
fn arrivals_come_at_the_rate_divided_by_the_ops_each_brings() {
    for arrivals in [Arrivals::PerClient, Arrivals::Shared] {
        let task = assignment(open(1_000.0, 4, arrivals, InterArrival::Uniform));
        let due = |ops_per_arrival: f64| {
            run(&Several(ops_per_arrival), &task, 0, &mut steady()).totals.due
        };
        assert_eq!((due(1.0), due(2.0), due(2.5)), (10_000, 5_000, 4_000), "{arrivals:?}");
        // Invalid values change nothing.
        assert_eq!((due(0.5), due(f64::NAN)), (10_000, 10_000));
    }
}

#[test]
fn a_script_that_waits_for_an_outcome_keeps_its_ops_in_order_and_loses_none() {
    // 200 ops/s are possible with two outstanding; the script itself asserts that what had to
    // wait comes again first.
    let pipeline = Pipeline { outstanding_max: 2, ..Pipeline::default() };
    let mut task = assignment(open(190.0, 1, Arrivals::PerClient, InterArrival::Exponential));
    task.phases.drain_ns = Nanos::from_secs(20);
    let observed = run(&pipeline, &task, 0, &mut steady());
    assert_eq!((observed.totals.not_sent, observed.totals.unfinished), (0, 0));
    assert_eq!(observed.totals.due, ended(&observed));
    assert!(observed.requests.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order");
    assert!(observed.response().max() > 20_000_000, "some had to wait");
    // The wait is the script's, not the generator's.
    assert_eq!(observed.lateness().max(), 0);
}

#[test]
fn ops_that_wait_beyond_the_backlog_are_counted_as_not_sent() {
    let mut load = open(1_000.0, 1, Arrivals::PerClient, InterArrival::Uniform);
    if let Load::Open { backlog_ops_max, .. } = &mut load {
        *backlog_ops_max = 50;
    }
    let pipeline = Pipeline { outstanding_max: 2, ..Pipeline::default() };
    let observed = run(&pipeline, &assignment(load), 0, &mut steady());
    let totals = &observed.totals;
    assert_eq!((totals.due, totals.done_in_window), (10_000, 2_000));
    assert_eq!(totals.due, totals.not_sent + ended(&observed));
}

#[test]
fn a_script_that_waits_for_nothing_sends_nothing_and_it_is_counted() {
    let pipeline = Pipeline { outstanding_max: 0, ..Pipeline::default() };
    let observed = run(&pipeline, &even(100.0, 2), 0, &mut steady());
    assert_eq!(
        (observed.totals.due, observed.totals.not_sent, ended(&observed)),
        (1_000, 1_000, 0)
    );
    let last = observed.intervals.last().unwrap();
    assert!(last.end <= Nanos::from_millis(12_020), "nothing to wait for: {:?}", last.end);
}

#[test]
fn waiting_and_follow_ons_go_together() {
    // Each arrival occupies one of four slots for 3 x 10 ms: 133 a second are possible.
    let pipeline = Pipeline { follow_ons: 2, outstanding_max: 4, room: 4, ..Pipeline::default() };
    let mut task = even(120.0, 1);
    task.load = open(120.0, 1, Arrivals::PerClient, InterArrival::Exponential);
    let observed = run(&pipeline, &task, 0, &mut steady());
    let totals = &observed.totals;
    assert_eq!((totals.not_sent, totals.unfinished), (0, 0));
    assert_eq!(totals.due, ended(&observed));
    let (first, follow_on) = (totals.ops["first"].count, totals.ops["follow_on"].count);
    assert!(follow_on.abs_diff(2 * first) <= 16, "{first} {follow_on}");
}

#[test]
fn the_mix_of_what_ends_in_the_window_holds_however_long_ops_wait_to_be_sent() {
    // A third of the arrivals can be served, so ops that are sent in the window came due long
    // before. What follows from them comes due at once.
    let pipeline = Pipeline { follow_ons: 2, outstanding_max: 4, room: 4, ..Pipeline::default() };
    let mut task = even(400.0, 1);
    task.phases.warm_up_ns = Nanos::from_secs(1);
    task.phases.measure_ns = Nanos::from_secs(3);
    task.phases.drain_ns = Nanos::ZERO;
    let observed = run(&pipeline, &task, 0, &mut steady());
    let (first, follow_on) = (&observed.totals.ops["first"], &observed.totals.ops["follow_on"]);
    assert!(follow_on.count > 4 * first.count, "{first:?} {follow_on:?}");
    let (first, follow_on) = (first.ended_in_window, follow_on.ended_in_window);
    assert!(follow_on.abs_diff(2 * first) <= 16, "{first} {follow_on}");
    assert_eq!(first + follow_on, observed.totals.done_in_window);
}

#[test]
fn one_client_keeps_many_ops_in_flight() {
    let pipeline = Pipeline { room: 256, ..Pipeline::default() };
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(20)));
    let observed = run(&pipeline, &even(10_000.0, 1), 0, &mut driver);
    assert_eq!((observed.totals.due, ended(&observed), failed(&observed)), (100_000, 100_000, 0));
    let response = observed.response();
    assert!(response.min() >= 19_980_000 && response.max() <= 20_030_000, "{response:?}");
}

#[test]
fn lateness_of_a_generator_that_stands_still_is_not_hidden_by_outcomes_in_between() {
    // The client had room all the time: the stall is ours, whatever ended meanwhile.
    let mut driver = steady();
    driver.stalls = vec![(Nanos::from_secs(5), Nanos::from_millis(5_100))];
    let observed = run(&Pipeline::default(), &even(200.0, 1), 0, &mut driver);
    assert!(observed.lateness().max() >= 94_000_000, "{}", observed.lateness().max());
}

#[test]
fn a_closed_load_uses_all_room_when_its_script_always_issues() {
    let pipeline = Pipeline { room: 16, ..Pipeline::default() };
    let observed = run(&pipeline, &assignment(closed(2, Nanos::ZERO)), 0, &mut steady());
    assert_eq!(observed.totals.done_in_window, 32_000);
    assert_eq!(observed.totals.due, ended(&observed));
}

#[test]
fn a_closed_script_that_waits_for_an_outcome_is_asked_again() {
    let pipeline = Pipeline { room: 16, outstanding_max: 3, ..Pipeline::default() };
    let observed = run(&pipeline, &assignment(closed(2, Nanos::ZERO)), 0, &mut steady());
    assert_eq!(observed.totals.done_in_window, 6_000);
}

/// Eight clients on connections that three of them share; each reply takes 10 ms.
#[test]
fn clients_that_share_a_session_have_one_op_each_in_flight() {
    let shared = Pipeline { clients_per_session: 3, ..Pipeline::default() };
    let mut driver = steady();
    let observed = run(&shared, &assignment(closed(8, Nanos::ZERO)), 0, &mut driver);
    assert_eq!(driver.routes.len(), 3);
    // A hundred a second each, over ten seconds.
    assert_eq!((observed.totals.done_in_window, failed(&observed)), (8_000, 0));
    assert_eq!(observed.totals.clients_participating, 8);
    // A client's number is in the upper half of its requests.
    for client in 0..8 {
        let own = observed.requests.iter().filter(|request| **request >> 32 == client).count();
        assert!((1_199..=1_200).contains(&own), "client {client}: {own}");
    }
}

#[test]
fn a_pool_of_clients_that_share_sessions_serves_a_schedule() {
    let shared = Pipeline { clients_per_session: 16, ..Pipeline::default() };
    let load = open(1_000.0, 16, Arrivals::Shared, InterArrival::Uniform);
    let mut driver = steady();
    let observed = run(&shared, &assignment(load), 0, &mut driver);
    assert_eq!(driver.routes.len(), 1);
    assert_eq!(
        (observed.totals.due, ended(&observed), observed.totals.not_sent),
        (10_000, 10_000, 0)
    );
    assert!(observed.response().max() < 10_200_000, "none waited: ten of sixteen are busy");
}

#[test]
fn a_session_that_is_lost_takes_all_its_clients_along() {
    let shared = Pipeline {
        clients_per_session: 3,
        gives_up: Some((1, 10)),
        read_limit: 8,
        ..Pipeline::default()
    };
    let observed = run(&shared, &assignment(closed(8, Nanos::ZERO)), 0, &mut steady());
    let mut lost: Vec<u32> = observed.lost.iter().map(|(client, _)| *client).collect();
    lost.sort_unstable();
    assert_eq!((lost, observed.totals.clients_participating), (vec![0, 1, 2], 5));
    assert_eq!(observed.totals.done_in_window, 5_000);
}

#[test]
fn a_piece_of_a_closed_load_ends_with_its_last_follow_on() {
    let pipeline = Pipeline { room: 1, follow_ons: 2, pieces: true, ..Pipeline::default() };
    let observed = run(&pipeline, &assignment(closed(4, Nanos::ZERO)), 0, &mut steady());
    let totals = &observed.totals;
    assert_eq!(totals.done_in_window, 4_000);
    assert!(totals.pieces.abs_diff(1_333) <= 4, "{}", totals.pieces);
    assert_eq!(totals.piece_ns_total / totals.pieces, 30_000_000);
    assert_eq!(totals.due, ended(&observed));
}

/// Ten clients send an op every 100 ms each; the first piece of a reply comes after 13 ms, the
/// second 20 ms later. No piece comes at a border of slices.
fn streamed(second: Second, stalls: Vec<(Nanos, Nanos)>) -> Observation {
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(13)));
    driver.doubled_after = Some(Nanos::from_millis(20));
    driver.stalls = stalls;
    driver.stamps = true;
    run(&Streamed { sends_max: u64::MAX, second }, &even(100.0, 10), 0, &mut driver)
}

#[test]
fn each_piece_of_a_streamed_reply_is_timed() {
    let observed = streamed(Second::End, vec![]);
    assert_eq!((observed.totals.due, ended(&observed), failed(&observed)), (1_000, 1_000, 0));
    let (first, chunk_interval) = pieces(&observed);
    // Of the ops due in the window.
    assert_eq!((first.len(), chunk_interval.len()), (1_000, 1_000));
    assert!(first.min() >= 12_990_000 && first.max() <= 13_020_000, "{first:?}");
    assert!(
        chunk_interval.min() >= 19_980_000 && chunk_interval.max() <= 20_030_000,
        "{chunk_interval:?}"
    );
}

/// Otherwise parts of failed replies would count in the rates and times of good ones.
#[test]
fn what_came_of_a_reply_that_failed_counts_apart() {
    let observed = streamed(Second::FailsEveryOther, vec![]);
    assert_eq!((ended(&observed), failed(&observed)), (1_000, 500));
    let (first, chunk_interval) = pieces(&observed);
    assert_eq!((first.len(), chunk_interval.len(), observed.response().len()), (500, 500, 1_000));
    let counts = &observed.totals.generation;
    for (count, about) in [
        (counts.chunks, 1_000),
        (counts.failed_chunks, 1_000),
        (counts.characters, 10_000),
        (counts.failed_characters, 10_000),
        (observed.totals.bytes_read, 1_000 * MESSAGE_BYTES as u64),
        (observed.totals.failed_bytes, 1_000 * MESSAGE_BYTES as u64),
    ] {
        assert!(count.abs_diff(about) <= about / 100, "{count} is not {about}");
    }
    let of_seconds: u64 = observed.intervals.iter().map(|i| i.record.bytes_read).sum();
    assert_eq!(of_seconds % (2 * MESSAGE_BYTES as u64), 0);
    assert!(of_seconds < observed.totals.due * 2 * MESSAGE_BYTES as u64, "good ones only");
}

/// Its client waits for the rest, and the response time does not.
#[test]
fn a_reply_that_is_over_before_its_op_ends_took_until_then() {
    let observed = streamed(Second::Rest, vec![]);
    let response = observed.response();
    assert_eq!((response.len(), failed(&observed)), (1_000, 0));
    assert!(response.min() >= 12_990_000 && response.max() <= 13_020_000, "{response:?}");
    let low = observed.merged(|i| &i.ops[0].response_low);
    assert!(low.min() >= 12_900_000, "it is known when it came: {low:?}");
    let ended = streamed(Second::End, vec![]).response();
    assert!(ended.min() >= 32_900_000, "{ended:?}");
}

/// Times of the ops due in the window: the first piece, and the pause before the second.
fn pieces(observed: &Observation) -> (Times, Times) {
    let (mut first, mut chunk_interval): (Times, Times) = (new_times(), new_times());
    for interval in observed.intervals.iter().filter(|i| i.record.phase != Phase::WarmUp) {
        let add = |sum: &mut Times, kind: TimeKind| {
            kind.times_in(&interval.ops[0]).into_iter().for_each(|times| sum.add(times).unwrap());
        };
        add(&mut first, TimeKind::FirstByte);
        add(&mut chunk_interval, TimeKind::ChunkGap);
    }
    (first, chunk_interval)
}

#[test]
fn ops_that_keep_the_limits_of_a_good_one_are_counted() {
    let totals = |limits: &str| {
        let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(13)));
        driver.doubled_after = Some(Nanos::from_millis(20));
        let mut task = even(100.0, 10);
        task.goodput = Some(limits.parse().unwrap());
        let observed =
            run(&Streamed { sends_max: u64::MAX, second: Second::End }, &task, 0, &mut driver);
        let window = observed.intervals.iter().filter(|i| i.record.phase == Phase::Measure);
        let by_second: u64 = window.clone().map(|interval| interval.record.good).sum();
        assert_eq!(by_second, observed.totals.good_in_window);
        let chunks: u64 = window.map(|interval| interval.record.chunks).sum();
        assert!((1_990..=2_010).contains(&chunks), "two a reply: {chunks}");
        observed.totals
    };
    let kept = totals("response<34ms");
    assert_eq!((kept.due, kept.good), (1_000, 1_000));
    assert!((995..=1_005).contains(&kept.good_in_window), "{}", kept.good_in_window);
    assert_eq!(totals("response<33ms").good, 0);
    assert_eq!(totals("first_output<1s").good, 0, "none had output");
}

#[test]
fn a_piece_belongs_to_the_slice_in_which_its_op_ended() {
    let observed =
        streamed(Second::End, vec![(Nanos::from_millis(5_205), Nanos::from_millis(5_795))]);
    let read_from = |millis: u64| {
        let of = |i: &&Interval| i.start == Nanos::from_millis(millis);
        let slice = observed.intervals.iter().find(of).unwrap();
        let count = |kind: TimeKind| kind.times_in(&slice.ops[0]).map_or(0, |times| times.len());
        count(TimeKind::FirstByte) + count(TimeKind::ChunkGap)
    };
    let [before, within, also_within, after] = [5_000, 5_250, 5_500, 5_750].map(read_from);
    // One of either kind every 10 ms, until the worker stands still.
    assert_eq!((before, within, also_within), (42, 0, 0));
    assert!(after > 100, "those that lay there, and of the ops that could not go out: {after}");
}

#[test]
fn ops_that_come_due_while_many_replies_are_dealt_with_do_not_wait_for_the_last_of_them() {
    // A hundred connections are answered at the same instants; what follows from each reply takes
    // 0.1 ms to send, 10 ms for all.
    let grid = Nanos::from_millis(100).0;
    let mut driver = SimDriver::new(move |now: Nanos| Some(Nanos((now.0 / grid + 1) * grid)));
    driver.send_cost = Nanos::from_micros(100);
    let pipeline = Pipeline { follow_ons: 1, ..Pipeline::default() };
    let observed = run(&pipeline, &even(1_000.0, 100), 0, &mut driver);
    assert_eq!(
        (observed.totals.not_sent, observed.totals.unfinished, failed(&observed)),
        (0, 0, 0)
    );
    // Sixteen connections are handled between two checks of what is due.
    let lateness = observed.lateness().max();
    assert!((1_000_000..=2_500_000).contains(&lateness), "{lateness}");
}

#[test]
fn sends_of_a_turn_leave_together_when_the_session_asks_for_it() {
    let sends = |kind: LinkKind, batch: bool| {
        // Eight ops come due per tick of the coalescing pacer, all of one client.
        let mut task = even(20_000.0, 1);
        task.pacing = Pacing::Coalesce;
        task.phases.warm_up_ns = Nanos::ZERO;
        task.phases.measure_ns = Nanos::from_secs(1);
        let mut driver = SimDriver::new(|now: Nanos| Some(now + MS));
        let pipeline = Pipeline { kind, batch, room: 64, ..Pipeline::default() };
        let observed = run(&pipeline, &task, 0, &mut driver);
        assert_eq!((observed.totals.due, ended(&observed), failed(&observed)), (20_000, 20_000, 0));
        assert!(observed.requests.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order");
        (driver.sends, observed.requests.len() as u64)
    };
    for kind in [LinkKind::Stream, LinkKind::Datagram] {
        let (alone, ops) = sends(kind, false);
        // But for those that waited for the connection.
        assert!(ops - alone < 10, "{kind:?} {alone} {ops}");
        let (together, ops) = sends(kind, true);
        assert!(together.abs_diff(ops / 8) < ops / 80, "{kind:?} {together} {ops}");
    }
}

#[test]
fn a_full_socket_keeps_order_and_borders_and_loses_nothing() {
    for kind in [LinkKind::Stream, LinkKind::Datagram] {
        for batch in [false, true] {
            // 20 and a half ops, then nothing for 15 ms: less than what comes due meanwhile.
            let mut driver = SimDriver::new(|now: Nanos| Some(now + MS));
            driver.congestion = Some(Congestion { room_bytes: 164, pause: Nanos::from_millis(15) });
            let pipeline = Pipeline { kind, batch, room: 256, ..Pipeline::default() };
            let observed = run(&pipeline, &even(1_200.0, 1), 0, &mut driver);
            let totals = &observed.totals;
            assert_eq!((totals.due, ended(&observed), failed(&observed)), (12_000, 12_000, 0));
            assert!(observed.requests.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order");
            assert!(observed.response().max() > 10_000_000, "{kind:?} {batch}: some had to wait");
        }
    }
}

/// Every tenth request is lost.
fn lossy() -> SimDriver<impl Target> {
    let mut count = 0u64;
    SimDriver::new(move |now: Nanos| {
        count += 1;
        (!count.is_multiple_of(10)).then_some(now + MS)
    })
}

#[test]
fn a_lost_datagram_times_out_by_the_sessions_timer() {
    let pipeline = Pipeline { kind: LinkKind::Datagram, ..Pipeline::default() };
    let mut task = even(500.0, 2);
    task.op_timeout = Nanos::from_millis(50);
    let observed = run(&pipeline, &task, 0, &mut lossy());
    let totals = &observed.totals;
    assert_eq!((totals.due, ended(&observed)), (5_000, 5_000));
    assert_eq!(totals.errors["timeout"], 500);
    assert!(observed.response().max().abs_diff(50_000_000) < 100_000);
}

#[test]
fn a_lost_datagram_that_is_sent_again_is_no_error_and_is_counted() {
    let retry_after = Some(Nanos::from_millis(20));
    let pipeline = Pipeline { kind: LinkKind::Datagram, retry_after, ..Pipeline::default() };
    let observed = run(&pipeline, &even(500.0, 2), 0, &mut lossy());
    let totals = &observed.totals;
    assert_eq!((totals.due, ended(&observed), failed(&observed)), (5_000, 5_000, 0));
    assert!(totals.retransmissions.abs_diff(555) < 5, "{}", totals.retransmissions);
}

#[test]
fn every_lost_op_of_a_broken_link_is_counted_and_sampled_with_its_own_words() {
    struct Refusing;
    impl Target for Refusing {
        fn completion(&mut self, now: Nanos) -> Option<Nanos> {
            Some(now + MS)
        }
        fn refuses(&mut self, _now: Nanos) -> bool {
            true
        }
    }
    let mut task = even(20_000.0, 1);
    task.pacing = Pacing::Coalesce;
    let observed = run(&Pipeline::default(), &task, 0, &mut SimDriver::new(Refusing));
    assert_eq!(observed.totals.errors["transport"], ended(&observed));
    // One op is due at the very start, the others eight per tick.
    let messages = ["lost with 0 before it", "lost with 1 before it", "lost with 2 before it"];
    assert_eq!(observed.samples[1..4], messages);
}
