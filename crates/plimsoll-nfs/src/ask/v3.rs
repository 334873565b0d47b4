//! Questions and answers in NFSv3.

use super::{Ask, Bookmark, DIRECTORY_MODE, FILE_MODE};
use crate::answer::{
    Attributes, Entry, Found, Kind, Limits, Made, Page, ReadBack, Space, Written, owned,
};
use crate::handles::OwnedHandle;
use crate::op::Stability;
use crate::refusal::{CallError, NfsStatus};
use crate::wire::v3::*;
use crate::wire::xdr::{Decode, Encode, XdrIn};
use crate::wire::{Name, Path};

pub(crate) fn procedure(ask: &Ask<'_>) -> Procedure {
    match ask {
        Ask::GetAttr(_) => Procedure::GetAttr,
        Ask::SetMode(..) | Ask::SetSize(..) => Procedure::SetAttr,
        Ask::LookUp(..) => Procedure::Lookup,
        Ask::Access(..) => Procedure::Access,
        Ask::ReadLink(_) => Procedure::ReadLink,
        Ask::Read(..) => Procedure::Read,
        Ask::Write(..) => Procedure::Write,
        Ask::Create(..) => Procedure::Create,
        Ask::MakeDir(..) => Procedure::MkDir,
        Ask::MakeLink(..) => Procedure::Symlink,
        Ask::Remove(..) => Procedure::Remove,
        Ask::RemoveDir(..) => Procedure::RmDir,
        Ask::Rename(..) => Procedure::Rename,
        Ask::ReadDir(..) => Procedure::ReadDir,
        Ask::ReadDirPlus(..) => Procedure::ReadDirPlus,
        Ask::FsStat(_) => Procedure::FsStat,
        Ask::FsInfo(_) => Procedure::FsInfo,
        Ask::Commit(_) => Procedure::Commit,
    }
}

pub(crate) fn encode(ask: &Ask<'_>, out: &mut Vec<u8>) {
    match *ask {
        Ask::GetAttr(of) => GetAttrArgs { object: handle(of) }.encode(out),
        Ask::SetMode(of, mode) => set(of, with_mode(mode)).encode(out),
        Ask::SetSize(of, size) => {
            set(of, SetAttributes { size: Some(size), ..SetAttributes::default() }).encode(out);
        }
        Ask::LookUp(dir, name) => LookupArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::Access(of, access) => AccessArgs { object: handle(of), access }.encode(out),
        Ask::ReadLink(link) => ReadLinkArgs { symlink: handle(link) }.encode(out),
        Ask::Read(file, offset, count) => {
            ReadArgs { file: handle(file), offset, count }.encode(out);
        }
        Ask::Write(file, offset, data, stability) => {
            let count = u32::try_from(data.len()).expect("chunks are far below 4 GiB");
            let stable = match stability {
                Stability::Unstable => StableHow::Unstable,
                Stability::FileSync => StableHow::FileSync,
            };
            WriteArgs { file: handle(file), offset, count, stable, data }.encode(out);
        }
        Ask::Create(dir, name) => {
            let how = CreateHow::Unchecked(with_mode(FILE_MODE));
            CreateArgs { dir: handle(dir), name: Name(name), how }.encode(out);
        }
        Ask::MakeDir(dir, name) => {
            let attributes = with_mode(DIRECTORY_MODE);
            MkDirArgs { dir: handle(dir), name: Name(name), attributes }.encode(out);
        }
        Ask::MakeLink(dir, name, text) => {
            let (dir, attributes) = (handle(dir), SetAttributes::default());
            SymlinkArgs { dir, name: Name(name), attributes, path: Path(text) }.encode(out);
        }
        Ask::Remove(dir, name) => RemoveArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::RemoveDir(dir, name) => RmDirArgs { dir: handle(dir), name: Name(name) }.encode(out),
        Ask::Rename(dir, from, to) => {
            let (from_dir, to_dir) = (handle(dir), handle(dir));
            RenameArgs { from_dir, from_name: Name(from), to_dir, to_name: Name(to) }.encode(out);
        }
        Ask::ReadDir(dir, Bookmark { cookie, verifier }, count) => {
            ReadDirArgs { dir: handle(dir), cookie, verifier, count }.encode(out);
        }
        Ask::ReadDirPlus(dir, Bookmark { cookie, verifier }, bytes) => {
            let (dir_count, max_count) = (bytes, bytes);
            ReadDirPlusArgs { dir: handle(dir), cookie, verifier, dir_count, max_count }
                .encode(out);
        }
        Ask::FsStat(root) => FsStatArgs { root: handle(root) }.encode(out),
        Ask::FsInfo(root) => FsInfoArgs { root: handle(root) }.encode(out),
        Ask::Commit(file) => CommitArgs { file: handle(file), offset: 0, count: 0 }.encode(out),
    }
}

