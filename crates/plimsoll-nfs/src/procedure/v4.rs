//! Calls and results of NFSv4.1: each call is one compound, in the form in which the Linux client
//! sends it. RFC 8881 §18
//!
//! SEQUENCE comes first and is left blank: the session that sends the call fills it in.

use super::results::{
    self, Attributes, Committed, Entries, Granted, Kind, Limits, LinkText, LookupResult, Made,
    Page, ReadData, ReplyError, Results, Space, Written,
};
use super::{Call, Cookie, DIRECTORY_MODE, FILE_MODE};
use crate::handles::{HandleBytes, OwnedHandle};
use crate::wire::rpc::{CallWriter, Service, encode_call};
use crate::wire::v3::access;
use crate::wire::v4::*;
use crate::wire::xdr::{Decode, Encode, XdrError};
use crate::wire::{Name, Path};

pub(super) const SERVICE: Service = Service { program: PROGRAM, version: VERSION };

/// What a reply about an entry of READDIRPLUS has beside the attributes of files.
const OF_ENTRIES: Bitmap = Bitmap::from_numbers(&[attribute::RDATTR_ERROR, attribute::FILEHANDLE]);
/// What READDIR asks of each entry.
const OF_NAMES: Bitmap = Bitmap::from_numbers(&[attribute::RDATTR_ERROR, attribute::FILE_ID]);
const OF_LIMITS: Bitmap = Bitmap::from_numbers(&[attribute::READ_MAX, attribute::WRITE_MAX]);
/// What may be done with a file, as OPEN's compound asks.
const RIGHTS: u32 = access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;

/// What calls of NFSv4.1 depend on beside their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context4 {
    /// Attributes of files that the server has, of those that are asked for.
    pub attributes: Bitmap,
    /// The open file of a READ or WRITE.
    pub state: StateId,
}

impl Context4 {
    /// Of set-up, which opens no files.
    pub const fn new(attributes: Bitmap) -> Self {
        Self { attributes, state: StateId::ANONYMOUS }
    }
}

/// Who opens a file: the server's name of the client, and one of the client's owners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener<'a> {
    pub(crate) client_id: u64,
    pub(crate) owner: &'a [u8],
    /// Of [`share`]: to read or to write, and whether a delegation is wanted.
    pub(crate) access: u32,
}

/// A call about state, which versions 2 and 3 do not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StateCall<'a> {
    /// Opens a file by its handle.
    Open(&'a OwnedHandle),
    /// Opens a file by its name.
    OpenByName(&'a OwnedHandle, &'a [u8]),
    /// Opens a file by its name, and makes it if there is none.
    OpenNew(&'a OwnedHandle, &'a [u8]),
    /// Closes a file.
    Close(&'a OwnedHandle),
    /// Gives a delegation back.
    ReturnDelegation(&'a OwnedHandle),
}

/// The blank SEQUENCE of a call whose reply is worth keeping, or not.
const fn blank_sequence(cache: bool) -> SequenceArgs {
    SequenceArgs { session: [0; 16], sequence: 0, slot: 0, highest_slot: 0, cache }
}

fn begin<'o>(to: CallWriter<'o>, cache: bool) -> CompoundWriter<'o> {
    let CallWriter { xid, credential, out } = to;
    encode_call(out, xid, (PROGRAM, VERSION), Procedure::Compound.number(), credential);
    CompoundWriter::request(out).op(Operation::Sequence, &blank_sequence(cache))
}

/// The blank SEQUENCE of an encoded call is so many bytes behind its credential: the head of the
/// compound and the operation's number.
pub(crate) const SEQUENCE_AFTER: usize = 16;

/// A call without a session: one operation.
pub(crate) fn encode_alone(operation: Operation, arguments: &impl Encode, to: CallWriter<'_>) {
    let CallWriter { xid, credential, out } = to;
    encode_call(out, xid, (PROGRAM, VERSION), Procedure::Compound.number(), credential);
    CompoundWriter::request(out).op(operation, arguments).finish();
}

