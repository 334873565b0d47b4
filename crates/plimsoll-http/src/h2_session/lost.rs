//! Ops whose stream or connection ends before their reply: sent again, or failed.

use std::fmt::Arguments;

use plimsoll_engine::seam::{Io, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::{H2Session, OpenLink};
use crate::h2::event::Tag;
use crate::h2::fault::Fault;
use crate::h2::frame::Code;
use crate::in_flight::{FirstTry, Stage};
use crate::reader::Reader;

impl<R: Reader> H2Session<R> {
    /// The op failed; nothing carries it any more.
    pub(super) fn fail(
        &mut self,
        tag: Tag,
        class: ErrorClass,
        why: Arguments<'_>,
        io: &mut impl Io,
    ) {
        let Some(op) = self.end(tag) else { return };
        let flight = op.flight;
        let url = self.site.site.url(flight.op.request);
        io.explain(format_args!("{} {url}: {why}", flight.op.method.as_str()));
        io.complete(flight.ticket, flight.outcome(OpStatus::Failed(class)));
    }

    /// Puts an op in front of those that wait; false where it was sent twice already.
    fn send_again(&mut self, tag: Tag, first_try: FirstTry) -> bool {
        let Some(op) = self.op_mut(tag) else { return true };
        let flight = &mut op.flight;
        if flight.resent || flight.begun {
            return false;
        }
        (flight.resent, flight.first_try) = (true, first_try);
        (op.stream, op.body_left) = (None, 0);
        self.waiting.push_front(Ticket(tag.0));
        true
    }

    /// The server says that it has not processed the request.
    fn refused(&mut self, tag: Tag, code: Code, io: &mut impl Io) {
        if self.send_again(tag, FirstTry::NotRead) {
            self.counts.refused += 1;
        } else {
            let why = format_args!("the server refused the stream again ({code})");
            self.fail(tag, ErrorClass::Transport, why, io);
        }
    }

    pub(super) fn on_goaway(&mut self, open: &mut OpenLink, io: &mut impl Io) {
        let Some(going) = open.connection.going_away() else { return };
        // The newest first, so that the oldest goes out first.
        while let Some(tag) = open.connection.take_unprocessed() {
            self.refused(tag, going.code, io);
        }
        // Otherwise a server that takes no stream at all would be connected to without end.
        let is_unused = open.connection.is_unused() && !std::mem::replace(&mut open.is_over, true);
        if is_unused {
            for ticket in std::mem::take(&mut self.waiting).into_iter().rev() {
                self.refused(Tag(ticket.0), going.code, io);
            }
        }
    }

    pub(super) fn on_reset(&mut self, open: &mut OpenLink, tag: Tag, code: Code, io: &mut impl Io) {
        if code == Code::REFUSED_STREAM {
            return self.refused(tag, code, io);
        }
        open.is_reused = true;
        self.break_off(
            tag,
            ErrorClass::Transport,
            format_args!("the server reset the stream ({code})"),
            io,
        );
    }

    /// An op fails because its stream or connection has ended.
    fn break_off(&mut self, tag: Tag, class: ErrorClass, why: Arguments<'_>, io: &mut impl Io) {
        let site = self.site.clone();
        let Some(op) = self.op_mut(tag) else { return };
        let (flight, is_transport) = (&op.flight, class == ErrorClass::Transport);
        let got = flight.payload_bytes;
        match flight.refused(&site.site).filter(|_| is_transport) {
            Some(status) => {
                let class = ErrorClass::Status(u32::from(status));
                self.fail(tag, class, format_args!("status {status}, and then: {why}"), io);
            }
            None if flight.begun && is_transport => {
                let why = format_args!("{why} after {got} bytes of the body");
                self.fail(tag, ErrorClass::Truncated, why, io);
            }
            None if flight.begun => {
                self.fail(tag, class, format_args!("{why} within the reply"), io)
            }
            None => {
                self.fail(tag, class, format_args!("{why} before the reply began"), io);
            }
        }
    }

    /// A link is gone. A server may close a kept connection at any moment, so an op on one that got
    /// no byte of its reply is sent once more; whether its first try worked is unknown.
    pub(super) fn lose(
        &mut self,
        mut open: OpenLink,
        class: ErrorClass,
        why: Arguments<'_>,
        io: &mut impl Io,
    ) {
        let may_repeat = open.is_reused && class == ErrorClass::Transport;
        if may_repeat && open.connection.going_away().is_none() {
            self.counts.unkept += 1;
        }
        let code = open.connection.going_away().map(|going| going.code);
        while let Some(tag) = open.connection.take_any() {
            if may_repeat && self.send_again(tag, FirstTry::Unknown) {
                continue;
            }
            match code.filter(|code| *code != Code::NO_ERROR) {
                None => self.break_off(tag, class, why, io),
                Some(code) => {
                    self.break_off(tag, class, format_args!("{why} ({code})"), io);
                }
            }
        }
        if !open.is_reused {
            self.fail_waiting(class, why, io);
        }
        self.send_waiting(io);
        self.forget_deadlines();
    }

    /// No connection carries any reply: what waits for one fails, instead of trying without end.
    fn fail_waiting(&mut self, class: ErrorClass, why: Arguments<'_>, io: &mut impl Io) {
        if self.links.iter().any(|open| open.connection.takes_more()) {
            return;
        }
        for ticket in std::mem::take(&mut self.waiting) {
            self.fail(Tag(ticket.0), class, format_args!("{why} before the reply began"), io);
        }
    }

    /// The server broke a rule of the connection: nothing on it can be trusted any more.
    pub(super) fn give_up(&mut self, mut open: OpenLink, fault: Fault, io: &mut impl Io) {
        self.fault = Some(fault);
        open.connection.say_goodbye(fault);
        if open.is_connected {
            io.send(open.link, &open.connection.out);
        }
        io.close(open.link);
        self.lose(open, ErrorClass::Malformed, format_args!("{fault}"), io);
    }

    /// The op's time is up, if the deadline is its own.
    pub(super) fn time_out(&mut self, deadline: Nanos, ticket: Ticket, io: &mut impl Io) {
        let tag = Tag(ticket.0);
        let after = self.op_timeout;
        let Some(op) = self.op_mut(tag).filter(|op| op.flight.deadline == deadline) else { return };
        let (sent, left) = (op.flight.sent_bytes, op.body_left);
        let is_in_body = matches!(op.flight.stage, Stage::Body { .. });
        let stage = match op.stream {
            None => self.stop_waiting(ticket, io),
            Some((link, stream)) => {
                if let Some(mut open) = self.take_link(link) {
                    open.connection.cancel(stream);
                    // Nothing has come since the op was issued: the next ones go elsewhere.
                    if open.heard_at.saturating_add(after) <= deadline {
                        open.connection.retire();
                    }
                    self.put_back(open, io);
                }
                match is_in_body {
                    _ if left > 0 => {
                        let all = sent + left;
                        let why = format_args!(
                            "no reply within {after}, and the server's window let out only {sent} \
                             of {all} bytes of the request's body"
                        );
                        return self.fail(tag, ErrorClass::Timeout, why, io);
                    }
                    false => "no reply",
                    true => "no complete body",
                }
            }
        };
        self.fail(tag, ErrorClass::Timeout, format_args!("{stage} within {after}"), io);
    }

    /// An op that waits does so no longer; what it waited for. A connection that is not ready by
    /// now is given up.
    fn stop_waiting(&mut self, ticket: Ticket, io: &mut impl Io) -> &'static str {
        self.waiting.retain(|waiting| *waiting != ticket);
        let at = self.links.iter().position(|open| open.connection.takes_more());
        let Some(at) = at else { return "no connection" };
        if self.links[at].connection.peer().is_some() {
            return "no free stream";
        }
        let open = self.links.swap_remove(at);
        io.close(open.link);
        if open.is_connected { "no settings of the server" } else { "no connection" }
    }
}
