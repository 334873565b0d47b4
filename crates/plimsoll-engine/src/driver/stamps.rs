//! When the kernel received what is read: its stamps (`SO_TIMESTAMPNS`), on the point's clock.
//!
//! A stamp is that of the last bytes queued on a stream, whether they are read or not, and of its
//! own datagram. It is wall clock, so the offset to the monotonic clock is read again once a second.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use rustix::io::Errno;

use crate::clock;

/// Room for one stamp and its header, as the kernel writes them; the kernel leaves out what does
/// not fit.
const CONTROL_BYTES: usize = nix::sys::socket::cmsg_space::<TimeSpec>();
/// Readings of both clocks, of which the closest pair counts.
const CLOCK_READINGS: u32 = 5;

/// What the kernel writes beside the bytes; it has a header's alignment.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// From the kernel's stamps to instants of the point. With an origin of zero these are instants of the
/// monotonic clock.
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

    /// Asks the kernel to stamp what this socket receives. Without stamps the engine has bounds.
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
    pub(super) fn receive_as(
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
    pub(super) fn on_points_clock(&self, stamp: TimeSpec) -> Nanos {
        on_points_clock(self.origin_wall_ns, stamp)
    }
}

fn on_points_clock(origin_wall_ns: i128, stamp: TimeSpec) -> Nanos {
    let wall_ns =
        i128::from(stamp.tv_sec()) * i128::from(NANOS_PER_SECOND) + i128::from(stamp.tv_nsec());
    Nanos(u64::try_from((wall_ns - origin_wall_ns).max(0)).unwrap_or(u64::MAX))
}

/// The kernel's stamp of a message, where it gave one.
pub(super) fn stamp_of<S>(message: &RecvMsg<'_, '_, S>) -> Option<TimeSpec> {
    message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    })
}

/// Room for the stamp of each datagram received together.
pub(super) fn control_of_datagrams() -> Vec<u8> {
    Vec::with_capacity(CONTROL_BYTES)
}

pub(super) fn errno(error: nix::Error) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

/// How far the wall clock is ahead of the monotonic one. Whoever is interrupted between readings
/// sees a wider pair.
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
        let told = |stamp| on_points_clock(origin_wall_ns, stamp);
        assert_eq!(told(at(1_700_000_001, 250)), Nanos(500_000_250));
        assert_eq!(told(at(1_700_000_000, 0)), Nanos::ZERO, "before the start");
    }

    #[test]
    fn both_clocks_agree_with_themselves() {
        let origin = clock::monotonic();
        let mut stamps = Stamps::new(origin);
        assert!(stamps.sync().abs() < 1_000_000, "no step of a millisecond within microseconds");
        let wall = clock::wall();
        let secs = (wall.0 / NANOS_PER_SECOND) as i64;
        let told = stamps.on_points_clock(TimeSpec::new(secs, (wall.0 % NANOS_PER_SECOND) as i64));
        let now = clock::monotonic() - origin;
        assert!(now.0.abs_diff(told.0) < 5_000_000, "{now:?} {told:?}");
    }
}
