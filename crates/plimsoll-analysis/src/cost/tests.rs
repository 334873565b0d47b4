use plimsoll_model::disclosure::TargetDisclosure;
use plimsoll_model::event::{ResourceUse, SecondRecord};

use super::*;
use crate::testing::PointBuilder;

/// A thousand ops a second, sustained to the end, on a host with these `resources`.
fn host_costs(resources: Vec<ResourceUse>, same_host: bool) -> Vec<HostCost> {
    let mut record = PointBuilder::open(1_000.0).build().record;
    record.resources = resources;
    let target = TargetDisclosure { same_host, ..TargetDisclosure::default() };
    costs(&record, Some(&Disclosure { targets: vec![target], ..Disclosure::default() }))
}

fn used(name: &str, mean: f64) -> ResourceUse {
    ResourceUse::of_window(name, "", mean, mean)
}

/// A resource that swings about its mean from sample to sample.
fn swinging(name: &str, mean: f64) -> ResourceUse {
    let sample = |n: u32| {
        let swing = if n.is_multiple_of(3) { 1.2 } else { 0.9 };
        (f64::from(n) + 0.5, mean * swing)
    };
    ResourceUse { over_time: (0..30).map(sample).collect(), ..used(name, mean) }
}

fn watched() -> Vec<ResourceUse> {
    vec![
        swinging("host.cpu_busy", 0.4),
        used("host.cpu_system", 0.1),
        used("host.cpu_softirq", 0.06),
        used("host.context_switches", 5_000.0),
        used("host.memory_used", 3e9),
        used("cpu.0.busy", 0.5),
        used("cpu.1.busy", 0.3),
        swinging("disk.vda.reads", 100.0),
        swinging("disk.vda.writes", 300.0),
        used("disk.vda.read", 1e6),
        used("disk.vda.written", 3e6),
        used("disk.vda.busy", 0.2),
        used("disk.dm-0.writes", 300.0),
        used("disk.dm-0.written", 3e6),
        used("disk.dm-0.busy", 0.2),
        used("network.lo.sent", 9e6),
        used("network.lo.received", 9e6),
        used("network.lo.sent_packets", 4_000.0),
        used("network.lo.received_packets", 4_000.0),
        used("network.eth0.sent", 8e6),
        used("network.eth0.received", 1e6),
        used("network.eth0.sent_packets", 6_000.0),
        used("network.eth0.received_packets", 2_000.0),
        swinging("process.server.cpu", 0.3),
        used("process.server.cpu_system", 0.12),
        used("process.server.cores_allowed", 1.0),
        used("process.server.context_switches", 2_000.0),
        used("process.server.rss", 5e7),
        used("process.generator.cpu", 0.9),
    ]
}

fn value(cost: &HostCost, figure: CostFigure) -> Option<f64> {
    cost.figures.get(&figure).map(|cost| cost.value)
}

fn check(cost: &HostCost, expected: &[(CostFigure, f64)]) {
    for (figure, expected) in expected {
        let actual = value(cost, *figure).unwrap_or_else(|| panic!("no {figure:?} in {cost:?}"));
        assert!((actual / expected - 1.0).abs() < 1e-9, "{figure:?}: {actual}, not {expected}");
    }
    assert_eq!(cost.figures.len(), expected.len(), "{:?}", cost.figures);
}

