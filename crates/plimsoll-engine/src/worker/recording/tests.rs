use proptest::prelude::*;

use super::*;

#[test]
fn a_poll_that_took_long_is_a_gap_and_no_poll() {
    let mut idle = WorkerHealth::default();
    add_empty_poll(&mut idle, Nanos::from_micros(2));
    add_empty_poll(&mut idle, Nanos::from_micros(700));
    let recorded = (idle.empty_poll_ns, idle.gap_ns, idle.gap_ns_max);
    assert_eq!(recorded, (2_000, 700_000, 700_000));
}

#[test]
fn a_lateness_is_rounded_up_by_an_eighth_at_most() {
    for value in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX]) {
        let top = top_of(bucket_of(Nanos(value))).0;
        assert!(top >= value && top - value < (value / 8).max(1), "{value} {top}");
    }
}

/// By looking at every pair of ops.
fn plain(ops: &[(u64, u64, u64)]) -> Vec<u64> {
    let meets = |a: &(u64, u64, u64), b: &(u64, u64, u64)| a.0 <= b.1 && b.0 <= a.1;
    let worst = |a| ops.iter().filter(|b| meets(a, b)).map(|b| b.2).max().unwrap();
    ops.iter().map(worst).collect()
}

proptest! {
    #[test]
    fn the_largest_lateness_in_flight_with_an_op_is_found(
        ops in prop::collection::vec((0_u64..60, 1_u64..20, 0_u64..5_000), 1..40),
    ) {
        // Distinct instants, so that the order of events is known.
        let ops: Vec<(u64, u64, u64)> = ops.iter().enumerate().map(|(n, (at, long, late))| {
            let n = n as u64;
            (at * 1_000 + n, (at + long) * 1_000 + 500 + n, *late)
        }).collect();
        let mut events: Vec<(u64, usize, bool)> = Vec::new();
        for (n, op) in ops.iter().enumerate() {
            events.extend([(op.0, n, true), (op.1, n, false)]);
        }
        events.sort_unstable();
        let mut lateness = LatenessInFlight::default();
        let (mut met, mut results) = (vec![Nanos::ZERO; ops.len()], vec![0; ops.len()]);
        for (_, n, goes_out) in events {
            let (sent, late) = (Nanos(ops[n].0), Nanos(ops[n].2));
            if goes_out {
                met[n] = lateness.sent(sent, late);
            } else {
                results[n] = lateness.ended(sent, late, met[n]).0;
            }
        }
        for (result, plain) in results.iter().zip(plain(&ops)) {
            prop_assert!(*result >= plain && result - plain <= plain / 8, "{result} {plain}");
        }
        prop_assert_eq!(lateness.ops, 0);
    }
}
