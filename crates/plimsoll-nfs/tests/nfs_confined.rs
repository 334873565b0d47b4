//! The directory store leads nowhere else, and knows its own handles, after a restart as well.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod nfs_calls;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nfs_calls::{Server, decoded, handle, in_memory, on, servers};
use plimsoll_nfs::server::store::directory::{DirectoryStore, Flush};
use plimsoll_nfs::wire::Name;
use plimsoll_nfs::wire::v3::{self, Status3};

fn serve(root: &Path) -> Server {
    on(Arc::new(DirectoryStore::open(root, Flush::AsPromised).unwrap()))
}

#[test]
fn names_that_are_paths_are_refused() {
    for server in servers() {
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
            let how = v3::CreateHow::Unchecked(v3::SetAttributes::default());
            let create = v3::CreateArgs { dir: handle(&root), name: Name(name), how };
            let results = server.v3(v3::Procedure::Create, &create);
            assert_eq!(nfs_calls::created(&results), Err(status), "{name:?}");
            let remove = v3::RemoveArgs { dir: handle(&root), name: Name(name) };
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
}

#[test]
fn links_are_shown_and_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), inside.path().join("way-out")).unwrap();
    symlink(outside.path().join("secret"), inside.path().join("peek")).unwrap();
    let server = serve(inside.path());
    let root = server.root();
    let way_out = server.lookup(&root, b"way-out").unwrap();
    assert_eq!(server.attributes(&way_out).unwrap().kind, v3::FileKind::Symlink);
    assert_eq!(server.lookup(&way_out, b"secret"), Err(Status3::NOTDIR));
    let peek = server.lookup(&root, b"peek").unwrap();
    assert_eq!(server.read(&peek, 0, 9), Err(Status3::INVAL));
    assert_eq!(server.write(&peek, 0, b"x"), Err(Status3::INVAL));
    let how = v3::CreateHow::Unchecked(v3::SetAttributes::default());
    let create = v3::CreateArgs { dir: handle(&root), name: Name::from("peek"), how };
    let results = server.v3(v3::Procedure::Create, &create);
    assert_eq!(nfs_calls::created(&results), Err(Status3::EXIST));
    let size = v3::SetAttributes { size: Some(0), ..Default::default() };
    let arguments = v3::SetAttrArgs { object: handle(&peek), attributes: size, guard: None };
    let results = server.v3(v3::Procedure::SetAttr, &arguments);
    assert_eq!(decoded::<v3::SetAttrRes>(&results).status(), Status3::INVAL);
    assert_eq!(server.names(&root, 4096).len(), 4);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_directory_that_became_a_link_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::create_dir(inside.path().join("directory")).unwrap();
    let server = serve(inside.path());
    let directory = server.lookup(&server.root(), b"directory").unwrap();
    fs::remove_dir(inside.path().join("directory")).unwrap();
    symlink(outside.path(), inside.path().join("directory")).unwrap();
    assert!(server.lookup(&directory, b"secret").is_err());
}

#[test]
fn a_handle_made_up_for_a_file_outside_is_stale() {
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let server = serve(inside.path());
    let root = server.root();
    let own = server.create(&root, "own");
    let secret = fs::metadata(outside.path().join("secret")).unwrap().ino();
    let above = fs::metadata(outside.path()).unwrap().ino();
    for parent in [0, secret, above, fs::metadata(inside.path()).unwrap().ino()] {
        let mut forged = own.clone();
        forged[8..16].copy_from_slice(&secret.to_be_bytes());
        forged[24..].copy_from_slice(&parent.to_be_bytes());
        assert_eq!(server.attributes(&forged), Err(Status3::STALE));
        assert_eq!(server.read(&forged, 0, 9), Err(Status3::STALE));
    }
    let mut directory = own.clone();
    directory[8..16].copy_from_slice(&above.to_be_bytes());
    assert!(server.lookup(&directory, b"secret").is_err());
}

#[test]
fn handles_that_are_not_ours_are_told_from_stale_ones() {
    for server in servers() {
        let root = server.root();
        for length in [0, 31, 33, 64] {
            assert_eq!(server.attributes(&vec![1; length]), Err(Status3::BADHANDLE));
        }
        let other = in_memory(1 << 20);
        assert_eq!(server.attributes(&other.root()), Err(Status3::STALE));
        let file = server.create(&root, "file");
        server.remove(&root, "file");
        // Until the clock of the file system has ticked.
        std::thread::sleep(Duration::from_millis(20));
        // The file system may give the number to the next file; it is another file all the same.
        let next = server.create(&root, "file");
        assert_ne!(file, next);
        assert_eq!(server.attributes(&file), Err(Status3::STALE));
        assert_eq!(server.read(&file, 0, 1), Err(Status3::STALE));
        assert!(server.attributes(&next).is_ok());
    }
}

#[test]
fn handles_outlive_a_restart_and_unstable_writes_do_not_count_on_it() {
    let directory = tempfile::tempdir().unwrap();
    let (file, below, verifier) = {
        let server = serve(directory.path());
        let above = server.make_directory(&server.root(), "above");
        let below = server.make_directory(&above, "below");
        let file = server.create(&below, "file");
        let written = server.write(&file, 0, b"kept").unwrap();
        (file, below, written.verifier)
    };
    let server = serve(directory.path());
    assert_eq!(server.read(&file, 0, 9), Ok((b"kept".to_vec(), true)));
    assert_eq!(server.lookup(&below, b"file"), Ok(file.clone()));
    let again = server.write(&file, 4, b"!").unwrap();
    assert_ne!(again.verifier, verifier);
}

#[test]
fn what_others_change_in_the_directory_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let root = server.root();
    let file = server.create(&root, "file");
    server.write(&file, 0, b"ours").unwrap();
    let path = directory.path().join("file");
    fs::rename(&path, directory.path().join("elsewhere")).unwrap();
    assert_eq!(server.read(&file, 0, 9), Ok((b"ours".to_vec(), true)));
    assert_eq!(server.lookup(&root, b"file"), Err(Status3::NOENT));
    fs::write(&path, "theirs").unwrap();
    let theirs = server.lookup(&root, b"file").unwrap();
    assert_eq!(server.read(&theirs, 0, 9), Ok((b"theirs".to_vec(), true)));
    fs::remove_file(&path).unwrap();
    assert_eq!(server.read(&theirs, 0, 9).unwrap().0.len(), 6, "open until somebody looks");
    assert_eq!(server.attributes(&theirs), Err(Status3::STALE));
    assert_eq!(server.read(&theirs, 0, 9), Err(Status3::STALE));
}
