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

use plimsoll_testkit::program::Served;

/// The URL over UDP.
fn over_udp(server: &Served) -> String {
    format!("{}&transport=udp", server.url)
}

/// The export through a proxy on another port, which MOUNT does not pass.
fn through(server: &Served, port: u16, transport: &str) -> String {
    let mount_port = server.address().port();
    format!("nfs://127.0.0.1:{port}/export?mountport={mount_port}&transport={transport}")
}
