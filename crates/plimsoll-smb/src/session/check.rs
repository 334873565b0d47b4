//! From the bytes of a reply to what it means for its op: is it what was asked, whole, and the
//! data that was written?

use plimsoll_model::nonconformity::Nonconformities;

use super::super::op::{Content, SmbOp};
use super::super::wire::create::{CreateResponse, OplockLevel, lease_state};
use super::super::wire::fscc::Entries;
use super::super::wire::header::{Command, Part};
use super::super::wire::info::{QueryDirectoryResponse, QueryInfoResponse, SetInfoResponse};
use super::super::wire::open_file::{
    CloseResponse, FlushResponse, LockResponse, ReadResponse, WriteResponse,
};
use super::super::wire::session::EchoResponse;
use super::super::wire::{WireError, lenient, status};
use super::super::workspace::SLICE_BYTES_MAX;
use super::deltree::{BadName, EntryKind};
use super::failure::Failure;
use super::handles::Held;
use super::in_flight::OpInFlight;
use super::{Caching, SmbSite};
use crate::op::FindLevel;

/// What ends the client: a reply that is none.
type Taken = Result<(), Failure<'static>>;

impl OpInFlight {
    /// Takes the final reply to the command at `place`.
    pub(super) fn take(
        &mut self,
        place: u8,
        part: &Part<'_>,
        site: &SmbSite,
        seen: &mut Nonconformities,
    ) -> Taken {
        let command = part.header.command;
        if self.commands().get(usize::from(place)) != Some(&command) {
            let what = "its message id belongs to another command";
            return Err(Failure::Nonsense { command, what });
        }
        self.answered |= 1 << place;
        let code = part.header.status;
        lenient::header(&part.header, seen);
        let read = match code {
            status::PENDING => {
                let what = "a final reply is pending";
                return Err(Failure::Nonsense { command, what });
            }
            code if status::is_failure(code) => {
                self.refused(place, code);
                lenient::failed(command, part.body, seen);
                Ok(())
            }
            _ => self.take_success(command, part.body, site, seen),
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
        seen: &mut Nonconformities,
    ) -> Result<(), WireError> {
        let body = &*lenient::body(command, body, seen);
        match command {
            Command::Create => self.opened(&CreateResponse::decode(body)?, site.caching),
            Command::Close => drop(CloseResponse::decode(body)?),
            Command::Flush => drop(FlushResponse::decode(body)?),
            Command::Lock => drop(LockResponse::decode(body)?),
            Command::SetInfo => drop(SetInfoResponse::decode(body)?),
            Command::Echo => drop(EchoResponse::decode(body)?),
            Command::Read => self.read(ReadResponse::decode(body)?.data, site),
            Command::Write => self.written(WriteResponse::decode(body)?.count),
            Command::QueryInfo => self.told(QueryInfoResponse::decode(body)?.output, seen),
            Command::QueryDirectory => {
                self.listed(QueryDirectoryResponse::decode(body)?.output, seen)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, reply: &CreateResponse<'_>, caching: Caching) {
        let held = match (caching, reply.oplock) {
            (Caching::None, _) | (_, OplockLevel::None) => Held::Nothing,
            (_, OplockLevel::Lease) => match reply.contexts.lease() {
                Some(lease) if lease.state & lease_state::READ != 0 => Held::Lease(lease.key),
                _ => Held::Nothing,
            },
            (_, level) => Held::Oplock(level),
        };
        self.opened = Some((reply.file_id, held));
    }

    /// A part of a read.
    fn read(&mut self, data: &[u8], site: &SmbSite) {
        let SmbOp::Read { offset, length, check, .. } = self.call.op else { return };
        let found = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if found > self.part {
            self.fail(Failure::Length { expected: length, found: self.moved + found });
        }
        self.part_moved = found.min(self.part);
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
            self.fail(Failure::Length { expected: self.part, found: count });
        }
    }

    /// What QUERY_INFO answers has what its level has; if not, that is this op's failure alone.
    fn told(&mut self, output: &[u8], seen: &mut Nonconformities) {
        let told = match self.call.op {
            SmbOp::QueryPath { level, .. } | SmbOp::QueryFile { level, .. } => {
                lenient::told_of_file(level, output, seen)
            }
            SmbOp::QueryFs { level } => lenient::told_of_volume(level, output, seen),
            _ => Ok(()),
        };
        if let Err(error) = told {
            self.fail(Failure::Malformed { command: Command::QueryInfo, error });
        }
    }

    fn listed(&mut self, output: &[u8], seen: &mut Nonconformities) -> Result<(), WireError> {
        let level = match self.call.op {
            SmbOp::Find { level, .. } => level,
            _ => FindLevel::Directory,
        };
        let mut entries = Entries::new(level, output);
        for entry in &mut entries {
            let entry = entry?;
            let Some(tree) = &mut self.tree else { continue };
            let kind = EntryKind::of(entry.attributes);
            if let Err(BadName) = tree.found(&entry.name.to_string(), kind) {
                let (command, what) = (Command::QueryDirectory, "a name that no file can have");
                self.failure = Some(Failure::Nonsense { command, what });
            }
        }
        lenient::listed(level, &entries, seen);
        Ok(())
    }

    /// The first failure is the one that is told.
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
    slices.into_iter().find_map(|(found, at)| {
        let wanted = site.content.bytes(content.key, at, found.len());
        if found == wanted {
            return None;
        }
        let mut pairs = wanted.iter().zip(found).zip(at..);
        let ((expected, found), at) = pairs.find(|((wanted, found), _)| wanted != found)?;
        Some(Failure::Content { at, expected: *expected, found: *found })
    })
}
