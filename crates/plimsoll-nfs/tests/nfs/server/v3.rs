//! Every procedure of NFSv3, over the server's core without sockets.

use std::collections::BTreeSet;

use super::calls::{Server, created, decoded, handle, in_memory, roomy};
use plimsoll_nfs::server::Link;
use plimsoll_nfs::wire::v3::{self, Procedure, Status3};
use plimsoll_nfs::wire::{Name, Path};

#[test]
fn attributes_are_read_and_set() {
    let server = roomy();
    let root = server.root();
    assert_eq!(server.attributes(&root).unwrap().kind, v3::FileKind::Directory);
    let file = server.create(&root, "file");
    server.write(&file, 0, b"12345678").unwrap();
    let before = server.attributes(&file).unwrap();
    assert_eq!((before.kind, before.size, before.nlink), (v3::FileKind::Regular, 8, 1));
    let time = v3::TimeSpec3 { seconds: 1_000_000_000, nanoseconds: 0 };
    let new_attributes = v3::SetAttributes {
        mode: Some(0o640),
        size: Some(3),
        mtime: v3::SetTime::To(time),
        ..Default::default()
    };
    let set = |guard| {
        let object = handle(&file);
        let arguments = v3::SetAttrArgs { object, attributes: new_attributes, guard };
        decoded::<v3::SetAttrRes>(&server.v3(Procedure::SetAttr, &arguments)).status()
    };
    let elsewhen = v3::TimeSpec3 { seconds: 1, nanoseconds: 2 };
    assert_eq!(set(Some(elsewhen)), Status3::NOT_SYNC);
    assert_eq!(set(Some(before.ctime)), Status3::OK);
    let after = server.attributes(&file).unwrap();
    assert_eq!((after.mode, after.size, after.mtime), (0o640, 3, time));
    assert_eq!(server.read(&file, 0, 100), Ok((b"123".to_vec(), true)));
}

#[test]
fn names_are_found_and_missing_ones_are_not() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    let file = server.create(&directory, "file");
    let id = |handle: &[u8]| server.attributes(handle).unwrap().fileid;
    let looked_up = server.lookup(&directory, b"file").unwrap();
    assert_eq!(id(&looked_up), id(&file));
    assert_eq!(id(&server.lookup(&directory, b".").unwrap()), id(&directory));
    assert_eq!(id(&server.lookup(&directory, b"..").unwrap()), id(&root));
    assert_eq!(server.lookup(&directory, b"missing"), Err(Status3::NOENT));
    assert_eq!(server.lookup(&file, b"name"), Err(Status3::NOTDIR));
}

#[test]
fn access_grants_what_makes_sense() {
    let server = roomy();
    let root = server.root();
    let file = server.create(&root, "file");
    let granted = |object: &[u8]| {
        let arguments = v3::AccessArgs { object: handle(object), access: 0x3f };
        let results = server.v3(Procedure::Access, &arguments);
        decoded::<v3::AccessRes>(&results).ok().unwrap().access
    };
    assert_eq!((granted(&root), granted(&file)), (0x1f, 0x0d));
}

