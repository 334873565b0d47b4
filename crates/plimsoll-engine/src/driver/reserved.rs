//! Ports below 1024, by which some servers know a client that its host's administrator trusts.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::bind;

/// First of the ports tried; below it lie most of the well-known services.
const FIRST: u16 = 512;
/// Ports tried: up to 1023.
const COUNT: u16 = 512;

/// Where one worker looks for its next reserved port.
pub(super) struct ReservedPorts {
    next: u16,
    permitted: bool,
}

impl ReservedPorts {
    /// Begins at a place that `spread` decides, so that workers do not try each other's ports.
    pub(super) fn new(spread: u32) -> Self {
        Self { next: (spread.wrapping_mul(67) % u32::from(COUNT)) as u16, permitted: true }
    }

    /// Binds to a free port; false when there is none, or we may not. Ports of connections that
    /// were closed in the last minute are not free either.
    pub(super) fn bind(&mut self, socket: &OwnedFd, address: IpAddr) -> Result<bool, Errno> {
        let attempts = if self.permitted { COUNT } else { 0 };
        for _ in 0..attempts {
            let port = FIRST + self.next;
            self.next = (self.next + 1) % COUNT;
            match bind(socket, &SocketAddr::new(address, port)) {
                Ok(()) => return Ok(true),
                Err(Errno::ADDRINUSE) => {}
                Err(Errno::ACCESS | Errno::PERM) => {
                    self.permitted = false;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
