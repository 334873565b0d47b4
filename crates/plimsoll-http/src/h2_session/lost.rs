//! Ops whose stream or connection ends before their reply: sent again, or failed. Replies that are
//! over before their stream has ended: its end is waited for a moment, and then the stream is given
//! up, and its connection is not.

use std::fmt::Arguments;
use std::rc::Rc;

use plimsoll_engine::interface::{Io, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::{H2Session, Op, OpenLink};
use crate::h2::event::{Fault, Tag};
use crate::h2::frame::Code;
use crate::h2::windows::{H2Settings, ReceiveWindows};
use crate::reader::{FirstTry, IsComplete, Plain, REST_WAIT, Reader, ReplyPhase};
use crate::site::WorkerSite;

impl<R: Reader> H2Session<R> {
    /// The op failed, unless its reply was complete; its stream is gone.
    pub(super) fn fail(
        &mut self,
        tag: Tag,
        class: ErrorClass,
        why: Arguments<'_>,
        io: &mut impl Io,
    ) {
        if self.end_completed(tag, io) {
            return;
        }
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

    /// The server reports that it has not processed the request. If its reply has begun, that is
    /// false, and `why` is the reason the reply broke off.
    fn refused(&mut self, tag: Tag, code: Code, why: Arguments<'_>, io: &mut impl Io) {
        if self.op_mut(tag).is_some_and(|op| op.flight.begun) {
            self.break_off(tag, ErrorClass::Transport, why, io);
        } else if self.send_again(tag, FirstTry::NotRead) {
            self.counts.refused += 1;
        } else {
            let why = format_args!("the server refused the stream again ({code})");
            self.fail(tag, ErrorClass::Transport, why, io);
        }
    }

    pub(super) fn on_goaway(&mut self, open: &mut OpenLink, io: &mut impl Io) {
        let Some(going) = open.connection.going_away() else { return };
        let code = going.code;
        let why = format_args!("the server went away from the stream ({code})");
        // The newest first, so that the oldest goes out first.
        while let Some(tag) = open.connection.take_unprocessed() {
            self.refused(tag, code, why, io);
        }
        // Otherwise the client would reconnect forever to a server that accepts no stream.
        let is_unused =
            open.connection.is_unused() && !std::mem::replace(&mut open.is_refused, true);
        if is_unused {
            for ticket in std::mem::take(&mut self.waiting).into_iter().rev() {
                self.refused(Tag(ticket.0), code, why, io);
            }
        }
    }

    pub(super) fn on_reset(&mut self, open: &mut OpenLink, tag: Tag, code: Code, io: &mut impl Io) {
        let why = format_args!("the server reset the stream ({code})");
        if code == Code::REFUSED_STREAM {
            return self.refused(tag, code, why, io);
        }
        open.is_reused = true;
        let site = Rc::clone(&self.site);
        let is_refused = |op: &mut Op<_>| op.flight.refused(&site.site).is_some();
        self.counts.stream_resets += u64::from(!self.op_mut(tag).is_some_and(is_refused));
        self.break_off(tag, ErrorClass::Transport, why, io);
    }

    /// An op fails because its stream or connection has ended.
    pub(super) fn break_off(
        &mut self,
        tag: Tag,
        class: ErrorClass,
        why: Arguments<'_>,
        io: &mut impl Io,
    ) {
        let site = self.site.clone();
        let Some(op) = self.op_mut(tag) else { return };
        let (flight, is_transport) = (&op.flight, class == ErrorClass::Transport);
        let is_in_band = class == ErrorClass::InBand;
        let got = flight.payload_bytes;
        match flight.refused(&site.site).filter(|_| is_transport || is_in_band) {
            Some(status) => {
                let class = ErrorClass::Status(u32::from(status));
                self.fail(tag, class, format_args!("status {status}, and then: {why}"), io);
            }
            None if is_in_band => self.fail(tag, class, why, io),
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

    /// The server broke a rule of the connection: nothing on it can be trusted from now on.
    pub(super) fn give_up(&mut self, mut open: OpenLink, fault: Fault, io: &mut impl Io) {
        self.fault = Some(fault);
        open.connection.send_goaway(fault);
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
        let (http, stream) = (op.flight.op, op.stream);
        if self.reader.gives_up_at(&http).is_some_and(|at| at <= deadline) {
            if let Some((link, stream)) = stream
                && let Some(mut open) = self.take_link(link)
            {
                open.connection.cancel(stream);
                self.put_back(open, io);
            }
            let why = format_args!("no whole reply, and the user gave up");
            return self.fail(tag, ErrorClass::Abandoned, why, io);
        }
        let Some(op) = self.op_mut(tag) else { return };
        let (sent, left) = (op.flight.sent_bytes, op.body_left);
        let is_in_body = matches!(op.flight.phase, ReplyPhase::Body { .. });
        let mut is_ready = true;
        let missing = match op.stream {
            None => self.stop_waiting(ticket, io),
            Some((link, stream)) => {
                if let Some(mut open) = self.take_link(link) {
                    is_ready = open.connection.peer().is_some();
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
                    false if !is_ready => "no reply and no settings of the server",
                    false => "no reply",
                    true => "no complete body",
                }
            }
        };
        self.fail(tag, ErrorClass::Timeout, format_args!("{missing} within {after}"), io);
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

impl H2Session {
    /// A client of one request at a time that keeps the first
    /// [`crate::reader::CAPTURE_BYTES_MAX`] of each body, which may be over before HTTP says so.
    pub fn capturing(
        site: Rc<WorkerSite>,
        windows: ReceiveWindows,
        is_complete: IsComplete,
        op_timeout: Nanos,
    ) -> Self {
        let settings = H2Settings { streams: 1, windows };
        Self::new(site, settings, Plain::Kept(Vec::new(), is_complete), op_timeout)
    }

    /// The body of the last reply.
    pub fn take_body(&mut self) -> Vec<u8> {
        match &mut self.reader {
            Plain::Kept(body, _) => std::mem::take(body),
            Plain::Unread | Plain::Chunks => Vec::new(),
        }
    }
}

impl<R: Reader> H2Session<R> {
    /// The header of a reply has come.
    pub(super) fn take_fields(&mut self, open: &OpenLink, tag: Tag) {
        let op = self.ops.get_mut(tag.0 as usize).and_then(Option::as_mut);
        let Some(op) = op.filter(|_| R::READS_FIELDS) else { return };
        for (name, value) in open.connection.fields() {
            self.reader.take_field(&mut op.flight.reply, &op.flight.op, name, value);
        }
    }

    /// Another user is on no connection yet: those that there are take no more streams.
    pub(super) fn leave_connections(&mut self, io: &mut impl Io) {
        for mut open in std::mem::take(&mut self.links) {
            open.connection.retire();
            self.put_back(open, io);
        }
    }

    /// What the read brought of bodies that go on was handed to the reader.
    pub(super) fn end_reads(&mut self, open: &mut OpenLink, now: Nanos, io: &mut impl Io) {
        while let Some(ticket) = self.touched.pop() {
            let op = self.ops.get_mut(ticket.0 as usize).and_then(Option::as_mut);
            let Some(op) = op.filter(|op| op.is_touched) else { continue };
            op.is_touched = false;
            op.flight.end_read(&mut self.reader, now, io);
            if op.flight.completed_at != Some(now) {
                continue;
            }
            let waits = self.site.rest_wait() > Nanos::ZERO && now < op.flight.deadline;
            match op.stream {
                Some((_, stream)) if !waits => {
                    open.connection.cancel(stream);
                    self.site.stayed_open();
                    self.end_completed(Tag(ticket.0), io);
                }
                _ => self.rests.push_back((now.saturating_add(REST_WAIT), ticket)),
            }
        }
    }

    /// The op has ended with its reply, at `now`.
    pub(super) fn conclude(&mut self, mut op: Op<R::Reply>, now: Nanos, io: &mut impl Io) {
        let ReplyPhase::Body { head, .. } = op.flight.phase else { return };
        let site = &self.site.site;
        let status = op.flight.conclude((&head, site), &mut self.reader, now, io);
        if status == OpStatus::Ok && op.flight.op.verify {
            self.counts.verified += 1;
        }
        io.complete(op.flight.ticket, op.flight.outcome(status));
    }

    /// The end of a body was waited for until now, if the op is still that one.
    pub(super) fn end_rest(&mut self, until: Nanos, ticket: Ticket, io: &mut impl Io) {
        let is_its = |completed_at: Nanos| completed_at.saturating_add(REST_WAIT) == until;
        let tag = Tag(ticket.0);
        let Some(op) = self.op_mut(tag).filter(|op| op.flight.completed_at.is_some_and(is_its))
        else {
            return;
        };
        if let Some((link, stream)) = op.stream
            && let Some(mut open) = self.take_link(link)
        {
            open.connection.cancel(stream);
            self.put_back(open, io);
        }
        self.site.stayed_open();
        self.end_completed(tag, io);
    }

    /// Ends an op whose reply is over, though its body has not ended; false where it is not over.
    /// Its stream is gone.
    pub(super) fn end_completed(&mut self, tag: Tag, io: &mut impl Io) -> bool {
        let Some(completed_at) = self.op_mut(tag).and_then(|op| op.flight.completed_at) else {
            return false;
        };
        let Some(op) = self.end(tag) else { return false };
        self.reader.body_did_not_end();
        self.conclude(op, completed_at, io);
        true
    }
}
