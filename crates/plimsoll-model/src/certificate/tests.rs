use super::*;

fn reading(statistic: Statistic, client: u64, served: u64) -> Reading {
    let micros = Nanos::from_micros;
    Reading {
        statistic,
        client_ns: micros(client),
        served_ns: micros(served),
        allowed_ns: micros(100),
        tight: if client.abs_diff(served) <= 100 {
            JudgementOutcome::Held
        } else {
            JudgementOutcome::Broken
        },
        schedule: Some(ScheduleReading {
            scheduled_ns: micros(served),
            on_schedule: JudgementOutcome::Held,
            theory_ns: micros(served),
            theory_interval_ns: (micros(served), micros(served)),
            theory_held: true,
        }),
        stated: None,
    }
}

fn sound() -> RunVerdict {
    RunVerdict { held: true, reasons: Vec::new() }
}

fn certificate() -> Certificate {
    let case = QueueCase {
        protocol: "app".into(),
        queue: "M/M/4".into(),
        service: "exp:1ms".into(),
        servers: 4,
        utilisation: 0.9,
        rate_ops_per_s: 3_600.0,
        seconds: 30.0,
        ops_due: 108_000,
        ops_scheduled: Some(108_000),
        ops_done: 107_990,
        ops_served: 107_995,
        server_late_p99_ns: Nanos(3_000),
        rate_error_ratio: -9.3e-5,
        rate_allowed_ratio: 0.005,
        rate: JudgementOutcome::Held,
        served_error_ratio: -4.6e-5,
        served: JudgementOutcome::Held,
        open_because: Vec::new(),
        run: sound(),
        witness: None,
        readings: vec![
            reading(Statistic::Mean, 3_040, 2_970),
            reading(Statistic::P99, 9_120, 9_000),
        ],
    };
    Certificate {
        format: CERTIFICATE_FORMAT,
        made_unix_ns: 1,
        host: CertifiedHost::default(),
        instrument: Instrument::default(),
        seed: 1,
        quick: false,
        time_share: 1.0,
        floor: Floor { run: sound(), ..Floor::default() },
        queues: vec![case],
        closed: ClosedCase {
            held: true,
            tight: JudgementOutcome::Held,
            theory: JudgementOutcome::Held,
            run: sound(),
            ..ClosedCase::default()
        },
        stall: StallCase { held: true, run: sound(), ..StallCase::default() },
        punctual: PunctualRate::default(),
        warnings: Vec::new(),
        all_held: false,
    }
}

#[test]
fn a_certificate_reads_back_and_an_unknown_field_is_an_error() {
    let text = serde_json::to_string(&certificate()).unwrap();
    assert_eq!(serde_json::from_str::<Certificate>(&text).unwrap(), certificate());
    let more = text.replacen("\"format\"", "\"fromat\":1,\"format\"", 1);
    assert!(serde_json::from_str::<Certificate>(&more).is_err());
}

#[test]
fn the_note_names_the_reading_that_came_closest_to_its_limit() {
    let note = certificate().note("2026-11-22T06:00:00Z".into(), &RunEnvironment::default());
    assert_eq!(note.worst_tight_at, "M/M/4 at 0.9 p99");
    assert_eq!((note.worst_tight_ns, note.worst_tight_ratio), (120_000, 1.2));
}

fn broken(certificate: &Certificate) -> Vec<String> {
    certificate.broken().iter().map(ToString::to_string).collect()
}

fn left_open(certificate: &Certificate) -> usize {
    certificate.judgements().iter().filter(|of| of.outcome == JudgementOutcome::NotJudged).count()
}

#[test]
fn judgements_name_what_did_not_hold() {
    assert_eq!(broken(&certificate()), ["M/M/4 at 0.9 p99 tight"]);
}

