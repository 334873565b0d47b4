//! The ops of a client that have begun and not ended.

use plimsoll_engine::seam::Ticket;
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::super::op::{SmbCall, SmbOp};
use super::super::wire::header::Command;
use super::super::wire::{FileId, status};
use super::deltree::{Deltree, EntryKind, Task};
use super::failure::Failure;
use super::handles::Held;

/// An op under way.
#[derive(Debug)]
pub(super) struct OpInFlight {
    pub(super) ticket: Ticket,
    pub(super) call: SmbCall,
    /// Without all its replies by then the client is lost.
    pub(super) deadline: Nanos,
    pub(super) stage: Stage,
    /// A bit for each command of what is under way that has been answered.
    pub(super) answered: u8,
    /// The first command of the compound that failed: its place and its status.
    pub(super) refusal: Option<(u8, u32)>,
    /// What is wrong with data that came.
    pub(super) failure: Option<Failure<'static>>,
    /// What a CREATE opened.
    pub(super) opened: Option<(FileId, Held)>,
    /// Bytes of file data moved.
    pub(super) moved: u32,
    /// Bytes that the present READ or WRITE is about.
    pub(super) part: u32,
    /// Bytes that it moved.
    pub(super) part_moved: u32,
    /// All of the data that came was compared.
    pub(super) verified: bool,
    /// A removal with all below.
    pub(super) tree: Option<Box<Deltree>>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not sent: no link, not logged on, or no credits.
    Waiting,
    /// Sent.
    Sent,
    /// Sent, and the server said that it will take a while (`STATUS_PENDING`).
    Pending,
}

impl OpInFlight {
    pub(super) fn new(ticket: Ticket, call: SmbCall, deadline: Nanos) -> Self {
        let tree = match &call.op {
            SmbOp::Deltree { path } => Some(Box::new(Deltree::new(path.as_str()))),
            _ => None,
        };
        Self {
            ticket,
            call,
            deadline,
            stage: Stage::Waiting,
            answered: 0,
            refusal: None,
            failure: None,
            opened: None,
            moved: 0,
            part: 0,
            part_moved: 0,
            verified: false,
            tree,
        }
    }

    /// The commands that are under way or come next, in their order.
    pub(super) fn commands(&self) -> &'static [Command] {
        use SmbOp as Op;
        match &self.call.op {
            Op::Create { .. } => &[Command::Create],
            Op::Close { .. } => &[Command::Close],
            Op::Flush { .. } => &[Command::Flush],
            Op::Read { .. } => &[Command::Read],
            Op::Write { .. } | Op::WriteText { .. } => &[Command::Write],
            Op::Lock { .. } | Op::Unlock { .. } => &[Command::Lock],
            Op::QueryFile { .. } => &[Command::QueryInfo],
            Op::SetFile { .. } => &[Command::SetInfo],
            Op::Echo => &[Command::Echo],
            Op::QueryPath { .. } | Op::QueryFs { .. } => ASK,
            Op::Find { .. } => LIST,
            Op::FindNext { .. } => &[Command::QueryDirectory],
            Op::Rename { .. } | Op::Rmdir { .. } => CHANGE,
            Op::Unlink { .. } | Op::Mkdir { .. } => TOUCH,
            Op::Deltree { .. } => match self.tree.as_ref().map(|tree| tree.task()) {
                Some(Task::List) => LIST,
                Some(Task::Remove(EntryKind::Directory)) => CHANGE,
                Some(Task::Remove(EntryKind::File)) | None => TOUCH,
            },
            // It has a connection of its own.
            Op::Logon => &[],
            // The logon of the client's connection is all there is to it.
            Op::OpenSession => &[],
        }
    }

    /// All commands of what is under way have been answered.
    pub(super) fn is_answered(&self) -> bool {
        self.answered.count_ones() as usize == self.commands().len()
    }

    /// A READ or WRITE was too large for one command, and there is more to move.
    pub(super) fn has_more_parts(&self) -> bool {
        let (SmbOp::Read { length, .. } | SmbOp::Write { length, .. }) = self.call.op else {
            return false;
        };
        let went_well = self.refusal.is_none() && self.failure.is_none();
        went_well && self.part_moved == self.part && self.part > 0 && self.moved < length
    }

    /// It goes on with further commands.
    pub(super) fn again(&mut self) {
        self.stage = Stage::Waiting;
        self.answered = 0;
        self.refusal = None;
        self.opened = None;
    }

    /// The status of the present commands.
    pub(super) fn status(&self) -> u32 {
        self.refusal.map_or(status::SUCCESS, |(_, status)| status)
    }

    /// A command failed; of a compound the first that did counts.
    pub(super) fn refused(&mut self, place: u8, status: u32) {
        match self.refusal {
            Some((first, _)) if first < place => {}
            _ => self.refusal = Some((place, status)),
        }
    }

    /// It ended so, with the data that was moved.
    pub(super) fn outcome(&self, status: OpStatus) -> Outcome {
        let moved = u64::from(self.moved);
        let (bytes_read, bytes_written) = match self.call.op {
            SmbOp::Read { .. } => (moved, 0),
            SmbOp::Write { .. } | SmbOp::WriteText { .. } => (0, moved),
            _ => (0, 0),
        };
        let kind = self.call.op.kind().into();
        Outcome { kind, status, bytes_read, bytes_written, ambiguous: false }
    }
}

