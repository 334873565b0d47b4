//! RPC, MOUNT and the portmapper; repeated calls; malicious calls.

use super::calls::{NFS, Server, decoded, encoded, handle, in_memory, roomy};
use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{NfsCore, Registered};
use plimsoll_nfs::wire::rpc::{Auth, Call, ReplyHead, ReplyOutcome, auth};
use plimsoll_nfs::wire::{Decode, Encode, Name, Path, XdrIn, mount, portmap, v3};

fn outcome(reply: &[u8]) -> ReplyOutcome {
    ReplyHead::decode(&mut XdrIn::new(reply)).unwrap().outcome
}

#[test]
fn what_is_not_there_is_refused_in_the_words_of_rpc() {
    let server = in_memory(1 << 20);
    let refused = |program, procedure| server.call(program, procedure, &()).0;
    let mismatch = |low, high| ReplyOutcome::ProgramMismatch { low, high };
    assert_eq!(refused((NFS, 5), 0), mismatch(2, 4));
    assert_eq!(refused((NFS, 1), 0), mismatch(2, 4));
    assert_eq!(refused((mount::PROGRAM, 2), 0), mismatch(1, 3));
    assert_eq!(refused((400_000, 1), 0), ReplyOutcome::ProgramUnavailable);
    assert_eq!(refused((portmap::PROGRAM, 2), 0), ReplyOutcome::ProgramUnavailable);
    assert_eq!(refused((NFS, 3), 22), ReplyOutcome::ProcedureUnavailable);
    assert_eq!(refused((NFS, 2), 18), ReplyOutcome::ProcedureUnavailable);
    assert_eq!(refused((mount::PROGRAM, 3), 6), ReplyOutcome::ProcedureUnavailable);
    assert_eq!(refused((NFS, 3), 1), ReplyOutcome::GarbageArguments);
    let excess = server.call((NFS, 3), 0, &7_u32).0;
    assert_eq!(excess, ReplyOutcome::GarbageArguments);
}

#[test]
fn another_version_of_rpc_is_refused_with_ours() {
    let server = in_memory(1 << 20);
    let mut call = encoded(9, (NFS, 3), 0, &());
    call[8..12].copy_from_slice(&3_u32.to_be_bytes());
    let reply = server.raw(&call).unwrap();
    assert_eq!(outcome(&reply), ReplyOutcome::RpcMismatch { low: 2, high: 2 });
}

#[test]
fn credentials_are_none_or_system() {
    let server = in_memory(1 << 20);
    let root = server.root();
    let call = |flavor, body: &[u8]| {
        let credential = Auth { flavor, body };
        let (xid, program, version, procedure) = (server.next_xid(), NFS, 3, 1);
        let head = Call { xid, program, version, procedure, credential, verifier: Auth::NONE };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        handle(&root).encode(&mut bytes);
        outcome(&server.raw(&bytes).unwrap())
    };
    assert_eq!(call(0, &[]), ReplyOutcome::Success);
    assert_eq!(call(1, &[1; 7]), ReplyOutcome::AuthError(auth::BAD_CREDENTIAL));
    assert_eq!(call(6, &[1; 8]), ReplyOutcome::AuthError(auth::TOO_WEAK));
}

#[test]
fn only_the_export_and_what_is_in_it_can_be_mounted() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    server.create(&root, "file");
    server.symlink(&root, "link", "directory");
    let mount = |path: &str| {
        let arguments = Path::from(path);
        let results = server.results((mount::PROGRAM, 3), 1, &arguments);
        match decoded::<mount::Mount3Res<'_>>(&results) {
            mount::Mount3Res::Ok(ok) => Ok(ok.handle.bytes().to_vec()),
            mount::Mount3Res::Err(status, ()) => Err(status),
        }
    };
    assert_eq!(mount("/export/"), Ok(root.clone()));
    assert_eq!(mount("/export/directory"), Ok(directory));
    for refused in ["/", "/etc", "", "/exports", "export", "/export/..", "/export/../etc"] {
        assert_eq!(mount(refused), Err(mount::MountStatus::ACCES), "{refused:?}");
    }
    assert_eq!(mount("/export/missing"), Err(mount::MountStatus::NOENT));
    for wrong in ["/export/file", "/export/link"] {
        assert_eq!(mount(wrong), Err(mount::MountStatus::NOTDIR), "{wrong:?}");
    }
}

#[test]
fn mounts_are_listed_until_they_end() {
    let server = in_memory(1 << 20);
    let listed = || {
        let results = server.results((mount::PROGRAM, 1), 2, &());
        let entries = decoded::<mount::DumpRes<'_>>(&results);
        entries.iter().map(|e| (e.host.to_string(), e.directory.to_string())).collect::<Vec<_>>()
    };
    server.root();
    assert_eq!(listed(), [("127.0.0.1".to_owned(), "/export".to_owned())]);
    let arguments = Path::from("/export");
    assert!(server.results((mount::PROGRAM, 3), 3, &arguments).is_empty());
    assert_eq!(listed(), []);
    server.root();
    assert!(server.results((mount::PROGRAM, 3), 4, &()).is_empty());
    assert_eq!(listed(), []);
    let results = server.results((mount::PROGRAM, 3), 5, &());
    let exports = decoded::<mount::ExportRes<'_>>(&results);
    let exports: Vec<_> = exports.iter().map(|e| e.directory.to_string()).collect();
    assert_eq!(exports, ["/export"]);
}

