use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::consumers::{InterruptCount, InterruptKind};
use plimsoll_model::event::{JournalRecord, OpCounts, OpTimes, Phase, new_times};
use plimsoll_model::units::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

#[test]
fn each_op_has_its_share_of_the_ops_and_the_methods_beside_it() {
    let mut run = RunBuilder::open(&[500.0]);
    let started = run.started_mut();
    started.op_names.0 = vec!["get".to_owned(), "put".to_owned()];
    // Weights, as the method prints them: their sum need not be 100.
    started.op_shares = Some(vec![74.0, 25.0]);
    for record in &mut run.journal {
        if let JournalRecord::PointFinished(point) = record {
            let counts = OpCounts { count: 5_000, ..OpCounts::default() };
            point.totals.ops.insert("put".to_owned(), counts);
        }
    }
    let ops = &analyse(&run.raw()).points[0].ops;
    assert_eq!((ops["get"].share_ratio, ops["put"].share_ratio), (Some(0.75), Some(0.25)));
    assert_eq!(ops["put"].wanted_ratio, Some(25.0 / 99.0));
}

#[test]
fn iterations_are_counted_where_they_have_several_ops() {
    let iterations = |pieces: Option<u64>, point: PointBuilder| {
        let mut run = RunBuilder::from_points([point]);
        for record in &mut run.journal {
            if let (JournalRecord::PointFinished(point), Some(pieces)) = (record, pieces) {
                point.totals.pieces = pieces;
            }
        }
        analyse(&run.raw()).points[0].iterations
    };
    assert_eq!(iterations(None, PointBuilder::closed(8)), None, "every op is one");
    assert_eq!(iterations(Some(20), PointBuilder::closed(8)), Some(20));
    assert_eq!(iterations(Some(0), PointBuilder::closed(8)), Some(0), "none ended");
    assert_eq!(iterations(Some(0), PointBuilder::open(500.0)), None);
}

#[test]
fn ops_of_a_free_mix_have_no_wanted_share() {
    let ops = &analyse(&RunBuilder::open(&[500.0]).raw()).points[0].ops;
    assert_eq!((ops["get"].share_ratio, ops["get"].wanted_ratio), (Some(1.0), None));
}

fn times(seconds: u32, at: impl Fn(u32) -> u64) -> PointTimes {
    PointTimes::from_seconds((0..seconds).map(|second| {
        let mut times = OpTimes::new();
        times.response.record_n(at(second), 3).unwrap();
        let start = Nanos::from_secs(u64::from(second) + 10);
        IntervalSlice {
            length: Nanos::from_secs(1),
            second: second + 10,
            start,
            phase: Phase::Measure,
            ops: vec![times],
        }
    }))
}

fn sample_heatmap(seconds: u32, at: impl Fn(u32) -> u64) -> ResponseHeatmap {
    let mut record = RunBuilder::open(&[500.0]).finished_mut(0).clone();
    record.measured_ns = Nanos::from_secs(u64::from(seconds));
    response_heatmap(&record, &times(seconds, at)).unwrap()
}

#[test]
fn each_second_has_its_ops_in_their_bucket() {
    let heat = sample_heatmap(3, |second| if second == 1 { 9_000_000 } else { 1_000_000 });
    assert_eq!(heat.starts_ns, [0, 1, 2, 3].map(|s| s * 1_000_000_000));
    // The upper half of a doubling begins at 1.5 × 2^19.
    assert_eq!(heat.edges_ns.first(), Some(&786_432));
    assert_eq!(heat.edges_ns.last(), Some(&12_582_912));
    assert_eq!((heat.counts[0][0], heat.counts[1][0]), (3, 0));
    assert_eq!(heat.counts[1].last(), Some(&3));
}

