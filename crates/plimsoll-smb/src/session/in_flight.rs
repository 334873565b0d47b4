//! The ops of a client that have begun and not ended; and from the bytes of a reply to what it
//! means for its op: does it answer the request, is it whole, and does it have the data that was
//! written?

use plimsoll_engine::interface::Ticket;
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::super::op::{Content, FindLevel, SmbCall, SmbOp};
use super::super::wire::create::{CreateResponse, OplockLevel, lease_state};
use super::super::wire::fscc::Entries;
use super::super::wire::header::{Command, Part};
use super::super::wire::info::{QueryDirectoryResponse, QueryInfoResponse, SetInfoResponse};
use super::super::wire::open_file::{
    CloseResponse, FlushResponse, LockResponse, ReadResponse, WriteResponse,
};
use super::super::wire::session::EchoResponse;
use super::super::wire::{FileId, WireError, lenient, status};
use super::super::workspace::SLICE_BYTES_MAX;
use super::deltree::{BadName, Deltree, EntryKind, Task};
use super::failure::Failure;
use super::handles::CacheGrant;
use super::{Caching, SmbSite};

/// An op under way.
#[derive(Debug)]
pub(super) struct OpInFlight {
    pub(super) ticket: Ticket,
    pub(super) call: SmbCall,
    /// Without all its replies by then the client is lost.
    pub(super) deadline: Nanos,
    pub(super) phase: Phase,
    /// A bit for each command of what is under way that has been answered.
    pub(super) answered: u8,
    /// The first command of the compound that failed: its index and its status.
    pub(super) refusal: Option<(u8, u32)>,
    /// What is wrong with data that came.
    pub(super) failure: Option<Failure<'static>>,
    /// What a CREATE opened.
    pub(super) opened: Option<(FileId, CacheGrant)>,
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
pub(super) enum Phase {
    /// Not sent: no link, not logged on, or no credits.
    Waiting,
    /// Sent.
    Sent,
    /// Sent, and the server answered that it will take a while (`STATUS_PENDING`).
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
            phase: Phase::Waiting,
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
            // The op is only the logon of the client's connection.
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
        self.phase = Phase::Waiting;
        self.answered = 0;
        self.refusal = None;
        self.opened = None;
    }

    /// The status of the present commands.
    pub(super) fn status(&self) -> u32 {
        self.refusal.map_or(status::SUCCESS, |(_, status)| status)
    }

