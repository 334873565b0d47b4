//! Damage and capture, seen by libnfs on a real NFS-Ganesha.

use plimsoll_servers::ServerProcess;
use plimsoll_testkit::capture::Capture;
use plimsoll_testkit::flip_proxy::FlipProxy;
use plimsoll_testkit::nfs_peers::{export_of, ganesha, libnfs, libnfs_url, through};

const GETATTR: u32 = 1;
const READ: u32 = 6;
const WRITE: u32 = 7;
const CREATE: u32 = 8;

/// A file that no READ takes at once.
fn content() -> Vec<u8> {
    (0..3_000_000_u32).map(|i| (i % 251) as u8).collect()
}

fn served() -> Option<(ServerProcess, Vec<u8>)> {
    let server = ganesha(&[])?;
    let content = content();
    std::fs::write(export_of(&server).join("file"), &content).unwrap();
    Some((server, content))
}

#[test]
fn libnfs_receives_exactly_the_bits_that_were_flipped() {
    let Some((server, content)) = served() else { return };
    let proxy = FlipProxy::tcp(server.address, 1);
    let url = libnfs_url(&through(&server.url(), proxy.address()), "/file", 3);
    let Some(result) = libnfs("nfs-cat", &[&url]) else { return };
    assert!(result.success, "{}", result.errors);
    assert_eq!(result.output.len(), content.len());
    let flipped = content.iter().zip(&result.output).map(|(a, b)| u64::from((a ^ b).count_ones()));
    assert!(proxy.injected() > 0);
    assert_eq!(flipped.sum::<u64>(), proxy.injected());
    assert_eq!(proxy.injected(), proxy.read_replies());
}

#[test]
fn tshark_counts_what_libnfs_did() {
    let Some((server, content)) = served() else { return };
    let Some(capture) = Capture::start(server.address.port()) else { return };
    let url = libnfs_url(&server.url(), "/file", 3);
    let Some(result) = libnfs("nfs-cat", &[&url]) else { return };
    assert_eq!(result.output, content);
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), &content).unwrap();
    let copy = libnfs_url(&server.url(), "/copy", 3);
    libnfs("nfs-cp", &[source.path().to_str().unwrap(), &copy]).unwrap();
    let calls = capture.finish();
    assert_eq!((calls.dropped, calls.repeated), (0, 0));
    assert_eq!(calls.nfs(3, CREATE), 1, "{calls:?}");
    for procedure in [GETATTR, READ, WRITE] {
        assert!(calls.nfs(3, procedure) > 0, "procedure {procedure}: {calls:?}");
    }
    assert!(calls.nfs_total(3) > calls.nfs(3, READ));
}