#[test]
fn the_portmapper_knows_both_programs_and_takes_no_others() {
    let core = NfsCore::new(Store::new(1 << 20));
    let core = core.with_portmapper(Registered { port: 2049 });
    let server = Server { core, ..in_memory(1) };
    let program = (portmap::PROGRAM, 2);
    let port = |(requested_program, version), protocol| {
        let mapping = portmap::Mapping { program: requested_program, version, protocol, port: 0 };
        decoded::<u32>(&server.results(program, 3, &mapping))
    };
    assert_eq!(port((NFS, 3), portmap::TCP), 2049);
    assert_eq!(port((NFS, 2), portmap::UDP), 2049);
    assert_eq!(port((mount::PROGRAM, 3), portmap::UDP), 2049);
    assert_eq!(port((400_000, 1), portmap::TCP), 0);
    let results = server.results(program, 4, &());
    assert_eq!(decoded::<portmap::DumpRes<'_>>(&results).iter().count(), 10);
    let mapping = portmap::Mapping { program: 9, version: 1, protocol: 6, port: 1 };
    assert!(!decoded::<bool>(&server.results(program, 1, &mapping)));
    assert!(server.results(program, 0, &()).is_empty());
    let mismatch = ReplyOutcome::ProgramMismatch { low: 2, high: 2 };
    assert_eq!(server.call((portmap::PROGRAM, 4), 0, &()).0, mismatch);
}

#[test]
fn a_repeated_call_gets_its_reply_again_and_is_not_executed_again() {
    let server = roomy();
    let root = server.root();
    let name = Name::from("file");
    let how = v3::CreateHow::Guarded(v3::SetAttributes::default());
    let create = v3::CreateArgs { dir: handle(&root), name, how };
    let create = encoded(server.next_xid(), (NFS, 3), 8, &create);
    let first = server.raw(&create).unwrap();
    assert_eq!(server.raw(&create).unwrap(), first);
    let arguments = v3::DirOpArgs { dir: handle(&root), name };
    let remove = encoded(server.next_xid(), (NFS, 3), 12, &arguments);
    let removed = server.raw(&remove).unwrap();
    assert_eq!(server.raw(&remove).unwrap(), removed);
    assert_eq!(outcome(&removed), ReplyOutcome::Success);
    // The same number with other arguments is another call.
    let other = v3::DirOpArgs { dir: handle(&root), name: Name::from("other") };
    let mut other = encoded(0, (NFS, 3), 12, &other);
    other[..4].copy_from_slice(&remove[..4]);
    assert_ne!(server.raw(&other).unwrap(), removed);
    // And so is the same call with another number.
    assert_eq!(server.remove(&root, "file"), v3::Status3::NOENT);
}

#[test]
fn what_is_no_call_gets_no_reply() {
    let server = in_memory(1 << 20);
    let call = encoded(1, (NFS, 3), 0, &());
    for length in 0..24 {
        assert_eq!(server.raw(&call[..length]), None, "{length} bytes");
    }
    let mut reply = call;
    reply[7] = 1;
    assert_eq!(server.raw(&reply), None);
}

#[test]
fn damaged_calls_never_break_the_server() {
    let server = roomy();
    let root = server.root();
    let file = server.create(&root, "file");
    let mut calls = Vec::new();
    let dir = handle(&root);
    let name = Name::from("file");
    let mut add = |procedure: v3::Procedure, arguments: &dyn Encode| {
        calls.push(encoded(server.next_xid(), (NFS, 3), procedure.number(), arguments));
    };
    add(v3::Procedure::Lookup, &v3::DirOpArgs { dir, name });
    add(v3::Procedure::ReadLink, &dir);
    let (offset, count, stable) = (1, 9, v3::StableHow::Unstable);
    let file = handle(&file);
    add(v3::Procedure::Read, &v3::ReadArgs { file, offset, count });
    add(v3::Procedure::Write, &v3::WriteArgs { file, offset, count, stable, data: &[5; 9] });
    let attributes = v3::SetAttributes { size: Some(5), ..Default::default() };
    let how = v3::CreateHow::Unchecked(attributes);
    add(v3::Procedure::Create, &v3::CreateArgs { dir, name, how });
    add(v3::Procedure::SetAttr, &v3::SetAttrArgs { object: file, attributes, guard: None });
    let (cookie, verifier) = (3, [0; 8]);
    let (dir_count, max_count) = (512, 4096);
    let plus = v3::ReadDirPlusArgs { dir, cookie, verifier, dir_count, max_count };
    add(v3::Procedure::ReadDirPlus, &plus);
    let (to_dir, to_name) = (dir, Name::from("b"));
    let rename = v3::RenameArgs { from_dir: dir, from_name: name, to_dir, to_name };
    add(v3::Procedure::Rename, &rename);
    let mut state = 99_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for round in 0..4000 {
        let mut call = calls[round % calls.len()].clone();
        for _ in 0..=random(3) {
            let at = random(call.len());
            call[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
        }
        call.truncate(call.len() - [0, 0, 0, 1, 4, 8][random(6)]);
        if let Some(reply) = server.raw(&call) {
            outcome(&reply);
            assert!(reply.len() < 2 << 20);
        }
    }
    assert!(server.attributes(&root).is_ok());
}
