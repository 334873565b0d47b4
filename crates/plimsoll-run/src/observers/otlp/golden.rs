//! A load point whose message is compared byte by byte with `golden.bin`, which the crate
//! `opentelemetry-proto` 0.33.1 encoded, and of its instance, agents, resources and limit `protoc`.
//! `protoc --decode` prints it, as in `tests/program/otlp.rs`, and `--encode` reads what it prints.

use plimsoll_analysis::PointTimes;
use plimsoll_model::assignment::{Load, Pacing, PointId, Purpose};
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{OpTimes, Phase, PointRecord, ResourceUse, WorkerTotals};
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::monitored::{MonitoredHost, RoleBasis, SourceRole};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::result::{AgentResult, OpResult, PointResult, RunResult, SuiteSummary};
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::{Nanos, OpsPerSec};
use prost::Message as _;

use super::super::FinishedPoint;
use super::message;
use super::wire::DELTA;

/// The version that the bytes were made with.
const VERSION: &str = "0.1.0";

fn record() -> PointRecord {
    PointRecord {
        point: PointId { ordinal: 3, purpose: Purpose::Verify },
        load: Load::Open {
            rate_ops_per_s: OpsPerSec::new(1_000.0).unwrap(),
            arrivals: Arrivals::Shared,
            gaps: InterArrival::Uniform,
            clients: 1,
            backlog_ops_max: 1,
        },
        pacing: Pacing::Precise,
        started_unix_ns: 1_790_000_000_000_000_001,
        warm_up_ns: Nanos::from_millis(200),
        measured_ns: Nanos::from_secs(2),
        clock_step_ns: 0,
        totals: WorkerTotals::default(),
        seconds: vec![],
        workers: vec![],
        process_cpu_ns: 0,
        monitor_cpu_ns: 0,
        panic: None,
        ended_early: None,
        resources: vec![],
        core_users: None,
        server_core_users: None,
        server_lost: None,
        data_set_bytes: None,
        access_pattern: None,
        host_work: Vec::new(),
        agents: Vec::new(),
        phase: None,
        ops: None,
    }
}

/// Of three ops the last never occurred.
fn times() -> PointTimes {
    let mut ops = vec![OpTimes::new(), OpTimes::new(), OpTimes::new()];
    for ns in [0, 90_000, 91_000, 91_000, 100_000] {
        ops[0].response.record(ns).unwrap();
        ops[1].response.record(ns + 1_000).unwrap();
        ops[1].service.record(ns + 500).unwrap();
    }
    let (start, length, phase) = (Nanos::ZERO, Nanos::from_secs(1), Phase::Measure);
    let second = IntervalSlice { second: 0, start, length, phase, ops };
    let mut times = PointTimes::default();
    times.add(&second);
    times
}

fn point() -> PointResult {
    let vda = ResourceUse::of_window("disk.vda.busy", "ratio", 0.25, 0.5);
    let busy = LimitFacts::BusyDisk { disk: "vda".to_owned(), busy_ratio: 0.25, queued: 3.0 };
    let op = |count, errors| OpResult { count, errors, ..OpResult::default() };
    PointResult {
        position: 2,
        requested: 1_000.5,
        offered_ops_per_s: Some(999.5),
        achieved_ops_per_s: Some(998.25),
        valid: true,
        ops: [("READ".to_owned(), op(5, 0)), ("WRITE".to_owned(), op(5, 2))].into(),
        agents: vec![AgentResult {
            name: "a1".to_owned(),
            host: "h1".to_owned(),
            achieved_ops_per_s: Some(500.0),
            errors: 2,
            ..AgentResult::default()
        }],
        resources: vec![
            ResourceUse::of_window("host.cpu_busy", "ratio", 0.5, 0.75),
            ResourceUse { source: Some("ssh://db".to_owned()), ..vda },
            ResourceUse::of_window("disk.vda.queue_mean", "", 3.0, 4.0),
        ],
        limit: Limit::new(busy, Vec::new()),
        ..PointResult::default()
    }
}

/// One character for each byte.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[test]
fn a_load_point_is_the_same_bytes_as_ever() {
    let (record, times, point) = (record(), times(), point());
    let op_names = OpNames(["READ", "WRITE", "LOOKUP"].map(str::to_owned).to_vec());
    let run = RunResult {
        started: Some("2026-09-21T14:13:20Z".to_owned()),
        suite: Some(SuiteSummary { name: "nfs-v3".to_owned(), ..SuiteSummary::default() }),
        profile: Some("quick".to_owned()),
        targets: vec!["nfs://a/x".to_owned(), "nfs://b/x".to_owned()],
        monitored_hosts: vec![MonitoredHost {
            source: Some("ssh://db".to_owned()),
            role: SourceRole::Database,
            basis: RoleBasis::Given,
        }],
        ..RunResult::default()
    };
    let finished = FinishedPoint {
        record: &record,
        times: &times,
        op_names: &op_names,
        point: &point,
        run: &run,
    };
    let bytes = message::of_point(message::resource(&run), &finished, DELTA);
    let bytes = bytes.encode_to_vec();
    // Another version of the same length moves no byte.
    let text = latin(&bytes).replace(env!("CARGO_PKG_VERSION"), VERSION);
    let golden = latin(include_bytes!("golden.bin"));
    assert!(text == golden, "{} bytes, {} were expected", text.len(), golden.len());
}
