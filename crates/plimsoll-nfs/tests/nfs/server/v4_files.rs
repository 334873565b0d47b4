//! NFSv4.1 over the server's core without sockets: names, open files, attributes.

use super::calls::roomy;
use super::calls4::Client4;
use plimsoll_nfs::wire::v4::*;
use plimsoll_nfs::wire::{Name, Path, v3};

fn handle(bytes: &[u8]) -> Handle4<'_> {
    Opaque(bytes)
}

#[test]
fn the_export_is_below_the_root_of_a_pseudo_file_system() {
    let server = roomy();
    let client = server.client4("a");
    let pseudo = client.handle(|w| w.op(Operation::PutRootFh, &()));
    let root = client.root();
    assert_ne!(pseudo, root);
    // The same object as in version 3.
    assert_eq!(root, server.root());
    let at_root = |operation, name: &str| {
        let name = Name::from(name);
        client.status(|w| w.op(Operation::PutRootFh, &()).op(operation, &name))
    };
    assert_eq!(at_root(Operation::Lookup, "other"), Status4::NOENT);
    assert_eq!(at_root(Operation::Lookup, ".."), Status4::BADNAME);
    assert_eq!(at_root(Operation::Remove, "export"), Status4::ROFS);
    let mut results = client
        .call(|w| w.op(Operation::PutRootFh, &()).op(Operation::GetAttr, &attribute::OF_EXPORT));
    let () = results.ok(Operation::PutRootFh);
    let attributes: Attributes4<'_> = results.ok(Operation::GetAttr);
    assert_eq!(attributes.kind, Some(FileKind4::Directory));
    assert_eq!((attributes.fh_expire_type, attributes.lease_time_s), (Some(0), Some(90)));
    assert_eq!(attributes.read_bytes_max, Some(1 << 20));
    // REQUIRED of every server. RFC 8881 §5.6
    for number in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19] {
        assert!(attributes.supported.unwrap().has(number), "{number}");
    }
    assert_eq!(listing(&client, &pseudo, 4_096), ["export"]);
    // Version 3 has no use for that handle.
    assert_eq!(server.attributes(&pseudo), Err(v3::Status3::STALE));
}

