//! Calls and results of NFSv3. RFC 1813 §3.3

use super::results::{
    self, Attributes, Committed, Entries, Granted, Kind, Limits, LinkText, LookupResult, Made,
    Page, ReadData, ReplyError, Results, Space, Written,
};
use super::{Call, Cookie, DIRECTORY_MODE, FILE_MODE};
use crate::handles::{HandleBytes, OwnedHandle};
use crate::op::Stability;
use crate::wire::flaws::Flaw;
use crate::wire::rpc::{CallWriter, Service};
use crate::wire::v3::*;
use crate::wire::xdr::{Decode, Encode};
use crate::wire::{Name, Path};

pub(super) const SERVICE: Service = Service { program: PROGRAM, version: VERSION };

pub(super) fn encode(call: Call<'_>, to: CallWriter<'_>) {
    use Procedure as P;
    match call {
        Call::Null => write(to, P::Null, ()),
        Call::GetAttr(of) => write(to, P::GetAttr, handle(of)),
        Call::SetMode(of, mode) => write(to, P::SetAttr, set(of, with_mode(mode))),
        Call::SetSize(of, size) => {
            let size = Some(size);
            write(to, P::SetAttr, set(of, SetAttributes { size, ..SetAttributes::default() }));
        }
        Call::LookUp(dir, name) => write(to, P::Lookup, entry(dir, name)),
        Call::Access(of, access) => {
            write(to, P::Access, AccessArgs { object: handle(of), access });
        }
        Call::ReadLink(link) => write(to, P::ReadLink, handle(link)),
        Call::Read(file, offset, count) => {
            write(to, P::Read, ReadArgs { file: handle(file), offset, count });
        }
        Call::Write(file, offset, data, stability) => {
            let count = u32::try_from(data.len()).expect("chunks are far below 4 GiB");
            let (file, stable) = (handle(file), stability.into());
            write(to, P::Write, WriteArgs { file, offset, count, stable, data });
        }
        Call::Create(dir, name) => {
            let how = CreateHow::Unchecked(with_mode(FILE_MODE));
            write(to, P::Create, CreateArgs { dir: handle(dir), name: Name(name), how });
        }
        Call::MakeDir(dir, name) => {
            let attributes = with_mode(DIRECTORY_MODE);
            write(to, P::MkDir, MkDirArgs { dir: handle(dir), name: Name(name), attributes });
        }
        Call::MakeLink(dir, name, text) => {
            let (dir, attributes) = (handle(dir), SetAttributes::default());
            let (name, path) = (Name(name), Path(text));
            write(to, P::Symlink, SymlinkArgs { dir, name, attributes, path });
        }
        Call::Remove(dir, name) => write(to, P::Remove, entry(dir, name)),
        Call::RemoveDir(dir, name) => write(to, P::RmDir, entry(dir, name)),
        Call::Rename(dir, from, to_name) => {
            let (from_dir, from_name, to_name) = (handle(dir), Name(from), Name(to_name));
            write(to, P::Rename, RenameArgs { from_dir, from_name, to_dir: from_dir, to_name });
        }
        Call::ReadDir(dir, Cookie { number: cookie, verifier }, count) => {
            write(to, P::ReadDir, ReadDirArgs { dir: handle(dir), cookie, verifier, count });
        }
        Call::ReadDirPlus(dir, Cookie { number: cookie, verifier }, bytes) => {
            let (dir, dir_count, max_count) = (handle(dir), bytes, bytes);
            let arguments = ReadDirPlusArgs { dir, cookie, verifier, dir_count, max_count };
            write(to, P::ReadDirPlus, arguments);
        }
        Call::FsStat(root) => write(to, P::FsStat, handle(root)),
        Call::FsInfo(root) => write(to, P::FsInfo, handle(root)),
        Call::Commit(file) => {
            write(to, P::Commit, CommitArgs { file: handle(file), offset: 0, count: 0 });
        }
    }
}

