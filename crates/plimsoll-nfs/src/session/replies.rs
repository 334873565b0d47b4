//! Replies of a server without fault, for tests.

use super::super::op::*;
use super::super::wire::rpc::encode_reply_success;
use super::super::wire::v2::{self, FileAttributes2, FileKind2, Reply2, TimeVal2};
use super::super::wire::v3::{self, FileAttributes, FileKind, Reply3, TimeSpec3, WccData};
use super::super::wire::{Encode, List, Name, Path};
use super::calls::RIGHTS;
use super::{NfsSite, NfsVersion};

/// Verifier of the server's run.
pub(super) const RUN: [u8; 8] = *b"run no 1";

/// A successful reply with `result`.
pub(super) fn reply(xid: u32, result: impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    encode_reply_success(&mut out, xid);
    result.encode(&mut out);
    out
}

/// The reply of a server that has carried out `call`.
pub(super) fn good(site: &NfsSite, call: NfsCall, xid: u32) -> Vec<u8> {
    match site.version {
        NfsVersion::V2 => good2(site, call, xid),
        NfsVersion::V3 => good3(site, call, xid),
        NfsVersion::V4_1 => unreachable!("its sessions are tested against a server"),
    }
}

/// Attributes of an object of that kind and size.
pub(super) fn attributes3(kind: FileKind, size: u64) -> FileAttributes {
    let time = TimeSpec3 { seconds: 1, nanoseconds: 2 };
    FileAttributes {
        kind,
        mode: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        size,
        used: size,
        device: v3::Device { major: 0, minor: 0 },
        fsid: 9,
        fileid: 10,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

/// Attributes of an object of that kind and size.
pub(super) fn attributes2(kind: FileKind2, size: u32) -> FileAttributes2 {
    let time = TimeVal2 { seconds: 1, microseconds: 2 };
    FileAttributes2 {
        kind,
        mode: 0o100_644,
        nlink: 1,
        uid: 0,
        gid: 0,
        size,
        block_bytes: 4096,
        device: 0,
        blocks: 1,
        fsid: 9,
        fileid: 10,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

/// Successful write of a span.
pub(super) fn write_ok(span: Span, committed: v3::StableHow, verifier: [u8; 8]) -> v3::WriteOk {
    v3::WriteOk { wcc: WccData::NONE, count: span.bytes, committed, verifier }
}

/// Successful read of a span.
pub(super) fn read_ok(data: &[u8]) -> v3::ReadOk<'_> {
    let attributes = Some(attributes3(FileKind::Regular, 1 << 20));
    v3::ReadOk { attributes, count: data.len() as u32, eof: false, data }
}

fn wcc(kind: FileKind) -> WccData {
    WccData { before: None, after: Some(attributes3(kind, 4096)) }
}

fn good3(site: &NfsSite, call: NfsCall, xid: u32) -> Vec<u8> {
    let file = |file: Accessed| attributes3(FileKind::Regular, file.bytes());
    let dir = Some(attributes3(FileKind::Directory, 4096));
    match call {
        NfsCall::GetAttr(of) => reply(xid, Reply3::<_, ()>::Ok(file(of))),
        NfsCall::SetAttr(_) => {
            let wcc = wcc(FileKind::Regular);
            reply(xid, v3::SetAttrRes::Ok(wcc))
        }
        NfsCall::Lookup(of) => {
            let (object, attributes) = (handle3(site, of), Some(file(of)));
            reply(xid, v3::LookupRes::Ok(v3::LookupOk { object, attributes, dir_attributes: dir }))
        }
        NfsCall::Access(of) => {
            let attributes = Some(file(of));
            reply(xid, v3::AccessRes::Ok(v3::AccessOk { attributes, access: RIGHTS & 0xf }))
        }
        NfsCall::ReadLink(link) => {
            let (attributes, text) = (Some(attributes3(FileKind::Symlink, 11)), link.text());
            let path = Path(text.as_bytes());
            reply(xid, v3::ReadLinkRes::Ok(v3::ReadLinkOk { attributes, path }))
        }
        NfsCall::Read(span, _) => reply(xid, v3::ReadRes::Ok(read_ok(site.content_of(span)))),
        NfsCall::Write(span, _) => {
            reply(xid, v3::WriteRes::Ok(write_ok(span, v3::StableHow::FileSync, RUN)))
        }
        NfsCall::Create(_)
        | NfsCall::Remove(..)
        | NfsCall::ReadDir(_)
        | NfsCall::ReadDirPlus(_) => good3_of_directory(site, call, xid),
        NfsCall::FsStat => reply(
            xid,
            v3::FsStatRes::Ok(v3::FsStatOk {
                attributes: dir,
                total_bytes: 6,
                free_bytes: 5,
                available_bytes: 4,
                total_files: 3,
                free_files: 2,
                available_files: 1,
                invariant_s: 0,
            }),
        ),
        NfsCall::Composed => unreachable!("set-up alone has such a call"),
        NfsCall::Commit(_) => {
            let wcc = wcc(FileKind::Regular);
            reply(xid, v3::CommitRes::Ok(v3::CommitOk { wcc, verifier: RUN }))
        }
    }
}

fn good3_of_directory(site: &NfsSite, call: NfsCall, xid: u32) -> Vec<u8> {
    let dir = Some(attributes3(FileKind::Directory, 4096));
    match call {
        NfsCall::Create(_) => {
            let (attributes, dir_wcc) = (None, wcc(FileKind::Directory));
            reply(xid, v3::CreateRes::Ok(v3::CreateOk { object: None, attributes, dir_wcc }))
        }
        NfsCall::Remove(..) => {
            let dir_wcc = wcc(FileKind::Directory);
            reply(xid, v3::RemoveRes::Ok(dir_wcc))
        }
        NfsCall::ReadDir(_) => {
            let entries = [v3::Entry { fileid: 1, name: Name(b"."), cookie: 1 }; 3];
            let (verifier, entries) = ([0; 8], List::new(&entries));
            let ok = v3::ReadDirOk { dir_attributes: dir, verifier, entries, eof: true };
            reply(xid, v3::ReadDirRes::Ok(ok))
        }
        NfsCall::ReadDirPlus(_) => {
            let (attributes, object) = (dir, Some(handle3(site, Accessed(0))));
            let name = Name(b".");
            let entries = [v3::EntryPlus { fileid: 1, name, cookie: 1, attributes, object }; 3];
            let (verifier, entries) = ([0; 8], List::new(&entries));
            let ok = v3::ReadDirPlusOk { dir_attributes: dir, verifier, entries, eof: false };
            reply(xid, v3::ReadDirPlusRes::Ok(ok))
        }
        _ => unreachable!("calls of files and file systems are answered elsewhere"),
    }
}

fn handle3(site: &NfsSite, file: Accessed) -> v3::Handle<'_> {
    let handle = site.handles.file(file).expect("the set has the file");
    v3::Handle::new(handle.as_bytes()).expect("it is short enough")
}

fn good2(site: &NfsSite, call: NfsCall, xid: u32) -> Vec<u8> {
    let file = |file: Accessed| {
        attributes2(FileKind2::Regular, u32::try_from(file.bytes()).expect("files are small"))
    };
    let handle = |file| {
        let handle = site.handles.file(file).expect("the set has the file");
        v2::Handle2(*handle.as_bytes().first_chunk().expect("it has 32 bytes"))
    };
    match call {
        NfsCall::GetAttr(of) | NfsCall::SetAttr(of) => reply(xid, Reply2::Ok(file(of))),
        NfsCall::Lookup(of) => {
            reply(xid, Reply2::Ok(v2::DirOpOk { file: handle(of), attributes: file(of) }))
        }
        NfsCall::ReadLink(link) => {
            let text = link.text();
            reply(xid, Reply2::Ok(Path(text.as_bytes())))
        }
        NfsCall::Read(span, _) => {
            let (attributes, data) = (file(span.file), v2::Data2(site.content_of(span)));
            reply(xid, Reply2::Ok(v2::ReadOk { attributes, data }))
        }
        NfsCall::Write(span, _) => {
            let attributes = attributes2(FileKind2::Regular, span.offset as u32 + span.bytes);
            reply(xid, Reply2::Ok(attributes))
        }
        NfsCall::Create(_) => {
            let attributes = attributes2(FileKind2::Regular, 0);
            reply(xid, Reply2::Ok(v2::DirOpOk { file: handle(Accessed(0)), attributes }))
        }
        NfsCall::Remove(..) => reply(xid, Reply2::Ok(())),
        NfsCall::ReadDir(_) => {
            let entries = [v2::Entry { fileid: 1, name: Name(b"."), cookie: 1 }; 3];
            reply(xid, Reply2::Ok(v2::ReadDirOk { entries: List::new(&entries), eof: true }))
        }
        NfsCall::FsStat => reply(
            xid,
            Reply2::Ok(v2::StatFsOk {
                transfer_bytes: 8192,
                block_bytes: 4096,
                blocks: 3,
                free_blocks: 2,
                available_blocks: 1,
            }),
        ),
        NfsCall::Access(_) | NfsCall::ReadDirPlus(_) | NfsCall::Commit(_) | NfsCall::Composed => {
            unreachable!("NFSv2 has no such call")
        }
    }
}
