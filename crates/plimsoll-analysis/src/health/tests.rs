use super::*;
use crate::testing::PointBuilder;

#[test]
fn only_the_window_counts_towards_the_busiest_worker() {
    let mut point = PointBuilder::open(1_000.0).build();
    let second = |cpu_ns| WorkerHealth { cpu_ns, wall_ns: 1_000_000_000, ..Default::default() };
    let warm_up = second(1_000_000_000);
    let whole_seconds = |ns: plimsoll_model::units::Nanos| (ns.0 / 1_000_000_000) as usize;
    let before = whole_seconds(point.record.warm_up_ns);
    let seconds = whole_seconds(point.record.measured_ns);
    let worker = |cpu_ns| {
        let mut worker = vec![warm_up; before];
        worker.extend((0..seconds).map(|_| second(cpu_ns)));
        worker.push(warm_up);
        worker
    };
    point.record.workers = vec![worker(300_000_000), worker(400_000_000)];
    assert_eq!(busy_ratio_max(&point.record), Some(0.4));
    assert_eq!(busy_ratio_between(&point.record, 0, 1_000_000_000), Some(1.0));
}

#[test]
fn a_worker_whose_polls_hold_turns_of_others_is_not_called_idle() {
    let worker = |[cpu_ms, polls_ms, pauses_ms]: [u64; 3]| WorkerHealth {
        cpu_ns: cpu_ms * 1_000_000,
        empty_poll_ns: polls_ms * 1_000_000,
        gap_ns: pauses_ms * 1_000_000,
        wall_ns: 1_000_000_000,
        ..WorkerHealth::default()
    };
    // 16,037 ops/s on a core that the server uses too: of 0.4 s, polls had 0.24 s themselves.
    let shared = work_ratio(&worker([400, 540, 300]), 600_000_000);
    assert!((shared - 0.16).abs() < 1e-9, "{shared}");
    let polls_alone = work_ratio(&worker([400, 900, 100]), 600_000_000);
    assert!(polls_alone.abs() < 1e-9, "nothing is left: {polls_alone}");
    let own_core = work_ratio(&worker([1_000, 970, 0]), 0);
    assert!((own_core - 0.03).abs() < 1e-9, "{own_core}");
}

#[test]
fn a_worker_without_health_leaves_the_figure_open() {
    let mut point = PointBuilder::open(1_000.0).build();
    point.record.workers.push(Vec::new());
    assert_eq!(busy_ratio_max(&point.record), None);
}

#[test]
fn what_a_worker_asks_of_its_core_is_work_and_waiting_and_no_empty_polls() {
    let (second, tenth) = (1_000_000_000, 100_000_000);
    let mut health = WorkerHealth { wall_ns: second, ..WorkerHealth::default() };
    // Half of the time another thread had the core, seen as pauses; a tenth was work.
    (health.cpu_ns, health.empty_poll_ns, health.gap_ns) = (5 * tenth, 4 * tenth, 5 * tenth);
    let mut point = PointBuilder::open(1_000.0).build();
    let mut set = |health: WorkerHealth| {
        point.record.workers.iter_mut().flatten().for_each(|h| *h = health);
        point.record.clone()
    };
    assert_eq!(cpu_demand_ratio_max(&set(health)), None, "nobody said how long it waited");
    health.run_delay_ns = Some(5 * tenth);
    let record = set(health);
    assert!((busy_ratio_max(&record).unwrap() - 0.1).abs() < 1e-9);
    assert!((cpu_demand_ratio_max(&record).unwrap() - 0.6).abs() < 1e-9);
    assert_eq!(poll_pauses(&record), Some((0.5, 0)));
}
