//! What a client sends without an op: acknowledgements of broken oplocks and leases, closes of
//! files without a handle, and requests that bring credits.

use std::collections::VecDeque;

use plimsoll_engine::interface::Io;

use super::super::wire::FileId;
use super::super::wire::create::{OplockLevel, lease_state};
use super::super::wire::header::{Command, Part};
use super::super::wire::open_file::{
    Break, CloseRequest, LEASE_BREAK_ACK_REQUIRED, LeaseBreakAcknowledgement,
};
use super::super::wire::session::EchoRequest;
use super::SmbSession;
use super::connection::Connection;
use super::encode::Message;
use super::failure::{Failure, Stop};
use super::handles::CacheGrant;

/// Most that wait or are under way; further breaks of a server are ignored.
const CHORES_MAX: usize = 4_096;
/// Consecutive requests for credits that brought too few. Then the op waits for its timeout.
const BEGS_MAX: u32 = 16;

/// Something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chore {
    Break(Break),
    Close(FileId),
    Beg,
}

/// What waits, and what is under way.
#[derive(Debug, Default)]
pub(super) struct Chores {
    waiting: VecDeque<Chore>,
    /// Message ids. What the answers say changes nothing.
    sent: Vec<u64>,
    begs: u32,
}

impl Chores {
    /// False when there are too many.
    pub(super) fn push(&mut self, chore: Chore) -> bool {
        let has_room = self.waiting.len() + self.sent.len() < CHORES_MAX;
        if has_room {
            self.waiting.push_back(chore);
        }
        has_room
    }

    pub(super) fn first(&self) -> Option<Chore> {
        self.waiting.front().copied()
    }

    /// The first one went out.
    fn went_out(&mut self, message_id: u64) {
        self.waiting.pop_front();
        self.sent.push(message_id);
    }

    /// The final or interim reply to one came.
    pub(super) fn answered(&mut self, message_id: u64, is_interim: bool) -> bool {
        let Some(at) = self.sent.iter().position(|sent| *sent == message_id) else { return false };
        if !is_interim {
            self.sent.swap_remove(at);
        }
        true
    }

    /// There are too few credits and no reply to come that may bring more: requests some, if that
    /// can help.
    pub(super) fn beg(&mut self) -> bool {
        let is_idle = self.waiting.is_empty() && self.sent.is_empty();
        let begs = is_idle && self.begs < BEGS_MAX;
        if begs {
            self.begs += 1;
            self.waiting.push_back(Chore::Beg);
        }
        begs
    }

    /// An op could be sent.
    pub(super) fn has_credits(&mut self) {
        self.begs = 0;
    }
}

impl SmbSession {
    /// The server revokes what the client may cache.
    pub(super) fn on_break(&mut self, part: &Part<'_>, io: &mut impl Io) -> Result<(), Stop> {
        let command = part.header.command;
        if command != Command::OplockBreak {
            let what = "the server sends it unsolicited";
            return self.lose(Failure::Nonsense { command, what }, None, io);
        }
        let answer = match Break::decode(part.body) {
            Ok(Break::Oplock(oplock)) => {
                // A file that is being closed needs no acknowledgement, nor does a read-only grant.
                match self.handles.oplock_broken(oplock.file_id, oplock.level) {
                    Some(CacheGrant::Oplock(OplockLevel::LevelTwo)) | None => None,
                    Some(_) => Some(Break::Oplock(oplock)),
                }
            }
            Ok(Break::Lease(lease)) => {
                let grant = match lease.new_state & lease_state::READ {
                    0 => CacheGrant::Nothing,
                    _ => CacheGrant::Lease(lease.key),
                };
                self.handles.lease_broken(lease.key, grant);
                let acknowledgement =
                    LeaseBreakAcknowledgement { flags: 0, key: lease.key, state: lease.new_state };
                (lease.flags & LEASE_BREAK_ACK_REQUIRED != 0)
                    .then_some(Break::LeaseAcknowledgement(acknowledgement))
            }
            Ok(Break::LeaseAcknowledgement(_)) => {
                let what = "an acknowledgement as a notification";
                return self.lose(Failure::Nonsense { command, what }, None, io);
            }
            Err(error) => return self.lose(Failure::Malformed { command, error }, None, io),
        };
        if answer.is_some_and(|answer| !self.chores.push(Chore::Break(answer))) {
            let what = "breaks without end";
            return self.lose(Failure::Nonsense { command, what }, None, io);
        }
        Ok(())
    }

    /// Sends the chore that waits longest; false when there is no credit for it.
    pub(super) fn send_chore(&mut self, io: &mut impl Io) -> bool {
        let (Connection::Up(up), Some(chore)) = (&mut self.connection, self.chores.first()) else {
            return false;
        };
        let Some(message_id) = up.credits.take(1) else { return false };
        let site = self.site.clone();
        let out = &mut site.buffers.borrow_mut().out;
        let mut message = Message::begin(out, up, message_id);
        match chore {
            Chore::Break(answer) => answer.encode(message.command(Command::OplockBreak, 1)),
            Chore::Close(file_id) => {
                CloseRequest { flags: 0, file_id }.encode(message.command(Command::Close, 1));
            }
            Chore::Beg => EchoRequest {}.encode(message.command(Command::Echo, 1)),
        }
        message.send(up, io);
        self.chores.went_out(message_id);
        true
    }
}
