//! NFS from the command line to the bundle: on the reference server, on a real NFS-Ganesha, and on
//! bad days.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod bad_days;
mod foreign;
mod ladder;
mod wire;

use std::net::SocketAddr;

use plimsoll_testkit::nfs_peers;
use plimsoll_testkit::program::Served;

/// The URL over UDP.
fn over_udp(server: &Served) -> String {
    format!("{}&transport=udp", server.url)
}

/// The export by way of a proxy, which MOUNT does not pass.
fn through(server: &Served, proxy: SocketAddr, transport: &str) -> String {
    format!("{}&transport={transport}", nfs_peers::through(&server.url, proxy))
}
