//! The connections of one worker: what goes out over them, what happened on them, what came, and
//! when. The driver has the time, too.

use plimsoll_model::units::Nanos;

use super::links::{Links, Sending};
use crate::driver::{DISCARD_BYTES_MAX, Datagrams, Driver, Ready, Received, Wait};
use crate::interface::{Link, LinkError};
use crate::recorder::{Arrived, Flight};
use crate::signs::ReplyShape;

/// Connections in one wait from which more are looked for without sleeping.
const CROWD: usize = 256;

/// All connections of one worker, and the driver below them.
pub(super) struct Connections<D> {
    links: Links<D>,
    /// Where something happened, and how many of these have been looked at.
    ready: Vec<Ready>,
    looked_at: usize,
    /// Connections with more to read than one round allows.
    unread: Vec<(Link, Ready)>,
    /// The last wait found [`CROWD`] ready connections or more, so others may be waiting.
    crowded: bool,
    /// The read that is being delivered to a session.
    reading: Option<Reading>,
    /// The link of the current delivery has not taken all that was sent on it.
    unsent: bool,
    bytes_received: u64,
    /// The wait before the last reported every connection that was readable at this instant: what
    /// the last one reported came later.
    looked: Nanos,
    /// The same of the last wait.
    looking: Nanos,
}

/// Bounds on when the bytes of a read arrived.
#[derive(Clone, Copy, Debug)]
struct Reading {
    link: Link,
    /// Of the last bytes that lay in the socket.
    stamp: Option<Nanos>,
    /// The read took all that lay there.
    drained: bool,
    /// The socket was empty at this earlier instant.
    empty_since: Nanos,
}

/// What a read of a stream brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) brought: Brought,
    pub(super) at: Nanos,
    /// A short read: the socket is empty, and what comes will be reported.
    pub(super) short: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Brought {
    /// This many bytes in the buffer.
    Bytes(usize),
    /// This many bytes, discarded.
    Dropped(u64),
    /// The peer's end of the stream.
    End,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Connections on which something happened.
    pub(super) ready: usize,
}

/// Traffic of all connections since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) connects: u64,
}

impl<D: Driver> Connections<D> {
    pub(super) const fn new(driver: D, sending: Sending) -> Self {
        Self {
            links: Links::new(driver, sending),
            ready: Vec::new(),
            looked_at: 0,
            unread: Vec::new(),
            crowded: false,
            reading: None,
            unsent: false,
            bytes_received: 0,
            looked: Nanos::ZERO,
            looking: Nanos::ZERO,
        }
    }

    pub(super) const fn links(&mut self) -> &mut Links<D> {
        &mut self.links
    }

    /// What a session's call needs: where it sends, and when the kernel received what it is handed.
    pub(super) fn links_and_stamp(&mut self) -> (&mut Links<D>, Option<Nanos>) {
        let stamp = self.stamp();
        (&mut self.links, stamp)
    }

    /// When the kernel received the last bytes of the read that is being delivered.
    pub(super) fn stamp(&self) -> Option<Nanos> {
        self.reading.and_then(|reading| reading.stamp)
    }

    /// Waits for the start of the point.
    pub(super) fn begin(&mut self) {
        self.links.driver().begin();
    }

    /// The time now. A reading costs up to a third of a microsecond on a virtual machine, so what
    /// was read last is kept.
    pub(super) fn now(&mut self) -> Nanos {
        self.links.look_at_clock()
    }

    /// The last reading of the clock.
    pub(super) const fn last_now(&self) -> Nanos {
        self.links.last_now()
    }

    /// By how much the wall clock moved since the last call, in nanoseconds.
    pub(super) fn sync_clocks(&mut self) -> i64 {
        self.links.driver().sync_clocks()
    }

    pub(super) const fn traffic(&self) -> Traffic {
        Traffic {
            bytes_received: self.bytes_received,
            bytes_sent: self.links.bytes_sent(),
            connects: self.links.connects(),
        }
    }

    /// Work is left: broken links, connections to read, or more events than fitted.
    pub(super) fn has_more(&self) -> bool {
        self.links.broken() > 0 || !self.unread.is_empty() || self.crowded
    }

    /// Waits until something happens. `acted`: something was done since the clock was last read.
    #[inline]
    pub(super) fn wait(&mut self, wait: Wait, acted: bool) -> Waited {
        self.ready.clear();
        self.looked_at = 0;
        for (link, event) in self.unread.drain(..) {
            if self.links.get(link).is_some() {
                // The writable part of the event has been handled.
                self.ready.push(Ready { writable: false, ..event });
            }
        }
        // A poll's duration is measured when the next round begins.
        let is_timed = wait != Wait::Poll;
        let from = if is_timed && acted { self.now() } else { self.last_now() };
        self.links.driver().wait(wait, &mut self.ready);
        let to = if is_timed { self.now() } else { from };
        let ready = self.ready.len();
        self.crowded = ready >= CROWD;
        self.looked = self.looking;
        if !self.crowded {
            // A wait that slept looks once more when it ends, a poll when it begins.
            self.looking = to;
        }
        Waited { from, to, ready }
    }

    /// What the last wait reported, one after the other.
    #[inline]
    pub(super) fn next_ready(&mut self) -> Option<Ready> {
        let event = self.ready.get(self.looked_at).copied();
        self.looked_at += usize::from(event.is_some());
        event
    }

    pub(super) fn is_open(&mut self, link: Link) -> bool {
        self.links.get_open(link).is_some()
    }