#[test]
fn no_op_is_lost_and_the_size_is_bounded_however_long_the_window() {
    let heat = sample_heatmap(601, |second| 1 << (second % 40));
    assert!(heat.counts.len() <= SPANS_MAX, "{}", heat.counts.len());
    assert_eq!(heat.starts_ns.len(), heat.counts.len() + 1);
    assert!(heat.counts.iter().all(|row| row.len() + 1 == heat.edges_ns.len()));
    assert_eq!(heat.counts.iter().flatten().sum::<u64>(), 601 * 3);
    assert!(heat.edges_ns.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", heat.edges_ns);
}

fn slice(n: u32, ms: u64) -> Coarse {
    let mut times = new_times();
    times.record_n(ms * 1_000_000, n).unwrap();
    Coarse::from_times(&times)
}

#[test]
fn a_step_has_the_sessions_opened_before_it_and_the_times_of_its_own() {
    let slices: Vec<Coarse> = (0..20).map(|at| slice(5, 1 + at)).collect();
    let steps = steps(&slices.iter().collect::<Vec<_>>(), 100);
    assert_eq!(steps.len(), 10);
    assert_eq!((steps[9].from, steps[9].to), (90, 100));
    for (at, step) in steps.iter().enumerate() {
        let (first, second) = ((2 * at + 1) as f64 * 1e6, (2 * at + 2) as f64 * 1e6);
        assert!((step.p50_ns / first - 1.0).abs() < 0.01, "{step:?}");
        assert!((step.p99_ns / second - 1.0).abs() < 0.01, "{step:?}");
        assert_eq!(step.p99_ns, step.max_ns);
    }
}

#[test]
fn slices_with_more_sessions_than_a_step_make_fewer_steps() {
    let slices = [slice(45, 1), slice(55, 2)];
    let steps = steps(&slices.iter().collect::<Vec<_>>(), 100);
    let borders: Vec<_> = steps.iter().map(|step| (step.from, step.to)).collect();
    assert_eq!(borders, [(0, 45), (45, 100)]);
}

#[test]
fn shares_are_of_all_processors_and_what_no_process_had_is_not_seen() {
    let mut run = RunBuilder::open(&[500.0]);
    let server = ConsumerWork {
        name: "nginx".to_owned(),
        processes: 2,
        user_ns: 6_000_000_000,
        system_ns: 9_000_000_000,
        ..ConsumerWork::default()
    };
    let kind = InterruptKind::Soft;
    let work = HostWork {
        elapsed_ns: 30 * NANOS_PER_SECOND,
        processors: 2,
        busy_ns: 18 * NANOS_PER_SECOND,
        forks: Some(60),
        consumers: vec![server],
        others: ConsumerWork { user_ns: NANOS_PER_SECOND, ..ConsumerWork::default() },
        interrupts: vec![InterruptCount { name: "NET_RX".to_owned(), kind, count: 30_000 }],
        ..HostWork::default()
    };
    for record in &mut run.journal {
        if let JournalRecord::PointFinished(point) = record {
            point.host_work = vec![work.clone()];
        }
    }
    let point = &analyse(&run.raw()).points[0];
    let [host] = &point.consumers[..] else { panic!("{:?}", point.consumers) };
    assert_eq!((host.busy_s, host.not_seen_s, host.forks_per_s), (18.0, 2.0, Some(2.0)));
    assert_eq!((host.consumers[0].share_ratio, host.others.user_s), (0.25, 1.0));
    let interrupt = &host.interrupts[0];
    let per_op = 1_000.0 / point.achieved_ops_per_s.unwrap();
    assert_eq!((interrupt.per_s, interrupt.per_op), (1_000.0, Some(per_op)));
}

fn totals(ops: impl Fn(usize, f64) -> (f64, f64)) -> WorkerTotals {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let noise = (0..200).map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX));
    let counts = noise.enumerate().map(|(tick, noise)| ops(tick, noise));
    let (done, sent) = counts.map(|(done, sent)| (done as u32, sent as u32)).unzip();
    WorkerTotals { done_by_tick: done, sent_by_tick: sent, ..WorkerTotals::default() }
}

#[test]
fn turns_within_a_second_are_told_wherever_ticks_cut_them() {
    for part in [0.0, 0.3, 0.5] {
        let alternating = totals(|tick, noise| {
            let mixed = [200.0, 200.0 - 150.0 * part, 50.0, 50.0 + 150.0 * part];
            (mixed[tick % 4] + noise * 10.0, 125.0)
        });
        for closed in [true, false] {
            let rates = bursts(&alternating, closed);
            let values: Vec<f64> = rates.iter().map(|rate| rate.mean).collect();
            let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.1;
            assert!(near(values[0], 1_100.0) && near(values[1], 4_100.0), "{values:?}");
        }
    }
}

#[test]
fn noise_slow_changes_and_few_ops_are_none() {
    let noise = totals(|_, noise| (80.0 + noise * 80.0, 100.0));
    let steps = totals(|tick, noise| (if tick < 100 { 200.0 } else { 50.0 } + noise, 100.0));
    let few = totals(|tick, _| (if tick % 2 == 0 { 9.0 } else { 1.0 }, 5.0));
    for (what, none) in [("noise", noise), ("steps", steps), ("few", few)] {
        assert!(bursts(&none, true).is_empty(), "{what}");
    }
}

#[test]
fn pauses_of_an_open_load_are_not_the_servers() {
    let paused = totals(|tick, noise| {
        let level = if tick / 2 % 2 == 0 { 200.0 } else { 50.0 };
        (level + noise, level + noise)
    });
    assert!(bursts(&paused, false).is_empty());
    assert!(!bursts(&paused, true).is_empty(), "closed clients send when they are answered");
}
