//! Another host works on what a first one has brought to the server.

use std::sync::{Mutex, PoisonError};

use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::suite::{Conditioning, Think, ThinkDistribution};
use plimsoll_model::units::Nanos;
use plimsoll_nfs::parameters::{MixOp, NfsWorkload};
use plimsoll_nfs::prepare::{NfsPreparation, PreparationRequest, clean_target};
use plimsoll_nfs::wire::rpc::Call;
use plimsoll_protocol::net::PointPreparation;
use plimsoll_testkit::dial_driver::{assignment, crews, sent_by};

use super::points::open_load;
use super::*;

/// Programs and procedures of the calls to a server.
type CallLog = Arc<Mutex<Vec<(u32, u32)>>>;

/// A host that records its calls.
fn watched() -> (Host, CallLog) {
    let calls = CallLog::default();
    let log = Arc::clone(&calls);
    let host = Host::new(ROOMY).with_fault(move |request, _| {
        let Call { program, procedure, .. } = request.call;
        log.lock().unwrap_or_else(PoisonError::into_inner).push((program, procedure));
        None
    });
    (host, calls)
}

/// Of these, those of NFS that change something (RFC 1094 §2.2, RFC 1813 §3).
fn changes(calls: &CallLog, version: NfsVersion) -> Vec<u32> {
    const NFS: u32 = 100_003;
    let changing: &[u32] = match version {
        NfsVersion::V2 => &[2, 8, 9, 10, 11, 12, 13, 14, 15],
        NfsVersion::V3 => &[2, 7, 8, 9, 10, 11, 12, 13, 14, 15, 21],
        NfsVersion::V4_1 => unreachable!("the changes of a compound are not seen in its procedure"),
    };
    let calls = calls.lock().unwrap();
    let of_nfs = calls.iter().filter(|(program, _)| *program == NFS).map(|(_, of)| *of);
    of_nfs.filter(|procedure| changing.contains(procedure)).collect()
}

fn preparation(host: &Host, version: NfsVersion, kind: LinkKind) -> NfsPreparation {
    scaled(host, (version, kind), 0.1)
}

fn scaled(host: &Host, (version, kind): (NfsVersion, LinkKind), scale: f64) -> NfsPreparation {
    let mix = [(MixOp::Lookup, 4.0), (MixOp::Read, 3.0), (MixOp::Write, 2.0), (MixOp::Create, 1.0)];
    let more = [(MixOp::Remove, 1.0), (MixOp::ReadLink, 1.0), (MixOp::ReadDir, 1.0)];
    NfsPreparation::new(PreparationRequest {
        mounts: vec![mounted(host, version, kind)],
        workload: NfsWorkload {
            version,
            reserved_port: false,
            file_set_seed: 5,
            mix: mix.into_iter().chain(more).collect(),
            ..NfsWorkload::default()
        },
        scale,
        point: Nanos::from_secs(4),
        seed: 1,
        conditioning: Conditioning::AsFound,
    })
}

fn ready(preparation: &mut NfsPreparation, load: &Load, host: &Host) -> Arc<dyn Workload> {
    preparation.ready(load, host, &mut |_| GoOn::Yes).unwrap()
}

#[test]
fn an_agent_changes_nothing_when_it_attaches_and_its_clients_do_the_same() {
    for (version, kind) in
        EVERYWHERE.into_iter().filter(|(version, _)| *version != NfsVersion::V4_1)
    {
        let (host, calls) = watched();
        let mut first = preparation(&host, version, kind);
        let mut second = preparation(&host, version, kind);
        for rate in [60.0, 240.0, 100.0] {
            let load = open_load(rate, 4);
            let prepared = ready(&mut first, &load, &host);
            calls.lock().unwrap().clear();
            let attached = second.attach(&load, first.files(&load), &host).unwrap();
            assert_eq!(changes(&calls, version), [0; 0], "{version:?} {kind:?}");
            let task = assignment(load.clone());
            let sent = sent_by(&*prepared, (&task, None), &host);
            assert!(sent.len() == 4 && sent.iter().all(|(_, bytes)| bytes.len() > 1_000));
            assert!(!changes(&calls, version).is_empty(), "the load itself writes");
            // As a load point finds it.
            ready(&mut first, &load, &host);
            assert!(sent_by(&*attached, (&task, None), &host) == sent, "{version:?} {kind:?}");
        }
    }
}

#[test]
fn clients_do_the_same_whoever_runs_them() {
    let (host, _) = watched();
    let mut first = scaled(&host, (NfsVersion::V3, LinkKind::Stream), 0.01);
    let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
    let closed = Load::Closed {
        clients: 6,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    };
    for load in [open_load(300.0, 6), closed] {
        let mut task = assignment(load.clone());
        if matches!(load, Load::Closed { .. }) {
            // Some hundred calls of each client.
            (task.phases.warm_up_ns, task.phases.measure_ns) =
                (Nanos::ZERO, Nanos::from_millis(10));
        }
        let mut sent = Vec::new();
        for (workers, agents) in [(1, 1), (4, 1), (4, 2), (4, 4), (2, 2)] {
            task.workers = workers;
            let workload = ready(&mut first, &load, &host);
            let of_group = |group| sent_by(&*workload, (&task, group), &host);
            let mut all: Vec<_> = crews(workers, agents).flat_map(of_group).collect();
            all.sort();
            sent.push(all);
        }
        assert_eq!(sent[0].len(), 6);
        assert!(sent.iter().all(|all| *all == sent[0]), "{load:?}");
    }
}

#[test]
fn an_agent_takes_only_what_the_controller_has_brought() {
    let (host, calls) = watched();
    let (version, kind) = (NfsVersion::V3, LinkKind::Stream);
    let mut agent = preparation(&host, version, kind);
    let load = open_load(60.0, 4);
    let refused = |agent: &mut NfsPreparation, files| {
        let refused = agent.attach(&load, files, &host).err().unwrap().to_string();
        assert!(refused.contains("what the controller has brought"), "{refused}");
        assert_eq!(changes(&calls, version), [0; 0]);
    };
    refused(&mut agent, None);
    let mut controller = preparation(&host, version, kind);
    ready(&mut controller, &load, &host);
    calls.lock().unwrap().clear();
    let files = controller.files(&load).unwrap();
    refused(&mut agent, Some(files + 1));
    agent.attach(&load, Some(files), &host).unwrap();

    let target = ResolvedTarget::new(
        TargetUrl::parse("nfs://server/export").unwrap(),
        SocketAddr::new(HOST, PORT),
    );
    clean_target(&target, &host, &mut |_| GoOn::Yes).unwrap();
    let mut controller = preparation(&host, version, kind);
    let prepared = ready(&mut controller, &load, &host);
    let attached = agent.attach(&load, Some(files), &host).unwrap();
    let task = assignment(load.clone());
    let sent = sent_by(&*prepared, (&task, None), &host);
    ready(&mut controller, &load, &host);
    assert!(sent_by(&*attached, (&task, None), &host) == sent, "the set is another one");
}

#[test]
fn a_closed_load_has_the_files_of_the_controller_wherever_room_is_short() {
    let (host, _) = watched();
    let (version, kind) = (NfsVersion::V3, LinkKind::Stream);
    let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
    let load = Load::Closed {
        clients: 3,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    };
    let mut controller = preparation(&host, version, kind);
    controller.room(&host).unwrap();
    let mut agent = preparation(&host, version, kind);
    assert_ne!(controller.files(&load), agent.files(&load), "it has not asked for room");
    ready(&mut controller, &load, &host);
    agent.attach(&load, controller.files(&load), &host).unwrap();
}
