//! What becomes of a connection and its op: links that are out of step or gone, and replies that are
//! over before their body has ended. That end is waited for a moment, so that the connection can be
//! used again, and no longer (agentscope-java #2073: bodies stay open for 60 s).

use std::fmt;
use std::rc::Rc;

use plimsoll_engine::interface::{Io, Link};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::TrailingBytes;

use super::HttpSession;
use crate::parameters::Connections;
use crate::reader::{FirstTry, Gone, IsComplete, Plain, Reader};
use crate::site::{HttpOp, WorkerSite};
use crate::wire::head;

/// Servers send it on a connection that was idle for too long, and close it. RFC 9110 §15.5.9.
const REQUEST_TIMEOUT: u16 = 408;

impl HttpSession {
    /// A client that keeps the first [`crate::reader::CAPTURE_BYTES_MAX`] of each body, which may
    /// be over before HTTP says so.
    pub fn capturing(site: Rc<WorkerSite>, is_complete: IsComplete, op_timeout: Nanos) -> Self {
        Self::new(site, Plain::Kept(Vec::new(), is_complete), op_timeout)
    }

    /// The body of the last reply.
    pub fn take_body(&mut self) -> Vec<u8> {
        match &mut self.reader {
            Plain::Kept(body, _) => std::mem::take(body),
            Plain::Unread | Plain::Chunks => Vec::new(),
        }
    }
}

impl<R: Reader> HttpSession<R> {
    /// Bytes on a link without a request in flight: it is out of step, and given up.
    pub(super) fn refuse(
        &mut self,
        link: Link,
        answered: Option<HttpOp>,
        bytes: &[u8],
        io: &mut impl Io,
    ) {
        io.close(link);
        let is_request_timeout = || {
            let head = head::parse(bytes).ok().flatten();
            head.is_some_and(|head| head.status == REQUEST_TIMEOUT)
        };
        // An op that has failed already does not fail twice.
        let Some(op) = answered.filter(|_| !is_request_timeout()) else { return };
        let (method, url) = (op.method.as_str(), self.site.site.url(op.request));
        io.explain(format_args!("{method} {url}: {}", TrailingBytes(bytes.len())));
        io.report_trailing_bytes(op.kind);
    }

    /// The link is gone. A server may close a kept connection at any moment, so an op on one
    /// that got no byte of its reply is sent once more; whether its first try worked is unknown.
    pub(super) fn lose(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        let Some(open) = self.open.take() else { return };
        if self.in_flight.is_none() {
            self.note_lost_connection(Gone::Idle);
        }
        let is_unkept = open.reused && self.in_flight.as_ref().is_none_or(|flight| !flight.begun);
        self.counts.unkept += u64::from(is_unkept);
        let is_long_lived = self.site.site.connections == Connections::Held;
        let Some(flight) = self.in_flight.as_mut() else { return };
        if is_unkept {
            self.site.unkept();
        }
        let transport = class == ErrorClass::Transport;
        if let Some(status) = flight.refused(&self.site.site)
            && transport
        {
            let class = ErrorClass::Status(u32::from(status));
            self.fail(class, format_args!("status {status}, and then: {why}"), io);
        } else if flight.begun && transport {
            let got = flight.payload_bytes;
            self.fail(
                ErrorClass::Truncated,
                format_args!("{why} after {got} bytes of the body"),
                io,
            );
        } else if open.reused && transport && !flight.resent && !is_long_lived {
            flight.resent = true;
            if flight.first_try == FirstTry::NotRead {
                self.counts.reconnected += 1;
            }
            self.connect(io);
        } else {
            let phase = if flight.begun { "within the reply" } else { "before the reply began" };
            self.fail(class, format_args!("{why} {phase}"), io);
        }
    }

    /// The server has closed its side before the reply to an op that must not be done twice began.
    /// A reset shows that it has not read the request; until one may have come, the op waits.
    pub(super) fn waits_for_reset(&mut self, link: Link, now: Nanos, io: &mut impl Io) -> bool {
        let is_reused = self.open.is_some_and(|open| open.reused);
        let flight = self.in_flight.as_mut().filter(|flight| is_reused && flight.is_doubtful());
        let Some(flight) = flight else { return false };
        if io.is_refused(link) {
            flight.first_try = FirstTry::NotRead;
            return false;
        }
        flight.waits_for_reset(now)
    }

    /// The reply is over and its connection of no more use.
    pub(super) fn let_go(&mut self, io: &mut impl Io) {
        let Some(completed_at) = self.completed_at() else { return };
        self.reader.body_did_not_end();
        if let Some(open) = self.open.take() {
            io.close(open.link);
        }
        self.note_lost_connection(Gone::InBody);
        self.finish(completed_at, io);
    }

    /// A client with a long-lived connection has lost it.
    pub(super) fn note_lost_connection(&mut self, why: Gone) {
        if self.site.site.connections == Connections::Held {
            self.gone.get_or_insert(why);
        }
    }
}

#[cfg(test)]
mod tests;
