//! The guarantees of `--durability fdatasync`, checked by strace: a killed process proves nothing,
//! the page cache survives it.

use std::path::Path;
use std::process::Command;

use plimsoll_app::wire::{RequestHeader, RequestType, Status};
use plimsoll_testkit::peers::require_peer;

use super::client::{Client, request};
use plimsoll_testkit::program::{Served, serve};

const CLIENTS: u32 = 4;
const WRITES_EACH: u32 = 25;
/// First byte of an id, so that it is not found elsewhere by chance.
const ID_MARK: u32 = 0xA5 << 24;

/// A system call, and the lines of the trace in which it began and returned.
#[derive(Clone, Debug)]
struct Call {
    name: String,
    arguments: String,
    outcome: String,
    began: usize,
    returned: usize,
}

/// Reads `strace -f -xx`: a call another thread cuts in two is joined again.
fn calls(trace: &str) -> Vec<Call> {
    let mut open: std::collections::HashMap<&str, Call> = Default::default();
    let mut calls = Vec::new();
    for (number, line) in trace.lines().enumerate() {
        let (thread, rest) = line.split_once(char::is_whitespace).unwrap();
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some(mut call) = open.remove(thread) else { continue };
            call.outcome = outcome(resumed);
            call.returned = number;
            calls.push(call);
            continue;
        }
        let Some((name, arguments)) = rest.split_once('(') else { continue };
        let call = Call {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            outcome: outcome(arguments),
            began: number,
            returned: number,
        };
        if arguments.ends_with("<unfinished ...>") {
            open.insert(thread, call);
        } else {
            calls.push(call);
        }
    }
    calls
}

fn outcome(text: &str) -> String {
    text.rsplit_once(" = ").map_or("", |(_, outcome)| outcome).to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// A server under strace, many writers, and the system calls.
fn traced(strace: &Path, durability: &str) -> Vec<Call> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let server = serve("app", &["--durability", durability]);
    let mut command = Command::new(strace);
    command.args(["-f", "-xx", "-s", "64", "-o", trace.to_str().unwrap(), "-e"]);
    command.arg("trace=pwrite64,pwritev,pwritev2,fdatasync,fsync,sendto,sendmsg,write,writev");
    command.arg(server.get_program()).args(server.get_args()).env_remove("RUST_BACKTRACE");
    let server = Served::start(command);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let (mut client, welcome) = Client::greeted(server, number, 65_536);
                assert_eq!(welcome.durable, durability == "fdatasync");
                for index in 0..WRITES_EACH {
                    let id = ID_MARK | number << 16 | index;
                    let kind =
                        if index % 5 == 4 { RequestType::Append } else { RequestType::Write };
                    let offset = u64::from(index) * 1_024;
                    let header = RequestHeader { id, offset, ..request(kind) };
                    let payload = [&id.to_le_bytes()[..], &[7; 900]].concat();
                    assert_eq!(client.ask(header, &payload).status, Status::Ok);
                }
            });
        }
    });
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    calls(&std::fs::read_to_string(&trace).unwrap())
}

#[test]
fn strace_sees_fdatasync_return_before_the_reply_to_each_write_begins_to_leave() {
    let Some(strace) = require_peer("strace") else { return };
    let calls = traced(&strace, "fdatasync");
    let is_send = |call: &Call| ["sendto", "sendmsg", "write", "writev"].contains(&&*call.name);
    for id in
        (0..CLIENTS * WRITES_EACH).map(|n| ID_MARK | (n / WRITES_EACH) << 16 | (n % WRITES_EACH))
    {
        let payload = hex(&id.to_le_bytes());
        let write = one(&calls, &format!("write of {id:#x}"), |call| {
            call.name == "pwrite64" && call.arguments.contains(&format!(", \"{payload}"))
        });
        let reply_id = hex(&id.to_be_bytes());
        let send = one(&calls, &format!("reply to {id:#x}"), |call| {
            // The id is at byte 8 of the reply.
            let data = call.arguments.split('"').nth(1).unwrap_or_default();
            is_send(call) && data.get(32..48) == Some(&*reply_id)
        });
        let file = write.arguments.split(',').next().unwrap();
        let durable = calls.iter().find(|call| {
            call.name == "fdatasync"
                && call.arguments.trim_start().split([')', ' ']).next() == Some(file)
                && call.outcome == "0"
                && call.began > write.returned
                && call.returned < send.began
        });
        assert!(durable.is_some(), "{write:?} and {send:?} have no fdatasync between them");
    }
}

#[test]
fn strace_sees_no_fdatasync_where_none_was_asked_for() {
    let Some(strace) = require_peer("strace") else { return };
    let calls = traced(&strace, "none");
    let writes = calls.iter().filter(|call| call.name == "pwrite64").count();
    assert_eq!(writes, (CLIENTS * WRITES_EACH) as usize);
    assert!(!calls.iter().any(|call| call.name.contains("sync")));
}

#[track_caller]
fn one<'a>(calls: &'a [Call], what: &str, is_it: impl Fn(&Call) -> bool) -> &'a Call {
    let matched: Vec<&Call> = calls.iter().filter(|call| is_it(call)).collect();
    assert_eq!(matched.len(), 1, "{what}: {matched:?}");
    matched[0]
}
