//! Every procedure of NFSv2, over the server's core without sockets.

use super::calls::{Server, decoded, in_memory, roomy};
use plimsoll_nfs::wire::mount::{self, Mount1Res};
use plimsoll_nfs::wire::v2::{
    self, Data2, FileAttributes2, FileKind2, Handle2, Procedure, SetAttributes2, Status2,
};
use plimsoll_nfs::wire::{Name, Path};

fn root(server: &Server) -> Handle2 {
    let results = server.results((mount::PROGRAM, 1), 1, &Path::from("/export"));
    decoded::<Mount1Res>(&results).ok().unwrap()
}

fn create(server: &Server, dir: Handle2, name: &str) -> Result<v2::DirOpOk, Status2> {
    let attributes = SetAttributes2 { mode: Some(0o600), size: Some(0), ..Default::default() };
    let arguments = v2::CreateArgs { dir, name: Name::from(name), attributes };
    decoded::<v2::Reply2<v2::DirOpOk>>(&server.v2(Procedure::Create, &arguments)).ok()
}

fn make_directory(server: &Server, dir: Handle2, name: &str) -> Result<v2::DirOpOk, Status2> {
    let attributes = SetAttributes2 { mode: Some(0o700), ..Default::default() };
    let arguments = v2::CreateArgs { dir, name: Name::from(name), attributes };
    decoded::<v2::Reply2<v2::DirOpOk>>(&server.v2(Procedure::MkDir, &arguments)).ok()
}

fn lookup(server: &Server, dir: Handle2, name: &str) -> Result<v2::DirOpOk, Status2> {
    let arguments = v2::DirOpArgs { dir, name: Name::from(name) };
    decoded::<v2::Reply2<v2::DirOpOk>>(&server.v2(Procedure::Lookup, &arguments)).ok()
}

fn attributes(server: &Server, file: Handle2) -> Result<FileAttributes2, Status2> {
    let results = server.v2(Procedure::GetAttr, &file);
    decoded::<v2::Reply2<FileAttributes2>>(&results).ok()
}

fn write(server: &Server, file: Handle2, offset: u32, data: &[u8]) -> Result<u32, Status2> {
    let (begin_offset, total_count) = (0, 0);
    let arguments = v2::WriteArgs { file, begin_offset, offset, total_count, data: Data2(data) };
    let results = server.v2(Procedure::Write, &arguments);
    decoded::<v2::Reply2<FileAttributes2>>(&results).ok().map(|attributes| attributes.size)
}

fn read(server: &Server, file: Handle2, offset: u32, count: u32) -> Result<Vec<u8>, Status2> {
    let arguments = v2::ReadArgs { file, offset, count, total_count: 0 };
    let results = server.v2(Procedure::Read, &arguments);
    decoded::<v2::Reply2<v2::ReadOk<'_>>>(&results).ok().map(|ok| ok.data.0.to_vec())
}

#[test]
fn the_procedures_that_do_nothing_answer() {
    let server = roomy();
    for procedure in [Procedure::Null, Procedure::Root, Procedure::WriteCache] {
        assert!(server.v2(procedure, &()).is_empty());
    }
}

#[test]
fn a_file_is_made_written_read_and_removed() {
    let server = roomy();
    let root = root(&server);
    let made = create(&server, root, "file").unwrap();
    assert_eq!((made.attributes.kind, made.attributes.mode), (FileKind2::Regular, 0o100_600));
    assert_eq!(write(&server, made.file, 3, &[7; 8192]), Ok(8195));
    assert_eq!(read(&server, made.file, 0, 5).unwrap(), [0, 0, 0, 7, 7]);
    assert_eq!(read(&server, made.file, 0, u32::MAX).unwrap().len(), 8192);
    assert_eq!(read(&server, made.file, 8190, 100).unwrap(), [7; 5]);
    assert_eq!(read(&server, root, 0, 1), Err(Status2::ISDIR));
    // What exists is taken, and cut as the attributes say.
    let again = create(&server, root, "file").unwrap();
    assert_eq!((again.file, again.attributes.size), (made.file, 0));
    assert_eq!(lookup(&server, root, "file").unwrap(), again);
    let arguments = v2::DirOpArgs { dir: root, name: Name::from("file") };
    let remove = || decoded::<v2::Reply2<()>>(&server.v2(Procedure::Remove, &arguments));
    assert_eq!((remove().status(), remove().status()), (Status2::OK, Status2::NOENT));
    assert_eq!(attributes(&server, made.file), Err(Status2::STALE));
    assert_eq!(lookup(&server, root, "file"), Err(Status2::NOENT));
}

