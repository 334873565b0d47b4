//! A cross-check that shares no code with the engine: the time at which a capture at the server's
//! end of a veth pair saw a reply leave, against the time at which the engine says it arrived.
#![allow(clippy::print_stderr, reason = "the figures are worth reading")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_engine::driver::epoll::EpollDriver;
use plimsoll_engine::driver::{Driver as _, LocalPort, Received, Route, Wait};
use plimsoll_engine::interface::LinkKind;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::program::Running;
use rustix::process::{Pid, Signal, kill_process};

const EXCHANGES: u64 = 1_000;
const PORT: u16 = 7007;

/// Echoes eight bytes after eight bytes.
const ECHO: &str = "
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print('ready', flush=True)
peer, _ = listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    data = peer.recv(8, socket.MSG_WAITALL)
    if not data: break
    peer.sendall(data)
";

/// A network namespace with one end of a pair of interfaces; gone when dropped.
struct Namespace {
    name: String,
    host: &'static str,
    inside: &'static str,
}

impl Namespace {
    fn make() -> Self {
        let name = format!("plimsoll-cross-check-{}", std::process::id());
        let own = Self { name, host: "10.213.7.1", inside: "10.213.7.2" };
        let (outer, inner) = own.interfaces();
        ip(&["netns", "add", &own.name]);
        ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &own.name]);
        ip(&["addr", "add", &format!("{}/30", own.host), "dev", &outer]);
        ip(&["link", "set", &outer, "up"]);
        ip(&["-n", &own.name, "addr", "add", &format!("{}/30", own.inside), "dev", &inner]);
        ip(&["-n", &own.name, "link", "set", &inner, "up"]);
        own
    }

    fn interfaces(&self) -> (String, String) {
        let id = std::process::id();
        (format!("plw{id}a"), format!("plw{id}b"))
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program.as_ref());
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The pair goes with it.
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success(), "{arguments:?}");
}

/// Reads the child's first line.
fn first_line(from: impl std::io::Read) -> String {
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(from), &mut line).unwrap();
    line
}

/// When the engine says each reply arrived, in nanoseconds of the wall clock.
fn exchange(address: SocketAddr) -> BTreeMap<u64, u64> {
    let origin = clock::monotonic();
    let mut driver = EpollDriver::new(EpollDriver::instance().unwrap(), origin);
    let origin_wall_ns = clock::wall().0 - (clock::monotonic() - origin).0;
    let route = Route { to: address, unix: None, from: None, port: LocalPort::Any };
    driver.connect(0, LinkKind::Stream, &route).unwrap();
    let wait = |driver: &mut EpollDriver,
                is_expected: fn(&plimsoll_engine::driver::Ready) -> bool| {
        let mut ready = Vec::new();
        while !ready.iter().any(is_expected) {
            ready.clear();
            let until = driver.now() + Nanos::from_secs(5);
            driver.wait(Wait::Until(until), &mut ready);
            assert!(driver.now() < until, "nothing came for five seconds");
        }
    };
    wait(&mut driver, |event| event.writable);
    driver.connected(0).unwrap();
    let mut arrivals = BTreeMap::new();
    for number in 0..EXCHANGES {
        assert_eq!(driver.send(0, &number.to_be_bytes()).unwrap(), 8);
        wait(&mut driver, |event| event.readable);
        let mut reply = [0; 8];
        let Received::Bytes { length: 8, arrived } = driver.recv(0, &mut reply).unwrap() else {
            panic!("a reply in pieces");
        };
        let read = driver.now();
        let arrived = arrived.expect("a TCP socket has stamps");
        assert!(arrived <= read, "{arrived:?} {read:?}");
        arrivals.insert(u64::from_be_bytes(reply), origin_wall_ns + arrived.0);
        std::thread::sleep(Duration::from_micros(300));
    }
    arrivals
}

/// When each reply left, in nanoseconds of the wall clock, as tshark reads the capture.
fn send_times(tshark: &Path, file: &Path) -> BTreeMap<u64, u64> {
    let filter = format!("tcp.srcport == {PORT} && tcp.len == 8");
    let output = Command::new(tshark)
        .arg("-r")
        .arg(file)
        .args(["-Y", &filter, "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.payload"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (time, payload) = line.split_once('\t')?;
        let (seconds, fraction) = time.split_once('.')?;
        let nanos: u64 = format!("{fraction:0<9}")[..9].parse().ok()?;
        let number = u64::from_str_radix(&payload.replace(':', ""), 16).ok()?;
        Some((number, seconds.parse::<u64>().ok()? * NANOS_PER_SECOND + nanos))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn a_capture_at_the_servers_end_agrees_with_when_replies_arrived() {
    let peers = ["ip", "dumpcap", "tshark", "python3"].map(require_peer);
    let [Some(_), Some(dumpcap), Some(tshark), Some(python)] = peers else { return };
    if require_root("a network namespace").is_none() {
        return;
    }
    let namespace = Namespace::make();
    let directory = std::env::temp_dir();
    let file = directory.join(format!("plimsoll-cross-check-{}.pcapng", std::process::id()));
    let mut capture = namespace.command(dumpcap);
    capture.args(["-q", "-i", &namespace.interfaces().1, "-f", "tcp", "-w"]).arg(&file);
    let mut capture =
        Running(capture.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    let mut stderr = capture.0.stderr.take().unwrap();
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(&mut stderr);
    while !line.starts_with("File: ") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut lines, &mut line).unwrap(), 0, "no capture");
    }
    let mut echo = namespace.command(python);
    echo.args(["-c", ECHO, namespace.inside, &PORT.to_string()]).stdout(Stdio::piped());
    let mut echo = Running(echo.spawn().unwrap());
    assert_eq!(first_line(echo.0.stdout.take().unwrap()), "ready\n");

    let arrivals = exchange(SocketAddr::new(namespace.inside.parse().unwrap(), PORT));
    std::thread::sleep(Duration::from_millis(300));
    // On this signal it writes what it has buffered.
    kill_process(Pid::from_child(&capture.0), Signal::INT).unwrap();
    assert!(capture.0.wait().unwrap().success());
    let captured = send_times(&tshark, &file);
    let _ = std::fs::remove_file(&file);

    let mut apart_ns: Vec<i64> = arrivals
        .iter()
        .filter_map(|(number, arrived)| Some(*arrived as i64 - *captured.get(number)? as i64))
        .collect();
    assert!(apart_ns.len() as u64 > EXCHANGES * 9 / 10, "{} of {EXCHANGES}", apart_ns.len());
    apart_ns.sort_unstable();
    let at = |share: f64| apart_ns[((apart_ns.len() - 1) as f64 * share) as usize];
    let (least, p50, p99) = (at(0.0), at(0.5), at(0.99));
    eprintln!("arrived after it left: least {least} ns, p50 {p50} ns, p99 {p99} ns");
    // The capture is first; a busy machine may hold a packet between the two, seldom half of them.
    assert!((-1_000..=20_000).contains(&p50), "p50 {p50} ns");
}
