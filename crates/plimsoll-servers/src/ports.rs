//! Free ports of loopback for servers that others wrote: they bind what their configuration says,
//! and another process may take it between our looking and that.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::{ServerError, ServerProcess};

/// Starts of a server whose ports somebody else took.
const TRIES: u32 = 3;

/// Starts a server on a port that nobody has, and on another one where somebody was faster.
pub fn on_a_free_port(
    start: impl Fn(SocketAddr) -> Result<ServerProcess, ServerError>,
) -> Result<ServerProcess, ServerError> {
    on_free_ports(free_address, |address| TcpListener::bind(address).is_ok(), start)
}

/// The same for a server that needs more than one.
pub fn on_free_ports<P: Copy>(
    find: impl Fn() -> Result<P, ServerError>,
    are_free: impl Fn(P) -> bool,
    start: impl Fn(P) -> Result<ServerProcess, ServerError>,
) -> Result<ServerProcess, ServerError> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let ports = find()?;
        match start(ports) {
            Err(ServerError::Ended { .. }) if tries > 0 && !are_free(ports) => {}
            outcome => return outcome,
        }
    }
}

fn free_address() -> Result<SocketAddr, ServerError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|source| ServerError::System { doing: "find a free port", source })
}