    /// A command failed; in a compound the first failure counts.
    pub(super) fn refused(&mut self, index: u8, status: u32) {
        match self.refusal {
            Some((first, _)) if first < index => {}
            _ => self.refusal = Some((index, status)),
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

    /// The slot to which an unanswered command belongs, and its index in the compound.
    pub(super) fn find(&self, message_id: u64) -> Option<(usize, u8)> {
        let index = |(first, commands): &(u64, u8)| {
            let index = message_id.wrapping_sub(*first);
            (index < u64::from(*commands)).then_some(index as u8)
        };
        let (at, index) =
            self.sent.iter().enumerate().find_map(|(at, sent)| Some((at, index(sent)?)))?;
        let in_flight = self.slots[at].as_ref()?;
        (in_flight.answered & (1 << index) == 0).then_some((at, index))
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

/// An invalid reply ends the client.
type Taken = Result<(), Failure<'static>>;

impl OpInFlight {
    /// Takes the final reply to the command at `index`.
    pub(super) fn take(
        &mut self,
        index: u8,
        part: &Part<'_>,
        site: &SmbSite,
        nonconformities: &mut Nonconformities,
    ) -> Taken {
        let command = part.header.command;
        if self.commands().get(usize::from(index)) != Some(&command) {
            let what = "its message id belongs to another command";
            return Err(Failure::Nonsense { command, what });
        }
        self.answered |= 1 << index;
        let code = part.header.status;
        lenient::header(&part.header, nonconformities);
        let read = match code {
            status::PENDING => {
                let what = "a final reply is pending";
                return Err(Failure::Nonsense { command, what });
            }
            code if status::is_failure(code) => {
                self.refused(index, code);
                lenient::failed(command, part.body, nonconformities);
                Ok(())
            }
            _ => self.take_success(command, part.body, site, nonconformities),
        };
        read.map_err(|error| Failure::Malformed { command, error })?;
        match self.failure {
            Some(nonsense @ Failure::Nonsense { .. }) => Err(nonsense),
            _ => Ok(()),
        }
    }

    fn take_success(
        &mut self,
        command: Command,
        body: &[u8],
        site: &SmbSite,
        nonconformities: &mut Nonconformities,
    ) -> Result<(), WireError> {
        let body = &*lenient::body(command, body, nonconformities);
        match command {
            Command::Create => self.opened(&CreateResponse::decode(body)?, site.caching),
            Command::Close => drop(CloseResponse::decode(body)?),
            Command::Flush => drop(FlushResponse::decode(body)?),
            Command::Lock => drop(LockResponse::decode(body)?),
            Command::SetInfo => drop(SetInfoResponse::decode(body)?),
            Command::Echo => drop(EchoResponse::decode(body)?),
            Command::Read => self.read(ReadResponse::decode(body)?.data, site),
            Command::Write => self.written(WriteResponse::decode(body)?.count),
            Command::QueryInfo => {
                self.queried(QueryInfoResponse::decode(body)?.output, nonconformities)
            }
            Command::QueryDirectory => {
                self.listed(QueryDirectoryResponse::decode(body)?.output, nonconformities)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, reply: &CreateResponse, caching: Caching) {
        let grant = match (caching, reply.oplock) {
            (Caching::None, _) | (_, OplockLevel::None) => CacheGrant::Nothing,
            (_, OplockLevel::Lease) => match reply.lease {
                Some(lease) if lease.state & lease_state::READ != 0 => CacheGrant::Lease(lease.key),
                _ => CacheGrant::Nothing,
            },
            (_, level) => CacheGrant::Oplock(level),
        };
        self.opened = Some((reply.file_id, grant));
    }

    /// A part of a read.
    fn read(&mut self, data: &[u8], site: &SmbSite) {
        let SmbOp::Read { offset, length, check, .. } = self.call.op else { return };
        let received = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if received > self.part {
            self.fail(Failure::Length { expected: length, actual: self.moved + received });
        }
        self.part_moved = received.min(self.part);
        // Nothing to compare is nothing verified.
        if let Some(content) = check.filter(|_| !data.is_empty()) {
            let at = offset + u64::from(self.moved);
            match first_difference(site, content, at, data) {
                Some(failure) => self.fail(failure),
                None => self.verified = true,
            }
        }
        self.moved += self.part_moved;
    }

    /// A part of a write.
    fn written(&mut self, count: u32) {
        self.part_moved = count.min(self.part);
        self.moved += self.part_moved;
        if count != self.part {
            self.fail(Failure::Length { expected: self.part, actual: count });
        }
    }

    /// The answer to QUERY_INFO must have the form of its level; if not, only this op fails.
    fn queried(&mut self, output: &[u8], nonconformities: &mut Nonconformities) {
        let result = match self.call.op {
            SmbOp::QueryPath { level, .. } | SmbOp::QueryFile { level, .. } => {
                lenient::check_file_info(level, output, nonconformities)
            }
            SmbOp::QueryFs { level } => lenient::check_volume_info(level, output, nonconformities),
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.fail(Failure::Malformed { command: Command::QueryInfo, error });
        }
    }

    fn listed(
        &mut self,
        output: &[u8],
        nonconformities: &mut Nonconformities,
    ) -> Result<(), WireError> {
        let level = match self.call.op {
            SmbOp::Find { level, .. } => level,
            _ => FindLevel::Directory,
        };
        let mut entries = Entries::new(level, output);
        for entry in &mut entries {
            let entry = entry?;
            let Some(tree) = &mut self.tree else { continue };
            let kind = EntryKind::from_attributes(entry.attributes);
            if let Err(BadName) = tree.add_entry(&entry.name.to_string(), kind) {
                let (command, what) = (Command::QueryDirectory, "a name that no file can have");
                self.failure = Some(Failure::Nonsense { command, what });
            }
        }
        lenient::listed(level, &entries, nonconformities);
        Ok(())
    }

    /// Only the first failure is reported.
    fn fail(&mut self, failure: Failure<'static>) {
        self.failure.get_or_insert(failure);
    }
}

/// Where the data goes wrong, if it does.
fn first_difference(
    site: &SmbSite,
    content: Content,
    offset: u64,
    data: &[u8],
) -> Option<Failure<'static>> {
    let slices = data.chunks(SLICE_BYTES_MAX).zip((offset..).step_by(SLICE_BYTES_MAX));
    slices.into_iter().find_map(|(received, at)| {
        let expected_bytes = site.content.bytes(content.key, at, received.len());
        if received == expected_bytes {
            return None;
        }
        let mut pairs = expected_bytes.iter().zip(received).zip(at..);
        let ((expected, actual), at) = pairs.find(|((expected, actual), _)| expected != actual)?;
        Some(Failure::Content { at, expected: *expected, actual: *actual })
    })
}
