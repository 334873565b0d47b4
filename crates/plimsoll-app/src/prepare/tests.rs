use std::net::SocketAddr;

use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::suite::{Arrivals, InterArrival, Think, ThinkDistribution};
use plimsoll_model::units::{Nanos, OpsPerSec};

use super::*;
use crate::op::content_key;
use crate::parameters::AppWorkload;
use crate::peer::PeerHost;
use crate::session::segment_of;
use crate::wire::{HELLO_BYTES, Refusal, RequestHeader, Status};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::{GoOn, PointPreparation, SetupProgress};
use plimsoll_testkit::dial_driver::{assignment, crews, sent_by};

/// Data segments of 128 KiB.
const SCALE: f64 = 1.0 / 128.0;

fn load(clients: u32) -> Load {
    let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
    Load::Closed {
        clients,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    }
}

fn site(port: u16) -> Site {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    Site { name: format!("app://{address}/"), address }
}

fn preparation(workload: &AppWorkload, servers: u16) -> AppPreparation {
    AppPreparation::new(PreparationRequest {
        sites: (0..servers).map(|n| site(7_415 + n)).collect(),
        workload: workload.clone(),
        scale: SCALE,
        seed: 1,
    })
}

/// Prepares; the text of the failure, if it fails.
fn ready(preparation: &mut AppPreparation, host: &PeerHost, clients: u32) -> Result<(), String> {
    preparation.ready(&load(clients), host, &mut |_| GoOn::Yes).map(drop).map_err(|e| e.to_string())
}

fn expected(client: u32) -> Vec<u8> {
    let workload = AppWorkload::default();
    let table = ContentTable::new(workload.file_set_seed);
    let bytes = segment_of(&workload, SCALE).bytes() as usize;
    table.bytes(content_key(&table, client), 0, bytes).to_vec()
}

#[test]
fn segments_are_filled_once_and_then_only_those_of_new_clients() {
    let host = PeerHost::default();
    let mut preparation = preparation(&AppWorkload::default(), 1);
    ready(&mut preparation, &host, 3).unwrap();
    for client in 0..3 {
        assert!(host.set(|peer| peer.segments[&client] == expected(client)), "{client}");
    }
    assert_eq!(host.set(|peer| (peer.writes, peer.hellos.len())), (6, 3));
    ready(&mut preparation, &host, 2).unwrap();
    assert_eq!(host.set(|peer| peer.hellos.len()), 3, "nobody is new");
    ready(&mut preparation, &host, 4).unwrap();
    assert_eq!(host.set(|peer| (peer.writes, peer.hellos.len())), (8, 4));
}

#[test]
fn a_run_writes_only_what_differs_from_what_another_left() {
    let host = PeerHost::default();
    ready(&mut preparation(&AppWorkload::default(), 1), &host, 2).unwrap();
    host.set(|peer| {
        peer.writes = 0;
        peer.segments.get_mut(&1).unwrap()[100_000] ^= 1;
    });
    ready(&mut preparation(&AppWorkload::default(), 1), &host, 2).unwrap();
    assert_eq!(host.set(|peer| peer.writes), 1);
    assert!(host.set(|peer| peer.segments[&1] == expected(1)));
}

#[test]
fn a_mix_without_reads_and_writes_fills_nothing() {
    let host = PeerHost::default();
    let mut workload = AppWorkload::default();
    (workload.mix.random_read, workload.mix.random_write) = (0.0, 0.0);
    ready(&mut preparation(&workload, 1), &host, 60).unwrap();
    workload.mix.append = 1.0;
    ready(&mut preparation(&workload, 1), &host, 60).unwrap();
    assert!(host.set(|peer| peer.hellos.is_empty()));
}

#[test]
fn clients_are_shared_out_to_the_servers() {
    let host = PeerHost::default();
    ready(&mut preparation(&AppWorkload::default(), 2), &host, 5).unwrap();
    let mut clients: Vec<u32> = host.set(|peer| peer.hellos.iter().map(|h| h.client).collect());
    clients[..3].sort_unstable();
    clients[3..].sort_unstable();
    assert_eq!(clients, [0, 2, 4, 1, 3]);
}

#[test]
fn refusals_say_what_to_do() {
    for (refusal, expected) in [
        (Refusal::SegmentSize, "a larger --segment-max"),
        (Refusal::NoRoom, "no room for a data segment of 128 KiB"),
        (Refusal::Full, "a larger --connections-max"),
        (Refusal::Storage, "its own log says why"),
        (Refusal::Ending, "about to end"),
    ] {
        let host = PeerHost::default();
        host.set(|peer| peer.refusal = Some(refusal));
        let message = ready(&mut preparation(&AppWorkload::default(), 1), &host, 2).unwrap_err();
        assert!(
            message.contains(expected) && message.contains("app://127.0.0.1:7415/"),
            "{message}"
        );
    }
}

