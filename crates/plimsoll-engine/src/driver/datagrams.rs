//! Several datagrams in one system call.

use std::array;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::slice;

use nix::sys::socket::{MsgFlags, MultiHeaders, RecvMsg, recvmmsg};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, send, sendmmsg};

use super::stamps::{self, Stamps};
use super::{DatagramHead, Datagrams};

/// Datagrams one system call sends. A turn of a client seldom has more; each costs 64 bytes of
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

/// What the kernel writes about datagrams it hands over, kept from call to call.
pub(super) struct Receiver(MultiHeaders<()>);

impl Receiver {
    pub(super) fn new() -> Self {
        Self(MultiHeaders::preallocate(Datagrams::MOST, Some(stamps::control_of_datagrams())))
    }

    /// Receives what there is, up to [`Datagrams::MOST`].
    pub(super) fn receive(
        &mut self,
        socket: &OwnedFd,
        stamps: &Stamps,
        into: &mut Datagrams,
    ) -> Result<(), Errno> {
        let mut heads = [DatagramHead::default(); Datagrams::MOST];
        let count = self.receive_into(socket, stamps, into.slots(), &mut heads)?;
        into.heads.extend_from_slice(&heads[..count]);
        Ok(())
    }

    fn receive_into<'a>(
        &mut self,
        socket: &OwnedFd,
        stamps: &Stamps,
        mut slots: impl Iterator<Item = &'a mut [u8]>,
        heads: &mut [DatagramHead],
    ) -> Result<usize, Errno> {
        let mut buffers: [_; Datagrams::MOST] = array::from_fn(|_| {
            [IoSliceMut::new(slots.next().expect("as many as there are buffers"))]
        });
        // A call that does not wait is not interrupted.
        let flags = MsgFlags::MSG_DONTWAIT;
        match recvmmsg(socket.as_raw_fd(), &mut self.0, &mut buffers, flags, None) {
            Ok(messages) => {
                let received = messages.zip(heads);
                let note = |(message, head): (RecvMsg<'_, '_, ()>, &mut DatagramHead)| {
                    let stamp = stamps::stamp_of(&message);
                    *head = (message.bytes, stamp.map(|stamp| stamps.on_points_clock(stamp)));
                };
                Ok(received.map(note).count())
            }
            Err(nix::Error::EAGAIN) => Ok(0),
            Err(error) => Err(stamps::errno(error)),
        }
    }
}
