//! The file set's life: written, reused, grown, cut back, removed.

use std::sync::atomic::AtomicBool;

use plimsoll_nfs::fileset::{FileNo, MARKER, ROOT, SLICE_BYTES_MAX};
use plimsoll_nfs::handles::OwnedHandle;
use plimsoll_nfs::op::{Accessed, DirNo, LinkNo, SlotNo, Stability};
use plimsoll_nfs::prepare::clean;
use plimsoll_nfs::remote::Listing;
use plimsoll_nfs::wire::rpc::{Call, encode_reply_success};
use plimsoll_nfs::wire::{Decode as _, Encode, XdrIn, v3};

use super::*;

/// Checks that the server holds exactly what the numbering defines.
pub fn check_set(host: &dyn Dial, mounted: &Mounted, content: &Content, prepared: &PreparedSet) {
    let mut remote = remote(host, mounted);
    let (set, handles) = (prepared.set, &prepared.handles);
    let lengths = (handles.dirs.len(), handles.links.len(), handles.files.len());
    let expected = (set.directories() as usize, set.links() as usize, set.accessed() as usize);
    assert_eq!(lengths, expected);
    for dir in (0..set.directories()).map(DirNo) {
        let handle = handles.dir(dir).unwrap();
        let mut names: Vec<Vec<u8>> =
            remote.list(handle, Listing::Names).unwrap().into_iter().map(|e| e.name).collect();
        let mut expected_names: Vec<Vec<u8>> =
            set.files_of(dir).map(|n| FileNo(n).name().as_bytes().to_vec()).collect();
        expected_names.push(LinkNo(dir.0).name().as_bytes().to_vec());
        names.sort_unstable();
        expected_names.sort_unstable();
        assert_eq!(names, expected_names, "{dir:?}");
        for file in set.files_of(dir).map(FileNo) {
            let file_handle = remote.look_up(handle, file.name().as_bytes()).unwrap().handle;
            check_file(&mut remote, content, file, &file_handle);
        }
        let text = remote.link_text(handles.link(LinkNo(dir.0)).unwrap()).unwrap();
        assert_eq!(text, LinkNo(dir.0).text().as_bytes());
    }
    for accessed in (0..set.accessed()).map(Accessed) {
        let attributes = remote.attributes(handles.file(accessed).unwrap()).unwrap();
        assert_eq!(attributes.size, accessed.bytes());
    }
}

fn check_file(remote: &mut Remote, content: &Content, file: FileNo, handle: &OwnedHandle) {
    let mut offset = 0;
    loop {
        let read = remote.read(handle, offset, 8192).unwrap().data;
        if read.is_empty() {
            break;
        }
        assert!(read.len() <= SLICE_BYTES_MAX);
        assert!(content.slice(file, offset, read.len()) == read, "{file:?} at {offset}");
        offset += read.len() as u64;
    }
    assert_eq!(offset, file.bytes(), "{file:?}");
}

#[test]
fn a_set_is_written_reused_grown_and_removed_in_both_versions_over_both_transports() {
    for (version, kind) in EVERYWHERE {
        let mut host = Host::new(ROOMY);
        host.fragment_bytes = 4_099;
        let mounted = mounted(&host, version, kind);
        let content = Content::new(5);
        let mut making = Making::new(&host, &mounted, &content);
        let first = making.prepare(150, None).unwrap();
        assert_eq!(making.bytes_written(), first.set.bytes());
        check_set(&host, &mounted, &content, &first);
        let again = making.prepare(150, None).unwrap();
        assert_eq!((making.bytes_written(), again.handles == first.handles), (0, true));
        let grown = making.prepare(400, Some(&again)).unwrap();
        assert_eq!(making.bytes_written(), grown.set.bytes() - first.set.bytes());
        check_set(&host, &mounted, &content, &grown);
        // A smaller load's set is a prefix; nothing is removed.
        let smaller = making.prepare(150, Some(&grown)).unwrap();
        assert_eq!((making.bytes_written(), smaller.set.files()), (0, 400));
        let cleaned = clean(&mounted, &host, &mut |_| GoOn::Yes).unwrap().unwrap();
        assert_eq!((cleaned.files, cleaned.foreign.len()), (400 + 3, 0));
        assert!(remote(&host, &mounted).list(&mounted.root, Listing::Names).unwrap().is_empty());
        assert_eq!(clean(&mounted, &host, &mut |_| GoOn::Yes).unwrap(), None);
    }
}

