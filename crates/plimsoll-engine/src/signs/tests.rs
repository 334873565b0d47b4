use super::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn replied(sent_ms: u64, arrived_ms: u64) -> Replied {
    let (sent, done) = (MS(sent_ms), MS(arrived_ms));
    let shape = ReplyShape { is_first: false, part_wait: None, arrived: Some(done), sent_at: sent };
    Replied { endpoint: 0, sent, done, in_flight: 3, shape }
}

#[test]
fn a_pause_is_one_only_if_an_op_was_in_flight_through_it() {
    let mut pauses = Pauses::new();
    // The first reply after the pause may be that of a later op.
    for (sent, arrived) in [(0, 1), (50, 62), (2, 63), (60, 64)] {
        pauses.add(&replied(sent, arrived));
    }
    // The generator stood still; a reply that lay unread until then had arrived before.
    for (sent, arrived) in [(122, 123), (64, 65), (123, 124), (124, 125), (20, 126)] {
        pauses.add(&replied(sent, arrived));
    }
    let expected = Pause { start: MS(1), length: MS(61), in_flight: 3 };
    assert_eq!(pauses.confirmed, [expected]);
}

/// Of a stream that sends something every 20 ms and of a server that stands still for 300 ms.
#[test]
fn bytes_of_replies_that_go_on_end_a_pause_and_begin_one() {
    let through = |silent: std::ops::Range<u64>| {
        let mut pauses = Pauses::new();
        for ms in (20..=1_000).step_by(20).filter(|ms| !silent.contains(ms)) {
            pauses.bytes_came(MS(ms), 100);
        }
        // A hundred streams that began together end together.
        (0..100).for_each(|_| pauses.add(&replied(0, 1_000)));
        pauses.confirmed
    };
    let steady = through(0..0);
    assert!(steady.iter().all(|pause| pause.length <= MS(20)), "{steady:?}");
    let still = Pause { start: MS(400), length: MS(300), in_flight: 100 };
    assert_eq!(through(401..700), [still]);
}

#[test]
fn a_reply_of_two_parts_has_a_wait_and_the_next_begins_anew() {
    let mut parts = Parts::default();
    let arrivals = |parts: &mut Parts, at: &[u64]| {
        parts.note_sent(Nanos::ZERO);
        at.iter().for_each(|at| parts.came(Some(MS(*at))));
        parts.ended()
    };
    let first = arrivals(&mut parts, &[1, 45]);
    let wait = PartWait { length: MS(44), arrived: MS(45) };
    assert_eq!((first.is_first, first.part_wait), (true, Some(wait)));
    let second = arrivals(&mut parts, &[100]);
    assert_eq!((second.is_first, second.part_wait, second.arrived), (false, None, Some(MS(100))));
    let stream = arrivals(&mut parts, &[200, 240, 280]);
    assert_eq!(stream.part_wait, None, "a stream of parts");
}

#[test]
fn parts_that_arrive_at_ticks_keep_to_the_grid_and_others_do_not() {
    let concentration = |step_us: u64| {
        let mut counts = SignCounts::new(1);
        for n in 0..200 {
            let arrived = Nanos::from_micros(700 + n * step_us);
            counts.count_wait(PartWait { length: MS(41), arrived });
        }
        let mut totals = WorkerTotals::default();
        counts.add_to(&mut totals);
        totals.signs.part_waits.tick_concentration().unwrap()
    };
    assert!(concentration(44_000) > 0.99);
    assert!(concentration(41_230) < 0.1);
}

#[test]
fn an_op_counts_in_the_ticks_in_which_it_was_sent_and_done_if_they_are_in_the_window() {
    let phases = Phases {
        warm_up_ns: TICK,
        measure_ns: Nanos(TICK.0 * 3 + 1),
        ramp_down_ns: Nanos::ZERO,
        drain_ns: TICK,
        ops: None,
    };
    let mut ticks = Ticks::new(&phases);
    let at = |tenths: u64| Nanos(TICK.0 * tenths / 10);
    for (sent, done) in [(0, 5), (9, 10), (11, 19), (20, 39), (39, 41)] {
        ticks.count(at(sent), at(done));
    }
    assert_eq!(ticks.into_counts(Nanos(TICK.0 * 9)), (vec![2, 0, 1], vec![1, 1, 1]));
}
