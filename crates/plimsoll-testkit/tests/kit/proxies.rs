//! The proxies do exactly what is configured.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use plimsoll_testkit::clock::monotonic_ns;
use plimsoll_testkit::flip_proxy::FlipProxy;
use plimsoll_testkit::lossy_proxy::{
    BothCounts, Counts, CutProxy, FaultRates, LossyConfig, LossyProxy,
};

/// Longest a datagram may take, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long a look for datagrams that should not come lasts.
const SHORT_LOOK: Duration = Duration::from_millis(20);

/// Sends every datagram back. Ends with the test process.
fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((bytes, peer)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..bytes], peer).unwrap();
        }
    });
    address
}

fn client_of(proxy: &LossyProxy) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    client
}

fn forwarded(of: Counts) -> u64 {
    of.received - of.lost + of.duplicated
}

/// Sends numbers in small bursts and answers with what came back, in order. After each burst it
/// waits until all that the proxy has sent on has come, however long that takes.
fn exchange(proxy: &LossyProxy, client: &UdpSocket, datagrams: u32) -> Vec<u32> {
    const BURST: u32 = 8;
    let before = proxy.counts();
    let mut back = Vec::new();
    client.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    for first in (0..datagrams).step_by(BURST as usize) {
        let end = (first + BURST).min(datagrams);
        for number in first..end {
            client.send(&number.to_be_bytes()).unwrap();
        }
        let begun_ns = monotonic_ns();
        while !has_all(proxy.counts(), before, (end, back.len())) {
            let waited_ns = u128::from(monotonic_ns() - begun_ns);
            let counts = proxy.counts();
            assert!(waited_ns < TIME_LIMIT.as_nanos(), "{} of {counts:?} are back", back.len());
            back.extend(receive(client));
        }
    }
    client.set_read_timeout(Some(SHORT_LOOK)).unwrap();
    back.extend(std::iter::from_fn(|| receive(client)));
    back
}

/// Of `sent` datagrams since `before` each has met its fate, and the `back` that came are all.
fn has_all(now: BothCounts, before: BothCounts, (sent, back): (u32, usize)) -> bool {
    let received = now.to_server.received - before.to_server.received;
    let at_server = forwarded(now.to_server) - forwarded(before.to_server);
    let answered = now.to_client.received - before.to_client.received;
    let at_client = forwarded(now.to_client) - forwarded(before.to_client);
    // More than all is for the test to find.
    received >= u64::from(sent) && answered >= at_server && back as u64 >= at_client
}

fn receive(client: &UdpSocket) -> Option<u32> {
    let mut bytes = [0; 4];
    client.recv(&mut bytes).ok().map(|_| u32::from_be_bytes(bytes))
}

#[test]
fn without_mischief_everything_arrives_in_order() {
    let config = LossyConfig { seed: 1, to_server: FaultRates::NONE, to_client: FaultRates::NONE };
    let proxy = LossyProxy::start(udp_echo(), config);
    let back = exchange(&proxy, &client_of(&proxy), 100);
    assert_eq!(back, (0..100).collect::<Vec<_>>());
    assert_eq!(proxy.counts().to_server.received, 100);
    assert_eq!(proxy.counts().to_client.received, 100);
}

#[test]
fn every_datagram_is_accounted_for() {
    const SENT: u32 = 800;
    let rates = FaultRates { lose: 0.1, duplicate: 0.1, reorder: 0.1 };
    let config = LossyConfig { seed: 7, to_server: rates, to_client: rates };
    let proxy = LossyProxy::start(udp_echo(), config);
    let back = exchange(&proxy, &client_of(&proxy), SENT);
    let counts = proxy.counts();
    assert_eq!(counts.to_server.received, u64::from(SENT));
    assert_eq!(counts.to_client.received, forwarded(counts.to_server));
    assert_eq!(back.len() as u64, forwarded(counts.to_client));
    for of in [counts.to_server, counts.to_client] {
        let tenth = of.received as f64 / 10.0;
        for count in [of.lost, of.duplicated] {
            assert!((count as f64 - tenth).abs() < 0.4 * tenth, "{counts:?}");
        }
        assert!(of.reordered > 0, "{counts:?}");
    }
    let mut copies = BTreeMap::new();
    for number in &back {
        *copies.entry(number).or_insert(0) += 1;
    }
    assert!(copies.values().all(|copies| *copies <= 4));
    assert!(!back.is_sorted(), "something overtook something");
}

