//! UDP: threads that share a socket, one datagram after the other.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use rustix::net::sockopt;

use super::delayed::{Departures, Whom};
use super::{Answered, Link, NfsCore, Peer};
use plimsoll_servers::{ServerError, Stop, cores};

/// Longest datagram.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Longest reply: what a datagram over IPv4 carries, and a margin.
const REPLY_BYTES_MAX: usize = 60_000;
/// How often to look whether to stop when nothing comes.
const STOP_LOOK: Duration = Duration::from_millis(50);
/// Calls that the kernel may keep while all threads are busy; it may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Answers datagrams until `stop` is requested.
pub(super) fn serve(
    (core, departures): (&NfsCore, Option<&Departures>),
    socket: &UdpSocket,
    pin: &[u32],
    stop: &Stop,
) -> Result<(), ServerError> {
    cores::pin_current_thread(pin)
        .map_err(|source| ServerError::Pin { cores: cores::list(pin), source })?;
    // Less of a buffer loses calls under bursts, which clients send again.
    let _ = sockopt::set_socket_recv_buffer_size(socket, SOCKET_BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER_BYTES);
    socket
        .set_read_timeout(Some(STOP_LOOK))
        .map_err(|source| ServerError::System { doing: "set up a socket", source })?;
    let mut request = vec![0; DATAGRAM_BYTES_MAX];
    let mut reply = Vec::new();
    while !stop.is_requested() {
        let (bytes, from) = match socket.recv_from(&mut request) {
            Ok(received) => received,
            Err(error) if is_nothing(error.kind()) => continue,
            Err(source) => {
                stop.request();
                return Err(ServerError::System { doing: "receive datagrams", source });
            }
        };
        let peer = Peer { address: from.ip(), link: Link::Datagram };
        reply.clear();
        let passage = departures.and_then(|departures| departures.arrive(&request[..bytes]));
        let answered = core.answer(&peer, &request[..bytes], &mut reply);
        if answered != Answered::Replied || reply.len() > REPLY_BYTES_MAX {
            continue;
        }
        if let (Some(departures), Some(passage)) = (departures, passage) {
            let socket = socket
                .try_clone()
                .map_err(|source| ServerError::System { doing: "share a socket", source })?;
            departures.hold(passage, std::mem::take(&mut reply), Whom::Datagram(socket, from));
        } else {
            // A reply that cannot be sent is like one that was lost: the client asks again.
            let _ = socket.send_to(&reply, from);
        }
    }
    Ok(())
}

/// No datagram yet, or word that an earlier reply found nobody.
fn is_nothing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}