/// A call with one operation behind SEQUENCE that concerns no file.
pub(crate) fn encode_behind_sequence(
    operation: Operation,
    arguments: &impl Encode,
    to: CallWriter<'_>,
) {
    begin(to, false).op(operation, arguments).finish();
}

/// The way from the root of the server to an export.
pub(crate) fn encode_path(names: &[&[u8]], to: CallWriter<'_>) {
    let mut compound = begin(to, false).op(Operation::PutRootFh, &());
    for name in names {
        compound = compound.op(Operation::Lookup, &Name(name));
    }
    let compound = compound.op(Operation::GetFh, &());
    compound.op(Operation::GetAttr, &attribute::OF_EXPORT).finish();
}

pub(super) fn encode(call: Call<'_>, context: Context4, to: CallWriter<'_>) {
    use Operation as O;
    let Context4 { attributes, state } = context;
    let on = |to, cache, of: &OwnedHandle| begin(to, cache).op(O::PutFh, &handle(of));
    match call {
        Call::Null => begin(to, false),
        Call::GetAttr(of) => on(to, false, of).op(O::GetAttr, &attributes),
        Call::SetMode(of, mode) => {
            let set = Attributes4 { mode: Some(mode), ..Attributes4::default() };
            set_attributes_of(on(to, true, of), set).op(O::GetAttr, &attributes)
        }
        Call::SetSize(of, size) => {
            let set = Attributes4 { size: Some(size), ..Attributes4::default() };
            set_attributes_of(on(to, true, of), set).op(O::GetAttr, &attributes)
        }
        Call::LookUp(dir, name) => on(to, false, dir)
            .op(O::Lookup, &Name(name))
            .op(O::GetFh, &())
            .op(O::GetAttr, &attributes),
        Call::Access(of, access) => {
            on(to, false, of).op(O::Access, &access).op(O::GetAttr, &attributes)
        }
        Call::ReadLink(link) => on(to, false, link).op(O::ReadLink, &()),
        Call::Read(file, offset, count) => {
            on(to, false, file).op(O::Read, &ReadArgs4 { state, offset, count })
        }
        Call::Write(file, offset, data, stability) => {
            let arguments = WriteArgs4 { state, offset, stable: stability.into(), data };
            on(to, false, file).op(O::Write, &arguments).op(O::GetAttr, &attributes)
        }
        Call::Create(dir, name) => {
            let opener = Opener { client_id: 0, owner: b"set-up", access: SET_UP_ACCESS };
            open_new(on(to, true, dir), opener, name, attributes)
                .op(O::Close, &CloseArgs { seqid: 0, state: StateId::CURRENT })
        }
        Call::MakeDir(dir, name) => {
            make(on(to, true, dir), CreateKind::Directory, name, Some(DIRECTORY_MODE))
                .op(O::GetAttr, &attributes)
        }
        Call::MakeLink(dir, name, text) => {
            make(on(to, true, dir), CreateKind::Link(Path(text)), name, None)
                .op(O::GetAttr, &attributes)
        }
        Call::Remove(dir, name) | Call::RemoveDir(dir, name) => {
            on(to, true, dir).op(O::Remove, &Name(name))
        }
        Call::Rename(dir, from, to_name) => on(to, true, dir)
            .op(O::SaveFh, &())
            .op(O::PutFh, &handle(dir))
            .op(O::Rename, &RenameArgs4 { from: Name(from), to: Name(to_name) }),
        Call::ReadDir(dir, from, bytes) => list(on(to, false, dir), from, bytes, OF_NAMES),
        Call::ReadDirPlus(dir, from, bytes) => {
            list(on(to, false, dir), from, bytes, attributes.or(OF_ENTRIES))
        }
        Call::FsStat(root) => on(to, false, root).op(O::GetAttr, &attribute::OF_SPACE),
        Call::FsInfo(root) => on(to, false, root).op(O::GetAttr, &OF_LIMITS),
        Call::Commit(file) => {
            on(to, true, file).op(O::Commit, &CommitArgs4 { offset: 0, count: 0 })
        }
    }
    .finish();
}