#[inline]
fn write(to: CallWriter<'_>, procedure: Procedure, arguments: impl Encode) {
    to.write(SERVICE, procedure.number(), &arguments);
}

#[inline]
fn handle(of: &OwnedHandle) -> Handle<'_> {
    Handle::new(of.as_bytes()).expect("a server of NFSv3 gave it")
}

#[inline]
fn entry<'a>(dir: &'a OwnedHandle, name: &'a [u8]) -> DirOpArgs<'a> {
    DirOpArgs { dir: handle(dir), name: Name(name) }
}

#[inline]
fn with_mode(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..SetAttributes::default() }
}

fn set(of: &OwnedHandle, attributes: SetAttributes) -> SetAttrArgs<'_> {
    SetAttrArgs { object: handle(of), attributes, guard: None }
}

impl From<Stability> for StableHow {
    fn from(stability: Stability) -> Self {
        match stability {
            Stability::Unstable => Self::Unstable,
            Stability::FileSync => Self::FileSync,
        }
    }
}

/// `E` is what comes with an error.
#[inline]
fn ok<'m, T: Decode<'m>, E: Decode<'m>>(results: Results<'m>) -> Result<T, ReplyError> {
    let mut input = results.read();
    let failed = match Status3::decode(&mut input)? {
        Status3::OK => {
            let ok = T::decode(&mut input)?;
            results.end(input);
            return Ok(ok);
        }
        failed => failed,
    };
    // The status is enough; many servers send nothing after it.
    if E::decode(&mut input).is_err() && input.tolerates(Flaw::FailureBody) {
        input.skip(usize::MAX);
    }
    results.end(input);
    Err(status(failed))
}

pub(super) fn status(status: Status3) -> ReplyError {
    ReplyError::Status { code: status.0, name: status.name() }
}

#[inline]
fn convert_attributes(attributes: FileAttributes) -> Attributes {
    let kind = match attributes.kind {
        FileKind::Regular => Kind::File,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let FileAttributes { mode, size, fileid, .. } = attributes;
    Attributes { kind, mode: mode & 0o7777, size, file_id: fileid }
}

#[inline]
pub(super) fn attributes(results: Results<'_>) -> Result<Attributes, ReplyError> {
    ok::<_, ()>(results).map(convert_attributes)
}

#[inline]
pub(super) fn set_attributes(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    Ok(ok::<WccData, WccData>(results)?.after.map(convert_attributes))
}

#[inline]
pub(super) fn looked_up<'m>(
    results: Results<'m>,
) -> Result<LookupResult<HandleBytes<'m>>, ReplyError> {
    let LookupOk { object, attributes, dir_attributes } = ok::<LookupOk<'m>, PostOpAttr>(results)?;
    let (attributes, dir_attributes) =
        (attributes.map(convert_attributes), dir_attributes.map(convert_attributes));
    Ok(LookupResult { handle: object.into(), attributes, dir_attributes })
}

/// Of ACCESS, which NFSv2 does not have.
#[inline]
pub(super) fn access(results: Results<'_>) -> Result<Granted, ReplyError> {
    let AccessOk { attributes, access } = ok::<_, PostOpAttr>(results)?;
    Ok(Granted { attributes: attributes.map(convert_attributes), access })
}

#[inline]
pub(super) fn link_text<'m>(results: Results<'m>) -> Result<LinkText<'m>, ReplyError> {
    let ReadLinkOk { attributes, path } = ok::<ReadLinkOk<'m>, PostOpAttr>(results)?;
    Ok(LinkText { attributes: attributes.map(convert_attributes), text: path })
}

#[inline]
pub(super) fn read<'m>(results: Results<'m>) -> Result<ReadData<'m>, ReplyError> {
    let ReadOk { attributes, count, eof, data } = ok::<ReadOk<'m>, PostOpAttr>(results)?;
    Ok(ReadData { attributes: attributes.map(convert_attributes), data, count, is_end: Some(eof) })
}

