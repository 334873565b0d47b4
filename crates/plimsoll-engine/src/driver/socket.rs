//! What sockets are given: several datagrams in one system call, and ports below 1024, by which
//! some servers know a client that its host's administrator trusts.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::{array, slice};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, bind, send, sendmmsg};

/// Datagrams one system call sends. A client seldom sends more at once; each costs 64 bytes of
/// headers to write, used or not.
const PER_CALL: usize = 16;

/// Sends datagrams that lie one behind the other; how many the socket took. Fewer than given means
/// that it is full.
pub(super) fn send_all(socket: &OwnedFd, bytes: &[u8], lengths: &[usize]) -> Result<usize, Errno> {
    let mut rest = bytes;
    let mut taken = 0;
    while taken < lengths.len() {
        let most = lengths.len().min(taken + PER_CALL);
        let batch = &lengths[taken..most];
        let sent = match retry_on_intr(|| send_some(socket, rest, batch)) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => return Ok(taken),
            // The first is lost on the way, as a datagram may be.
            Err(Errno::NOBUFS) => 1,
            Err(error) => return Err(error),
        };
        rest = &rest[batch[..sent].iter().sum()..];
        taken += sent;
    }
    Ok(taken)
}

/// Sends at most [`PER_CALL`]: at least one, or an error that concerns the first.
fn send_some(socket: &OwnedFd, bytes: &[u8], lengths: &[usize]) -> Result<usize, Errno> {
    if lengths.len() == 1 {
        return send(socket, &bytes[..lengths[0]], SendFlags::NOSIGNAL).map(|_| 1);
    }
    let mut rest = bytes;
    let mut contents = [IoSlice::new(&[]); PER_CALL];
    for (content, length) in contents.iter_mut().zip(lengths) {
        let (datagram, after) = rest.split_at(*length);
        *content = IoSlice::new(datagram);
        rest = after;
    }
    let mut controls: [_; PER_CALL] = array::from_fn(|_| SendAncillaryBuffer::default());
    let mut parts = contents.iter().zip(&mut controls);
    let mut messages: [_; PER_CALL] = array::from_fn(|_| {
        let (content, control) = parts.next().expect("as many as there are messages");
        MMsgHdr::new(slice::from_ref(content), control)
    });
    sendmmsg(socket, &mut messages[..lengths.len()], SendFlags::NOSIGNAL)
}

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
    /// Begins at a port that `spread` decides, so that workers do not try each other's ports.
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use plimsoll_testkit::skips::skip_always;
    use rustix::net::{AddressFamily, SocketType, getsockname, ipproto, socket};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn datagram_socket() -> OwnedFd {
        socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::UDP)).unwrap()
    }

    fn port(socket: &OwnedFd) -> u16 {
        SocketAddr::try_from(getsockname(socket).unwrap()).unwrap().port()
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let sockets = [(); 3].map(|()| datagram_socket());
        // All three begin at the same port.
        let bound = sockets
            .each_ref()
            .map(|socket| ReservedPorts::new(400).bind(socket, LOOPBACK).unwrap());
        if bound == [false; 3] {
            return skip_always("ports below 1024 are not permitted");
        }
        let [first, second, third] = sockets.each_ref().map(port);
        assert!(first != second && second != third && first != third);
        assert!([first, second, third].iter().all(|port| (512..1024).contains(port)));
    }

    #[test]
    fn who_may_not_have_a_reserved_port_asks_once_and_goes_without() {
        // Capabilities are those of the thread.
        let without = thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::NET_BIND_SERVICE);
            set_capabilities(None, sets).unwrap();
            let mut ports = ReservedPorts::new(0);
            let bound = ports.bind(&datagram_socket(), LOOPBACK).unwrap();
            (bound, ports.permitted)
        });
        match without.join().unwrap() {
            (true, _) => skip_always("ports below 1024 are open to everybody"),
            refused => assert_eq!(refused, (false, false)),
        }
    }
}
