//! Calls and results of NFSv2. RFC 1094 §2.2

use super::results::{
    self, Attributes, Entries, Kind, Limits, LinkText, LookupResult, Made, Page, ReadData,
    ReplyError, Results, Space, Written,
};
use super::{Call, DIRECTORY_MODE, FILE_MODE};
use crate::handles::{HandleBytes, OwnedHandle};
use crate::wire::rpc::{CallWriter, Service};
use crate::wire::v2::*;
use crate::wire::v3::StableHow;
use crate::wire::xdr::{Decode, Encode};
use crate::wire::{Name, Path};

pub(super) const SERVICE: Service = Service { program: PROGRAM, version: VERSION };

const STATUS_BYTES: usize = 4;

pub(super) fn encode(call: Call<'_>, to: CallWriter<'_>) {
    use Procedure as P;
    match call {
        Call::Null => write(to, P::Null, ()),
        Call::GetAttr(of) => write(to, P::GetAttr, handle(of)),
        Call::SetMode(of, mode) => write(to, P::SetAttr, set(of, with_mode(mode))),
        Call::SetSize(of, size) => {
            let size = Some(word(size));
            write(to, P::SetAttr, set(of, SetAttributes2 { size, ..SetAttributes2::default() }));
        }
        Call::LookUp(dir, name) => write(to, P::Lookup, entry(dir, name)),
        Call::ReadLink(link) => write(to, P::ReadLink, handle(link)),
        Call::Read(file, offset, count) => {
            let (file, offset) = (handle(file), word(offset));
            write(to, P::Read, ReadArgs { file, offset, count, total_count: 0 });
        }
        Call::Write(file, offset, data, _) => {
            let (file, offset, data) = (handle(file), word(offset), Data2(data));
            write(to, P::Write, WriteArgs { file, begin_offset: 0, offset, total_count: 0, data });
        }
        Call::Create(dir, name) => write(to, P::Create, new(dir, name, FILE_MODE)),
        Call::MakeDir(dir, name) => write(to, P::MkDir, new(dir, name, DIRECTORY_MODE)),
        Call::MakeLink(dir, name, text) => {
            let (dir, attributes) = (handle(dir), SetAttributes2::default());
            let (name, path) = (Name(name), Path(text));
            write(to, P::Symlink, SymlinkArgs { dir, name, path, attributes });
        }
        Call::Remove(dir, name) => write(to, P::Remove, entry(dir, name)),
        Call::RemoveDir(dir, name) => write(to, P::RmDir, entry(dir, name)),
        Call::Rename(dir, from, to_name) => {
            let (from_dir, from_name, to_name) = (handle(dir), Name(from), Name(to_name));
            write(to, P::Rename, RenameArgs { from_dir, from_name, to_dir: from_dir, to_name });
        }
        Call::ReadDir(dir, from, count) | Call::ReadDirPlus(dir, from, count) => {
            let cookie = word(from.number);
            write(to, P::ReadDir, ReadDirArgs { dir: handle(dir), cookie, count });
        }
        Call::FsStat(file) | Call::FsInfo(file) => write(to, P::StatFs, handle(file)),
        Call::Access(..) | Call::Commit(_) => {
            unreachable!("who calls knows that NFSv2 has no such procedure: {call:?}")
        }
    }
}

#[inline]
fn write(to: CallWriter<'_>, procedure: Procedure, arguments: impl Encode) {
    to.write(SERVICE, procedure.number(), &arguments);
}

/// A handle of an NFSv2 server has this length; another one names nothing.
#[inline]
fn handle(of: &OwnedHandle) -> Handle2 {
    Handle2(of.padded())
}

/// Offsets and sizes beyond 4 GiB do not exist in NFSv2; the set's files are far smaller.
#[inline]
fn word(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX - 1)
}

#[inline]
fn entry<'a>(dir: &OwnedHandle, name: &'a [u8]) -> DirOpArgs<'a> {
    DirOpArgs { dir: handle(dir), name: Name(name) }
}

#[inline]
fn new<'a>(dir: &OwnedHandle, name: &'a [u8], mode: u32) -> CreateArgs<'a> {
    CreateArgs { dir: handle(dir), name: Name(name), attributes: with_mode(mode) }
}

#[inline]
fn with_mode(mode: u32) -> SetAttributes2 {
    SetAttributes2 { mode: Some(mode), ..SetAttributes2::default() }
}

fn set(of: &OwnedHandle, attributes: SetAttributes2) -> SetAttrArgs {
    SetAttrArgs { file: handle(of), attributes }
}

#[inline]
fn ok<'m, T: Decode<'m>>(results: Results<'m>) -> Result<T, ReplyError> {
    let mut input = results.read();
    let reply = Reply2::<T>::decode(&mut input)?;
    results.end(input);
    reply.ok().map_err(status)
}