#[test]
fn data_comes_back_as_it_was_written() {
    let server = roomy();
    let file = server.create(&server.root(), "file");
    let data: Vec<u8> = (0..200_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let written = server.write(&file, 5, &data).unwrap();
    assert_eq!(written.count as usize, data.len());
    assert_eq!(written.wcc.after.unwrap().size, data.len() as u64 + 5);
    let (read, eof) = server.read(&file, 0, 1 << 20).unwrap();
    assert!(read[..5] == [0; 5] && read[5..] == data && eof);
    assert_eq!(server.read(&file, 100, 7).unwrap(), (data[95..102].to_vec(), false));
    assert_eq!(server.read(&file, 1 << 40, 7).unwrap(), (Vec::new(), true));
    assert_eq!(server.write(&file, u64::MAX - 3, &data), Err(Status3::FBIG));
    assert_eq!(server.read(&server.root(), 0, 7), Err(Status3::ISDIR));
    let arguments = v3::CommitArgs { file: handle(&file), offset: 0, count: 0 };
    let results = server.v3(Procedure::Commit, &arguments);
    let committed = decoded::<v3::CommitRes>(&results).ok().unwrap();
    assert_eq!(committed.verifier, written.verifier);
}

#[test]
fn files_are_created_in_three_ways() {
    let server = roomy();
    let root = server.root();
    let create = |how| {
        let arguments = v3::CreateArgs { dir: handle(&root), name: Name::from("file"), how };
        created(&server.v3(Procedure::Create, &arguments))
    };
    let verifier = [1, 2, 3, 4, 5, 6, 7, 8];
    let exclusive = create(v3::CreateHow::Exclusive(verifier)).unwrap();
    assert_eq!(create(v3::CreateHow::Exclusive(verifier)), Ok(exclusive.clone()));
    assert_eq!(create(v3::CreateHow::Exclusive([9; 8])), Err(Status3::EXIST));
    let plain = v3::SetAttributes::default();
    assert_eq!(create(v3::CreateHow::Guarded(plain)), Err(Status3::EXIST));
    server.write(&exclusive, 0, b"content").unwrap();
    assert_eq!(create(v3::CreateHow::Unchecked(plain)), Ok(exclusive.clone()));
    assert_eq!(server.attributes(&exclusive).unwrap().size, 7);
    let cut = v3::SetAttributes { size: Some(0), ..plain };
    assert_eq!(create(v3::CreateHow::Unchecked(cut)), Ok(exclusive.clone()));
    assert_eq!(server.attributes(&exclusive).unwrap().size, 0);
    server.make_directory(&root, "directory");
    let name = Name::from("directory");
    let how = v3::CreateHow::Unchecked(plain);
    let arguments = v3::CreateArgs { dir: handle(&root), name, how };
    let refused = created(&server.v3(Procedure::Create, &arguments));
    assert_eq!(refused, Err(Status3::EXIST));
}

#[test]
fn the_mode_of_a_new_file_is_the_one_asked_for() {
    let server = roomy();
    let root = server.root();
    let attributes = v3::SetAttributes { mode: Some(0o666), ..Default::default() };
    let how = v3::CreateHow::Guarded(attributes);
    let arguments = v3::CreateArgs { dir: handle(&root), name: Name::from("file"), how };
    let file = created(&server.v3(Procedure::Create, &arguments)).unwrap();
    assert_eq!(server.attributes(&file).unwrap().mode, 0o666);
    let name = Name::from("directory");
    let attributes = v3::SetAttributes { mode: Some(0o777), ..Default::default() };
    let arguments = v3::MkDirArgs { dir: handle(&root), name, attributes };
    let directory = created(&server.v3(Procedure::MkDir, &arguments)).unwrap();
    assert_eq!(server.attributes(&directory).unwrap().mode, 0o777);
}

#[test]
fn links_pipes_and_devices_are_made() {
    let server = roomy();
    let root = server.root();
    let link = server.symlink(&root, "link", "no/such/../place");
    let arguments = handle(&link);
    let results = server.v3(Procedure::ReadLink, &arguments);
    let text = decoded::<v3::ReadLinkRes<'_>>(&results).ok().unwrap().path;
    assert_eq!(text, Path::from("no/such/../place"));
    let file = server.create(&root, "file");
    let results = server.v3(Procedure::ReadLink, &handle(&file));
    assert_eq!(decoded::<v3::ReadLinkRes<'_>>(&results).status(), Status3::INVAL);
    let make = |name: &str, what| {
        let arguments = v3::MkNodArgs { dir: handle(&root), name: Name::from(name), what };
        created(&server.v3(Procedure::MkNod, &arguments))
    };
    let plain = v3::SetAttributes::default();
    let pipe = make("pipe", v3::MkNodData::Fifo(plain)).unwrap();
    assert_eq!(server.attributes(&pipe).unwrap().kind, v3::FileKind::Fifo);
    assert_eq!(server.read(&pipe, 0, 1), Err(Status3::INVAL));
    assert_eq!(server.write(&pipe, 0, b"x"), Err(Status3::INVAL));
    make("socket", v3::MkNodData::Socket(plain)).unwrap();
    let device = v3::Device { major: 1, minor: 3 };
    make("device", v3::MkNodData::CharacterDevice(plain, device)).unwrap();
    let regular = make("regular", v3::MkNodData::Other(v3::FileKind::Regular));
    assert_eq!(regular, Err(Status3::BADTYPE));
}

#[test]
fn names_go_only_the_way_they_are_meant_to() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    let file = server.create(&directory, "file");
    assert_eq!(server.attributes(&root).unwrap().nlink, 3);
    assert_eq!(server.remove_directory(&root, "directory"), Status3::NOTEMPTY);
    assert_eq!(server.remove(&root, "directory"), Status3::ISDIR);
    assert_eq!(server.remove_directory(&directory, "file"), Status3::NOTDIR);
    assert_eq!(server.remove(&directory, "file"), Status3::OK);
    assert_eq!(server.remove(&directory, "file"), Status3::NOENT);
    assert_eq!(server.attributes(&file), Err(Status3::STALE));
    assert_eq!(server.write(&file, 0, b"x"), Err(Status3::STALE));
    assert_eq!(server.remove_directory(&root, "directory"), Status3::OK);
    assert_eq!(server.lookup(&directory, b"file"), Err(Status3::STALE));
    assert_eq!(server.try_create(&directory, "file"), Err(Status3::STALE));
    assert_eq!(server.attributes(&root).unwrap().nlink, 2);
}

#[test]
fn renamed_objects_keep_their_handles() {
    let server = roomy();
    let root = server.root();
    let (a, b) = (server.make_directory(&root, "a"), server.make_directory(&root, "b"));
    let file = server.create(&a, "file");
    server.write(&file, 0, b"kept").unwrap();
    server.create(&b, "target");
    assert_eq!(server.rename((&a, "missing"), (&b, "x")), Status3::NOENT);
    assert_eq!(server.rename((&a, "file"), (&b, "target")), Status3::OK);
    assert_eq!(server.read(&file, 0, 9), Ok((b"kept".to_vec(), true)));
    assert_eq!((server.names(&a, 4096).len(), server.names(&b, 4096).len()), (2, 3));
    assert_eq!(server.rename((&root, "b"), (&a, "b")), Status3::OK);
    assert_eq!(server.read(&file, 0, 9), Ok((b"kept".to_vec(), true)));
    let above = server.lookup(&b, b"..").unwrap();
    assert_eq!(server.attributes(&above), server.attributes(&a));
    assert_eq!(server.rename((&root, "a"), (&b, "a")), Status3::INVAL);
    assert_eq!(server.rename((&b, "target"), (&b, "target")), Status3::OK);
    let other = server.make_directory(&root, "other");
    assert_eq!(server.rename((&b, "target"), (&root, "other")), Status3::EXIST);
    assert_eq!(server.rename((&a, "b"), (&root, "other")), Status3::OK);
    assert_eq!(server.attributes(&other), Err(Status3::STALE));
    assert_eq!(server.read(&file, 0, 9), Ok((b"kept".to_vec(), true)));
}

#[test]
fn a_file_lives_until_its_last_name_goes() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    let file = server.create(&root, "first");
    server.write(&file, 0, b"data").unwrap();
    let link = |object: &[u8], name: &str| {
        let (file, dir) = (handle(object), handle(&directory));
        let arguments = v3::LinkArgs { file, dir, name: Name::from(name) };
        decoded::<v3::LinkRes>(&server.v3(Procedure::Link, &arguments)).status()
    };
    assert_eq!(link(&file, "second"), Status3::OK);
    assert_eq!(link(&file, "second"), Status3::EXIST);
    assert_eq!(link(&directory, "third"), Status3::INVAL);
    assert_eq!(server.attributes(&file).unwrap().nlink, 2);
    assert_eq!(server.remove(&root, "first"), Status3::OK);
    assert_eq!(server.attributes(&file).unwrap().nlink, 1);
    let second = server.lookup(&directory, b"second").unwrap();
    assert_eq!(server.read(&second, 0, 9), Ok((b"data".to_vec(), true)));
    assert_eq!(server.read(&file, 0, 9), Ok((b"data".to_vec(), true)));
    assert_eq!(server.remove(&directory, "second"), Status3::OK);
    assert_eq!(server.attributes(&file), Err(Status3::STALE));
}

