//! From an op to the bytes of its call.

use plimsoll_engine::seam::LinkKind;

use super::super::fileset::BLOCK_BYTES;
use super::super::handles::OwnedHandle;
use super::super::op::{Accessed, DirNo, NfsCall, Span};
use super::super::procedure::{Call, Cookie, FILE_MODE};
use super::super::wire::rpc::CallWriter;
use super::super::wire::{record, v3};
use super::NfsSite;

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
        let name;
        let begin = Cookie::default();
        let call = match call {
            NfsCall::GetAttr(of) => Call::GetAttr(self.file(of)),
            // To what the files of the set have anyway.
            NfsCall::SetAttr(of) => Call::SetMode(self.file(of), FILE_MODE),
            NfsCall::Lookup(of) => {
                name = of.file().name();
                Call::LookUp(self.dir(of.file().directory()), name.as_bytes())
            }
            NfsCall::Access(of) => Call::Access(self.file(of), RIGHTS),
            NfsCall::ReadLink(link) => Call::ReadLink(known(self.handles.link(link))),
            NfsCall::Read(span, _) => Call::Read(self.file(span.file), span.offset, span.bytes),
            NfsCall::Write(span, stability) => {
                Call::Write(self.file(span.file), span.offset, self.content_of(span), stability)
            }
            NfsCall::Create(slot) => {
                name = slot.name();
                Call::Create(self.dir(slot.directory()), name.as_bytes())
            }
            NfsCall::Remove(slot, _) => {
                name = slot.name();
                Call::Remove(self.dir(slot.directory()), name.as_bytes())
            }
            NfsCall::ReadDir(of) => Call::ReadDir(self.dir(of), begin, BLOCK_BYTES),
            NfsCall::ReadDirPlus(of) => Call::ReadDirPlus(self.dir(of), begin, BLOCK_BYTES),
            NfsCall::FsStat => Call::FsStat(&self.handles.root),
            NfsCall::Commit(of) => Call::Commit(self.file(of)),
        };
        call.encode(self.version, CallWriter { xid, credential: &self.credential, out });
    }

    /// What a part of a file holds, or is to hold.
    pub(super) fn content_of(&self, span: Span) -> &[u8] {
        self.content.slice(span.file.file(), span.offset, span.bytes as usize)
    }

    fn file(&self, file: Accessed) -> &OwnedHandle {
        known(self.handles.file(file))
    }

    fn dir(&self, dir: DirNo) -> &OwnedHandle {
        known(self.handles.dir(dir))
    }
}

/// A set without the object, which no plan makes, shows as `NFSERR_STALE` or `BADHANDLE`.
fn known(handle: Option<&OwnedHandle>) -> &OwnedHandle {
    handle.unwrap_or(&OwnedHandle::NONE)
}
