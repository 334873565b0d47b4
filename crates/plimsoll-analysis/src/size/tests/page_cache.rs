//! Memory in place of disks.

use plimsoll_model::cost::{CostFigure, CostOf, HostCost};
use plimsoll_model::page_cache::{DiskReader, PageCacheUse, PredictedMisses};
use plimsoll_model::result::{PointResult, RunResult, Verdict};
use plimsoll_model::size::{Ceilings, DisksWithMemory};

use super::*;

/// Ops of 10 kB from two disks that read a fifth of them and are half as busy as the load is high.
fn point(ops_per_s: f64, has_prediction: bool) -> PointResult {
    let cost = |value: f64| Cost { value, interval: None };
    let figures = [
        (CostFigure::CpuPerOp, cost(100_000.0)),
        (CostFigure::DiskBytesPerOp, cost(2_500.0)),
        (CostFigure::DiskTransfersPerOp, cost(0.05)),
        (CostFigure::DiskBusy, cost(ops_per_s / 2_000.0)),
        (CostFigure::Memory, cost(1e9)),
    ];
    let cost = HostCost {
        source: None,
        of: CostOf::ServerHost,
        cores: Some(1.0),
        disks: vec!["vda".into(), "vdb".into()],
        interfaces: Vec::new(),
        figures: figures.into_iter().collect(),
    };
    let predicted = PredictedMisses {
        full_bytes: 8e9,
        miss_ratio: None,
        hit_ratio: None,
        curve: vec![(0.0, 1.0), (4e9, 0.2), (8e9, 0.0)],
    };
    PointResult {
        valid: true,
        seconds: Some(10.0),
        achieved_ops_per_s: Some(ops_per_s),
        bytes_read: Some((10_000.0 * 10.0 * ops_per_s) as u64),
        response_ns: Some(TimeSummary { mean: Some(1e6), ..TimeSummary::default() }),
        cost: vec![cost],
        page_cache: Some(PageCacheUse {
            miss_ratio: 0.2,
            reads_of: DiskReader::Host,
            available_bytes: None,
            refaults_per_s: None,
            major_faults_per_s: None,
            predicted: has_prediction.then_some(predicted),
        }),
        ..PointResult::default()
    }
}

/// Half of what a disk can do may be used.
fn request(load_ops_per_s: f64, memory_bytes: Option<f64>, disk_rate: f64) -> SizeRequest {
    let declared = Ceilings {
        disk_bytes_per_s: Some(disk_rate),
        disk_transfers_per_s: Some(1e6),
        ..Ceilings::default()
    };
    SizeRequest {
        headroom_ratio: 0.5,
        stated: declared,
        memory_bytes,
        ..request_for(load_ops_per_s, None)
    }
}

fn sized(request: SizeRequest, has_prediction: bool) -> Sizing {
    let points = [200.0, 400.0, 600.0].map(|rate| point(rate, has_prediction)).to_vec();
    let verdict = Verdict { valid: true, ..Verdict::default() };
    let result = RunResult { points, verdict, ..RunResult::default() };
    let run = RunInput { bundle: "runs/files".to_owned(), result, suite: toml::Table::new() };
    size(&[run], RequestedLoad::Ops(request.load_ops_per_s), request).unwrap()
}

#[test]
fn more_memory_needs_fewer_disks() {
    let cache = sized(request(800.0, Some(5e9), 2.4e6), true).page_cache.unwrap();
    // Two disks do 2.4 MB/s: 3,000 bytes of an op, of which 500 are written.
    assert_eq!((cache.disks, cache.full_bytes), (2.0, 8e9));
    let enough = cache.enough_bytes.unwrap();
    assert!(near(enough, 4e9 * 0.75 / 0.8, 1e-6), "{enough}");
    let DisksWithMemory { bytes, miss_ratio, disks } = cache.with.unwrap();
    // The server itself has 1 GB of the 5.
    assert!(near(bytes, 4e9, 1e-6) && near(miss_ratio, 0.2, 1e-6), "{bytes} {miss_ratio}");
    assert!(near(disks.unwrap(), 800.0 * 2_500.0 / 1.2e6, 1e-6), "{disks:?}");
    assert_eq!(sized(request(800.0, None, 2.4e6), true).page_cache.unwrap().with, None);
}

#[test]
fn no_memory_is_enough_where_writes_alone_are_too_much() {
    // Two disks do 0.4 MB/s; 500 bytes of each op are written.
    let cache = |load| sized(request(load, Some(100e9), 0.4e6), true).page_cache.unwrap();
    assert!(near(cache(790.0).enough_bytes.unwrap(), 8e9, 0.01));
    assert_eq!(cache(810.0).enough_bytes, None);
    let with = cache(810.0).with.unwrap();
    assert_eq!(with.miss_ratio, 0.0);
    assert!(near(with.disks.unwrap(), 810.0 * 500.0 / 0.2e6, 1e-6), "{with:?}");
}

#[test]
fn without_the_access_pattern_the_requested_memory_is_unanswered() {
    let sizing = sized(request(800.0, Some(5e9), 2.4e6), false);
    assert_eq!(sizing.page_cache, None);
    assert!(sizing.unknown.contains(&Unknown::AccessPattern), "{:?}", sizing.unknown);
    let sizing = sized(request(800.0, None, 2.4e6), false);
    assert!(!sizing.unknown.contains(&Unknown::AccessPattern));
}