#[test]
fn what_a_load_point_changed_is_as_it_was_before_the_next_one() {
    for version in [NfsVersion::V2, NfsVersion::V3] {
        let host = Host::new(ROOMY);
        let mounted = mounted(&host, version, LinkKind::Stream);
        let content = Content::new(5);
        let mut making = Making::new(&host, &mounted, &content);
        let prepared = making.prepare(200, None).unwrap();
        for knows in [true, false] {
            let mut remote = remote(&host, &mounted);
            let appended = prepared.handles.file(Accessed(17)).unwrap();
            let more = content.slice(Accessed(17).file(), Accessed(17).bytes(), 5_000);
            remote.write(appended, Accessed(17).bytes(), more, Stability::FileSync).unwrap();
            let cut = prepared.handles.file(Accessed(40)).unwrap();
            remote.set_size(cut, 1).unwrap();
            let dir = prepared.handles.dir(SlotNo(7).directory()).unwrap();
            remote.create(dir, SlotNo(7).name().as_bytes()).unwrap();
            let prepared = making.prepare(200, knows.then_some(&prepared)).unwrap();
            assert_eq!(making.bytes_written(), Accessed(40).bytes());
            check_set(&host, &mounted, &content, &prepared);
        }
    }
}

#[test]
fn a_stopped_preparation_goes_on_where_it_was() {
    let host = Host::new(ROOMY);
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let content = Content::new(5);
    let mut making = Making::new(&host, &mounted, &content);
    let stopped = making.prepare_until(2_000, None, |_| GoOn::No);
    assert!(matches!(stopped, Err(SetupError::Stopped)));
    let written = making.bytes_written();
    let prepared = making.prepare(2_000, None).unwrap();
    assert!(making.bytes_written() < prepared.set.bytes(), "{written} were there already");
    check_set(&host, &mounted, &content, &prepared);
}