#[test]
fn a_listing_names_everything_once_whatever_its_size() {
    let mut server = roomy();
    let root = server.root();
    for number in 0..300 {
        server.create(&root, &format!("file-{number}"));
    }
    for (link, count) in [(Link::Stream, 300), (Link::Stream, 65_536), (Link::Datagram, 8192)] {
        server.link = link;
        let names = server.names(&root, count);
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!((names.len(), distinct.len()), (302, 302), "{count} bytes");
    }
    let tiny = v3::ReadDirArgs { dir: handle(&root), cookie: 0, verifier: [0; 8], count: 100 };
    let results = server.v3(Procedure::ReadDir, &tiny);
    assert_eq!(decoded::<v3::ReadDirRes<'_>>(&results).status(), Status3::TOOSMALL);
    let file = server.lookup(&root, b"file-7").unwrap();
    let wrong = v3::ReadDirArgs { dir: handle(&file), cookie: 0, verifier: [0; 8], count: 512 };
    let results = server.v3(Procedure::ReadDir, &wrong);
    assert_eq!(decoded::<v3::ReadDirRes<'_>>(&results).status(), Status3::NOTDIR);
    let (cookie, verifier) = (5, [7; 8]);
    let wrong = v3::ReadDirArgs { dir: handle(&root), cookie, verifier, count: 512 };
    let results = server.v3(Procedure::ReadDir, &wrong);
    assert_eq!(decoded::<v3::ReadDirRes<'_>>(&results).status(), Status3::BAD_COOKIE);
}

#[test]
fn a_listing_that_is_interrupted_by_removals_misses_nothing() {
    let server = roomy();
    let root = server.root();
    for number in 0..200 {
        server.create(&root, &format!("file-{number}"));
    }
    // As `rm -r` of a client does: list some, remove them, go on behind them.
    let (mut cookie, mut verifier, mut removed) = (0, [0; 8], 0);
    loop {
        let arguments = v3::ReadDirArgs { dir: handle(&root), cookie, verifier, count: 700 };
        let results = server.v3(Procedure::ReadDir, &arguments);
        let ok = decoded::<v3::ReadDirRes<'_>>(&results).ok().unwrap();
        for entry in ok.entries.iter() {
            cookie = entry.cookie;
            let name = entry.name.to_string();
            if name.starts_with("file-") {
                assert_eq!(server.remove(&root, &name), Status3::OK);
                removed += 1;
            }
        }
        if ok.eof {
            break;
        }
        verifier = ok.verifier;
    }
    assert_eq!((removed, server.names(&root, 4096).len()), (200, 2));
}

#[test]
fn a_listing_with_attributes_gives_handles_that_work() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    let file = server.create(&directory, "file");
    server.write(&file, 0, b"data").unwrap();
    let arguments = v3::ReadDirPlusArgs {
        dir: handle(&directory),
        cookie: 0,
        verifier: [0; 8],
        dir_count: 512,
        max_count: 8192,
    };
    let results = server.v3(Procedure::ReadDirPlus, &arguments);
    let ok = decoded::<v3::ReadDirPlusRes<'_>>(&results).ok().unwrap();
    let mut listed = Vec::new();
    for entry in ok.entries.iter() {
        let attributes = entry.attributes.unwrap();
        let object = entry.object.unwrap().bytes();
        assert_eq!(server.attributes(object), Ok(attributes));
        assert_eq!(entry.fileid, attributes.fileid);
        listed.push((entry.name.to_string(), attributes.size));
    }
    assert_eq!((listed.len(), listed.last().unwrap()), (3, &("file".to_owned(), 4)));
    assert!(ok.eof);
}

#[test]
fn the_file_system_tells_its_limits() {
    let mut server = roomy();
    let root = server.root();
    let results = server.v3(Procedure::FsStat, &handle(&root));
    let state = decoded::<v3::FsStatRes>(&results).ok().unwrap();
    assert!(state.free_bytes <= state.total_bytes && state.available_bytes > 0);
    let info = |server: &Server| {
        let results = server.v3(Procedure::FsInfo, &handle(&root));
        decoded::<v3::FsInfoRes>(&results).ok().unwrap()
    };
    assert_eq!(info(&server).read_max, 1 << 20);
    server.link = Link::Datagram;
    assert_eq!(info(&server).write_max, 32 << 10);
    let file = server.create(&root, "file");
    server.write(&file, 0, &[1; 100_000]).unwrap();
    assert_eq!(server.read(&file, 0, 100_000).unwrap(), (vec![1; 32 << 10], false));
    let results = server.v3(Procedure::PathConf, &handle(&root));
    assert_eq!(decoded::<v3::PathConfRes>(&results).ok().unwrap().name_bytes_max, 255);
}

#[test]
fn memory_has_an_end_and_comes_back() {
    let server = in_memory(1 << 20);
    let root = server.root();
    let free = |server: &Server| {
        let results = server.v3(Procedure::FsStat, &handle(&root));
        decoded::<v3::FsStatRes>(&results).ok().unwrap().free_bytes
    };
    let at_first = free(&server);
    let file = server.create(&root, "file");
    assert_eq!(server.write(&file, 0, &[1; 1 << 20]), Err(Status3::NOSPC));
    server.write(&file, 0, &[1; 900_000]).unwrap();
    assert_eq!(server.write(&file, 900_000, &[1; 200_000]), Err(Status3::NOSPC));
    assert_eq!(server.attributes(&file).unwrap().size, 900_000);
    let mut made = 0;
    let how = v3::CreateHow::Guarded(v3::SetAttributes::default());
    let full = loop {
        let name = format!("{made:0>200}");
        let arguments = v3::CreateArgs { dir: handle(&root), name: Name::from(&*name), how };
        match created(&server.v3(Procedure::Create, &arguments)) {
            Ok(_) => made += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(full, Status3::NOSPC);
    assert!(made > 50);
    for number in 0..made {
        assert_eq!(server.remove(&root, &format!("{number:0>200}")), Status3::OK);
    }
    assert_eq!(server.remove(&root, "file"), Status3::OK);
    assert_eq!(free(&server), at_first);
}