#[test]
fn a_server_of_another_version_or_protocol_is_named_for_what_it_is() {
    let greeted = |greeting: &[u8]| {
        let host = PeerHost::default();
        host.set(|peer| peer.greeting = Some(greeting.to_vec()));
        greet(&site(1), &host).unwrap_err().to_string()
    };
    let mut other = Welcome::refused(Refusal::Version).encode();
    other[5] = 9;
    assert!(greeted(&other).contains("speaks version 9"), "{}", greeted(&other));
    let web = greeted(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    assert!(web.contains("see whether a transaction server listens on that port"), "{web}");
}

#[test]
fn a_silent_server_is_given_up_and_a_stop_is_heard_while_it_is_silent() {
    let host = PeerHost::default();
    host.set(|peer| peer.silent = true);
    let message = greet(&site(1), &host).unwrap_err().to_string();
    assert!(message.contains("no answer in time; see whether the server still runs"), "{message}");
    let host = PeerHost { stop_after: Some(3), ..host };
    assert!(matches!(greet(&site(1), &host), Err(SetupError::Stopped)));
}

#[test]
fn the_caller_may_stop_the_filling() {
    let host = PeerHost::default();
    let mut preparation = preparation(&AppWorkload::default(), 1);
    let ended = preparation.ready(&load(60), &host, &mut |_: SetupProgress| GoOn::No);
    assert!(matches!(ended.map(drop), Err(SetupError::Stopped)));
}

#[test]
fn a_disk_that_fills_up_is_an_unusable_target() {
    let host = PeerHost::default();
    host.set(|peer| peer.write_status = Some(Status::NoRoom));
    let message = ready(&mut preparation(&AppWorkload::default(), 1), &host, 2).unwrap_err();
    assert!(message.contains("no room; free some room"), "{message}");
}

#[test]
fn a_calibrated_server_has_no_segments_to_fill() {
    let host = PeerHost::default();
    host.set(|peer| peer.calibrated = true);
    let message = ready(&mut preparation(&AppWorkload::default(), 1), &host, 1).unwrap_err();
    assert!(message.contains("is calibrated"), "{message}");
    assert!(greet(&site(1), &host).unwrap().calibrated);
}

/// A workload with little processor work, for tests.
fn light() -> AppWorkload {
    AppWorkload { work: 1, ..AppWorkload::default() }
}

/// A load point in which each client does some hundred transactions.
fn task(load: &Load) -> Assignment {
    let mut task = assignment(load.clone());
    if matches!(load, Load::Closed { .. }) {
        (task.phases.warm_up_ns, task.phases.measure_ns) = (Nanos::ZERO, Nanos::from_millis(20));
    }
    task
}

fn open_load(clients: u32, arrivals: Arrivals) -> Load {
    let (rate_ops_per_s, inter_arrival) =
        (OpsPerSec::new(400.0).unwrap(), InterArrival::Exponential);
    Load::Open { rate_ops_per_s, arrivals, gaps: inter_arrival, clients, backlog_ops_max: 1_000 }
}

#[test]
fn an_agent_asks_nothing_when_it_attaches_and_its_clients_do_the_same() {
    let host = PeerHost::default();
    let workload = light();
    for load in [load(3), open_load(3, Arrivals::PerClient), open_load(3, Arrivals::Shared)] {
        let mut first = preparation(&workload, 1);
        let prepared = first.ready(&load, &host, &mut |_| GoOn::Yes).unwrap();
        let before = host.set(|peer| (peer.hellos.len(), peer.writes));
        let attached = preparation(&workload, 1).attach(&load, first.files(&load), &host).unwrap();
        assert_eq!(host.set(|peer| (peer.hellos.len(), peer.writes)), before);
        let task = task(&load);
        let sent = sent_by(&*prepared, (&task, None), &host);
        assert!(sent.len() == 3 && sent.iter().all(|(_, bytes)| bytes.len() > 1_000));
        assert!(sent_by(&*attached, (&task, None), &host) == sent);
    }
}

/// The log entries of a server for the requests that a client sent.
fn logged(mut bytes: &[u8]) -> Vec<(u8, u64, u32)> {
    bytes = &bytes[HELLO_BYTES..];
    let mut requests = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let header = RequestHeader::decode(header).unwrap();
        requests.push((header.kind as u8, header.offset, header.seed));
        bytes = &rest[header.payload_bytes as usize..];
    }
    requests
}

#[test]
fn transactions_are_the_same_for_any_number_of_workers_and_agents() {
    let host = PeerHost::default();
    for load in [load(6), open_load(6, Arrivals::PerClient), open_load(6, Arrivals::Shared)] {
        let mut preparation = preparation(&light(), 1);
        let workload = preparation.ready(&load, &host, &mut |_| GoOn::Yes).unwrap();
        let is_shared = matches!(load, Load::Open { arrivals: Arrivals::Shared, .. });
        let mut all = Vec::new();
        for (workers, agents) in [(1, 1), (4, 1), (4, 2), (4, 4), (2, 2)] {
            let mut task = task(&load);
            task.workers = workers;
            let sent_by_group = |group| sent_by(&*workload, (&task, group), &host);
            let sent = crews(workers, agents).flat_map(sent_by_group);
            let mut requests: Vec<_> =
                sent.map(|(client, bytes)| (client, logged(&bytes))).collect();
            requests.sort();
            if is_shared {
                // Which client sends a request does not matter.
                let mut pool: Vec<_> = requests.into_iter().flat_map(|(_, sent)| sent).collect();
                pool.sort_unstable();
                requests = vec![(None, pool)];
            }
            all.push(requests);
        }
        assert!(all[0].iter().all(|(_, requests)| requests.len() > 20));
        assert!(all.iter().all(|one| *one == all[0]), "{load:?}");
    }
}