fn handle(of: &OwnedHandle) -> Handle<'_> {
    Handle::new(of.as_bytes()).expect("an owned handle is at most as long as NFSv3's")
}

fn with_mode(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..SetAttributes::default() }
}

fn set(of: &OwnedHandle, attributes: SetAttributes) -> SetAttrArgs<'_> {
    SetAttrArgs { object: handle(of), attributes, guard: None }
}

fn ok<'a, T: Decode<'a>, E: Decode<'a>>(results: &'a [u8]) -> Result<T, CallError> {
    let reply = Reply3::<T, E>::decode(&mut XdrIn::new(results))?;
    reply.ok().map_err(|status| CallError::Status(NfsStatus(status.0)))
}

fn known(attributes: &FileAttributes) -> Attributes {
    let kind = match attributes.kind {
        FileKind::Regular => Kind::File,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let FileAttributes { mode, size, fileid, .. } = *attributes;
    Attributes { kind, mode: mode & 0o7777, size, file_id: fileid }
}

pub(crate) fn attributes(results: &[u8]) -> Result<Attributes, CallError> {
    Ok(known(&ok::<GetAttrOk, ()>(results)?.attributes))
}

pub(crate) fn looked_up(results: &[u8]) -> Result<Found, CallError> {
    let found = ok::<LookupOk<'_>, PostOpAttr>(results)?;
    let handle = owned(found.object.bytes())?;
    Ok(Found { handle, attributes: found.attributes.as_ref().map(known) })
}

pub(crate) fn made(results: &[u8]) -> Result<Made, CallError> {
    let made = ok::<CreateOk<'_>, WccData>(results)?;
    Ok(Made { handle: made.object.map(|object| owned(object.bytes())).transpose()? })
}

/// Of ACCESS.
pub(crate) fn access(results: &[u8]) -> Result<u32, CallError> {
    Ok(ok::<AccessOk, PostOpAttr>(results)?.access)
}

pub(crate) fn link_text(results: &[u8]) -> Result<Vec<u8>, CallError> {
    Ok(ok::<ReadLinkOk<'_>, PostOpAttr>(results)?.path.0.to_vec())
}

pub(crate) fn read(results: &[u8]) -> Result<ReadBack, CallError> {
    let read = ok::<ReadOk<'_>, PostOpAttr>(results)?;
    Ok(ReadBack { data: read.data.to_vec(), count: read.count, is_end: Some(read.eof) })
}

pub(crate) fn written(results: &[u8]) -> Result<Written, CallError> {
    let written = ok::<WriteOk, WccData>(results)?;
    Ok(Written { bytes: written.count, verifier: Some(written.verifier) })
}

/// Of COMMIT: the server's verifier.
pub(crate) fn committed(results: &[u8]) -> Result<[u8; 8], CallError> {
    Ok(ok::<CommitOk, WccData>(results)?.verifier)
}

pub(crate) fn space(results: &[u8]) -> Result<Space, CallError> {
    let space = ok::<FsStatOk, PostOpAttr>(results)?;
    Ok(Space {
        total_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
        available_bytes: space.available_bytes,
        // Zero slots in all: the file system does not count them.
        available_files: (space.total_files > 0).then_some(space.available_files),
    })
}

pub(crate) fn limits(results: &[u8]) -> Result<Limits, CallError> {
    let limits = ok::<FsInfoOk, PostOpAttr>(results)?;
    Ok(Limits { read_bytes_max: limits.read_max, write_bytes_max: limits.write_max })
}

pub(crate) fn page(results: &[u8]) -> Result<Page, CallError> {
    let page = ok::<ReadDirOk<'_>, PostOpAttr>(results)?;
    let last = page.entries.iter().last().map(|entry| entry.cookie);
    let entries = page.entries.iter().map(|entry| Entry {
        name: entry.name.0.to_vec(),
        file_id: entry.fileid,
        attributes: None,
        handle: None,
    });
    let entries = entries.collect();
    Ok(Page { entries, next: next(last, page.eof, page.verifier) })
}

/// Of READDIRPLUS.
pub(crate) fn full_page(results: &[u8]) -> Result<Page, CallError> {
    let page = ok::<ReadDirPlusOk<'_>, PostOpAttr>(results)?;
    let last = page.entries.iter().last().map(|entry| entry.cookie);
    let entries = page.entries.iter().map(|entry| {
        Ok(Entry {
            name: entry.name.0.to_vec(),
            file_id: entry.fileid,
            attributes: entry.attributes.as_ref().map(known),
            handle: entry.object.map(|object| owned(object.bytes())).transpose()?,
        })
    });
    let entries = entries.collect::<Result<_, CallError>>()?;
    Ok(Page { entries, next: next(last, page.eof, page.verifier) })
}

fn next(last: Option<u64>, is_end: bool, verifier: [u8; 8]) -> Option<Bookmark> {
    last.filter(|_| !is_end).map(|cookie| Bookmark { cookie, verifier })
}
