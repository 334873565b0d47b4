use super::*;

/// A phase and its seconds.
struct TestPhase {
    point: PointResult,
    seconds: Vec<PhaseSecond>,
}

/// With this many ops and this response time in milliseconds, by the second.
fn phase(
    (kind, load): (PhaseKind, f64),
    ops_and_ms: impl IntoIterator<Item = (u64, u64)>,
) -> TestPhase {
    let second = |(good_ops, ms): (u64, u64)| {
        let mut times = plimsoll_model::event::new_times();
        times.record_n(ms * 1_000_000, good_ops as u32).unwrap();
        PhaseSecond { length_s: 1.0, good_ops, response: Coarse::from_times(&times) }
    };
    let seconds: Vec<PhaseSecond> = ops_and_ms.into_iter().map(second).collect();
    let phase = PhaseResult {
        name: String::new(),
        kind,
        from: load,
        to: load,
        start_s: 0.0,
        is_steady: kind == PhaseKind::Hold,
    };
    let point = PointResult {
        requested: load,
        phase: Some(phase),
        seconds: Some(seconds.len() as f64),
        ..PointResult::default()
    };
    TestPhase { point, seconds }
}

fn outcome(after: impl IntoIterator<Item = (u64, u64)>, after_load: f64) -> Recovery {
    let phases = [
        phase((PhaseKind::Hold, 100.0), (0..30).map(|at| (98 + at % 5, 10))),
        phase((PhaseKind::Pulse, 200.0), [(120, 500); 5]),
        phase((PhaseKind::Hold, after_load), after),
    ];
    let phases: Vec<ShapedPhase<'_>> =
        phases.iter().map(|one| (&one.point, &one.seconds[..])).collect();
    recoveries(&phases, Some(125.0)).remove(0)
}

#[test]
fn a_server_has_recovered_when_ten_seconds_are_as_before() {
    let slow = (0..6).map(|_| (120, 400)).chain((0..20).map(|_| (100, 10)));
    let recovery = outcome(slow, 100.0);
    assert_eq!(recovery.outcome, RecoveryOutcome::Recovered);
    assert_eq!(recovery.recovered_after_ns, Some(Nanos::from_secs(6)));
    assert_eq!(
        (recovery.span_ns, recovery.watched_ns),
        (Nanos::from_secs(10), Nanos::from_secs(26))
    );
    // (1.6 - 1) · 5 s / (1 - 0.8)
    assert_eq!(recovery.healthy_drain_ns, Some(Nanos::from_secs(15)));
    assert_eq!(recovery.percentile, "p99", "1,000 ops in a span");
    let at_once = outcome([(100, 10); 12], 100.0);
    assert_eq!(at_once.recovered_after_ns, Some(Nanos::ZERO));
}

#[test]
fn a_server_that_answers_few_or_late_has_not_recovered() {
    for after in [(30, 10), (100, 40), (0, 10)] {
        let recovery = outcome([after; 20], 100.0);
        assert_eq!(recovery.outcome, RecoveryOutcome::NotRecovered, "{after:?}");
        assert_eq!(recovery.recovered_after_ns, None);
    }
    let nine = outcome((0..40).map(|at| if at % 10 == 9 { (40, 10) } else { (100, 10) }), 100.0);
    assert_eq!(nine.outcome, RecoveryOutcome::NotRecovered, "never for ten seconds");
}

#[test]
fn a_pulse_without_enough_of_one_load_around_it_is_not_evaluated() {
    assert_eq!(outcome([(100, 10); 20], 90.0).outcome, RecoveryOutcome::NoHoldAfter);
    assert_eq!(outcome([(100, 10); 9], 100.0).outcome, RecoveryOutcome::NoHoldAfter);
    let pulse = phase((PhaseKind::Pulse, 200.0), [(120, 500); 5]);
    let alone = recoveries(&[(&pulse.point, &pulse.seconds)], None).remove(0);
    assert_eq!(alone.outcome, RecoveryOutcome::NoHoldBefore);
    assert_eq!(alone.healthy_drain_ns, None);
}
