//! Who listens on an address, of processes this test starts.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};

use plimsoll_servers::{cores, listener};

/// Set in the child process of this test: it prints where it listens, until it is killed.
const LISTEN_HERE: &str = "PLIMSOLL_TEST_LISTENS";

#[test]
fn a_listener_in_another_process_is_found_with_its_cores() {
    if std::env::var_os(LISTEN_HERE).is_some() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        eprint!("{}\n", listener.local_addr().unwrap());
        loop {
            std::thread::park();
        }
    }
    let core = *cores::available().unwrap().last().unwrap();
    let mut child = Command::new("taskset")
        .args(["-c", &core.to_string()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_listener_in_another_process_is_found_with_its_cores", "--nocapture"])
        .env(LISTEN_HERE, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let address = read_address(&mut child);
    let listening = listener::on(address);
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    let listening = listening.unwrap();
    assert_eq!(listening.cores, [core]);
    assert!(listening.who.contains(&format!("(process {pid})")), "{}", listening.who);
    assert_eq!(listener::on(address), None, "nobody listens there any more");
}

#[test]
fn one_without_a_pin_may_run_wherever_this_process_may() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let listening = listener::on(socket.local_addr().unwrap()).unwrap();
    assert_eq!(listening.cores, cores::available().unwrap());
}

#[test]
fn an_address_of_this_hosts_own_is_here_and_no_other() {
    let here = |address: &str| listener::is_here(address.parse().unwrap());
    assert!(here("127.0.0.7:1") && here("[::1]:1") && here("[::ffff:127.0.0.1]:1"));
    // The source address of a packet to elsewhere; a machine without a network has none.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("192.0.2.1:9").is_ok() {
        let own = socket.local_addr().unwrap().ip();
        assert!(listener::is_here(SocketAddr::new(own, 1)), "{own}");
    }
    // Addresses for documentation (RFC 5737, RFC 3849); a listener on all of this host's addresses
    // does not include them.
    let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = everywhere.local_addr().unwrap().port();
    assert!(!here(&format!("192.0.2.1:{port}")) && !here("[2001:db8::1]:80"));
}

fn read_address(child: &mut Child) -> SocketAddr {
    let mut text = String::new();
    let mut byte = [0];
    let output = child.stderr.as_mut().unwrap();
    while output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        text.push(char::from(byte[0]));
    }
    text.parse().unwrap()
}