#[test]
fn the_same_seed_gives_the_same_fates() {
    let rates = FaultRates { lose: 0.2, duplicate: 0.2, reorder: 0.0 };
    let config = LossyConfig { seed: 3, to_server: rates, to_client: FaultRates::NONE };
    let run = || {
        let proxy = LossyProxy::start(udp_echo(), config);
        exchange(&proxy, &client_of(&proxy), 200)
    };
    assert_eq!(run(), run());
}

#[test]
fn two_clients_do_not_hear_each_other() {
    let config = LossyConfig { seed: 1, to_server: FaultRates::NONE, to_client: FaultRates::NONE };
    let proxy = LossyProxy::start(udp_echo(), config);
    let (first, second) = (client_of(&proxy), client_of(&proxy));
    first.send(b"1111").unwrap();
    second.send(b"2222").unwrap();
    let mut bytes = [0; 4];
    second.recv(&mut bytes).unwrap();
    assert_eq!(&bytes, b"2222");
    first.recv(&mut bytes).unwrap();
    assert_eq!(&bytes, b"1111");
}

#[test]
fn while_it_is_down_datagrams_are_lost_and_counted() {
    let config = LossyConfig { seed: 1, to_server: FaultRates::NONE, to_client: FaultRates::NONE };
    let proxy = LossyProxy::start(udp_echo(), config);
    let client = client_of(&proxy);
    proxy.go_down();
    assert_eq!(exchange(&proxy, &client, 5), Vec::<u32>::new());
    assert_eq!(proxy.counts().to_server.lost, 5);
    proxy.come_back_at(udp_echo());
    assert_eq!(exchange(&proxy, &client, 5), vec![0, 1, 2, 3, 4]);
}

fn be_bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// Answers every call as a READ of version 3 that found sixteen zeros. Ends with the test process.
fn udp_reader() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut call = [0; 64];
        while let Ok((_, peer)) = socket.recv_from(&mut call) {
            let mut reply = call[..4].to_vec();
            reply.extend(be_bytes(&[1, 0, 0, 0, 0, 0, 0, 16, 1, 16, 0, 0, 0, 0]));
            socket.send_to(&reply, peer).unwrap();
        }
    });
    address
}

#[test]
fn over_udp_every_second_read_is_damaged_and_nothing_else() {
    let proxy = FlipProxy::udp(udp_reader(), 2);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    let (mut damaged, mut reply) = (0, [0; 64]);
    for xid in 1..=20 {
        let (read, getattr) = (6, 1);
        let procedure = if xid % 2 == 0 { read } else { getattr };
        client.send(&be_bytes(&[xid, 0, 2, 100_003, 3, procedure, 0, 0, 0, 0])).unwrap();
        let bytes = client.recv(&mut reply).unwrap();
        let bits: u32 = reply[bytes - 16..bytes].iter().map(|byte| byte.count_ones()).sum();
        assert!(bits <= u32::from(procedure == read));
        damaged += u64::from(bits);
    }
    assert_eq!((proxy.read_replies(), proxy.injected(), damaged), (10, 5, 5));
}

/// Answers the first byte of each connection with `greeting`. Ends with the test process.
fn tcp_greeter(greeting: &'static [u8; 4]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                while stream.read_exact(&mut [0]).is_ok() && stream.write_all(greeting).is_ok() {}
            });
        }
    });
    address
}

fn ask(stream: &mut TcpStream) -> std::io::Result<[u8; 4]> {
    stream.write_all(b"?")?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

#[test]
fn a_cut_connection_ends_and_a_new_one_reaches_the_new_server() {
    let mut proxy = CutProxy::start(tcp_greeter(b"old!"));
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    assert_eq!(&ask(&mut stream).unwrap(), b"old!");
    proxy.go_down();
    assert!(ask(&mut stream).is_err());
    assert!(TcpStream::connect(proxy.address()).is_err(), "new connections are refused");
    proxy.come_back_at(tcp_greeter(b"new!"));
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    assert_eq!(&ask(&mut stream).unwrap(), b"new!");
    assert_eq!(proxy.accepted(), 2);
}
