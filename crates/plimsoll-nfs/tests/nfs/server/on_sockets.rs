//! The NFS server on real sockets, tested with the tools of libnfs; many threads at once; its
//! process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use super::calls::{NFS, created, decoded, encoded, handle, roomy};
use super::running::{Running, in_memory, with_portmapper};
use plimsoll_nfs::wire::record;
use plimsoll_nfs::wire::rpc::{ReplyHead, ReplyOutcome};
use plimsoll_nfs::wire::{Decode as _, Encode, Name, Path, XdrIn, mount, portmap, v3};
use plimsoll_servers::Builtin;
use plimsoll_testkit::peers::{listens_on, require_peer};
use plimsoll_testkit::program::{cores_of, example, is_alive, wait_until};

fn run_peer(tool: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(require_peer(tool)?).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    Some(output.stdout)
}

#[test]
fn libnfs_writes_lists_and_reads_files() {
    let data: Vec<u8> = (0..3_000_001_u32).map(|i| (i * 31 % 253) as u8).collect();
    let local = tempfile::tempdir().unwrap();
    let from = local.path().join("from");
    fs::write(&from, &data).unwrap();
    let server = in_memory();
    if run_peer("nfs-cp", &[from.to_str().unwrap(), &server.url("/file")]).is_none() {
        return;
    }
    let listed = run_peer("nfs-ls", &[&server.url("")]).unwrap();
    let listed = String::from_utf8(listed).unwrap();
    assert!(listed.contains("3000001 file"), "{listed}");
    assert!(run_peer("nfs-cat", &[&server.url("/file")]).unwrap() == data);
    run_peer("nfs-cp", &[&server.url("/file"), &server.url("/copy")]).unwrap();
    assert!(run_peer("nfs-cat", &[&server.url("/copy")]).unwrap() == data);
}

#[test]
fn libnfs_walks_through_directories() {
    let Some(_) = require_peer("nfs-ls") else { return };
    let server = in_memory();
    make_tree(&server);
    let listed = run_peer("nfs-ls", &["-R", &server.url("")]).unwrap();
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(listed.lines().count(), 40 * 31, "{listed}");
    assert!(listed.contains("29 directory-39/file-29") || listed.contains("29 file-29"));
}

/// Makes forty directories of thirty files, `file-N` of N bytes.
fn make_tree(server: &Running) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut xid = 0;
    let mut results = |program, procedure, arguments: &dyn Encode| {
        xid += 1;
        socket.send(&encoded(xid, program, procedure, arguments)).unwrap();
        let mut reply = [0; 1024];
        let bytes = socket.recv(&mut reply).unwrap();
        let mut input = XdrIn::new(&reply[..bytes]);
        assert_eq!(ReplyHead::decode(&mut input).unwrap().outcome, ReplyOutcome::Success);
        input.rest().to_vec()
    };
    let mounted = results((mount::PROGRAM, 3), 1, &Path::from("/export"));
    let mount::Mount3Res::Ok(root) = decoded::<mount::Mount3Res<'_>>(&mounted) else { panic!() };
    for number in 0..40 {
        let name = format!("directory-{number}");
        let (dir, name, attributes) = (root.handle, Name::from(&*name), Default::default());
        let arguments = v3::MkDirArgs { dir, name, attributes };
        let made = results((NFS, 3), v3::Procedure::MkDir.number(), &arguments);
        let directory = created(&made).unwrap();
        for file in 0..30 {
            let name = format!("file-{file}");
            let how = v3::CreateHow::Unchecked(v3::SetAttributes {
                size: Some(file),
                ..Default::default()
            });
            let dir = handle(&directory);
            let arguments = v3::CreateArgs { dir, name: Name::from(&*name), how };
            let made = results((NFS, 3), v3::Procedure::Create.number(), &arguments);
            created(&made).unwrap();
        }
    }
}

#[test]
fn one_port_serves_tcp_and_udp_and_both_programs() {
    let server = in_memory();
    for program in [(NFS, 2), (NFS, 3), (100_005, 1), (100_005, 3)] {
        let call = encoded(7, program, 0, &());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.send_to(&call, server.address).unwrap();
        let mut reply = [0; 100];
        let bytes = socket.recv(&mut reply).unwrap();
        assert_null_reply(&reply[..bytes]);
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // In three fragments, cut at arbitrary offsets.
        for (part, last) in [(&call[..3], false), (&call[3..17], false), (&call[17..], true)] {
            let mark = part.len() as u32 | if last { 1 << 31 } else { 0 };
            stream.write_all(&mark.to_be_bytes()).unwrap();
            stream.write_all(part).unwrap();
        }
        let mut reply = [0; 28];
        stream.read_exact(&mut reply).unwrap();
        assert_null_reply(&reply[4..]);
    }
}

