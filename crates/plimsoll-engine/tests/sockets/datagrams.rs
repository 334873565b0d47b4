//! Datagrams and reserved ports on real sockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use plimsoll_engine::agent::{run_point, soonest};
use plimsoll_engine::driver::epoll::EpollDriver;
use plimsoll_engine::driver::{
    Datagrams, Driver as _, LocalPort, Ready, Received, Route, Slot, Wait,
};
use plimsoll_engine::interface::LinkKind;
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose,
};
use plimsoll_model::event::{AgentEvent, WorkerTotals};
use plimsoll_model::suite::{Arrivals, InterArrival, OnClientFailure};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_testkit::pipeline::Pipeline;
use plimsoll_testkit::skips::skip_always;

/// The longest datagram UDP carries over IPv4.
const LONGEST: usize = 65_507;

fn driver() -> EpollDriver {
    EpollDriver::new(EpollDriver::instance().unwrap(), Nanos::ZERO)
}

fn route(to: SocketAddr, port: LocalPort) -> Route {
    Route { to, unix: None, from: None, port }
}

/// Waits until something is ready on the slot.
fn wait(driver: &mut EpollDriver, slot: Slot, what: impl Fn(&Ready) -> bool) {
    let until = driver.now() + Nanos::from_secs(5);
    let mut ready = Vec::new();
    while !ready.iter().any(|event: &Ready| event.slot == slot && what(event)) {
        assert!(driver.now() < until, "nothing happened on slot {slot}");
        driver.wait(Wait::Until(until), &mut ready);
    }
}

fn peer() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn datagrams_keep_their_borders_and_an_empty_one_is_not_the_end() {
    let (server, address) = peer();
    let mut driver = driver();
    driver.connect(0, LinkKind::Datagram, &route(address, LocalPort::Any)).unwrap();
    wait(&mut driver, 0, |event| event.writable);
    driver.connected(0).unwrap();

    let lengths = [3, 0, 1, 1_472, 9_000, LONGEST, 2];
    let bytes: Vec<u8> = (0..lengths.iter().sum()).map(|i: usize| (i % 251) as u8).collect();
    assert_eq!(driver.send_datagrams(0, &bytes, &lengths).unwrap(), lengths.len());
    let mut buffer = vec![0; 1 << 17];
    let mut rest = &bytes[..];
    for length in lengths {
        let (got, from) = server.recv_from(&mut buffer).unwrap();
        let (sent, after) = rest.split_at(length);
        assert_eq!(&buffer[..got], sent);
        server.send_to(&buffer[..got], from).unwrap();
        rest = after;
    }
    let mut rest = &bytes[..];
    for length in lengths {
        let received = loop {
            match driver.recv(0, &mut buffer).unwrap() {
                Received::Nothing => wait(&mut driver, 0, |event| event.readable),
                received => break received,
            }
        };
        let (sent, after) = rest.split_at(length);
        assert!(matches!(received, Received::Bytes { length: all, .. } if all == length));
        assert_eq!(&buffer[..length], sent);
        rest = after;
    }
    assert_eq!(driver.recv(0, &mut buffer).unwrap(), Received::Nothing);
}

#[test]
fn many_datagrams_are_received_together_and_keep_their_borders_and_order() {
    let (server, address) = peer();
    let mut driver = driver();
    driver.connect(0, LinkKind::Datagram, &route(address, LocalPort::Any)).unwrap();
    driver.send(0, b"here I am").unwrap();
    let client = server.recv_from(&mut [0; 16]).unwrap().1;

    let sent: Vec<Vec<u8>> = (0..40u8).map(|i| vec![i; usize::from(i) * 30]).collect();
    for datagram in &sent {
        server.send_to(datagram, client).unwrap();
    }
    let mut batch = Datagrams::default();
    let mut received: Vec<Vec<u8>> = Vec::new();
    let mut counts = Vec::new();
    while received.len() < sent.len() {
        driver.recv_datagrams(0, &mut batch).unwrap();
        received.extend(batch.received().map(|(bytes, _)| bytes.to_vec()));
        counts.push(batch.received().count());
        assert_eq!(batch.is_full(), counts.last() == Some(&Datagrams::MOST));
        if batch.is_empty() {
            wait(&mut driver, 0, |event| event.readable);
        }
    }
    assert!(received == sent, "{counts:?}");
    driver.recv_datagrams(0, &mut batch).unwrap();
    assert!(batch.is_empty() && batch.received().count() == 0);

    // The longest, and an error instead of datagrams.
    server.send_to(&vec![7; LONGEST], client).unwrap();
    wait(&mut driver, 0, |event| event.readable);
    driver.recv_datagrams(0, &mut batch).unwrap();
    assert!(batch.received().map(|(bytes, _)| bytes).eq([&vec![7; LONGEST][..]]));
    drop(server);
    // The kernel limits how many it tells so: the answer to one datagram may not come.
    let until = driver.now() + Nanos::from_secs(5);
    let mut ready: Vec<Ready> = Vec::new();
    while !ready.iter().any(|event| event.hung_up) {
        assert!(driver.now() < until, "nobody said that nobody is there");
        if driver.send(0, b"nobody is there").is_err() {
            return;
        }
        let soon = driver.now() + Nanos::from_millis(200);
        driver.wait(Wait::Until(soon), &mut ready);
    }
    assert!(driver.recv_datagrams(0, &mut batch).is_err());
}

