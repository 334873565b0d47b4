//! Questions and answers in NFSv2.

use super::{Ask, Bookmark, DIRECTORY_MODE, FILE_MODE};
use crate::answer::{Attributes, Entry, Found, Kind, Limits, Made, Page, ReadBack, Space, owned};
use crate::handles::OwnedHandle;
use crate::refusal::{CallError, NfsStatus};
use crate::wire::v2::*;
use crate::wire::xdr::{Decode, Encode, XdrIn};
use crate::wire::{Name, Path};

/// Questions of NFSv3 alone have the number of what comes nearest; nobody asks them here.
pub(crate) fn procedure(ask: &Ask<'_>) -> Procedure {
    match ask {
        Ask::GetAttr(_) | Ask::Access(..) => Procedure::GetAttr,
        Ask::SetMode(..) | Ask::SetSize(..) => Procedure::SetAttr,
        Ask::LookUp(..) => Procedure::Lookup,
        Ask::ReadLink(_) => Procedure::ReadLink,
        Ask::Read(..) => Procedure::Read,
        Ask::Write(..) => Procedure::Write,
        Ask::Create(..) => Procedure::Create,
        Ask::MakeDir(..) => Procedure::MkDir,
        Ask::MakeLink(..) => Procedure::Symlink,
        Ask::Remove(..) => Procedure::Remove,
        Ask::RemoveDir(..) => Procedure::RmDir,
        Ask::Rename(..) => Procedure::Rename,
        Ask::ReadDir(..) | Ask::ReadDirPlus(..) => Procedure::ReadDir,
        Ask::FsStat(_) | Ask::FsInfo(_) | Ask::Commit(_) => Procedure::StatFs,
    }
}

pub(crate) fn encode(ask: &Ask<'_>, out: &mut Vec<u8>) {
    match *ask {
        Ask::GetAttr(of) | Ask::Access(of, _) => GetAttrArgs { file: handle(of) }.encode(out),
        Ask::SetMode(of, mode) => set(of, with_mode(mode)).encode(out),
        Ask::SetSize(of, size) => {
            let size = Some(word(size));
            set(of, SetAttributes2 { size, ..SetAttributes2::default() }).encode(out);
        }
        Ask::LookUp(dir, name) => LookupArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::ReadLink(link) => ReadLinkArgs { file: handle(link) }.encode(out),
        Ask::Read(file, offset, count) => {
            let (file, offset) = (handle(file), word(offset));
            ReadArgs { file, offset, count, total_count: 0 }.encode(out);
        }
        Ask::Write(file, offset, data, _) => {
            let (file, offset, data) = (handle(file), word(offset), Data2(data));
            WriteArgs { file, begin_offset: 0, offset, total_count: 0, data }.encode(out);
        }
        Ask::Create(dir, name) => {
            let attributes = SetAttributes2 { size: Some(0), ..with_mode(FILE_MODE) };
            CreateArgs { dir: handle(dir), name: Name(name), attributes }.encode(out);
        }
        Ask::MakeDir(dir, name) => {
            let attributes = with_mode(DIRECTORY_MODE);
            MkDirArgs { dir: handle(dir), name: Name(name), attributes }.encode(out);
        }
        Ask::MakeLink(dir, name, text) => {
            let attributes = SetAttributes2::default();
            SymlinkArgs { dir: handle(dir), name: Name(name), path: Path(text), attributes }
                .encode(out);
        }
        Ask::Remove(dir, name) => RemoveArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::RemoveDir(dir, name) => RmDirArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::Rename(dir, from, to) => {
            let (from_dir, to_dir) = (handle(dir), handle(dir));
            RenameArgs { from_dir, from_name: Name(from), to_dir, to_name: Name(to) }.encode(out);
        }
        Ask::ReadDir(dir, from, count) | Ask::ReadDirPlus(dir, from, count) => {
            ReadDirArgs { dir: handle(dir), cookie: word(from.cookie), count }.encode(out);
        }
        Ask::FsStat(file) | Ask::FsInfo(file) | Ask::Commit(file) => {
            StatFsArgs { file: handle(file) }.encode(out);
        }
    }
}

fn handle(of: &OwnedHandle) -> Handle2 {
    let mut bytes = [0; HANDLE_BYTES];
    // A handle of an NFSv2 server has this length; another one would name nothing.
    bytes.iter_mut().zip(of.as_bytes()).for_each(|(to, from)| *to = *from);
    Handle2(bytes)
}

/// Offsets and sizes beyond 4 GiB do not exist in NFSv2; the set's files are far smaller.
fn word(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX - 1)
}

fn with_mode(mode: u32) -> SetAttributes2 {
    SetAttributes2 { mode: Some(mode), ..SetAttributes2::default() }
}

fn set(of: &OwnedHandle, attributes: SetAttributes2) -> SetAttrArgs {
    SetAttrArgs { file: handle(of), attributes }
}

fn ok<'a, T: Decode<'a>>(results: &'a [u8]) -> Result<T, CallError> {
    let reply = Reply2::<T>::decode(&mut XdrIn::new(results))?;
    reply.ok().map_err(|status| CallError::Status(NfsStatus(status.0)))
}

fn known(attributes: &FileAttributes2) -> Attributes {
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

pub(crate) fn attributes(results: &[u8]) -> Result<Attributes, CallError> {
    Ok(known(&ok::<AttrOk>(results)?.attributes))
}

pub(crate) fn looked_up(results: &[u8]) -> Result<Found, CallError> {
    let found = ok::<DirOpOk>(results)?;
    Ok(Found { handle: owned(&found.file.0)?, attributes: Some(known(&found.attributes)) })
}

pub(crate) fn made(results: &[u8]) -> Result<Made, CallError> {
    Ok(Made { handle: Some(owned(&ok::<DirOpOk>(results)?.file.0)?) })
}

pub(crate) fn link_text(results: &[u8]) -> Result<Vec<u8>, CallError> {
    Ok(ok::<ReadLinkOk<'_>>(results)?.path.0.to_vec())
}

pub(crate) fn read(results: &[u8]) -> Result<ReadBack, CallError> {
    let data = ok::<ReadOk<'_>>(results)?.data.0.to_vec();
    let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
    Ok(ReadBack { data, count, is_end: None })
}

pub(crate) fn space(results: &[u8]) -> Result<Space, CallError> {
    let space = ok::<StatFsOk>(results)?;
    let bytes = |blocks: u32| u64::from(blocks) * u64::from(space.block_bytes);
    Ok(Space {
        total_bytes: bytes(space.blocks),
        free_bytes: bytes(space.free_blocks),
        available_bytes: bytes(space.available_blocks),
        available_files: None,
    })
}

/// What the protocol transfers; `tsize` is advice. RFC 1094 §2.2.18
pub(crate) fn limits(results: &[u8]) -> Result<Limits, CallError> {
    ok::<StatFsOk>(results)?;
    Ok(Limits { read_bytes_max: DATA_BYTES_MAX, write_bytes_max: DATA_BYTES_MAX })
}

pub(crate) fn page(results: &[u8]) -> Result<Page, CallError> {
    let page = ok::<ReadDirOk<'_>>(results)?;
    let last = page.entries.iter().last().filter(|_| !page.eof);
    let entries = page.entries.iter().map(|entry| Entry {
        name: entry.name.0.to_vec(),
        file_id: u64::from(entry.fileid),
        attributes: None,
        handle: None,
    });
    let next = last.map(|last| Bookmark { cookie: u64::from(last.cookie), verifier: [0; 8] });
    Ok(Page { entries: entries.collect(), next })
}
