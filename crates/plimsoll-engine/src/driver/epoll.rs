//! The epoll driver: edge-triggered, one registration per connection for its whole life, timeouts
//! in nanoseconds.
//!
//! Estimate: a keep-alive exchange is one `send`, one `recvmsg` and its share of an `epoll_pwait2`;
//! on loopback the kernel's part of that is 3.7–3.9 µs and everything in user space 0.3 µs. A
//! connection costs one `epoll_ctl` when it opens and none after.
//!
//! With many ops in flight on one connection these are shared: a wakeup receives all replies of a
//! stream with one `recvmsg`, up to 16 datagrams with one `recvmmsg`, and sends the next requests
//! with one `send` or `sendmmsg`.
//!
//! When the kernel received what is read: its stamps (`SO_TIMESTAMPNS`), on the point's clock. A
//! stamp is that of the last bytes queued on a stream, whether they are read or not, and of its own
//! datagram. It is wall clock, so the offset to the monotonic clock is read again once a second.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, recvmmsg, recvmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, ipproto,
    send, socket_with, sockopt,
};

use super::socket::{self, ReservedPorts};
use super::{
    DISCARD_BYTES_MAX, DatagramHead, Datagrams, Driver, LocalPort, Ready, Received, Route, Slot,
    Wait,
};
use crate::clock;
use crate::interface::{LinkError, LinkKind};

/// Connections one `epoll_wait` reports; more wait for the next call.
const EVENTS_PER_WAIT: usize = 256;
/// Requested from the kernel for each datagram socket, so that a burst of replies is not lost on
/// our side: 64 of 8 KiB, each of which the kernel charges at about twice its size.
const DATAGRAM_BUFFER_BYTES: usize = 1 << 20;

/// Sockets of one worker.
pub struct EpollDriver {
    epoll: OwnedFd,
    sockets: Vec<Option<Socket>>,
    events: Vec<epoll::Event>,
    dropped: Vec<u8>,
    receiver: Receiver,
    stamps: Stamps,
    reserved: ReservedPorts,
    origin: Nanos,
}

struct Socket {
    fd: OwnedFd,
    kind: LinkKind,
}

impl EpollDriver {
    /// The kernel's part of a driver, which may fail.
    pub fn instance() -> io::Result<OwnedFd> {
        Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
    }

    /// A driver on an instance, whose time starts at `origin` on the monotonic clock.
    pub fn new(instance: OwnedFd, origin: Nanos) -> Self {
        Self {
            // The instances of a point have different numbers.
            reserved: ReservedPorts::new(instance.as_raw_fd().unsigned_abs()),
            epoll: instance,
            sockets: Vec::new(),
            events: Vec::with_capacity(EVENTS_PER_WAIT),
            // Its pages are never touched: the kernel drops the bytes without a copy.
            dropped: vec![0; DISCARD_BYTES_MAX],
            receiver: Receiver::new(),
            stamps: Stamps::new(origin),
            origin,
        }
    }

    /// Timers of this thread fire when they are due, not up to 50 µs later.
    pub fn fire_timers_exactly() -> io::Result<()> {
        let one_ns = std::num::NonZeroU64::MIN;
        Ok(rustix::thread::set_current_timer_slack(Some(one_ns))?)
    }

    /// What is ready within `timeout`, into `events`. EINTR counts as nothing ready.
    fn look(&mut self, timeout: &Timespec) {
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        let _ = epoll::wait(&self.epoll, spare, Some(timeout));
    }

    fn socket(&self, slot: Slot) -> Result<&Socket, LinkError> {
        socket_in(&self.sockets, slot)
    }

