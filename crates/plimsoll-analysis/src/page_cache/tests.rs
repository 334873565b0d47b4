use plimsoll_model::disclosure::TargetDisclosure;
use plimsoll_model::page_cache::{AccessClass, AccessPattern};

use super::*;
use crate::testing::RunBuilder;

fn used(name: &str, mean: f64) -> ResourceUse {
    ResourceUse::of_window(name, "", mean, mean)
}

/// A thousand ops a second of a thousand bytes on a host that the server shares with the load.
fn page_cache(protocol: &str, resources: Vec<ResourceUse>) -> Option<PageCacheUse> {
    let mut run = RunBuilder::open(&[1_000.0]);
    protocol.clone_into(&mut run.suite.protocol);
    let record = run.finished_mut(0);
    record.resources = resources;
    let class = AccessClass { items: 1_000, bytes: 8_192, share: 1.0 };
    record.access_pattern = Some(AccessPattern { classes: vec![class] });
    let target = TargetDisclosure { same_host: true, ..TargetDisclosure::default() };
    let mut raw = run.raw();
    raw.disclosure = Some(Disclosure { targets: vec![target], ..Disclosure::default() });
    crate::analyse(&raw).points[0].page_cache.clone()
}

fn on_host() -> Vec<ResourceUse> {
    vec![
        used("host.memory_available", 4_096_000.0),
        used("host.major_faults", 3.0),
        used("host.paged_in", 900e3),
        used("disk.vda.busy", 0.5),
        used("disk.vda.read", 250e3),
        used("disk.dm-0.busy", 0.5),
        used("disk.dm-0.read", 250e3),
    ]
}

#[test]
fn what_the_disks_of_the_host_read_is_compared_with_what_was_sent() {
    let cache = page_cache("http", on_host()).unwrap();
    assert_eq!((cache.reads_of, cache.miss_ratio), (DiskReader::Host, 0.25));
    assert_eq!((cache.available_bytes, cache.major_faults_per_s), (Some(4_096_000.0), Some(3.0)));
    assert_eq!(cache.refaults_per_s, None, "no control group was monitored");
    let predicted = cache.predicted.unwrap();
    assert_eq!(predicted.full_bytes, 8_192_000.0);
    // Files that are equally popular: half of them are there.
    assert!((predicted.miss_ratio.unwrap() - 0.5).abs() < 1e-9, "{predicted:?}");
    assert!((predicted.hit_ratio.unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(predicted.curve.first(), Some(&(0.0, 1.0)));
    assert_eq!(predicted.curve.last(), Some(&(8_192_000.0, 0.0)));
    assert!(predicted.curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1), "{predicted:?}");
}

#[test]
fn a_control_group_has_reads_and_a_limit_of_its_own() {
    let of_group = [
        used("storage.server:vda.read", 100e3),
        used("storage.server:dm-0.read", 100e3),
        used("cgroup.server.memory_max", 3e6),
        used("cgroup.server.refaults", 12.0),
        used("process.server.rss", 1e6),
    ];
    let cache = page_cache("nfs", [on_host(), of_group.into()].concat()).unwrap();
    assert_eq!((cache.reads_of, cache.miss_ratio), (DiskReader::ControlGroup, 0.1));
    assert_eq!((cache.available_bytes, cache.refaults_per_s), (Some(2e6), Some(12.0)));
}

#[test]
fn idle_disks_are_no_misses_and_disks_that_nobody_watched_are_unknown() {
    let idle = vec![used("host.paged_in", 0.0)];
    let cache = page_cache("smb", idle).unwrap();
    assert_eq!((cache.miss_ratio, cache.available_bytes), (0.0, None));
    assert_eq!(cache.predicted.unwrap().miss_ratio, None, "the memory is unknown");
    assert_eq!(page_cache("http", vec![used("host.cpu_busy", 0.4)]), None);
}

#[test]
fn what_a_database_reads_is_no_part_of_what_it_sends() {
    assert_eq!(page_cache("app", on_host()), None);
}