    /// Reads a stream, at most `limit` bytes; `None` if the socket is empty or not open.
    /// [`Connections::arrived`] is about this read until [`Connections::end_read`].
    #[inline]
    pub(super) fn read(
        &mut self,
        link: Link,
        buffer: &mut [u8],
        limit: usize,
    ) -> Result<Option<Read>, LinkError> {
        let Some(state) = self.links.get_open(link) else { return Ok(None) };
        let discard_left = state.discard_left();
        self.receive(link, discard_left, buffer, limit)
    }

    /// The same of a stream that takes no more bytes: the kernel keeps what came before the peer
    /// reset it.
    pub(super) fn read_broken(
        &mut self,
        link: Link,
        buffer: &mut [u8],
        limit: usize,
    ) -> Result<Option<Read>, LinkError> {
        let Some(state) = self.links.get(link) else { return Ok(None) };
        let discard_left = state.discard_left();
        self.receive(link, discard_left, buffer, limit)
    }

    #[inline]
    fn receive(
        &mut self,
        link: Link,
        discard_left: u64,
        buffer: &mut [u8],
        limit: usize,
    ) -> Result<Option<Read>, LinkError> {
        let discards = discard_left > 0;
        let (requested, result) = if discards {
            let requested =
                usize::try_from(discard_left).unwrap_or(usize::MAX).min(DISCARD_BYTES_MAX);
            (requested, self.links.driver().discard(link.slot(), requested))
        } else {
            let requested = limit.clamp(1, buffer.len());
            (requested, self.links.driver().recv(link.slot(), &mut buffer[..requested]))
        };
        let at = self.now();
        match result? {
            Received::Bytes { length, arrived } => {
                let short = length < requested;
                self.bytes_received += length as u64;
                self.note_read(link, arrived, short, at);
                if !discards {
                    return Ok(Some(Read { brought: Brought::Bytes(length), at, short }));
                }
                if let Some(state) = self.links.get(link) {
                    state.discarded(length as u64);
                }
                Ok(Some(Read { brought: Brought::Dropped(length as u64), at, short }))
            }
            Received::Eof => {
                // The end may be that of a reply, and has no stamp.
                self.note_read(link, None, true, at);
                Ok(Some(Read { brought: Brought::End, at, short: true }))
            }
            Received::Nothing => {
                self.note_empty(link, at);
                Ok(None)
            }
        }
    }

    /// Reads datagrams; the instant, and what came of it.
    pub(super) fn read_datagrams(
        &mut self,
        link: Link,
        datagrams: &mut Datagrams,
    ) -> (Nanos, Result<(), LinkError>) {
        let result = self.links.driver().recv_datagrams(link.slot(), datagrams);
        (self.now(), result)
    }

    /// A datagram of those read at `now` is looked at; false when its connection is no longer open.
    pub(super) fn take_datagram(
        &mut self,
        link: Link,
        bytes: usize,
        stamp: Option<Nanos>,
        now: Nanos,
    ) -> bool {
        if !self.is_open(link) {
            // Closed by the session, or broken, over one of those before.
            return false;
        }
        self.bytes_received += bytes as u64;
        self.note_read(link, stamp, false, now);
        // Each has its own stamp, whatever lies behind it.
        self.reading = self.reading.map(|reading| Reading { drained: true, ..reading });
        true
    }

    /// The read, or the break of the link, was delivered to the session.
    pub(super) const fn end_read(&mut self) {
        self.reading = None;
        self.unsent = false;
    }

    /// Closes a link that broke. [`Connections::is_unsent`] is about it until
    /// [`Connections::end_read`].
    pub(super) fn release(&mut self, link: Link) {
        self.unsent = self.links.get(link).is_some_and(|state| state.is_unsent());
        self.links.release(link);
    }

    /// The socket had not taken all that was sent on the link of the current delivery.
    pub(super) const fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// The socket is empty at `now`.
    pub(super) fn note_empty(&mut self, link: Link, now: Nanos) {
        if let Some(state) = self.links.get(link) {
            state.note_empty(now);
        }
    }

    /// When the reply that ended this op reached the host. The stamp of a read is that of the last
    /// bytes in the socket: it belongs to the last reply in it, and only if no part of another
    /// followed, as `is_last` determines for a link, drained or not. Any other reply arrived after
    /// the socket was last empty.
    #[inline]
    pub(super) fn arrived(
        &self,
        flight: &Flight,
        now: Nanos,
        is_last: impl FnOnce(Link, bool) -> bool,
    ) -> Arrived {
        let Some(reading) = self.reading else { return Arrived::Never };
        match reading.stamp.filter(|_| is_last(reading.link, reading.drained)) {
            Some(stamp) => Arrived::Stamped(stamp.clamp(flight.sent, now)),
            None => Arrived::Bounded(reading.empty_since.clamp(flight.sent, now)),
        }
    }

    /// The shape of the reply that the read has completed.
    pub(super) fn reply_ended(&mut self) -> Option<ReplyShape> {
        let link = self.reading?.link;
        self.links.get(link)?.reply_ended()
    }

    /// There may be more to read; the others are served first.
    pub(super) fn come_back_to(&mut self, link: Link, event: Ready) {
        if !self.unread.iter().any(|(waiting, _)| *waiting == link) {
            self.unread.push((link, event));
        }
    }

    #[inline]
    fn note_read(&mut self, link: Link, stamp: Option<Nanos>, drained: bool, now: Nanos) {
        let looked = self.looked;
        self.reading = self.links.get(link).map(|state| {
            self.unsent = state.is_unsent();
            let empty_since = state.was_read(drained, looked, now);
            state.part_came(stamp);
            Reading { link, stamp, drained, empty_since }
        });
    }
}