    fn open(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), Errno> {
        let fd = match &route.unix {
            Some(path) => connect_to_unix(path)?,
            None => self.connect_to_address(kind, route)?,
        };
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(u64::from(slot)), flags)?;
        let index = slot as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        self.sockets[index] = Some(Socket { fd, kind });
        Ok(())
    }

    fn connect_to_address(&mut self, kind: LinkKind, route: &Route) -> Result<OwnedFd, Errno> {
        let fd = make_socket(kind, route.to)?;
        Stamps::ask(&fd);
        self.bind_source(&fd, route)?;
        match connect(&fd, &route.to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
            Err(error) => Err(error),
        }
    }

    fn bind_source(&mut self, fd: &OwnedFd, route: &Route) -> Result<(), Errno> {
        if route.port == LocalPort::Reserved {
            let any = match route.to {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            };
            if self.reserved.bind(fd, route.from.unwrap_or(any))? {
                return Ok(());
            }
        }
        route.from.map_or(Ok(()), |address| bind(fd, &SocketAddr::new(address, 0)))
    }
}

impl Driver for EpollDriver {
    fn begin(&mut self) {
        let left = timespec(self.origin.saturating_sub(clock::monotonic()));
        // A signal would start this worker early, by less than the start delay.
        let _ = rustix::thread::nanosleep(&left);
    }

    fn now(&mut self) -> Nanos {
        clock::monotonic().saturating_sub(self.origin)
    }

    fn connect(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), LinkError> {
        self.open(slot, kind, route).map_err(link_error)
    }

    fn connected(&mut self, slot: Slot) -> Result<(), LinkError> {
        match sockopt::socket_error(&self.socket(slot)?.fd) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) | Err(error) => Err(link_error(error)),
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        let socket = self.socket(slot)?;
        match retry_on_intr(|| send(&socket.fd, bytes, SendFlags::NOSIGNAL)) {
            Ok(sent) => Ok(sent),
            Err(Errno::AGAIN) => Ok(0),
            // Lost on the way, as a datagram may be.
            Err(Errno::NOBUFS) if socket.kind == LinkKind::Datagram => Ok(bytes.len()),
            Err(error) => Err(link_error(error)),
        }
    }

    fn send_datagrams(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        lengths: &[usize],
    ) -> Result<usize, LinkError> {
        socket::send_all(&self.socket(slot)?.fd, bytes, lengths).map_err(link_error)
    }

    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError> {
        let socket = socket_in(&self.sockets, slot)?;
        let read = self.stamps.receive(&socket.fd, buffer);
        received(socket.kind, read)
    }

    fn recv_datagrams(&mut self, slot: Slot, into: &mut Datagrams) -> Result<(), LinkError> {
        let socket = socket_in(&self.sockets, slot)?;
        self.receiver.receive(&socket.fd, &self.stamps, into).map_err(link_error)
    }

    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError> {
        let limit = limit.min(DISCARD_BYTES_MAX);
        let socket = socket_in(&self.sockets, slot)?;
        // MSG_TRUNC on a TCP socket: the kernel drops the bytes without copying (tcp(7)).
        let buffer = &mut self.dropped[..limit];
        let dropped = self.stamps.receive_as(&socket.fd, buffer, MsgFlags::MSG_TRUNC);
        received(socket.kind, dropped)
    }

    /// A reset after the peer's FIN leaves `EPIPE` in the socket, any other one `ECONNRESET`
    /// (`tcp_reset` of Linux). One segment after its `close` suffices for it.
    fn is_refused(&mut self, slot: Slot) -> bool {
        let Ok(socket) = self.socket(slot) else { return false };
        matches!(sockopt::socket_error(&socket.fd), Ok(Err(Errno::PIPE)))
    }

    fn close(&mut self, slot: Slot) {
        if let Some(socket) = self.sockets.get_mut(slot as usize) {
            *socket = None;
        }
    }

    fn sync_clocks(&mut self) -> i64 {
        self.stamps.sync()
    }

    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>) {
        let timeout = match wait {
            Wait::Poll | Wait::Yield => Timespec { tv_sec: 0, tv_nsec: 0 },
            Wait::Until(until) => timespec(until.saturating_sub(self.now())),
            Wait::SleepUntil(until) => {
                let span = timespec(until.saturating_sub(self.now()));
                // A signal ends the sleep early; the loop then just looks once more.
                let _ = rustix::thread::nanosleep(&span);
                Timespec { tv_sec: 0, tv_nsec: 0 }
            }
        };
        self.look(&timeout);
        if wait == Wait::Yield && self.events.is_empty() {
            rustix::thread::sched_yield();
            self.look(&timeout);
        }
        for event in &self.events {
            let flags = event.flags;
            let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            ready.push(Ready {
                slot: event.data.u64() as Slot,
                readable: broken || flags.contains(epoll::EventFlags::IN),
                writable: broken || flags.contains(epoll::EventFlags::OUT),
                hung_up: broken || flags.contains(epoll::EventFlags::RDHUP),
            });
        }
    }
}