#[test]
fn lost_and_repeated_datagrams_cost_time_and_nothing_else() {
    let mut host = Host::new(ROOMY);
    host.unreliable_one_in = Some(23);
    for version in [NfsVersion::V2, NfsVersion::V3] {
        let mounted = mounted(&host, version, LinkKind::Datagram);
        let content = Content::new(5);
        let prepared = Making::new(&host, &mounted, &content).prepare(200, None).unwrap();
        check_set(&host, &mounted, &content, &prepared);
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    let calls = AtomicU64::new(0);
    let host = Host::new(ROOMY).with_fault(move |request, reply| {
        let is_busy = calls.fetch_add(1, Ordering::Relaxed) % 200 == 100;
        (request.call.program == v3::PROGRAM && is_busy).then(|| {
            encode_reply_success(reply, request.call.xid);
            v3::Status3::JUKEBOX.encode(reply);
        })
    });
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let content = Content::new(5);
    Making::new(&host, &mounted, &content).prepare(200, None).unwrap();
}

#[test]
fn a_restart_amid_unstable_writes_is_noticed_and_the_next_preparation_goes_on() {
    let restarted = Arc::new(AtomicU64::new(0));
    let writes = Arc::clone(&restarted);
    let host = Host::new(ROOMY).with_fault(move |request, reply| {
        let is_write = request.is(v3::PROGRAM, v3::Procedure::Write.number());
        is_write.then(|| {
            request.honest(reply);
            // The verifier is the last thing in the reply.
            if let Some(last) =
                reply.last_mut().filter(|_| writes.fetch_add(1, Ordering::Relaxed) < 50)
            {
                *last ^= 1;
            }
        })
    });
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let content = Content::new(5);
    let mut making = Making::new(&host, &mounted, &content);
    let error = making.prepare(400, None).unwrap_err().to_string();
    assert!(error.contains("the server restarted meanwhile"), "{error}");
    restarted.store(50, Ordering::Relaxed);
    let prepared = making.prepare(400, None).unwrap();
    check_set(&host, &mounted, &content, &prepared);
}

#[test]
fn a_write_that_fails_leaves_no_file_that_looks_whole() {
    let has_failed = AtomicBool::new(false);
    let host = Host::new(ROOMY).with_fault(move |request, reply| {
        if !request.is(v3::PROGRAM, v3::Procedure::Write.number()) {
            return None;
        }
        let mut input = XdrIn::new(request.bytes);
        Call::decode(&mut input).unwrap();
        let write = v3::WriteArgs::decode(&mut input).unwrap();
        // Neither the first nor the last of a file; calls of other files are in flight.
        let fails = write.offset == 128 << 10 && !has_failed.swap(true, Ordering::Relaxed);
        fails.then(|| {
            encode_reply_success(reply, request.call.xid);
            v3::Status3::NOSPC.encode(reply);
            // No attributes, before or after.
            reply.extend([0; 8]);
        })
    });
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let content = Content::new(5);
    let mut making = Making::new(&host, &mounted, &content);
    let error = making.prepare(200, None).unwrap_err().to_string();
    assert!(error.contains("NOSPC") && error.contains("free some space there"), "{error}");
    let prepared = making.prepare(200, None).unwrap();
    check_set(&host, &mounted, &content, &prepared);
}

#[test]
fn nothing_is_written_where_it_must_not_be() {
    let host = Host::new(ROOMY);
    let mounted = mounted(&host, NfsVersion::V3, LinkKind::Stream);
    let (ours, other) = (Content::new(5), Content::new(6));
    let mut remote = remote(&host, &mounted);
    let root = remote.make_dir(&mounted.root, ROOT.as_bytes()).unwrap();
    remote.create(&root, b"letter.txt").unwrap();
    let refused = |content: &Content, part: &str| {
        let error = Making::new(&host, &mounted, content).prepare(100, None).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, SetupError::Wrong(_)) && message.contains(part), "{message}");
    };
    refused(&ours, "carries no .plimsoll, so it is not ours");
    assert!(clean(&mounted, &host, &mut |_| GoOn::Yes).is_err());
    remote.remove(&root, b"letter.txt").unwrap();
    Making::new(&host, &mounted, &ours).prepare(100, None).unwrap();
    refused(&other, "--set workload.file_set_seed=5");
    let dir = remote.look_up(&root, DirNo(0).name().as_bytes()).unwrap().handle;
    for (parent, name) in [(&root, "letter.txt"), (&dir, "file1")] {
        remote.create(parent, name.as_bytes()).unwrap();
    }
    let cleaned = clean(&mounted, &host, &mut |_| GoOn::Yes).unwrap().unwrap();
    assert_eq!(cleaned.files, 101);
    assert_eq!(cleaned.foreign, [format!("{ROOT}/dir00000/file1"), format!("{ROOT}/letter.txt")]);
    assert_eq!(remote.list(&dir, Listing::Names).unwrap().len(), 1);
    assert!(remote.find(&root, MARKER.as_bytes()).unwrap().is_none());
}

#[test]
fn a_set_larger_than_the_free_space_is_refused_before_the_first_byte() {
    for version in [NfsVersion::V2, NfsVersion::V3] {
        let host = Host::new(96 << 20);
        let mounted = mounted(&host, version, LinkKind::Stream);
        let content = Content::new(5);
        let error = Making::new(&host, &mounted, &content).prepare(2_000, None).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("need 11") && message.contains("are free there"), "{message}");
        let mut remote = remote(&host, &mounted);
        assert!(remote.list(&mounted.root, Listing::Names).unwrap().is_empty());
        Making::new(&host, &mounted, &content).prepare(500, None).unwrap();
    }
}