#[test]
fn a_judgement_that_is_left_open_neither_holds_nor_breaks() {
    let mut open = certificate();
    open.queues[0].readings[1].tight = JudgementOutcome::NotJudged;
    assert_eq!((broken(&open), left_open(&open)), (Vec::new(), 1));
    let note = open.note(String::new(), &RunEnvironment::default());
    assert_eq!(note.worst_tight_at, "M/M/4 at 0.9 mean");
    open.queues[0].readings[0].tight = JudgementOutcome::NotJudged;
    assert_eq!(broken(&open), ["enough judgements tight"], "nothing is left that was judged");
    (open.closed.tight, open.closed.theory) =
        (JudgementOutcome::NotJudged, JudgementOutcome::NotJudged);
    assert_eq!(broken(&open), ["enough judgements tight", "closed loop response"]);
    assert_eq!(left_open(&open), 4);
}

fn schedule(certificate: &mut Certificate) -> &mut ScheduleReading {
    certificate.queues[0].readings[0].schedule.as_mut().unwrap()
}

#[test]
fn requests_that_did_not_arrive_on_schedule_are_named() {
    let mut late = certificate();
    late.queues[0].readings.truncate(1);
    schedule(&mut late).on_schedule = JudgementOutcome::Broken;
    assert_eq!(broken(&late), ["M/M/4 at 0.9 mean on schedule"]);
    schedule(&mut late).on_schedule = JudgementOutcome::NotJudged;
    assert_eq!(
        (broken(&late), left_open(&late)),
        (vec!["enough judgements on schedule".into()], 1)
    );
}

#[test]
fn a_window_with_other_ops_than_the_schedule_has_there_is_named() {
    let mut off = certificate();
    off.queues[0].readings.truncate(1);
    off.queues[0].ops_due -= 1;
    assert_eq!(broken(&off), ["M/M/4 at 0.9 due"]);
}

#[test]
fn a_stated_interval_that_misses_the_truth_is_named() {
    let mut off = certificate();
    off.queues[0].protocol = "nfs".into();
    off.queues[0].readings.truncate(1);
    off.queues[0].readings[0].stated = Some(IntervalCheck {
        interval_ns: (Nanos(10), Nanos(20)),
        truth_ns: Nanos(30),
        interval: JudgementOutcome::Broken,
    });
    assert_eq!(broken(&off), ["M/M/4 over nfs at 0.9 mean interval"]);
}

fn cross_check() -> CrossCheck {
    let agree = CheckedTime { judged: JudgementOutcome::Held, ..CheckedTime::default() };
    CrossCheck {
        recorded: JudgementOutcome::Held,
        replies: Some(107_992),
        ended: JudgementOutcome::Held,
        sent: Some(agree),
        arrived: Some(agree),
        sum: JudgementOutcome::Held,
        ..CrossCheck::default()
    }
}

#[test]
fn what_the_servers_log_does_not_bear_out_is_named() {
    let mut off = certificate();
    off.queues[0].readings.truncate(1);
    off.queues[0].witness = Some(CrossCheck { ended: JudgementOutcome::Broken, ..cross_check() });
    let late = CheckedTime::default();
    off.stall.witness =
        Some(CrossCheck { sent: Some(late), recorded: JudgementOutcome::Broken, ..cross_check() });
    off.closed.witness =
        Some(CrossCheck { sum: JudgementOutcome::Broken, sent: None, ..cross_check() });
    let expected = [
        "M/M/4 at 0.9 ended",
        "closed loop think",
        "closed loop sum",
        "stall recorded",
        "stall sent",
    ];
    assert_eq!(broken(&off), expected);
    off.closed.think = JudgementOutcome::Held;
    off.closed.witness =
        Some(CrossCheck { replies: None, ended: JudgementOutcome::Broken, ..cross_check() });
    let all = broken(&off);
    assert!(!all.iter().any(|name| name.starts_with("closed")), "no log of replies: {all:?}");
}

#[test]
fn a_server_that_was_always_late_bears_nothing_out() {
    let mut open = certificate();
    open.queues[0].readings.truncate(1);
    let late = Some(CheckedTime { judged: JudgementOutcome::NotJudged, ..CheckedTime::default() });
    open.queues[0].witness = Some(CrossCheck { sent: late, arrived: late, ..cross_check() });
    let expected = ["enough judgements sent", "enough judgements arrived"];
    assert_eq!((broken(&open), left_open(&open)), (expected.map(String::from).to_vec(), 2));
}