fn socket_in(sockets: &[Option<Socket>], slot: Slot) -> Result<&Socket, LinkError> {
    let socket = sockets.get(slot as usize).and_then(Option::as_ref);
    socket.ok_or_else(|| link_error(Errno::NOTCONN))
}

/// Connected at once, or not at all if the server's backlog is full.
fn connect_to_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    Ok(fd)
}

fn make_socket(kind: LinkKind, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match kind {
        LinkKind::Stream => {
            let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
            sockopt::set_tcp_nodelay(&fd, true)?;
            Ok(fd)
        }
        LinkKind::Datagram => {
            let fd = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
            // As much as the host grants; datagrams dropped for lack of room are retransmitted.
            if sockopt::set_socket_recv_buffer_size_force(&fd, DATAGRAM_BUFFER_BYTES).is_err() {
                let _ = sockopt::set_socket_recv_buffer_size(&fd, DATAGRAM_BUFFER_BYTES);
            }
            Ok(fd)
        }
    }
}

fn received(
    kind: LinkKind,
    result: Result<(usize, Option<Nanos>), Errno>,
) -> Result<Received, LinkError> {
    match result {
        Ok((0, _)) if kind == LinkKind::Stream => Ok(Received::Eof),
        Ok((length, arrived)) => Ok(Received::Bytes { length, arrived }),
        Err(Errno::AGAIN) => Ok(Received::Nothing),
        Err(error) => Err(link_error(error)),
    }
}

fn link_error(error: Errno) -> LinkError {
    let class = match error {
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => ErrorClass::PortsExhausted,
        Errno::MFILE | Errno::NFILE => ErrorClass::DescriptorsExhausted,
        _ => ErrorClass::Transport,
    };
    LinkError { class, errno: error.raw_os_error() }
}

fn timespec(span: Nanos) -> Timespec {
    Timespec {
        tv_sec: (span.0 / NANOS_PER_SECOND) as i64,
        tv_nsec: (span.0 % NANOS_PER_SECOND) as _,
    }
}

/// What the kernel writes about datagrams it hands over, kept from call to call.
struct Receiver(MultiHeaders<()>);

impl Receiver {
    fn new() -> Self {
        Self(MultiHeaders::preallocate(Datagrams::MOST, Some(control_of_datagrams())))
    }

    /// Receives what there is, up to [`Datagrams::MOST`].
    fn receive(
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
                    let stamp = stamp_of(&message);
                    *head = (message.bytes, stamp.map(|stamp| stamps.on_points_clock(stamp)));
                };
                Ok(received.map(note).count())
            }
            Err(nix::Error::EAGAIN) => Ok(0),
            Err(error) => Err(errno(error)),
        }
    }
}

/// Room for one stamp and its header, as the kernel writes them; the kernel leaves out what does
/// not fit.
const CONTROL_BYTES: usize = nix::sys::socket::cmsg_space::<TimeSpec>();
/// Readings of both clocks, of which the closest pair counts.
const CLOCK_READINGS: u32 = 5;

/// Control data that the kernel writes with the bytes; it has a header's alignment.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// From the kernel's stamps to instants of the point. With an origin of zero these are instants of
/// the monotonic clock.
pub struct Stamps {
    control: Control,
    /// Wall clock at the start of the point, as both clocks stand now.
    origin_wall_ns: i128,
    origin: Nanos,
}

impl Stamps {
    /// Of a point that begins then.
    pub fn new(origin: Nanos) -> Self {
        let origin_wall_ns = i128::from(origin.0) + wall_ahead_ns();
        Self { control: Control([0; CONTROL_BYTES]), origin_wall_ns, origin }
    }