#[test]
fn data_comes_back_as_it_was_written() {
    let server = roomy();
    let client = server.client4("a");
    let (state, file) = client.create(&client.root(), "file");
    let data: Vec<u8> = (0..200_001_u32).map(|i| (i * 7 % 251) as u8).collect();
    let put = handle(&file);
    let write = WriteArgs4 { state, offset: 5, stable: v3::StableHow::FileSync, data: &data };
    let mut results = client.call(|w| {
        let w = w.op(Operation::PutFh, &put).op(Operation::Write, &write);
        w.op(Operation::Commit, &CommitArgs4 { offset: 0, count: 0 })
    });
    let () = results.ok(Operation::PutFh);
    let written: WriteOk4 = results.ok(Operation::Write);
    assert_eq!((written.count, written.committed), (200_001, v3::StableHow::FileSync));
    assert_eq!(results.ok::<Verifier>(Operation::Commit), written.verifier);
    let read = |state, offset, count| {
        let args = ReadArgs4 { state, offset, count };
        let mut results = client.call(|w| {
            // What follows the data is where it should be.
            let w = w.op(Operation::PutFh, &put).op(Operation::Read, &args);
            w.op(Operation::GetFh, &())
        });
        let () = results.ok(Operation::PutFh);
        let ok: ReadOk4<'_> = results.ok(Operation::Read);
        let read = (ok.data.to_vec(), ok.eof);
        assert_eq!(results.ok::<Handle4<'_>>(Operation::GetFh).0, file);
        read
    };
    let (whole, eof) = read(state.newest(), 0, 1 << 20);
    assert!(whole[..5] == [0; 5] && whole[5..] == data && eof);
    assert_eq!(read(StateId::ANONYMOUS, 100, 7), (data[95..102].to_vec(), false));
    assert_eq!(read(state, 1 << 40, 7), (Vec::new(), true));
    assert_eq!(server.read(&file, 100, 7).unwrap().0, data[95..102]);
}

#[test]
fn a_file_opened_twice_by_an_owner_has_one_stateid_and_is_closed_once() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    let (first, file) = client.create(&root, "file");
    let read_only = share::READ | share::WANT_NONE;
    let (second, _) = client.open(&root, "file", read_only, OpenHow::NoCreate).unwrap();
    assert_eq!((first.seqid, second.seqid), (1, 2));
    assert_eq!(first.other, second.other);
    let other = server.client4("b");
    let put = handle(&file);
    let read = |client: &Client4<'_>, state| {
        let args = ReadArgs4 { state, offset: 0, count: 1 };
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Read, &args))
    };
    assert_eq!(read(&client, second), Status4::OK);
    assert_eq!(read(&client, second.newest()), Status4::OK);
    assert_eq!(read(&client, first), Status4::OLD_STATEID);
    assert_eq!(read(&client, StateId { seqid: 3, ..first }), Status4::BAD_STATEID);
    assert_eq!(read(&other, second), Status4::BAD_STATEID);
    assert_eq!(client.close(&root, second), Status4::BAD_STATEID);
    assert_eq!(client.close(&file, first), Status4::OLD_STATEID);
    assert_eq!(client.close(&file, second), Status4::OK);
    assert_eq!(client.close(&file, second), Status4::BAD_STATEID);
    assert_eq!(read(&client, second), Status4::BAD_STATEID);
    let (state, _) = client.open(&root, "file", read_only, OpenHow::NoCreate).unwrap();
    assert_ne!(state.other, first.other);
    let write = WriteArgs4 { state, offset: 0, stable: v3::StableHow::Unstable, data: b"x" };
    let written = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Write, &write));
    assert_eq!(written, Status4::OPENMODE);
}

#[test]
fn the_current_stateid_is_that_of_the_open_before() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    let (state, file) = client.create(&root, "file");
    assert_eq!(client.close(&file, state), Status4::OK);
    let open = client.open_args(OpenClaim::Null(Name::from("file")));
    let read = ReadArgs4 { state: StateId::CURRENT, offset: 0, count: 9 };
    let close = CloseArgs { seqid: 0, state: StateId::CURRENT };
    let put = handle(&root);
    let opened = client.status(|w| {
        let w = w.op(Operation::PutFh, &put).op(Operation::Open, &open);
        w.op(Operation::Read, &read).op(Operation::Close, &close)
    });
    assert_eq!(opened, Status4::OK);
    let closed = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Close, &close));
    assert_eq!(closed, Status4::BAD_STATEID);
}

#[test]
fn files_are_opened_in_three_ways_and_other_objects_in_none() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    server.make_directory(&root, "directory");
    server.symlink(&root, "link", "file");
    let open = |name, how| client.open(&root, name, share::BOTH | share::WANT_NONE, how);
    assert_eq!(open("file", OpenHow::NoCreate), Err(Status4::NOENT));
    let mode = Attributes4 { mode: Some(0o640), ..Attributes4::default() };
    let (_, file) = open("file", OpenHow::Unchecked(mode)).unwrap();
    assert_eq!(server.attributes(&file).unwrap().mode, 0o640);
    server.write(&file, 0, b"content").unwrap();
    assert_eq!(open("file", OpenHow::Guarded(mode)), Err(Status4::EXIST));
    assert!(open("file", OpenHow::Unchecked(mode)).is_ok());
    assert_eq!(server.attributes(&file).unwrap().size, 7);
    let cut = Attributes4 { size: Some(0), ..Attributes4::default() };
    assert!(open("file", OpenHow::Unchecked(cut)).is_ok());
    assert_eq!(server.attributes(&file).unwrap().size, 0);
    for how in [OpenHow::NoCreate, OpenHow::Unchecked(mode)] {
        assert_eq!(open("directory", how), Err(Status4::ISDIR));
        assert_eq!(open("link", how), Err(Status4::SYMLINK));
    }
    let (put, args) = (handle(&file), client.open_args(OpenClaim::Handle));
    let opened = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &args));
    assert_eq!(opened, Status4::OK);
    for (access, deny, expected) in [(0, 0, Status4::INVAL), (3, 1, Status4::NOTSUPP)] {
        let args = OpenArgs { access, deny, ..args };
        let opened = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &args));
        assert_eq!(opened, expected);
    }
}