/// Set-up reads nothing through what it opens, and wants nothing delegated.
const SET_UP_ACCESS: u32 = share::BOTH | share::WANT_NONE;

pub(crate) fn encode_state(
    call: StateCall<'_>,
    opener: Opener<'_>,
    context: Context4,
    to: CallWriter<'_>,
) {
    use Operation as O;
    let Context4 { attributes, state } = context;
    let on = |to, of: &OwnedHandle| begin(to, true).op(O::PutFh, &handle(of));
    match call {
        StateCall::Open(file) => {
            let arguments = open(opener, OpenHow::NoCreate, OpenClaim::Handle);
            opened_at(on(to, file).op(O::Open, &arguments), attributes)
        }
        StateCall::OpenByName(dir, name) => {
            let arguments = open(opener, OpenHow::NoCreate, OpenClaim::Null(Name(name)));
            opened_at(on(to, dir).op(O::Open, &arguments), attributes)
        }
        StateCall::OpenNew(dir, name) => open_new(on(to, dir), opener, name, attributes),
        StateCall::Close(file) => {
            on(to, file).op(O::GetAttr, &attributes).op(O::Close, &CloseArgs { seqid: 0, state })
        }
        StateCall::ReturnDelegation(file) => on(to, file).op(O::DelegReturn, &state),
    }
    .finish();
}

#[inline]
fn handle(of: &OwnedHandle) -> Handle4<'_> {
    Opaque(of.as_bytes())
}

fn set_attributes_of<'o>(
    on: CompoundWriter<'o>,
    attributes: Attributes4<'_>,
) -> CompoundWriter<'o> {
    let arguments = SetAttrArgs4 { state: StateId::ANONYMOUS, attributes };
    on.op(Operation::SetAttr, &arguments)
}

fn open<'a>(opener: Opener<'a>, how: OpenHow<'a>, claim: OpenClaim<'a>) -> OpenArgs<'a> {
    let Opener { client_id, owner, access } = opener;
    OpenArgs { seqid: 0, access, deny: 0, client_id, owner: Opaque(owner), how, claim }
}

fn opened_at<'o>(after_open: CompoundWriter<'o>, attributes: Bitmap) -> CompoundWriter<'o> {
    after_open
        .op(Operation::GetFh, &())
        .op(Operation::Access, &RIGHTS)
        .op(Operation::GetAttr, &attributes)
}

/// UNCHECKED, as exclusive creation differs from server to server.
fn open_new<'o>(
    in_dir: CompoundWriter<'o>,
    opener: Opener<'_>,
    name: &[u8],
    attributes: Bitmap,
) -> CompoundWriter<'o> {
    let made = Attributes4 { mode: Some(FILE_MODE), ..Attributes4::default() };
    let arguments = open(opener, OpenHow::Unchecked(made), OpenClaim::Null(Name(name)));
    opened_at(in_dir.op(Operation::Open, &arguments), attributes)
}

fn make<'o>(
    in_dir: CompoundWriter<'o>,
    kind: CreateKind<'_>,
    name: &[u8],
    mode: Option<u32>,
) -> CompoundWriter<'o> {
    let attributes = Attributes4 { mode, ..Attributes4::default() };
    let arguments = CreateArgs4 { kind, name: Name(name), attributes };
    in_dir.op(Operation::Create, &arguments).op(Operation::GetFh, &())
}

fn list<'o>(
    of_dir: CompoundWriter<'o>,
    Cookie { number: cookie, verifier }: Cookie,
    bytes: u32,
    attributes: Bitmap,
) -> CompoundWriter<'o> {
    let arguments =
        ReadDirArgs4 { cookie, verifier, dir_bytes: bytes, bytes_max: bytes, attributes };
    of_dir.op(Operation::ReadDir, &arguments)
}

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