    /// Reads the clocks again; by how much the wall clock moved against the monotonic one.
    pub fn sync(&mut self) -> i64 {
        let before = self.origin_wall_ns;
        self.origin_wall_ns = i128::from(self.origin.0) + wall_ahead_ns();
        i64::try_from(self.origin_wall_ns - before).unwrap_or(i64::MAX)
    }

    /// Makes the kernel stamp what this socket receives. Without stamps the engine has bounds.
    pub fn ask(socket: &impl AsFd) {
        let _ = setsockopt(socket, ReceiveTimestampns, &true);
    }

    /// `recv` with the stamp.
    pub fn receive(
        &mut self,
        socket: &impl AsFd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Nanos>), Errno> {
        self.receive_as(socket, buffer, MsgFlags::empty())
    }

    /// The same with flags.
    fn receive_as(
        &mut self,
        socket: &impl AsFd,
        buffer: &mut [u8],
        flags: MsgFlags,
    ) -> Result<(usize, Option<Nanos>), Errno> {
        let mut parts = [IoSliceMut::new(buffer)];
        // Sockets that do not wait are not interrupted.
        let control = Some(&mut self.control.0[..]);
        let message =
            recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, control, flags).map_err(errno)?;
        let stamp = stamp_of(&message);
        let length = message.bytes;
        Ok((length, stamp.map(|stamp| self.on_points_clock(stamp))))
    }

    /// An instant before the start of the point is its start.
    fn on_points_clock(&self, stamp: TimeSpec) -> Nanos {
        on_points_clock(self.origin_wall_ns, stamp)
    }
}

fn on_points_clock(origin_wall_ns: i128, stamp: TimeSpec) -> Nanos {
    let wall_ns =
        i128::from(stamp.tv_sec()) * i128::from(NANOS_PER_SECOND) + i128::from(stamp.tv_nsec());
    Nanos(u64::try_from((wall_ns - origin_wall_ns).max(0)).unwrap_or(u64::MAX))
}

/// The kernel's stamp of a message, where it gave one.
fn stamp_of<S>(message: &RecvMsg<'_, '_, S>) -> Option<TimeSpec> {
    message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    })
}

/// Room for the stamp of each datagram received together.
fn control_of_datagrams() -> Vec<u8> {
    Vec::with_capacity(CONTROL_BYTES)
}

fn errno(error: nix::Error) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

/// How far the wall clock is ahead of the monotonic one. An interruption between readings widens
/// the pair.
fn wall_ahead_ns() -> i128 {
    let reading = || {
        let before = clock::monotonic();
        let wall = clock::wall();
        let after = clock::monotonic();
        let middle = u64::midpoint(before.0, after.0);
        ((after - before).0, i128::from(wall.0) - i128::from(middle))
    };
    let readings = (0..CLOCK_READINGS).map(|_| reading());
    readings.min_by_key(|(width, _)| *width).map(|(_, ahead)| ahead).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_told_from_the_start_of_the_point() {
        let at = |tv_sec, tv_nsec| TimeSpec::new(tv_sec, tv_nsec);
        let origin_wall_ns = 1_700_000_000_500_000_000;
        let converted = |stamp| on_points_clock(origin_wall_ns, stamp);
        assert_eq!(converted(at(1_700_000_001, 250)), Nanos(500_000_250));
        assert_eq!(converted(at(1_700_000_000, 0)), Nanos::ZERO, "before the start");
    }

    #[test]
    fn both_clocks_agree_with_themselves() {
        let origin = clock::monotonic();
        let mut stamps = Stamps::new(origin);
        assert!(stamps.sync().abs() < 1_000_000, "no step of a millisecond within microseconds");
        let wall = clock::wall();
        let secs = (wall.0 / NANOS_PER_SECOND) as i64;
        let converted =
            stamps.on_points_clock(TimeSpec::new(secs, (wall.0 % NANOS_PER_SECOND) as i64));
        let now = clock::monotonic() - origin;
        assert!(now.0.abs_diff(converted.0) < 5_000_000, "{now:?} {converted:?}");
    }
}
