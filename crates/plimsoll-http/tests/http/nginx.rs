//! `managed:nginx` with the real nginx.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_http::server::TlsSource;
use plimsoll_http::server::nginx::{self, NginxRequest};
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_servers::{ServerProcess, ServerState};
use plimsoll_testkit::peers::{curl, listens_on, require_peer};
use plimsoll_testkit::program::{cores_of, is_alive, kill, wait_until};

fn document_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "from nginx").unwrap();
    root
}

/// A request with ordinary values.
fn request(root: &Path) -> NginxRequest {
    NginxRequest {
        listen_on: LOOPBACK,
        root: root.to_owned(),
        cores: vec![plimsoll_servers::cores::available().unwrap()[0]],
        tls: None,
        search: None,
        remove_when_killed: None,
        suffix: None,
    }
}

fn start(root: &Path) -> Option<ServerProcess> {
    require_peer("nginx")?;
    Some(nginx::start(&request(root)).unwrap())
}

/// The temporary directory, as nginx's own command line names it (`-p DIR`).
fn scratch(server: &ServerProcess) -> PathBuf {
    let line = std::fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let line = String::from_utf8(line).unwrap();
    let scratch = line.split(['\0', ' ']).skip_while(|part| *part != "-p").nth(1).unwrap();
    PathBuf::from(scratch)
}

#[test]
fn it_serves_a_directory_and_leaves_nothing_behind() {
    let root = document_root();
    let Some(mut server) = start(root.path()) else { return };
    let (scratch, pids) = (scratch(&server), server.pids().unwrap());
    assert!(scratch.join("nginx.conf").exists());
    assert_eq!(pids.len(), 2, "a master and one worker");
    assert!(server.software.to_string().starts_with("nginx 1."), "{}", server.software);
    assert!(server.configuration.contains("worker_processes 1;"));
    if let Some(reply) = curl(&[&format!("{}file", server.url())]) {
        assert_eq!((reply.exit, reply.output.as_slice()), (0, b"from nginx".as_slice()));
    }
    server.check().unwrap();
    assert!(server.configuration.contains("stub_status;"), "{}", server.configuration);
    let mut status = UnixStream::connect(server.status.as_ref().unwrap()).unwrap();
    status.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    status.read_to_string(&mut page).unwrap();
    assert!(page.contains("\r\n\r\nActive connections: "), "{page}");
    assert!(server.stop().unwrap().success());
    assert!(!pids.into_iter().any(is_alive));
    assert!(!scratch.exists());
}

#[test]
fn its_workers_stay_on_the_given_core() {
    let root = document_root();
    let Some(server) = start(root.path()) else { return };
    for pid in server.pids().unwrap() {
        assert_eq!(cores_of(pid), server.cores[0].to_string());
    }
}

#[test]
fn a_certificate_made_now_is_for_the_address_it_listens_on() {
    let root = document_root();
    if require_peer("nginx").is_none() {
        return;
    }
    for listen_on in ["127.0.0.1", "127.0.0.2", "::1"].map(|ip| ip.parse().unwrap()) {
        let tls = Some(TlsSource::SelfSigned);
        let server = nginx::start(&NginxRequest { listen_on, tls, ..request(root.path()) });
        let server = server.unwrap();
        assert_eq!(listens_on(&server), [listen_on]);
        let certificate = scratch(&server).join("certificate.pem");
        let url = format!("{}file", server.url());
        let Some(reply) = curl(&["--cacert", certificate.to_str().unwrap(), &url]) else { return };
        assert_eq!((reply.exit, reply.output.as_slice()), (0, b"from nginx".as_slice()), "{url}");
    }
}

#[test]
fn a_killed_nginx_is_reported_and_its_orphaned_worker_ended() {
    let root = document_root();
    let Some(mut server) = start(root.path()) else { return };
    let pids = server.pids().unwrap();
    kill(server.pid(), "KILL");
    wait_until("the master ends", || server.state().unwrap() != ServerState::Running);
    let message = server.check().unwrap_err().to_string();
    assert!(message.contains("ended by itself (signal: 9 (SIGKILL))"), "{message}");
    wait_until("the worker ends", || !pids.iter().copied().any(is_alive));
}

#[test]
fn a_configuration_it_refuses_is_reported_with_its_own_words() {
    let root = document_root();
    if require_peer("nginx").is_none() {
        return;
    }
    let not_pem = root.path().join("file");
    let tls = TlsSource::Files { certificate: not_pem.clone(), key: not_pem };
    let request = NginxRequest { tls: Some(tls), ..request(root.path()) };
    let message = nginx::start(&request).unwrap_err().to_string();
    assert!(message.contains("ended by itself (exit status: 1)"), "{message}");
    assert!(message.contains("cannot load certificate"), "{message}");
}

#[test]
fn a_missing_document_root_is_named() {
    if require_peer("nginx").is_none() {
        return;
    }
    let request = request(Path::new("/nowhere/at/all"));
    let message = nginx::start(&request).unwrap_err().to_string();
    assert!(message.starts_with("cannot serve the directory /nowhere/at/all: "), "{message}");
}

/// What the test below runs in a process of its own, to be killed with `kill -9`.
#[test]
#[ignore = "only run by a_killed_parent_leaves_no_nginx_behind"]
fn parent_to_be_killed() {
    let root = std::env::var_os("PLIMSOLL_TEST_ROOT").unwrap();
    let Some(server) = start(Path::new(&root)) else { return };
    let pids: Vec<String> = server.pids().unwrap().iter().map(u32::to_string).collect();
    println!("\nstarted {} {}", scratch(&server).display(), pids.join(" "));
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_killed_parent_leaves_no_nginx_behind() {
    use std::io::{BufRead, BufReader};
    if require_peer("nginx").is_none() {
        return;
    }
    let root = document_root();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nginx::parent_to_be_killed", "--ignored", "--nocapture"])
        .env("PLIMSOLL_TEST_ROOT", root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let started = lines.into_iter().find(|line| line.starts_with("started ")).unwrap();
    let mut tokens = started.split(' ').skip(1);
    let scratch = PathBuf::from(tokens.next().unwrap());
    let pids: Vec<u32> = tokens.map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().copied().all(is_alive));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("nginx ends", || !pids.iter().copied().any(is_alive));
    wait_until("its directory is gone", || !scratch.exists());
}
