//! From the bytes that arrive to the ops they end.

use std::mem;

use plimsoll_engine::seam::{Io, Link};
use plimsoll_model::nonconformity::Nonconformities;

use super::super::logon::{Established, LogonProgress};
use super::super::op::{HandleNo, SmbOp};
use super::super::wire::header::{Command, Part, Parts, UNSOLICITED};
use super::super::wire::{lenient, status};
use super::chores::Chore;
use super::connection::{Connected, Connection, Credits};
use super::failure::{self, Failure, Stop};
use super::handles::Held;
use super::in_flight::Stage;
use super::{SmbSession, deltree};

/// Credits kept at least for each op that may be in flight.
const CREDITS_PER_OP: u32 = 8;
/// Credits kept at least.
const CREDITS_MIN: u32 = 64;

/// The final reply to a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub command: Command,
    pub status: u32,
    pub body: Vec<u8>,
}

impl SmbSession {
    /// One whole message arrived.
    pub(super) fn on_message(&mut self, message: &[u8], io: &mut impl Io) -> Result<(), Stop> {
        match &mut self.connection {
            Connection::LoggingOn(link, logon) => {
                let link = *link;
                let site = self.site.clone();
                let out = &mut site.buffers.borrow_mut().out;
                out.clear();
                match logon.on_message(message, out) {
                    Ok(LogonProgress::More) => io.send(link, out),
                    Ok(LogonProgress::Done(established)) => self.logged_on(link, *established),
                    Err(error) => return self.lose(Failure::Logon(&error), None, io),
                }
                Ok(())
            }
            Connection::Up(_) => {
                let mut plain = mem::take(&mut self.site.buffers.borrow_mut().plain);
                let read = self.on_sealed(message, &mut plain, io);
                self.site.buffers.borrow_mut().plain = plain;
                read
            }
            Connection::Idle | Connection::Connecting(_) | Connection::Gone => Err(Stop::Lost),
        }
    }

    pub(crate) fn logged_on(&mut self, link: Link, established: Established) {
        self.counters.nonconformities.add(&established.nonconformities);
        let wanted = self.site.outstanding_max.saturating_mul(CREDITS_PER_OP).max(CREDITS_MIN);
        let (next, held) = (established.next_message_id, established.credits);
        let credits = Credits::new(next, held, wanted);
        self.connection = Connection::Up(Box::new(Connected { link, credits, established }));
    }

    /// A message of the session: a reply, several, or what the server says unasked.
    pub(super) fn on_sealed(
        &mut self,
        message: &[u8],
        plain: &mut Vec<u8>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let Connection::Up(up) = &mut self.connection else { return Err(Stop::Lost) };
        let opened = match up.established.seal.open(message, plain) {
            Ok(opened) => opened,
            Err(error) => {
                let failure = failure::unsealed(&error);
                return self.lose(failure, None, io);
            }
        };
        for part in Parts::new(opened) {
            match part {
                Ok(part) => self.on_part(&part, io)?,
                Err(error) => return self.lose(Failure::Message(error), None, io),
            }
        }
        Ok(())
    }

    pub(super) fn on_part(&mut self, part: &Part<'_>, io: &mut impl Io) -> Result<(), Stop> {
        let header = &part.header;
        let command = header.command;
        if !header.is_response() {
            let what = "it is a request";
            return self.lose(Failure::Nonsense { command, what }, None, io);
        }
        if header.message_id == UNSOLICITED {
            return self.on_break(part, io);
        }
        let Connection::Up(up) = &mut self.connection else { return Err(Stop::Lost) };
        let is_interim = header.status == status::PENDING && header.async_id.is_some();
        let Some((at, place)) = self.ops.find(header.message_id) else {
            // One of no op, or one that answers nothing: then there is nothing to do.
            if self.chores.answered(header.message_id, is_interim) {
                up.credits.grant(header.credits);
            }
            return Ok(());
        };
        up.credits.grant(header.credits);
        let Some(in_flight) = self.ops.get(at) else { return Ok(()) };
        if is_interim {
            in_flight.stage = Stage::Pending;
            return Ok(());
        }
        if failure::is_gone(header.status) {
            let failure = Failure::Gone { command, status: header.status };
            return self.lose(failure, Some(at), io);
        }
        let seen = &mut self.counters.nonconformities;
        if let Err(failure) = in_flight.take(place, part, &self.site, seen) {
            return self.lose(failure, Some(at), io);
        }
        if let Some(answers) = &mut self.answers {
            // Noted above.
            let body = lenient::body(command, part.body, &mut Nonconformities::default());
            let (status, body) = (header.status, body.into_owned());
            answers.push(Answer { command, status, body });
        }
        if in_flight.is_answered() { self.conclude(at, io) } else { Ok(()) }
    }

    /// All commands of an op are answered: it goes on, or ends.
    pub(super) fn conclude(&mut self, at: usize, io: &mut impl Io) -> Result<(), Stop> {
        let Some(in_flight) = self.ops.get(at) else { return Ok(()) };
        let status = in_flight.status();
        if let Some(tree) = &mut in_flight.tree {
            return match tree.ended(status) {
                deltree::Next::Go => {
                    in_flight.again();
                    self.ops.rest(at);
                    self.waiting.push_back(at);
                    Ok(())
                }
                deltree::Next::Done(status) => self.finish(at, status, io),
            };
        }
        if in_flight.has_more_parts() {
            in_flight.again();
            self.ops.rest(at);
            self.waiting.push_front(at);
            return Ok(());
        }
        match in_flight.call.op {
            SmbOp::Create { handle, .. } => {
                if let Some((file, held)) = in_flight.opened
                    && let Some(before) = self.handles.insert(handle, file, held)
                {
                    self.chores.push(Chore::Close(before));
                }
            }
            SmbOp::Read { handle, offset, .. } | SmbOp::Write { handle, offset, .. } => {
                let moved = in_flight.moved;
                self.remember(handle, offset, moved);
            }
            SmbOp::SetFile { handle, .. } => self.forget(handle),
            _ => {}
        }
        self.finish(at, status, io)
    }

    /// The range need not be asked for again, if the server lets the client keep it.
    pub(super) fn remember(&mut self, handle: HandleNo, offset: u64, bytes: u32) {
        let open = self.handles.get_mut(handle).filter(|open| open.held != Held::Nothing);
        if let Some(open) = open {
            open.ranges.add(offset, bytes);
        }
    }

    pub(super) fn forget(&mut self, handle: HandleNo) {
        if let Some(open) = self.handles.get_mut(handle) {
            open.ranges.clear();
        }
    }
}
