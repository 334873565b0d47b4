//! What moves bytes and time. Narrow, so that an io_uring driver or a simulation can implement it.
//!
//! epoll is the only driver. A bare exchange over loopback costs as much with io_uring, nearly all
//! of it in the kernel.

pub mod epoll;
mod socket;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use plimsoll_model::units::Nanos;

use crate::interface::{LinkError, LinkKind};

/// Names a connection between worker and driver; the worker chooses it, small and dense.
pub type Slot = u32;

/// Bytes one [`Driver::discard`] drops at most.
pub const DISCARD_BYTES_MAX: usize = 1 << 20;

/// Between which addresses a client's connections are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub to: SocketAddr,
    /// Its Unix socket, instead of its address.
    pub unix: Option<PathBuf>,
    /// Our own address; `None` leaves it to the kernel.
    pub from: Option<IpAddr>,
    /// Our own port.
    pub port: LocalPort,
}

/// Which port of our own a connection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPort {
    /// Whichever the kernel picks.
    Any,
    /// One below 1024 that is free; any if that is not permitted or none is free.
    Reserved,
}

/// What [`Driver::recv`] and [`Driver::discard`] received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes, and perhaps more to come. Of a datagram: all of it, even if that is none.
    Bytes {
        /// How many.
        length: usize,
        /// When the kernel received the last bytes that were queued, these or later ones; `None`
        /// where it gives no stamps.
        arrived: Option<Nanos>,
    },
    /// The peer closed its side.
    Eof,
    /// Nothing now; a [`Ready`] follows when there is.
    Nothing,
}

/// Datagrams received together, each in a slot of its own that holds any.
#[derive(Default)]
pub struct Datagrams {
    bytes: Vec<u8>,
    /// Length and arrival of each.
    heads: Vec<DatagramHead>,
}

/// Length and arrival of a datagram.
type DatagramHead = (usize, Option<Nanos>);

impl Datagrams {
    /// Of one call.
    pub const MOST: usize = 16;
    /// More than the longest datagram, and no power of two: slots do not share cache sets.
    const SLOT_BYTES: usize = 17 * 4096;

    /// Those received, in order, and when the kernel received each.
    pub fn received(&self) -> impl Iterator<Item = (&[u8], Option<Nanos>)> {
        let slots = self.bytes.chunks_exact(Self::SLOT_BYTES);
        slots.zip(&self.heads).map(|(slot, (length, arrived))| (&slot[..*length], *arrived))
    }

    /// None was received.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// There may be more.
    pub fn is_full(&self) -> bool {
        self.heads.len() == Self::MOST
    }

    /// Forgets what was received; room for the next.
    fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.heads.clear();
        // At first use. Its pages are touched only as far as datagrams reach into their slots.
        self.bytes.resize(Self::MOST * Self::SLOT_BYTES, 0);
        self.bytes.chunks_exact_mut(Self::SLOT_BYTES)
    }
}

/// A connection on which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Which.
    pub slot: Slot,
    /// There may be bytes, or the end.
    pub readable: bool,
    /// The connection is open, or takes bytes again.
    pub writable: bool,
    /// The peer has closed its side, or the connection broke: read to the end to learn which.
    pub hung_up: bool,
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// Not at all if something has happened; else other threads on this core run first.
    Yield,
    /// Until something happens or this instant, whichever is first.
    Until(Nanos),
    /// Until this instant, whatever happens; then look. Coalesces replies and sends alike.
    SleepUntil(Nanos),
}

/// Sockets and time. Readiness is edge-triggered: after a [`Ready`] the worker reads a stream until
/// a read is short, and datagrams until fewer arrive than there was room for.
pub trait Driver {
    /// Waits for the start of the point, common to all workers.
    fn begin(&mut self) {}
    /// Now, from the start of the point.
    fn now(&mut self) -> Nanos;
    /// Begins to open a connection; a writable [`Ready`] follows when it is open or broken.
    fn connect(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), LinkError>;
    /// Why a connection did not open; `Ok` when it did.
    fn connected(&mut self, slot: Slot) -> Result<(), LinkError>;
    /// Sends what the socket takes; less than given means a writable [`Ready`] follows. A datagram
    /// is taken whole or not at all.
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError>;
    /// Sends datagrams that lie one behind the other in `bytes`; how many the socket took. Fewer
    /// than given means a writable [`Ready`] follows.
    fn send_datagrams(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        lengths: &[usize],
    ) -> Result<usize, LinkError> {
        let mut rest = bytes;
        for (taken, length) in lengths.iter().enumerate() {
            let (datagram, after) = rest.split_at(*length);
            if self.send(slot, datagram)? < datagram.len() {
                return Ok(taken);
            }
            rest = after;
        }
        Ok(lengths.len())
    }
    /// Receives into `buffer`, which holds any datagram.
    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError>;
    /// Receives the datagrams that there are, up to [`Datagrams::MOST`].
    fn recv_datagrams(&mut self, slot: Slot, into: &mut Datagrams) -> Result<(), LinkError> {
        let mut heads = [DatagramHead::default(); Datagrams::MOST];
        let mut count = 0;
        for buffer in into.slots() {
            match self.recv(slot, buffer) {
                Ok(Received::Bytes { length, arrived }) => heads[count] = (length, arrived),
                Ok(Received::Nothing | Received::Eof) => break,
                Err(error) if count == 0 => return Err(error),
                Err(_) => break,
            }
            count += 1;
        }
        into.heads.extend_from_slice(&heads[..count]);
        Ok(())
    }
    /// Receives and drops up to `limit` bytes of a stream without handing them over.
    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError>;
    /// The peer has closed its side of a stream, and bytes that were sent reached it after that: it
    /// answered them with a reset and did not read them.
    fn is_refused(&mut self, slot: Slot) -> bool {
        let _ = slot;
        false
    }
    /// Closes; nothing more is heard of the slot until it is connected again.
    fn close(&mut self, slot: Slot);
    /// Waits, then appends what is ready.
    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>);
    /// Reads the wall clock again, which converts stamps; returns how far it moved against the
    /// monotonic clock, in nanoseconds. Called once per interval.
    fn sync_clocks(&mut self) -> i64 {
        0
    }
}

impl<D: Driver + ?Sized> Driver for &mut D {
    fn begin(&mut self) {
        (**self).begin();
    }
    fn now(&mut self) -> Nanos {
        (**self).now()
    }
    fn connect(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), LinkError> {
        (**self).connect(slot, kind, route)
    }
    fn connected(&mut self, slot: Slot) -> Result<(), LinkError> {
        (**self).connected(slot)
    }
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        (**self).send(slot, bytes)
    }
    fn send_datagrams(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        lengths: &[usize],
    ) -> Result<usize, LinkError> {
        (**self).send_datagrams(slot, bytes, lengths)
    }
    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError> {
        (**self).recv(slot, buffer)
    }
    fn recv_datagrams(&mut self, slot: Slot, into: &mut Datagrams) -> Result<(), LinkError> {
        (**self).recv_datagrams(slot, into)
    }
    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError> {
        (**self).discard(slot, limit)
    }
    fn is_refused(&mut self, slot: Slot) -> bool {
        (**self).is_refused(slot)
    }
    fn close(&mut self, slot: Slot) {
        (**self).close(slot);
    }
    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>) {
        (**self).wait(wait, ready);
    }
    fn sync_clocks(&mut self) -> i64 {
        (**self).sync_clocks()
    }
}
