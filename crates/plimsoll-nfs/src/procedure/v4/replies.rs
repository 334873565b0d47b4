//! The results of a compound.

use crate::handles::HandleBytes;
use crate::procedure::results::{
    self, Attributes, Committed, Entries, Granted, Kind, Limits, LinkText, LookupResult, Made,
    Page, ReadData, ReplyError, Results, Space, Written,
};
use crate::wire::Path;
use crate::wire::v4::*;
use crate::wire::xdr::{Decode, XdrError};

/// Reads results one after the other.
struct Reader<'m> {
    results: Results<'m>,
    reply: CompoundReply<'m>,
}

impl<'m> Reader<'m> {
    /// At the operation behind SEQUENCE and PUTFH.
    #[inline]
    fn new(results: Results<'m>) -> Result<Self, ReplyError> {
        let mut reader = Self::at_sequence(results)?;
        reader.skip(Operation::PutFh)?;
        Ok(reader)
    }

    #[inline]
    fn at_sequence(results: Results<'m>) -> Result<Self, ReplyError> {
        let mut reader = Self { results, reply: CompoundReply::read(results.read())? };
        let _: SequenceOk = reader.take(Operation::Sequence)?;
        Ok(reader)
    }

    /// The result of the next operation, which has no value.
    #[inline]
    fn skip(&mut self, operation: Operation) -> Result<(), ReplyError> {
        match self.reply.next(operation)? {
            Status4::OK => Ok(()),
            failed => Err(status(failed)),
        }
    }

    /// The result of the next operation.
    #[inline]
    fn take<T: Decode<'m>>(&mut self, operation: Operation) -> Result<T, ReplyError> {
        self.skip(operation)?;
        Ok(T::decode(&mut self.reply.input)?)
    }

    #[inline]
    fn handle(&mut self) -> Result<HandleBytes<'m>, ReplyError> {
        self.take::<Handle4<'m>>(Operation::GetFh).map(HandleBytes::from)
    }

    #[inline]
    fn attributes(&mut self) -> Result<Attributes, ReplyError> {
        convert_attributes(&self.take(Operation::GetAttr)?)
    }

    #[inline]
    fn end<T>(self, value: T) -> Result<T, ReplyError> {
        self.results.end(self.reply.input);
        Ok(value)
    }
}

pub(in crate::procedure) fn status(status: Status4) -> ReplyError {
    ReplyError::Status { code: status.0, name: status.name() }
}

#[inline]
fn convert_attributes(attributes: &Attributes4<'_>) -> Result<Attributes, ReplyError> {
    let kind = match attributes.kind {
        Some(FileKind4::Regular) => Kind::File,
        Some(FileKind4::Directory) => Kind::Directory,
        Some(FileKind4::Symlink) => Kind::Link,
        Some(_) => Kind::Other,
        None => return Err(XdrError::Value { what: "attributes: no type", value: 0 }.into()),
    };
    let Attributes4 { mode, size, file_id, .. } = *attributes;
    let mode = mode.unwrap_or_default() & 0o7777;
    let (size, file_id) = (size.unwrap_or_default(), file_id.unwrap_or_default());
    Ok(Attributes { kind, mode, size, file_id })
}

/// An export: its handle, and what its server says of itself.
pub(crate) fn export<'m>(
    results: Results<'m>,
    depth: usize,
) -> Result<(HandleBytes<'m>, Attributes4<'m>), ReplyError> {
    let mut reader = Reader::at_sequence(results)?;
    reader.skip(Operation::PutRootFh)?;
    for _ in 0..depth {
        reader.skip(Operation::Lookup)?;
    }
    let (handle, attributes) = (reader.handle()?, reader.take(Operation::GetAttr)?);
    reader.end((handle, attributes))
}

/// Of SEQUENCE alone.
pub(in crate::procedure) fn nothing(results: Results<'_>) -> Result<(), ReplyError> {
    Reader::at_sequence(results)?.end(())
}

#[inline]
pub(in crate::procedure) fn attributes(results: Results<'_>) -> Result<Attributes, ReplyError> {
    let mut reader = Reader::new(results)?;
    let attributes = reader.attributes()?;
    reader.end(attributes)
}

#[inline]
pub(in crate::procedure) fn set_attributes(
    results: Results<'_>,
) -> Result<Option<Attributes>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let _: Bitmap = reader.take(Operation::SetAttr)?;
    let attributes = reader.attributes()?;
    reader.end(Some(attributes))
}

#[inline]
pub(in crate::procedure) fn looked_up<'m>(
    results: Results<'m>,
) -> Result<LookupResult<HandleBytes<'m>>, ReplyError> {
    let mut reader = Reader::new(results)?;
    reader.skip(Operation::Lookup)?;
    let (handle, attributes) = (reader.handle()?, Some(reader.attributes()?));
    reader.end(LookupResult { handle, attributes, dir_attributes: None })
}

#[inline]
pub(in crate::procedure) fn access(results: Results<'_>) -> Result<Granted, ReplyError> {
    let mut reader = Reader::new(results)?;
    let AccessOk4 { granted, .. } = reader.take(Operation::Access)?;
    let attributes = Some(reader.attributes()?);
    reader.end(Granted { attributes, access: granted })
}

#[inline]
pub(in crate::procedure) fn link_text<'m>(
    results: Results<'m>,
) -> Result<LinkText<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let text: Path<'m> = reader.take(Operation::ReadLink)?;
    reader.end(LinkText { attributes: None, text })
}