const ASK: &[Command] = &[Command::Create, Command::QueryInfo, Command::Close];
const LIST: &[Command] = &[Command::Create, Command::QueryDirectory, Command::Close];
const CHANGE: &[Command] = &[Command::Create, Command::SetInfo, Command::Close];
const TOUCH: &[Command] = &[Command::Create, Command::Close];

/// The ops of a client in flight, each in a slot, found by the message ids of what is under way.
#[derive(Debug, Default)]
pub(super) struct OpsInFlight {
    slots: Vec<Option<OpInFlight>>,
    /// By slot: first message id under way and how many commands. None where nothing is.
    sent: Vec<(u64, u8)>,
    /// The one used last is used first: it is in the cache.
    free: Vec<usize>,
}

impl OpsInFlight {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Slots there are.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn start(&mut self, in_flight: OpInFlight) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.sent.push((0, 0));
            self.slots.len() - 1
        });
        self.slots[at] = Some(in_flight);
        self.sent[at] = (0, 0);
        at
    }

    pub(super) fn get(&mut self, at: usize) -> Option<&mut OpInFlight> {
        self.slots.get_mut(at)?.as_mut()
    }

    /// What the slot holds has been sent, with commands from message id `first` on.
    pub(super) fn sent(&mut self, at: usize, first: u64, commands: u8) {
        self.sent[at] = (first, commands);
    }

    /// The slot to which an unanswered command belongs, and its place in the compound.
    pub(super) fn find(&self, message_id: u64) -> Option<(usize, u8)> {
        let place = |(first, commands): &(u64, u8)| {
            let place = message_id.wrapping_sub(*first);
            (place < u64::from(*commands)).then_some(place as u8)
        };
        let (at, place) =
            self.sent.iter().enumerate().find_map(|(at, sent)| Some((at, place(sent)?)))?;
        let in_flight = self.slots[at].as_ref()?;
        (in_flight.answered & (1 << place) == 0).then_some((at, place))
    }

    /// Nothing of it is under way now.
    pub(super) fn rest(&mut self, at: usize) {
        self.sent[at] = (0, 0);
    }

    /// It is over.
    pub(super) fn end(&mut self, at: usize) -> Option<OpInFlight> {
        let in_flight = self.slots.get_mut(at)?.take()?;
        self.sent[at] = (0, 0);
        self.free.push(at);
        Some(in_flight)
    }
}
