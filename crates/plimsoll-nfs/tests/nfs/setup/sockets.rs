//! The same set-up over real sockets: against the reference server, and against NFS-Ganesha
//! where it is installed.

use plimsoll_nfs::server::{NfsConfig, NfsServer};
use plimsoll_nfs::validate::validate;
use plimsoll_testkit::nfs_peers::{export_of, ganesha};
use plimsoll_testkit::program::ServerThread;
use plimsoll_testkit::sockets::Sockets;

use super::preparing::check_set;
use super::*;

/// Everything in order, once: validated, written, found again, grown, removed.
fn whole_life(mounted: &Mounted) {
    let mut remote = mounted.remote(&Sockets, Arc::default()).unwrap();
    let root = mounted.root;
    validate(&mut remote, mounted, &root).unwrap();
    let content = Content::new(5);
    let mut making = Making::new(&Sockets, mounted, &content);
    let first = making.prepare(250, None).unwrap();
    check_set(&Sockets, mounted, &content, &first);
    assert_eq!(making.prepare(250, None).unwrap().handles, first.handles);
    assert_eq!(making.bytes_written(), 0);
    let grown = making.prepare(400, Some(&first)).unwrap();
    check_set(&Sockets, mounted, &content, &grown);
    let cleaned = prepare::clean(mounted, &Sockets, &mut |_| GoOn::Yes).unwrap().unwrap();
    assert_eq!((cleaned.files, cleaned.foreign.len()), (403, 0));
}

#[test]
fn the_reference_server_serves_a_whole_life_in_both_versions_over_both_transports() {
    let server = NfsServer::bind(&NfsConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        memory_bytes_max: ROOMY,
        portmapper: None,
        cores: Vec::new(),
    })
    .unwrap();
    let url = server.url();
    let _serving = ServerThread::new(move |stop| server.serve_until(stop));
    for (version, transport) in [
        (NfsVersion::V2, "tcp"),
        (NfsVersion::V2, "udp"),
        (NfsVersion::V3, "tcp"),
        (NfsVersion::V3, "udp"),
    ] {
        let url = format!("{url}&transport={transport}");
        let mounted = mount_at(&Sockets, &url, version).unwrap();
        whole_life(&mounted);
        let left = remote(&Sockets, &mounted).list(&mounted.root, Listing::Names).unwrap();
        assert!(left.is_empty(), "{url}");
    }
}

#[test]
fn ganesha_serves_a_whole_life_over_both_transports() {
    let Some(server) = ganesha(&[]) else { return };
    let url = server.url();
    for transport in ["tcp", "udp"] {
        let query = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{query}transport={transport}");
        whole_life(&mount_at(&Sockets, &url, NfsVersion::V3).unwrap());
        assert_eq!(std::fs::read_dir(export_of(&server)).unwrap().count(), 0, "{url}");
    }
    let refused = mount_at(&Sockets, &url, NfsVersion::V2).err().unwrap().to_string();
    assert!(refused.contains("version"), "{refused}");
}