#[test]
fn attributes_are_set() {
    let server = roomy();
    let file = create(&server, root(&server), "file").unwrap().file;
    write(&server, file, 0, b"12345678").unwrap();
    let time = v2::TimeVal2 { seconds: 1_000_000_000, microseconds: 500_000 };
    let now = v2::TimeVal2 { seconds: 5, microseconds: 1_000_000 };
    let new_attributes = SetAttributes2 {
        mode: Some(0o444),
        size: Some(4),
        atime: Some(now),
        mtime: Some(time),
        ..Default::default()
    };
    let arguments = v2::SetAttrArgs { file, attributes: new_attributes };
    let results = server.v2(Procedure::SetAttr, &arguments);
    let set = decoded::<v2::Reply2<FileAttributes2>>(&results).ok().unwrap();
    assert_eq!((set.mode, set.size, set.mtime), (0o100_444, 4, time));
    assert!(set.atime.seconds > 1_000_000_000, "the server's clock");
    assert_eq!(attributes(&server, file), Ok(set));
}

#[test]
fn names_are_moved_linked_and_listed() {
    let server = roomy();
    let root = root(&server);
    let directory = make_directory(&server, root, "directory").unwrap();
    assert_eq!(directory.attributes.kind, FileKind2::Directory);
    let file = create(&server, root, "file").unwrap().file;
    let (from_dir, to_dir) = (root, directory.file);
    let (from_name, to_name) = (Name::from("file"), Name::from("moved"));
    let arguments = v2::RenameArgs { from_dir, from_name, to_dir, to_name };
    let renamed = decoded::<v2::Reply2<()>>(&server.v2(Procedure::Rename, &arguments));
    assert_eq!(renamed.status(), Status2::OK);
    let arguments = v2::LinkArgs { file, dir: root, name: Name::from("link") };
    let linked = decoded::<v2::Reply2<()>>(&server.v2(Procedure::Link, &arguments));
    assert_eq!(linked.status(), Status2::OK);
    assert_eq!(attributes(&server, file).unwrap().nlink, 2);
    let arguments = v2::SymlinkArgs {
        dir: root,
        name: Name::from("symbolic"),
        path: Path::from("directory/moved"),
        attributes: SetAttributes2::default(),
    };
    let made = decoded::<v2::Reply2<()>>(&server.v2(Procedure::Symlink, &arguments));
    assert_eq!(made.status(), Status2::OK);
    let symbolic = lookup(&server, root, "symbolic").unwrap().file;
    let results = server.v2(Procedure::ReadLink, &symbolic);
    let text = decoded::<v2::Reply2<Path<'_>>>(&results).ok().unwrap();
    assert_eq!(text, Path::from("directory/moved"));
    let mut names = list(&server, root, 64);
    names.sort();
    assert_eq!(names, [".", "..", "directory", "link", "symbolic"]);
    let arguments = v2::DirOpArgs { dir: root, name: Name::from("directory") };
    let removed = decoded::<v2::Reply2<()>>(&server.v2(Procedure::RmDir, &arguments));
    assert_eq!(removed.status(), Status2::NOTEMPTY);
}

/// All names, `count` bytes at a time.
fn list(server: &Server, dir: Handle2, count: u32) -> Vec<String> {
    let (mut cookie, mut names) = (0, Vec::new());
    loop {
        let results = server.v2(Procedure::ReadDir, &v2::ReadDirArgs { dir, cookie, count });
        assert!(results.len() <= count as usize);
        let ok = decoded::<v2::Reply2<v2::ReadDirOk<'_>>>(&results).ok().unwrap();
        for entry in ok.entries.iter() {
            names.push(entry.name.to_string());
            cookie = entry.cookie;
        }
        if ok.eof {
            return names;
        }
    }
}

#[test]
fn the_file_system_tells_its_space() {
    let server = roomy();
    let results = server.v2(Procedure::StatFs, &root(&server));
    let space = decoded::<v2::Reply2<v2::StatFsOk>>(&results).ok().unwrap();
    assert_eq!(space.transfer_bytes, 8192);
    assert!(space.available_blocks > 0 && space.free_blocks <= space.blocks);
    // 31 bits must count the blocks of the largest file system.
    let server = in_memory(u64::MAX);
    let results = server.v2(Procedure::StatFs, &root(&server));
    let space = decoded::<v2::Reply2<v2::StatFsOk>>(&results).ok().unwrap();
    assert!(u64::from(space.blocks) * u64::from(space.block_bytes) > 1 << 60);
}

#[test]
fn a_listing_that_has_no_room_for_a_name_is_an_error() {
    let server = in_memory(1 << 20);
    let arguments = v2::ReadDirArgs { dir: root(&server), cookie: 0, count: 16 };
    let results = server.v2(Procedure::ReadDir, &arguments);
    assert_eq!(decoded::<v2::Reply2<v2::ReadDirOk<'_>>>(&results).status(), Status2::IO);
}
