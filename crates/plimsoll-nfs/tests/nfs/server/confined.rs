//! Names lead to one object each, links nowhere, foreign handles to nothing, and set-id bits are
//! never set, whoever the server runs as.

use super::calls::{Server, created, decoded, handle, in_memory, roomy};
use plimsoll_nfs::wire::Name;
use plimsoll_nfs::wire::v2::{self, Handle2, SetAttributes2};
use plimsoll_nfs::wire::v3::{self, SetAttributes, Status3};

#[test]
fn names_that_are_paths_are_refused() {
    let server = roomy();
    let root = server.root();
    server.create(&root, "file");
    let long = [b'x'; 256];
    let refusals: [(&[u8], Status3); 5] = [
        (b"", Status3::INVAL),
        (b"a/b", Status3::ACCES),
        (b"../secret", Status3::ACCES),
        (b"a\0b", Status3::ACCES),
        (&long, Status3::NAMETOOLONG),
    ];
    for (name, status) in refusals {
        assert_eq!(server.lookup(&root, name), Err(status), "{name:?}");
        let how = v3::CreateHow::Unchecked(SetAttributes::default());
        let create = v3::CreateArgs { dir: handle(&root), name: Name(name), how };
        let results = server.v3(v3::Procedure::Create, &create);
        assert_eq!(created(&results), Err(status), "{name:?}");
        let remove = v3::DirOpArgs { dir: handle(&root), name: Name(name) };
        let results = server.v3(v3::Procedure::Remove, &remove);
        assert_eq!(decoded::<v3::RemoveRes>(&results).status(), status, "{name:?}");
    }
    for dots in [".", ".."] {
        assert_eq!(server.remove_directory(&root, dots), Status3::INVAL);
        assert_eq!(server.rename((&root, dots), (&root, "x")), Status3::INVAL);
        assert_eq!(server.rename((&root, "file"), (&root, dots)), Status3::EXIST);
    }
    let above = server.lookup(&root, b"..").unwrap();
    assert_eq!(server.attributes(&above), server.attributes(&root));
}

#[test]
fn links_are_shown_and_never_followed() {
    let server = roomy();
    let root = server.root();
    let directory = server.make_directory(&root, "directory");
    let secret = server.create(&directory, "secret");
    server.write(&secret, 0, b"secret").unwrap();
    let link = server.symlink(&root, "way", "directory");
    assert_eq!(server.attributes(&link).unwrap().kind, v3::FileKind::Symlink);
    assert_eq!(server.lookup(&link, b"secret"), Err(Status3::NOTDIR));
    let peek = server.symlink(&root, "peek", "directory/secret");
    assert_eq!(server.read(&peek, 0, 9), Err(Status3::INVAL));
    assert_eq!(server.write(&peek, 0, b"x"), Err(Status3::INVAL));
    assert_eq!(server.try_create(&root, "peek"), Err(Status3::EXIST));
    let size = SetAttributes { size: Some(0), ..Default::default() };
    let arguments = v3::SetAttrArgs { object: handle(&peek), attributes: size, guard: None };
    let results = server.v3(v3::Procedure::SetAttr, &arguments);
    assert_eq!(decoded::<v3::SetAttrRes>(&results).status(), Status3::INVAL);
    assert_eq!(server.read(&secret, 0, 9), Ok((b"secret".to_vec(), true)));
}

#[test]
fn handles_that_are_not_ours_are_told_from_stale_ones() {
    let server = roomy();
    let root = server.root();
    for length in [0, 31, 33, 64] {
        assert_eq!(server.attributes(&vec![1; length]), Err(Status3::BADHANDLE));
    }
    let other = in_memory(1 << 20);
    assert_eq!(server.attributes(&other.root()), Err(Status3::STALE));
    let file = server.create(&root, "file");
    server.remove(&root, "file");
    // The next file may get the same number; it is another file all the same.
    let next = server.create(&root, "file");
    assert_ne!(file, next);
    assert_eq!(server.attributes(&file), Err(Status3::STALE));
    assert_eq!(server.read(&file, 0, 1), Err(Status3::STALE));
    assert!(server.attributes(&next).is_ok());
}