#[test]
fn on_a_shared_host_processors_are_the_servers_and_disks_and_network_the_hosts() {
    let all = host_costs(watched(), true);
    let [processes, host] = &all[..] else { panic!("{all:?}") };
    assert_eq!((processes.of, host.of), (CostOf::ServerProcesses, CostOf::SharedHost));
    check(
        processes,
        &[
            (CostFigure::CpuPerOp, 300_000.0),
            (CostFigure::ContextSwitchesPerOp, 2.0),
            (CostFigure::CpuBusy, 0.3),
            (CostFigure::SystemShare, 0.4),
            (CostFigure::Memory, 5e7),
        ],
    );
    check(
        host,
        &[
            (CostFigure::DiskTransfersPerOp, 0.4),
            (CostFigure::DiskBytesPerOp, 4_000.0),
            (CostFigure::DiskBusy, 0.2),
            (CostFigure::NicPacketsPerOp, 4.0),
            (CostFigure::NicBytesPerOp, 9_000.0),
        ],
    );
    assert_eq!((host.disks.concat(), host.interfaces.concat()), ("vda".into(), "lo".into()));
}

#[test]
fn a_host_of_the_server_alone_has_all_of_its_cost_and_loopback_is_none_of_its_network() {
    let source = |it: ResourceUse| ResourceUse { source: Some("ssh://web".into()), ..it };
    let all = host_costs(watched().into_iter().map(source).collect(), false);
    let [processes, host] = &all[..] else { panic!("{all:?}") };
    assert_eq!((processes.of, host.of), (CostOf::ServerProcesses, CostOf::ServerHost));
    assert_eq!((host.cores, host.source.as_deref()), (Some(2.0), Some("ssh://web")));
    check(
        host,
        &[
            (CostFigure::CpuPerOp, 800_000.0),
            (CostFigure::ContextSwitchesPerOp, 5.0),
            (CostFigure::DiskTransfersPerOp, 0.4),
            (CostFigure::DiskBytesPerOp, 4_000.0),
            (CostFigure::NicPacketsPerOp, 8.0),
            (CostFigure::NicBytesPerOp, 9_000.0),
            (CostFigure::CpuBusy, 0.4),
            (CostFigure::SystemShare, 0.4),
            (CostFigure::DiskBusy, 0.2),
            (CostFigure::Memory, 3e9),
        ],
    );
}

#[test]
fn a_disk_on_top_of_others_is_counted_only_where_its_bytes_cannot_lie_on_them() {
    let mut resources = watched();
    resources.extend([used("disk.loop0.written", 9e6), used("disk.loop0.busy", 0.5)]);
    assert_eq!(host_costs(resources, true)[1].disks, ["loop0"], "its file lies in memory");
}

#[test]
fn intervals_come_from_the_samples_and_are_absent_without_them() {
    let all = host_costs(watched(), true);
    let cost = all[0].figures[&CostFigure::CpuPerOp];
    let [low, high] = cost.interval.unwrap();
    assert!(low < cost.value && cost.value < high, "{cost:?}");
    // Samples between nine and twelve tenths: the mean of thirty is known much better.
    assert!((high - low) / cost.value < 0.15, "{cost:?}");
    assert_eq!(all[0].figures[&CostFigure::ContextSwitchesPerOp].interval, None);
}

#[test]
fn a_load_that_varies_with_what_it_uses_has_a_cost_that_does_not() {
    let mut record = PointBuilder::open(1_000.0).build().record;
    let second = |n: u32| SecondRecord {
        second: n,
        phase: Phase::Measure,
        length_ns: 1_000_000_000,
        done: if n.is_multiple_of(3) { 1_200 } else { 900 },
        ..SecondRecord::default()
    };
    record.seconds = (0..30).map(second).collect();
    record.resources = vec![swinging("process.server.cpu", 0.3)];
    let [cost] = &costs(&record, None)[..] else { panic!("one") };
    let Cost { value, interval } = cost.figures[&CostFigure::CpuPerOp];
    let [low, high] = interval.unwrap();
    assert!((value / 300_000.0 - 1.0).abs() < 1e-9 && (high - low) / value < 1e-6, "{low} {high}");
}

#[test]
fn nothing_done_costs_nothing_that_can_be_told() {
    let mut record = PointBuilder::open(1_000.0).build().record;
    record.totals.done_in_window = 0;
    record.resources = watched();
    assert_eq!(costs(&record, None), []);
}