#[test]
fn every_change_of_a_directory_is_reported_with_what_it_was_before() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    let put = handle(&root);
    let change = || client.size_and_change(&root).1;
    let mut before = change();
    let mut expect = |reported: ChangeInfo| {
        assert!(reported.atomic);
        assert_eq!(reported.before, before);
        assert!(reported.after > before);
        assert_eq!(change(), reported.after);
        before = reported.after;
    };
    let open = OpenArgs {
        how: OpenHow::Guarded(Attributes4::default()),
        ..client.open_args(OpenClaim::Null(Name::from("file")))
    };
    let mut results = client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &open));
    let () = results.ok(Operation::PutFh);
    expect(results.ok::<OpenOk<'_>>(Operation::Open).change);
    let made = |kind, name| {
        let (name, attributes) = (Name::from(name), Attributes4::default());
        let args = CreateArgs4 { kind, name, attributes };
        let mut results =
            client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Create, &args));
        if results.status() != Status4::OK {
            return Err(results.status());
        }
        let () = results.ok(Operation::PutFh);
        Ok(results.ok::<CreateOk4>(Operation::Create).change)
    };
    expect(made(CreateKind::Directory, "directory").unwrap());
    expect(made(CreateKind::Link(Path::from("file")), "link").unwrap());
    assert_eq!(made(CreateKind::Other(FileKind4::Regular), "x"), Err(Status4::BADTYPE));
    let rename = RenameArgs4 { from: Name::from("file"), to: Name::from("file2") };
    let mut results = client.call(|w| {
        let w = w.op(Operation::PutFh, &put).op(Operation::SaveFh, &());
        w.op(Operation::Rename, &rename)
    });
    let () = results.ok(Operation::PutFh);
    let () = results.ok(Operation::SaveFh);
    let renamed: RenameOk4 = results.ok(Operation::Rename);
    assert_eq!(renamed.from, renamed.to);
    expect(renamed.to);
    for name in ["file2", "directory", "link"] {
        let name = Name::from(name);
        let mut results =
            client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Remove, &name));
        let () = results.ok(Operation::PutFh);
        expect(results.ok(Operation::Remove));
    }
    let missing = Name::from("missing");
    let removed = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Remove, &missing));
    assert_eq!(removed, Status4::NOENT);
}

#[test]
fn attributes_are_set_and_the_change_rises() {
    let server = roomy();
    let client = server.client4("a");
    let (state, file) = client.create(&client.root(), "file");
    let put = handle(&file);
    let before = client.size_and_change(&file);
    let set = |state, attributes| {
        let args = SetAttrArgs4 { state, attributes };
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::SetAttr, &args))
    };
    let size = Attributes4 { size: Some(9), mode: Some(0o600), ..Attributes4::default() };
    assert_eq!(set(state, size), Status4::OK);
    let after = client.size_and_change(&file);
    assert_eq!(after.0, 9);
    assert!(after.1 > before.1);
    let owner = Attributes4 { owner: Some(Name::from("12")), ..Attributes4::default() };
    assert_eq!(set(StateId::ANONYMOUS, owner), Status4::OK);
    let of_file = server.attributes(&file).unwrap();
    assert_eq!((of_file.mode, of_file.uid), (0o600, 12));
    let unknown = Attributes4 { owner: Some(Name::from("me@home")), ..owner };
    assert_eq!(set(StateId::ANONYMOUS, unknown), Status4::BADOWNER);
    let read_only = Attributes4 { file_id: Some(1), ..Attributes4::default() };
    assert_eq!(set(StateId::ANONYMOUS, read_only), Status4::INVAL);
}

