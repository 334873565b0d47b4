//! From an op to the bytes of its call.

use plimsoll_engine::seam::LinkKind;

use super::super::fileset::BLOCK_BYTES;
use super::super::handles::OwnedHandle;
use super::super::op::{Accessed, DirNo, NfsCall, Span, Stability};
use super::super::wire::rpc::encode_call;
use super::super::wire::{Encode, Name, record, v2, v3};
use super::{NfsSite, NfsVersion};

/// What SETATTR sets and CREATE gives: what the files of the set have anyway.
const MODE: u32 = 0o644;
/// What ACCESS asks about: everything that can be done with a file.
pub(super) const RIGHTS: u32 =
    v3::access::READ | v3::access::MODIFY | v3::access::EXTEND | v3::access::EXECUTE;

impl NfsSite {
    /// Appends the message of a call, with its record mark where the link needs one.
    pub(super) fn encode(&self, call: NfsCall, xid: u32, out: &mut Vec<u8>) {
        match self.link {
            LinkKind::Datagram => self.encode_message(call, xid, out),
            LinkKind::Stream => {
                let at = record::begin(out);
                self.encode_message(call, xid, out);
                record::finish(out, at);
            }
        }
    }

    fn encode_message(&self, call: NfsCall, xid: u32, out: &mut Vec<u8>) {
        match self.version {
            NfsVersion::V2 => V2(self, xid, out).encode(call),
            NfsVersion::V3 => V3(self, xid, out).encode(call),
        }
    }

    /// What a part of a file holds, or is to hold.
    pub(super) fn content_of(&self, span: Span) -> &[u8] {
        self.content.slice(span.file.file(), span.offset, span.bytes as usize)
    }
}

/// Writes one call of NFSv2.
struct V2<'s, 'o>(&'s NfsSite, u32, &'o mut Vec<u8>);

impl V2<'_, '_> {
    fn encode(self, call: NfsCall) {
        use v2::Procedure as P;
        let Self(site, ..) = self;
        let file = |file| handle2(site.handles.file(file));
        let dir = |dir| handle2(site.handles.dir(dir));
        let attributes = v2::SetAttributes2 { mode: Some(MODE), ..v2::SetAttributes2::default() };
        match call {
            NfsCall::GetAttr(of) => self.put(P::GetAttr, v2::GetAttrArgs { file: file(of) }),
            NfsCall::SetAttr(of) => {
                self.put(P::SetAttr, v2::SetAttrArgs { file: file(of), attributes });
            }
            NfsCall::Lookup(of) => {
                let (dir, name) = (dir(of.file().directory()), of.file().name());
                self.put(P::Lookup, v2::LookupArgs { dir, name: Name(name.as_bytes()) });
            }
            NfsCall::ReadLink(link) => {
                let file = handle2(site.handles.link(link));
                self.put(P::ReadLink, v2::ReadLinkArgs { file });
            }
            NfsCall::Read(span, _) => {
                let (file, offset, count) = (file(span.file), offset2(span), span.bytes);
                self.put(P::Read, v2::ReadArgs { file, offset, count, total_count: 0 });
            }
            NfsCall::Write(span, _) => {
                let (file, offset) = (file(span.file), offset2(span));
                let data = v2::Data2(site.content_of(span));
                let (begin_offset, total_count) = (0, 0);
                let args = v2::WriteArgs { file, begin_offset, offset, total_count, data };
                self.put(P::Write, args);
            }
            NfsCall::Create(slot) => {
                let (dir, name) = (dir(slot.directory()), slot.name());
                self.put(
                    P::Create,
                    v2::CreateArgs { dir, name: Name(name.as_bytes()), attributes },
                );
            }
            NfsCall::Remove(slot, _) => {
                let (dir, name) = (dir(slot.directory()), slot.name());
                self.put(P::Remove, v2::RemoveArgs { dir, name: Name(name.as_bytes()) });
            }
            NfsCall::ReadDir(of) => {
                self.put(
                    P::ReadDir,
                    v2::ReadDirArgs { dir: dir(of), cookie: 0, count: BLOCK_BYTES },
                );
            }
            NfsCall::FsStat => {
                self.put(P::StatFs, v2::StatFsArgs { file: handle2(Some(&site.handles.root)) });
            }
            NfsCall::Access(_) | NfsCall::ReadDirPlus(_) | NfsCall::Commit(_) => {
                unreachable!("the mix of NFSv2 has only what NFSv2 has: {call:?}")
            }
        }
    }

    fn put(self, procedure: v2::Procedure, args: impl Encode) {
        let Self(site, xid, out) = self;
        let program = (v2::PROGRAM, v2::VERSION);
        encode_call(out, xid, program, procedure.number(), &site.credential);
        args.encode(out);
    }
}