#[inline]
pub(in crate::procedure) fn read<'m>(results: Results<'m>) -> Result<ReadData<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let ReadOk4 { eof, data } = reader.take(Operation::Read)?;
    let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
    reader.end(ReadData { attributes: None, data, count, is_end: Some(eof) })
}

#[inline]
pub(in crate::procedure) fn written(results: Results<'_>) -> Result<Written, ReplyError> {
    let mut reader = Reader::new(results)?;
    let WriteOk4 { count, committed, verifier } = reader.take(Operation::Write)?;
    let attributes = Some(reader.attributes()?);
    let (count, verifier) = (Some(count), Some(verifier));
    reader.end(Written { attributes, count, committed, verifier })
}

#[inline]
pub(in crate::procedure) fn committed(results: Results<'_>) -> Result<Committed, ReplyError> {
    let mut reader = Reader::new(results)?;
    let verifier: Verifier = reader.take(Operation::Commit)?;
    reader.end(Committed { attributes: None, verifier })
}

/// What OPEN answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened<'m> {
    pub(crate) state: StateId,
    pub(crate) delegation: Delegation<'m>,
    pub(crate) made: Made<'m>,
}

/// Of the compounds that open a file.
pub(crate) fn opened<'m>(results: Results<'m>) -> Result<Opened<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let OpenOk { state, delegation, .. } = reader.take(Operation::Open)?;
    let handle = Some(reader.handle()?);
    let _: AccessOk4 = reader.take(Operation::Access)?;
    let attributes = Some(reader.attributes()?);
    let made = Made { handle, attributes, dir_attributes: None };
    // Set-up closes what it makes at once.
    if reader.reply.is_next(Operation::Close) {
        let _: StateId = reader.take(Operation::Close)?;
    }
    reader.end(Opened { state, delegation, made })
}

/// Of the compound that closes a file.
pub(crate) fn closed(results: Results<'_>) -> Result<(), ReplyError> {
    let mut reader = Reader::new(results)?;
    let _: Attributes4<'_> = reader.take(Operation::GetAttr)?;
    let _: StateId = reader.take(Operation::Close)?;
    reader.end(())
}

#[inline]
pub(in crate::procedure) fn made<'m>(results: Results<'m>) -> Result<Made<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    // Files are made by OPEN, everything else by CREATE.
    if reader.reply.is_next(Operation::Open) {
        return opened(results).map(|opened| opened.made);
    }
    let _: CreateOk4 = reader.take(Operation::Create)?;
    let (handle, attributes) = (Some(reader.handle()?), Some(reader.attributes()?));
    reader.end(Made { handle, attributes, dir_attributes: None })
}

pub(in crate::procedure) use made as made_link;

#[inline]
pub(in crate::procedure) fn removed(
    results: Results<'_>,
) -> Result<Option<Attributes>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let _: ChangeInfo = reader.take(Operation::Remove)?;
    reader.end(None)
}

pub(in crate::procedure) fn renamed(results: Results<'_>) -> Result<(), ReplyError> {
    let mut reader = Reader::new(results)?;
    reader.skip(Operation::SaveFh)?;
    reader.skip(Operation::PutFh)?;
    let _: RenameOk4 = reader.take(Operation::Rename)?;
    reader.end(())
}

#[inline]
pub(in crate::procedure) fn space(results: Results<'_>) -> Result<Space, ReplyError> {
    let mut reader = Reader::new(results)?;
    let space: Attributes4<'_> = reader.take(Operation::GetAttr)?;
    let bytes = |value: Option<u64>| value.unwrap_or_default();
    reader.end(Space {
        attributes: None,
        total_bytes: bytes(space.space_total),
        free_bytes: bytes(space.space_free),
        available_bytes: bytes(space.space_available),
        // None in all: the file system does not count them.
        available_files: space.files_total.filter(|total| *total > 0).and(space.files_available),
    })
}

/// A server that names no limits has none of its own.
pub(in crate::procedure) fn limits(results: Results<'_>) -> Result<Limits, ReplyError> {
    let mut reader = Reader::new(results)?;
    let limits: Attributes4<'_> = reader.take(Operation::GetAttr)?;
    let bytes =
        |limit: Option<u64>| limit.map_or(u32::MAX, |l| u32::try_from(l).unwrap_or(u32::MAX));
    reader.end(Limits {
        read_bytes_max: bytes(limits.read_bytes_max),
        write_bytes_max: bytes(limits.write_bytes_max),
    })
}

#[inline]
pub(in crate::procedure) fn page<'m>(results: Results<'m>) -> Result<Page<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let ReadDirOk4 { verifier, entries, eof } =
        reader.take::<ReadDirOk4<'m>>(Operation::ReadDir)?;
    let entries = Entries::V4(entries.iter());
    reader.end(Page { dir_attributes: None, verifier, entries, is_end: eof })
}

pub(in crate::procedure) use page as full_page;

impl<'m> From<Entry4<'m>> for results::Entry<'m> {
    fn from(Entry4 { cookie, name, attributes }: Entry4<'m>) -> Self {
        Self {
            name: name.0,
            cookie,
            attributes: convert_attributes(&attributes).ok(),
            handle: attributes.handle.map(HandleBytes::from),
        }
    }
}
