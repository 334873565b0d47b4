//! The epoll driver: edge-triggered, one registration per connection for its whole life, timeouts
//! in nanoseconds.
//!
//! Estimate: a keep-alive exchange is one `send`, one `recv` and its share of an `epoll_pwait2`;
//! on loopback the kernel's part of that is 3.7–3.9 µs and everything in user space 0.3 µs. A
//! connection costs one `epoll_ctl` when it opens and none after.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv,
    send, socket_with, sockopt,
};

use super::{DISCARD_BYTES_MAX, Driver, Ready, Received, Slot, Wait};
use crate::clock;
use crate::seam::LinkError;

/// Connections one `epoll_wait` reports; more wait for the next call.
const EVENTS_PER_WAIT: usize = 256;

/// Sockets of one worker.
pub struct EpollDriver {
    epoll: OwnedFd,
    sockets: Vec<Option<OwnedFd>>,
    events: Vec<epoll::Event>,
    dropped: Vec<u8>,
    origin: Nanos,
}

impl EpollDriver {
    /// The kernel's part of a driver, which may fail.
    pub fn instance() -> io::Result<OwnedFd> {
        Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
    }

    /// A driver on an instance, whose time starts at `origin` on the monotonic clock.
    pub fn new(instance: OwnedFd, origin: Nanos) -> Self {
        Self {
            epoll: instance,
            sockets: Vec::new(),
            events: Vec::with_capacity(EVENTS_PER_WAIT),
            // Its pages are never touched: the kernel drops the bytes without a copy.
            dropped: vec![0; DISCARD_BYTES_MAX],
            origin,
        }
    }

    /// Timers of this thread fire when they are due, not up to 50 µs later.
    pub fn fire_timers_exactly() -> io::Result<()> {
        let one_ns = std::num::NonZeroU64::MIN;
        Ok(rustix::thread::set_current_timer_slack(Some(one_ns))?)
    }

    fn socket(&self, slot: Slot) -> Result<&OwnedFd, LinkError> {
        self.sockets
            .get(slot as usize)
            .and_then(Option::as_ref)
            .ok_or_else(|| link_error(Errno::NOTCONN))
    }

    fn open(
        &mut self,
        slot: Slot,
        address: SocketAddr,
        source: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        if let Some(source) = source {
            bind(&fd, &source)?;
        }
        let wanted = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        match connect(&fd, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(u64::from(slot)), wanted)?;
        let index = slot as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        self.sockets[index] = Some(fd);
        Ok(())
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

    fn connect(
        &mut self,
        slot: Slot,
        address: SocketAddr,
        source: Option<SocketAddr>,
    ) -> Result<(), LinkError> {
        self.open(slot, address, source).map_err(link_error)
    }

    fn connected(&mut self, slot: Slot) -> Result<(), LinkError> {
        match sockopt::socket_error(self.socket(slot)?) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) | Err(error) => Err(link_error(error)),
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        let socket = self.socket(slot)?;
        match retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL)) {
            Ok(sent) => Ok(sent),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(link_error(error)),
        }
    }

    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError> {
        let socket = self.socket(slot)?;
        let length = retry_on_intr(|| recv(socket, &mut *buffer, RecvFlags::empty()));
        received(length.map(|(_, length)| length))
    }

    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError> {
        let limit = limit.min(DISCARD_BYTES_MAX);
        let socket = self
            .sockets
            .get(slot as usize)
            .and_then(Option::as_ref)
            .ok_or_else(|| link_error(Errno::NOTCONN))?;
        // MSG_TRUNC on a TCP socket: the kernel drops the bytes without copying (tcp(7)).
        let buffer = &mut self.dropped[..limit];
        let dropped = retry_on_intr(|| recv(socket, &mut *buffer, RecvFlags::TRUNC));
        received(dropped.map(|(_, length)| length))
    }

    fn close(&mut self, slot: Slot) {
        if let Some(socket) = self.sockets.get_mut(slot as usize) {
            *socket = None;
        }
    }

    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>) {
        let timeout = match wait {
            Wait::Poll => Timespec { tv_sec: 0, tv_nsec: 0 },
            Wait::Until(until) => timespec(until.saturating_sub(self.now())),
            Wait::SleepUntil(until) => {
                let span = timespec(until.saturating_sub(self.now()));
                // A signal ends the sleep early; the loop then just looks once more.
                let _ = rustix::thread::nanosleep(&span);
                Timespec { tv_sec: 0, tv_nsec: 0 }
            }
        };
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        // EINTR is as good as nothing ready.
        if epoll::wait(&self.epoll, spare, Some(&timeout)).is_err() {
            return;
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

fn received(result: Result<usize, Errno>) -> Result<Received, LinkError> {
    match result {
        Ok(0) => Ok(Received::Eof),
        Ok(length) => Ok(Received::Bytes(length)),
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