fn assert_null_reply(reply: &[u8]) {
    let mut input = XdrIn::new(reply);
    let head = ReplyHead::decode(&mut input).unwrap();
    assert_eq!((head.xid, head.outcome), (7, ReplyOutcome::Success));
    input.finish().unwrap();
}

#[test]
fn many_calls_in_one_write_are_all_answered_in_order() {
    let server = in_memory();
    let mut calls = Vec::new();
    for xid in 0..5000 {
        let at = record::begin(&mut calls);
        calls.extend_from_slice(&encoded(xid, (NFS, 3), 0, &()));
        record::finish(&mut calls, at);
    }
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut sender = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&calls).unwrap());
        for xid in 0..5000_u32 {
            let mut reply = [0; 28];
            stream.read_exact(&mut reply).unwrap();
            assert_eq!(reply[4..8], xid.to_be_bytes());
        }
    });
}

#[test]
fn a_record_that_is_too_long_ends_the_connection_and_nothing_else() {
    let server = in_memory();
    let mut hostile = TcpStream::connect(server.address).unwrap();
    hostile.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    hostile.write_all(&0xffff_ffff_u32.to_be_bytes()).unwrap();
    assert_eq!(hostile.read(&mut [0; 10]).unwrap(), 0);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut call = Vec::new();
    let at = record::begin(&mut call);
    call.extend_from_slice(&encoded(7, (NFS, 3), 0, &()));
    record::finish(&mut call, at);
    stream.write_all(&call).unwrap();
    stream.read_exact(&mut [0; 28]).unwrap();
}

#[test]
fn the_portmapper_leads_to_the_server() {
    let server = with_portmapper();
    let mapping = portmap::Mapping { program: NFS, version: 3, protocol: portmap::UDP, port: 0 };
    let call = encoded(7, (portmap::PROGRAM, 2), 3, &mapping);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.send_to(&call, server.portmapper.unwrap()).unwrap();
    let mut reply = [0; 100];
    let bytes = socket.recv(&mut reply).unwrap();
    assert_eq!(reply[bytes - 4..bytes], u32::from(server.address.port()).to_be_bytes());
}

#[test]
fn it_stops_at_once_with_connections_open() {
    let server = in_memory();
    let _idle = TcpStream::connect(server.address).unwrap();
    // Half a record: the server waits for the rest.
    let mut half = TcpStream::connect(server.address).unwrap();
    half.write_all(&[0x80, 0, 1, 0, 1, 2, 3]).unwrap();
    let thread = std::thread::spawn(move || drop(server));
    wait_until("the server stops", || thread.is_finished());
    thread.join().unwrap();
}

#[test]
fn sixty_threads_that_change_the_same_names_do_not_lock_each_other_out() {
    let server = roomy();
    let root = server.root();
    let directories: Vec<_> =
        (0..4).map(|n| server.make_directory(&root, &format!("directory-{n}"))).collect();
    std::thread::scope(|scope| {
        for thread in 0..60_usize {
            let (server, root, directories) = (&server, &root, &directories);
            scope.spawn(move || {
                for round in 0..40 {
                    let here = &directories[(thread + round) % 4];
                    let there = &directories[(thread * 7 + round / 3) % 4];
                    let name = format!("file-{}", (thread * 13 + round) % 10);
                    let other = format!("file-{}", (thread + round * 5) % 10);
                    let file = server.try_create(here, &name);
                    if let Ok(file) = &file {
                        let _ = server.write(file, (round * 100) as u64, &[1; 500]);
                        let _ = server.read(file, 0, 1000);
                    }
                    server.rename((here, &name), (there, &other));
                    // Directories move too, below each other where that is allowed.
                    let (a, b) = (thread % 4, (thread + round) % 4);
                    server.rename((root, &format!("directory-{a}")), (there, "moved"));
                    server.rename((there, "moved"), (root, &format!("directory-{b}")));
                    let _ = server.lookup(here, b"..");
                    server.list_some(there);
                    server.remove(there, &other);
                }
            });
        }
    });
    assert!(server.attributes(&root).is_ok());
}

#[test]
fn a_process_of_its_own_announces_its_url_and_stops() {
    let core = plimsoll_servers::cores::available().unwrap()[0];
    let ip = "127.0.0.2".parse().unwrap();
    let builtin = Builtin::new("nfs", example("serve_nfs"), &[core]);
    let server = builtin.listening_on(ip).start().unwrap();
    let port = server.address.port();
    assert_eq!(server.url(), format!("nfs://127.0.0.2:{port}/export?mountport={port}"));
    assert_eq!(listens_on(&server), [ip]);
    assert_eq!(cores_of(server.pid()), core.to_string());
    let pid = server.pid();
    server.stop().unwrap();
    assert!(!is_alive(pid));
}
