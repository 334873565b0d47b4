//! Set-id bits are never set through the server, whoever it runs as.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod nfs_calls;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use nfs_calls::{Server, created, decoded, handle, on, servers};
use plimsoll_nfs::server::store::directory::{DirectoryStore, Flush};
use plimsoll_nfs::wire::Name;
use plimsoll_nfs::wire::v2::{self, Handle2, SetAttributes2};
use plimsoll_nfs::wire::v3::{self, SetAttributes};

/// Both set-id bits, sticky, and permissions.
const ASKED: u32 = 0o7755;
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
    assert_eq!(decoded::<v3::SetAttrRes>(&results).status(), v3::Status3::OK);
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
    for server in servers() {
        let plain = server.create(&server.root(), "plain");
        set(&server, &plain, mode(ASKED));
        assert_eq!(mode_of(&server, &plain), KEPT);
        for (name, how) in [
            ("unchecked", v3::CreateHow::Unchecked(mode(ASKED))),
            ("guarded", v3::CreateHow::Guarded(mode(ASKED))),
        ] {
            assert_eq!(mode_of(&server, &make(&server, name, how)), KEPT, "{name}");
        }
        let again = make(&server, "plain", v3::CreateHow::Unchecked(mode(0o6777)));
        assert_eq!(mode_of(&server, &again), KEPT);
        let directory = make_directory(&server, &server.root(), "directory", mode(ASKED));
        assert_eq!(mode_of(&server, &directory), KEPT);
        set(&server, &directory, mode(0o6711));
        assert_eq!(mode_of(&server, &directory), 0o711);
    }
}

#[test]
fn version_2_never_sets_a_set_id_bit() {
    for server in servers() {
        let root = Handle2(server.root().try_into().unwrap());
        let attributes = SetAttributes2 { mode: Some(ASKED), ..Default::default() };
        let arguments = v2::CreateArgs { dir: root, name: Name::from("file"), attributes };
        let results = server.v2(v2::Procedure::Create, &arguments);
        let file = decoded::<v2::CreateRes>(&results).ok().unwrap();
        assert_eq!(file.attributes.mode & 0o7777, KEPT);
        let arguments = v2::MkDirArgs { dir: root, name: Name::from("directory"), attributes };
        let results = server.v2(v2::Procedure::MkDir, &arguments);
        let directory = decoded::<v2::MkDirRes>(&results).ok().unwrap();
        assert_eq!(directory.attributes.mode & 0o7777, KEPT);
        let attributes = SetAttributes2 { mode: Some(0o4711), ..Default::default() };
        let arguments = v2::SetAttrArgs { file: file.file, attributes };
        let results = server.v2(v2::Procedure::SetAttr, &arguments);
        let after = decoded::<v2::SetAttrRes>(&results).ok().unwrap();
        assert_eq!(after.attributes.mode & 0o7777, 0o711);
    }
}

#[test]
fn a_set_gid_directory_does_not_hand_its_bit_on() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o2777)).unwrap();
    let server = on(Arc::new(DirectoryStore::open(place.path(), Flush::AsPromised).unwrap()));
    let root = server.root();
    for (name, attributes) in [("said", mode(0o2755)), ("unsaid", SetAttributes::default())] {
        make_directory(&server, &root, name, attributes);
        let made = fs::metadata(place.path().join(name)).unwrap().permissions().mode();
        assert_eq!(made & 0o6000, 0, "{name}: {made:o}");
    }
}