#[test]
fn a_datagram_that_does_not_fit_is_an_error_of_its_link() {
    let (_server, address) = peer();
    let mut driver = driver();
    driver.connect(0, LinkKind::Datagram, &route(address, LocalPort::Any)).unwrap();
    let too_long = vec![0; LONGEST + 1];
    assert!(driver.send(0, &too_long).is_err());
    assert!(driver.send_datagrams(0, &too_long, &[LONGEST + 1]).is_err());
    assert!(driver.send_datagrams(0, &vec![0; LONGEST + 9], &[8, LONGEST + 1]).is_err());
}

/// A port below 1024 may be had here.
fn may_have_reserved_ports() -> bool {
    (600..1024).any(|port| match UdpSocket::bind(("127.0.0.1", port)) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::AddrInUse,
    })
}

#[test]
fn reserved_ports_are_below_1024_and_each_link_has_its_own() {
    let (server, address) = peer();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut driver = driver();
    let mut ports = Vec::new();
    for slot in 0..4 {
        driver.connect(slot, LinkKind::Datagram, &route(address, LocalPort::Reserved)).unwrap();
        driver.send(slot, b"who").unwrap();
        ports.push(server.recv_from(&mut [0; 8]).unwrap().1.port());
        let stream = route(listener.local_addr().unwrap(), LocalPort::Reserved);
        driver.connect(slot + 4, LinkKind::Stream, &stream).unwrap();
        ports.push(listener.accept().unwrap().1.port());
    }
    if !may_have_reserved_ports() {
        return skip_always(&format!("ports below 1024 are not permitted, {ports:?} were taken"));
    }
    assert!(ports.iter().all(|port| (512..1024).contains(port)), "{ports:?}");
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 8);
}

fn assignment(address: SocketAddr, workers: u32) -> Assignment {
    Assignment {
        point: PointId { ordinal: 1, purpose: Purpose::Ladder },
        load: Load::Open {
            rate_ops_per_s: OpsPerSec::new(4_000.0).unwrap(),
            arrivals: Arrivals::PerClient,
            gaps: InterArrival::Uniform,
            clients: 4,
            backlog_ops_max: 10_000,
        },
        phases: Phases {
            warm_up_ns: Nanos::from_millis(100),
            measure_ns: Nanos::from_secs(1),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::from_secs(5),
            ops: None,
        },
        seed: 1,
        workers,
        cores: vec![],
        pacing: Pacing::Coalesce,
        own_cores: false,
        priority: Priority::Normal,
        op_timeout: Nanos::from_secs(5),
        endpoints: vec![Endpoint { target: "echo".into(), address, unix: None }],
        sources: vec![],
        reserved_ports: true,
        nonce: 0,
        on_client_failure: OnClientFailure::Drop,
        goodput: None,
        counts_clients: false,
        shape: None,
        crew: None,
        files: None,
    }
}

fn run(pipeline: &Pipeline, assignment: &Assignment) -> Vec<WorkerTotals> {
    let (events, received) = sync_channel(10_000);
    run_point(assignment, pipeline, soonest(assignment), (&events, &AtomicBool::new(false)))
        .unwrap();
    drop(events);
    let finished = |event| match event {
        AgentEvent::WorkerFinished { totals, .. } => Some(*totals),
        AgentEvent::WorkerPanicked { message } => panic!("{message}"),
        _ => None,
    };
    received.into_iter().filter_map(finished).collect()
}

/// Sends all but every fiftieth datagram back until `stop` is set.
fn echo_most(server: &UdpSocket, stop: &AtomicBool) {
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut buffer = [0; 64];
    let mut count = 0u64;
    while !stop.load(Ordering::Relaxed) {
        // An error is most often the end of the wait; any other shows in the ops that fail.
        let Ok((length, from)) = server.recv_from(&mut buffer) else { continue };
        count += 1;
        if !count.is_multiple_of(50) {
            let _ = server.send_to(&buffer[..length], from);
        }
    }
}

#[test]
fn pipelines_over_datagrams_lose_nothing_that_can_be_sent_again() {
    for batch in [false, true] {
        let (server, address) = peer();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let echo = thread::spawn(move || echo_most(&server, &stopped));
        let pipeline = Pipeline {
            kind: LinkKind::Datagram,
            room: 256,
            follow_ons: 1,
            ops_per_arrival: 2.0,
            retry_after: Some(Nanos::from_millis(30)),
            batch,
            ..Pipeline::default()
        };
        let totals = run(&pipeline, &assignment(address, 2));
        stop.store(true, Ordering::Relaxed);
        echo.join().unwrap();
        let sum = |pick: fn(&WorkerTotals) -> u64| totals.iter().map(pick).sum::<u64>();
        let (first, follow_on) = (sum(|t| t.ops["first"].count), sum(|t| t.ops["follow_on"].count));
        assert_eq!(sum(|t| t.due), first + follow_on + sum(|t| t.not_sent));
        assert_eq!(sum(|t| t.not_sent + t.unfinished), 0);
        assert_eq!(sum(|t| t.errors.values().sum()), 0, "{:?}", totals[0].errors);
        // Each arrival is two ops. Follow-ons that would be due after the window are not made, and
        // those of the warm-up's 200 arrivals may be due in it.
        assert_eq!(first, 2_000);
        assert!(follow_on > 0 && follow_on <= 2_200, "{follow_on}");
        assert!(sum(|t| t.retransmissions) > 10);
    }
}

#[test]
fn a_port_nobody_listens_on_fails_datagrams_as_it_does_streams() {
    let (server, address) = peer();
    drop(server);
    let pipeline = Pipeline { kind: LinkKind::Datagram, ..Pipeline::default() };
    let totals = run(&pipeline, &assignment(address, 1));
    let ended = totals[0].ops["first"].count;
    assert_eq!(totals[0].errors["transport"], ended);
    assert_eq!(totals[0].due, ended);
}
