use plimsoll_model::cost::CostFigure;
use plimsoll_model::disclosure::TargetDisclosure;
use plimsoll_model::disks::DiskSet;
use plimsoll_model::monitored::MonitoredSource;

use super::*;
use crate::testing::PointBuilder;

const NAS: Option<&str> = Some("ssh://nas");

/// Reads, bytes, requests in the queue and time busy of a disk.
fn disk(
    source: Option<&str>,
    name: &str,
    [reads, read, queue, busy]: [f64; 4],
) -> Vec<ResourceUse> {
    let used = |(column, mean): (&str, f64)| ResourceUse {
        source: source.map(str::to_owned),
        ..ResourceUse::of_window(&format!("disk.{name}.{column}"), "", mean, mean)
    };
    let idle = [("writes", 0.0), ("written", 0.0)];
    let figures = [("reads", reads), ("read", read), ("queue_mean", queue), ("busy", busy)];
    figures.into_iter().chain(idle).map(used).collect()
}

fn set(source: Option<&str>, role: DiskRole, disks: &[&str]) -> DiskSet {
    let disks = disks.iter().map(|&disk| disk.to_owned()).collect();
    DiskSet { source: source.map(str::to_owned), role, disks, basis: String::new() }
}

/// Sets of a load point with a server on this host, and a database on another.
fn uses(resources: Vec<ResourceUse>, disk_sets: Vec<DiskSet>) -> (PointRecord, Disclosure) {
    let mut record = PointBuilder::open(1_000.0).build().record;
    record.resources = resources;
    let target = TargetDisclosure { same_host: true, ..TargetDisclosure::default() };
    let database = MonitoredSource {
        source: "ssh://nas".to_owned(),
        role: Some(SourceRole::Database),
        addresses: Vec::new(),
    };
    let (targets, monitored) = (vec![target], vec![database]);
    (record, Disclosure { targets, monitored, disk_sets, ..Disclosure::default() })
}

#[test]
fn a_role_has_the_mean_of_its_disks_and_how_even_they_are() {
    let resources = [
        disk(None, "sdb", [100.0, 1e6, 0.5, 0.4]),
        disk(None, "sdc", [300.0, 3e6, 0.5, 0.6]),
        disk(None, "vda", [10.0, 1e5, 0.1, 0.1]),
    ];
    let sets = vec![
        set(None, DiskRole::Data, &["sdb"]),
        set(None, DiskRole::Data, &["sdc"]),
        set(None, DiskRole::Log, &["sdd", "sdb"]),
    ];
    let (record, disclosure) = uses(resources.concat(), sets);
    let uses = disk_uses(&record, Some(&disclosure));
    let names: Vec<_> = uses.iter().map(|it| (it.disk.as_str(), it.role)).collect();
    let (data, log) = (Some(DiskRole::Data), Some(DiskRole::Log));
    assert_eq!(names, [("sdb", data), ("sdb", log), ("sdc", data), ("sdd", log), ("vda", None)]);
    let sdc = DiskUse {
        source: None,
        disk: "sdc".to_owned(),
        role: data,
        busy_ratio: Some(0.6),
        busy_over_mean: Some(1.2),
        transfers_per_s: Some(300.0),
        bytes_per_s: Some(3e6),
        transfer_s: Some(0.5 / 300.0),
    };
    assert_eq!(uses[2], sdc);
    let [_, log, _, idle, other] = &uses[..] else { panic!("{uses:?}") };
    assert_eq!((log.busy_over_mean, idle.busy_over_mean), (Some(2.0), Some(0.0)));
    // Monitors leave out what did nothing.
    assert_eq!((idle.busy_ratio, idle.transfers_per_s), (Some(0.0), Some(0.0)));
    assert_eq!((idle.transfer_s, other.busy_over_mean), (None, None));
    let mut cost = crate::cost::costs(&record, Some(&disclosure));
    add_disks_busy(&mut cost, &uses);
    let busy = |figure| plimsoll_model::cost::server_cost(&cost, figure).map(|it| it.1.value);
    assert_eq!(busy(CostFigure::DataDisksBusy), Some(0.5));
    assert_eq!(busy(CostFigure::LogDisksBusy), Some(0.2));
    assert_eq!(busy(CostFigure::DatabaseDisksBusy), None);
}

#[test]
fn disks_of_a_databases_host_count_and_those_that_nobody_watched_do_not() {
    let sets = vec![set(None, DiskRole::Data, &["sdb"]), set(NAS, DiskRole::Database, &["sdb"])];
    let (record, disclosure) = uses(disk(NAS, "sdb", [100.0, 1e6, 0.5, 0.4]), sets);
    let uses = disk_uses(&record, Some(&disclosure));
    let [database] = &uses[..] else { panic!("{uses:?}") };
    assert_eq!((database.source.as_deref(), database.role), (NAS, Some(DiskRole::Database)));
    let mut cost = crate::cost::costs(&record, Some(&disclosure));
    add_disks_busy(&mut cost, &uses);
    let figure = CostFigure::DatabaseDisksBusy;
    let (of, busy) = plimsoll_model::cost::server_cost(&cost, figure).unwrap();
    assert_eq!((of, busy.value), (CostOf::OtherHost, 0.4));
}