pub(super) fn status(status: Status2) -> ReplyError {
    ReplyError::Status { code: status.0, name: status.name() }
}

#[inline]
fn convert_attributes(attributes: &FileAttributes2) -> Attributes {
    let kind = match attributes.kind {
        FileKind2::Regular => Kind::File,
        FileKind2::Directory => Kind::Directory,
        FileKind2::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let FileAttributes2 { mode, size, fileid, .. } = *attributes;
    let (size, file_id) = (u64::from(size), u64::from(fileid));
    Attributes { kind, mode: mode & 0o7777, size, file_id }
}

/// The handle stays where it lies: behind the status.
#[inline]
fn dir_op(results: Results<'_>) -> Result<(HandleBytes<'_>, Attributes), ReplyError> {
    let attributes = ok::<DirOpOk>(results)?.attributes;
    let handle = HandleBytes(&results.bytes[STATUS_BYTES..][..HANDLE_BYTES]);
    Ok((handle, convert_attributes(&attributes)))
}

#[inline]
pub(super) fn attributes(results: Results<'_>) -> Result<Attributes, ReplyError> {
    Ok(convert_attributes(&ok(results)?))
}

#[inline]
pub(super) fn set_attributes(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    attributes(results).map(Some)
}

#[inline]
pub(super) fn looked_up(results: Results<'_>) -> Result<LookupResult<HandleBytes<'_>>, ReplyError> {
    let (handle, attributes) = dir_op(results)?;
    Ok(LookupResult { handle, attributes: Some(attributes), dir_attributes: None })
}

#[inline]
pub(super) fn link_text(results: Results<'_>) -> Result<LinkText<'_>, ReplyError> {
    Ok(LinkText { attributes: None, text: ok(results)? })
}

#[inline]
pub(super) fn read<'m>(results: Results<'m>) -> Result<ReadData<'m>, ReplyError> {
    let ReadOk { attributes, data: Data2(data) } = ok::<ReadOk<'m>>(results)?;
    let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
    Ok(ReadData { attributes: Some(convert_attributes(&attributes)), data, count, is_end: None })
}

/// What is written is durable. RFC 1094 §2.2.9
#[inline]
pub(super) fn written(results: Results<'_>) -> Result<Written, ReplyError> {
    let attributes = Some(attributes(results)?);
    let committed = StableHow::FileSync;
    Ok(Written { attributes, count: None, committed, verifier: None })
}

#[inline]
pub(super) fn made(results: Results<'_>) -> Result<Made<'_>, ReplyError> {
    let (handle, attributes) = dir_op(results)?;
    Ok(Made { handle: Some(handle), attributes: Some(attributes), dir_attributes: None })
}

/// The reply has no handle. RFC 1094 §2.2.14
pub(super) fn made_link(results: Results<'_>) -> Result<Made<'_>, ReplyError> {
    ok::<()>(results)?;
    Ok(Made { handle: None, attributes: None, dir_attributes: None })
}

#[inline]
pub(super) fn removed(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    ok::<()>(results).map(|()| None)
}

pub(super) fn renamed(results: Results<'_>) -> Result<(), ReplyError> {
    ok(results)
}

#[inline]
pub(super) fn space(results: Results<'_>) -> Result<Space, ReplyError> {
    let space: StatFsOk = ok(results)?;
    let bytes = |blocks: u32| u64::from(blocks) * u64::from(space.block_bytes);
    Ok(Space {
        attributes: None,
        total_bytes: bytes(space.blocks),
        free_bytes: bytes(space.free_blocks),
        available_bytes: bytes(space.available_blocks),
        available_files: None,
    })
}

/// What the protocol transfers; `tsize` is advice. RFC 1094 §2.2.18
pub(super) fn limits(results: Results<'_>) -> Result<Limits, ReplyError> {
    ok::<StatFsOk>(results)?;
    Ok(Limits { read_bytes_max: DATA_BYTES_MAX, write_bytes_max: DATA_BYTES_MAX })
}

#[inline]
pub(super) fn page<'m>(results: Results<'m>) -> Result<Page<'m>, ReplyError> {
    let ReadDirOk { entries, eof } = ok::<ReadDirOk<'m>>(results)?;
    let entries = Entries::V2(entries.iter());
    Ok(Page { dir_attributes: None, verifier: [0; 8], entries, is_end: eof })
}

impl<'m> From<Entry<'m>> for results::Entry<'m> {
    fn from(entry: Entry<'m>) -> Self {
        let (name, cookie) = (entry.name.0, u64::from(entry.cookie));
        Self { name, cookie, attributes: None, handle: None }
    }
}
