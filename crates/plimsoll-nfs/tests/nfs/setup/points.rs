//! What happens before each load point.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Load;
use plimsoll_model::suite::{Arrivals, Conditioning, InterArrival};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_nfs::parameters::{MixOp, NfsWorkload};
use plimsoll_nfs::prepare::{NfsPreparation, PreparationRequest, clean_target};
use plimsoll_protocol::net::PointPreparation;

use super::*;

fn workload() -> NfsWorkload {
    NfsWorkload {
        reserved_port: false,
        verify_one_in: 1,
        file_set_seed: 5,
        mix: BTreeMap::from([(MixOp::GetAttr, 3.0), (MixOp::Write, 1.0)]),
        ..NfsWorkload::default()
    }
}

pub(super) fn open_load(rate: f64, clients: u32) -> Load {
    Load::Open {
        rate_ops_per_s: OpsPerSec::new(rate).unwrap(),
        arrivals: Arrivals::PerClient,
        gaps: InterArrival::Exponential,
        clients,
        backlog_ops_max: 100,
    }
}

#[test]
fn a_warm_point_has_read_each_accessed_file_once() {
    let host = Host::new(ROOMY);
    let mut preparation = NfsPreparation::new(PreparationRequest {
        mounts: vec![mounted(&host, NfsVersion::V3, LinkKind::Stream)],
        workload: workload(),
        scale: 0.1,
        point: Nanos::from_secs(4),
        seed: 1,
        conditioning: Conditioning::Warm,
    });
    let mut read = |rate| {
        let mut totals = Vec::new();
        let ready = preparation.ready(&open_load(rate, 4), &host, &mut |progress| {
            if progress.doing == "reading files" {
                totals.push(progress.total);
            }
            GoOn::Yes
        });
        ready.unwrap();
        totals.last().copied()
    };
    let accessed = |rate| Some(u64::from(FileSet::for_load(rate, 10.0, 0.1).accessed()));
    assert_eq!(read(100.0), accessed(100.0));
    assert_eq!(read(100.0), None, "it has been read");
    assert_eq!(read(400.0), accessed(400.0), "what came with the load is read too");
}

#[test]
fn a_load_point_finds_its_share_of_files_on_every_server() {
    let host = Host::new(ROOMY);
    let mounts = || vec![mounted(&host, NfsVersion::V3, LinkKind::Stream)];
    let mut preparation = NfsPreparation::new(PreparationRequest {
        mounts: mounts(),
        workload: workload(),
        scale: 0.1,
        point: Nanos::from_secs(4),
        seed: 1,
        conditioning: Conditioning::AsFound,
    });
    preparation.probe(&host).unwrap();
    let mut doings = Vec::new();
    for rate in [10.0, 40.0, 20.0] {
        let load = open_load(rate, 4);
        let set = preparation.set_for(&load);
        assert_eq!(set, FileSet::for_load(rate, 10.0, 0.1));
        let ready = preparation.ready(&load, &host, &mut |progress| {
            doings.push((rate, progress.doing));
            GoOn::Yes
        });
        assert_eq!(ready.unwrap().op_names().0, ["write", "getattr"]);
        let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
        let mut remote = remote(&host, &mounted);
        let root = remote.look_up(&mounted.root, b"plimsoll-files").unwrap().handle;
        let marker = remote.look_up(&root, b".plimsoll").unwrap().handle;
        let text = String::from_utf8(remote.read(&marker, 0, 8192).unwrap().data).unwrap();
        let expected = if rate == 20.0 { FileSet::for_load(40.0, 10.0, 0.1) } else { set };
        assert!(text.contains(&format!("\"files\": {}", expected.files())), "{text}");
    }
    let validated = doings.iter().filter(|(_, doing)| *doing == "validating").count();
    assert_eq!(validated, 1, "once is enough");
    let crowd = preparation.ready(&open_load(10.0, 10_000), &host, &mut |_| GoOn::Yes);
    assert!(matches!(crowd.err(), Some(SetupError::Wrong(_))));
    let stopped = preparation.ready(&open_load(50.0, 4), &host, &mut |_| GoOn::No);
    assert!(matches!(stopped.err(), Some(SetupError::Stopped)));

    let target = ResolvedTarget::new(
        TargetUrl::parse("nfs://server/export").unwrap(),
        SocketAddr::new(HOST, PORT),
    );
    let clean = || clean_target(&target, &host, &mut |_| GoOn::Yes).unwrap();
    assert!(clean().contains("files below plimsoll-files"));
    assert!(clean().contains("nothing to remove"));
}