#[test]
fn a_run_in_other_circumstances_is_told_what_the_certificate_does_not_cover() {
    let mut made = certificate();
    made.host.kernel = Some("6.1".into());
    made.instrument.pacing = "auto".into();
    made.instrument.protocols = vec!["app".into(), "nfs".into()];
    let mut now = RunEnvironment {
        kernel: Some("6.1".into()),
        pacing: Some("auto".into()),
        protocol: Some("nfs".into()),
        ..RunEnvironment::default()
    };
    assert!(made.not_covered(&now).is_empty());
    now.kernel = Some("6.18".into());
    now.governor = Some("powersave".into());
    now.pacing = Some("spin".into());
    now.protocol = Some("smb".into());
    let expected = [
        "kernel 6.18, certified 6.1",
        "governor powersave, certified none",
        "pacing spin, certified auto",
        "protocol smb, certified app, nfs",
    ];
    assert_eq!(made.note(String::new(), &now).not_covered, expected);
}

#[test]
fn processors_that_are_set_otherwise_than_when_certified_are_named() {
    let settings = |list: &[(&str, &str)]| -> ProcessorSettings {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let processor = settings(&[
        ("deepest C-state", "C1 (1 µs to wake)"),
        ("mitigation mds", "Vulnerable"),
        ("turbo", "off"),
    ]);
    let now = RunEnvironment { processor, ..RunEnvironment::default() };
    let mut made = certificate();
    assert!(made.not_covered(&now).is_empty(), "an older certificate has none of them");
    made.host.processor = now.processor.clone();
    assert!(made.not_covered(&now).is_empty());
    made.host.processor =
        settings(&[("deepest C-state", "not visible"), ("mitigations", "off"), ("turbo", "on")]);
    let expected = [
        "deepest C-state C1 (1 µs to wake), certified not visible",
        "mitigation mds Vulnerable, certified none",
        "mitigations none, certified off",
        "turbo off, certified on",
    ];
    assert_eq!(made.not_covered(&now), expected);
}

#[test]
fn a_case_without_readings_is_broken_and_no_perfect_instrument() {
    let mut empty = certificate();
    empty.queues[0].readings.clear();
    assert_eq!(broken(&empty), ["M/M/4 at 0.9 tight"]);
    let note = empty.note(String::new(), &RunEnvironment::default());
    assert_eq!(note.worst_tight_at, "nothing was compared");
}

#[test]
fn everything_that_a_case_says_of_itself_is_a_judgement() {
    let mut wrong = certificate();
    wrong.time_share = 0.1;
    wrong.floor.run.held = false;
    wrong.queues[0].readings.truncate(1);
    wrong.queues[0].run.held = false;
    wrong.queues[0].served = JudgementOutcome::Broken;
    wrong.closed = ClosedCase::default();
    wrong.stall = StallCase::default();
    let expected = [
        "length",
        "there and back run",
        "M/M/4 at 0.9 run",
        "M/M/4 at 0.9 served",
        "closed loop run",
        "closed loop count",
        "closed loop mean tight",
        "closed loop theory",
        "stall run",
        "stall",
    ];
    assert_eq!(broken(&wrong), expected);
}

#[test]
fn a_disclosure_without_one_does_not_mention_it() {
    let disclosure = crate::disclosure::Disclosure::default();
    assert!(!serde_json::to_string(&disclosure).unwrap().contains("certificate"));
}

#[test]
fn without_a_figure_for_a_tail_the_floor_under_it_is_the_highest_known() {
    let at = |statistic, us| FloorReading { statistic, beyond_ns: Nanos::from_micros(us) };
    let response = vec![at(Statistic::Mean, 50), at(Statistic::P99, 80)];
    let floor = Floor { response, ..Floor::default() };
    assert_eq!(floor.under(Statistic::Mean), Nanos::from_micros(50));
    assert_eq!(floor.under(Statistic::P999), Nanos::from_micros(80));
    assert_eq!(Floor::default().under(Statistic::Mean), Nanos::ZERO);
}
