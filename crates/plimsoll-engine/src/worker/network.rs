//! Connections on which something happened: from the driver to the sessions.

use plimsoll_model::units::Nanos;

use super::Worker;
use super::links::Stage;
use crate::driver::{DISCARD_BYTES_MAX, Datagrams, Driver, Ready, Received};
use crate::seam::{Link, LinkError, LinkKind, Script, Session};

/// Reads of one connection in a row; then the others have their turn.
const READS_PER_TURN: u32 = 32;
/// Batches of datagrams of one connection in a row.
const BATCHES_PER_TURN: u32 = 16;

/// What is known of when the bytes of a read arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) link: Link,
    /// Of the last bytes that lay in the socket.
    pub(super) stamp: Option<Nanos>,
    /// The read took all that lay there.
    pub(super) drained: bool,
    /// Nothing lay there at this earlier instant.
    pub(super) empty_since: Nanos,
}

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    pub(super) fn serve(&mut self, event: Ready) {
        let Some(link) = self.links.link(event.slot) else { return };
        let Some(state) = self.links.get(link) else { return };
        let (client, kind) = (state.client, state.kind);
        match state.stage {
            Stage::Connecting if event.writable => match self.driver.connected(event.slot) {
                Ok(()) => {
                    self.links.opened(link, &mut self.driver);
                    let now = self.now();
                    self.call(client, now, |session, port| session.on_connected(link, now, port));
                }
                Err(error) => self.fail(link, client, error),
            },
            Stage::Open if event.writable => self.links.flush(link, &mut self.driver),
            _ => {}
        }
        if event.readable || event.hung_up {
            match kind {
                LinkKind::Stream => self.read(link, client, event),
                LinkKind::Datagram => self.read_datagrams(link, client, event),
            }
        }
        self.run_schedules();
    }

    /// Reads until there is nothing left, which re-arms the edge.
    fn read_datagrams(&mut self, link: Link, client: u32, event: Ready) {
        for _ in 0..BATCHES_PER_TURN {
            if !self.is_open(link) {
                return;
            }
            let mut datagrams = std::mem::take(&mut self.datagrams);
            let result = self.driver.recv_datagrams(event.slot, &mut datagrams);
            let now = self.now();
            if result.is_ok() {
                self.datagrams_came(link, client, &datagrams, now);
            }
            if !datagrams.is_full()
                && let Some(state) = self.links.get(link)
            {
                (state.empty_since, state.drained) = (now, true);
            }
            let drained = datagrams.is_empty() || !datagrams.is_full() && !event.hung_up;
            self.datagrams = datagrams;
            match result {
                Ok(()) if drained => return,
                Ok(()) => {}
                Err(error) => return self.fail(link, client, error),
            }
        }
        self.come_back_to(link, event);
    }

    fn datagrams_came(&mut self, link: Link, client: u32, datagrams: &Datagrams, now: Nanos) {
        for (bytes, stamp) in datagrams.received() {
            if !self.is_open(link) {
                // Closed by the session, or broken, over one of those before.
                return;
            }
            self.round.bytes_received += bytes.len() as u64;
            // Each has its own stamp, whatever lies behind it.
            self.note_read(link, stamp, false, now);
            self.reading = self.reading.map(|reading| Reading { drained: true, ..reading });
            self.call(client, now, |session, port| session.on_bytes(link, bytes, now, port));
            self.reading = None;
        }
    }

    /// A read has come to an end at `now`, having found the socket's end or not.
    fn note_read(&mut self, link: Link, stamp: Option<Nanos>, drained: bool, now: Nanos) {
        let looked = self.round.looked;
        self.reading = self.links.get(link).map(|state| {
            // A drained socket that a look at all of them did not name was empty then, too.
            let empty_since = match state.drained {
                true => state.empty_since.max(looked),
                false => state.empty_since,
            };
            state.drained = drained;
            if drained {
                state.empty_since = now;
            }
            Reading { link, stamp, drained, empty_since }
        });
    }

    fn is_open(&mut self, link: Link) -> bool {
        self.links.get(link).is_some_and(|state| state.stage == Stage::Open)
    }

    /// There may be more to read; the others have their turn first.
    fn come_back_to(&mut self, link: Link, event: Ready) {
        if !self.round.unread.iter().any(|(waiting, _)| *waiting == link) {
            self.round.unread.push((link, event));
        }
    }

    /// Reads until less comes than was asked for, which re-arms the edge.
    pub(super) fn read(&mut self, link: Link, client: u32, event: Ready) {
        for _ in 0..READS_PER_TURN {
            let Some(state) = self.links.get(link).filter(|s| s.stage == Stage::Open) else {
                return;
            };
            let discards = state.discard_left > 0;
            let (asked, result) = if discards {
                let left = usize::try_from(state.discard_left).unwrap_or(usize::MAX);
                let asked = left.min(DISCARD_BYTES_MAX);
                (asked, self.driver.discard(event.slot, asked))
            } else {
                let limit = self.clients[client as usize].session.read_limit(link);
                let asked = limit.clamp(1, self.buffer.len());
                (asked, self.driver.recv(event.slot, &mut self.buffer[..asked]))
            };
            let now = self.now();
            match result {
                Ok(Received::Bytes { length, arrived }) => {
                    self.round.bytes_received += length as u64;
                    self.note_read(link, arrived, length < asked, now);
                    if discards {
                        self.dropped(link, client, length as u64, now);
                    } else {
                        self.received(link, client, length, now);
                    }
                    self.reading = None;
                    // The body that nobody reads was the last of a reply: nothing can follow it.
                    let done = discards && self.clients[client as usize].in_flight == 0;
                    if (length < asked || done) && !event.hung_up {
                        return;
                    }
                    if S::BATCH_SENDS {
                        // A full read means that many replies are under way: what they lead to
                        // goes out before the next read.
                        self.run_schedules();
                    }
                }
                Ok(Received::Eof) => {
                    // The end may be that of a reply, and has no stamp.
                    self.note_read(link, None, true, now);
                    self.call(client, now, |session, port| session.on_eof(link, now, port));
                    self.reading = None;
                    return;
                }
                Ok(Received::Nothing) => {
                    if let Some(state) = self.links.get(link) {
                        (state.empty_since, state.drained) = (now, true);
                    }
                    return;
                }
                Err(error) => return self.fail(link, client, error),
            }
        }
        self.come_back_to(link, event);
    }

    pub(super) fn received(&mut self, link: Link, client: u32, length: usize, now: Nanos) {
        let buffer = std::mem::take(&mut self.buffer);
        self.call(client, now, |session, port| {
            session.on_bytes(link, &buffer[..length], now, port);
        });
        self.buffer = buffer;
    }

    pub(super) fn dropped(&mut self, link: Link, client: u32, length: u64, now: Nanos) {
        if let Some(state) = self.links.get(link) {
            state.discard_left -= length.min(state.discard_left);
        }
        self.call(client, now, |session, port| session.on_discarded(link, length, now, port));
    }

    pub(super) fn fail(&mut self, link: Link, client: u32, error: LinkError) {
        self.links.release(link, &mut self.driver);
        let now = self.now();
        self.call(client, now, |session, port| session.on_failed(link, error, now, port));
    }

    /// Links that broke inside a session's own call.
    pub(super) fn report_broken(&mut self) {
        let mut budget = self.links.broken.len();
        while budget > 0 {
            budget -= 1;
            let (link, error) = self.links.broken.swap_remove(0);
            if let Some(client) = self.links.get(link).map(|state| state.client) {
                self.fail(link, client, error);
                self.run_schedules();
            }
        }
    }
}