/// A set without the object, which no plan makes, shows as `NFSERR_STALE`.
fn handle2(handle: Option<&OwnedHandle>) -> v2::Handle2 {
    let bytes = handle.and_then(|handle| handle.as_bytes().first_chunk());
    v2::Handle2(bytes.copied().unwrap_or_default())
}

/// No file of the set comes near the 4 GiB that NFSv2 can say.
fn offset2(span: Span) -> u32 {
    u32::try_from(span.offset).unwrap_or(u32::MAX)
}

/// Writes one call of NFSv3.
struct V3<'s, 'o>(&'s NfsSite, u32, &'o mut Vec<u8>);

impl V3<'_, '_> {
    fn encode(self, call: NfsCall) {
        use v3::Procedure as P;
        let Self(site, ..) = self;
        let (file, dir) = (|file| file3(site, file), |dir| dir3(site, dir));
        let attributes = v3::SetAttributes { mode: Some(MODE), ..v3::SetAttributes::default() };
        let (cookie, verifier) = (0, [0; 8]);
        match call {
            NfsCall::GetAttr(of) => self.put(P::GetAttr, v3::GetAttrArgs { object: file(of) }),
            NfsCall::SetAttr(of) => {
                self.put(P::SetAttr, v3::SetAttrArgs { object: file(of), attributes, guard: None });
            }
            NfsCall::Lookup(of) => {
                let (dir, name) = (dir(of.file().directory()), of.file().name());
                self.put(P::Lookup, v3::LookupArgs { dir, name: Name(name.as_bytes()) });
            }
            NfsCall::Access(of) => {
                self.put(P::Access, v3::AccessArgs { object: file(of), access: RIGHTS });
            }
            NfsCall::ReadLink(link) => {
                let symlink = handle3(site.handles.link(link));
                self.put(P::ReadLink, v3::ReadLinkArgs { symlink });
            }
            NfsCall::Read(Span { file: of, offset, bytes: count, .. }, _) => {
                self.put(P::Read, v3::ReadArgs { file: file(of), offset, count });
            }
            NfsCall::Write(span, stability) => {
                let Span { file: of, offset, bytes: count, .. } = span;
                let (file, stable, data) = (file(of), stable3(stability), site.content_of(span));
                self.put(P::Write, v3::WriteArgs { file, offset, count, stable, data });
            }
            NfsCall::Create(slot) => {
                let (dir, name) = (dir(slot.directory()), slot.name());
                let how = v3::CreateHow::Unchecked(attributes);
                self.put(P::Create, v3::CreateArgs { dir, name: Name(name.as_bytes()), how });
            }
            NfsCall::Remove(slot, _) => {
                let (dir, name) = (dir(slot.directory()), slot.name());
                self.put(P::Remove, v3::RemoveArgs { dir, name: Name(name.as_bytes()) });
            }
            NfsCall::ReadDir(of) => {
                let (dir, count) = (dir(of), BLOCK_BYTES);
                self.put(P::ReadDir, v3::ReadDirArgs { dir, cookie, verifier, count });
            }
            NfsCall::ReadDirPlus(of) => {
                let (dir, dir_count, max_count) = (dir(of), BLOCK_BYTES, BLOCK_BYTES);
                let args = v3::ReadDirPlusArgs { dir, cookie, verifier, dir_count, max_count };
                self.put(P::ReadDirPlus, args);
            }
            NfsCall::FsStat => {
                self.put(P::FsStat, v3::FsStatArgs { root: handle3(Some(&site.handles.root)) });
            }
            NfsCall::Commit(of) => {
                self.put(P::Commit, v3::CommitArgs { file: file(of), offset: 0, count: 0 });
            }
        }
    }

    fn put(self, procedure: v3::Procedure, args: impl Encode) {
        let Self(site, xid, out) = self;
        let program = (v3::PROGRAM, v3::VERSION);
        encode_call(out, xid, program, procedure.number(), &site.credential);
        args.encode(out);
    }
}

fn file3(site: &NfsSite, file: Accessed) -> v3::Handle<'_> {
    handle3(site.handles.file(file))
}

fn dir3(site: &NfsSite, dir: DirNo) -> v3::Handle<'_> {
    handle3(site.handles.dir(dir))
}

/// A set without the object, which no plan makes, shows as `BADHANDLE`.
fn handle3(handle: Option<&OwnedHandle>) -> v3::Handle<'_> {
    let bytes = handle.map_or(&[][..], OwnedHandle::as_bytes);
    v3::Handle::new(bytes).expect("an owned handle is no longer than NFSv3 allows")
}

pub(super) fn stable3(stability: Stability) -> v3::StableHow {
    match stability {
        Stability::Unstable => v3::StableHow::Unstable,
        Stability::FileSync => v3::StableHow::FileSync,
    }
}
