//! The reference server in a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use plimsoll_servers::{Builtin, ServerError, ServerProcess, ServerState};
use plimsoll_testkit::peers::{curl, listens_on};
use plimsoll_testkit::program::{cores_of, example, is_alive, kill, wait_until};

fn start(arguments: &[&str], cores: Vec<u32>) -> Result<ServerProcess, ServerError> {
    let arguments = arguments.iter().map(Into::into).collect();
    Builtin { arguments, ..Builtin::new("web", example("serve_web"), &cores) }.start()
}

#[test]
fn it_serves_on_its_core_until_it_is_stopped() {
    let core = plimsoll_servers::cores::available().unwrap()[0];
    let mut server = start(&[], vec![core]).unwrap();
    assert_eq!(server.state().unwrap(), ServerState::Running);
    assert_eq!(server.pids().unwrap(), [server.pid()]);
    assert_eq!(cores_of(server.pid()), core.to_string());
    if let Some(reply) = curl(&[&format!("{}bytes/100", server.url())]) {
        assert_eq!((reply.exit, reply.output.len()), (0, 100));
    }
    let pid = server.pid();
    server.stop().unwrap();
    assert!(!is_alive(pid));
}

#[test]
fn tls_is_announced() {
    let server = start(&["--tls"], vec![]).unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    assert!(server.configuration.ends_with("--stop-with-stdin --tls"), "{}", server.configuration);
}

#[test]
fn it_listens_on_the_address_it_is_given_alone() {
    for ip in ["127.0.0.2", "::1"].map(|ip| ip.parse().unwrap()) {
        let server =
            Builtin::new("web", example("serve_web"), &[]).listening_on(ip).start().unwrap();
        assert_eq!((listens_on(&server), server.address.ip()), (vec![ip], ip));
        if let Some(reply) = curl(&[&format!("{}bytes/100", server.url())]) {
            assert_eq!((reply.exit, reply.output.len()), (0, 100));
        }
    }
}

#[test]
fn dropping_it_stops_it() {
    let server = start(&[], vec![]).unwrap();
    let pid = server.pid();
    assert!(is_alive(pid));
    drop(server);
    assert!(!is_alive(pid));
}

#[test]
fn a_server_that_cannot_start_is_reported_with_its_last_words() {
    let message = start(&["--no-such-flag"], vec![]).unwrap_err().to_string();
    assert!(message.contains("ended by itself (exit status: 1)"), "{message}");
    assert!(message.contains("unknown argument --no-such-flag"), "{message}");
}

#[test]
fn a_server_that_was_killed_is_reported_with_the_signal() {
    let mut server = start(&[], vec![]).unwrap();
    kill(server.pid(), "KILL");
    wait_until("the server ends", || server.state().unwrap() != ServerState::Running);
    let ServerState::Ended(status) = server.state().unwrap() else { panic!("it still runs") };
    assert_eq!(status.signal(), Some(9));
    assert!(server.check().unwrap_err().to_string().contains("signal: 9 (SIGKILL)"));
}

#[test]
fn a_core_that_does_not_exist_is_named() {
    let message = start(&[], vec![900]).unwrap_err().to_string();
    assert!(message.starts_with("cannot pin to cores 900: "), "{message}");
}

#[test]
fn it_stops_when_the_pipe_of_its_parent_closes() {
    let mut child = Command::new(example("serve_web"))
        .args(["serve", "web", "--stop-with-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    wait_until("the server ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
}
