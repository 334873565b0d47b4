//! NFS from the command line to the bundle: on the reference server, on a real NFS-Ganesha, and on
//! bad days.

mod bad_days;
mod foreign;
mod ladder;
mod sessions;
mod wire;

use std::net::SocketAddr;

use plimsoll_testkit::nfs_peers;
use plimsoll_testkit::program::Served;

/// The URL over UDP.
fn udp_url(server: &Served) -> String {
    format!("{}&transport=udp", server.url)
}

/// The export through a proxy, which MOUNT bypasses.
fn through(server: &Served, proxy: SocketAddr, transport: &str) -> String {
    format!("{}&transport={transport}", nfs_peers::through(&server.url, proxy))
}

/// The URL with a version of NFS.
fn of_version(server: &Served, version: &str) -> String {
    format!("{}&version={version}", server.url)
}
