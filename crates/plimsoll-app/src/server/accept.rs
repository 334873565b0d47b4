//! New connections.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::wire::{Refusal, Welcome};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{SocketFlags, accept_with};

use super::exchange::{Exchange, Phase};

/// A client that is silent for so long is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// How often it is asked, and how many times before its connection ends.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// What came of asking for the next connection.
pub(super) enum Accepted {
    Socket(OwnedFd),
    Nobody,
    OutOfDescriptors,
}

/// The next connection that waits.
pub(super) fn next(listener: &TcpListener) -> Accepted {
    loop {
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => {
                prepare(&socket);
                return Accepted::Socket(socket);
            }
            Err(Errno::AGAIN) => return Accepted::Nobody,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return Accepted::OutOfDescriptors;
            }
            // A client that left while it waited is not the end of the others.
            Err(_) => {}
        }
    }
}

/// Errors mean that the client is gone, which shows when its socket is read.
fn prepare(socket: &OwnedFd) {
    // Without it the second part of a reply waits for the client's delayed ACK.
    let _ = set_tcp_nodelay(socket, true)
        .and_then(|()| set_socket_keepalive(socket, true))
        .and_then(|()| set_tcp_keepidle(socket, KEEPALIVE_IDLE))
        .and_then(|()| set_tcp_keepintvl(socket, KEEPALIVE_EVERY))
        .and_then(|()| set_tcp_keepcnt(socket, KEEPALIVE_TRIES));
}

/// Makes the refusal the first and last thing that is sent.
pub(super) fn refusal(exchange: &mut Exchange, why: Refusal) {
    exchange.outbox.put_welcome(&Welcome::refused(why));
    exchange.is_last = true;
    exchange.phase = Phase::Replying;
}