#[test]
fn names_lead_to_objects_and_links_to_their_text() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    let directory = server.make_directory(&root, "directory");
    let file = server.create(&directory, "file");
    let link = server.symlink(&root, "link", "directory/file");
    let put = handle(&root);
    let looked_up = client.handle(|w| {
        let w = w.op(Operation::PutFh, &put).op(Operation::Lookup, &Name::from("directory"));
        w.op(Operation::Lookup, &Name::from("file"))
    });
    assert_eq!(looked_up, file);
    let lookup = |directory: &[u8], name: &str| {
        let (put, name) = (handle(directory), Name::from(name));
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Lookup, &name))
    };
    assert_eq!(lookup(&root, "missing"), Status4::NOENT);
    assert_eq!(lookup(&root, "a/b"), Status4::BADCHAR);
    assert_eq!(lookup(&root, ""), Status4::INVAL);
    assert_eq!(lookup(&root, &"x".repeat(256)), Status4::NAMETOOLONG);
    assert_eq!(lookup(&file, "name"), Status4::NOTDIR);
    assert_eq!(lookup(&link, "name"), Status4::SYMLINK);
    let put = handle(&link);
    let mut results = client.call(|w| w.op(Operation::PutFh, &put).op(Operation::ReadLink, &()));
    let () = results.ok(Operation::PutFh);
    assert_eq!(results.ok::<Path<'_>>(Operation::ReadLink), Path::from("directory/file"));
    let put = handle(&file);
    let mut results =
        client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Access, &0x3f_u32));
    let () = results.ok(Operation::PutFh);
    let access: AccessOk4 = results.ok(Operation::Access);
    assert_eq!((access.supported, access.granted), (0x3f, 0x0d));
}

/// All names of a directory, `bytes_max` bytes at a time.
fn listing(client: &Client4<'_>, directory: &[u8], bytes_max: u32) -> Vec<String> {
    let put = handle(directory);
    let (mut cookie, mut verifier, mut names) = (0, [0; 8], Vec::new());
    loop {
        let attributes =
            Bitmap::from_numbers(&[attribute::FILE_ID, attribute::KIND, attribute::FILEHANDLE]);
        let args = ReadDirArgs4 { cookie, verifier, dir_bytes: 0, bytes_max, attributes };
        let mut results =
            client.call(|w| w.op(Operation::PutFh, &put).op(Operation::ReadDir, &args));
        let () = results.ok(Operation::PutFh);
        let ok: ReadDirOk4<'_> = results.ok(Operation::ReadDir);
        for entry in ok.entries {
            assert!(entry.attributes.handle.is_some() && entry.attributes.kind.is_some());
            names.push(entry.name.to_string());
            cookie = entry.cookie;
        }
        if ok.eof {
            return names;
        }
        verifier = ok.verifier;
    }
}

#[test]
fn a_listing_has_every_name_once_however_long_its_parts_are() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    let names: Vec<String> = (0..300).map(|n| format!("file-{n}")).collect();
    for name in &names {
        server.create(&root, name);
    }
    for bytes_max in [300, 4_096, 1 << 20] {
        assert_eq!(listing(&client, &root, bytes_max), names);
    }
    let list = |cookie, verifier, bytes_max| {
        let put = handle(&root);
        let attributes = Bitmap::default();
        let args = ReadDirArgs4 { cookie, verifier, dir_bytes: 0, bytes_max, attributes };
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::ReadDir, &args))
    };
    assert_eq!(list(0, [0; 8], 16), Status4::TOOSMALL);
    assert_eq!(list(1, [0; 8], 4_096), Status4::BAD_COOKIE);
    assert_eq!(list(5, [9; 8], 4_096), Status4::NOT_SAME);
}