#[inline]
pub(super) fn written(results: Results<'_>) -> Result<Written, ReplyError> {
    let WriteOk { wcc, count, committed, verifier } = ok::<_, WccData>(results)?;
    let (count, verifier) = (Some(count), Some(verifier));
    Ok(Written { attributes: wcc.after.map(convert_attributes), count, committed, verifier })
}

/// Of COMMIT, which NFSv2 does not have.
#[inline]
pub(super) fn committed(results: Results<'_>) -> Result<Committed, ReplyError> {
    let CommitOk { wcc, verifier } = ok::<_, WccData>(results)?;
    Ok(Committed { attributes: wcc.after.map(convert_attributes), verifier })
}

#[inline]
pub(super) fn made<'m>(results: Results<'m>) -> Result<Made<'m>, ReplyError> {
    let CreateOk { object, attributes, dir_wcc } = ok::<CreateOk<'m>, WccData>(results)?;
    let (attributes, dir_attributes) =
        (attributes.map(convert_attributes), dir_wcc.after.map(convert_attributes));
    Ok(Made { handle: object.map(HandleBytes::from), attributes, dir_attributes })
}

pub(super) use made as made_link;

#[inline]
pub(super) fn removed(results: Results<'_>) -> Result<Option<Attributes>, ReplyError> {
    set_attributes(results)
}

pub(super) fn renamed(results: Results<'_>) -> Result<(), ReplyError> {
    ok::<RenameWcc, RenameWcc>(results).map(drop)
}

#[inline]
pub(super) fn space(results: Results<'_>) -> Result<Space, ReplyError> {
    let space: FsStatOk = ok::<_, PostOpAttr>(results)?;
    Ok(Space {
        attributes: space.attributes.map(convert_attributes),
        total_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
        available_bytes: space.available_bytes,
        // Zero slots in all: the file system does not count them.
        available_files: (space.total_files > 0).then_some(space.available_files),
    })
}

pub(super) fn limits(results: Results<'_>) -> Result<Limits, ReplyError> {
    let FsInfoOk { read_max, write_max, .. } = ok::<_, PostOpAttr>(results)?;
    Ok(Limits { read_bytes_max: read_max, write_bytes_max: write_max })
}

#[inline]
pub(super) fn page<'m>(results: Results<'m>) -> Result<Page<'m>, ReplyError> {
    let ReadDirOk { dir_attributes, verifier, entries, eof } =
        ok::<ReadDirOk<'m>, PostOpAttr>(results)?;
    let (dir_attributes, entries) =
        (dir_attributes.map(convert_attributes), Entries::V3(entries.iter()));
    Ok(Page { dir_attributes, verifier, entries, is_end: eof })
}

#[inline]
pub(super) fn full_page<'m>(results: Results<'m>) -> Result<Page<'m>, ReplyError> {
    let ReadDirPlusOk { dir_attributes, verifier, entries, eof } =
        ok::<ReadDirPlusOk<'m>, PostOpAttr>(results)?;
    let (dir_attributes, entries) =
        (dir_attributes.map(convert_attributes), Entries::V3Plus(entries.iter()));
    Ok(Page { dir_attributes, verifier, entries, is_end: eof })
}

impl<'m> From<Entry<'m>> for results::Entry<'m> {
    fn from(Entry { name, cookie, .. }: Entry<'m>) -> Self {
        Self { name: name.0, cookie, attributes: None, handle: None }
    }
}

impl<'m> From<EntryPlus<'m>> for results::Entry<'m> {
    fn from(EntryPlus { name, cookie, attributes, object, .. }: EntryPlus<'m>) -> Self {
        Self {
            name: name.0,
            cookie,
            attributes: attributes.map(convert_attributes),
            handle: object.map(HandleBytes::from),
        }
    }
}