pub(super) fn status(status: Status4) -> ReplyError {
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
pub(super) fn nothing(results: Results<'_>) -> Result<(), ReplyError> {
    Reader::at_sequence(results)?.end(())
}

#[inline]
pub(super) fn attributes(results: Results<'_>) -> Result<Attributes, ReplyError> {
    let mut reader = Reader::new(results)?;
    let attributes = reader.attributes()?;
    reader.end(attributes)
}

#[inline]
pub(super) fn set_attributes(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let _: Bitmap = reader.take(Operation::SetAttr)?;
    let attributes = reader.attributes()?;
    reader.end(Some(attributes))
}

#[inline]
pub(super) fn looked_up<'m>(
    results: Results<'m>,
) -> Result<LookupResult<HandleBytes<'m>>, ReplyError> {
    let mut reader = Reader::new(results)?;
    reader.skip(Operation::Lookup)?;
    let (handle, attributes) = (reader.handle()?, Some(reader.attributes()?));
    reader.end(LookupResult { handle, attributes, dir_attributes: None })
}

#[inline]
pub(super) fn access(results: Results<'_>) -> Result<Granted, ReplyError> {
    let mut reader = Reader::new(results)?;
    let AccessOk4 { granted, .. } = reader.take(Operation::Access)?;
    let attributes = Some(reader.attributes()?);
    reader.end(Granted { attributes, access: granted })
}

#[inline]
pub(super) fn link_text<'m>(results: Results<'m>) -> Result<LinkText<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let text: Path<'m> = reader.take(Operation::ReadLink)?;
    reader.end(LinkText { attributes: None, text })
}

#[inline]
pub(super) fn read<'m>(results: Results<'m>) -> Result<ReadData<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let ReadOk4 { eof, data } = reader.take(Operation::Read)?;
    let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
    reader.end(ReadData { attributes: None, data, count, is_end: Some(eof) })
}

#[inline]
pub(super) fn written(results: Results<'_>) -> Result<Written, ReplyError> {
    let mut reader = Reader::new(results)?;
    let WriteOk4 { count, committed, verifier } = reader.take(Operation::Write)?;
    let attributes = Some(reader.attributes()?);
    let (count, verifier) = (Some(count), Some(verifier));
    reader.end(Written { attributes, count, committed, verifier })
}

#[inline]
pub(super) fn committed(results: Results<'_>) -> Result<Committed, ReplyError> {
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
pub(super) fn made<'m>(results: Results<'m>) -> Result<Made<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    // Files are made by OPEN, everything else by CREATE.
    if reader.reply.is_next(Operation::Open) {
        return opened(results).map(|opened| opened.made);
    }
    let _: CreateOk4 = reader.take(Operation::Create)?;
    let (handle, attributes) = (Some(reader.handle()?), Some(reader.attributes()?));
    reader.end(Made { handle, attributes, dir_attributes: None })
}

pub(super) use made as made_link;

#[inline]
pub(super) fn removed(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let _: ChangeInfo = reader.take(Operation::Remove)?;
    reader.end(None)
}

pub(super) fn renamed(results: Results<'_>) -> Result<(), ReplyError> {
    let mut reader = Reader::new(results)?;
    reader.skip(Operation::SaveFh)?;
    reader.skip(Operation::PutFh)?;
    let _: RenameOk4 = reader.take(Operation::Rename)?;
    reader.end(())
}

#[inline]
pub(super) fn space(results: Results<'_>) -> Result<Space, ReplyError> {
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
pub(super) fn limits(results: Results<'_>) -> Result<Limits, ReplyError> {
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
pub(super) fn page<'m>(results: Results<'m>) -> Result<Page<'m>, ReplyError> {
    let mut reader = Reader::new(results)?;
    let ReadDirOk4 { verifier, entries, eof } =
        reader.take::<ReadDirOk4<'m>>(Operation::ReadDir)?;
    let entries = Entries::V4(entries.iter());
    reader.end(Page { dir_attributes: None, verifier, entries, is_end: eof })
}

pub(super) use page as full_page;

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