/// Both set-id bits, sticky, and permissions.
const REQUESTED: u32 = 0o7755;
/// What may be left of them.
const KEPT: u32 = 0o1755;

fn mode(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..Default::default() }
}

fn mode_of(server: &Server, object: &[u8]) -> u32 {
    server.attributes(object).unwrap().mode
}

fn set(server: &Server, object: &[u8], attributes: SetAttributes) {
    let arguments = v3::SetAttrArgs { object: handle(object), attributes, guard: None };
    let results = server.v3(v3::Procedure::SetAttr, &arguments);
    assert_eq!(decoded::<v3::SetAttrRes>(&results).status(), Status3::OK);
}

fn make(server: &Server, name: &str, how: v3::CreateHow) -> Vec<u8> {
    let root = server.root();
    let arguments = v3::CreateArgs { dir: handle(&root), name: Name::from(name), how };
    created(&server.v3(v3::Procedure::Create, &arguments)).unwrap()
}

fn make_directory(server: &Server, dir: &[u8], name: &str, attributes: SetAttributes) -> Vec<u8> {
    let arguments = v3::MkDirArgs { dir: handle(dir), name: Name::from(name), attributes };
    created(&server.v3(v3::Procedure::MkDir, &arguments)).unwrap()
}

#[test]
fn version_3_never_sets_a_set_id_bit() {
    let server = roomy();
    let plain = server.create(&server.root(), "plain");
    set(&server, &plain, mode(REQUESTED));
    assert_eq!(mode_of(&server, &plain), KEPT);
    for (name, how) in [
        ("unchecked", v3::CreateHow::Unchecked(mode(REQUESTED))),
        ("guarded", v3::CreateHow::Guarded(mode(REQUESTED))),
    ] {
        assert_eq!(mode_of(&server, &make(&server, name, how)), KEPT, "{name}");
    }
    let again = make(&server, "plain", v3::CreateHow::Unchecked(mode(0o6777)));
    assert_eq!(mode_of(&server, &again), KEPT);
    let directory = make_directory(&server, &server.root(), "directory", mode(REQUESTED));
    assert_eq!(mode_of(&server, &directory), KEPT);
    set(&server, &directory, mode(0o6711));
    assert_eq!(mode_of(&server, &directory), 0o711);
}

#[test]
fn version_2_never_sets_a_set_id_bit() {
    let server = roomy();
    let root = Handle2(server.root().try_into().unwrap());
    let attributes = SetAttributes2 { mode: Some(REQUESTED), ..Default::default() };
    let arguments = v2::CreateArgs { dir: root, name: Name::from("file"), attributes };
    let results = server.v2(v2::Procedure::Create, &arguments);
    let file = decoded::<v2::Reply2<v2::DirOpOk>>(&results).ok().unwrap();
    assert_eq!(file.attributes.mode & 0o7777, KEPT);
    let arguments = v2::CreateArgs { dir: root, name: Name::from("directory"), attributes };
    let results = server.v2(v2::Procedure::MkDir, &arguments);
    let directory = decoded::<v2::Reply2<v2::DirOpOk>>(&results).ok().unwrap();
    assert_eq!(directory.attributes.mode & 0o7777, KEPT);
    let attributes = SetAttributes2 { mode: Some(0o4711), ..Default::default() };
    let arguments = v2::SetAttrArgs { file: file.file, attributes };
    let results = server.v2(v2::Procedure::SetAttr, &arguments);
    let after = decoded::<v2::Reply2<v2::FileAttributes2>>(&results).ok().unwrap();
    assert_eq!(after.mode & 0o7777, 0o711);
}
