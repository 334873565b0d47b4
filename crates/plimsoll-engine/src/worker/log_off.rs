//! What follows the load: sessions give up what the server keeps for them. Nothing of it is
//! recorded.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_model::units::Nanos;

use super::STOP_CHECK;
use super::clients::{Clients, Port, Produced};
use super::connections::{Brought, Connections, Read};
use crate::driver::{Driver, Ready, Wait};
use crate::interface::{Link, LinkError, LinkKind, Session};

/// What all sessions of a worker may take together. A server that answers needs milliseconds.
const LOG_OFF_MAX: Nanos = Nanos::from_secs(1);

/// The sessions of one worker after the load.
pub(super) struct LogOff<S, D> {
    connections: Connections<D>,
    clients: Clients<S>,
    produced: Produced,
    buffer: Vec<u8>,
}

impl<S: Session, D: Driver> LogOff<S, D> {
    pub(super) fn new(connections: Connections<D>, clients: Clients<S>, buffer: Vec<u8>) -> Self {
        Self { connections, clients, produced: Produced::default(), buffer }
    }

    /// Returns when all have logged off, when they have taken too long, or on `stop`.
    pub(super) fn run(mut self, stop: &AtomicBool) {
        let until = self.connections.now() + LOG_OFF_MAX;
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for session in 0..self.clients.sessions() {
            self.call(session, |session, now, port| session.log_off(now, port));
        }
        loop {
            self.report_broken();
            self.connections.links().flush_queued();
            self.connections.links().end_round();
            let now = self.connections.now();
            if self.clients.have_logged_off() || now >= until || stop.load(Ordering::Relaxed) {
                return;
            }
            let wait = match self.connections.has_more() {
                true => Wait::Poll,
                false => Wait::Until(until.min(now + STOP_CHECK)),
            };
            self.connections.wait(wait, true);
            while let Some(event) = self.connections.next_ready() {
                let Some((link, session, LinkKind::Stream)) =
                    self.connections.links().find(event.slot)
                else {
                    continue;
                };
                if let Err(error) = self.serve(link, session, event) {
                    self.fail(link, session, error);
                }
            }
        }
    }

    fn serve(&mut self, link: Link, session: u32, event: Ready) -> Result<(), LinkError> {
        if event.writable && self.connections.links().writable(link)? {
            self.call(session, |session, now, port| session.on_connected(link, now, port));
        }
        if !event.readable && !event.hung_up {
            return Ok(());
        }
        let Some(read) = self.connections.read(link, &mut self.buffer, usize::MAX)? else {
            return Ok(());
        };
        let Read { brought, short, .. } = read;
        let buffer = std::mem::take(&mut self.buffer);
        self.call(session, |session, now, port| match brought {
            Brought::Bytes(length) => session.on_bytes(link, &buffer[..length], now, port),
            Brought::Dropped(length) => session.on_discarded(link, length, now, port),
            Brought::End => session.on_eof(link, now, port),
        });
        self.buffer = buffer;
        if !matches!(brought, Brought::End) && (!short || event.hung_up) {
            self.connections.come_back_to(link, event);
        }
        Ok(())
    }

    fn fail(&mut self, link: Link, session: u32, error: LinkError) {
        self.connections.release(link);
        self.call(session, |session, now, port| session.on_failed(link, error, now, port));
    }

    /// Links that broke inside a session's own call.
    fn report_broken(&mut self) {
        for _ in 0..self.connections.links().broken() {
            if let Some((link, session, error)) = self.connections.links().take_broken() {
                self.fail(link, session, error);
            }
        }
    }

    /// Calls a session that has not left the load; what it reports about its ops is dropped.
    fn call(&mut self, session: u32, f: impl FnOnce(&mut S, Nanos, &mut Port<'_, D>)) {
        if self.clients.is_gone(session) {
            return;
        }
        let now = self.connections.now();
        let links_and_stamp = self.connections.links_and_stamp();
        self.clients.call(session, links_and_stamp, &mut self.produced, |session, port| {
            f(session, now, port);
        });
        self.connections.end_read();
        self.produced = Produced::default();
    }
}
